/* neighbours: the words whose vectors point most nearly where a word's does, by cosine; of recommenders the items.
 *     weight_tables.h -> the words' vectors -> one pass over all rows, the best of each word kept */
#include "deploy/cli/options_words.h"
#include "deploy/run/best.h"
#include "deploy/weights/weight_tables.h"
#include "deploy/weights/weights_commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct dp_option options[] = {
    {"--top", "N", NULL, "show the N most similar for each word, 1 .. 10000; default 10"},
    {"--table", "NAME", NULL, "table to search; default: the words of skipgram, the items of mf and neumf"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "neighbours",
    .usage = "DIR WORD... [--top N]",
    .summary =
        "Shows the words most similar to each WORD, by cosine, in a run of skipgram (DIR: its --dir); for mf "
        "and neumf the\nitems most similar to each named item. Words after -- may begin with a -.",
    .options = options,
    .count = OPTIONS,
};

#define SIMILAR 3

struct neighbours_asked {
    size_t row; /* among the rows */
    float *vector;
    double norm;
    struct dp_best best;
};

struct neighbours {
    const char *values[OPTIONS];
    struct dp_words words;
    struct dp_weight_tables run;
    struct dp_weight_rows rows;
    uint64_t top;
    struct neighbours_asked *asked; /* [words - 1] */
};

static enum dp_status parse(struct neighbours *n, int argc, char *const *argv, bool *help,
                            struct dp_error *err)
{
    enum dp_status st = dp_words_parse(&command, NULL, argc, argv, &n->words, n->values, help, err);
    if (st != DP_OK || *help)
        return st;
    if (n->words.words < 2)
        return dp_fail(err, DP_ARGUMENT,
                       "give the directory of a run (its --dir) and a word; 'downpour neighbours --help' "
                       "lists all flags");
    return dp_options_u64(&command, n->values, "--top", 1, 10000, 10, &n->top, err);
}

static enum dp_status find_table(const struct neighbours *n, const struct dp_parameter **out,
                                 struct dp_error *err)
{
    static const char *const usual[] = {"skipgram.word", "mf.item", "neumf.gmf_item"};
    const char *named = dp_options_value(&command, n->values, "--table");
    for (size_t i = 0; !named && i < sizeof usual / sizeof usual[0]; i++)
        if (dp_weight_tables_find(&n->run, usual[i], out, NULL) == DP_OK)
            return DP_OK;
    if (!named)
        return dp_fail(err, DP_ARGUMENT,
                       "%s has no words or items to compare; only skipgram, mf and neumf have them",
                       n->run.served.cluster->model);
    enum dp_status st = dp_weight_tables_find(&n->run, named, out, err);
    return st == DP_OK && !(*out)->sparse
               ? dp_fail(err, DP_ARGUMENT, "--table: '%.48s' is a layer, which has no rows of words or items",
                         named)
               : st;
}

static enum dp_status unknown(const struct neighbours *n, const char *word, struct dp_error *err)
{
    const char *similar[SIMILAR];
    char list[200] = "";
    size_t count = dp_vocab_similar(n->run.vocab, n->rows.parameter->group, word, similar, SIMILAR);
    for (size_t i = 0; i < count; i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%.48s'", i ? ", " : "",
                       similar[i]);
    return dp_fail(err, DP_NOT_FOUND, "'%.64s' is not in the training file%s%s%s", word,
                   count ? "; there is " : "", list,
                   count ? " (names are compared byte by byte, upper and lower case differ)" : "");
}

/* Where in the rows each word is. */
static enum dp_status find_words(struct neighbours *n, struct dp_error *err)
{
    size_t count = n->words.words - 1, *row_of = NULL;
    size_t named = n->run.vocab ? dp_vocab_count(n->run.vocab) : 0;
    enum dp_status st = DP_OK;
    if (!n->run.vocab)
        return dp_fail(err, DP_NOT_FOUND,
                       "the run kept no names: another 'downpour run' with the same --dir keeps them");
    row_of = calloc(named + 1, sizeof *row_of); /* of a name's place; they are first, in this order */
    n->asked = calloc(count, sizeof *n->asked);
    if (!row_of || !n->asked)
        st = dp_fail(err, DP_NOMEM, "no memory for the words");
    for (size_t i = 0; st == DP_OK && i < n->rows.count && n->rows.names[i] != DP_VOCAB_NONE; i++)
        row_of[n->rows.names[i]] = i;
    for (size_t i = 0; st == DP_OK && i < count; i++) {
        uint32_t group = n->rows.parameter->group;
        const char *word = n->words.word[i + 1];
        char cut[DP_VOCAB_TEXT_MAX + 1]; /* as the training cut its text */
        if (n->run.model.form == DP_FORM_WORDS &&
            dp_tokenizer_word(n->run.served.cluster->data.words, word, cut, sizeof cut))
            word = cut;
        size_t at = dp_vocab_find(n->run.vocab, group, word);
        if (at == DP_VOCAB_NONE) {
            st = unknown(n, n->words.word[i + 1], err);
        } else { /* the first name of its key stands for it */
            at = dp_vocab_key(n->run.vocab, group, dp_vocab_at(n->run.vocab, at).key);
            n->asked[i].row = row_of[at];
            st = dp_best_init(&n->asked[i].best, (size_t)n->top, err);
        }
    }
    free(row_of);
    return st;
}

static double dot(const float *a, const float *b, uint32_t dim)
{
    double sum = 0;
    for (uint32_t i = 0; i < dim; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static enum dp_status pull_words(struct neighbours *n, struct dp_error *err)
{
    uint32_t dim = n->rows.parameter->table.dim;
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i + 1 < n->words.words; i++) {
        struct neighbours_asked *asked = &n->asked[i];
        asked->vector = calloc(dim, sizeof *asked->vector);
        if (!asked->vector)
            return dp_fail(err, DP_NOMEM, "no memory for a vector");
        st = dp_weight_rows_pull(&n->run, &n->rows, asked->row, 1, asked->vector, err);
        asked->norm = sqrt(dot(asked->vector, asked->vector, dim));
    }
    return st;
}

static void compare(struct neighbours *n, size_t row, const float *vector)
{
    uint32_t dim = n->rows.parameter->table.dim;
    double norm = sqrt(dot(vector, vector, dim));
    for (size_t i = 0; i + 1 < n->words.words; i++) {
        struct neighbours_asked *asked = &n->asked[i];
        if (row != asked->row && norm > 0 && asked->norm > 0)
            dp_best_offer(&asked->best, dot(vector, asked->vector, dim) / norm / asked->norm, row);
    }
}

static enum dp_status search(struct neighbours *n, struct dp_error *err)
{
    const struct dp_parameter *table = NULL;
    enum dp_status st = find_table(n, &table, err);
    if (st == DP_OK)
        st = dp_weight_rows_list(&n->run, table, &n->rows, err);
    if (st == DP_OK)
        st = find_words(n, err);
    if (st == DP_OK)
        st = pull_words(n, err);
    size_t portion = st == DP_OK ? dp_weight_rows_portion(&n->rows) : 1,
           dim = st == DP_OK ? table->table.dim : 0;
    float *vectors = st == DP_OK ? malloc(portion * dim * sizeof *vectors) : NULL;
    if (st == DP_OK && !vectors)
        st = dp_fail(err, DP_NOMEM, "no memory for %zu vectors", portion);
    for (size_t first = 0; st == DP_OK && first < n->rows.count; first += portion) {
        size_t count = n->rows.count - first < portion ? n->rows.count - first : portion;
        st = dp_weight_rows_pull(&n->run, &n->rows, first, count, vectors, err);
        for (size_t i = 0; st == DP_OK && i < count; i++)
            compare(n, first + i, vectors + i * dim);
    }
    free(vectors);
    return st;
}

static void show(const struct neighbours *n)
{
    char number[24];
    for (size_t i = 0; i + 1 < n->words.words; i++) {
        const struct dp_best *best = &n->asked[i].best;
        if (n->words.words > 2)
            printf("%s%s:\n", i ? "\n" : "", n->words.word[i + 1]);
        for (size_t k = 0; k < best->count; k++)
            printf("%-24s %.6f\n", dp_weight_rows_name(&n->run, &n->rows, best->one[k].at, number),
                   best->one[k].score);
    }
}

static void clear(struct neighbours *n)
{
    for (size_t i = 0; n->asked && i + 1 < n->words.words; i++) {
        free(n->asked[i].vector);
        dp_best_clear(&n->asked[i].best);
    }
    free(n->asked);
    dp_weight_rows_clear(&n->rows);
    dp_weight_tables_clear(&n->run);
    dp_words_clear(&n->words);
}

int dp_weight_neighbours(int argc, char *const *argv)
{
    struct neighbours n = {.run.served = {.folder.lock = -1, .scratch.lock = -1}};
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = parse(&n, argc, argv, &help, &err);
    if (st == DP_OK && help) {
        dp_words_clear(&n.words);
        return dp_options_show_help(&command);
    }
    if (st == DP_OK)
        st = dp_weight_tables_open(n.words.word[0], true, &n.run, &err);
    if (st == DP_OK)
        st = search(&n, &err);
    if (st == DP_OK)
        show(&n);
    int code = dp_weight_tables_end(&n.run, st, &err);
    clear(&n);
    return code;
}

/* inspect: a read-only view of a store, its checksums, its digest, its rows; checkpoints. */
#include "deploy/cli/commands.h"
#include "deploy/cli/inspect_show.h"
#include "deploy/cli/options_words.h"
#include "server/inspect/inspect_layout.h"
#include "server/inspect/inspect_places.h"

#include "common/base/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_DEFAULT 20u

static const struct dp_option options[] = {
    {"--verify", NULL, NULL,
     "check every checksum (blocks of rows and marks, journal records; all files of a checkpoint) and the "
     "format, length, range, lsn and values of each row (finite?); name each damaged place; exit code 2 if "
     "there is one"},
    {"--digest", NULL, NULL,
     "print a digest of all rows, for each table and in total. It depends only on the rows' key, step, "
     "weights and slots, not on the number of shards, files and write-backs"},
    {"--as-stored", NULL, NULL,
     "with --digest: also of a store that is in use or was not closed cleanly (else refused), by its "
     "stored rows, although its journal has newer ones"},
    {"--rows", "TABLE", NULL,
     "print rows of a table instead: step, lsn, weights, slots (optimizer state), as they are stored"},
    {"--key", "KEY", NULL, "with --rows: the row of this key; may be repeated; default: the first rows"},
    {"--limit", "N", NULL, "with --rows: at most N rows, 1 .. 1000000; default 20"},
    {"--all", NULL, NULL,
     "also show which push numbers of each run's workers and of each client are used: a push with a used "
     "number is not applied again"},
    {"--json", NULL, NULL, "print one JSON object instead of text; keys above 2^63-1 are strings in it"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "inspect",
    .usage = "DIR... [FLAGS]",
    .summary =
        "Shows the contents of stores: tables, rows and the journal. An lsn (log sequence number) is a "
        "push's "
        "position in the\norder of its shard. DIR is the directory of a shard, of a server (its store) or of "
        "a 'downpour run'; several are combined.\ninspect reads all rows, and changes, creates and locks "
        "nothing.\nWhile a server runs, it shows the rows that were last written back, without those in the "
        "server's memory, and does\nnot verify the journal. If the server removes a file during that, try "
        "again.\nDIR may also be a checkpoint or a directory of checkpoints. Then inspect lists number, "
        "time, "
        "training run, epoch and\npush, loss, rows, bytes, bytes that were new, and whether the files are "
        "there, in the right sizes.",
    .options = options,
    .count = OPTIONS,
};

struct inspect_asked {
    struct dp_words words; /* DIR..., and the values of --key */
    uint64_t *keys;
    const char *values[OPTIONS];
    uint64_t limit;
    bool help;
    bool shown; /* text or JSON is on standard output */
};

static bool has(const struct inspect_asked *asked, const char *name)
{
    return dp_options_value(&command, asked->values, name) != NULL;
}

static enum dp_status read_flags(int argc, char *const *argv, struct inspect_asked *asked,
                                 struct dp_error *err)
{
    struct dp_words *words = &asked->words;
    enum dp_status st =
        dp_words_parse(&command, "--key", argc, argv, words, asked->values, &asked->help, err);
    if (st != DP_OK || asked->help)
        return st;
    bool rows = has(asked, "--rows");
    if (words->words == 0)
        return dp_fail(err, DP_ARGUMENT, "the directory of a store is required: downpour inspect DIR");
    if (!rows && (has(asked, "--limit") || words->values > 0))
        return dp_fail(err, DP_ARGUMENT, "--key and --limit go with --rows TABLE");
    if (rows && (has(asked, "--verify") || has(asked, "--digest")))
        return dp_fail(err, DP_ARGUMENT, "--rows prints rows only; give --verify and --digest without it");
    if (has(asked, "--as-stored") && !has(asked, "--digest"))
        return dp_fail(err, DP_ARGUMENT, "--as-stored goes with --digest");
    asked->keys = calloc(words->values + 1, sizeof asked->keys[0]);
    if (!asked->keys)
        return dp_fail(err, DP_NOMEM, "the arguments");
    for (size_t i = 0; st == DP_OK && i < words->values; i++)
        st = dp_parse_u64(words->value[i], 0, UINT64_MAX, "--key", &asked->keys[i], err);
    return st == DP_OK ? dp_options_u64(&command, asked->values, "--limit", 1, 1000000, LIMIT_DEFAULT,
                                        &asked->limit, err)
                       : st;
}

/* After all was shown: what of it makes this a failure. */
static enum dp_status judge(const struct inspect_asked *asked, const struct dp_inspect_view *views,
                            size_t count, struct dp_error *err)
{
    size_t damages = 0, unclean = count;
    const char *first = NULL;
    for (size_t i = 0; i < count; i++) {
        damages += views[i].damages;
        first = first || views[i].damages == 0 ? first : views[i].damage[0].text;
        unclean = unclean == count && !dp_inspect_view_is_clean(&views[i]) ? i : unclean;
    }
    if (damages > 0)
        return dp_fail(err, DP_CORRUPT, "%zu damaged place%s%s: %.380s", damages, damages == 1 ? "" : "s",
                       has(asked, "--verify") ? "" : " (--verify looks for all)", first);
    if (unclean < count && has(asked, "--digest") && !has(asked, "--as-stored"))
        return dp_fail(err, DP_UNCLEAN,
                       "store %s is %s: its digest is not final; start and stop its server, or use "
                       "--as-stored for the digest of the rows that are stored now",
                       views[unclean].directory,
                       views[unclean].in_use ? "in use" : "not closed cleanly, and its journal has more");
    return DP_OK;
}

static enum dp_status show_views(struct inspect_asked *asked, const struct dp_places *places,
                                 struct dp_error *err)
{
    const struct dp_inspect_view_options how = {.verify = has(asked, "--verify"),
                                                .digest = has(asked, "--digest")};
    struct dp_inspect_view *views = calloc(places->count, sizeof views[0]);
    struct dp_digest_table *sum = NULL;
    size_t sums = 0, count = 0;
    enum dp_status st = views ? DP_OK : dp_fail(err, DP_NOMEM, "inspect");
    while (st == DP_OK && count < places->count) {
        st = dp_inspect_view_gather(places->path[count], &how, &views[count], err);
        count++; /* what failed is cleared too */
    }
    if (st == DP_OK)
        dp_inspect_layouts(views, count);
    enum dp_status judged = st == DP_OK ? judge(asked, views, count, err) : DP_OK;
    bool digest = how.digest && judged == DP_OK; /* none that is not of all rows */
    if (st == DP_OK && !(sum = dp_inspect_view_sum(views, count, &sums)))
        st = dp_fail(err, DP_NOMEM, "inspect");
    if (st == DP_OK) {
        const struct dp_show show = {.views = views,
                                     .count = count,
                                     .verify = how.verify,
                                     .digest = digest,
                                     .all = has(asked, "--all"),
                                     .refused = err,
                                     .sum = sum,
                                     .sums = sums};
        struct dp_error shown = {0};
        asked->shown = true;
        if (!has(asked, "--json"))
            dp_show_text(&show);
        else if (dp_show_json(&show, &shown) != DP_OK && judged == DP_OK) {
            *err = shown;
            judged = shown.status;
        }
        st = judged;
    }
    free(sum);
    for (size_t i = 0; i < count; i++)
        dp_inspect_view_clear(&views[i]);
    free(views);
    return st;
}

static enum dp_status inspect_checkpoints(struct inspect_asked *asked, const char *path, struct dp_error *err)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (asked->values[i] && strcmp(options[i].name, "--verify") != 0 &&
            strcmp(options[i].name, "--json") != 0)
            return dp_fail(err, DP_ARGUMENT,
                           "%s is for stores, but '%.200s' has checkpoints: 'downpour restore' builds stores "
                           "from one",
                           options[i].name, path);
    if (asked->words.words > 1)
        return dp_fail(err, DP_ARGUMENT, "'%.200s' has checkpoints: give it alone", path);
    asked->shown = true;
    return dp_show_checkpoints(path, has(asked, "--verify"), has(asked, "--json"), err);
}

static enum dp_status inspect(struct inspect_asked *asked, struct dp_error *err)
{
    struct dp_places places = {0};
    enum dp_status st = DP_OK;
    for (size_t i = 0; i < asked->words.words; i++)
        if (dp_show_has_checkpoints(asked->words.word[i]))
            return inspect_checkpoints(asked, asked->words.word[i], err);
    for (size_t i = 0; st == DP_OK && i < asked->words.words; i++)
        st = dp_places_add(&places, asked->words.word[i], err);
    const struct dp_show_rows rows = {.directories = (const char *const *)places.path,
                                      .count = places.count,
                                      .table = dp_options_value(&command, asked->values, "--rows"),
                                      .keys = asked->keys,
                                      .key_count = asked->words.values,
                                      .limit = asked->limit,
                                      .json = has(asked, "--json")};
    if (st == DP_OK)
        st = rows.table ? dp_show_rows(&rows, err) : show_views(asked, &places, err);
    dp_places_clear(&places);
    return st;
}

/* Also where the other flags are wrong. */
static bool says_json(int argc, char *const *argv)
{
    bool json = false;
    for (int a = 0; a < argc; a++)
        json = json || strcmp(argv[a], "--json") == 0;
    return json;
}

int dp_command_inspect(int argc, char *const *argv)
{
    struct inspect_asked asked = {0};
    struct dp_error err = {0};
    enum dp_status st = read_flags(argc, argv, &asked, &err);
    if (st == DP_OK && !asked.help)
        st = inspect(&asked, &err);
    if (st != DP_OK && !asked.shown && says_json(argc, argv))
        dp_show_refusal_json(&err);
    dp_words_clear(&asked.words);
    free(asked.keys);
    if (st == DP_OK && asked.help)
        return dp_options_show_help(&command);
    return dp_options_end(&command, st, &err);
}

#include "worker/score/fold_in.h"

#include "common/base/search.h"
#include "common/model/mix.h"
#include "worker/read/pairs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PULL_MAX    65536u /* keys in a request */
#define FACTORS_MAX 512u   /* the Hessian has their square */
#define ITEMS_MAX                                                                                            \
    20000u /* without an interaction, that a user's objective has, at least; less than twice as many */
#define OTHERS    100u /* bpr: of those, for each item of a user, at least, and less than twice as many */
#define STEPS_MAX 30
#define L2_MIN    1e-3 /* without, the vector of few items would have no bound */
#define TOLD      5

struct folded {
    uint64_t key;         /* in the history */
    uint64_t first, line; /* its first item in `items`; its first pair */
    uint32_t count;
};

/* A term of the objective: weight * log(1 + e^(-sign * score)), score = offset + u . (item - other) + bias */
struct term {
    uint32_t item, other; /* other == item: there is none */
    float sign, weight;
};

struct dp_fold_in {
    struct dp_fold_in_options options;
    struct dp_row_source source;
    struct dp_pairs pairs;
    struct folded *user;
    uint32_t *items; /* of each user, ascending, each once */
    uint64_t users, left_out, unknown, known;
    char named[400]; /* the first unknown items */
    char number[24];
    uint32_t width;
    bool bpr;
    float bias;
    float *rows[DP_GRAPH_PARAMETERS_MAX]; /* of users and of items */
    /* Of the user under way: */
    struct term *terms;
    uint64_t term_count;
    bool *has;                               /* [items] */
    double *x, *step, *at, *slope, *hessian; /* [width + 1], the bias last; [(width + 1)^2] */
};

static const struct dp_model_factors *factors(const struct dp_fold_in *f)
{
    return &f->options.job->model.factors;
}

/* ---- the history */

struct interaction {
    uint64_t user, at;
    uint32_t item;
};

static int by_user(const void *a, const void *b)
{
    const struct interaction *x = a, *y = b;
    if (x->user != y->user)
        return x->user < y->user ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int by_line(const void *a, const void *b)
{
    const struct folded *x = a, *y = b;
    return (x->line > y->line) - (x->line < y->line);
}

static void note_unknown(struct dp_fold_in *f, uint64_t key)
{
    char number[24];
    size_t at = strlen(f->named);
    if (f->unknown++ < TOLD)
        (void)snprintf(f->named + at, sizeof f->named - at, "%s'%.60s'", at ? ", " : "",
                       dp_pairs_text(&f->pairs, DP_PAIRS_ITEMS, key, number));
}

/* The place of an item's key, or UINT32_MAX. */
static uint32_t place_of(const struct dp_fold_in *f, uint64_t key)
{
    size_t at = dp_vocab_key(f->options.vocab, DP_FORM_ITEMS, key);
    return at == DP_VOCAB_NONE ? UINT32_MAX : f->options.item_of[at] - 1; /* 0 - 1 is UINT32_MAX, too */
}

/* Puts the known items of one user, pairs [from, end), into the lists. */
static void add_user(struct dp_fold_in *f, const struct interaction *of, uint64_t from, uint64_t end,
                     uint64_t *to)
{
    struct folded user = {.key = of[from].user, .first = *to, .line = UINT64_MAX};
    for (uint64_t i = from; i < end; i++) {
        user.line = of[i].at < user.line ? of[i].at : user.line;
        if (of[i].item != UINT32_MAX && (*to == user.first || f->items[*to - 1] != of[i].item))
            f->items[(*to)++] = of[i].item;
    }
    user.count = (uint32_t)(*to - user.first);
    f->known += user.count > 0 && dp_vocab_key(f->options.vocab, DP_FORM_USERS, user.key) != DP_VOCAB_NONE;
    if (user.count > 0)
        f->user[f->users++] = user;
    else
        f->left_out++;
}

static enum dp_status group_users(struct dp_fold_in *f, struct dp_error *err)
{
    uint64_t n = f->pairs.count, to = 0;
    struct interaction *of = calloc(n, sizeof *of);
    f->user = calloc(n, sizeof *f->user);
    f->items = calloc(n, sizeof *f->items);
    if (!of || !f->user || !f->items) {
        free(of);
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " interactions", n);
    }
    for (uint64_t i = 0; i < n; i++) {
        of[i] = (struct interaction){
            .user = f->pairs.keys[2 * i], .at = i, .item = place_of(f, f->pairs.keys[2 * i + 1])};
        if (of[i].item == UINT32_MAX)
            note_unknown(f, f->pairs.keys[2 * i + 1]);
    }
    qsort(of, (size_t)n, sizeof *of, by_user);
    for (uint64_t from = 0, end; from < n; from = end) {
        for (end = from + 1; end < n && of[end].user == of[from].user;)
            end++;
        add_user(f, of, from, end, &to);
    }
    free(of);
    qsort(f->user, (size_t)f->users, sizeof *f->user, by_line);
    return f->users > 0
               ? DP_OK
               : dp_fail(err, DP_DATA, "--items or --history: no item of it is in the training file: %s",
                         f->named);
}

static enum dp_status read_history(struct dp_fold_in *f, struct dp_error *err)
{
    const char *path = f->options.history;
    struct dp_dataset_options options = dp_job_data(f->options.job, path, NULL, false);
    struct dp_unpack *unpack = NULL;
    const unsigned char *bytes;
    size_t len;
    memset(options.roles, 0,
           sizeof options.roles); /* of the training file: this one has columns of its own */
    enum dp_status st = dp_unpack_open_text(path, options.encoding, &unpack, err);
    if (st == DP_OK)
        st = dp_unpack_peek(unpack, &bytes, &len, err);
    if (st == DP_OK)
        st = dp_pairs_read(&f->pairs, &options,
                           strcmp(options.format, "lists") == 0 || dp_pairs_are_lists(bytes, len), unpack,
                           err);
    dp_unpack_close(&unpack);
    return st == DP_OK ? group_users(f, err) : st;
}

/* ---- rows */

/* keys: of clients, not mixed. */
static enum dp_status pull(const struct dp_fold_in *f, int p, const uint64_t *keys, uint64_t count,
                           float *rows, struct dp_error *err)
{
    struct dp_job *job = f->options.job;
    const size_t width = dp_graph_parameter(job->model.graph, p)->table.dim;
    enum dp_status st = DP_OK;
    for (uint64_t from = 0; st == DP_OK && from < count; from += PULL_MAX) {
        size_t n = count - from < PULL_MAX ? (size_t)(count - from) : PULL_MAX;
        st = dp_client_pull_rows(job->client, job->table[p], keys + from, n, rows + from * width,
                                 job->cluster->training.timeout_ms, err);
    }
    return st;
}

static enum dp_status source_pull(void *of, int p, const uint64_t *mixed, size_t n, float *rows,
                                  struct dp_error *err)
{
    const struct dp_fold_in *f = of;
    const struct dp_parameter *parameter = dp_graph_parameter(f->options.job->model.graph, p);
    for (size_t i = 0; i < n; i++) {
        uint64_t key = dp_unmix(mixed[i]), place = key;
        if (!parameter->sparse) {
            enum dp_status st = pull(f, p, &key, 1, rows + i * parameter->table.dim, err);
            if (st != DP_OK)
                return st;
            continue;
        }
        if (parameter->group == DP_FORM_ITEMS)
            place = place_of(f, key);
        memcpy(rows + i * parameter->width, f->rows[p] + place * parameter->width,
               parameter->width * sizeof *rows);
    }
    return DP_OK;
}

static enum dp_status pull_items(struct dp_fold_in *f, struct dp_error *err)
{
    const struct dp_graph *graph = f->options.job->model.graph;
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        bool item = parameter->group == DP_FORM_ITEMS;
        if (!parameter->sparse)
            continue;
        f->rows[p] = calloc((item ? f->options.items : f->users) * parameter->width, sizeof(float));
        if (!f->rows[p])
            return dp_fail(err, DP_NOMEM, "no memory for the rows of %" PRIu64 " items", f->options.items);
        if (item)
            st = pull(f, p, f->options.item, f->options.items, f->rows[p], err);
    }
    if (st == DP_OK && factors(f)->bias >= 0) {
        const uint64_t block = 0;
        float *bias = calloc(dp_graph_parameter(graph, factors(f)->bias)->table.dim, sizeof *bias);
        st = bias ? pull(f, factors(f)->bias, &block, 1, bias, err)
                  : dp_fail(err, DP_NOMEM, "no memory for a bias");
        f->bias = bias ? bias[0] : 0;
        free(bias);
    }
    return st;
}

/* ---- a user's vector */

static void add_term(struct dp_fold_in *f, uint32_t item, uint32_t other, float sign, double weight)
{
    f->terms[f->term_count++] =
        (struct term){.item = item, .other = other, .sign = sign, .weight = (float)weight};
}

/* Visits each `every`-th item that the user lacks, from `begin`. */
static void list_terms(struct dp_fold_in *f, const struct folded *user)
{
    const uint64_t items = f->options.items, lacks = items - user->count;
    const double negatives = f->options.job->cluster->data.negatives;
    const uint32_t *own = f->items + user->first;
    const uint64_t most = f->bpr ? OTHERS : ITEMS_MAX, every = items / most > 0 ? items / most : 1;
    memset(f->has, 0, items * sizeof *f->has);
    for (uint32_t i = 0; i < user->count; i++)
        f->has[own[i]] = true;
    f->term_count = 0;
    for (uint32_t i = 0; i < (f->bpr ? user->count : 1) && lacks > 0; i++) {
        uint64_t begin = f->term_count;
        for (uint64_t j = i % every; j < items; j += every)
            if (!f->has[j])
                add_term(f, f->bpr ? own[i] : (uint32_t)j, (uint32_t)j, f->bpr ? 1 : -1, 1);
        double weight = (f->bpr ? 1 : negatives * user->count) / (double)(f->term_count - begin);
        for (uint64_t t = begin; t < f->term_count; t++)
            f->terms[t].weight = (float)weight;
    }
    for (uint32_t i = 0; i < user->count && !f->bpr; i++)
        add_term(f, own[i], own[i], 1, 1);
}

/* Writes the term's derivative of the score by the vector, and returns the score's offset. */
static double term_of(const struct dp_fold_in *f, const struct term *t, double *x)
{
    const float *item = f->rows[factors(f)->item] + (size_t)t->item * f->width,
                *other = f->rows[factors(f)->item] + (size_t)t->other * f->width;
    const float *biases = factors(f)->item_bias < 0 ? NULL : f->rows[factors(f)->item_bias];
    for (uint32_t k = 0; k < f->width; k++)
        x[k] = (double)item[k] - (t->other == t->item ? 0 : (double)other[k]);
    x[f->width] = f->bpr ? 0 : 1;
    double offset = biases ? (double)biases[t->item] : 0;
    return t->other == t->item ? offset + (double)f->bias : offset - (biases ? (double)biases[t->other] : 0);
}

static double dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* The objective at `at`; with derivatives: also its slope and Hessian there. */
static double objective(struct dp_fold_in *f, const double *at, double l2, bool derivatives)
{
    const uint32_t n = f->width + 1;
    double sum = l2 / 2 * dot(at, at, n);
    for (uint32_t k = 0; derivatives && k < n; k++) {
        f->slope[k] = l2 * at[k];
        memset(f->hessian + (size_t)k * n, 0, n * sizeof(double));
        f->hessian[(size_t)k * n + k] = l2;
    }
    for (uint64_t i = 0; i < f->term_count; i++) {
        const struct term *t = &f->terms[i];
        double score = term_of(f, t, f->x), z = (double)t->sign * (score + dot(f->x, at, n));
        double p = 1 / (1 + exp(z)), w = (double)t->weight;
        sum += w * (fmax(-z, 0) + log1p(exp(-fabs(z))));
        for (uint32_t k = 0; derivatives && k < n; k++) {
            f->slope[k] -= w * p * (double)t->sign * f->x[k];
            for (uint32_t l = 0; l <= k; l++)
                f->hessian[(size_t)k * n + l] += w * p * (1 - p) * f->x[k] * f->x[l];
        }
    }
    return sum;
}

/* step = Hessian^-1 slope, by Cholesky's factors in its place; it is positive definite, as l2 > 0. */
static void solve(struct dp_fold_in *f)
{
    const uint32_t n = f->width + 1;
    double *h = f->hessian, *s = f->step;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t l = 0; l <= k; l++) {
            double v = h[(size_t)k * n + l] - dot(h + (size_t)k * n, h + (size_t)l * n, l);
            h[(size_t)k * n + l] = k == l ? sqrt(v) : v / h[(size_t)l * n + l];
        }
        s[k] = (f->slope[k] - dot(h + (size_t)k * n, s, k)) / h[(size_t)k * n + k];
    }
    for (uint32_t k = n; k-- > 0;) {
        for (uint32_t l = k + 1; l < n; l++)
            s[k] -= h[(size_t)l * n + k] * s[l];
        s[k] /= h[(size_t)k * n + k];
    }
}

static void fold(struct dp_fold_in *f, uint64_t u)
{
    const uint32_t n = f->width + 1;
    const struct folded *user = &f->user[u];
    const double trained = (double)dp_graph_dot_l2(f->options.job->model.graph),
                 negatives = f->options.job->cluster->data.negatives;
    /* bpr: two dot products in an example have the user's vector. */
    double l2 = fmax(trained, L2_MIN) * user->count * (f->bpr ? 2 : 1 + negatives);
    double moved = 1;
    list_terms(f, user);
    memset(f->at, 0, n * sizeof *f->at);
    for (int i = 0; i < STEPS_MAX && moved > 1e-5; i++) {
        double was = objective(f, f->at, l2, true), share = 1;
        solve(f);
        for (uint32_t k = 0; k < n; k++)
            f->at[k] -= f->step[k];
        while (share > 1e-3 && objective(f, f->at, l2, false) > was) {
            share /= 2;
            for (uint32_t k = 0; k < n; k++)
                f->at[k] += share * f->step[k];
        }
        moved = sqrt(dot(f->step, f->step, n)) * share;
    }
    for (uint32_t k = 0; k < f->width; k++)
        f->rows[factors(f)->user][u * f->width + k] = (float)f->at[k];
    if (factors(f)->user_bias >= 0)
        f->rows[factors(f)->user_bias][u] = (float)f->at[f->width];
}

static enum dp_status fold_all(struct dp_fold_in *f, struct dp_error *err)
{
    const size_t n = (size_t)f->width + 1;
    uint64_t most = 0;
    for (uint64_t u = 0; u < f->users; u++)
        most = f->user[u].count > most ? f->user[u].count : most;
    f->terms = calloc(f->bpr ? most * (2 * OTHERS) : f->options.items + most, sizeof *f->terms);
    f->has = calloc(f->options.items, sizeof *f->has);
    f->x = calloc(n * (n + 4), sizeof *f->x);
    if (!f->terms || !f->has || !f->x)
        return dp_fail(err, DP_NOMEM, "no memory for vectors of %" PRIu64 " users", f->users);
    f->step = f->x + n, f->at = f->step + n, f->slope = f->at + n, f->hessian = f->slope + n;
    for (uint64_t u = 0; u < f->users; u++) {
        if (dp_job_stopped(f->options.job))
            return dp_fail(err, DP_STOPPING, "stopped by a signal");
        fold(f, u);
    }
    return DP_OK;
}

static enum dp_status check(const struct dp_fold_in *f, struct dp_error *err)
{
    const struct dp_job *job = f->options.job;
    const struct dp_graph *graph = job->model.graph;
    enum dp_op loss = dp_graph_node(graph, dp_graph_nodes(graph) - 1)->op;
    if (!job->model.has_factors || (loss != DP_OP_LOGISTIC_LOSS && loss != DP_OP_BPR_LOSS))
        return dp_fail(err, DP_ARGUMENT,
                       "a user's vector is computed from items for mf with loss=logistic or bpr, not for %s",
                       job->cluster->model);
    if (f->width > FACTORS_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "a user's vector is computed from items for up to %u factors, not %u", FACTORS_MAX,
                       f->width);
    return DP_OK;
}

enum dp_status dp_fold_in_new(const struct dp_fold_in_options *options, struct dp_fold_in **out,
                              struct dp_error *err)
{
    struct dp_fold_in *f = calloc(1, sizeof *f);
    *out = f;
    if (!f)
        return dp_fail(err, DP_NOMEM, "no memory for new users");
    f->options = *options;
    f->source = (struct dp_row_source){.pull = source_pull, .of = f};
    f->bpr = options->job->model.form == DP_FORM_TRIPLES;
    if (options->job->model.has_factors)
        f->width = dp_graph_parameter(options->job->model.graph, factors(f)->user)->width;
    enum dp_status st = check(f, err);
    if (st == DP_OK)
        st = read_history(f, err);
    if (st == DP_OK)
        st = pull_items(f, err);
    if (st == DP_OK)
        st = fold_all(f, err);
    if (st != DP_OK)
        dp_fold_in_free(out);
    return st;
}

void dp_fold_in_free(struct dp_fold_in **fold)
{
    struct dp_fold_in *f = *fold;
    if (!f)
        return;
    dp_pairs_clear(&f->pairs);
    free(f->user);
    free(f->items);
    for (int p = 0; p < DP_GRAPH_PARAMETERS_MAX; p++)
        free(f->rows[p]);
    free(f->terms);
    free(f->has);
    free(f->x);
    free(f);
    *fold = NULL;
}

uint64_t dp_fold_in_users(const struct dp_fold_in *fold)
{
    return fold->users;
}

const char *dp_fold_in_user(struct dp_fold_in *fold, uint64_t user)
{
    return dp_pairs_text(&fold->pairs, DP_PAIRS_USERS, fold->user[user].key, fold->number);
}

const uint32_t *dp_fold_in_items(const struct dp_fold_in *fold, uint64_t user, uint64_t *count)
{
    *count = fold->user[user].count;
    return fold->items + fold->user[user].first;
}

const struct dp_row_source *dp_fold_in_rows(const struct dp_fold_in *fold)
{
    return &fold->source;
}

void dp_fold_in_tell(const struct dp_fold_in *fold, FILE *to)
{
    if (fold->known > 0)
        (void)fprintf(to,
                      "users that are in the training file, but are scored as new ones, by these items only: "
                      "%" PRIu64 "; --user ID takes what was trained\n",
                      fold->known);
    if (fold->unknown == 0)
        return;
    (void)fprintf(
        to, "interactions with items that are not in the training file are left out: %" PRIu64 " (%s%s)",
        fold->unknown, fold->named, fold->unknown > TOLD ? ", ..." : "");
    if (fold->left_out > 0)
        (void)fprintf(to, "; users without another item: %" PRIu64, fold->left_out);
    (void)fputc('\n', to);
}

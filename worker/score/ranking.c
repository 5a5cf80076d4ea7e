#include "worker/score/ranking.h"

#include "common/model/mix.h"
#include "worker/compute/factors.h"
#include "worker/context/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(DP_RANKING_PAIRS_MAX == 100000000, "dp_early_stop_fits says so");

#define PULL_MAX    65536u     /* keys in a request */
#define SCORES_MAX  (4u << 20) /* in a block */
#define USERS_BLOCK 256u

struct ranking {
    struct dp_job *job;
    uint32_t worker; /* whose part */
    struct dp_progress *progress;
    const struct dp_rank_set *set;
    struct dp_rank_sums *sums;
    bool all;                             /* items of each user */
    uint32_t block;                       /* users together */
    struct dp_keys *keys;                 /* of the pull at hand */
    uint64_t *wanted;                     /* [PULL_MAX] */
    struct dp_weights *dense;             /* NULL: the model has none */
    float *rows[DP_GRAPH_PARAMETERS_MAX]; /* sparse: of all items, or of a block's users */
    float *scores;                        /* [block][items] */
    uint8_t *what;                        /* [items] */
    struct dp_rank_best *heap;            /* [top] */
    uint32_t *places;                     /* [top] */
    uint32_t *sampled;                    /* [set->sampled] */
    float *others;                        /* the same */
    uint32_t *candidates;                 /* [items], where not all */
    /* Of a model without factors: */
    struct dp_batch *batch;
    float *output; /* [batch] */
    float *gathered[DP_GRAPH_PARAMETERS_MAX];
};

bool dp_ranking_is_of_all(const struct dp_job *job, const struct dp_rank_set *set)
{
    return job->model.has_factors || (uint64_t)set->user_count * set->item_count <= DP_RANKING_PAIRS_MAX;
}

static const struct dp_parameter *parameter(const struct ranking *r, int p)
{
    return dp_graph_parameter(r->job->model.graph, p);
}

static bool is_of(const struct ranking *r, int p, uint32_t group)
{
    return parameter(r, p)->sparse && parameter(r, p)->group == group;
}

static void *room(size_t count, size_t each, bool *missing)
{
    void *block = calloc(count ? count : 1, each);
    *missing |= block == NULL;
    return block;
}

static enum dp_status reserve(struct ranking *r, struct dp_error *err)
{
    const struct dp_rank_set *set = r->set;
    const uint32_t batch = r->job->cluster->training.batch, items = set->item_count, top = r->sums->top[1];
    bool missing = false;
    uint32_t fit = SCORES_MAX / items;
    r->block = fit < 1 ? 1 : fit < USERS_BLOCK ? fit : USERS_BLOCK;
    r->wanted = room(PULL_MAX, sizeof *r->wanted, &missing);
    r->scores = room((size_t)r->block * items, sizeof *r->scores, &missing);
    r->what = room(items, sizeof *r->what, &missing);
    r->heap = room(top, sizeof *r->heap, &missing);
    r->places = room(top, sizeof *r->places, &missing);
    r->sampled = room(set->sampled, sizeof *r->sampled, &missing);
    r->others = room(set->sampled, sizeof *r->others, &missing);
    r->candidates = room(items, sizeof *r->candidates, &missing);
    r->output = room(batch, sizeof *r->output, &missing);
    for (int p = 0; p < dp_graph_parameters(r->job->model.graph); p++) {
        uint32_t width = parameter(r, p)->width;
        if (parameter(r, p)->sparse)
            r->rows[p] = room((size_t)width * (is_of(r, p, DP_FORM_ITEMS) ? items : r->block), sizeof(float),
                              &missing);
        if (is_of(r, p, DP_FORM_ITEMS) && !r->job->model.has_factors)
            r->gathered[p] = room((size_t)width * batch, sizeof(float), &missing);
    }
    if (missing)
        return dp_fail(err, DP_NOMEM,
                       "no memory to rank %" PRIu32 " items: their rows must fit in memory with the data",
                       items);
    return dp_keys_new(&r->keys, err);
}

static void clear(struct ranking *r)
{
    dp_keys_free(&r->keys);
    dp_weights_free(&r->dense);
    dp_batch_free(&r->batch);
    free(r->wanted);
    free(r->scores);
    free(r->what);
    free(r->heap);
    free(r->places);
    free(r->sampled);
    free(r->others);
    free(r->candidates);
    free(r->output);
    for (int p = 0; p < DP_GRAPH_PARAMETERS_MAX; p++) {
        free(r->rows[p]);
        free(r->gathered[p]);
    }
}

/* ---- rows */

/* keys: mixed. */
static enum dp_status pull(struct ranking *r, int p, const uint64_t *keys, size_t count, struct dp_error *err)
{
    struct dp_job *job = r->job;
    size_t width = parameter(r, p)->width;
    enum dp_status st = DP_OK;
    if (job->rows)
        return job->rows->pull(job->rows->of, p, keys, count, r->rows[p], err);
    for (size_t from = 0; st == DP_OK && from < count; from += PULL_MAX) {
        size_t n = count - from < PULL_MAX ? count - from : PULL_MAX;
        struct dp_ticket ticket = {0};
        for (size_t i = 0; i < n; i++)
            r->wanted[i] = dp_unmix(keys[from + i]);
        st = dp_keys_set(r->keys, r->wanted, n, err);
        const struct dp_pull_part part = {job->table[p], r->keys, r->rows[p] + from * width};
        if (st == DP_OK)
            st = dp_client_pull(job->client, &part, 1, NULL, job->cluster->training.timeout_ms, &ticket, err);
        if (st == DP_OK)
            st = dp_job_wait(job, &ticket, false, NULL, err);
        if (r->progress)
            dp_progress_tick(r->progress);
    }
    return st;
}

static enum dp_status pull_group(struct ranking *r, uint32_t group, const uint64_t *keys, size_t count,
                                 struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(r->job->model.graph); p++)
        if (is_of(r, p, group))
            st = pull(r, p, keys, count, err);
    return st;
}

static enum dp_status pull_dense(struct ranking *r, struct dp_error *err)
{
    struct dp_job *job = r->job;
    struct dp_ticket ticket = {0};
    const struct dp_weights_options options = {.graph = job->model.graph,
                                               .tables = job->table,
                                               .shards = job->shards,
                                               .worst = &job->worst,
                                               .batches_max = 1,
                                               .source = job->rows};
    enum dp_status st = dp_weights_new(&options, &r->dense, err);
    if (st == DP_OK)
        st = dp_weights_issue(r->dense, job->client, DP_WEIGHTS_DENSE, NULL,
                              job->cluster->training.timeout_ms, &ticket, err);
    return st == DP_OK ? dp_job_wait(job, &ticket, false, NULL, err) : st;
}

/* ---- scores */

static const float *rows_of(const struct ranking *r, int p)
{
    return p < 0 ? NULL : r->rows[p];
}

static void score_by_factors(struct ranking *r, uint32_t users)
{
    const struct dp_model_factors *f = &r->job->model.factors;
    const struct dp_factors factors = {.width = parameter(r, f->user)->width,
                                       .user = rows_of(r, f->user),
                                       .item = rows_of(r, f->item),
                                       .user_bias = rows_of(r, f->user_bias),
                                       .item_bias = rows_of(r, f->item_bias),
                                       .bias = f->bias < 0 ? 0 : dp_weights_local(r->dense, f->bias)[0]};
    dp_factors_scores(&factors, users, r->set->item_count, r->scores);
}

/* Scores one user with many items, as a minibatch whose rows are already pulled. */
static void fill(struct ranking *r, uint32_t count)
{
    struct dp_batch *batch = r->batch;
    batch->examples = count;
    batch->group[DP_FORM_USERS].distinct = 1;
    batch->group[DP_FORM_ITEMS].distinct = count;
    for (uint32_t l = 0; l < 2; l++) {
        batch->list[l].slots = batch->group[l].slots; /* each is the one list of its group */
        for (uint32_t i = 0; i < count; i++) {
            batch->list[l].offsets[i + 1] = i + 1;
            batch->list[l].slots[i] = l == DP_FORM_ITEMS ? i : 0;
            batch->list[l].values[i] = 1;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        batch->labels[i] = 0;
        batch->group[DP_FORM_ITEMS].keys[i] = i; /* any distinct keys will do */
    }
    batch->group[DP_FORM_USERS].keys[0] = 0;
}

static enum dp_status score_by_program(struct ranking *r, uint32_t user, const uint32_t *items,
                                       uint32_t count, float *scores, struct dp_error *err)
{
    const struct dp_graph *graph = r->job->model.graph;
    const float *weights[DP_GRAPH_PARAMETERS_MAX] = {NULL};
    uint32_t most = r->job->cluster->training.batch;
    enum dp_status st = DP_OK;
    for (uint32_t from = 0; st == DP_OK && from < count; from += most) {
        uint32_t n = count - from < most ? count - from : most;
        for (int p = 0; p < dp_graph_parameters(graph); p++) {
            size_t width = parameter(r, p)->width;
            for (uint32_t i = 0; r->gathered[p] && i < n; i++)
                memcpy(r->gathered[p] + i * width, r->rows[p] + items[from + i] * width,
                       width * sizeof(float));
            weights[p] = !parameter(r, p)->sparse     ? dp_weights_local(r->dense, p)
                         : is_of(r, p, DP_FORM_ITEMS) ? r->gathered[p]
                                                      : r->rows[p] + user * width;
        }
        fill(r, n);
        float loss;
        st = dp_program_forward(r->job->program, r->batch, weights, &loss, r->output, err);
        for (uint32_t i = 0; st == DP_OK && i < n; i++)
            scores[items[from + i]] = r->output[i];
    }
    return st;
}

/* Scores all items of a user, or, beyond the limit, only its test items and the sampled ones. */
static uint32_t candidates(struct ranking *r, const struct dp_rank_user *user)
{
    uint32_t count = 0;
    if (r->all) {
        for (; count < r->set->item_count; count++)
            r->candidates[count] = count;
        return count;
    }
    for (uint32_t j = 0; j < user->test_count; j++) {
        uint32_t n = dp_rank_set_sample(r->set, user, j, r->sampled);
        for (uint32_t i = 0; i <= n; i++) {
            uint32_t item = i < n ? r->sampled[i] : user->test[j];
            if (r->what[item] == DP_RANK_ORDINARY)
                r->candidates[count++] = item;
            r->what[item] = DP_RANK_LEFT_OUT; /* each once */
        }
    }
    for (uint32_t i = 0; i < count; i++)
        r->what[r->candidates[i]] = DP_RANK_ORDINARY;
    return count;
}

/* ---- sums */

static void mark(struct ranking *r, const struct dp_rank_user *user, bool set)
{
    for (uint32_t i = 0; i < user->trained_count; i++)
        r->what[user->trained[i]] = set ? DP_RANK_LEFT_OUT : DP_RANK_ORDINARY;
    for (uint32_t i = 0; i < user->test_count; i++)
        r->what[user->test[i]] = set ? DP_RANK_WANTED : DP_RANK_ORDINARY;
}

static enum dp_status add_user(struct ranking *r, const struct dp_rank_user *user, const float *scores,
                               struct dp_error *err)
{
    const struct dp_rank_set *set = r->set;
    double check = 0;
    for (uint32_t j = 0; j < user->test_count; j++) {
        uint32_t n = dp_rank_set_sample(set, user, j, r->sampled);
        for (uint32_t i = 0; i < n; i++)
            check += (double)(r->others[i] = scores[r->sampled[i]]);
        check += (double)scores[user->test[j]];
        dp_rank_sums_pair(r->sums, r->job->model.labels, scores[user->test[j]], r->others, n,
                          set->ranks_sampled);
    }
    if (!isfinite(check))
        return dp_fail(err, DP_NOT_FINITE,
                       "the model's scores are not finite: the training has diverged; try a lower rate");
    if (!r->all)
        return DP_OK;
    mark(r, user, true);
    uint32_t hits = dp_rank_places(scores, r->what, set->item_count, r->sums->top[1], r->heap, r->places);
    mark(r, user, false);
    dp_rank_sums_user(r->sums, r->places, hits, user->test_count);
    return DP_OK;
}

/* Ranks the users first, first + stride, ... */
static enum dp_status rank_block(struct ranking *r, uint32_t first, uint32_t stride, uint32_t users,
                                 struct dp_error *err)
{
    uint64_t keys[USERS_BLOCK];
    const struct dp_rank_set *set = r->set;
    for (uint32_t u = 0; u < users; u++)
        keys[u] = set->user[first + u * stride].key;
    enum dp_status st = pull_group(r, DP_FORM_USERS, keys, users, err);
    if (st == DP_OK && r->job->model.has_factors)
        score_by_factors(r, users);
    for (uint32_t u = 0; st == DP_OK && u < users; u++) {
        const struct dp_rank_user *user = &set->user[first + u * stride];
        float *scores = r->scores + (size_t)u * set->item_count;
        if (!r->job->model.has_factors)
            st = score_by_program(r, u, r->candidates, candidates(r, user), scores, err);
        if (st == DP_OK)
            st = add_user(r, user, scores, err);
        if (r->progress)
            dp_progress_tick(r->progress);
        if (st == DP_OK && dp_job_stopped(r->job))
            st = dp_fail(err, DP_STOPPING, "stopped by a signal");
    }
    return st;
}

static enum dp_status run(struct ranking *r, struct dp_error *err)
{
    const struct dp_rank_set *set = r->set;
    uint32_t workers = r->job->cluster->training.workers;
    enum dp_status st = reserve(r, err);
    if (st == DP_OK && !r->job->model.has_factors)
        st = dp_batch_reserve(&r->job->worst, &r->batch, err);
    if (st == DP_OK)
        st = pull_dense(r, err);
    if (st == DP_OK)
        st = pull_group(r, DP_FORM_ITEMS, set->items, set->item_count, err);
    for (uint64_t u = r->worker; st == DP_OK && u < set->user_count; u += (uint64_t)r->block * workers) {
        uint64_t left = (set->user_count - u - 1) / workers + 1;
        st = rank_block(r, (uint32_t)u, workers, left < r->block ? (uint32_t)left : r->block, err);
    }
    return st;
}

enum dp_status dp_ranking(struct dp_job *job, struct dp_progress *progress, uint32_t worker,
                          const struct dp_rank_set *set, struct dp_rank_sums *out, struct dp_error *err)
{
    uint32_t top = job->cluster->training.top_k;
    struct ranking r = {.job = job,
                        .worker = worker,
                        .progress = progress,
                        .set = set,
                        .sums = out,
                        .all = dp_ranking_is_of_all(job, set)};
    *out = (struct dp_rank_sums){.top = {top < 10 ? top : 10, top}, .items = r.all ? set->item_count : 0};
    dp_program_evaluate(job->program, true);
    enum dp_status st = run(&r, err);
    dp_program_evaluate(job->program, false);
    if (st != DP_OK && progress)
        st = dp_progress_settle(job, st, err);
    if (st != DP_OK)
        dp_progress_end(progress, job, st);
    clear(&r);
    return st;
}

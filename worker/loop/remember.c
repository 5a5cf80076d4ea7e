#include "worker/loop/remember.h"

#include "common/base/log.h"
#include "worker/coordinate/agreed.h"

#include <stdlib.h>
#include <string.h>

#define SHARE  20u   /* put takes at most 1/SHARE of the time */
#define ALWAYS 1024u /* the stats of so many epochs are small enough to be put after each epoch */

void dp_remember_put(struct dp_remember *remember, struct dp_job *job, const struct dp_worker_stats *stats,
                     bool rests)
{
    uint64_t begun = dp_clock_ns(&job->clock);
    char *text = NULL;
    if (begun < remember->next_ns && !(rests && stats->ended <= ALWAYS))
        return;
    struct dp_error err = {0};
    enum dp_status st = dp_worker_stats_pack(stats, &text, &err);
    if (st == DP_OK)
        st = dp_shared_put(job, "figures", job->worker, text, strlen(text), &err);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "cannot save the training stats on the first server: %s; training continues",
               err.text);
    free(text);
    uint64_t now = dp_clock_ns(&job->clock);
    remember->next_ns = now + (now - begun) * (SHARE - 1);
}

enum dp_status dp_remember_of(struct dp_job *job, uint32_t worker, struct dp_worker_stats *stats,
                              struct dp_error *err)
{
    uint32_t epochs = job->cluster->training.epochs;
    struct dp_shared_note note = {0};
    struct dp_error unread = {0};
    enum dp_status st = dp_shared_one(job, "figures", worker, &note, err);
    if (st == DP_OK &&
        (!note.bytes || dp_worker_stats_unpack(note.bytes, note.size, epochs, stats, &unread) != DP_OK)) {
        dp_worker_stats_clear(stats);
        st = dp_worker_stats_init(stats, worker, epochs, err);
    }
    dp_shared_note_clear(&note);
    return st;
}

static void get_note(struct dp_job *job, struct dp_worker_stats *stats)
{
    struct dp_shared_note note = {0};
    struct dp_error err = {0};
    struct dp_worker_stats before = {0};
    enum dp_status st = dp_shared_one(job, "figures", job->worker, &note, &err);
    if (st == DP_OK && note.bytes)
        st = dp_worker_stats_unpack(note.bytes, note.size, stats->epochs, &before, &err);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "cannot read the stats of the earlier process: %s; the report will lack them",
               err.text);
    else if (note.bytes) {
        dp_worker_stats_clear(stats);
        *stats = before;
    }
    dp_shared_note_clear(&note);
}

/* ---- the step log */

enum dp_status dp_remember_open(struct dp_remember *remember, struct dp_job *job, struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct dp_step_log_id id = {
        .cluster = job->cluster->id, .run = training->run, .worker = job->worker};
    char path[DP_PATH_MAX + 32];
    struct dp_error why = {0};
    *remember = (struct dp_remember){0};
    if (!training->steps[0])
        return DP_OK;
    enum dp_status st = dp_step_log_path(training->steps, job->worker, path, sizeof path, err);
    if (st != DP_OK)
        return st;
    st = dp_step_log_open(path, &id, &remember->log, &why);
    if (st == DP_OK)
        return st;
    if (st != DP_FULL)
        return dp_fail(err, st, "%s (training.steps)", why.text);
    dp_log(DP_LOG_WARN, "%s; training continues, but metrics will be missing if it is stopped and resumed",
           why.text);
    return DP_OK;
}

void dp_remember_close(struct dp_remember *remember)
{
    dp_step_log_close(&remember->log);
    free(remember->found);
    *remember = (struct dp_remember){0};
}

enum dp_status dp_remember_begin(struct dp_remember *remember, const struct dp_job *job,
                                 const struct dp_step_log_plan *plan, const char *text, bool begun,
                                 struct dp_error *err)
{
    const char *before = remember->log ? dp_step_log_text(remember->log) : NULL;
    if (!remember->log || (before && strcmp(before, text) == 0))
        return DP_OK;
    if (before && begun)
        return dp_agreed_check(text, before, strlen(before), job->cluster->training.run, err);
    dp_step_log_set_plan(remember->log, plan, text);
    return DP_OK;
}

static void add(struct dp_remember *remember, const struct dp_step *step, struct dp_worker_stats *stats)
{
    struct dp_epoch_stats *epoch = &stats->epoch[step->epoch];
    epoch->loss_sum += step->loss_sum;
    epoch->examples += step->examples;
    remember->groups++;
}

/* Adds earlier pushes when their turn comes: an f64 sum depends on the order. */
static void add_found(struct dp_remember *remember, uint64_t below, struct dp_worker_stats *stats)
{
    while (remember->found_next < remember->found_len && remember->found[remember->found_next].group < below)
        add(remember, &remember->found[remember->found_next++], stats);
}

static struct dp_step_sum sum_of(const struct dp_remember *remember, const struct dp_epoch_stats *epoch)
{
    return (struct dp_step_sum){.groups = remember->groups,
                                .examples = epoch->examples,
                                .loss_sum = epoch->loss_sum,
                                .begun = epoch->begun,
                                .seconds = epoch->seconds};
}

static void enter(struct dp_remember *remember, uint32_t epoch)
{
    if (epoch != remember->epoch)
        remember->groups = 0;
    remember->epoch = epoch;
}

void dp_remember_push(struct dp_remember *remember, const struct dp_step *step, struct dp_worker_stats *stats)
{
    enter(remember, step->epoch);
    add_found(remember, step->group, stats);
    if (remember->log) {
        const struct dp_step_sum sum = sum_of(remember, &stats->epoch[step->epoch]);
        dp_step_log_add(remember->log, step, &sum);
    }
    add(remember, step, stats);
}

void dp_remember_end(struct dp_remember *remember, const struct dp_worker_stats *stats)
{
    struct dp_worker_stats totals = *stats;
    char *text = NULL;
    totals.epochs = totals.ended = 0; /* they have records of their own */
    if (!remember->log || dp_worker_stats_pack(&totals, &text, NULL) != DP_OK)
        return;
    dp_step_log_note(remember->log, DP_STEP_TOTALS, 0, text, strlen(text));
    free(text);
}

void dp_remember_epoch(struct dp_remember *remember, uint32_t epoch, struct dp_worker_stats *stats)
{
    enter(remember, epoch);
    add_found(remember, UINT64_MAX, stats);
    if (!remember->log)
        return;
    const struct dp_step_sum sum = sum_of(remember, &stats->epoch[epoch]);
    dp_step_log_epoch(remember->log, epoch, &sum);
    dp_remember_end(remember, stats);
}

void dp_remember_tested(struct dp_remember *remember, enum dp_step_note kind, uint32_t epoch,
                        const struct dp_tested *tested)
{
    char *text = remember->log ? dp_tested_pack(tested, 1) : NULL;
    if (text)
        dp_step_log_note(remember->log, kind, epoch, text, strlen(text));
    free(text);
}

static void learn_totals(struct dp_worker_stats *stats, const void *bytes, size_t size)
{
    struct dp_worker_stats totals = {0};
    if (dp_worker_stats_unpack(bytes, size, 0, &totals, NULL) != DP_OK)
        return;
    stats->staleness = totals.staleness;
    stats->times = totals.times;
    stats->repeated_examples = totals.repeated_examples;
    stats->dropped = totals.dropped;
    dp_worker_stats_clear(&totals);
}

static void learn_note(void *context, enum dp_step_note kind, uint32_t epoch, const void *bytes, size_t size)
{
    const struct dp_remembered *out = context;
    struct dp_tested *tested = kind == DP_STEP_TEST         ? out->tested
                               : kind == DP_STEP_VALIDATION ? out->valid
                                                            : NULL;
    if (kind == DP_STEP_TOTALS)
        learn_totals(out->stats, bytes, size);
    else if (tested && epoch > 0 && epoch <= out->stats->epochs)
        (void)dp_tested_unpack(bytes, size, 1, &tested[epoch - 1]);
}

static bool is_made(const void *of, uint32_t epoch, uint64_t group)
{
    return dp_position_made(of, epoch, group);
}

void dp_remember_cut(struct dp_remember *remember, const struct dp_position *position)
{
    struct dp_error err = {0};
    const struct dp_step_log_cut cut = {.epoch = position->epoch,
                                        .made = position->made,
                                        .first = position->first,
                                        .done = is_made,
                                        .of = position};
    if (remember->log && dp_step_log_cut(remember->log, &cut, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "the step log may tell of more than was trained: %s", err.text);
}

static void set_epoch(struct dp_epoch_stats *epoch, const struct dp_step_sum *sum)
{
    *epoch = (struct dp_epoch_stats){
        .loss_sum = sum->loss_sum, .examples = sum->examples, .begun = sum->begun, .seconds = sum->seconds};
}

/* Restores an epoch without a record of its end from the records of its pushes. In the epoch under way they
 * wait for their turn. */
static void get_epoch(struct dp_remember *remember, uint32_t epoch, const struct dp_remembered *out)
{
    struct dp_epoch_stats *stats = &out->stats->epoch[epoch];
    struct dp_step_sum sum = dp_step_log_sum(remember->log, epoch);
    struct dp_error err = {0};
    free(remember->found);
    if (dp_step_log_steps(remember->log, epoch, is_made, out->position, &remember->found,
                          &remember->found_len, &err) != DP_OK)
        dp_log(DP_LOG_WARN,
               "cannot read the step log of the earlier process: %s; the report will lack its losses",
               err.text);
    remember->found_next = 0;
    remember->made += sum.groups + remember->found_len;
    if (sum.examples == 0 && remember->found_len == 0)
        return;
    set_epoch(stats, &sum);
    if (remember->found_len > 0)
        stats->seconds = remember->found[remember->found_len - 1].seconds;
    remember->epoch = epoch;
    remember->groups = sum.groups;
    if (epoch == out->position->epoch) {
        add_found(remember, out->position->first, out->stats);
        return;
    }
    add_found(remember, UINT64_MAX, out->stats);
    sum = sum_of(remember, stats);
    dp_step_log_epoch(remember->log, epoch, &sum);
    free(remember->found);
    remember->found = NULL;
    remember->found_len = remember->found_next = 0;
}

static void get_log(struct dp_remember *remember, const struct dp_remembered *out)
{
    uint32_t epochs = out->stats->epochs, over = out->position->epoch;
    struct dp_step_sum *sums = calloc(over ? over : 1, sizeof *sums);
    if (!sums) {
        dp_log(DP_LOG_WARN, "no memory for the stats of %u epochs: the report will lack them", over);
        return;
    }
    dp_step_log_sums(remember->log, sums, over);
    for (uint32_t e = 0; e < over; e++)
        if (sums[e].groups > 0) {
            set_epoch(&out->stats->epoch[e], &sums[e]);
            remember->made += sums[e].groups;
        } else {
            get_epoch(remember, e, out);
        }
    if (over < epochs)
        get_epoch(remember, over, out);
    dp_step_log_visit(remember->log, learn_note, (void *)(uintptr_t)out);
    free(sums);
}

/* Counts the examples that are done but in no sum: their losses are lost. */
static uint64_t count_lost(const struct dp_remember *remember, const struct dp_remembered *out)
{
    uint64_t known = out->stats->dropped.passed;
    for (uint32_t e = 0; e < out->stats->epochs; e++)
        known += out->stats->epoch[e].examples;
    for (size_t i = remember->found_next; i < remember->found_len; i++)
        known += remember->found[i].examples;
    return out->found_examples > known ? out->found_examples - known : 0;
}

void dp_remember_get(struct dp_remember *remember, struct dp_job *job, const struct dp_remembered *out)
{
    get_note(job, out->stats);
    /* The epoch under way is summed up again as it continues. */
    for (uint32_t e = out->position->epoch; e < out->stats->epochs; e++)
        out->stats->epoch[e] = (struct dp_epoch_stats){0};
    if (remember->log)
        get_log(remember, out);
    out->stats->found_examples = count_lost(remember, out);
    if (remember->log && out->stats->found_examples > 0)
        dp_log(
            DP_LOG_WARN,
            "the losses of %llu examples trained by an earlier process are lost: the report will lack them",
            (unsigned long long)out->stats->found_examples);
}

#include "worker/history/remember.h"

#include "common/base/log.h"
#include "worker/context/agreed.h"

#include <stdlib.h>
#include <string.h>

#define SHARE   20u   /* put takes at most 1/SHARE of the time */
#define EACH    1024u /* so many pushes of an epoch have a sum each in the log, */
#define EVERY_S 1.0   /* and then one a second of training */
#define ALWAYS  1024u /* the stats of so many epochs are small enough to be put after each epoch */

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

/* *stats stays {0} where there is no note, or none that can be read. */
static enum dp_status read_note(struct dp_job *job, uint32_t worker, struct dp_worker_stats *stats,
                                struct dp_error *err)
{
    struct dp_shared_note note = {0};
    enum dp_status st = dp_shared_one(job, "figures", worker, &note, err);
    if (st == DP_OK && note.bytes)
        st = dp_worker_stats_unpack(note.bytes, note.size, job->cluster->training.epochs, stats, err);
    dp_shared_note_clear(&note);
    if (st != DP_OK)
        dp_worker_stats_clear(stats);
    return st;
}

enum dp_status dp_remember_of(struct dp_job *job, uint32_t worker, struct dp_worker_stats *stats,
                              struct dp_error *err)
{
    struct dp_error why = {0};
    enum dp_status st = read_note(job, worker, stats, &why);
    if (st != DP_OK && st != DP_DATA)
        return dp_fail(err, st, "%s", why.text);
    return stats->epoch ? DP_OK : dp_worker_stats_init(stats, worker, job->cluster->training.epochs, err);
}

static void get_note(struct dp_job *job, struct dp_worker_stats *stats)
{
    struct dp_error err = {0};
    struct dp_worker_stats before = {0};
    if (read_note(job, job->worker, &before, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "cannot read the stats of the earlier process: %s; the report will lack them",
               err.text);
    else if (before.epoch) {
        dp_worker_stats_clear(stats);
        *stats = before;
    }
}

/* ---- the step log */

enum dp_status dp_remember_open(struct dp_remember *remember, struct dp_job *job, struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct dp_step_log_id id = {
        .cluster = job->cluster->id, .run = training->run, .worker = job->worker};
    char path[DP_PATH_MAX + 32];
    *remember = (struct dp_remember){0};
    if (!training->steps[0])
        return DP_OK;
    enum dp_status st = dp_cluster_step_log(training->steps, job->worker, path, sizeof path, err);
    if (st == DP_OK)
        st = dp_step_log_open(path, &id, &remember->log, err);
    return st == DP_OK ? st : dp_wrap(err, st, "training.steps");
}

void dp_remember_close(struct dp_remember *remember)
{
    dp_step_log_close(&remember->log);
    *remember = (struct dp_remember){0};
}

static struct dp_step_log_cut cut_of(const struct dp_position *position)
{
    struct dp_step_log_cut cut = {.place = {.epoch = position->epoch, .groups = position->first}};
    for (uint64_t g = 0; g < position->first; g++)
        cut.made += dp_position_made(position, position->epoch, g);
    return cut;
}

enum dp_status dp_remember_begin(struct dp_remember *remember, const struct dp_job *job,
                                 const struct dp_position *position, const struct dp_step_log_plan *plan,
                                 const char *text, struct dp_error *err)
{
    const char *before = remember->log ? dp_step_log_settings(remember->log) : NULL;
    const struct dp_step_log_cut cut = cut_of(position);
    enum dp_status st = DP_OK;
    if (before && strcmp(before, text) != 0 && dp_position_begun(position))
        st = dp_agreed_check(text, before, strlen(before), job->cluster->training.run, err);
    if (!remember->log || st != DP_OK)
        return st;
    struct dp_error why = {0};
    st = dp_step_log_begin(remember->log, &cut, plan, text, &why);
    if (st != DP_OK && st != DP_FULL)
        return dp_fail(err, st, "%s (training.steps)", why.text);
    if (st == DP_FULL)
        dp_log(DP_LOG_WARN,
               "%s; training continues, but metrics will be missing if it is stopped and resumed", why.text);
    return DP_OK;
}

static struct dp_step_sum sum_of(const struct dp_remember *remember, const struct dp_epoch_stats *epoch)
{
    return (struct dp_step_sum){.epoch = remember->epoch,
                                .groups = remember->groups,
                                .pushes = remember->pushes,
                                .examples = epoch->examples,
                                .loss_sum = epoch->loss_sum,
                                .begun = epoch->begun,
                                .seconds = epoch->seconds};
}

static void enter(struct dp_remember *remember, uint32_t epoch)
{
    if (epoch == remember->epoch)
        return;
    remember->epoch = epoch;
    remember->pushes = remember->groups = 0;
    remember->lines = 0;
    remember->due_s = 0;
}

void dp_remember_push(struct dp_remember *remember, const struct dp_step *step, struct dp_worker_stats *stats)
{
    struct dp_epoch_stats *epoch = &stats->epoch[step->epoch];
    enter(remember, step->epoch);
    epoch->loss_sum += step->loss_sum;
    epoch->examples += step->examples;
    remember->pushes++;
    if (step->group >= remember->groups)
        remember->groups = step->group + 1;
    if (!remember->log || (remember->lines >= EACH && step->seconds < remember->due_s))
        return;
    struct dp_step_sum sum = sum_of(remember, epoch);
    sum.seconds = step->seconds;
    remember->lines++;
    remember->due_s = step->seconds + EVERY_S;
    dp_step_log_sum(remember->log, &sum);
}

static void note_totals(struct dp_remember *remember, uint32_t over, const struct dp_worker_stats *stats)
{
    const struct dp_step_place place = {.epoch = over};
    struct dp_worker_stats totals = *stats;
    char *text = NULL;
    totals.epochs = totals.ended = 0; /* they have lines of their own */
    if (dp_worker_stats_pack(&totals, &text, NULL) == DP_OK)
        dp_step_log_note(remember->log, DP_STEP_TOTALS, place, text);
    free(text);
}

void dp_remember_end(struct dp_remember *remember, const struct dp_worker_stats *stats)
{
    if (!remember->log || remember->groups == 0)
        return;
    const struct dp_step_sum sum = sum_of(remember, &stats->epoch[remember->epoch]);
    note_totals(remember, remember->epoch, stats);
    dp_step_log_sum(remember->log, &sum);
}

void dp_remember_epoch(struct dp_remember *remember, uint32_t epoch, struct dp_worker_stats *stats)
{
    enter(remember, epoch);
    if (!remember->log)
        return;
    const struct dp_step_sum sum = sum_of(remember, &stats->epoch[epoch]);
    dp_step_log_end(remember->log, &sum);
    note_totals(remember, epoch + 1, stats);
}

void dp_remember_tested(struct dp_remember *remember, enum dp_step_note kind, uint32_t epoch,
                        const struct dp_tested *tested)
{
    char *text = remember->log ? dp_tested_pack(tested, 1) : NULL;
    if (text)
        dp_step_log_note(remember->log, kind, (struct dp_step_place){.epoch = epoch}, text);
    free(text);
}

static void learn_totals(struct dp_worker_stats *stats, const char *text)
{
    struct dp_worker_stats totals = {0};
    if (dp_worker_stats_unpack(text, strlen(text), 0, &totals, NULL) != DP_OK)
        return;
    stats->staleness = totals.staleness;
    stats->times = totals.times;
    stats->repeated_examples = totals.repeated_examples;
    stats->dropped = totals.dropped;
    dp_worker_stats_clear(&totals);
}

struct learning {
    struct dp_remember *remember;
    const struct dp_remembered *out;
};

static void learn_note(void *context, enum dp_step_note kind, uint32_t epoch, const char *text)
{
    const struct dp_remembered *out = ((const struct learning *)context)->out;
    struct dp_tested *tested = kind == DP_STEP_TEST         ? out->tested
                               : kind == DP_STEP_VALIDATION ? out->valid
                                                            : NULL;
    if (kind == DP_STEP_TOTALS)
        learn_totals(out->stats, text);
    else if (tested && epoch > 0 && epoch <= out->stats->epochs)
        (void)dp_tested_unpack(text, strlen(text), 1, &tested[epoch - 1]);
}

static void learn_sum(void *context, const struct dp_step_sum *sum)
{
    const struct learning *to = context;
    if (sum->epoch >= to->out->stats->epochs)
        return;
    to->out->stats->epoch[sum->epoch] = (struct dp_epoch_stats){
        .loss_sum = sum->loss_sum, .examples = sum->examples, .begun = sum->begun, .seconds = sum->seconds};
    to->remember->made += sum->pushes;
    to->remember->epoch = sum->epoch;
    to->remember->pushes = sum->pushes;
    to->remember->groups = sum->groups;
}

/* Counts the examples that are done but in no sum: their losses are lost. */
static uint64_t count_lost(const struct dp_remembered *out)
{
    uint64_t known = out->stats->dropped.passed;
    for (uint32_t e = 0; e < out->stats->epochs; e++)
        known += out->stats->epoch[e].examples;
    return out->found_examples > known ? out->found_examples - known : 0;
}

void dp_remember_get(struct dp_remember *remember, struct dp_job *job, const struct dp_remembered *out)
{
    get_note(job, out->stats);
    /* The epoch under way continues from the step log. */
    for (uint32_t e = out->position->epoch; e < out->stats->epochs; e++)
        out->stats->epoch[e] = (struct dp_epoch_stats){0};
    struct learning to = {.remember = remember, .out = out};
    if (remember->log)
        dp_step_log_visit(remember->log, &(struct dp_step_log_visitor){learn_sum, learn_note, &to});
    out->stats->found_examples = count_lost(out);
    if (remember->log && out->stats->found_examples > 0)
        dp_log(
            DP_LOG_WARN,
            "the losses of %llu examples trained by an earlier process are lost: the report will lack them",
            (unsigned long long)out->stats->found_examples);
}

#include "worker/history/stats_history.h"

#include "common/base/log.h"
#include "worker/context/training_settings.h"

#include <stdlib.h>
#include <string.h>

#define SHARE   20u   /* put takes at most 1/SHARE of the time */
#define EACH    1024u /* so many pushes of an epoch have a sum each in the log, */
#define EVERY_S 1.0   /* and then one a second of training */
#define ALWAYS  1024u /* the stats of so many epochs are small enough to be put after each epoch */

void dp_stats_history_put(struct dp_stats_history *history, struct dp_job *job,
                          const struct dp_worker_stats *stats, bool rests)
{
    uint64_t begun = dp_clock_ns(&job->clock);
    char *text = NULL;
    if (begun < history->next_ns && !(rests && stats->ended <= ALWAYS))
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
    history->next_ns = now + (now - begun) * (SHARE - 1);
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

enum dp_status dp_stats_history_of(struct dp_job *job, uint32_t worker, struct dp_worker_stats *stats,
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

enum dp_status dp_stats_history_open(struct dp_stats_history *history, struct dp_job *job,
                                     struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct dp_step_log_id id = {
        .cluster = job->cluster->id, .run = training->run, .worker = job->worker};
    char path[DP_PATH_MAX + 32];
    *history = (struct dp_stats_history){0};
    if (!training->steps[0])
        return DP_OK;
    enum dp_status st = dp_cluster_step_log(training->steps, job->worker, path, sizeof path, err);
    if (st == DP_OK)
        st = dp_step_log_open(path, &id, &history->log, err);
    return st == DP_OK ? st : dp_wrap(err, st, "training.steps");
}

void dp_stats_history_close(struct dp_stats_history *history)
{
    dp_step_log_close(&history->log);
    *history = (struct dp_stats_history){0};
}

static struct dp_step_log_cut cut_of(const struct dp_position *position)
{
    struct dp_step_log_cut cut = {.place = {.epoch = position->epoch, .groups = position->first}};
    for (uint64_t g = 0; g < position->first; g++)
        cut.made += dp_position_made(position, position->epoch, g);
    return cut;
}

enum dp_status dp_stats_history_begin(struct dp_stats_history *history, const struct dp_job *job,
                                      const struct dp_position *position, const struct dp_step_log_plan *plan,
                                      const char *text, struct dp_error *err)
{
    const char *before = history->log ? dp_step_log_settings(history->log) : NULL;
    const struct dp_training_settings_files files = dp_job_files(job);
    const struct dp_step_log_cut cut = cut_of(position);
    enum dp_status st = DP_OK;
    if (before && strcmp(before, text) != 0 && dp_position_begun(position))
        st =
            dp_training_settings_check(text, before, strlen(before), job->cluster->training.run, &files, err);
    if (!history->log || st != DP_OK)
        return st;
    struct dp_error why = {0};
    st = dp_step_log_begin(history->log, &cut, plan, text, &why);
    if (st != DP_OK && st != DP_FULL)
        return dp_fail(err, st, "%s (training.steps)", why.text);
    if (st == DP_FULL)
        dp_log(DP_LOG_WARN,
               "%s; training continues, but metrics will be missing if it is stopped and resumed", why.text);
    return DP_OK;
}

static struct dp_step_sum sum_of(const struct dp_stats_history *history, const struct dp_epoch_stats *epoch)
{
    return (struct dp_step_sum){.epoch = history->epoch,
                                .groups = history->groups,
                                .pushes = history->pushes,
                                .examples = epoch->examples,
                                .loss_sum = epoch->loss_sum,
                                .begun = epoch->begun,
                                .seconds = epoch->seconds};
}

static void enter(struct dp_stats_history *history, uint32_t epoch)
{
    if (epoch == history->epoch)
        return;
    history->epoch = epoch;
    history->pushes = history->groups = 0;
    history->lines = 0;
    history->due_s = 0;
}

void dp_stats_history_push(struct dp_stats_history *history, const struct dp_step *step,
                           struct dp_worker_stats *stats)
{
    struct dp_epoch_stats *epoch = &stats->epoch[step->epoch];
    enter(history, step->epoch);
    epoch->loss_sum += step->loss_sum;
    epoch->examples += step->examples;
    history->pushes++;
    if (step->group >= history->groups)
        history->groups = step->group + 1;
    if (!history->log || (history->lines >= EACH && step->seconds < history->due_s))
        return;
    struct dp_step_sum sum = sum_of(history, epoch);
    sum.seconds = step->seconds;
    history->lines++;
    history->due_s = step->seconds + EVERY_S;
    dp_step_log_sum(history->log, &sum);
}

static void note_totals(struct dp_stats_history *history, uint32_t over, const struct dp_worker_stats *stats)
{
    const struct dp_step_place place = {.epoch = over};
    struct dp_worker_stats totals = *stats;
    char *text = NULL;
    totals.epochs = totals.ended = 0; /* they have lines of their own */
    if (dp_worker_stats_pack(&totals, &text, NULL) == DP_OK)
        dp_step_log_note(history->log, DP_STEP_TOTALS, place, text);
    free(text);
}

void dp_stats_history_end(struct dp_stats_history *history, const struct dp_worker_stats *stats)
{
    if (!history->log || history->groups == 0)
        return;
    const struct dp_step_sum sum = sum_of(history, &stats->epoch[history->epoch]);
    note_totals(history, history->epoch, stats);
    dp_step_log_sum(history->log, &sum);
}

void dp_stats_history_epoch(struct dp_stats_history *history, uint32_t epoch, struct dp_worker_stats *stats)
{
    enter(history, epoch);
    if (!history->log)
        return;
    const struct dp_step_sum sum = sum_of(history, &stats->epoch[epoch]);
    dp_step_log_end(history->log, &sum);
    note_totals(history, epoch + 1, stats);
}

void dp_stats_history_tested(struct dp_stats_history *history, enum dp_step_note kind, uint32_t epoch,
                             const struct dp_tested *tested)
{
    char *text = history->log ? dp_tested_pack(tested, 1) : NULL;
    if (text)
        dp_step_log_note(history->log, kind, (struct dp_step_place){.epoch = epoch}, text);
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
    struct dp_stats_history *history;
    const struct dp_earlier_stats *out;
};

static void learn_note(void *context, enum dp_step_note kind, uint32_t epoch, const char *text)
{
    const struct dp_earlier_stats *out = ((const struct learning *)context)->out;
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
    to->history->made += sum->pushes;
    to->history->epoch = sum->epoch;
    to->history->pushes = sum->pushes;
    to->history->groups = sum->groups;
}

/* Counts the examples that are done but in no sum: their losses are lost. */
static uint64_t count_lost(const struct dp_earlier_stats *out)
{
    uint64_t known = out->stats->dropped.passed;
    for (uint32_t e = 0; e < out->stats->epochs; e++)
        known += out->stats->epoch[e].examples;
    return out->found_examples > known ? out->found_examples - known : 0;
}

void dp_stats_history_get(struct dp_stats_history *history, struct dp_job *job,
                          const struct dp_earlier_stats *out)
{
    get_note(job, out->stats);
    /* The epoch under way continues from the step log. */
    for (uint32_t e = out->position->epoch; e < out->stats->epochs; e++)
        out->stats->epoch[e] = (struct dp_epoch_stats){0};
    struct learning to = {.history = history, .out = out};
    if (history->log)
        dp_step_log_visit(history->log, &(struct dp_step_log_visitor){learn_sum, learn_note, &to});
    out->stats->found_examples = count_lost(out);
    if (history->log && out->stats->found_examples > 0)
        dp_log(
            DP_LOG_WARN,
            "the losses of %llu examples trained by an earlier process are lost: the report will lack them",
            (unsigned long long)out->stats->found_examples);
}

#include "worker/loop/train.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "worker/coordinate/membership.h"
#include "worker/coordinate/run_number.h"
#include "worker/coordinate/takeover.h"
#include "worker/coordinate/training_plan.h"
#include "worker/history/position.h"
#include "worker/history/run_files.h"
#include "worker/history/stats_history.h"
#include "worker/loop/evaluation.h"
#include "worker/loop/step.h"
#include "worker/schedule/shares.h"
#include "worker/score/baseline.h"
#include "worker/score/sets.h"
#include "worker/telemetry/interim.h"
#include "worker/telemetry/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct training {
    struct dp_job *job;
    const struct dp_train_options *options;
    const struct dp_cluster_training *settings;
    const struct dp_cluster *given; /* as it was read */
    struct dp_cluster settled;      /* the same, with the defaults that depend on the training set */
    struct dp_progress progress;
    struct dp_dataset *train, *test; /* test: NULL without one */
    struct dp_dataset *valid;        /* NULL without a validation set */
    struct dp_peers peers;
    struct dp_evaluation evaluation;
    uint32_t epochs; /* trained: after early stopping fewer than in the settings */
    struct dp_worker_stats stats;
    struct dp_report_constant constant; /* worker 0 */
    struct dp_loop *loop;
    bool resumed; /* an earlier process of this worker began the run */
    bool over;    /* and finished it */
    bool left;    /* and has said that it needs no server any more */
    struct dp_share share;
    struct dp_rounds rounds;
    struct dp_seat seat; /* as known when `position` was asked for */
    struct dp_takeover takeover;
    struct dp_position position;
    struct dp_stats_history history;
    struct dp_interim interim;               /* worker 0 */
    bool began;                              /* the first epoch of this process */
    bool joined;                             /* membership.h */
    char agreed[DP_TRAINING_SETTINGS_BYTES]; /* the settings that all workers share */
    char labels[320];                        /* their meaning, if it is not obvious */
    struct dp_understood understood;         /* worker 0: of its training file */
};

/* Refuses a second training under the number of a finished run: its push ids are already applied. Finds out
 * whether an earlier process of this worker ended early. */
static enum dp_status look_back(struct training *t, struct dp_error *err)
{
    struct dp_job *job = t->job;
    struct dp_shared_note progress = {0};
    struct dp_progress_seen seen;
    enum dp_status st = dp_shared_one(job, "progress", job->worker, &progress, err);
    dp_progress_read(&progress, &seen);
    t->over = seen.done;
    t->left = seen.left;
    if (st == DP_OK && t->over && !t->options->resumes)
        st = dp_fail(err, DP_EXISTS,
                     "worker %" PRIu32 " has already finished run %" PRIu32
                     " on these servers: to train again, give training.run a higher number",
                     job->worker, job->cluster->training.run);
    t->resumed = t->options->resumes || progress.bytes != NULL;
    dp_shared_note_clear(&progress);
    return st == DP_OK ? dp_peers_open(&t->peers, job, &t->progress, err) : st;
}

static void tell_repeated(const struct training *t)
{
    uint64_t repeated = t->stats.staleness.repeated;
    if (repeated && t->rounds.listed)
        dp_log(DP_LOG_INFO, "%" PRIu64 " of the pushes were made by another worker, too: each counts once",
               repeated);
    else if (repeated)
        dp_log(DP_LOG_WARN,
               "the servers had already applied %" PRIu64
               " of the pushes, and applied none twice: another process of this worker had made them",
               repeated);
}

static void tell_settled(struct training *t)
{
    const struct dp_cluster_training *given = &t->given->training, *settled = &t->settled.training;
    char of[32];
    t->progress.epochs = settled->epochs;
    if (given->epochs == 0 || given->batch == 0)
        dp_log(DP_LOG_INFO, "%" PRIu32 " epochs (%s), minibatches of %" PRIu32 " (%s), %s examples",
               settled->epochs, given->epochs ? "given" : "chosen by the number of examples", settled->batch,
               given->batch ? "given" : "chosen by the number of examples",
               dp_text_grouped(dp_dataset_examples(t->train), of));
}

static void tell_labels(struct training *t)
{
    dp_schema_labels_text(dp_dataset_schema(t->train), t->job->model.labels == DP_LABELS_BINARY,
                          t->job->model.classes, t->labels, sizeof t->labels);
    if (t->labels[0])
        dp_log(DP_LOG_INFO, "labels: %s", t->labels);
}

/* Worker 0: for the report, which the console shows. */
static void tell_understood(struct training *t)
{
    const struct dp_cluster_data *data = &t->job->cluster->data;
    const struct dp_dataset_options options = dp_job_data(t->job, data->train, data->train_labels, true);
    if (t->job->worker != 0)
        return;
    dp_dataset_understood(t->train, &options, &t->understood);
    for (unsigned i = 0; i < t->understood.lines; i++)
        dp_log(DP_LOG_INFO, "%s", t->understood.line[i]);
    for (unsigned i = 0; i < t->understood.notes; i++)
        dp_log(DP_LOG_WARN, "%s", t->understood.note[i]);
}

/* Worker 0: the metrics of the best constant, with which the report compares those of the training. */
static enum dp_status find_constant(struct training *t, struct dp_error *err)
{
    /* A set that is ranked among all items has another loss. */
    const struct dp_dataset *test = t->test && !dp_dataset_ranked(t->test) ? t->test : NULL;
    const struct dp_dataset *valid = t->valid && !dp_dataset_ranked(t->valid) ? t->valid : NULL;
    const struct dp_dataset *evaluated = test ? test : valid ? valid : t->train;
    if (t->job->worker != 0)
        return DP_OK;
    (void)dp_baseline_one_label(t->train, t->job->model.labels, t->constant.label, sizeof t->constant.label);
    t->constant.set = test ? "test" : valid ? "validation" : "training";
    enum dp_status st = dp_baseline_figures(&t->job->model, t->train, evaluated, &t->constant.figures, err);
    t->constant.known = st == DP_OK && isfinite(t->constant.figures.loss);
    return st;
}

static enum dp_status data_open(struct training *t, struct dp_error *err)
{
    struct dp_sets sets = {0};
    enum dp_status st = dp_sets_train(t->job, &t->settled.training, &sets, err);
    t->train = sets.train;
    if (st == DP_OK && t->given->training.epochs == 0)
        st = dp_training_plan_epochs(t->job, &t->settled.training.epochs, err);
    if (st == DP_OK)
        st = dp_job_tables(t->job, false, err);
    if (st != DP_OK)
        return st;
    tell_settled(t);
    if (t->job->model.labels != DP_LABELS_NONE)
        tell_labels(t);
    tell_understood(t);
    st = dp_sets_judged(t->job, &sets, err);
    t->test = sets.test;
    t->valid = sets.valid;
    if (st == DP_OK)
        st = dp_evaluation_plan(&t->evaluation, t->job, t->options->cluster_file,
                                dp_dataset_batches(t->train), t->test, t->valid, err);
    if (st == DP_OK)
        st = find_constant(t, err);
    if (st == DP_OK)
        st = dp_job_program(t->job, t->train, t->test, t->valid, err);
    return st;
}

/* This worker's examples in `epochs` epochs. */
static uint64_t share_of(const struct training *t, uint32_t epochs)
{
    return epochs * dp_share_examples(t->share, dp_dataset_examples(t->train), t->settings->batch);
}

/* Counts what is already done, so that the stats are those of the training. Where workers take from one
 * list, what this one did before is known by its step log alone. */
static void take_earlier(struct training *t)
{
    const struct dp_position *p = &t->position;
    bool first = t->job->worker == 0, listed = t->rounds.listed > 0;
    const struct dp_tally tally =
        listed ? (struct dp_tally){0}
               : dp_position_tally(p, &t->rounds, dp_dataset_examples(t->train), t->settings->batch);
    const struct dp_earlier_stats out = {.position = p,
                                         .found_examples = dp_tally_examples(&tally),
                                         .stats = &t->stats,
                                         .tested = first && t->test ? t->evaluation.tested : NULL,
                                         .valid = first && t->valid ? t->evaluation.validated : NULL};
    dp_stats_history_get(&t->history, t->job, &out);
    t->stats.ended = p->epoch;
    if (!listed) {
        /* Those of the epoch under way are added as it skips them. */
        t->progress.examples = tally.before.examples;
        t->progress.examples_total = share_of(t, t->settings->epochs) - tally.missed.examples;
        t->stats.pushes = tally.before.steps + tally.here.steps;
        return;
    }
    uint64_t repeated = t->stats.staleness.repeated;
    t->progress.examples = dp_worker_stats_examples(&t->stats);
    if (t->history.made > repeated)
        t->stats.pushes = t->history.made - repeated;
}

static struct dp_training_settings_set set_of(const struct dp_dataset *data)
{
    return (struct dp_training_settings_set){.digest = dp_dataset_digest(data),
                                             .examples = dp_dataset_examples(data),
                                             .lists = dp_dataset_lists(data),
                                             .label_scale = dp_dataset_schema(data)->label_scale,
                                             .ranked = dp_dataset_ranked(data) != NULL};
}

/* Checks that this training has the settings of the run, and of what was already done in it. */
static enum dp_status agree(struct training *t, struct dp_error *err)
{
    const struct dp_step_log_plan plan = {.epochs = t->settings->epochs,
                                          .groups = t->rounds.listed ? t->rounds.listed : t->rounds.own};
    const struct dp_dataset *data = t->evaluation.data;
    const struct dp_training_settings_set train = set_of(t->train), judged = set_of(data ? data : t->train);
    bool begun = dp_position_begun(&t->position);
    char *text = t->agreed;
    dp_training_settings_text(t->job->cluster, &train, data ? &judged : NULL, text);
    /* The step log first: a run of an earlier version has no plan, and the first worker to join sets it. */
    enum dp_status st = dp_stats_history_begin(&t->history, t->job, &t->position, &plan, text, err);
    return st == DP_OK ? dp_training_plan_join(t->job, text, begun, err) : st;
}

/* Finds where an earlier process of this worker was when it was killed. */
static enum dp_status find_position(struct training *t, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (t->joined)
        t->seat = dp_membership_seat_of(t->job);
    else
        st = dp_membership_look(t->job, &t->rounds, &t->seat, err);
    if (st == DP_OK)
        st = dp_position_find(t->job, &t->rounds, t->seat, &t->position, err);
    if (st == DP_OK)
        st = agree(t, err);
    if (st != DP_OK || !dp_position_begun(&t->position))
        return st;
    /* Others may have done all of a list before this worker came to it. */
    t->over = t->position.epoch == t->settings->epochs && !t->resumed && !t->rounds.listed;
    if (t->over)
        return dp_fail(err, DP_EXISTS,
                       "nothing was trained: run %" PRIu32 " is already complete for worker %" PRIu32
                       "; to train again, give training.run a higher number; a worker that was killed after "
                       "its last push continues with --resume",
                       t->settings->run, t->job->worker);
    take_earlier(t);
    dp_position_tell(&t->position, t->settings, &t->rounds);
    return DP_OK;
}

static void tell_alive(void *progress)
{
    dp_progress_tick(progress);
}

static enum dp_status loop_open(struct training *t, struct dp_error *err)
{
    const struct dp_loop_options options = {.job = t->job,
                                            .data = t->train,
                                            .progress = &t->progress,
                                            .stats = &t->stats,
                                            .position = &t->position,
                                            .history = &t->history};
    t->progress.stats = &t->stats;
    return dp_loop_open(&options, &t->loop, err);
}

static enum dp_status training_open(struct training *t, struct dp_error *err)
{
    struct dp_job *job = t->job;
    dp_progress_init(&t->progress, job, 0);
    job->alive = tell_alive;
    job->alive_of = &t->progress;
    dp_progress_enter(&t->progress, "reading");
    enum dp_status st = data_open(t, err);
    if (st != DP_OK)
        return st;
    t->share = (struct dp_share){
        .batches = dp_dataset_batches(t->train), .worker = job->worker, .workers = t->settings->workers};
    t->rounds = dp_rounds_of(t->settings, t->share);
    st = dp_takeover_open(&t->takeover, job, t->train, &t->rounds, err);
    t->progress.examples_total = share_of(t, t->settings->epochs);
    t->epochs = t->settings->epochs;
    if (st == DP_OK)
        st = dp_worker_stats_init(&t->stats, job->worker, t->settings->epochs, err);
    if (st == DP_OK)
        st = dp_stats_history_open(&t->history, job, err);
    if (st == DP_OK)
        st = find_position(t, err);
    if (st == DP_OK)
        st = dp_run_files_columns(job, &t->progress, t->train, err);
    if (st == DP_OK)
        st = dp_run_files_names(job, &t->progress, t->train, &t->understood, err);
    if (st == DP_OK)
        st = dp_run_files_interactions(job, &t->progress, t->train, err);
    if (t->settings->threads > 1) /* the device's own figure is of matrix products */
        (void)snprintf(t->stats.device, sizeof t->stats.device, "cpu, %" PRIu32 " threads",
                       t->settings->threads);
    else
        (void)snprintf(t->stats.device, sizeof t->stats.device, "%s", job->device);
    if (st == DP_OK && job->worker == 0)
        st = dp_interim_init(&t->interim, job, err);
    if (st == DP_OK)
        st = loop_open(t, err);
    return st;
}

static void training_close(struct training *t)
{
    t->job->alive = NULL;
    dp_takeover_close(&t->takeover);
    dp_loop_close(&t->loop);
    dp_stats_history_close(&t->history);
    dp_position_clear(&t->position);
    dp_worker_stats_clear(&t->stats);
    dp_interim_clear(&t->interim);
    dp_evaluation_close(&t->evaluation);
    dp_peers_close(&t->peers);
    dp_sets_close(&(struct dp_sets){.train = t->train, .test = t->test, .valid = t->valid});
}

static struct dp_report report_of(const struct training *t)
{
    return (struct dp_report){.cluster = t->job->cluster,
                              .epochs_by_size = t->given->training.epochs == 0,
                              .batch_by_size = t->given->training.batch == 0,
                              .examples = dp_dataset_examples(t->train),
                              .digest = dp_dataset_digest(t->train),
                              .tested = t->evaluation.tested,
                              .validated = t->valid ? t->evaluation.validated : NULL,
                              .rule = t->evaluation.data ? &t->evaluation.barrier.rule : NULL,
                              .stop = &t->evaluation.barrier.decision.state,
                              .labels = t->labels,
                              .format = dp_dataset_format(t->train),
                              .understood = &t->understood,
                              .constant = t->constant};
}

/* Worker 0. ended: NULL while the training goes on (report.h). */
static void report_so_far(struct training *t, const char *ended, const char *error, uint32_t diverged)
{
    struct dp_report report = report_of(t);
    struct dp_worker_stats own = t->stats;
    report.ended = ended;
    report.error = error;
    report.diverged = diverged;
    if (t->evaluation.data && own.ended > report.stop->epoch) /* not evaluated yet */
        own.ended = report.stop->epoch;
    if (t->job->worker == 0)
        dp_interim_write(&t->interim, t->job, &own, dp_position_begun(&t->position), &report,
                         dp_dataset_batches(t->train));
}

/* When the training is asked to stop, other workers may stop first; an error of this worker that says so is
 * no failure. Nor is it a stop where another one has diverged. */
static void report_end(struct training *t, enum dp_status st, const struct dp_error *err)
{
    uint32_t diverged = t->job->worker == 0 ? dp_progress_diverged(&t->progress, st) : 0;
    bool stopped = !diverged && !t->job->run_failed && (st == DP_STOPPING || dp_job_stopped(t->job));
    char other[80];
    (void)snprintf(other, sizeof other, "training has diverged in epoch %" PRIu32 ", as another worker says",
                   t->settings->first_epoch + diverged);
    const char *why = diverged && st != DP_NOT_FINITE ? other : err->text;
    report_so_far(t, stopped ? "stopped" : "failed", stopped ? NULL : why, diverged);
}

static void log_epoch(const struct training *t, uint32_t epoch)
{
    const struct dp_epoch_stats *stats = &t->stats.epoch[epoch - 1];
    uint32_t before = t->settings->first_epoch;
    if (stats->examples)
        dp_log(DP_LOG_INFO, "epoch %" PRIu32 " of %" PRIu32 ", own share: loss %.5g, %.0f examples/s",
               before + epoch, before + t->settings->epochs, stats->loss_sum / (double)stats->examples,
               (double)stats->examples / stats->seconds);
}

/* An earlier process in this place may have trained until this one joined; or the others had let it leave,
 * and it came back. */
static enum dp_status look_again(struct training *t, struct dp_error *err)
{
    const struct dp_seat seat = dp_membership_seat_of(t->job);
    struct dp_position now = {0};
    enum dp_status st = dp_position_find(t->job, &t->rounds, seat, &now, err);
    bool same = dp_position_same(&now, &t->position);
    dp_position_clear(&now);
    if (st != DP_OK || same)
        return st;
    dp_loop_close(&t->loop);
    dp_stats_history_close(&t->history);
    dp_position_clear(&t->position);
    st = dp_stats_history_open(&t->history, t->job, err);
    if (st == DP_OK)
        st = find_position(t, err);
    return st == DP_OK ? loop_open(t, err) : st;
}

/* Members and pushes are of one plan: from here on it is not replaced. */
static enum dp_status join(struct training *t, bool member, struct dp_error *err)
{
    enum dp_status st =
        dp_position_begun(&t->position) ? DP_OK : dp_training_plan_begin(t->job, t->agreed, err);
    if (st == DP_OK)
        st = dp_membership_join(t->job, &t->rounds, member, err);
    t->joined = st == DP_OK && member;
    return st == DP_OK && (member || t->job->seated) ? look_again(t, err) : st;
}

/* It came back after the last step, when all was over: no shard took any of those. */
static void count_missed(struct training *t)
{
    uint64_t end = dp_rounds_step(&t->rounds, t->epochs, 0);
    uint64_t behind = t->joined && t->seat.from > end ? t->seat.from - end : 0;
    uint64_t all = share_of(t, t->epochs), trained = dp_worker_stats_examples(&t->stats);
    t->stats.missed = t->seat.missed > behind ? t->seat.missed - behind : 0;
    t->stats.missed_examples = t->stats.missed > 0 && all > trained ? all - trained : 0;
}

static enum dp_status train_epochs(struct training *t, struct dp_error *err)
{
    bool stop = false, rests = t->evaluation.data != NULL, member = t->rounds.members > 0;
    uint32_t epochs = t->settings->epochs;
    enum dp_status st = DP_OK;
    t->began = true;
    if (t->position.epoch < epochs) {
        st = join(t, member, err);
    } else if (member && t->takeover.job) { /* only members learn of workers that left */
        st = dp_membership_join(t->job, &t->rounds, false, err);
        t->joined = st == DP_OK;
    }
    if (st != DP_OK)
        return st;
    dp_run_files_show_report(t->job);
    if (dp_position_begun(&t->position)) /* the stats are put before the stage that says an epoch has ended */
        dp_stats_history_put(&t->history, t->job, &t->stats, rests);
    else /* replaces the report of an earlier training */
        report_so_far(t, NULL, NULL, 0);
    st = dp_evaluation_begin(&t->evaluation, &t->peers, &t->history, &t->position, t->seat.missed > 0, &stop,
                             err);
    /* One that was away may come back after an early stop. */
    uint32_t e = stop ? t->evaluation.barrier.decision.state.epoch : t->position.epoch;
    t->stats.ended = e;
    while (st == DP_OK && e < epochs && !stop) {
        st = dp_loop_epoch(t->loop, e, err);
        if (st != DP_OK)
            return st;
        t->stats.ended = ++e;
        dp_stats_history_put(&t->history, t->job, &t->stats, rests);
        log_epoch(t, e);
        st = dp_evaluation_epoch(&t->evaluation, e, &stop, err);
        if (st == DP_OK)
            report_so_far(t, NULL, NULL, 0);
    }
    if (st != DP_OK)
        return st;
    t->epochs = e;
    dp_takeover_ends(&t->takeover, e);
    st = dp_membership_leave(t->job, &t->rounds, t->joined, e, err);
    if (st != DP_OK)
        return st;
    char spent[256];
    dp_step_times_text(&t->stats.times, spent, sizeof spent);
    if (spent[0])
        dp_log(DP_LOG_INFO, "step times: %s", spent);
    tell_repeated(t);
    count_missed(t);
    return DP_OK;
}

static enum dp_status put_report(const void *report, const char *path, struct dp_error *err)
{
    return dp_report_write(report, path, err);
}

static enum dp_status write_report(struct training *t, const struct dp_shared_note *trained,
                                   struct dp_error *err)
{
    uint32_t workers = t->settings->workers;
    struct dp_worker_stats *stats = calloc(workers, sizeof *stats);
    if (!stats)
        return dp_fail(err, DP_NOMEM, "no memory for the stats of %" PRIu32 " workers", workers);
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < workers; w++) {
        bool gone = dp_job_is_gone(t->job, w) && !trained[w].bytes;
        st = gone ? dp_stats_history_of(t->job, w, &stats[w], err)
                  : dp_worker_stats_unpack(trained[w].bytes, trained[w].size, t->settings->epochs, &stats[w],
                                           err);
        stats[w].absent = gone && t->rounds.listed > 0;
        if (st == DP_OK && gone)
            st = dp_takeover_say(&t->takeover, w, &stats[w], err);
    }
    if (st == DP_OK) {
        struct dp_speed speed;
        struct dp_report report = report_of(t);
        report.workers = stats;
        report.epochs = t->epochs;
        report.minibatches = t->epochs * dp_dataset_batches(t->train);
        report.left = t->evaluation.left;
        report.finished = true;
        st = dp_report_speed(&report, &speed, err);
        if (st == DP_OK)
            dp_log(DP_LOG_INFO, "trained %" PRIu32 " epochs in %.1f s, %.0f examples/s", t->epochs,
                   speed.seconds, speed.examples_per_s);
        if (st == DP_OK && t->settings->report[0])
            st = dp_run_files_put(t->job, &t->progress, put_report, &report, t->settings->report, err);
    }
    for (uint32_t w = 0; w < workers; w++)
        dp_worker_stats_clear(&stats[w]);
    free(stats);
    return st;
}

static enum dp_status finish(struct training *t, struct dp_error *err)
{
    uint32_t workers = t->settings->workers;
    char *text = NULL;
    struct dp_shared_note *trained = calloc(workers, sizeof *trained);
    enum dp_status st = trained ? dp_worker_stats_pack(&t->stats, &text, err)
                                : dp_fail(err, DP_NOMEM, "no memory for the workers' notes");
    if (st == DP_OK)
        st = dp_peers_reach(&t->peers, DP_PEERS_TRAINED, t->epochs, text, strlen(text), err);
    dp_progress_enter(&t->progress, "waiting");
    if (st == DP_OK)
        st = dp_evaluation_end(&t->evaluation, t->epochs, err);
    if (st == DP_OK && t->job->worker != 0)
        st = dp_peers_wait_first(&t->peers, err);
    else if (st == DP_OK)
        st = dp_peers_collect(&t->peers, DP_PEERS_TRAINED, t->epochs, trained, err);
    if (st == DP_OK && t->job->worker == 0)
        st = write_report(t, trained, err);
    if (st == DP_OK && t->job->worker == 0)
        st = dp_run_number_done(t->job, t->epochs, dp_dataset_digest(t->train), dp_dataset_examples(t->train),
                                err);
    dp_peers_clear(trained, workers);
    free(trained);
    free(text);
    return st;
}

enum dp_status dp_train(struct dp_job *job, const struct dp_train_options *options, bool *let_leave,
                        struct dp_error *err)
{
    const struct dp_clock wall = dp_clock_wall();
    struct training t = {.job = job, .options = options, .given = job->cluster, .settled = *job->cluster};
    t.settings = &t.settled.training;
    *let_leave = false;
    job->cluster = &t.settled;
    /* Wall-clock time in microseconds: it fits JSON, and no two processes of one worker begin at the same one. */
    job->process = dp_clock_ns(&wall) / 1000;
    enum dp_status st = look_back(&t, err);
    if (st != DP_OK || t.over) { /* leaves the progress note of the earlier process in place */
        if (st == DP_OK)
            dp_log(DP_LOG_INFO, "the run is already complete: nothing to do");
        if (st == DP_OK && !t.left) {
            dp_progress_init(&t.progress, job, 0);
            dp_progress_leave(&t.progress);
        }
        dp_job_disconnect(job);
        dp_peers_close(&t.peers);
        job->cluster = t.given;
        return st;
    }
    st = training_open(&t, err);
    if (st == DP_OK)
        st = train_epochs(&t, err);
    if (st == DP_OK)
        st = finish(&t, err);
    if (st != DP_OK && !t.over)
        st = dp_progress_settle(job, st, err);
    if (st != DP_OK && !t.over && t.began && st != DP_REPLACED)
        report_end(&t, st, err);
    *let_leave = st == DP_REPLACED && dp_membership_was_let_leave(job, &t.rounds);
    if (st == DP_OK && job->worker == 0) { /* the others wait for this note */
        dp_progress_enter(&t.progress, "done");
        dp_evaluation_tidy(&t.evaluation);
    }
    if (st == DP_OK || t.over)
        dp_progress_leave(&t.progress);
    if (t.over)
        dp_job_disconnect(job);
    else if (st != DP_OK)
        dp_progress_end(&t.progress, job,
                        st); /* before the buffers are freed that a pull may still write into */
    training_close(&t);
    job->cluster = t.given;
    return st;
}

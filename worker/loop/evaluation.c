#include "worker/loop/evaluation.h"

#include "common/base/log.h"
#include "common/config/consistency.h"
#include "worker/coordinate/best_epoch.h"
#include "worker/score/evaluate.h"
#include "worker/score/ranking.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* epoch: as shown to users: counted from 1, with those of earlier runs on the same store. */
static void log_figures(uint32_t epoch, const char *set, const struct dp_figures *figures)
{
    char text[256];
    size_t at = (size_t)snprintf(text, sizeof text, "loss %.5g", figures->loss);
    if (isfinite(figures->accuracy))
        at += (size_t)snprintf(text + at, sizeof text - at, ", accuracy %.4f", figures->accuracy);
    if (isfinite(figures->auc))
        at += (size_t)snprintf(text + at, sizeof text - at, ", AUC %.4f", figures->auc);
    if (isfinite(figures->rmse))
        at += (size_t)snprintf(text + at, sizeof text - at, ", RMSE %.5g", figures->rmse);
    if (isfinite(figures->hr10))
        at += (size_t)snprintf(text + at, sizeof text - at, ", HR@10 %.4f, NDCG@10 %.4f", figures->hr10,
                               figures->ndcg10);
    if (figures->ranked_users)
        (void)snprintf(text + at, sizeof text - at,
                       ", of all %" PRIu64 " items recall@%" PRIu32 " %.4f, NDCG@%" PRIu32 " %.4f",
                       figures->ranked_items, figures->top[1], figures->recall[1], figures->top[1],
                       figures->ndcg[1]);
    dp_log(DP_LOG_INFO, "epoch %" PRIu32 ", %s: %s", epoch, set, text);
}

/* ---- what can be evaluated */

/* Checks before the training, not after its first epoch, that the metrics of the early-stopping rule can be
 * computed. The scan stops when it has seen both classes, mostly in the first minibatch. */
static enum dp_status has_figures(const struct dp_evaluation *v, struct dp_error *err)
{
    const struct dp_dataset *data = v->data;
    const struct dp_cluster_data *files = &v->job->cluster->data;
    const char *path = files->validation[0]            ? files->validation
                       : v->valid || files->holdout[0] ? files->train
                                                       : files->test,
               *share = v->valid && !files->validation[0] ? " (the held-out share)" : "";
    struct dp_batch *batch = NULL;
    bool seen[2] = {false, false};
    if (!dp_early_stop_looks(&v->barrier.rule))
        return DP_OK;
    if (dp_dataset_examples(data) == 0)
        return dp_fail(
            err, DP_DATA,
            "--stop-at or --patience (training.stop_at, patience): %s%s has no examples to evaluate", path,
            share);
    if (!dp_early_stop_looks_at(&v->barrier.rule, DP_METRIC_AUC))
        return DP_OK;
    enum dp_status st = dp_batch_new(data, &batch, err);
    for (uint64_t n = 0; st == DP_OK && n < dp_dataset_batches(data) && !(seen[0] && seen[1]); n++) {
        dp_dataset_fill(data, 0, n, batch);
        for (uint32_t i = 0; i < batch->examples; i++)
            seen[batch->labels[i] > 0] = true;
    }
    dp_batch_free(&batch);
    if (st == DP_OK && !(seen[0] && seen[1]))
        st = dp_fail(err, DP_DATA,
                     "--stop-at or --patience (training.stop_at, patience): %s%s has examples of one class "
                     "only, labelled %d, but auc needs both; choose another metric, or another set",
                     path, share, seen[1]);
    return st;
}

static enum dp_status alloc_tested(struct dp_evaluation *v, struct dp_error *err)
{
    uint32_t epochs = v->job->cluster->training.epochs;
    v->tested = calloc(epochs, sizeof *v->tested);
    v->validated = calloc(epochs, sizeof *v->validated);
    return v->tested && v->validated
               ? DP_OK
               : dp_fail(err, DP_NOMEM, "no memory for the metrics of %" PRIu32 " epochs", epochs);
}

enum dp_status dp_evaluation_plan(struct dp_evaluation *v, struct dp_job *job, const char *cluster_file,
                                  uint64_t batches, const struct dp_dataset *test,
                                  const struct dp_dataset *valid, struct dp_error *err)
{
    const struct dp_early_stop_rule rule = dp_early_stop_rule_of(&job->cluster->training);
    *v = (struct dp_evaluation){.job = job,
                                .cluster_file = cluster_file,
                                .batches = batches,
                                .test = test,
                                .valid = valid,
                                .data = valid ? valid : test,
                                .barrier = {.rule = rule}};
    DP_ASSERT(v->data || !dp_early_stop_looks(&rule)); /* the cluster file was checked */
    if (dp_cluster_keeps_best(job->cluster) && !job->cluster->training.best[0])
        return dp_fail(err, DP_ARGUMENT,
                       "training.keep is \"best\", but training.best names no directory for the best epoch's "
                       "checkpoint");
    enum dp_status st = alloc_tested(v, err);
    if (st != DP_OK || !v->data)
        return st;
    const struct dp_rank_set *ranked = dp_dataset_ranked(v->data);
    const struct dp_early_stop_set set = {
        .lists = ranked && ranked->ranks_sampled ? ranked->pairs : dp_dataset_lists(v->data),
        .ranked = ranked != NULL,
        .all = ranked && dp_ranking_is_of_all(job, ranked)};
    st = dp_early_stop_fits(&rule, job->model.labels, &set, err);
    if (st == DP_OK)
        st = has_figures(v, err);
    if (st == DP_OK && test)
        st = dp_evaluate_fits(job, test, err);
    return st == DP_OK ? dp_evaluate_fits(job, v->data, err) : st;
}

void dp_evaluation_close(struct dp_evaluation *v)
{
    dp_epoch_barrier_close(&v->barrier);
    free(v->tested);
    free(v->validated);
    *v = (struct dp_evaluation){0};
}

/* ---- the end of an epoch */

static const struct dp_dataset *set_of(const struct dp_evaluation *v, enum dp_peers_kind kind)
{
    return kind == DP_PEERS_TEST ? v->test : v->data;
}

static enum dp_status part(void *context, enum dp_peers_kind kind, uint32_t worker, uint32_t epoch,
                           void **bytes, size_t *size, struct dp_error *err)
{
    struct dp_evaluation *v = context;
    return dp_evaluate_part(v->job, v->peers->progress, worker, set_of(v, kind), epoch, bytes, size, err);
}

static enum dp_status merge(void *context, enum dp_peers_kind kind, uint32_t epoch,
                            const struct dp_shared_note *parts, struct dp_figures *out, struct dp_error *err)
{
    const struct dp_evaluation *v = context;
    return dp_evaluate_merge(v->job, set_of(v, kind), epoch, parts, out, err);
}

/* The store has the weights of the last epoch anyway. A failure, such as a full disk, does not stop the training:
 * the previous best epoch stays kept. */
static enum dp_status keep_best(void *context, uint32_t epoch, struct dp_early_stop *state,
                                struct dp_error *err)
{
    struct dp_evaluation *v = context;
    enum dp_status st = DP_OK;
    if (state->why == DP_EARLY_STOP_NO && epoch < v->job->cluster->training.epochs)
        st = dp_best_epoch_save(v->job, v->cluster_file, epoch, err);
    if (st == DP_OK)
        state->kept = epoch;
    if (st == DP_OK || st == DP_STOPPING)
        return st;
    dp_log(DP_LOG_WARN, "%s; training continues, and %s", err->text,
           state->kept ? "the previous best epoch stays kept" : "no weights are kept");
    return DP_OK;
}

/* Worker 0 reports them. */
static void learn(struct dp_evaluation *v, uint32_t epoch)
{
    const struct dp_tested *figures = &v->barrier.decision.figures[epoch - 1];
    if (v->job->worker != 0 || !figures->known)
        return;
    (v->valid ? v->validated : v->tested)[epoch - 1] = *figures;
    log_figures(v->job->cluster->training.first_epoch + epoch, v->valid ? "validation" : "test",
                &figures->figures);
    dp_stats_history_tested(v->history, v->valid ? DP_STEP_VALIDATION : DP_STEP_TEST, epoch, figures);
}

static void learn_before(struct dp_evaluation *v)
{
    const struct dp_decision *d = &v->barrier.decision;
    for (uint32_t e = d->from; e <= d->state.epoch; e++)
        if (d->figures[e - 1].known)
            (v->valid ? v->validated : v->tested)[e - 1] = d->figures[e - 1];
}

enum dp_status dp_evaluation_begin(struct dp_evaluation *v, struct dp_peers *peers,
                                   struct dp_stats_history *history, const struct dp_position *position,
                                   bool away, bool *stop, struct dp_error *err)
{
    struct dp_epoch_barrier *b = &v->barrier;
    v->peers = peers;
    v->history = history;
    *stop = false;
    if (!v->data)
        return DP_OK;
    b->peers = peers;
    bool keeps = dp_cluster_keeps_best(v->job->cluster);
    b->ops = (struct dp_epoch_barrier_ops){.part = part,
                                           .merge = merge,
                                           .keep = keeps ? keep_best : NULL,
                                           .tests = keeps && v->test && v->valid};
    b->context = v;
    uint32_t ended = away ? 0 : position->epoch, begun = away ? 0 : position->epoch + (position->made > 0);
    enum dp_status st = dp_epoch_barrier_open(b, v->job->cluster->training.epochs, ended, begun, err);
    if (st != DP_OK)
        return st;
    learn_before(v);
    const struct dp_early_stop *judged = &b->decision.state;
    if (away && judged->why != DP_EARLY_STOP_NO)
        return dp_evaluation_epoch(v, judged->epoch, stop, err);
    /* An earlier process may have been killed before it read what was decided. */
    uint32_t e = away ? judged->epoch + 1 : position->epoch;
    for (; st == DP_OK && !*stop && e > 0 && e <= position->epoch; e++)
        st = dp_evaluation_epoch(v, e, stop, err);
    return st;
}

enum dp_status dp_evaluation_epoch(struct dp_evaluation *v, uint32_t epoch, bool *stop, struct dp_error *err)
{
    const struct dp_cluster_training *settings = &v->job->cluster->training;
    char why[DP_EARLY_STOP_TEXT_BYTES];
    *stop = false;
    if (!v->data)
        return DP_OK;
    enum dp_status st = dp_epoch_barrier_wait(&v->barrier, epoch, err);
    if (st != DP_OK)
        return st;
    learn(v, epoch);
    *stop = dp_epoch_barrier_stops(&v->barrier, epoch);
    dp_early_stop_text(&v->barrier.rule, &v->barrier.decision.state, settings->first_epoch, why);
    if (*stop)
        dp_log(DP_LOG_INFO, "stops after epoch %" PRIu32 ", minibatch %" PRIu64 ": %s",
               settings->first_epoch + epoch, epoch * v->batches, why);
    return DP_OK;
}

/* ---- the end of the training */

/* The shares of workers that have left. */
static enum dp_status make_up_test(struct dp_evaluation *v, uint32_t epochs, struct dp_shared_note *parts,
                                   struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < v->job->cluster->training.workers; w++)
        if (dp_job_is_gone(v->job, w) && !parts[w].bytes)
            st = dp_evaluate_part(v->job, v->peers->progress, w, v->test, epochs, &parts[w].bytes,
                                  &parts[w].size, err);
    return st;
}

/* Evaluates a test set other than the validation set, on the last weights: this worker's share; worker 0
 * merges all shares. */
static enum dp_status evaluate_test(struct dp_evaluation *v, uint32_t epochs, struct dp_error *err)
{
    uint32_t workers = v->job->cluster->training.workers;
    struct dp_tested *tested = &v->tested[v->left - 1];
    struct dp_shared_note *parts = calloc(workers, sizeof *parts);
    void *bytes = NULL;
    size_t size = 0;
    enum dp_status st =
        parts ? dp_evaluate_part(v->job, v->peers->progress, v->job->worker, v->test, epochs, &bytes, &size,
                                 err)
              : dp_fail(err, DP_NOMEM, "no memory for the parts of %" PRIu32 " workers", workers);
    dp_progress_pass(v->peers->progress, "waiting");
    if (st == DP_OK)
        st = dp_peers_reach(v->peers, DP_PEERS_TEST, epochs, bytes, size, err);
    if (st == DP_OK && v->job->worker == 0) {
        st = dp_peers_collect(v->peers, DP_PEERS_TEST, epochs, parts, err);
        if (st == DP_OK)
            st = make_up_test(v, epochs, parts, err);
        if (st == DP_OK)
            st = dp_evaluate_merge(v->job, v->test, epochs, parts, &tested->figures, err);
        tested->known = st == DP_OK;
        if (tested->known)
            log_figures(v->job->cluster->training.first_epoch + v->left, "test", &tested->figures);
    }
    dp_peers_clear(parts, workers);
    free(parts);
    free(bytes);
    return st;
}

/* `downpour run` stops its servers, and gives them the best weights; those of a cluster keep the last
 * ones. */
static void tell_best(const struct dp_evaluation *v, uint32_t epochs)
{
    const struct dp_cluster *cluster = v->job->cluster;
    const uint32_t first = cluster->training.first_epoch;
    if (v->left == epochs || !cluster->dir[0])
        return;
    dp_log(DP_LOG_WARN,
           "the stores keep the weights of epoch %" PRIu32 "; those of epoch %" PRIu32
           ", the best one, are a checkpoint in '%.300s'. To use them: downpour predict, or export, --from "
           "there; to train on from them, with the servers stopped: downpour restore --overwrite --cluster "
           "'%.300s' --from there, and training.run = %" PRIu32 " in the cluster file",
           first + epochs, first + v->left, cluster->training.best, v->cluster_file,
           cluster->training.run + 1);
}

/* Which epoch is the result; the barriers have evaluated the test set for it. */
static void take_kept(struct dp_evaluation *v, uint32_t epochs)
{
    const struct dp_decision *d = &v->barrier.decision;
    if (v->job->worker != 0) /* it writes the report */
        return;
    if (d->state.kept && (d->state.kept == epochs || dp_best_epoch_is_there(v->job, d->state.kept)))
        v->left = d->state.kept;
    else if (d->state.kept)
        dp_log(DP_LOG_WARN,
               "%s has no checkpoint of epoch %" PRIu32
               ", the best one: the weights of the last epoch are the result",
               v->job->cluster->training.best, v->job->cluster->training.first_epoch + d->state.kept);
    tell_best(v, epochs);
    const struct dp_tested *test = v->left == epochs ? &d->test_last : &d->test_kept;
    if (!test->known)
        return;
    v->tested[v->left - 1] = *test;
    log_figures(v->job->cluster->training.first_epoch + v->left, "test", &test->figures);
}

enum dp_status dp_evaluation_end(struct dp_evaluation *v, uint32_t epochs, struct dp_error *err)
{
    v->left = epochs;
    if (v->barrier.ops.keep)
        take_kept(v, epochs);
    else if (v->test && v->valid)
        return evaluate_test(v, epochs, err);
    return DP_OK;
}

void dp_evaluation_tidy(struct dp_evaluation *v)
{
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    if (v->job->worker == 0 && v->data)
        st = dp_peers_drop(v->peers, DP_PEERS_PART, &err);
    if (st == DP_OK && v->job->worker == 0 && v->test && v->valid)
        st = dp_peers_drop(v->peers, DP_PEERS_TEST, &err);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "cannot remove the parts of the last evaluation from the first server: %s",
               err.text);
}

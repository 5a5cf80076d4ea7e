#include "worker/train.h"

#include "common/base/log.h"
#include "common/wire/limits.h"
#include "worker/columns_file.h"
#include "worker/consent.h"
#include "worker/constant.h"
#include "worker/defaults.h"
#include "worker/evaluate.h"
#include "worker/group.h"
#include "worker/interim.h"
#include "worker/keep.h"
#include "worker/names_file.h"
#include "worker/peers.h"
#include "worker/position.h"
#include "worker/ranking.h"
#include "worker/remember.h"
#include "worker/report.h"
#include "worker/sets.h"
#include "worker/step.h"
#include "worker/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FULL_PAUSE_NS 500000000L /* between two tries to write a file to a full disk */

struct training {
    struct dp_job *job;
    const struct dp_cluster_training *settings;
    const struct dp_cluster *given; /* as it was read */
    struct dp_cluster settled;      /* the same, with the defaults that depend on the training set */
    struct dp_progress progress;
    struct dp_dataset *train, *test; /* test: NULL without one */
    struct dp_dataset *valid;        /* NULL without a validation set */
    bool rests;                      /* all workers rest at the end of an epoch, for a verdict */
    struct dp_verdict verdict;       /* where they do */
    struct dp_tested *valid_tested;  /* worker 0: [epochs], with a validation set */
    uint32_t epochs;                 /* that were trained: fewer than the settings' after a stop */
    uint32_t left;                   /* the epoch whose weights stay in the store */
    struct dp_worker_figures figures;
    struct dp_report_constant constant; /* worker 0 */
    struct dp_loop *loop;
    struct dp_tested *tested; /* worker 0: [epochs] */
    bool resumed;             /* this worker was started before in this run, and ended early */
    uint32_t begun;           /* epochs of which its note of then says that they had begun */
    bool over;                /* and had done everything */
    struct dp_share share;
    struct dp_position position;
    struct dp_remember remember;
    struct dp_interim interim; /* worker 0 */
    bool began;                /* the first epoch of this process */
    struct dp_ledger *ledger;  /* or NULL */
    char labels[320];          /* what they mean, where that is not plain */
};

/* A second training under the number of a first would push under ids that the servers have counted. Tells
 * whether this worker has been at work in this run before, as one has that was killed. */
static enum dp_status look_back(struct training *t, struct dp_error *err)
{
    struct dp_job *job = t->job;
    struct dp_note progress = {0};
    char state[32];
    enum dp_status st = dp_peers_one(job, "progress", job->worker, &progress, err);
    dp_peers_state(&progress, state, sizeof state);
    t->begun = dp_peers_epoch(&progress);
    t->over = strcmp(state, "done") == 0;
    if (st == DP_OK && t->over && !job->resumes)
        st = dp_fail(err, DP_EXISTS,
                     "worker %" PRIu32 " has finished run %" PRIu32
                     " on these servers already: give training.run another number",
                     job->worker, job->cluster->training.run);
    t->resumed = job->resumes || progress.bytes != NULL;
    free(progress.bytes);
    return st == DP_OK ? dp_peers_begin(job, err) : st;
}

static void tell_repeated(const struct training *t)
{
    if (t->figures.staleness.repeated)
        dp_log(DP_LOG_WARN,
               "%" PRIu64
               " pushes had been applied before and were counted once: this run was begun on these "
               "servers already",
               t->figures.staleness.repeated);
}

/* epoch: as people count them, from 1 on, earlier runs on the same store included. */
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

/* Not known at the end of an epoch only: that the figures looked at will be there. Two examples of two classes end it, which
 * are in the first minibatch of most files. */
static enum dp_status has_figures(const struct training *t, struct dp_error *err)
{
    const struct dp_dataset *data = t->verdict.data;
    const struct dp_cluster_data *files = &t->job->cluster->data;
    const char *path = files->validation[0]            ? files->validation
                       : t->valid || files->holdout[0] ? files->train
                                                       : files->test,
               *share = t->valid && !files->validation[0] ? " (the share held out)" : "";
    struct dp_batch *batch = NULL;
    bool seen[2] = {false, false};
    if (!dp_stop_looks(&t->verdict.rule))
        return DP_OK;
    if (dp_dataset_examples(data) == 0)
        return dp_fail(
            err, DP_DATA,
            "--stop-at or --patience (training.stop_at, patience): %s%s has no examples to look at", path,
            share);
    if (!dp_stop_looks_at(&t->verdict.rule, DP_METRIC_AUC))
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
                     "only, labelled %d: auc is "
                     "a figure of both; choose another metric, or another set",
                     path, share, seen[1]);
    return st;
}

static struct dp_tested *judged_of(const struct training *t)
{
    return t->valid ? t->valid_tested : t->tested;
}

/* Of worker 0. Kept before anybody hears the verdict: it is not judged a second time. */
static void epoch_judged(void *context, uint32_t epoch, const struct dp_figures *figures,
                         const struct dp_stop *state)
{
    struct training *t = context;
    struct dp_tested *tested = judged_of(t);
    tested[epoch - 1] = (struct dp_tested){.known = true, .figures = *figures};
    log_figures(t->settings->first_epoch + epoch, t->valid ? "validation" : "test", figures);
    /* With what follows from it, which a worker 0 that is killed before it has told anybody comes to again. */
    dp_remember_judged(&t->remember, t->valid ? DP_STEP_VALIDATION : DP_STEP_TEST, epoch, &tested[epoch - 1],
                       state);
    dp_remember_tested(t->job, tested, t->settings->epochs);
}

/* Of worker 0. The last epoch's are in the store anyhow. A disk that is full costs no training: the best ones of before stay. */
static enum dp_status keep_best(void *context, uint32_t epoch, struct dp_stop *state, struct dp_error *err)
{
    struct training *t = context;
    enum dp_status st = DP_OK;
    if (state->why == DP_STOP_NO && epoch < t->settings->epochs)
        st = dp_keep_take(t->job, epoch, state->kept, err);
    if (st == DP_OK)
        state->kept = epoch;
    if (st == DP_OK || st == DP_STOPPING)
        return st;
    dp_log(DP_LOG_WARN, "%s; training goes on, and the weights of %s stay kept", err->text,
           state->kept ? "the best epoch before" : "no epoch");
    return DP_OK;
}

/* Where there is a set to look at, all come to rest for it at the end of each epoch. */
static enum dp_status plan_verdicts(struct training *t, struct dp_error *err)
{
    struct dp_verdict *v = &t->verdict;
    *v = (struct dp_verdict){.job = t->job,
                             .progress = &t->progress,
                             .data = t->valid ? t->valid : t->test,
                             .rule = dp_stop_rule_of(t->settings),
                             .judged = epoch_judged,
                             .keep = dp_cluster_keeps_best(t->job->cluster) ? keep_best : NULL,
                             .context = t};
    t->rests = v->data != NULL;
    DP_ASSERT(t->rests || !dp_stop_looks(&v->rule)); /* the cluster file was checked */
    if (!t->rests)
        return DP_OK;
    const struct dp_rank_set *ranked = dp_dataset_ranked(v->data);
    const struct dp_stop_set set = {.lists = ranked && ranked->ranks_sampled ? ranked->pairs
                                                                             : dp_dataset_lists(v->data),
                                    .ranked = ranked != NULL,
                                    .all = ranked && dp_ranking_is_of_all(t->job, ranked)};
    enum dp_status st = dp_stop_fits(&v->rule, t->job->model.labels, &set, err);
    if (st == DP_OK)
        st = has_figures(t, err);
    return st == DP_OK ? dp_evaluate_fits(t->job, v->data, err) : st;
}

/* 1,234 */
static const char *grouped(uint64_t value, char out[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, value), to = 0;
    for (int i = 0; i < n; i++) {
        out[to++] = digits[i];
        if ((n - 1 - i) % 3 == 0 && i + 1 < n)
            out[to++] = ',';
    }
    out[to] = '\0';
    return out;
}

/* What the cluster file leaves to the size of the training set. */
static enum dp_status settle_defaults(struct training *t, struct dp_error *err)
{
    const struct dp_cluster_training *given = &t->given->training, *settled = &t->settled.training;
    uint64_t examples = dp_dataset_examples(t->train);
    char of[32];
    dp_defaults_settle(&t->job->model, examples, &t->settled.training);
    t->progress.epochs = settled->epochs;
    if (given->epochs == 0 || given->batch == 0)
        dp_log(DP_LOG_INFO, "%" PRIu32 " epochs (%s) in minibatches of %" PRIu32 " (%s), of %s examples",
               settled->epochs, given->epochs ? "given" : "by the number of examples", settled->batch,
               given->batch ? "given" : "by the number of examples", grouped(examples, of));
    return given->batch ? DP_OK : dp_dataset_set_batch(t->train, settled->batch, t->settled.data.train, err);
}

static void tell_labels(struct training *t)
{
    dp_schema_labels_text(dp_dataset_schema(t->train), t->job->model.labels == DP_LABELS_BINARY,
                          t->job->model.classes, t->labels, sizeof t->labels);
    if (t->labels[0])
        dp_log(DP_LOG_INFO, "labels: %s", t->labels);
}

/* Worker 0: the figures beside which those of the training stand. */
static enum dp_status find_constant(struct training *t, struct dp_error *err)
{
    /* What is ranked among all items has another loss. */
    const struct dp_dataset *test = t->test && !dp_dataset_ranked(t->test) ? t->test : NULL;
    const struct dp_dataset *valid = t->valid && !dp_dataset_ranked(t->valid) ? t->valid : NULL;
    const struct dp_dataset *evaluated = test ? test : valid ? valid : t->train;
    if (t->job->worker != 0)
        return DP_OK;
    t->constant.set = test ? "test" : valid ? "validation" : "training";
    enum dp_status st = dp_constant_figures(&t->job->model, t->train, evaluated, &t->constant.figures, err);
    t->constant.known = st == DP_OK && isfinite(t->constant.figures.loss);
    return st;
}

static enum dp_status data_open(struct training *t, struct dp_error *err)
{
    struct dp_sets sets = {0};
    enum dp_status st = dp_sets_train(t->job, &sets, err);
    t->train = sets.train;
    if (st == DP_OK)
        st = settle_defaults(t, err);
    if (st == DP_OK && t->job->model.labels != DP_LABELS_ANY)
        tell_labels(t);
    if (st == DP_OK)
        st = dp_sets_judged(t->job, &sets, err);
    t->test = sets.test;
    t->valid = sets.valid;
    if (st == DP_OK && t->test)
        st = dp_evaluate_fits(t->job, t->test, err);
    if (st == DP_OK)
        st = plan_verdicts(t, err);
    if (st == DP_OK)
        st = find_constant(t, err);
    if (st == DP_OK)
        st = dp_job_program(t->job, t->train, t->test, t->valid, err);
    return st;
}

_Static_assert(DP_POSITION_PIECE <= DP_POSITIONS_MAX, "a piece is one request");

static enum dp_status ask(void *context, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                          struct dp_error *err)
{
    return dp_job_pushed(context, stream, from, count, bits, err);
}

static void tell_position(const struct training *t)
{
    const struct dp_position *p = &t->position;
    char at[32], of[32];
    if (p->epoch == t->settings->epochs)
        dp_log(DP_LOG_INFO, "continues after its last epoch: every push was there");
    else
        dp_log(DP_LOG_INFO, "continues at epoch %" PRIu32 ", minibatch %s of %s%s",
               t->settings->first_epoch + p->epoch + 1,
               grouped(p->first * dp_cluster_pushed_together(t->settings) + 1, at),
               grouped(dp_share_positions(t->share), of), t->settings->workers > 1 ? " of its share" : "");
}

/* Of one group of minibatches that are pushed together. */
static uint64_t examples_of_group(const struct training *t, uint64_t group)
{
    struct dp_group g =
        dp_group_at(dp_share_positions(t->share), dp_cluster_pushed_together(t->settings), group);
    return dp_share_examples_of(t->share, dp_dataset_examples(t->train), t->settings->batch, g.first,
                                g.count);
}

/* What is found done counts, so that figures are those of the whole training. */
static void take_found(struct training *t)
{
    const struct dp_position *p = &t->position;
    uint64_t found =
        p->epoch * dp_share_examples(t->share, dp_dataset_examples(t->train), t->settings->batch);
    t->progress.examples = found; /* those of the epoch under way as it comes to them */
    for (uint64_t g = 0; p->done > 0 && g < p->groups; g++)
        if (dp_position_done(p, p->epoch, g))
            found += examples_of_group(t, g);
    bool first = t->job->worker == 0;
    const struct dp_remembered out = {.position = p,
                                      .found_examples = found,
                                      .figures = &t->figures,
                                      .tested = first && t->test ? t->tested : NULL,
                                      .valid = first && t->valid ? t->valid_tested : NULL,
                                      .stop = &t->verdict.state};
    dp_remember_get(&t->remember, t->job, &out);
    t->figures.pushes = p->epoch * p->groups + p->done;
    t->figures.ended = p->epoch;
}

static struct dp_agreed_set set_of(const struct dp_dataset *data)
{
    return (struct dp_agreed_set){.digest = dp_dataset_digest(data),
                                  .examples = dp_dataset_examples(data),
                                  .lists = dp_dataset_lists(data),
                                  .ranked = dp_dataset_ranked(data) != NULL};
}

static enum dp_status begin_remembering(struct training *t, const struct dp_agreed_set *train,
                                        const struct dp_agreed_set *judged, uint64_t groups,
                                        struct dp_error *err)
{
    const struct dp_step_log_plan plan = {.epochs = t->settings->epochs, .groups = groups};
    char text[DP_AGREED_BYTES];
    dp_agreed_text(t->job->cluster, train, judged, text);
    return dp_remember_begin(&t->remember, t->job, &plan, text, dp_position_begun(&t->position), err);
}

/* Where an earlier process of this worker was when it was killed. */
static enum dp_status find_position(struct training *t, struct dp_error *err)
{
    const struct dp_position_plan plan = {
        .run = t->settings->run,
        .epochs = t->settings->epochs,
        .worker = t->job->worker,
        .workers = t->settings->workers,
        .groups = dp_groups(dp_share_positions(t->share), dp_cluster_pushed_together(t->settings)),
        .ask = ask,
        .context = t->job};
    const struct dp_agreed_set train = set_of(t->train), judged = t->rests ? set_of(t->verdict.data) : train;
    enum dp_status st = dp_position_find(&plan, &t->position, err);
    if (st == DP_OK)
        st = dp_consent(t->job, &train, t->rests ? &judged : NULL, dp_position_begun(&t->position), err);
    if (st == DP_OK)
        st = begin_remembering(t, &train, t->rests ? &judged : NULL, plan.groups, err);
    if (st != DP_OK || !dp_position_begun(&t->position))
        return st;
    t->over = t->position.epoch == t->settings->epochs && !t->resumed;
    if (t->over)
        return dp_fail(err, DP_EXISTS,
                       "nothing was trained: the servers had applied every push of worker %" PRIu32
                       " in run %" PRIu32 " before; a further training wants a higher training.run; a worker "
                       "that was killed after its last push goes on with --resume",
                       t->job->worker, t->settings->run);
    take_found(t);
    tell_position(t);
    return DP_OK;
}

/* A full disk must not cost a training, or the report of a whole one: it is tried again, as pushes are, for timeout_ms. */
static enum dp_status
put_file(struct training *t, enum dp_status (*put)(const void *what, const char *path, struct dp_error *err),
         const void *what, const char *path, struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = FULL_PAUSE_NS};
    uint64_t until_ns = dp_clock_ns(&t->job->clock) + (uint64_t)t->settings->timeout_ms * 1000000u;
    bool told = false;
    enum dp_status st;
    while ((st = put(what, path, err)) == DP_FULL && dp_clock_ns(&t->job->clock) < until_ns &&
           !dp_job_stopped(t->job)) {
        if (!told)
            dp_log(DP_LOG_WARN, "%s; it is tried again for %" PRIu32 " s (--timeout, training.timeout_ms)",
                   err->text, t->settings->timeout_ms / 1000);
        told = true;
        dp_progress_tick(&t->progress);
        (void)nanosleep(&pause, NULL);
    }
    return st;
}

static enum dp_status put_columns(const void *text, const char *path, struct dp_error *err)
{
    return dp_columns_file_put(text, path, err);
}

/* Before the first push, and by every worker: weights never lie in a store without what their features were read by. */
static enum dp_status keep_columns(struct training *t, struct dp_error *err)
{
    const struct dp_cluster_data *data = &t->job->cluster->data;
    char *text = NULL;
    if (!data->columns[0])
        return DP_OK;
    bool counted = strcmp(data->label_base, "auto") != 0;
    enum dp_status st = t->job->model.labels == DP_LABELS_ANY
                            ? DP_OK
                            : dp_columns_file_check(dp_dataset_schema(t->train), counted, data->columns, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "%s", data->train);
    st = dp_schema_write(dp_dataset_schema(t->train), &text, err);
    if (st == DP_OK)
        st = put_file(t, put_columns, text, data->columns, err);
    free(text);
    return st;
}

static enum dp_status put_names(const void *source, const char *path, struct dp_error *err)
{
    return dp_names_file_put(source, path, err);
}

/* By one worker, as it may take a second look at all of the file: the others' machines need no names. */
static enum dp_status keep_names(struct training *t, struct dp_error *err)
{
    const struct dp_cluster_data *data = &t->job->cluster->data;
    const struct dp_dataset_options options = dp_job_data(t->job, data->train, data->train_labels, true);
    const struct dp_names_source source = {.data = t->train, .options = &options, .run = t->settings->run};
    if (!data->names[0] || t->job->worker != 0)
        return DP_OK;
    return put_file(t, put_names, &source, data->names, err);
}

static enum dp_status training_open(struct training *t, struct dp_error *err)
{
    struct dp_job *job = t->job;
    dp_progress_init(&t->progress, job, 0);
    job->progress = &t->progress;
    dp_progress_enter(&t->progress, "reading");
    enum dp_status st = data_open(t, err);
    if (st != DP_OK)
        return st;
    t->share = (struct dp_share){
        .batches = dp_dataset_batches(t->train), .worker = job->worker, .workers = t->settings->workers};
    t->progress.examples_total =
        t->settings->epochs * dp_share_examples(t->share, dp_dataset_examples(t->train), t->settings->batch);
    t->epochs = t->settings->epochs;
    t->tested = calloc(t->settings->epochs, sizeof *t->tested);
    t->valid_tested = calloc(t->settings->epochs, sizeof *t->valid_tested);
    if (!t->tested || !t->valid_tested)
        return dp_fail(err, DP_NOMEM, "no memory for the figures of %" PRIu32 " epochs", t->settings->epochs);
    st = dp_worker_figures_init(&t->figures, job->worker, t->settings->epochs, err);
    if (st == DP_OK)
        st = dp_keep_settle(job, true, err);
    if (st == DP_OK)
        st = dp_remember_open(&t->remember, job, err);
    if (st == DP_OK)
        st = find_position(t, err);
    if (st == DP_OK)
        st = keep_columns(t, err);
    if (st == DP_OK)
        st = keep_names(t, err);
    (void)snprintf(t->figures.device, sizeof t->figures.device, "%s", job->device);
    if (st == DP_OK && job->worker == 0)
        st = dp_interim_init(&t->interim, job, err);
    if (st == DP_OK && job->counts)
        st = dp_ledger_open(job, &t->ledger, err);
    if (st == DP_OK)
        st = dp_loop_open(job, t->train, &t->progress, &t->figures, &t->position, &t->remember, t->ledger,
                          &t->loop, err);
    return st;
}

static void training_close(struct training *t)
{
    t->job->progress = NULL;
    dp_loop_close(&t->loop);
    dp_ledger_close(&t->ledger);
    dp_remember_close(&t->remember);
    dp_position_clear(&t->position);
    dp_worker_figures_clear(&t->figures);
    dp_interim_clear(&t->interim);
    free(t->tested);
    free(t->valid_tested);
    dp_sets_close(&(struct dp_sets){.train = t->train, .test = t->test, .valid = t->valid});
}

/* All rest for good: the weights that stay are put in their place. */
static enum dp_status leave_best(struct training *t, struct dp_error *err)
{
    uint32_t reverted = 0;
    bool known = judged_of(t)[t->epochs - 1].known;
    enum dp_status st = DP_OK;
    if (t->verdict.keep)
        st = dp_keep_look(t->job, &reverted, err);
    /* An earlier process came further: the last weights are gone. */
    if (st == DP_OK && reverted == 0)
        st = dp_verdict_finish(&t->verdict, t->epochs, known, err);
    if (st == DP_OK && t->verdict.keep)
        st = dp_keep_end(t->job, &t->progress, t->verdict.state.kept, t->epochs, &t->left, err);
    return st;
}

/* The test set's, of the weights that stay, where another set was looked at. This worker's share; and of worker 0 all together. */
static enum dp_status evaluate_final(struct training *t, struct dp_error *err)
{
    struct dp_tested *tested = &t->tested[t->left - 1];
    enum dp_status st = dp_evaluate_share(t->job, &t->progress, t->test, DP_EVAL_TEST, t->epochs, err);
    dp_progress_enter(&t->progress, "waiting");
    if (st != DP_OK || t->job->worker != 0)
        return st;
    st = dp_evaluate_merge(t->job, &t->progress, t->test, DP_EVAL_TEST, t->epochs, &tested->figures, err);
    tested->known = st == DP_OK;
    if (tested->known)
        log_figures(t->settings->first_epoch + t->left, "test", &tested->figures);
    return st;
}

/* The end of an epoch where all rest; *stop: it was the last. */
static enum dp_status end_epoch(struct training *t, uint32_t epoch, bool *stop, struct dp_error *err)
{
    struct dp_verdict *v = &t->verdict;
    char why[DP_STOP_TEXT_BYTES];
    enum dp_status st = dp_verdict_epoch(v, epoch, err);
    if (st != DP_OK)
        return st;
    *stop = dp_verdict_stops(v, epoch);
    if (!*stop)
        return DP_OK;
    t->epochs = epoch;
    dp_stop_text(&v->rule, &v->state, t->settings->first_epoch, why);
    if (v->over)
        (void)snprintf(why, sizeof why, "the others have finished");
    dp_log(DP_LOG_INFO, "stops after epoch %" PRIu32 ", minibatch %" PRIu64 ": %s",
           t->settings->first_epoch + epoch, epoch * dp_dataset_batches(t->train), why);
    return DP_OK;
}

/* An earlier process may have been killed before it heard a verdict, or be the one that others want to hear it of. */
static enum dp_status begin_rests(struct training *t, bool *stop, struct dp_error *err)
{
    const struct dp_position *p = &t->position;
    uint32_t begun = p->epoch + (p->done > 0);
    enum dp_status st = dp_verdict_begin(&t->verdict, p->epoch, begun > t->begun ? begun : t->begun, err);
    return st == DP_OK && p->epoch > 0 && p->done == 0 ? end_epoch(t, p->epoch, stop, err) : st;
}

static struct dp_report report_of(const struct training *t)
{
    return (struct dp_report){.cluster = t->job->cluster,
                              .epochs_by_size = t->given->training.epochs == 0,
                              .batch_by_size = t->given->training.batch == 0,
                              .examples = dp_dataset_examples(t->train),
                              .digest = dp_dataset_digest(t->train),
                              .tested = t->tested,
                              .validated = t->valid ? t->valid_tested : NULL,
                              .rule = t->rests ? &t->verdict.rule : NULL,
                              .stop = &t->verdict.state,
                              .labels = t->labels,
                              .constant = t->constant};
}

/* Worker 0. ended: NULL while the training goes on (report.h). */
static void report_so_far(struct training *t, const char *ended, const char *error)
{
    struct dp_report report = report_of(t);
    report.ended = ended;
    report.error = error;
    if (t->job->worker == 0)
        dp_interim_write(&t->interim, t->job, &t->figures, dp_position_begun(&t->position), &report,
                         dp_dataset_batches(t->train));
}

/* Of a training that is asked to stop, others may stop first: what this worker then says of them is no failure. */
static void report_end(struct training *t, enum dp_status st, const struct dp_error *err)
{
    bool stopped = st == DP_STOPPING || dp_job_stopped(t->job);
    report_so_far(t, stopped ? "stopped" : "failed", stopped ? NULL : err->text);
}

static enum dp_status train_epochs(struct training *t, struct dp_error *err)
{
    bool stop = false;
    t->began = true;
    if (dp_position_begun(&t->position)) /* what it says that it has ended, it has told */
        dp_remember_put(&t->remember, t->job, &t->figures, t->rests);
    else /* the report is of this training from now on */
        report_so_far(t, NULL, NULL);
    enum dp_status st = t->rests ? begin_rests(t, &stop, err) : DP_OK;
    if (st != DP_OK)
        return st;
    for (uint32_t e = t->position.epoch; e < t->settings->epochs && !stop; e++) {
        st = dp_loop_epoch(t->loop, e, err);
        if (st != DP_OK)
            return st;
        t->figures.ended = e + 1;
        dp_remember_put(&t->remember, t->job, &t->figures, t->rests);
        const struct dp_epoch_figures *figures = &t->figures.epoch[e];
        if (figures->examples)
            dp_log(DP_LOG_INFO, "epoch %" PRIu32 " of %" PRIu32 ", own share: loss %.5g, %.0f examples/s",
                   t->settings->first_epoch + e + 1, t->settings->first_epoch + t->settings->epochs,
                   figures->loss_sum / (double)figures->examples,
                   (double)figures->examples / figures->seconds);
        st = t->rests ? end_epoch(t, e + 1, &stop, err) : DP_OK;
        if (st != DP_OK)
            return st;
        report_so_far(t, NULL, NULL);
    }
    char spent[256];
    dp_spent_text(&t->figures.spent, spent, sizeof spent);
    if (spent[0])
        dp_log(DP_LOG_INFO, "time of its steps: %s", spent);
    tell_repeated(t);
    return DP_OK;
}

static enum dp_status put_report(const void *report, const char *path, struct dp_error *err)
{
    return dp_report_write(report, path, err);
}

static enum dp_status write_report(struct training *t, const struct dp_note *trained, struct dp_error *err)
{
    uint32_t workers = t->settings->workers;
    struct dp_worker_figures *figures = calloc(workers, sizeof *figures);
    if (!figures)
        return dp_fail(err, DP_NOMEM, "no memory for the figures of %" PRIu32 " workers", workers);
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < workers; w++)
        st = dp_worker_figures_unpack(trained[w].bytes, trained[w].size, t->settings->epochs, &figures[w],
                                      err);
    if (st == DP_OK) {
        struct dp_speed speed;
        struct dp_report report = report_of(t);
        report.workers = figures;
        report.epochs = t->epochs;
        report.minibatches = t->epochs * dp_dataset_batches(t->train);
        report.left = t->left;
        report.finished = true;
        st = dp_report_speed(&report, &speed, err);
        if (st == DP_OK)
            dp_log(DP_LOG_INFO, "trained %" PRIu32 " epochs in %.1f s, %.0f examples/s", t->epochs,
                   speed.seconds, speed.examples_per_s);
        if (st == DP_OK && t->settings->report[0])
            st = put_file(t, put_report, &report, t->settings->report, err);
    }
    for (uint32_t w = 0; w < workers; w++)
        dp_worker_figures_clear(&figures[w]);
    free(figures);
    return st;
}

static enum dp_status finish(struct training *t, struct dp_error *err)
{
    struct dp_job *job = t->job;
    char *text = NULL;
    struct dp_note *trained = calloc(t->settings->workers, sizeof *trained);
    t->left = t->epochs;
    enum dp_status st = trained ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the workers' notes");
    if (st == DP_OK)
        st = dp_worker_figures_pack(&t->figures, &text, err);
    if (st == DP_OK)
        st = dp_peers_keep(job, "trained", text, strlen(text), err);
    if (st != DP_OK)
        goto done;
    dp_progress_enter(&t->progress, "waiting");
    if (t->rests || job->worker == 0)
        st = dp_peers_wait(job, &t->progress, "trained", trained, err);
    if (st == DP_OK && t->rests)
        st = leave_best(t, err);
    if (st == DP_OK && t->test && t->valid)
        st = evaluate_final(t, err);
    if (st == DP_OK && job->worker != 0)
        st = dp_peers_wait_first(job, &t->progress, err);
    if (st == DP_OK && job->worker == 0)
        st = write_report(t, trained, err);
done:
    dp_peers_clear(trained, t->settings->workers);
    free(trained);
    free(text);
    return st;
}

/* When "done" is told nobody needs the last parts any more. */
static void tidy_up(struct training *t)
{
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    if (t->rests && t->job->worker == 0)
        st = dp_evaluate_drop(t->job, DP_EVAL_EPOCH, t->epochs, &err);
    if (st == DP_OK && t->test && t->valid && t->job->worker == 0)
        st = dp_evaluate_drop(t->job, DP_EVAL_TEST, t->epochs, &err);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "parts of the last evaluation stay on the first server: %s", err.text);
}

/* The clock on the wall: fits JSON, and no two processes of one worker begin at once. */
static uint64_t process_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

enum dp_status dp_train(struct dp_job *job, struct dp_error *err)
{
    struct training t = {.job = job, .given = job->cluster, .settled = *job->cluster};
    t.settings = &t.settled.training;
    job->cluster = &t.settled;
    job->process = process_now();
    enum dp_status st = look_back(&t, err);
    if (st != DP_OK || t.over) { /* and leave the note that says so */
        if (st == DP_OK)
            dp_log(DP_LOG_INFO, "had finished before: nothing is left to do");
        dp_job_disconnect(job);
        job->cluster = t.given;
        return st;
    }
    st = training_open(&t, err);
    if (st == DP_OK)
        st = train_epochs(&t, err);
    if (st == DP_OK)
        st = finish(&t, err);
    if (st != DP_OK && !t.over && t.began)
        report_end(&t, st, err);
    if (st == DP_OK || t.over)
        dp_progress_enter(&t.progress, "done");
    if (st == DP_OK)
        tidy_up(&t);
    else if (t.over)
        dp_job_disconnect(job);
    else
        dp_progress_end(&t.progress, job, st); /* before buffers go that a pull may still write into */
    training_close(&t);
    job->cluster = t.given;
    return st;
}

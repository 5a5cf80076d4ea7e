#include "worker/remember.h"

#include "common/base/log.h"
#include "worker/agreed.h"
#include "worker/peers.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE  20u   /* of the time, one part in so many */
#define ALWAYS 1024u /* epochs whose figures are small enough to put them each time */

/* JSON has no NaN. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static double real_of(const json_t *value)
{
    return json_is_real(value) ? json_real_value(value) : (double)NAN;
}

/* Of items ranked among all: null where none are. */
static json_t *ranks_pack(const struct dp_figures *f)
{
    if (!f->ranked_users)
        return json_null();
    json_t *ranks = json_array();
    (void)json_array_append_new(ranks, json_integer((json_int_t)f->ranked_users));
    (void)json_array_append_new(ranks, json_integer((json_int_t)f->ranked_items));
    for (int t = 0; t < 2; t++) {
        (void)json_array_append_new(ranks, json_integer(f->top[t]));
        (void)json_array_append_new(ranks, real(f->recall[t]));
        (void)json_array_append_new(ranks, real(f->ndcg[t]));
    }
    return ranks;
}

static void ranks_unpack(const json_t *ranks, struct dp_figures *f)
{
    if (json_array_size(ranks) != 8)
        return;
    f->ranked_users = (uint64_t)json_integer_value(json_array_get(ranks, 0));
    f->ranked_items = (uint64_t)json_integer_value(json_array_get(ranks, 1));
    for (size_t t = 0; t < 2; t++) {
        f->top[t] = (uint32_t)json_integer_value(json_array_get(ranks, 2 + 3 * t));
        f->recall[t] = real_of(json_array_get(ranks, 3 + 3 * t));
        f->ndcg[t] = real_of(json_array_get(ranks, 4 + 3 * t));
    }
}

char *dp_remember_tested_pack(const struct dp_tested *tested, uint32_t epochs)
{
    json_t *root = json_array();
    int bad = 0;
    while (epochs > 0 && !tested[epochs - 1].known)
        epochs--;
    for (uint32_t e = 0; e < epochs; e++) {
        const struct dp_figures *f = &tested[e].figures;
        json_t *row = json_null();
        if (tested[e].known) {
            row = json_array();
            bad |= json_array_append_new(row, json_integer((json_int_t)f->examples));
            bad |= json_array_append_new(row, real(f->loss));
            bad |= json_array_append_new(row, real(f->accuracy));
            bad |= json_array_append_new(row, real(f->auc));
            bad |= json_array_append_new(row, real(f->rmse));
            bad |= json_array_append_new(row, real(f->hr10));
            bad |= json_array_append_new(row, real(f->ndcg10));
            bad |= json_array_append_new(row, ranks_pack(f));
        }
        bad |= json_array_append_new(root, row);
    }
    char *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

bool dp_remember_tested_unpack(const char *text, size_t size, uint32_t epochs, struct dp_tested *tested)
{
    json_t *root = json_loadb(text, size, 0, NULL);
    bool good = json_is_array(root) && json_array_size(root) <= epochs;
    for (uint32_t e = 0; good && e < json_array_size(root); e++) {
        const json_t *row = json_array_get(root, e);
        if (json_is_null(row))
            continue;
        good = json_is_array(row) && json_array_size(row) == 8 && json_is_integer(json_array_get(row, 0));
        if (!good)
            break;
        tested[e] =
            (struct dp_tested){.known = true,
                               .figures = {.examples = (uint64_t)json_integer_value(json_array_get(row, 0)),
                                           .loss = real_of(json_array_get(row, 1)),
                                           .accuracy = real_of(json_array_get(row, 2)),
                                           .auc = real_of(json_array_get(row, 3)),
                                           .rmse = real_of(json_array_get(row, 4)),
                                           .hr10 = real_of(json_array_get(row, 5)),
                                           .ndcg10 = real_of(json_array_get(row, 6))}};
        ranks_unpack(json_array_get(row, 7), &tested[e].figures);
    }
    json_decref(root);
    return good;
}

static void put(struct dp_job *job, const char *what, const char *text)
{
    struct dp_error err = {0};
    enum dp_status st = text ? dp_peers_put(job, what, job->worker, text, strlen(text), &err)
                             : dp_fail(&err, DP_NOMEM, "no memory");
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "the %s so far could not be kept, training goes on: %s", what, err.text);
}

void dp_remember_put(struct dp_remember *remember, struct dp_job *job,
                     const struct dp_worker_figures *figures, bool rests)
{
    uint64_t begun = dp_clock_ns(&job->clock);
    char *text = NULL;
    if (begun < remember->next_ns && !(rests && figures->ended <= ALWAYS))
        return;
    if (dp_worker_figures_pack(figures, &text, NULL) != DP_OK)
        text = NULL;
    put(job, "figures", text);
    free(text);
    uint64_t now = dp_clock_ns(&job->clock);
    remember->next_ns = now + (now - begun) * (SHARE - 1);
}

void dp_remember_tested(struct dp_job *job, const struct dp_tested *tested, uint32_t epochs)
{
    struct dp_error err = {0};
    char *text = dp_remember_tested_pack(tested, epochs);
    enum dp_status st =
        text ? dp_peers_keep(job, "tested", text, strlen(text), &err) : dp_fail(&err, DP_NOMEM, "no memory");
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "the figures so far could not be kept, training goes on: %s", err.text);
    free(text);
}

static void get(struct dp_job *job, const char *what, struct dp_note *note)
{
    struct dp_error err = {0};
    if (dp_peers_one(job, what, job->worker, note, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "the %s of before could not be read, training goes on: %s", what, err.text);
}

static void get_notes(struct dp_job *job, struct dp_worker_figures *figures, struct dp_tested *tested)
{
    struct dp_note note = {0};
    struct dp_error err = {0};
    struct dp_worker_figures before = {0};
    get(job, "figures", &note);
    if (note.bytes &&
        dp_worker_figures_unpack(note.bytes, note.size, figures->epochs, &before, &err) == DP_OK) {
        dp_worker_figures_clear(figures);
        *figures = before;
    } else if (note.bytes) {
        dp_log(DP_LOG_WARN, "%s", err.text);
    }
    free(note.bytes);
    note = (struct dp_note){0};
    if (!tested)
        return;
    get(job, "tested", &note);
    if (note.bytes && !dp_remember_tested_unpack(note.bytes, note.size, figures->epochs, tested)) {
        dp_log(DP_LOG_WARN, "the test figures of before cannot be read: they will be missing in the report");
        memset(tested, 0, figures->epochs * sizeof *tested);
    }
    free(note.bytes);
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
    dp_log(DP_LOG_WARN, "%s; training goes on, but figures will be missing should it be stopped and resumed",
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
    unsigned char note[DP_AGREED_PROCESS_BYTES + DP_AGREED_BYTES];
    const char *before = remember->log ? dp_step_log_text(remember->log) : NULL;
    if (!remember->log || (before && strcmp(before, text) == 0))
        return DP_OK;
    if (before && begun && strlen(before) < DP_AGREED_BYTES)
        return dp_agreed_check(text, note, dp_agreed_pack(0, before, note), job->cluster->training.run, err);
    dp_step_log_set_plan(remember->log, plan, text);
    return DP_OK;
}

static void add(struct dp_remember *remember, const struct dp_step *step, struct dp_worker_figures *figures)
{
    struct dp_epoch_figures *epoch = &figures->epoch[step->epoch];
    epoch->loss_sum += step->loss_sum;
    epoch->examples += step->examples;
    remember->groups++;
}

/* Those done before whose turn has come: sums of f64 depend on the order. */
static void add_found(struct dp_remember *remember, uint64_t below, struct dp_worker_figures *figures)
{
    while (remember->found_next < remember->found_len && remember->found[remember->found_next].group < below)
        add(remember, &remember->found[remember->found_next++], figures);
}

static struct dp_step_sum sum_of(const struct dp_remember *remember, const struct dp_epoch_figures *epoch)
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

void dp_remember_push(struct dp_remember *remember, const struct dp_step *step,
                      struct dp_worker_figures *figures)
{
    enter(remember, step->epoch);
    add_found(remember, step->group, figures);
    if (remember->log) {
        const struct dp_step_sum sum = sum_of(remember, &figures->epoch[step->epoch]);
        dp_step_log_add(remember->log, step, &sum);
    }
    add(remember, step, figures);
}

void dp_remember_end(struct dp_remember *remember, const struct dp_worker_figures *figures)
{
    struct dp_worker_figures totals = *figures;
    char *text = NULL;
    totals.epochs = totals.ended = 0; /* they have records of their own */
    if (!remember->log || dp_worker_figures_pack(&totals, &text, NULL) != DP_OK)
        return;
    dp_step_log_note(remember->log, DP_STEP_TOTALS, 0, text, strlen(text));
    free(text);
}

void dp_remember_epoch(struct dp_remember *remember, uint32_t epoch, struct dp_worker_figures *figures)
{
    enter(remember, epoch);
    add_found(remember, UINT64_MAX, figures);
    if (!remember->log)
        return;
    const struct dp_step_sum sum = sum_of(remember, &figures->epoch[epoch]);
    dp_step_log_epoch(remember->log, epoch, &sum);
    dp_remember_end(remember, figures);
}

void dp_remember_judged(struct dp_remember *remember, enum dp_step_note kind, uint32_t epoch,
                        const struct dp_tested *tested, const struct dp_stop *stop)
{
    unsigned char bytes[DP_STOP_BYTES];
    char *text = remember->log ? dp_remember_tested_pack(tested, 1) : NULL;
    if (text)
        dp_step_log_note(remember->log, kind, epoch, text, strlen(text));
    free(text);
    if (!remember->log || !stop)
        return;
    dp_stop_pack(stop, bytes);
    dp_step_log_note(remember->log, DP_STEP_STOP, epoch, bytes, sizeof bytes);
}

static void learn_totals(struct dp_worker_figures *figures, const void *bytes, size_t size)
{
    struct dp_worker_figures totals = {0};
    if (dp_worker_figures_unpack(bytes, size, 0, &totals, NULL) != DP_OK)
        return;
    figures->staleness = totals.staleness;
    figures->spent = totals.spent;
    figures->repeated_examples = totals.repeated_examples;
    dp_worker_figures_clear(&totals);
}

static void learn_note(void *context, enum dp_step_note kind, uint32_t epoch, const void *bytes, size_t size)
{
    const struct dp_remembered *out = context;
    struct dp_tested *tested = kind == DP_STEP_TEST         ? out->tested
                               : kind == DP_STEP_VALIDATION ? out->valid
                                                            : NULL;
    struct dp_stop stop;
    if (kind == DP_STEP_TOTALS)
        learn_totals(out->figures, bytes, size);
    else if (kind == DP_STEP_STOP && dp_stop_unpack(bytes, size, &stop, NULL) == DP_OK)
        *out->stop = stop;
    else if (tested && epoch > 0 && epoch <= out->figures->epochs)
        (void)dp_remember_tested_unpack(bytes, size, 1, &tested[epoch - 1]);
}

static bool is_done(const void *of, uint32_t epoch, uint64_t group)
{
    return dp_position_done(of, epoch, group);
}

static void set_epoch(struct dp_epoch_figures *epoch, const struct dp_step_sum *sum)
{
    *epoch = (struct dp_epoch_figures){
        .loss_sum = sum->loss_sum, .examples = sum->examples, .begun = sum->begun, .seconds = sum->seconds};
}

/* One epoch without the record of its end: of its pushes. Those of the epoch that goes on wait for their turn. */
static void get_epoch(struct dp_remember *remember, uint32_t epoch, const struct dp_remembered *out)
{
    struct dp_epoch_figures *figures = &out->figures->epoch[epoch];
    struct dp_step_sum sum = dp_step_log_sum(remember->log, epoch);
    struct dp_error err = {0};
    free(remember->found);
    if (dp_step_log_steps(remember->log, epoch, is_done, out->position, &remember->found,
                          &remember->found_len, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "the figures of before could not be read, training goes on: %s", err.text);
    remember->found_next = 0;
    if (sum.examples == 0 && remember->found_len == 0)
        return;
    set_epoch(figures, &sum);
    if (remember->found_len > 0)
        figures->seconds = remember->found[remember->found_len - 1].seconds;
    remember->epoch = epoch;
    remember->groups = sum.groups;
    if (epoch == out->position->epoch) {
        add_found(remember, out->position->first, out->figures);
        return;
    }
    add_found(remember, UINT64_MAX, out->figures);
    sum = sum_of(remember, figures);
    dp_step_log_epoch(remember->log, epoch, &sum);
    free(remember->found);
    remember->found = NULL;
    remember->found_len = remember->found_next = 0;
}

static void get_log(struct dp_remember *remember, const struct dp_remembered *out)
{
    uint32_t epochs = out->figures->epochs, over = out->position->epoch;
    struct dp_step_sum *sums = calloc(over ? over : 1, sizeof *sums);
    if (!sums) {
        dp_log(DP_LOG_WARN, "no memory for the figures of %u epochs: they will be missing in the report",
               over);
        return;
    }
    dp_step_log_sums(remember->log, sums, over);
    for (uint32_t e = 0; e < over; e++)
        if (sums[e].groups > 0)
            set_epoch(&out->figures->epoch[e], &sums[e]);
        else
            get_epoch(remember, e, out);
    if (over < epochs)
        get_epoch(remember, over, out);
    dp_step_log_visit(remember->log, learn_note, (void *)(uintptr_t)out);
    free(sums);
}

/* Examples that are done and in no sum: their losses are lost. */
static uint64_t count_lost(const struct dp_remember *remember, const struct dp_remembered *out)
{
    uint64_t known = 0;
    for (uint32_t e = 0; e < out->figures->epochs; e++)
        known += out->figures->epoch[e].examples;
    for (size_t i = remember->found_next; i < remember->found_len; i++)
        known += remember->found[i].examples;
    return out->found_examples > known ? out->found_examples - known : 0;
}

void dp_remember_get(struct dp_remember *remember, struct dp_job *job, const struct dp_remembered *out)
{
    get_notes(job, out->figures, out->valid ? out->valid : out->tested);
    for (uint32_t e = out->position->epoch; e < out->figures->epochs;
         e++) /* those under way are trained on */
        out->figures->epoch[e] = (struct dp_epoch_figures){0};
    if (remember->log)
        get_log(remember, out);
    out->figures->found_examples = count_lost(remember, out);
    if (remember->log && out->figures->found_examples > 0)
        dp_log(DP_LOG_WARN,
               "the losses of %llu examples trained before are not known: they are missing in the report",
               (unsigned long long)out->figures->found_examples);
}

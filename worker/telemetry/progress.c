#include "worker/telemetry/progress.h"

#include "common/base/log.h"
#include "worker/context/run_failure.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_NS      UINT64_C(500000000)
#define AFTER_FAIL_NS UINT64_C(10000000000)
#define LOOK_NS       UINT64_C(2000000000)
#define NOTE_MS       1000u

void dp_progress_init(struct dp_progress *progress, struct dp_job *job, uint64_t examples_total)
{
    *progress = (struct dp_progress){.job = job,
                                     .state = "reading",
                                     .epoch = 1,
                                     .epochs = job->cluster->training.epochs,
                                     .examples_total = examples_total,
                                     .reported_ns = dp_clock_ns(&job->clock)};
}

static void add_spent(json_t *root, const struct dp_worker_stats *stats)
{
    json_t *spent = json_object();
    (void)json_object_set_new(root, "step", json_integer((json_int_t)stats->pushes));
    for (int phase = 0; phase < DP_PHASE_KINDS; phase++)
        if (stats->times.seconds[phase] > 0)
            (void)json_object_set_new(spent, dp_step_phase_name(phase),
                                      json_real(stats->times.seconds[phase]));
    (void)json_object_set_new(root, "spent_s", spent);
}

static void add_awaited(json_t *root, const struct dp_progress *progress)
{
    const struct dp_wait *wait = &progress->awaited_for;
    (void)json_object_set_new(root, "awaited", json_string(progress->awaited));
    (void)json_object_set_new(root, "awaited_reason", json_string(dp_wait_name(wait->reason)));
    if (wait->reason == DP_WAIT_STEP && wait->subject != progress->job->worker)
        (void)json_object_set_new(root, "awaited_worker", json_integer((json_int_t)wait->subject));
}

char *dp_progress_text(const struct dp_progress *progress, double seconds)
{
    json_t *root =
        json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:I,s:I,s:I}", "state", progress->state, "first_epoch",
                  (json_int_t)progress->job->cluster->training.first_epoch, "epoch",
                  (json_int_t)progress->epoch, "epochs", (json_int_t)progress->epochs, "examples",
                  (json_int_t)progress->examples, "examples_total", (json_int_t)progress->examples_total,
                  "examples_per_s", seconds > 0 ? (double)progress->fresh / seconds : 0.0, "staleness_mean",
                  progress->staleness_mean, "dropped", (json_int_t)progress->dropped, "beat",
                  (json_int_t)progress->beat, "process", (json_int_t)progress->job->process);
    /* JSON has no number for a value that is not finite: the key is left out. */
    json_t *loss =
        progress->loss_examples ? json_real(progress->loss_sum / (double)progress->loss_examples) : NULL;
    if (root && loss) {
        (void)json_object_set(root, "loss", loss);
        (void)json_object_set_new(root, "loss_examples", json_integer((json_int_t)progress->loss_examples));
    }
    json_decref(loss);
    if (root && progress->diverged)
        (void)json_object_set_new(root, "diverged", json_integer((json_int_t)progress->diverged));
    if (root && progress->left)
        (void)json_object_set_new(root, "left", json_true());
    if (root && progress->left)
        (void)json_object_set_new(root, "code", json_integer(progress->code));
    if (root && progress->awaited[0])
        add_awaited(root, progress);
    if (root && progress->stats)
        add_spent(root, progress->stats);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

static void report(struct dp_progress *progress)
{
    struct dp_job *job = progress->job;
    if (!job->shared)
        return;
    uint64_t now = dp_clock_ns(&job->clock);
    progress->beat++;
    char name[96];
    (void)snprintf(name, sizeof name, "run/%" PRIu32 "/progress/%" PRIu32 ".", job->cluster->training.run,
                   job->worker);
    char *text = dp_progress_text(progress, (double)(now - progress->reported_ns) / 1e9);
    struct dp_error err = {0};
    enum dp_status st = text ? job->shared->note_put(job->client, name, text, strlen(text), NOTE_MS, &err)
                             : dp_fail(&err, DP_NOMEM, "no memory");
    free(text);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "cannot report progress to the first server: %s; training continues", err.text);
    progress->reported_ns = dp_clock_ns(&job->clock);
    progress->next_ns = progress->reported_ns + (st == DP_OK ? EVERY_NS : AFTER_FAIL_NS);
    progress->fresh = 0;
    if (st != DP_OK || progress->left || progress->reported_ns < progress->look_ns)
        return;
    progress->look_ns = progress->reported_ns + LOOK_NS;
    job->run_failed = job->run_failed || dp_run_failure_check(job, NULL) != DP_OK;
}

void dp_progress_enter(struct dp_progress *progress, const char *state)
{
    progress->state = state;
    progress->awaited[0] = '\0';
    report(progress);
}

void dp_progress_pass(struct dp_progress *progress, const char *state)
{
    progress->state = state;
    progress->awaited[0] = '\0';
    dp_progress_tick(progress);
}

void dp_progress_leave(struct dp_progress *progress)
{
    progress->left = true;
    dp_progress_enter(progress, "done");
}

void dp_progress_epoch(struct dp_progress *progress, uint32_t epoch, double loss_sum, uint64_t examples)
{
    progress->state = "training";
    progress->awaited[0] = '\0';
    progress->epoch = epoch;
    progress->loss_sum = loss_sum;
    progress->loss_examples = examples;
}

void dp_progress_add(struct dp_progress *progress, double loss, uint32_t examples)
{
    progress->loss_sum += loss * examples;
    progress->loss_examples += examples;
    progress->fresh += examples;
    progress->examples += examples;
}

void dp_progress_read(const struct dp_shared_note *note, struct dp_progress_seen *out)
{
    json_t *root = note->bytes ? json_loadb(note->bytes, note->size, 0, NULL) : NULL;
    const char *state = json_string_value(json_object_get(root, "state"));
    json_int_t process = json_integer_value(json_object_get(root, "process"));
    (void)snprintf(out->state, sizeof out->state, "%s", state ? state : "none");
    out->process = process > 0 ? (uint64_t)process : 0;
    out->done = strcmp(out->state, "done") == 0;
    out->left = json_is_true(json_object_get(root, "left"));
    out->ended_early = strcmp(out->state, "failed") == 0 || strcmp(out->state, "stopped") == 0;
    json_decref(root);
}

static bool has_place(struct dp_job *job)
{
    struct dp_shared_note note = {0};
    struct dp_progress_seen seen;
    if (dp_shared_one(job, "progress", job->worker, &note, NULL) != DP_OK)
        return false;
    dp_progress_read(&note, &seen);
    dp_shared_note_clear(&note);
    return seen.process == 0 || seen.process == job->process || seen.left;
}

enum dp_status dp_progress_settle(struct dp_job *job, enum dp_status why, struct dp_error *err)
{
    if (!job->shared) /* an evaluation did, and closed the client */
        return why;
    return dp_run_failure_settle(job, why, dp_status_exit(why) == DP_EXIT_FAILED && has_place(job), err);
}

static void see_diverged(void *context, const char *name, const void *bytes, size_t size)
{
    uint32_t *diverged = context;
    json_t *root = json_loadb(bytes, size, 0, NULL);
    json_int_t epoch = json_integer_value(json_object_get(root, "diverged"));
    (void)name;
    if (epoch > 0 && epoch <= UINT32_MAX)
        *diverged = (uint32_t)epoch;
    json_decref(root);
}

uint32_t dp_progress_diverged(struct dp_progress *progress, enum dp_status why)
{
    struct dp_job *job = progress->job;
    struct dp_error unheard = {0};
    char prefix[64];
    uint32_t diverged = 0;
    if (why == DP_NOT_FINITE)
        return progress->epoch;
    (void)snprintf(prefix, sizeof prefix, "run/%" PRIu32 "/progress/", job->cluster->training.run);
    if (job->shared)
        (void)job->shared->notes(job->client, prefix, see_diverged, &diverged, NOTE_MS, &unheard);
    return diverged;
}

void dp_progress_tick(struct dp_progress *progress)
{
    if (dp_clock_ns(&progress->job->clock) >= progress->next_ns)
        report(progress);
}

void dp_progress_end(struct dp_progress *progress, struct dp_job *job, enum dp_status why)
{
    bool deaf = why == DP_TIMEOUT || why == DP_UNAVAILABLE;
    if (progress && why == DP_NOT_FINITE)
        progress->diverged = progress->epoch;
    if (progress) {
        progress->left = true;
        progress->code = dp_status_exit(why);
    }
    if (progress && !deaf && why != DP_REPLACED) /* the note is that of the process that took the place */
        dp_progress_enter(progress, why == DP_STOPPING ? "stopped" : "failed");
    dp_job_disconnect(job);
}

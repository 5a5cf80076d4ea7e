#include "worker/loop/pull_wait.h"

#include "common/base/log.h"
#include "worker/context/retry.h"
#include "worker/telemetry/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS_NS    UINT64_C(1000000)
#define FIRST_NS (2000 * MS_NS)
#define NOTE_MS  1000u
#define SLICE_MS 200u

struct blocked {
    uint64_t begun_ns; /* of the wait; 0: not yet */
    uint64_t since_ns; /* blocked for another worker; 0: it is not */
};

static void see(void *note, const char *name, const void *bytes, size_t size)
{
    (void)name;
    dp_progress_read(&(struct dp_shared_note){(void *)(uintptr_t)bytes, size}, note);
}

/* One try: the wait goes on without it. */
static const char *state_of(const struct dp_job *job, uint64_t worker, struct dp_progress_seen *seen)
{
    char name[64];
    struct dp_error unheard = {0};
    *seen = (struct dp_progress_seen){0};
    (void)snprintf(name, sizeof name, "run/%" PRIu32 "/progress/%" PRIu64 ".", job->cluster->training.run,
                   worker);
    if (!job->shared || job->shared->notes(job->client, name, see, seen, NOTE_MS, &unheard) != DP_OK)
        return "";
    return seen->state;
}

static void tell(const struct dp_job *job, uint64_t waited_s, const struct dp_error *told)
{
    struct dp_progress_seen seen;
    uint64_t worker = told->wait.subject;
    const char *state = worker == job->worker ? "" : state_of(job, worker, &seen), *what = "";
    char whom[128] = "";
    if (strcmp(state, "failed") == 0)
        what = "has failed, and its own messages say why: mend that, and start it again";
    else if (strcmp(state, "stopped") == 0)
        what = "was stopped: start it again";
    else if (strcmp(state, "reading") == 0)
        what = "is reading its data";
    if (what[0])
        (void)snprintf(whom, sizeof whom, "; worker %" PRIu64 " %s", worker, what);
    dp_log(DP_LOG_WARN, "waiting for %" PRIu64 " s, without a limit: %s%s", waited_s, told->text, whom);
}

/* After each slice of a wait, with what the shards said last. now_ns: of a clock that leaves out suspensions.
 * */
static void hear(struct blocked *blocked, struct dp_progress *progress, uint64_t now_ns,
                 const struct dp_error *told)
{
    if (blocked->begun_ns == 0)
        blocked->begun_ns = now_ns;
    if (now_ns - blocked->begun_ns >= FIRST_NS) {
        (void)snprintf(progress->awaited, sizeof progress->awaited, "%.255s", told->text);
        progress->awaited_for = told->wait;
    }
    if (told->wait.reason != DP_WAIT_STEP) {
        blocked->since_ns = 0;
        return;
    }
    if (blocked->since_ns == 0)
        blocked->since_ns = now_ns;
    uint64_t held_ns = now_ns - blocked->since_ns;
    if (held_ns < FIRST_NS ||
        (progress->awaited_ns != 0 && now_ns - progress->awaited_ns < DP_RETRY_TELL_MS * MS_NS))
        return;
    progress->awaited_ns = now_ns;
    tell(progress->job, held_ns / 1000 / MS_NS, told);
}

enum dp_step_phase dp_pull_wait_phase(const struct dp_job *job, const struct dp_error *told)
{
    return told->wait.reason == DP_WAIT_STEP && told->wait.subject != job->worker ? DP_PHASE_WAITING_RULE
                                                                                  : DP_PHASE_WAITING_PULL;
}

/* The slices are short at first: only between two is it seen what the shards said. */
enum dp_status dp_pull_wait(struct dp_progress *progress, struct dp_ticket *ticket,
                            struct dp_step_timer *watch, struct dp_outcome *outcome, struct dp_error *err)
{
    struct dp_error told = {0};
    struct dp_job *job;
    uint32_t slice_ms = 1;
    enum dp_status st;
    if (ticket->id == 0)
        return DP_OK;
    job = progress->job;
    struct blocked blocked = {0};
    struct dp_retry retry = dp_retry_begin(job);
    retry.rule_told = true;
    do {
        enum dp_step_phase phase = dp_pull_wait_phase(job, &told);
        st = dp_client_wait(job->client, ticket, dp_retry_slice_ms(&retry, slice_ms), outcome, &told);
        dp_step_timer_lap(watch, phase);
        if (st != DP_OK)
            hear(&blocked, progress, dp_awake_ns(&retry.clock), &told);
        enum dp_status looked =
            st == DP_TIMEOUT && told.wait.reason == DP_WAIT_STEP ? dp_job_waits(job, err) : DP_OK;
        if (looked != DP_OK) {
            progress->awaited[0] = '\0';
            return looked;
        }
        slice_ms = slice_ms < SLICE_MS / 2 ? slice_ms * 2 : SLICE_MS;
    } while (dp_retry_more(&retry, &st, &told));
    progress->awaited[0] = '\0';
    if (st != DP_OK && err)
        *err = told;
    return st;
}

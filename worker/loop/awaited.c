#include "worker/loop/awaited.h"

#include "common/base/log.h"
#include "worker/context/retry.h"
#include "worker/telemetry/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS_NS    UINT64_C(1000000)
#define FIRST_NS (2000 * MS_NS)
#define NOTE_MS  1000u

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
    if (!job->shared.self ||
        job->shared.ops->notes(job->shared.self, name, see, seen, NOTE_MS, &unheard) != DP_OK)
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

void dp_awaited_hear(struct dp_awaited *awaited, struct dp_job *job, uint64_t now_ns,
                     const struct dp_error *told)
{
    if (awaited->begun_ns == 0)
        awaited->begun_ns = now_ns;
    if (now_ns - awaited->begun_ns >= FIRST_NS)
        (void)snprintf(job->awaited, sizeof job->awaited, "%.255s", told->text);
    if (told->wait.reason != DP_WAIT_STEP) {
        awaited->since_ns = 0;
        return;
    }
    if (awaited->since_ns == 0)
        awaited->since_ns = now_ns;
    uint64_t held_ns = now_ns - awaited->since_ns;
    if (held_ns < FIRST_NS || (job->awaited_ns != 0 && now_ns - job->awaited_ns < DP_RETRY_TELL_MS * MS_NS))
        return;
    job->awaited_ns = now_ns;
    tell(job, held_ns / 1000 / MS_NS, told);
}

void dp_awaited_end(struct dp_job *job)
{
    job->awaited[0] = '\0';
}

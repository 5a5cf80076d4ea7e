#include "worker/context/shared.h"

#include "worker/context/retry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_BYTES 128

/* ---- over a client */

static enum dp_status client_set(struct dp_client *client, const char *name, uint64_t expected,
                                 const void *bytes, size_t size, uint32_t timeout_ms, bool *won,
                                 struct dp_error *err)
{
    return dp_client_register_set(client, name, expected, bytes, size, timeout_ms, won, NULL, err);
}

static void client_pause(struct dp_client *client, uint32_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)client;
    (void)nanosleep(&pause, NULL);
}

const struct dp_shared_ops *dp_shared_of_client(void)
{
    static const struct dp_shared_ops ops = {.note_put = dp_client_note_put,
                                             .notes = dp_client_notes,
                                             .get = dp_client_register_get,
                                             .set = client_set,
                                             .pause = client_pause};
    return &ops;
}

/* ---- notes */

/* The dot ends it: the name of worker 1 is no prefix of that of worker 10, which a request for it would find too. */
static void name_of(const struct dp_job *job, const char *what, uint32_t worker, char name[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "run/%" PRIu32 "/%s/%" PRIu32 ".", job->cluster->training.run, what,
                   worker);
}

enum dp_status dp_shared_put(struct dp_job *job, const char *what, uint32_t worker, const void *bytes,
                             size_t size, struct dp_error *err)
{
    char name[NAME_BYTES];
    name_of(job, what, worker, name);
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = job->shared->note_put(job->client, name, bytes, size,
                                   dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), err);
    while (dp_retry_more(&retry, &st, err));
    return st;
}

void dp_shared_note_clear(struct dp_shared_note *note)
{
    free(note->bytes);
    *note = (struct dp_shared_note){0};
}

static enum dp_status list(struct dp_job *job, const char *prefix,
                           void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                           void *context, struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = job->shared->notes(job->client, prefix, visit, context,
                                dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), err);
    while (dp_retry_more(&retry, &st, err));
    return st;
}

/* What is asked for by a name is what begins with it. */
struct search {
    const char *name;
    struct dp_shared_note found;
    bool nomem;
};

static void take_if_same(void *context, const char *name, const void *bytes, size_t size)
{
    struct search *search = context;
    if (strcmp(name, search->name) != 0 || search->found.bytes)
        return;
    search->found.bytes = malloc(size ? size : 1);
    search->nomem = !search->found.bytes;
    if (search->nomem)
        return;
    memcpy(search->found.bytes, bytes, size);
    search->found.size = size;
}

enum dp_status dp_shared_one(struct dp_job *job, const char *what, uint32_t worker,
                             struct dp_shared_note *out, struct dp_error *err)
{
    char name[NAME_BYTES];
    name_of(job, what, worker, name);
    struct search search = {.name = name};
    enum dp_status st = list(job, name, take_if_same, &search, err);
    if (st == DP_OK && search.nomem)
        st = dp_fail(err, DP_NOMEM, "no memory for the note %s", name);
    if (st != DP_OK)
        dp_shared_note_clear(&search.found);
    *out = search.found;
    return st;
}

enum dp_status dp_shared_list(struct dp_job *job, const char *what,
                              void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                              void *context, struct dp_error *err)
{
    char prefix[NAME_BYTES];
    (void)snprintf(prefix, sizeof prefix, "run/%" PRIu32 "/%s/", job->cluster->training.run, what);
    return list(job, prefix, visit, context, err);
}

/* ---- register values */

static void value_name(const struct dp_job *job, const char *what, char name[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "run/%" PRIu32 "/%s", job->cluster->training.run, what);
}

/* The register has room for the newest runs. */
static enum dp_status too_old(const struct dp_job *job, enum dp_status st, struct dp_error *err)
{
    if (st != DP_TOO_OLD)
        return st;
    return dp_fail(err, DP_ARGUMENT,
                   "the first server has dropped the decisions of run %" PRIu32
                   " to make space for later runs: to train, give training.run a higher number than theirs",
                   job->cluster->training.run);
}

enum dp_status dp_shared_get(struct dp_job *job, const char *what, uint64_t above, uint32_t wait_ms,
                             struct dp_register_value *value, struct dp_error *err)
{
    char name[NAME_BYTES];
    value_name(job, what, name);
    dp_register_value_clear(value);
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do {
        uint32_t slice_ms = dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS);
        st = job->shared->get(job->client, name, above, wait_ms, slice_ms, value, err);
    } while (dp_retry_more(&retry, &st, err));
    return too_old(job, st, err);
}

enum dp_status dp_shared_set(struct dp_job *job, const char *what, uint64_t expected, const void *bytes,
                             size_t size, bool *won, struct dp_error *err)
{
    char name[NAME_BYTES];
    value_name(job, what, name);
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = job->shared->set(job->client, name, expected, bytes, size,
                              dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), won, err);
    while (dp_retry_more(&retry, &st, err));
    *won = *won && st == DP_OK;
    if (st != DP_TOO_OLD)
        return st;
    /* So many others have set it since that nobody knows whether this one was stored; or the run is
     * forgotten: the caller hears that when it reads. */
    if (err)
        *err = (struct dp_error){0};
    return DP_OK;
}

enum dp_status dp_shared_pause(struct dp_job *job, uint32_t ms, struct dp_error *err)
{
    if (dp_job_stopped(job))
        return dp_fail(err, DP_STOPPING, "stopped by a signal while waiting for other workers");
    dp_job_alive(job);
    job->shared->pause(job->client, ms);
    return DP_OK;
}

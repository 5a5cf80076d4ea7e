#include "worker/peers.h"

#include "common/base/log.h"
#include "worker/patience.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_BYTES 128
#define POLL_MS                                                                                              \
    100u /* between two looks at what lasts; at first sooner, as most of what is waited for is there within milliseconds */
#define POLL_FIRST 2u

static void name_of(const struct dp_job *job, const char *what, uint32_t worker, char *name)
{
    (void)snprintf(name, NAME_BYTES, "run/%" PRIu32 "/%s/%" PRIu32, job->cluster->training.run, what, worker);
}

enum dp_status dp_peers_put(struct dp_job *job, const char *what, uint32_t worker, const void *bytes,
                            size_t size, struct dp_error *err)
{
    char name[NAME_BYTES];
    name_of(job, what, worker, name);
    struct dp_patience patience = dp_patience_begin(job);
    enum dp_status st;
    do
        st = dp_client_note_put(job->client, name, bytes, size,
                                dp_patience_slice_ms(&patience, DP_PATIENCE_TELL_MS), err);
    while (dp_patience_more(&patience, &st, err));
    return st;
}

/* A prefix finds worker 1's note and worker 10's: only the whole name counts. */
struct search {
    const char *name;
    struct dp_note found;
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

enum dp_status dp_peers_one(struct dp_job *job, const char *what, uint32_t worker, struct dp_note *out,
                            struct dp_error *err)
{
    char name[NAME_BYTES];
    name_of(job, what, worker, name);
    struct search search = {.name = name};
    struct dp_patience patience = dp_patience_begin(job);
    enum dp_status st;
    do
        st = dp_client_notes(job->client, name, take_if_same, &search,
                             dp_patience_slice_ms(&patience, DP_PATIENCE_TELL_MS), err);
    while (dp_patience_more(&patience, &st, err));
    if (st == DP_OK && search.nomem)
        st = dp_fail(err, DP_NOMEM, "no memory for the note %s", name);
    if (st != DP_OK)
        free(search.found.bytes);
    else
        *out = search.found;
    return st;
}

static enum dp_status look(struct dp_job *job, const struct dp_wish *wish, struct dp_note *notes,
                           uint32_t *missing, struct dp_error *err)
{
    *missing = 0;
    for (uint32_t w = 0; w < wish->count; w++) {
        if (notes[w].bytes)
            continue;
        enum dp_status st = dp_peers_one(job, wish->what, w, &notes[w], err);
        if (st != DP_OK)
            return st;
        if (notes[w].bytes && wish->ready && !wish->ready(wish->context, &notes[w])) {
            free(notes[w].bytes);
            notes[w] = (struct dp_note){0};
        }
        *missing += notes[w].bytes == NULL;
    }
    return DP_OK;
}

enum dp_status dp_peers_look(struct dp_job *job, const char *what, struct dp_note *notes, uint32_t *missing,
                             struct dp_error *err)
{
    const struct dp_wish wish = {.what = what, .count = job->cluster->training.workers};
    return look(job, &wish, notes, missing, err);
}

/* ---- notes that are kept */

struct dp_kept {
    struct dp_kept *next;
    char what[NAME_BYTES];
    bool (*older)(const struct dp_note *there, const struct dp_note *kept); /* or NULL */
    size_t size;
    char bytes[];
};

enum dp_status dp_peers_keep_newest(struct dp_job *job, const char *what, const void *bytes, size_t size,
                                    bool (*older)(const struct dp_note *there, const struct dp_note *kept),
                                    struct dp_error *err)
{
    struct dp_kept **place = &job->kept, *kept = malloc(sizeof *kept + size);
    if (!kept)
        return dp_fail(err, DP_NOMEM, "no memory to keep the note %s", what);
    *kept = (struct dp_kept){.older = older, .size = size};
    (void)snprintf(kept->what, sizeof kept->what, "%s", what);
    if (size)
        memcpy(kept->bytes, bytes, size);
    while (*place && strcmp((*place)->what, what) != 0)
        place = &(*place)->next;
    if (*place) { /* its place in the order stays */
        struct dp_kept *earlier = *place;
        kept->next = earlier->next;
        *place = kept;
        free(earlier);
    } else {
        kept->next = job->kept;
        job->kept = kept;
    }
    return dp_peers_put(job, what, job->worker, bytes, size, err);
}

enum dp_status dp_peers_keep(struct dp_job *job, const char *what, const void *bytes, size_t size,
                             struct dp_error *err)
{
    return dp_peers_keep_newest(job, what, bytes, size, NULL, err);
}

void dp_peers_forget(struct dp_job *job)
{
    while (job->kept) {
        struct dp_kept *kept = job->kept;
        job->kept = kept->next;
        free(kept);
    }
    dp_peers_clear(job->before, job->before ? job->cluster->training.workers : 0);
    free(job->before);
    job->before = NULL;
}

static enum dp_status is_there(struct dp_job *job, const char *what, bool *there, struct dp_error *err)
{
    struct dp_note note = {0};
    enum dp_status st = dp_peers_one(job, what, job->worker, &note, err);
    *there = note.bytes != NULL;
    free(note.bytes);
    return st;
}

/* The first one kept (the smallest) is looked for: those that came later went with the same server. */
static enum dp_status put_lost(struct dp_job *job, struct dp_error *err)
{
    bool there = true;
    const struct dp_kept *first = job->kept;
    if (!first)
        return DP_OK;
    while (first->next)
        first = first->next;
    enum dp_status st = is_there(job, first->what, &there, err);
    while (st == DP_OK && !there) {
        /* It goes last: a try that was cut off is then done again. So is one that this server has not seen the begin of. */
        st = dp_peers_put(job, "again", job->worker, "1", 1, err);
        for (const struct dp_kept *kept = job->kept; st == DP_OK && kept; kept = kept->next)
            st = dp_peers_put(job, kept->what, job->worker, kept->bytes, kept->size, err);
        if (st == DP_OK)
            st = is_there(job, "again", &there, err);
    }
    return st;
}

/* Those in whose place an older one lies. */
static enum dp_status put_newest(struct dp_job *job, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (struct dp_kept *kept = job->kept; st == DP_OK && kept; kept = kept->next) {
        struct dp_note there = {0};
        if (!kept->older)
            continue;
        st = dp_peers_one(job, kept->what, job->worker, &there, err);
        if (st == DP_OK && there.bytes &&
            kept->older(&there, &(struct dp_note){.bytes = kept->bytes, .size = kept->size}))
            st = dp_peers_put(job, kept->what, job->worker, kept->bytes, kept->size, err);
        free(there.bytes);
    }
    return st;
}

/* ---- waiting */

/* Between two looks: what the first server has lost, or was given late by an earlier process, is put again, and that this worker lives is told. */
static enum dp_status pause_between(struct dp_job *job, struct dp_progress *progress, uint32_t *ms,
                                    struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = *ms * 1000000L};
    *ms = *ms < POLL_MS / 2 ? *ms * 2 : POLL_MS;
    if (dp_job_stopped(job))
        return dp_fail(err, DP_STOPPING, "stopped by a signal while waiting for other workers");
    dp_progress_tick(progress);
    (void)nanosleep(&pause, NULL);
    enum dp_status st = put_lost(job, err);
    return st == DP_OK ? put_newest(job, err) : st;
}

/* The last sign of one worker. */
struct sign {
    struct dp_note note;
    uint64_t since_ns;
    uint64_t looked_ns; /* last; 0: not yet */
};

void dp_peers_state(const struct dp_note *note, char *out, size_t size)
{
    json_t *root = note->bytes ? json_loadb(note->bytes, note->size, 0, NULL) : NULL;
    const char *state = json_string_value(json_object_get(root, "state"));
    (void)snprintf(out, size, "%s", state ? state : "none");
    json_decref(root);
}

bool dp_peers_is_done(const struct dp_note *note)
{
    char state[32];
    dp_peers_state(note, state, sizeof state);
    return strcmp(state, "done") == 0;
}

bool dp_peers_ended_early(const struct dp_note *note)
{
    char state[32];
    dp_peers_state(note, state, sizeof state);
    return strcmp(state, "failed") == 0 || strcmp(state, "stopped") == 0;
}

static uint64_t number_in(const struct dp_note *note, const char *key)
{
    json_t *root = note->bytes ? json_loadb(note->bytes, note->size, 0, NULL) : NULL;
    json_int_t value = json_integer_value(json_object_get(root, key));
    json_decref(root);
    return value > 0 ? (uint64_t)value : 0;
}

uint32_t dp_peers_epoch(const struct dp_note *note)
{
    uint64_t epoch = number_in(note, "epoch");
    return epoch <= UINT32_MAX ? (uint32_t)epoch : 0;
}

uint64_t dp_peers_process(const struct dp_note *note)
{
    return number_in(note, "process");
}

static bool same(const struct dp_note *a, const struct dp_note *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

enum dp_status dp_peers_begin(struct dp_job *job, struct dp_error *err)
{
    uint32_t workers = job->cluster->training.workers;
    enum dp_status st = DP_OK;
    job->before = calloc(workers, sizeof *job->before);
    if (!job->before)
        return dp_fail(err, DP_NOMEM, "no memory for the notes of %" PRIu32 " workers", workers);
    for (uint32_t w = 0; st == DP_OK && w < workers; w++) {
        struct dp_note *note = &job->before[w];
        st = w == job->worker ? DP_OK : dp_peers_one(job, "progress", w, note, err);
        if (!dp_peers_ended_early(note))
            dp_peers_clear(note, 1);
    }
    return st;
}

/* One missing worker: whether it still may be waited for. */
static enum dp_status check_sign(struct dp_job *job, const char *what, uint32_t worker, struct sign *sign,
                                 struct dp_error *err)
{
    struct dp_note note = {0};
    enum dp_status st = dp_peers_one(job, "progress", worker, &note, err);
    if (st != DP_OK)
        return st;
    uint64_t now = dp_clock_ns(&job->clock);
    /* While this process was suspended, as the others may have been, nobody looked for signs. */
    if (sign->looked_ns && now - sign->looked_ns > DP_PATIENCE_ASLEEP_MS * UINT64_C(1000000))
        sign->since_ns += now - sign->looked_ns;
    sign->looked_ns = now;
    if (!same(&note, &sign->note))
        sign->since_ns = now;
    free(sign->note.bytes);
    sign->note = note;
    char state[32];
    dp_peers_state(&note, state, sizeof state);
    if (dp_peers_ended_early(&note) && !(job->before && same(&note, &job->before[worker])))
        return dp_fail(err, DP_UNAVAILABLE,
                       "worker %" PRIu32 " has %s before it could give its part \"%s\": see its "
                       "own message",
                       worker, strcmp(state, "failed") == 0 ? "failed" : "been stopped", what);
    uint64_t timeout_ms = job->cluster->training.timeout_ms;
    if (strcmp(state, "reading") == 0) /* it has one thread, which tells nothing while it reads */
        timeout_ms *= DP_PATIENCE_MOST;
    if (now - sign->since_ns > timeout_ms * 1000000u)
        return dp_fail(err, DP_TIMEOUT,
                       "worker %" PRIu32 " has given no sign for %" PRIu64 " ms (its last state: %s) "
                       "and its part \"%s\" is missing: is it running?",
                       worker, timeout_ms, state, what);
    return DP_OK;
}

static bool is_enough(const struct dp_wish *wish)
{
    return wish->enough && wish->enough(wish->context);
}

enum dp_status dp_peers_wait_for(struct dp_job *job, struct dp_progress *progress, const struct dp_wish *wish,
                                 struct dp_note *notes, struct dp_error *err)
{
    uint32_t workers = wish->count, missing = 0, pause_ms = POLL_FIRST;
    struct sign *signs = calloc(workers, sizeof *signs);
    if (!signs)
        return dp_fail(err, DP_NOMEM, "no memory to wait for %" PRIu32 " workers", workers);
    for (uint32_t w = 0; w < workers; w++)
        signs[w].since_ns = dp_clock_ns(&job->clock);
    enum dp_status st;
    while ((st = look(job, wish, notes, &missing, err)) == DP_OK && missing > 0 && !is_enough(wish)) {
        for (uint32_t w = 0; st == DP_OK && w < workers; w++) {
            if (notes[w].bytes)
                continue;
            st = check_sign(job, wish->what, w, &signs[w], err);
            if (st == DP_OK && wish->sign)
                wish->sign(wish->context, &signs[w].note);
        }
        if (st == DP_OK && !is_enough(wish))
            st = pause_between(job, progress, &pause_ms, err);
        if (st != DP_OK)
            break;
    }
    for (uint32_t w = 0; w < workers; w++)
        free(signs[w].note.bytes);
    free(signs);
    return st;
}

static void see_done(void *context, const struct dp_note *progress)
{
    bool *done = context;
    *done |= dp_peers_is_done(progress);
}

static bool is_done(void *context)
{
    const bool *done = context;
    return *done;
}

enum dp_status dp_peers_wait(struct dp_job *job, struct dp_progress *progress, const char *what,
                             struct dp_note *notes, struct dp_error *err)
{
    bool done = false;
    struct dp_wish wish = {.what = what, .count = job->cluster->training.workers};
    if (job->worker != 0) {
        wish.sign = see_done;
        wish.enough = is_done;
        wish.context = &done;
    }
    return dp_peers_wait_for(job, progress, &wish, notes, err);
}

enum dp_status dp_peers_wait_first(struct dp_job *job, struct dp_progress *progress, struct dp_error *err)
{
    struct sign sign = {.since_ns = dp_clock_ns(&job->clock)};
    struct dp_error why = {0};
    uint32_t pause_ms = POLL_FIRST;
    enum dp_status st = DP_OK;
    while (st == DP_OK) {
        enum dp_status first = check_sign(job, "report", 0, &sign, &why);
        if (dp_peers_is_done(&sign.note))
            break;
        if (first == DP_UNAVAILABLE || first == DP_TIMEOUT) {
            dp_log(DP_LOG_WARN, "this worker is done, but there may be no report: %s", why.text);
            break;
        }
        st = first == DP_OK ? pause_between(job, progress, &pause_ms, err)
                            : dp_fail(err, first, "%s", why.text);
    }
    free(sign.note.bytes);
    return st;
}

void dp_peers_clear(struct dp_note *notes, uint32_t workers)
{
    for (uint32_t w = 0; notes && w < workers; w++) {
        free(notes[w].bytes);
        notes[w] = (struct dp_note){0};
    }
}

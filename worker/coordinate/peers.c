#include "worker/coordinate/peers.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/config/consistency.h"
#include "worker/context/retry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP       100u /* stages in one request */
#define STAGE_BYTES (4u * DP_PEERS_KINDS)
#define EPOCH_BYTES 4u
/* Poll interval: starts short, since most notes arrive within milliseconds, and doubles to PAUSE_MS. */
#define PAUSE_FIRST_MS 2u
#define PAUSE_MS       100u
#define TELL_NS        (DP_RETRY_TELL_MS * UINT64_C(1000000))
#define SILENT_NS      UINT64_C(2000000000) /* is told */
#define ASLEEP_NS      UINT64_C(2000000000) /* without a look for so long: this process was suspended */

static const char *const names[DP_PEERS_KINDS] = {[DP_PEERS_ENDED] = "ended",
                                                  [DP_PEERS_PART] = "part",
                                                  [DP_PEERS_TEST] = "test",
                                                  [DP_PEERS_TRAINED] = "trained"};

/* In words: where workers wait for each other. */
static const char *const meetings[DP_PEERS_KINDS] = {
    [DP_PEERS_ENDED] = "the end of an epoch",
    [DP_PEERS_PART] = "the evaluation after an epoch",
    [DP_PEERS_TEST] = "the evaluation of the test set",
    [DP_PEERS_TRAINED] = "the end of the training",
};

/* The last sign of life of one worker. */
struct dp_peers_sign {
    struct dp_shared_note note;
    bool before;        /* it was there when this process began */
    uint64_t since_ns;  /* when it was first seen */
    uint64_t looked_ns; /* when it was last looked at; 0: not yet */
};

static uint32_t workers_of(const struct dp_peers *peers)
{
    return peers->job->cluster->training.workers;
}

static bool is_absent(const void *of, uint32_t worker)
{
    const struct dp_peers *peers = of;
    return peers->absent[worker];
}

enum dp_status dp_peers_open(struct dp_peers *peers, struct dp_job *job, struct dp_progress *progress,
                             struct dp_error *err)
{
    *peers = (struct dp_peers){.job = job, .progress = progress, .pause_ms = PAUSE_FIRST_MS};
    uint32_t workers = workers_of(peers);
    enum dp_status st = DP_OK;
    peers->seen = calloc(workers, sizeof *peers->seen);
    peers->sign = calloc(workers, sizeof *peers->sign);
    if (!peers->seen || !peers->sign)
        return dp_fail(err, DP_NOMEM, "no memory for the notes of %" PRIu32 " workers", workers);
    if (job->cluster->training.work == DP_CLUSTER_LEASED &&
        !(peers->absent = calloc(workers, sizeof *peers->absent)))
        return dp_fail(err, DP_NOMEM, "no memory for the signs of %" PRIu32 " workers", workers);
    if (peers->absent) {
        peers->absence = (struct dp_absence){.is_gone = is_absent, .of = peers};
        job->absence = &peers->absence;
    }
    for (uint32_t w = 0; st == DP_OK && w < workers; w++) {
        struct dp_progress_seen seen;
        struct dp_shared_note *note = &peers->sign[w].note;
        st = w == job->worker ? DP_OK : dp_shared_one(job, "progress", w, note, err);
        dp_progress_read(note, &seen);
        peers->sign[w].before = seen.ended_early;
        if (!seen.ended_early)
            dp_shared_note_clear(note);
    }
    return st;
}

void dp_peers_clear(struct dp_shared_note *notes, uint32_t workers)
{
    for (uint32_t w = 0; notes && w < workers; w++)
        dp_shared_note_clear(&notes[w]);
}

void dp_peers_close(struct dp_peers *peers)
{
    for (uint32_t w = 0; peers->sign && w < workers_of(peers); w++)
        dp_shared_note_clear(&peers->sign[w].note);
    dp_peers_clear(peers->kept, DP_PEERS_KINDS);
    if (peers->absent)
        peers->job->absence = NULL;
    free(peers->absent);
    free(peers->sign);
    free(peers->seen);
    *peers = (struct dp_peers){0};
}

/* ---- this worker's own */

static enum dp_status put_stage(struct dp_peers *peers, uint32_t worker, const struct dp_peers_stage *stage,
                                struct dp_error *err)
{
    unsigned char bytes[STAGE_BYTES];
    char what[32];
    for (size_t k = 0; k < DP_PEERS_KINDS; k++)
        dp_store_u32le(bytes + 4 * k, stage->reached[k]);
    (void)snprintf(what, sizeof what, "stage/%" PRIu32, worker / GROUP);
    return dp_shared_put(peers->job, what, worker, bytes, sizeof bytes, err);
}

static enum dp_status put_kept(struct dp_peers *peers, enum dp_peers_kind kind, struct dp_error *err)
{
    const struct dp_shared_note *kept = &peers->kept[kind];
    return kept->bytes
               ? dp_shared_put(peers->job, names[kind], peers->job->worker, kept->bytes, kept->size, err)
               : DP_OK;
}

enum dp_status dp_peers_reach(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch,
                              const void *bytes, size_t size, struct dp_error *err)
{
    DP_ASSERT(epoch >= peers->own.reached[kind]);
    if (kind != DP_PEERS_ENDED) {
        unsigned char *copy = malloc(EPOCH_BYTES + size);
        if (!copy)
            return dp_fail(err, DP_NOMEM, "no memory for %zu bytes for the other workers", size);
        dp_store_u32le(copy, epoch);
        if (size)
            memcpy(copy + EPOCH_BYTES, bytes, size);
        dp_shared_note_clear(&peers->kept[kind]);
        peers->kept[kind] = (struct dp_shared_note){copy, EPOCH_BYTES + size};
    }
    for (uint32_t w = 0; w < workers_of(peers); w++)
        peers->sign[w].looked_ns = 0; /* a new wait begins: silence counts from now */
    enum dp_status st = put_kept(peers, kind, err);
    peers->own.reached[kind] = epoch;
    return st == DP_OK ? put_stage(peers, peers->job->worker, &peers->own, err) : st;
}

enum dp_status dp_peers_drop(struct dp_peers *peers, enum dp_peers_kind kind, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < workers_of(peers); w++)
        st = dp_shared_put(peers->job, names[kind], w, NULL, 0, err);
    return st;
}

/* ---- those of all */

static void see(void *context, const char *name, const void *bytes, size_t size)
{
    struct dp_peers *peers = context;
    const char *last = strrchr(name, '/');
    unsigned long worker = last ? strtoul(last + 1, NULL, 10) : UINT32_MAX;
    if (worker >= workers_of(peers) || size != STAGE_BYTES)
        return;
    for (size_t k = 0; k < DP_PEERS_KINDS; k++)
        peers->seen[worker].reached[k] = dp_load_u32le((const unsigned char *)bytes + 4 * k);
}

/* Puts this worker's notes again when its stage is older: the server restarted without its notes, a
 * suspended earlier process of this worker wrote over them, or another worker reset the stage because it
 * missed the later note. */
static enum dp_status put_lost(struct dp_peers *peers, struct dp_error *err)
{
    const struct dp_peers_stage *own = &peers->own, *there = &peers->seen[peers->job->worker];
    enum dp_status st = DP_OK;
    bool lost = false;
    for (size_t k = 0; k < DP_PEERS_KINDS; k++)
        lost |= there->reached[k] < own->reached[k];
    for (int k = 0; lost && st == DP_OK && k < DP_PEERS_KINDS; k++)
        st = put_kept(peers, (enum dp_peers_kind)k, err);
    return lost && st == DP_OK ? put_stage(peers, peers->job->worker, own, err) : st;
}

/* All workers that are awaited. */
static bool all_reached(const struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch)
{
    for (uint32_t w = 0; w < workers_of(peers); w++)
        if (peers->seen[w].reached[kind] < epoch && !dp_job_is_gone(peers->job, w))
            return false;
    return true;
}

static bool anybody_is_gone(const struct dp_peers *peers)
{
    for (uint32_t w = 0; w < workers_of(peers); w++)
        if (dp_job_is_gone(peers->job, w))
            return true;
    return false;
}

enum dp_status dp_peers_look(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch, bool *all,
                             struct dp_error *err)
{
    uint32_t workers = workers_of(peers);
    enum dp_status st = DP_OK;
    memset(peers->seen, 0, workers * sizeof *peers->seen);
    st = dp_job_waits(peers->job, err);
    for (uint32_t g = 0; st == DP_OK && g * GROUP < workers; g++) {
        char what[32];
        (void)snprintf(what, sizeof what, "stage/%" PRIu32, g);
        st = dp_shared_list(peers->job, what, see, peers, err);
    }
    if (st == DP_OK)
        st = put_lost(peers, err);
    for (uint32_t w = 0; peers->absent && w < workers; w++)
        if (epoch > 0 && peers->seen[w].reached[kind] >= epoch)
            peers->absent[w] = false; /* it came back */
    *all = st == DP_OK && all_reached(peers, kind, epoch);
    /* Asked after the stages: a worker that comes back later finds all steps of these epochs finished, and begins after them. */
    if (*all && epoch > 0 && anybody_is_gone(peers)) {
        st = dp_job_recheck_gone(peers->job, err);
        *all = st == DP_OK && all_reached(peers, kind, epoch);
    }
    return st;
}

/* ---- waiting for the others */

static bool same(const struct dp_shared_note *a, const struct dp_shared_note *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* For the log and the progress note of this worker. */
static void tell_awaited(struct dp_peers *peers, uint32_t worker, const char *what)
{
    const struct dp_peers_sign *sign = &peers->sign[worker];
    uint64_t silent_ns = sign->looked_ns - sign->since_ns;
    if (silent_ns < SILENT_NS || peers->progress->awaited[0])
        return;
    (void)snprintf(peers->progress->awaited, sizeof peers->progress->awaited,
                   "%s: waiting for worker %" PRIu32 ", which was last heard %" PRIu64 " s ago", what, worker,
                   silent_ns / UINT64_C(1000000000));
    if (peers->progress->awaited_ns != 0 && sign->looked_ns - peers->progress->awaited_ns < TELL_NS)
        return;
    peers->progress->awaited_ns = sign->looked_ns;
    dp_log(DP_LOG_WARN, "%s", peers->progress->awaited);
}

/* Reads the worker's progress note and updates peers->sign[worker]. */
static enum dp_status hear(struct dp_peers *peers, uint32_t worker, struct dp_error *err)
{
    struct dp_peers_sign *sign = &peers->sign[worker];
    struct dp_shared_note note = {0};
    enum dp_status st = dp_shared_one(peers->job, "progress", worker, &note, err);
    if (st != DP_OK)
        return st;
    uint64_t now = dp_clock_ns(&peers->job->clock);
    /* Time in which this process was suspended does not count as silence. */
    if (sign->looked_ns && now - sign->looked_ns > ASLEEP_NS)
        sign->since_ns += now - sign->looked_ns - ASLEEP_NS;
    bool news = !same(&note, &sign->note);
    if (news || !sign->looked_ns)
        sign->since_ns = now;
    sign->before &= !news;
    sign->looked_ns = now;
    dp_shared_note_clear(&sign->note);
    sign->note = note;
    return DP_OK;
}

/* How the others could go on without one that is missing; "" where they do already. */
static const char *remedy_of(const struct dp_peers *peers)
{
    const struct dp_cluster_training *training = &peers->job->cluster->training;
    if (peers->absent || training->worker_timeout > 0)
        return "";
    return dp_cluster_rule_waits(dp_cluster_rule_of(training))
               ? ". With --worker-timeout (training.worker_timeout) the others continue without a missing "
                 "one"
               : ". With --work leased others do the work of one that is missing";
}

static enum dp_status judge_sign(const struct dp_peers *peers, uint32_t worker, const char *what,
                                 struct dp_error *err)
{
    const struct dp_peers_sign *sign = &peers->sign[worker];
    uint64_t timeout_ms = peers->job->cluster->training.timeout_ms;
    struct dp_progress_seen seen;
    dp_progress_read(&sign->note, &seen);
    /* It leaves when it has been silent for so long, however it ended; then it is not waited for any more. */
    bool leaves = dp_job_removes(peers->job) && worker != 0;
    timeout_ms += leaves ? peers->job->cluster->training.worker_timeout * UINT64_C(1000) : 0;
    if (seen.ended_early && !sign->before && !leaves)
        return dp_fail(err, DP_UNAVAILABLE, "worker %" PRIu32 " %s before %s: see its own message", worker,
                       strcmp(seen.state, "failed") == 0 ? "failed" : "was stopped", what);
    /* A worker has one thread, which reports nothing while it reads. */
    if (strcmp(seen.state, "reading") == 0)
        timeout_ms *= DP_RETRY_MOST;
    if (sign->looked_ns - sign->since_ns <= timeout_ms * 1000000u)
        return DP_OK;
    const char *without = remedy_of(peers);
    if (strcmp(seen.state, "none") == 0)
        return dp_fail(err, DP_TIMEOUT,
                       "waited at %s for worker %" PRIu32 ", which has not joined the run for %.4g s "
                       "(--timeout, training.timeout_ms, sets how long): start it, then this one again with "
                       "--resume%s",
                       what, worker, (double)timeout_ms / 1000, without);
    return dp_fail(err, DP_TIMEOUT,
                   "waited at %s for worker %" PRIu32 ", which was last heard %.4g s ago (%s; --timeout, "
                   "training.timeout_ms, sets how long): see whether it hangs, and start both again with "
                   "--resume%s",
                   what, worker, (double)timeout_ms / 1000, seen.state, without);
}

static enum dp_status check_one(struct dp_peers *peers, uint32_t worker, const char *what,
                                struct dp_error *err)
{
    struct dp_error why = {0};
    enum dp_status st = hear(peers, worker, err);
    if (st != DP_OK || dp_job_is_gone(peers->job, worker))
        return st;
    if (!peers->absent || worker == 0)
        return judge_sign(peers, worker, what, err);
    st = judge_sign(peers, worker, what, &why);
    peers->absent[worker] = st != DP_OK;
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "training continues without worker %" PRIu32 "; others do its work: it %s",
               worker,
               st == DP_TIMEOUT ? "has given no sign for as long as --timeout, training.timeout_ms, says"
                                : "failed or was stopped, and its own messages say why");
    return DP_OK;
}

enum dp_status dp_peers_check(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch, uint32_t also,
                              struct dp_error *err)
{
    enum dp_status st = DP_OK;
    peers->progress->awaited[0] = '\0';
    for (uint32_t w = 0; st == DP_OK && w < workers_of(peers); w++) {
        if (w == peers->job->worker || dp_job_is_gone(peers->job, w))
            continue;
        if (w != also && peers->seen[w].reached[kind] >= epoch) {
            peers->sign[w].looked_ns = 0; /* silence counts from when it is waited for */
            continue;
        }
        st = check_one(peers, w, meetings[kind], err);
        if (st == DP_OK && !dp_job_is_gone(peers->job, w))
            tell_awaited(peers, w, meetings[kind]);
    }
    return st;
}

enum dp_status dp_peers_fetch(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch,
                              struct dp_shared_note *notes, bool *all, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *all = true;
    for (uint32_t w = 0; st == DP_OK && w < workers_of(peers); w++) {
        struct dp_shared_note *note = &notes[w];
        st = dp_shared_one(peers->job, names[kind], w, note, err);
        if (st != DP_OK)
            break;
        if (note->size >= EPOCH_BYTES && dp_load_u32le(note->bytes) == epoch) {
            note->size -= EPOCH_BYTES;
            memmove(note->bytes, (unsigned char *)note->bytes + EPOCH_BYTES, note->size);
            continue;
        }
        dp_shared_note_clear(note);
        if (dp_job_is_gone(peers->job, w))
            continue;
        *all = false;
        peers->seen[w].reached[kind] = 0;
        st = put_stage(peers, w, &peers->seen[w], err);
    }
    if (st != DP_OK || !*all)
        dp_peers_clear(notes, workers_of(peers));
    return st;
}

static enum dp_status pause_between(struct dp_peers *peers, struct dp_error *err)
{
    uint32_t ms = peers->pause_ms;
    peers->pause_ms = ms < PAUSE_MS / 2 ? ms * 2 : PAUSE_MS;
    return dp_shared_pause(peers->job, ms, err);
}

static enum dp_status await(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch,
                            struct dp_error *err)
{
    enum dp_status st = DP_OK;
    peers->pause_ms = PAUSE_FIRST_MS;
    for (bool all = false; st == DP_OK;) {
        st = dp_peers_look(peers, kind, epoch, &all, err);
        if (st != DP_OK || all)
            break;
        st = dp_peers_check(peers, kind, epoch, UINT32_MAX, err);
        if (st == DP_OK)
            st = pause_between(peers, err);
    }
    return st;
}

enum dp_status dp_peers_collect(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch,
                                struct dp_shared_note *notes, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (bool all = false; st == DP_OK && !all;) {
        st = await(peers, kind, epoch, err);
        if (st == DP_OK)
            st = dp_peers_fetch(peers, kind, epoch, notes, &all, err);
    }
    return st;
}

enum dp_status dp_peers_wait_first(struct dp_peers *peers, struct dp_error *err)
{
    struct dp_progress_seen seen;
    struct dp_error why = {0};
    enum dp_status st = DP_OK;
    bool all;
    peers->pause_ms = PAUSE_FIRST_MS;
    while ((st = hear(peers, 0, err)) == DP_OK) {
        dp_progress_read(&peers->sign[0].note, &seen);
        if (seen.done)
            break;
        if (judge_sign(peers, 0, "the report", &why) != DP_OK) {
            dp_log(DP_LOG_WARN, "this worker has finished, but the report may be missing: %s", why.text);
            break;
        }
        tell_awaited(peers, 0, "the report");
        st = pause_between(peers, err);
        peers->progress->awaited[0] = '\0';
        if (st == DP_OK) /* puts again what worker 0 may need */
            st = dp_peers_look(peers, DP_PEERS_TRAINED, 0, &all, err);
        if (st != DP_OK)
            break;
    }
    return st;
}

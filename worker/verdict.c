#include "worker/verdict.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "worker/peers.h"

#include <inttypes.h>
#include <stdlib.h>

#define ENDED_BYTES (4 + DP_STOP_BYTES)

static enum dp_status tell_ended(struct dp_verdict *v, uint32_t epoch, struct dp_error *err)
{
    unsigned char bytes[ENDED_BYTES];
    dp_store_u32le(bytes, epoch);
    dp_stop_pack(&v->state, bytes + 4);
    return dp_peers_keep(v->job, "ended", bytes, sizeof bytes, err);
}

/* What is none is ready, so that reading it says so. */
static bool has_ended(const void *epoch, const struct dp_note *note)
{
    return note->size != ENDED_BYTES || dp_load_u32le(note->bytes) >= *(const uint32_t *)epoch;
}

static bool is_judged(const void *epoch, const struct dp_note *note)
{
    struct dp_stop state;
    return dp_stop_unpack(note->bytes, note->size, &state, NULL) != DP_OK ||
           state.epoch >= *(const uint32_t *)epoch;
}

static enum dp_status adopt(struct dp_verdict *v, const void *bytes, size_t size, struct dp_error *err)
{
    struct dp_stop state;
    enum dp_status st = dp_stop_unpack(bytes, size, &state, err);
    if (st == DP_OK && state.epoch > v->state.epoch)
        v->state = state;
    return st;
}

/* Until every worker has pushed all of the epoch. A worker that saw a verdict that this one does not know tells it. */
static enum dp_status wait_ended(struct dp_verdict *v, uint32_t epoch, struct dp_error *err)
{
    uint32_t workers = v->job->cluster->training.workers;
    struct dp_note *notes = calloc(workers, sizeof *notes);
    if (!notes)
        return dp_fail(err, DP_NOMEM, "no memory for the notes of %" PRIu32 " workers", workers);
    enum dp_status st =
        dp_peers_wait_ready(v->job, v->progress, "ended", workers, has_ended, &epoch, notes, err);
    for (uint32_t w = 0; st == DP_OK && w < workers; w++) {
        const unsigned char *bytes = notes[w].bytes;
        st = notes[w].size == ENDED_BYTES ? adopt(v, bytes + 4, DP_STOP_BYTES, err)
                                          : dp_fail(err, DP_DATA, "its note is damaged");
        if (st != DP_OK)
            st = dp_wrap(err, st, "the end of epoch %" PRIu32 " of worker %" PRIu32, epoch, w);
    }
    dp_peers_clear(notes, workers);
    free(notes);
    return st;
}

/* Worker 0's verdict: waits for it, or only looks. */
static enum dp_status hear(struct dp_verdict *v, uint32_t epoch, bool wait, struct dp_error *err)
{
    struct dp_note note = {0};
    enum dp_status st =
        wait ? dp_peers_wait_ready(v->job, v->progress, "verdict", 1, is_judged, &epoch, &note, err)
             : dp_peers_one(v->job, "verdict", 0, &note, err);
    if (st == DP_OK && note.bytes)
        st = adopt(v, note.bytes, note.size, err);
    dp_peers_clear(&note, 1);
    return st;
}

static enum dp_status judge(struct dp_verdict *v, uint32_t epoch, struct dp_figures *figures,
                            struct dp_error *err)
{
    unsigned char bytes[DP_STOP_BYTES];
    enum dp_eval_note found = DP_EVAL_NOT_YET;
    enum dp_status st =
        dp_evaluate_merge(v->job, v->progress, v->data, v->ring, epoch, true, &found, figures, err);
    if (st == DP_OK && found != DP_EVAL_PART)
        st = dp_fail(err, DP_DATA, "parts of the evaluation are no longer on the first server");
    if (st == DP_OK)
        st = dp_stop_judge(&v->rule, &v->state, epoch, figures, err);
    if (st != DP_OK)
        return st;
    dp_stop_pack(&v->state, bytes);
    return dp_peers_keep(v->job, "verdict", bytes, sizeof bytes, err);
}

enum dp_status dp_verdict_epoch(struct dp_verdict *v, uint32_t epoch, bool *known, struct dp_figures *figures,
                                struct dp_error *err)
{
    *known = false;
    dp_progress_enter(v->progress, "waiting");
    enum dp_status st = tell_ended(v, epoch, err);
    if (st == DP_OK)
        st = wait_ended(v, epoch, err);
    if (st == DP_OK && v->state.epoch < epoch)
        st = hear(v, epoch, false, err);
    bool before = v->state.epoch >= epoch;
    if (st == DP_OK && !before)
        st = dp_evaluate_share(v->job, v->progress, v->data, v->ring, epoch, err);
    dp_progress_enter(v->progress, "waiting");
    if (st == DP_OK && !before && v->job->worker == 0) {
        st = judge(v, epoch, figures, err);
        *known = st == DP_OK;
    } else if (st == DP_OK && !before) {
        st = hear(v, epoch, true, err);
    } else if (st == DP_OK && v->job->worker == 0) { /* those who wait for it may have lost it */
        unsigned char bytes[DP_STOP_BYTES];
        dp_stop_pack(&v->state, bytes);
        st = dp_peers_keep(v->job, "verdict", bytes, sizeof bytes, err);
    }
    return st == DP_OK ? tell_ended(v, epoch, err) : dp_wrap(err, st, "the end of epoch %" PRIu32, epoch);
}

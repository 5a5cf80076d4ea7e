#include "worker/verdict.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "worker/peers.h"

#include <inttypes.h>
#include <stdlib.h>

#define ENDED_BYTES (4 + DP_STOP_BYTES)

/* Of notes on the end of an epoch: what is none is not known to be older. */
static bool ended_before(const struct dp_note *there, const struct dp_note *kept)
{
    struct dp_stop a, b;
    if (there->size != ENDED_BYTES ||
        dp_stop_unpack((const char *)there->bytes + 4, DP_STOP_BYTES, &a, NULL) != DP_OK ||
        dp_stop_unpack((const char *)kept->bytes + 4, DP_STOP_BYTES, &b, NULL) != DP_OK)
        return false;
    return dp_load_u32le(there->bytes) < dp_load_u32le(kept->bytes) || a.epoch < b.epoch;
}

static bool judged_before(const struct dp_note *there, const struct dp_note *kept)
{
    struct dp_stop a, b;
    return dp_stop_unpack(there->bytes, there->size, &a, NULL) == DP_OK &&
           dp_stop_unpack(kept->bytes, kept->size, &b, NULL) == DP_OK && a.epoch < b.epoch;
}

static enum dp_status tell_ended(struct dp_verdict *v, uint32_t epoch, struct dp_error *err)
{
    unsigned char bytes[ENDED_BYTES];
    dp_store_u32le(bytes, epoch);
    dp_stop_pack(&v->state, bytes + 4);
    return dp_peers_keep_newest(v->job, "ended", bytes, sizeof bytes, ended_before, err);
}

static enum dp_status tell_verdict(struct dp_verdict *v, struct dp_error *err)
{
    unsigned char bytes[DP_STOP_BYTES];
    dp_stop_pack(&v->state, bytes);
    return dp_peers_keep_newest(v->job, "verdict", bytes, sizeof bytes, judged_before, err);
}

/* ---- what notes say */

static enum dp_status learn_verdict(struct dp_verdict *v, const struct dp_note *note, struct dp_error *err)
{
    struct dp_stop state;
    enum dp_status st = dp_stop_unpack(note->bytes, note->size, &state, err);
    return st == DP_OK ? dp_stop_learn(&v->state, &state, err) : st;
}

static enum dp_status learn_ended(struct dp_verdict *v, const struct dp_note *note, uint32_t *ended,
                                  struct dp_error *err)
{
    const unsigned char *bytes = note->bytes;
    struct dp_stop state;
    if (note->size != ENDED_BYTES)
        return dp_fail(err, DP_DATA, "its note of %zu bytes is damaged", note->size);
    enum dp_status st = dp_stop_unpack(bytes + 4, DP_STOP_BYTES, &state, err);
    if (st != DP_OK)
        return st;
    *ended = dp_load_u32le(bytes);
    st = dp_stop_learn(&v->state, &state, err);
    if (st != DP_OK)
        return st;
    dp_stop_begun(&v->state, *ended);
    return DP_OK;
}

/* Names the worker whose note is none. */
static enum dp_status learn_all_ended(struct dp_verdict *v, const struct dp_note *notes, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    uint32_t ended;
    for (uint32_t w = 0; st == DP_OK && w < v->job->cluster->training.workers; w++)
        if (notes[w].bytes && (st = learn_ended(v, &notes[w], &ended, err)) != DP_OK)
            st = dp_wrap(err, st, "the note of worker %" PRIu32 " on the end of an epoch", w);
    return st;
}

/* ---- waiting for one of them */

struct rest {
    struct dp_verdict *verdict;
    uint32_t epoch;
};

static bool is_known(void *context)
{
    const struct rest *rest = context;
    return rest->verdict->over || rest->verdict->state.epoch >= rest->epoch;
}

/* What is no note, or contradicts what is known, is ready, so that reading it says so. */
static bool has_ended(void *context, const struct dp_note *note)
{
    const struct rest *rest = context;
    uint32_t ended = 0;
    return learn_ended(rest->verdict, note, &ended, NULL) != DP_OK || ended >= rest->epoch;
}

static void see_begun(void *context, const struct dp_note *progress)
{
    const struct rest *rest = context;
    dp_stop_begun(&rest->verdict->state, dp_peers_epoch(progress));
    rest->verdict->over |= dp_peers_is_done(progress);
}

/* Until every worker has pushed all of the epoch, or somebody is found who knows the verdict on it. */
static enum dp_status wait_ended(struct dp_verdict *v, uint32_t epoch, struct dp_error *err)
{
    uint32_t workers = v->job->cluster->training.workers;
    struct rest rest = {.verdict = v, .epoch = epoch};
    const struct dp_wish wish = {.what = "ended",
                                 .count = workers,
                                 .ready = has_ended,
                                 .sign = see_begun,
                                 .enough = is_known,
                                 .context = &rest};
    struct dp_note *notes = calloc(workers, sizeof *notes);
    if (!notes)
        return dp_fail(err, DP_NOMEM, "no memory for the notes of %" PRIu32 " workers", workers);
    enum dp_status st = dp_peers_wait_for(v->job, v->progress, &wish, notes, err);
    if (st == DP_OK)
        st = learn_all_ended(v, notes, err);
    dp_peers_clear(notes, workers);
    free(notes);
    return st;
}

/* Worker 0 tells it behind its end of the epoch too, should the note of it be an older one (peers.h). */
static bool is_judged_or_ended(void *context, const struct dp_note *note)
{
    const struct rest *rest = context;
    struct dp_note ended = {0};
    uint32_t epoch;
    bool damaged = learn_verdict(rest->verdict, note, NULL) != DP_OK;
    if (!damaged && !is_known(context) &&
        dp_peers_one(rest->verdict->job, "ended", 0, &ended, NULL) == DP_OK && ended.bytes)
        (void)learn_ended(rest->verdict, &ended, &epoch, NULL);
    free(ended.bytes);
    return damaged || is_known(context);
}

static enum dp_status wait_verdict(struct dp_verdict *v, uint32_t epoch, struct dp_error *err)
{
    struct rest rest = {.verdict = v, .epoch = epoch};
    const struct dp_wish wish = {.what = "verdict",
                                 .count = 1,
                                 .ready = is_judged_or_ended,
                                 .sign = see_begun,
                                 .enough = is_known,
                                 .context = &rest};
    struct dp_note note = {0};
    enum dp_status st = dp_peers_wait_for(v->job, v->progress, &wish, &note, err);
    if (st == DP_OK && note.bytes)
        st = learn_verdict(v, &note, err);
    dp_peers_clear(&note, 1);
    return st;
}

static enum dp_status judge(struct dp_verdict *v, uint32_t epoch, struct dp_error *err)
{
    struct dp_figures figures;
    struct dp_stop next = v->state;
    enum dp_status st = dp_evaluate_merge(v->job, v->progress, v->data, DP_EVAL_EPOCH, epoch, &figures, err);
    if (st == DP_OK)
        st = dp_stop_judge(&v->rule, &next, epoch, &figures, err);
    if (st != DP_OK)
        return st;
    if (v->rule.patience > 0 && v->state.judged + 1 < epoch)
        dp_log(DP_LOG_WARN,
               "figures of epochs before epoch %" PRIu32
               " went with those who knew them and the first server: patience counts from it",
               epoch);
    if (v->keep && next.best_epoch == epoch && (st = v->keep(v->context, epoch, &next, err)) != DP_OK)
        return st;
    if (v->judged)
        v->judged(v->context, epoch, &figures, &next);
    v->state = next;
    return tell_verdict(v, err);
}

enum dp_status dp_verdict_begin(struct dp_verdict *v, uint32_t ended, uint32_t begun, struct dp_error *err)
{
    uint32_t workers = v->job->cluster->training.workers, missing = 0;
    struct dp_note verdict = {0}, *notes = calloc(workers, sizeof *notes);
    if (!notes)
        return dp_fail(err, DP_NOMEM, "no memory for the notes of %" PRIu32 " workers", workers);
    dp_stop_begun(&v->state, begun);
    enum dp_status st = dp_peers_one(v->job, "verdict", 0, &verdict, err);
    if (st == DP_OK && verdict.bytes)
        st = learn_verdict(v, &verdict, err);
    if (st == DP_OK)
        st = dp_peers_look(v->job, "ended", notes, &missing, err);
    if (st == DP_OK)
        st = learn_all_ended(v, notes, err);
    /* Others may rest at an epoch that this one does not come to any more. */
    if (st == DP_OK && v->job->worker == 0 && v->state.epoch > 0)
        st = tell_verdict(v, err);
    if (st == DP_OK && v->state.epoch > 0)
        st = tell_ended(v, ended, err);
    dp_peers_clear(&verdict, 1);
    dp_peers_clear(notes, workers);
    free(notes);
    return st == DP_OK ? st : dp_wrap(err, st, "what was known of the epochs before");
}

static enum dp_status give_part(struct dp_verdict *v, uint32_t epoch, struct dp_error *err)
{
    enum dp_status st = dp_evaluate_share(v->job, v->progress, v->data, DP_EVAL_EPOCH, epoch, err);
    if (st == DP_OK)
        v->evaluated = epoch;
    dp_progress_enter(v->progress, "waiting");
    return st;
}

enum dp_status dp_verdict_epoch(struct dp_verdict *v, uint32_t epoch, struct dp_error *err)
{
    if (v->state.epoch > epoch)
        return DP_OK;
    bool before = v->state.epoch == epoch;
    dp_progress_enter(v->progress, "waiting");
    enum dp_status st = tell_ended(v, epoch, err);
    if (st == DP_OK && !before)
        st = wait_ended(v, epoch, err);
    before = v->over || v->state.epoch >= epoch;
    if (st == DP_OK && !before) {
        st = give_part(v, epoch, err);
        if (st == DP_OK)
            st = v->job->worker == 0 ? judge(v, epoch, err) : wait_verdict(v, epoch, err);
    } else if (st == DP_OK && !v->over && v->job->worker == 0) { /* those who wait for it may have lost it */
        st = tell_verdict(v, err);
    }
    return st == DP_OK ? tell_ended(v, epoch, err) : dp_wrap(err, st, "the end of epoch %" PRIu32, epoch);
}

enum dp_status dp_verdict_finish(struct dp_verdict *v, uint32_t epoch, bool known, struct dp_error *err)
{
    struct dp_figures figures;
    enum dp_status st = DP_OK;
    if (v->over)
        return DP_OK;
    if (v->evaluated != epoch)
        st = give_part(v, epoch, err);
    if (st != DP_OK || v->job->worker != 0 || known)
        return st;
    st = dp_evaluate_merge(v->job, v->progress, v->data, DP_EVAL_EPOCH, epoch, &figures, err);
    if (st == DP_OK && v->judged)
        v->judged(v->context, epoch, &figures, NULL);
    return st;
}

#include "server/shard/cut_requests.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "server/shard/requests.h"

#include <inttypes.h>
#include <stdlib.h>

#define REST_MS     200u
#define LACKING_MAX 4096u /* looked at for one answer; all after them count as lacking */

static bool is_under_way(const struct dp_cut_requests *r)
{
    return r->stage != DP_CHECKPOINT_NONE && r->stage != DP_CHECKPOINT_ABANDONED;
}

bool dp_cut_requests_is_busy(const struct dp_cut_requests *r)
{
    return r->job && !r->job_ended;
}

static void check(const struct dp_cut_requests *r)
{
    bool has_cut = r->stage == DP_CHECKPOINT_IS_CUT || r->stage == DP_CHECKPOINT_WAITING ||
                   r->stage == DP_CHECKPOINT_COPYING;
    DP_ASSERT(!has_cut || (dp_cut_is_made(r->cut) && r->cut->number == r->number));
    DP_ASSERT(r->stage != DP_CHECKPOINT_COPYING || dp_cut_requests_is_busy(r));
    DP_ASSERT(r->stage != DP_CHECKPOINT_COPIED || (r->job && r->job_ended));
    DP_ASSERT(r->found <= r->missing_count);
}

/* ---- how an order ends */

static void free_pushes(struct dp_cut_requests *r)
{
    free(r->missing);
    r->missing = NULL;
    r->missing_count = r->found = 0;
}

/* The order needs no cut, or is over: what it holds goes, unless the copier still reads it. */
static void let_go(struct dp_cut_requests *r)
{
    if (r->stage == DP_CHECKPOINT_COPIED)
        dp_cut_drop(r->cut); /* the copy has all of it */
    if (is_under_way(r))
        return;
    free_pushes(r);
    r->has_until = false;
    if (dp_cut_requests_is_busy(r)) {
        r->copier->cancel(r->copier->self, r->job);
        return;
    }
    dp_copy_job_free(&r->job);
    r->job_ended = false;
    dp_cut_drop(r->cut);
}

static void checkpoint_put(void *context, struct dp_io_job *job)
{
    const struct dp_cut_requests *r = context;
    if (job->store.status != DP_OK)
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": its store does not name its last checkpoint: %s",
               r->base->index, job->store.error.text);
    dp_io_job_free(job);
}

/* For the day on which the store is lost. Where the store is busy it names an earlier one. */
static void note_made(struct dp_cut_requests *r)
{
    char name[DP_CHECKPOINT_DIRECTORY_MAX + 32];
    if (r->made == 0)
        return;
    (void)snprintf(name, sizeof name, "%s/checkpoint-%06" PRIu32, r->directory, r->made);
    r->made = 0;
    (void)dp_io_jobs_put(r->write_back->jobs, DP_STORE_MARK_CHECKPOINT, name, strlen(name), checkpoint_put,
                         r);
}

static void give_up(struct dp_cut_requests *r, const struct dp_error *why)
{
    DP_ASSERT(is_under_way(r) && why->status != DP_OK);
    r->why = *why;
    r->stage = DP_CHECKPOINT_ABANDONED;
    dp_log(DP_LOG_WARN, "shard %" PRIu32 " gives up its part of checkpoint order %016" PRIx64 ": %s",
           r->base->index, r->order, why->text);
}

/* Why the order cannot go on; DP_OK: it can. */
static enum dp_status look_for_end(const struct dp_cut_requests *r, bool draining, struct dp_error *why)
{
    const struct dp_error *full = dp_write_back_refuses(r->write_back);
    if (draining)
        return dp_fail(why, DP_STOPPING, "its server shuts down");
    if (r->journaling->failed.status != DP_OK)
        full = &r->journaling->failed;
    if (full)
        return dp_fail(why, full->status, "%s", full->text);
    if (dp_journaling_lacks_segment(r->journaling))
        return dp_fail(why, DP_FULL, "the disk has no space for its journal");
    if (dp_journaling_hold_fills(r->journaling))
        return dp_fail(why, DP_FULL,
                       "its journal would get full: raise journal_bytes in the cluster file, or copy faster");
    if (r->cut->failed.status != DP_OK)
        return dp_fail(why, r->cut->failed.status, "%s", r->cut->failed.text);
    if (r->stage == DP_CHECKPOINT_WAITING && dp_mode_of(r->cut->mode)->by_step &&
        r->cut->run != r->steps->view.run)
        return dp_fail(why, DP_AGAIN,
                       "run %" PRIu32 " began before the steps of run %" PRIu32 " were closed here",
                       r->steps->view.run, r->cut->run);
    if (dp_shard_now(r->base) - r->heard_ns > DP_CUT_SILENT_NS)
        return dp_fail(why, DP_TIMEOUT, "no request about it came for 60 s");
    return DP_OK;
}

/* ---- waiting for what other shards have */

static bool is_here(const struct dp_cut_requests *r, const struct dp_copy_push *push)
{
    enum dp_status ignored;
    enum dp_push_seen seen = dp_push_ids_look(r->write_back->ids, push->stream, push->number, &ignored);
    return seen != DP_PUSH_NEW && seen != DP_PUSH_ABOVE;
}

/* Another shard may have steps of a run that this one did not know yet when it was cut. */
static bool is_sync(const struct dp_cut_requests *r)
{
    return dp_mode_of(r->cut->mode)->by_step || r->step > 0;
}

static bool has_steps(const struct dp_cut_requests *r)
{
    return !is_sync(r) || (dp_steps_is_by_step(r->steps) && r->steps->open >= r->step);
}

static void pass_found(struct dp_cut_requests *r)
{
    while (r->found < r->missing_count && is_here(r, &r->missing[r->found]))
        r->found++;
}

/* All that is asked for is durable once the journal of the turn in which it was seen is. */
static void look_for_missing(struct dp_cut_requests *r)
{
    pass_found(r);
    if (r->found < r->missing_count || !has_steps(r) || r->has_until)
        return;
    r->has_until = true;
    r->until = r->journaling->lsn;
}

static uint32_t count_lacking(const struct dp_cut_requests *r)
{
    uint32_t lacking = 0, at = r->found;
    for (; at < r->missing_count && at - r->found < LACKING_MAX; at++)
        lacking += !is_here(r, &r->missing[at]);
    return lacking + (r->missing_count - at);
}

static void start_copy(struct dp_cut_requests *r)
{
    struct dp_copy_job *job = dp_copy_job_new();
    if (!job)
        return; /* in a later turn */
    job->owner = r;
    job->order = r->order;
    job->cut = r->cut->number;
    (void)snprintf(job->directory, sizeof job->directory, "%s", r->directory);
    job->shard = r->base->index;
    job->shards = r->base->shards;
    job->store = r->store;
    job->lsn = r->cut->lsn;
    job->after = r->cut->after;
    job->until = r->until;
    job->has_sync = is_sync(r);
    job->run = r->steps->view.run;
    job->step = r->step;
    job->missing = r->missing;
    job->missing_count = r->missing_count;
    job->full = r->full;
    job->link = r->link;
    job->rate_bytes = r->rate;
    r->missing = NULL;
    r->missing_count = r->found = 0;
    r->job = job;
    r->job_ended = false;
    r->stage = DP_CHECKPOINT_COPYING;
    DP_ASSERT(job->after <= job->lsn && job->lsn <= job->until && job->until <= r->journaling->durable);
    r->copier->submit(r->copier->self, job);
}

/* ---- turns */

static void take_back_job(struct dp_cut_requests *r)
{
    struct dp_copy_job *job = dp_cut_requests_is_busy(r) ? r->copier->completed(r->copier->self) : NULL;
    for (; job && job != r->job; job = r->copier->completed(r->copier->self))
        dp_copy_job_free(&job); /* of a shard that was closed while it was copied */
    if (!job)
        return;
    r->job_ended = true;
    if (r->stage == DP_CHECKPOINT_COPYING && job->status != DP_OK) {
        struct dp_error why = job->error;
        give_up(r, &why);
    } else if (r->stage == DP_CHECKPOINT_COPYING) {
        r->stage = DP_CHECKPOINT_COPIED;
        dp_cut_let_journal_go(r->cut);
    }
}

/* A copy takes long, its tail does not. One that was given up and does not end, as its disk hangs, must not fill the journal. */
static void let_journal_go(struct dp_cut_requests *r)
{
    bool is_idle = r->stage != DP_CHECKPOINT_COPYING && dp_journaling_hold_fills(r->journaling);
    if (dp_cut_requests_is_busy(r) && (is_idle || atomic_load(&r->job->has_tail)))
        dp_cut_let_journal_go(r->cut);
}

static void cut_now(struct dp_cut_requests *r)
{
    struct dp_counters *counters = &r->base->counters;
    uint64_t began_ns = dp_shard_now(r->base);
    if (r->cut->number != r->number) {
        if (dp_cut_take(r->cut, r->order, r->number) != DP_OK)
            return; /* in a later turn */
        uint64_t ns = dp_shard_now(r->base) - began_ns;
        DP_COUNT(counters, checkpoint_cuts, 1);
        DP_COUNT_MAX(counters, checkpoint_cut_ns_max, ns);
    }
    if (dp_cut_is_made(r->cut))
        r->stage = DP_CHECKPOINT_IS_CUT;
}

void dp_cut_requests_turn(struct dp_cut_requests *r, bool draining)
{
    struct dp_error why = {0};
    take_back_job(r);
    let_journal_go(r); /* before a journal that fills ends the order, and again if it was given up */
    if (is_under_way(r) && look_for_end(r, draining, &why) != DP_OK)
        give_up(r, &why);
    let_journal_go(r);
    note_made(r);
    let_go(r);
    if (r->stage == DP_CHECKPOINT_PREPARING && dp_write_back_is_past(r->write_back, r->begin_lsn))
        r->stage = DP_CHECKPOINT_PREPARED;
    if (r->stage == DP_CHECKPOINT_CUTTING)
        cut_now(r);
    if (r->stage == DP_CHECKPOINT_WAITING)
        look_for_missing(r);
    if (r->stage == DP_CHECKPOINT_WAITING && r->has_until && r->journaling->durable >= r->until)
        start_copy(r);
    check(r);
}

uint32_t dp_cut_requests_rest_ms(const struct dp_cut_requests *r)
{
    return is_under_way(r) || r->cut->number > 0 ? REST_MS : UINT32_MAX;
}

void dp_cut_requests_clear(struct dp_cut_requests *r)
{
    free_pushes(r);
    if (dp_cut_requests_is_busy(r)) { /* it stays the copier's */
        r->copier->cancel(r->copier->self, r->job);
        r->job = NULL;
    }
    dp_copy_job_free(&r->job);
}

/* ---- requests */

static enum dp_status check_begin(const struct dp_cut_requests *r, const struct dp_checkpoint_ask *ask,
                                  struct dp_error *err)
{
    uint32_t index = r->base->index;
    if (r->read_only)
        return dp_fail(err, DP_UNSUPPORTED,
                       "shard %" PRIu32 " serves its store read-only: start its server without --read-only",
                       index);
    if (!r->journaling->journal)
        return dp_fail(
            err, DP_UNSUPPORTED,
            "shard %" PRIu32
            " has no journal (durability none), which a checkpoint is made from: stop the servers, "
            "set durability to process or machine in the cluster file, and start them again",
            index);
    if (!r->copier)
        return dp_fail(err, DP_UNSUPPORTED,
                       "shard %" PRIu32 " cannot take part in a checkpoint: its server has no copier", index);
    if (is_under_way(r))
        return dp_fail(err, DP_IN_USE,
                       "shard %" PRIu32 " takes part in checkpoint order %016" PRIx64 " since %" PRIu64
                       " s; order %016" PRIx64 " has to wait for its end",
                       index, r->order, (dp_shard_now(r->base) - r->began_ns) / 1000000000u, ask->order);
    if (r->job || r->cut->number > 0) /* until the next turn at least */
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                            "shard %" PRIu32 " is ending checkpoint order %016" PRIx64, index, r->order);
    return DP_OK;
}

static enum dp_status begin(struct dp_cut_requests *r, const struct dp_checkpoint_ask *ask,
                            struct dp_error *err)
{
    if (r->order == ask->order && r->stage != DP_CHECKPOINT_NONE)
        return DP_OK; /* sent again */
    enum dp_status st = check_begin(r, ask, err);
    if (st != DP_OK)
        return st;
    r->order = ask->order;
    r->stage = DP_CHECKPOINT_PREPARING;
    r->began_ns = dp_shard_now(r->base);
    r->begin_lsn = r->journaling->lsn;
    r->number = 0;
    r->full = ask->full;
    r->link = ask->link;
    r->rate = ask->rate;
    memcpy(r->directory, ask->directory, sizeof r->directory);
    r->why = (struct dp_error){0};
    dp_write_back_wish(r->write_back);
    return DP_OK;
}

static enum dp_status unknown(const struct dp_cut_requests *r, const struct dp_checkpoint_ask *ask,
                              struct dp_error *err)
{
    return dp_fail(err, DP_NOT_FOUND,
                   "shard %" PRIu32 " does not know the checkpoint order %016" PRIx64
                   ": was its server started again?",
                   r->base->index, ask->order);
}

static enum dp_status cut(struct dp_cut_requests *r, const struct dp_checkpoint_ask *ask,
                          struct dp_error *err)
{
    bool may = r->stage >= DP_CHECKPOINT_PREPARING && r->stage <= DP_CHECKPOINT_IS_CUT;
    if (r->stage == DP_CHECKPOINT_NONE)
        return unknown(r, ask, err);
    if (!may || ask->cut <= r->number) /* sent again */
        return DP_OK;
    r->number = ask->cut;
    r->stage = DP_CHECKPOINT_CUTTING; /* in the next turn */
    return DP_OK;
}

/* Sent a second time with fewer pushes, the others are not waited for any longer. The list only shrinks: an earlier request that comes late
 * changes nothing. */
static enum dp_status finish(struct dp_cut_requests *r, const struct dp_checkpoint_ask *ask,
                             struct dp_error *err)
{
    bool waits = r->stage == DP_CHECKPOINT_WAITING;
    if (r->stage == DP_CHECKPOINT_NONE)
        return unknown(r, ask, err);
    if (r->stage > DP_CHECKPOINT_WAITING || (waits && ask->missing >= r->missing_count))
        return DP_OK; /* sent again */
    if (r->stage < DP_CHECKPOINT_IS_CUT || ask->cut != r->number)
        return dp_fail(err, DP_INVALID,
                       "cut %" PRIu32 " cannot be finished: shard %" PRIu32 " has cut %" PRIu32
                       " in stage %d",
                       ask->cut, r->base->index, r->number, (int)r->stage);
    struct dp_copy_push *missing = calloc(ask->missing + 1u, sizeof missing[0]);
    if (!missing)
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": no memory for %" PRIu32 " missing pushes",
                       r->base->index, ask->missing);
    const char *at = ask->pushes;
    for (uint32_t i = 0; i < ask->missing; i++, at += 16)
        missing[i] = (struct dp_copy_push){dp_load_u64le(at), dp_load_u64le(at + 8)};
    free_pushes(r);
    r->missing = missing;
    r->missing_count = ask->missing;
    pass_found(r);
    r->has_until = waits && r->has_until;
    r->step = ask->step;
    r->stage = DP_CHECKPOINT_WAITING;
    return DP_OK;
}

static void tell_cut(const struct dp_cut_requests *r, struct dp_checkpoint_state *state)
{
    const struct dp_copy_job *job = r->job;
    state->cut = r->number;
    if (r->stage >= DP_CHECKPOINT_IS_CUT && r->stage <= DP_CHECKPOINT_COPYING) {
        state->lsn = r->cut->lsn;
        state->after = r->cut->after;
        state->mode = r->cut->mode;
        state->run = r->cut->run;
        state->open = r->cut->open;
    }
    if (job) {
        state->done_bytes = atomic_load(&job->done_bytes);
        state->all_bytes = atomic_load(&job->all_bytes);
    }
    if (r->stage == DP_CHECKPOINT_WAITING && r->found < r->missing_count) {
        state->lacking = count_lacking(r);
        state->lack_stream = r->missing[r->found].stream;
        state->lack_number = r->missing[r->found].number;
    }
}

static bool tell_frames(const struct dp_cut_requests *r, struct dp_frame frame[2])
{
    if (r->stage == DP_CHECKPOINT_IS_CUT) {
        frame[0] = dp_frame_copy(r->cut->ids_bytes, r->cut->ids_size);
        frame[1] = dp_frame_copy(r->cut->steps_bytes, r->cut->steps_size);
    } else if (r->stage == DP_CHECKPOINT_COPIED) {
        frame[0] = dp_frame_copy(r->job->manifest, strlen(r->job->manifest));
    }
    bool may_lack = r->stage != DP_CHECKPOINT_IS_CUT || r->cut->steps_size == 0;
    bool there = dp_checkpoint_frames(r->stage) == 0 || (frame[0].data && (frame[1].data || may_lack));
    for (uint32_t i = 0; !there && i < 2; i++)
        dp_frame_release(&frame[i]);
    return there;
}

/* order: the one that was asked about. Of another one than the last nothing is known. */
static enum dp_status answer(const struct dp_cut_requests *r, const struct dp_waiting *waiting,
                             struct dp_error *err)
{
    struct dp_asker to = dp_asker_of(waiting);
    struct dp_frame frame[2] = {{0}, {0}};
    struct dp_reply reply = {.kind = DP_REPLY_CHECKPOINT};
    struct dp_checkpoint_state *state = &reply.checkpoint;
    to.sequence = 0;
    if (waiting->request.checkpoint.order == r->order && r->stage != DP_CHECKPOINT_NONE) {
        state->stage = r->stage;
        state->order = r->order;
        if (r->stage != DP_CHECKPOINT_ABANDONED)
            tell_cut(r, state);
        (void)snprintf(state->why, sizeof state->why, "%s", r->why.text);
        state->why_status = (uint32_t)r->why.status;
        if (!tell_frames(r, frame))
            return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": no memory for an answer", r->base->index);
    }
    dp_replies_send(r->replies, &to, &reply, frame, dp_checkpoint_frames(state->stage));
    return DP_OK;
}

void dp_cut_requests_do(struct dp_cut_requests *r, const struct dp_waiting *waiting, bool draining,
                        struct dp_error *err)
{
    const struct dp_checkpoint_ask *ask = &waiting->request.checkpoint;
    bool known = ask->order == r->order && r->stage != DP_CHECKPOINT_NONE;
    enum dp_status st = DP_OK;
    if (known)
        r->heard_ns = dp_shard_now(r->base);
    switch (ask->action) {
    case DP_CHECKPOINT_BEGIN:
        st = draining ? dp_replies_stopping(r->replies, err) : begin(r, ask, err);
        r->heard_ns = st == DP_OK ? dp_shard_now(r->base) : r->heard_ns;
        break;
    case DP_CHECKPOINT_CUT:
        st = known ? cut(r, ask, err) : unknown(r, ask, err);
        break;
    case DP_CHECKPOINT_FINISH:
        st = known ? finish(r, ask, err) : unknown(r, ask, err);
        break;
    case DP_CHECKPOINT_END:
    case DP_CHECKPOINT_ABANDON:
        if (known && dp_cut_requests_is_busy(r)) /* at once: its files may be removed after the answer */
            r->copier->cancel(r->copier->self, r->job);
        if (known) {
            r->stage = DP_CHECKPOINT_NONE; /* the turn lets go what it holds */
            r->made = draining ? 0 : ask->number;
        }
        break;
    case DP_CHECKPOINT_LOOK:
        break;
    }
    if (st == DP_OK)
        (void)answer(r, waiting, err);
    check(r);
}

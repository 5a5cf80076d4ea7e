/* View requests: a client hands a shard the view that the shard lacks.
 *     view_put -> it is one of this run, or of a later one -> journaled -> acted on -> AGAIN, until the record is durable
 *     -> answered with the number acted on, and to a member that returns, with whether it takes part here
 * Promise   A shard acts on the newest view that it was given. An older view of the same run changes
 *           nothing, and is answered with the newer number. A view that cannot be of the same run, or is of
 *           an older run, is refused. So is an impossible run number (as for pushes: admission.h) or view
 *           number. Otherwise one peer's random bytes would shut out all later runs and views. After the
 *           answer no crash undoes the view. A process that has joined asks where to continue, and no
 *           request of the process before it is accepted any more. Requests that name the view proceed at
 *           once: their changes follow the view in the journal. */
#include "server/shard/requests.h"
#include "server/shard/shard_state.h"

#include "common/base/log.h"
#include "common/model/stream.h"

#include <inttypes.h>

#define JUMP_MAX (UINT64_C(1) << 20)

static void say_begins(const struct dp_shard *shard)
{
    const struct dp_view *view = &shard->steps.view;
    char mode[DP_MODE_TEXT_BYTES];
    dp_mode_text(view->mode, view->slack, mode);
    dp_log(DP_LOG_INFO,
           "shard %" PRIu32 ": run %" PRIu32 " begins at step %" PRIu64 " with %" PRIu32 " members, %s",
           shard->base.index, view->run, view->first_step, view->members, mode);
}

/* Of one that was heard a moment ago it is likely that it still runs: then somebody started the worker twice. */
static void say_replaced(const struct dp_shard *shard, const struct dp_view *view)
{
    const struct dp_steps *steps = &shard->steps;
    uint64_t now_ns = dp_shard_now(&shard->base);
    for (uint32_t rank = 0; rank < view->members; rank++) {
        uint64_t before = steps->view.member[rank].incarnation;
        if (before == 0 || before == view->member[rank].incarnation)
            continue;
        dp_log(DP_LOG_INFO,
               "shard %" PRIu32 ": run %" PRIu32 ": another process joined as worker %" PRIu32
               "; the one before was last heard %.1f s ago, and ends if it still runs",
               shard->base.index, view->run, rank, (double)(now_ns - steps->heard_ns[rank]) / 1e9);
    }
}

/* Said once: as the view is acted on. */
static void say_returned(const struct dp_shard *shard, uint32_t rank)
{
    const struct dp_steps *steps = &shard->steps;
    const struct dp_view *view = &steps->view;
    if (dp_steps_has_begun(steps, rank))
        dp_log(DP_LOG_INFO,
               "shard %" PRIu32 ": run %" PRIu32 ": worker %" PRIu32 " takes part again, from step %" PRIu64
               " on",
               shard->base.index, view->run, rank, view->member[rank].from);
    else
        dp_log(DP_LOG_INFO,
               "shard %" PRIu32 ": run %" PRIu32 ": worker %" PRIu32 " is to take part from step %" PRIu64
               " on, which is over here: it has to join from a later one",
               shard->base.index, view->run, rank, view->member[rank].from);
}

static enum dp_status append(struct dp_shard *shard, const struct dp_request *request, struct dp_error *err)
{
    const struct dp_record record = {
        .kind = DP_RECORD_VIEW, .bytes = request->note, .size = request->note_bytes};
    enum dp_appended appended = dp_journaling_append(&shard->journaling, &record, NULL, err);
    if (appended == DP_APPEND_BEHIND)
        err->status = DP_AGAIN;
    DP_ASSERT((appended == DP_APPENDED) == (err->status == DP_OK));
    return err->status;
}

/* A join or leave is one number. */
static enum dp_status check_reach(const struct dp_shard *shard, const struct dp_view *view,
                                  struct dp_error *err)
{
    const struct dp_view *own = &shard->steps.view;
    uint64_t known = view->run == own->run ? own->number : 0;
    if (view->run > DP_RUN_MAX)
        return dp_fail(err, DP_INVALID, "view of run %" PRIu32 ": runs end at %u", view->run, DP_RUN_MAX);
    if (view->number > known && view->number - known > JUMP_MAX)
        return dp_fail(err, DP_INVALID,
                       "view %" PRIu64 " of run %" PRIu32 ": the last one known here is %" PRIu64
                       ", and no process can have made more than %" PRIu64 " since",
                       view->number, view->run, known, JUMP_MAX);
    return view->run > own->run ? dp_admission_check(&shard->admission, dp_stream_of_run(view->run, 0), err)
                                : DP_OK;
}

/* Takes the view over. */
static void take(struct dp_shard *shard, struct dp_view *view, enum dp_view_news news)
{
    bool returns[DP_MEMBERS_MAX] = {false};
    for (uint32_t rank = 0; news == DP_VIEW_NEWER && rank < view->members; rank++)
        returns[rank] = view->member[rank].from > shard->steps.view.member[rank].from;
    if (news == DP_VIEW_NEWER)
        say_replaced(shard, view);
    dp_steps_take(&shard->steps, view, dp_shard_now(&shard->base));
    if (news == DP_VIEW_NEW_RUN)
        say_begins(shard);
    for (uint32_t rank = 0; rank < shard->steps.view.members; rank++)
        if (returns[rank])
            say_returned(shard, rank);
    dp_close_view(&shard->close);
}

/* Takes the view over where it acts on it. */
static enum dp_status act(struct dp_shard *shard, const struct dp_request *request, struct dp_view *view,
                          struct dp_error *err)
{
    enum dp_view_news news = dp_steps_look(&shard->steps, view, err);
    if (news == DP_VIEW_REFUSED)
        return err->status;
    if (news == DP_VIEW_KNOWN)
        return DP_OK;
    if (check_reach(shard, view, err) != DP_OK)
        return err->status;
    if (dp_close_is_hidden(&shard->close) || (news == DP_VIEW_NEW_RUN && dp_close_is_coming(&shard->close)))
        return dp_close_say(&shard->close, err);
    if (dp_mode_of(view->mode)->by_step && !shard->journaling.journal)
        return dp_fail(err, DP_UNSUPPORTED,
                       "shard %" PRIu32 " has no journal, which keeps the pushes of synchronous steps: set "
                       "durability to machine or process",
                       shard->base.index);
    if (append(shard, request, err) != DP_OK)
        return err->status;
    take(shard, view, news);
    return DP_OK;
}

static bool is_durable(const struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_journaling *j = &shard->journaling;
    if (j->view_lsn <= j->durable)
        return true;
    if (!dp_journaling_lost(j, err))
        (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_DISK},
                           "shard %" PRIu32 " makes view %" PRIu64 " of run %" PRIu32 " durable",
                           shard->base.index, shard->steps.view.number, shard->steps.view.run);
    return false;
}

void dp_shard_put_view(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_view view;
    enum dp_status st = dp_view_unpack(request->note, request->note_bytes, &view, err);
    if (st == DP_OK && request->returns && request->rank >= view.members)
        st = dp_fail(err, DP_INVALID, "view: worker %" PRIu32 " asks, of %" PRIu32 " members", request->rank,
                     view.members);
    if (st == DP_OK)
        st = act(shard, request, &view, err);
    dp_view_clear(&view);
    if (st != DP_OK)
        return;
    if (!is_durable(shard, err))
        return;
    if (request->returns && dp_steps_check_left(&shard->steps, request->rank, err) != DP_OK)
        return;
    struct dp_reply reply = {.kind = DP_REPLY_VIEW, .version = shard->steps.view.number};
    if (request->returns) {
        reply.begun = dp_steps_has_begun(&shard->steps, request->rank);
        reply.begin = dp_steps_begin(&shard->steps);
    }
    struct dp_asker to = dp_asker_of(waiting);
    dp_replies_send(&shard->replies, &to, &reply, NULL, 0);
}

/* Pull: rows of a request into one frame a section.
 *     would the answer be sent? -> find the rows (misses.c) -> gather, a few rows ahead of the memory -> answer
 * A key without a row anywhere has its initial value: computed, not stored.
 * The consistency mode is asked first (server/modes): it may let the pull wait, or give it the weights of an earlier step. A pull of a
 * member that it holds leaves its session's order (blocked_pulls.h).
 * A pull that waits is tried again from the top; its sections are checked once (waiting->checked).
 * Unread    If its client, or all clients together, left too much unread, the answer would be dropped. Then
 *           the pull is parked (UNREAD) before the search for its rows. It is tried again when a client
 *           reads. A waiting pull holds its keys only; a waiting answer would hold its rows, and the bound
 *           on unread bytes is one on memory. If more than half of the places for requests, or of their
 *           bytes, are taken, such a pull is answered AGAIN. So the other half remains for clients that
 *           read. A client that reads nothing loses its connection (net/guard.h). */
#include "server/modes/step_rules.h"
#include "server/shard/requests.h"
#include "server/shard/sections.h"
#include "server/shard/shard_state.h"

#include "server/cache/gather.h"

#include <inttypes.h>

/* What a peer asks for must fit into one answer. */
static enum dp_status check_size(struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    const struct dp_lookup *lookup = &waiting->lookup;
    uint64_t sum = 0;
    for (uint32_t s = 0; s < request->sections; s++) {
        uint64_t bytes = (uint64_t)request->section[s].rows * lookup->section[s].table->spec.dim *
                         dp_value_bytes(request->section[s].type);
        sum += bytes;
        if (bytes > DP_FRAME_BYTES_MAX || sum > DP_MESSAGE_BYTES_MAX)
            return dp_fail(err, DP_INVALID,
                           "pull of %" PRIu32
                           " rows of table '%s': the answer would be over %u bytes a table or %u in "
                           "all; ask for fewer rows at once",
                           request->section[s].rows, lookup->section[s].table->spec.name, DP_FRAME_BYTES_MAX,
                           DP_MESSAGE_BYTES_MAX);
    }
    waiting->answer_bytes = sum;
    return DP_OK;
}

/* ---- clients that do not read */

static bool may_answer(const struct dp_shard *shard, const struct dp_waiting *pull)
{
    const struct dp_shard_options *o = &shard->options;
    return pull->answer_bytes == 0 || !o->may_reply ||
           o->may_reply(o->reply_context, &pull->peer, pull->answer_bytes);
}

static bool is_crowded(const struct dp_shard *shard)
{
    return shard->schedule.requests > shard->options.requests_max / 2 ||
           shard->schedule.bytes > DP_SHARD_WAITING_MAX / 2;
}

void dp_shard_wake_unread(struct dp_shard *shard)
{
    bool all = shard->draining || is_crowded(shard);
    for (struct dp_session *session = dp_schedule_first(&shard->schedule, DP_WAIT_UNREAD); session;
         session = session->next_waiting)
        if (session->parked && (all || may_answer(shard, session->first)))
            dp_schedule_wake(&shard->schedule, session);
}

/* Whether it must wait: for its client to read, or for its rows, which are in misses.rows where it need not. Refused: why in err. */
static bool must_wait(struct dp_shard *shard, struct dp_waiting *waiting, struct dp_error *err)
{
    if (may_answer(shard, waiting))
        return dp_sections_wait(&shard->misses, &shard->schedule, waiting, err);
    waiting->waits_for = DP_WAIT_UNREAD;
    if (shard->draining)
        (void)dp_replies_stopping(&shard->replies, err);
    else if (is_crowded(shard))
        (void)dp_fail_wait(
            err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_UNREAD, .total = waiting->answer_bytes},
            "shard %" PRIu32 ": earlier answers have not been read, and %" PRIu32 " requests wait already",
            shard->base.index, shard->schedule.requests);
    return err->status == DP_OK;
}

/* ---- */

static uint32_t held_ms(const struct dp_waiting *waiting)
{
    uint64_t ms = waiting->held_ns / 1000000u;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* What the consistency mode says to the pull. REFUSED: why in err. */
static enum dp_step_verdict ask_rules(struct dp_shard *shard, struct dp_waiting *waiting,
                                      struct dp_error *err)
{
    const struct dp_membership *member = &waiting->request.member;
    const struct dp_step_rules *rules = dp_step_rules_of(&shard->steps);
    if (member->given &&
        dp_steps_admit(&shard->steps, member, !waiting->checked, dp_shard_now(&shard->base), err) != DP_OK)
        return DP_STEP_REFUSED;
    if (rules->may_pull)
        return rules->may_pull(shard, waiting, err);
    return member->given ? dp_step_rules_pull(&shard->steps, member, err) : DP_STEP_GO;
}

enum dp_done dp_shard_pull(struct dp_shard *shard, struct dp_waiting *waiting, struct dp_shard_answer *answer,
                           struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_frame *frames = answer->frame;
    const struct dp_step_rules *rules = dp_step_rules_of(&shard->steps);
    enum dp_step_verdict verdict = ask_rules(shard, waiting, err);
    if (verdict == DP_STEP_WAIT)
        return DP_DONE_WAIT;
    enum dp_status st = err->status;
    if (st == DP_OK && !waiting->checked)
        st = dp_sections_check(&shard->base, &shard->tables, waiting, err);
    if (st == DP_OK && !waiting->checked)
        st = check_size(waiting, err);
    waiting->checked = st == DP_OK;
    if (st == DP_OK && verdict == DP_STEP_HELD)
        return DP_DONE_HELD;
    if (st == DP_OK && must_wait(shard, waiting, err))
        return DP_DONE_WAIT;
    st = err->status;
    uint32_t made = 0;
    const uint32_t *rows = shard->misses.rows;
    uint64_t pulled = 0, initial = 0;
    for (; made < request->sections && st == DP_OK; rows += request->section[made++].rows) {
        const struct dp_section *section = &request->section[made];
        const struct dp_cached_table *table = waiting->lookup.section[made].table;
        frames[made] = dp_frame_new((size_t)section->rows * table->spec.dim * dp_value_bytes(section->type));
        if (!frames[made].data) {
            st = dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": answer to a pull", shard->base.index);
            break;
        }
        initial += dp_gather(section, table, rows, shard->scratch, frames[made].data);
        if (verdict == DP_STEP_OLD)
            rules->at_pull(shard, table, section, frames[made].data);
        pulled += section->rows;
        shard->turn_bytes += frames[made].size;
    }
    if (st != DP_OK) {
        while (made > 0)
            dp_frame_release(&frames[--made]);
        return DP_DONE_REFUSED;
    }
    DP_COUNT(&shard->base.counters, pulls, 1);
    DP_COUNT(&shard->base.counters, pull_rows, pulled);
    DP_COUNT(&shard->base.counters, pull_rows_initial, initial);
    answer->frames = made;
    answer->reply = (struct dp_reply){.kind = DP_REPLY_PULLED,
                                      .applied = dp_shard_applied(shard),
                                      .lsn = shard->journaling.lsn,
                                      .held_ms = held_ms(waiting),
                                      .open = rules->step_of ? rules->step_of(shard, verdict) : 0};
    return DP_DONE_ANSWER;
}

/* Push: gradients into rows, all of a request or nothing, once for each (stream, number).
 *     check values -> stream admitted? -> (stream, number) seen? -> find the rows, room for new ones (misses.c, room.c) -> new rows ->
 *     append to the journal -> apply -> remember the number -> hold the answer until it is durable
 *                                                                                    (this order, always)
 * Why       A push that is refused for good has used up its number: a stream would stall on it, and it must
 *           not take effect behind what came after it. Room before rows: nothing is half applied. A new row
 *           without a push applied to it equals no row: what a failure leaves behind is invisible. Rows never
 *           hold a push that the journal's order does not know. */
#include "server/shard/shard_inner.h"

#include <inttypes.h>

static enum dp_status check_values(struct dp_shard *shard, const struct dp_section *section,
                                   const struct dp_shard_table *table, struct dp_error *err)
{
    size_t values = (size_t)section->rows * table->spec.dim;
    if (section->value_bytes != values * dp_value_bytes(section->type))
        return dp_fail(err, DP_INVALID,
                       "push to table '%s': %zu bytes of values for %" PRIu32 " rows of %" PRIu32
                       " (expected %zu)",
                       table->spec.name, section->value_bytes, section->rows, table->spec.dim,
                       values * dp_value_bytes(section->type));
    bool finite = section->type == DP_F32 ? dp_all_finite_f32(section->values, values)
                                          : dp_all_finite_bf16(section->values, values);
    if (!finite) {
        DP_COUNT(&shard->counters, pushes_not_finite, 1);
        return dp_fail(err, DP_NOT_FINITE,
                       "push to table '%s' holds a NaN or infinite gradient: nothing was applied",
                       table->spec.name);
    }
    return DP_OK;
}

static enum dp_push_room reserve(struct dp_shard *shard, const struct dp_request *request)
{
    dp_shard_set_due(shard);
    return dp_push_ids_reserve(shard->ids, request->stream, request->number,
                               dp_clock_ns(&shard->options.clock));
}

/* Refuses a push. For good (its contents, or a row that is damaged): its number is used up, so that its stream does
 * not stall on it and it cannot take effect later, behind what came after it; when it is sent again it hears the
 * same. One of a stream that was given to nobody uses up nothing. What this server lacks refuses nobody for good
 * (dp_shard_refuse). */
enum dp_done dp_shard_refuse_push(struct dp_shard *shard, const struct dp_waiting *waiting,
                                  const struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_error answer = *err, ignored = {0};
    enum dp_status before;
    answer.status = dp_status_answered(err->status);
    bool for_good = dp_status_class((int)answer.status) != DP_CLASS_RETRY && request->stream != 0 &&
                    dp_shard_admit(shard, request->stream, &ignored) == DP_OK;
    if (!for_good)
        return dp_shard_refuse_waiting(shard, waiting, &answer);
    if (dp_push_ids_look(shard->ids, request->stream, request->number, &before) == DP_PUSH_NEW) {
        if (reserve(shard, request) == DP_PUSH_ROOM &&
            dp_shard_journal_push(shard, request, NULL, err->status, &ignored) == DP_OK)
            dp_push_ids_add(shard->ids, request->stream, request->number, err->status);
        else
            answer.status = DP_AGAIN; /* it cannot be remembered now: later it is refused again, for good */
    }
    if (answer.status == DP_AGAIN || dp_shard_journal_lost(shard, &answer))
        return dp_shard_refuse_waiting(shard, waiting, &answer);
    dp_shard_hold_refusal(shard, waiting, &answer);
    return DP_DONE;
}

static enum dp_status find_room(struct dp_shard *shard, const struct dp_request *request,
                                struct dp_error *err)
{
    switch (reserve(shard, request)) {
    case DP_PUSH_ROOM:
        return DP_OK;
    case DP_PUSH_NO_MEMORY:
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": push ids", shard->options.index);
    case DP_PUSH_TOO_FAR:
        return dp_fail(err, DP_AGAIN,
                       "push %" PRIu64 " of stream %016" PRIx64
                       " is %u or more ahead of one that is missing, and so are those of %u streams already",
                       request->number, request->stream, DP_PUSH_NARROW, DP_PUSH_WIDE_MAX);
    case DP_PUSH_TOO_MANY:
        break;
    }
    return dp_fail(err, DP_AGAIN,
                   "stream %016" PRIx64 " is new, and shard %" PRIu32
                   " has taken as many new ones as it may at once",
                   request->stream, shard->options.index);
}

/* DP_OK: the id is new. DP_EXISTS with *err untouched: it was applied before. */
static enum dp_status look_id(struct dp_shard *shard, const struct dp_request *request, struct dp_error *err)
{
    enum dp_status before = DP_OK;
    switch (dp_push_ids_look(shard->ids, request->stream, request->number, &before)) {
    case DP_PUSH_NEW:
        return find_room(shard, request, err);
    case DP_PUSH_REPEATED:
        dp_push_ids_use(shard->ids, request->stream);
        return DP_EXISTS;
    case DP_PUSH_REFUSED:
        dp_push_ids_use(shard->ids, request->stream);
        return dp_fail(err, before, "push %" PRIu64 " of stream %016" PRIx64 " was refused before: %s",
                       request->number, request->stream, dp_status_text((int)before));
    case DP_PUSH_ABOVE:
        dp_push_ids_use(shard->ids, request->stream);
        return dp_fail(err, DP_AGAIN,
                       "push %" PRIu64 " of stream %016" PRIx64 " is over %u ahead of one that is missing",
                       request->number, request->stream, DP_PUSH_WINDOW);
    case DP_PUSH_TOO_OLD:
        break;
    }
    return dp_shard_too_old(shard, request->stream, err);
}

enum dp_done dp_shard_push(struct dp_shard *shard, struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    struct dp_shard_table *tables[DP_SECTIONS_MAX];
    struct dp_error err = {0};
    enum dp_status st =
        request->stream == 0 ? dp_fail(&err, DP_INVALID, "push: stream 0 is nobody's") : DP_OK;
    waiting->needs_disk = !dp_shard_journal_is_next(shard, waiting);
    if (waiting->needs_disk) {
        waiting->needs_room = false; /* it asks for that when it is next */
        return DP_DONE_WAIT;
    }
    if (st == DP_OK)
        st = dp_shard_admit(shard, request->stream, &err);
    if (st == DP_OK)
        st = dp_shard_check_sections(shard, request, tables, &err);
    for (uint32_t s = 0; s < request->sections && st == DP_OK; s++)
        st = check_values(shard, &request->section[s], tables[s], &err);
    if (st != DP_OK)
        return dp_shard_refuse_push(shard, waiting, &err);
    st = look_id(shard, request, &err);
    if (st == DP_EXISTS && err.status == DP_OK) {
        if (dp_shard_journal_lost(shard, &err))
            return dp_shard_refuse_waiting(shard, waiting, &err);
        DP_COUNT(&shard->counters, pushes_repeated, 1);
        dp_shard_hold_answer(shard, waiting, 0, true);
        return DP_DONE;
    }
    if (st == DP_OK)
        st = dp_shard_find_rows(shard, waiting, tables, &err);
    if (st == DP_AGAIN && err.status == DP_OK)
        return DP_DONE_WAIT;
    uint32_t *rows = shard->rows;
    for (uint32_t s = 0; s < request->sections && st == DP_OK; rows += request->section[s++].rows)
        st = dp_shard_make_rows(shard, &request->section[s], tables[s], rows, &err);
    bool may_apply = st == DP_OK;
    if (st == DP_OK)
        st = dp_shard_journal_push(shard, request, tables, DP_OK, &err);
    waiting->needs_disk = st == DP_JOURNAL_BEHIND && dp_shard_journal_waits(shard);
    if (waiting->needs_disk)
        return DP_DONE_WAIT;
    if (st == DP_JOURNAL_BEHIND)
        st = err.status = DP_AGAIN;
    else if (st == DP_AGAIN && may_apply &&
             shard->write_back.full.status != DP_OK) /* why the journal has no room */
        (void)dp_fail(&err, DP_AGAIN,
                      "shard %" PRIu32 ": its journal is full and rows cannot be written back: %s",
                      shard->options.index, shard->write_back.full.text);
    if (st != DP_OK)
        return dp_shard_refuse_push(shard, waiting, &err);

    uint64_t staleness =
        request->measured && request->pulled_at <= shard->applied ? shard->applied - request->pulled_at : 0;
    shard->applied++;
    rows = shard->rows;
    for (uint32_t s = 0; s < request->sections; rows += request->section[s++].rows) {
        dp_shard_apply(shard, &request->section[s], tables[s], rows, request->rate, shard->lsn);
        DP_COUNT(&shard->counters, push_rows, request->section[s].rows);
    }
    dp_push_ids_add(shard->ids, request->stream, request->number, DP_OK);
    DP_COUNT(&shard->counters, pushes, 1);
    if (request->measured) {
        DP_COUNT(&shard->counters, staleness_sum, staleness);
        DP_COUNT(&shard->counters, staleness_pushes, 1);
    }
    dp_shard_hold_answer(shard, waiting, staleness, false);
    return DP_DONE;
}

/* Push: gradients into rows, all of a request or nothing, once for each (stream, number).
 *     check values -> (stream, number) seen? -> find the rows (misses.c) -> room for new ones -> new rows ->
 *     lsn -> apply -> remember the number -> answer                                  (this order, always)
 * Why       Checks first: a push that is refused for its contents is refused so again when it is resent,
 *           and it has used up its number (a stream would stall on it). Room before rows: nothing is half
 *           applied. A new row without a push applied to it equals no row: what a failure leaves behind is
 *           invisible. */
#include "server/shard/shard_inner.h"

#include "common/base/bf16.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"

#include <inttypes.h>

#define PREFETCH_AHEAD 12u

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

/* Bytes that the request's new rows may take, against what the budget leaves beside the rows that the store
 * still has to give. */
static enum dp_status check_budget(struct dp_shard *shard, const struct dp_request *request,
                                   struct dp_shard_table **tables, struct dp_error *err)
{
    const uint32_t *rows = shard->rows;
    uint64_t taken = dp_shard_cache_bytes(shard);
    for (uint32_t s = 0; s < request->sections; s++) {
        uint32_t fresh = 0;
        for (uint32_t i = 0; i < request->section[s].rows; i++)
            fresh += !dp_row_is_number(*rows++);
        /* With the rows that the store still has to give, which have been counted once. */
        uint64_t unread = tables[s]->unread;
        uint64_t cost = fresh ? dp_row_cache_cost(tables[s]->cache, unread + fresh) -
                                    dp_row_cache_cost(tables[s]->cache, unread)
                              : 0;
        if (fresh && taken + cost > shard->options.cache_bytes) {
            DP_COUNT(&shard->counters, pushes_over_budget, 1);
            return dp_fail(
                err, DP_FULL,
                "shard %" PRIu32 " has no room for %" PRIu32 " more rows of table '%s': %" PRIu64
                " of %" PRIu64
                " bytes of its row cache are taken; give servers more (cache_bytes) or add servers",
                shard->options.index, fresh, tables[s]->spec.name, taken, shard->options.cache_bytes);
        }
        taken += cost;
    }
    return DP_OK;
}

static enum dp_status make_rows(struct dp_shard *shard, const struct dp_section *section,
                                struct dp_shard_table *table, uint32_t *rows, struct dp_error *err)
{
    for (uint32_t i = 0; i < section->rows; i++) {
        if (dp_row_is_number(rows[i]))
            continue;
        uint64_t mixed = dp_load_u64le((const char *)section->keys + (size_t)i * 8);
        if (dp_row_cache_insert(table->cache, mixed, &rows[i]) != DP_OK)
            return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": new rows of table '%s'", shard->options.index,
                           table->spec.name);
        dp_init_row(&table->spec, dp_unmix(mixed), dp_row_cache_row(table->cache, rows[i]));
        DP_COUNT(&shard->counters, cache_rows, 1);
    }
    return DP_OK;
}

static const void *widen(struct dp_shard *shard, const char *halves, uint32_t dim)
{
    dp_bf16_get(halves, shard->scratch, dim);
    return shard->scratch;
}

static void apply(struct dp_shard *shard, const struct dp_section *section, struct dp_shard_table *table,
                  const uint32_t *rows, float rate)
{
    uint32_t dim = table->spec.dim;
    size_t bytes = (size_t)dim * dp_value_bytes(section->type);
    const char *gradient = section->values;
    for (uint32_t i = 0; i < section->rows; i++, gradient += bytes) {
        if (i + PREFETCH_AHEAD < section->rows)
            dp_row_cache_prefetch(table->cache, rows[i + PREFETCH_AHEAD]);
        void *row = dp_row_cache_row(table->cache, rows[i]);
        table->fresh += dp_row_lsn(row) == 0;
        dp_optimizer_apply(table->optimizer, row,
                           section->type == DP_F32 ? gradient : widen(shard, gradient, dim), rate);
        dp_row_set_lsn(row, shard->lsn);
        dp_row_cache_set_dirty(table->cache, rows[i]);
    }
    DP_COUNT(&shard->counters, push_rows, section->rows);
}

static enum dp_done answer_pushed(struct dp_shard *shard, const struct dp_waiting *waiting,
                                  uint64_t staleness, bool repeated)
{
    struct dp_reply reply = {.kind = DP_REPLY_PUSHED, .staleness = staleness, .repeated = repeated};
    dp_shard_answer(shard, waiting, &reply, NULL, 0);
    return DP_DONE;
}

/* Refuses a push that will never be right. Its number is used up. */
static enum dp_done refuse_contents(struct dp_shard *shard, const struct dp_waiting *waiting,
                                    const struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    if (dp_status_class((int)err->status) == DP_CLASS_CALLER &&
        dp_push_ids_look(shard->ids, request->stream, request->number) == DP_PUSH_NEW)
        dp_push_ids_add(shard->ids, request->stream, request->number);
    return dp_shard_refuse_waiting(shard, waiting, err);
}

/* DP_OK: the id is new. DP_EXISTS: it was applied before. */
static enum dp_status look_id(struct dp_shard *shard, const struct dp_request *request, struct dp_error *err)
{
    switch (dp_push_ids_look(shard->ids, request->stream, request->number)) {
    case DP_PUSH_NEW:
        return DP_OK;
    case DP_PUSH_REPEATED:
        return DP_EXISTS;
    case DP_PUSH_ABOVE:
        return dp_fail(err, DP_AGAIN,
                       "push %" PRIu64 " of stream %016" PRIx64 " is over %u ahead of one that is missing",
                       request->number, request->stream, DP_PUSH_WINDOW);
    case DP_PUSH_TOO_OLD:
        return dp_fail(err, DP_TOO_OLD, "stream %016" PRIx64 " was forgotten: newer ones took its place",
                       request->stream);
    default:
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": push ids", shard->options.index);
    }
}

enum dp_done dp_shard_push(struct dp_shard *shard, struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    struct dp_shard_table *tables[DP_SECTIONS_MAX];
    struct dp_error err = {0};
    enum dp_status st =
        request->stream == 0 ? dp_fail(&err, DP_INVALID, "push: stream 0 is nobody's") : DP_OK;
    if (st == DP_OK)
        st = dp_shard_check_sections(shard, request, tables, &err);
    for (uint32_t s = 0; s < request->sections && st == DP_OK; s++)
        st = check_values(shard, &request->section[s], tables[s], &err);
    if (st != DP_OK)
        return refuse_contents(shard, waiting, &err);
    st = look_id(shard, request, &err);
    if (st == DP_EXISTS) {
        DP_COUNT(&shard->counters, pushes_repeated, 1);
        return answer_pushed(shard, waiting, 0, true);
    }
    if (st == DP_OK)
        st = dp_shard_find_rows(shard, waiting, tables, &err);
    if (st == DP_AGAIN && err.status == DP_OK)
        return DP_DONE_WAIT;
    if (st == DP_OK)
        st = check_budget(shard, request, tables, &err);
    if (st == DP_OK && waiting->late)
        st = dp_fail(&err, DP_TOO_OLD,
                     "request %" PRIu64
                     " was refused before, and what its session sent behind it was done: it "
                     "would take effect out of order",
                     request->sequence);
    uint32_t *rows = shard->rows;
    for (uint32_t s = 0; s < request->sections && st == DP_OK; rows += request->section[s++].rows)
        st = make_rows(shard, &request->section[s], tables[s], rows, &err);
    if (st != DP_OK)
        return dp_shard_refuse_waiting(shard, waiting, &err);

    uint64_t staleness =
        request->measured && request->pulled_at <= shard->lsn ? shard->lsn - request->pulled_at : 0;
    shard->lsn++;
    rows = shard->rows;
    for (uint32_t s = 0; s < request->sections; rows += request->section[s++].rows)
        apply(shard, &request->section[s], tables[s], rows, request->rate);
    dp_push_ids_add(shard->ids, request->stream, request->number);
    DP_COUNT(&shard->counters, pushes, 1);
    if (request->measured) {
        DP_COUNT(&shard->counters, staleness_sum, staleness);
        DP_COUNT(&shard->counters, staleness_pushes, 1);
    }
    return answer_pushed(shard, waiting, staleness, false);
}

/* Pull: keys -> a shard request a shard -> answers -> each row from the answer's frame to where it was asked for. */
#include "common/client/member.h"
#include "common/client/partition.h"

#include "common/base/bf16.h"

#include <inttypes.h>
#include <string.h>

static void put_row(float *to, const unsigned char *from, size_t dim, enum dp_value_type type)
{
    if (type == DP_F32) {
        memcpy(to, from, dim * sizeof *to);
        return;
    }
    dp_bf16_get(from, to, dim);
}

/* Rows from .. from + rows of the distinct keys, lying in `frame`, to every given position of each. */
static void scatter(const struct dp_keys *keys, size_t from, size_t rows, const unsigned char *frame,
                    size_t dim, enum dp_value_type type, float *weights)
{
    size_t row_bytes = dim * dp_value_bytes(type);
    if (keys->lent) {
        put_row(weights + from * dim, frame, rows * dim, type);
        return;
    }
    for (size_t d = from; d < from + rows; d++, frame += row_bytes) {
        for (size_t j = keys->starts[d]; j < keys->starts[d + 1]; j++)
            put_row(weights + keys->order[j] * dim, frame, dim, type);
    }
}

static enum dp_status check_answer(const struct dp_call *call, const struct dp_shard_request *to_shard,
                                   const struct dp_message *message, struct dp_error *err)
{
    const struct dp_request *r = &to_shard->request;
    if (message->frames != 1 + r->sections)
        return dp_fail(err, DP_INVALID,
                       "answers a pull of %" PRIu32 " sections with %" PRIu32 " frames of values",
                       r->sections, message->frames ? message->frames - 1 : 0);
    for (uint32_t i = 0; i < r->sections; i++) {
        const struct dp_call_pull *pull = &call->part[to_shard->slice[i].part];
        size_t want = (size_t)r->section[i].rows * pull->dim * dp_value_bytes(r->section[i].type);
        if (message->frame[1 + i].size != want)
            return dp_fail(err, DP_INVALID,
                           "answers a pull of %" PRIu32 " rows of width %" PRIu32
                           " with %zu bytes of values, expected %zu",
                           r->section[i].rows, pull->dim, message->frame[1 + i].size, want);
        if (pull->keys_version != pull->part.keys->version)
            return dp_fail(err, DP_ARGUMENT, "the keys of a pull were changed while it was under way");
    }
    return DP_OK;
}

static enum dp_status take_rows(struct dp_call *call, uint32_t server,
                                const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                struct dp_message **message, struct dp_error *err)
{
    enum dp_status st = check_answer(call, to_shard, *message, err);
    if (st != DP_OK)
        return st;
    for (uint32_t i = 0; i < to_shard->request.sections; i++) {
        const struct dp_section *section = &to_shard->request.section[i];
        const struct dp_call_pull *pull = &call->part[to_shard->slice[i].part];
        scatter(pull->part.keys, to_shard->slice[i].from, section->rows, (*message)->frame[1 + i].data,
                pull->dim, section->type, pull->part.weights);
    }
    if (call->pulled_at && to_shard->request.sections > 0)
        call->pulled_at[server] = (struct dp_pulled_at){.applied = reply->applied, .lsn = reply->lsn};
    if (to_shard->request.member.given && reply->open > call->outcome.open)
        call->outcome.open = reply->open;
    return DP_OK;
}

static enum dp_status make(struct dp_client *client, struct dp_partition *partition,
                           const struct dp_pull_part *given, bool all, struct dp_call *call,
                           struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < call->parts && st == DP_OK; i++) {
        st = dp_partition_add(partition, client, given[i].table, given[i].keys, err);
        if (st != DP_OK)
            break;
        if (!given[i].weights && given[i].keys->count > 0)
            return dp_fail(err, DP_ARGUMENT, "part %" PRIu32 " has no buffer for weights", i);
        call->part[i] = (struct dp_call_pull){
            .part = given[i], .dim = given[i].table->spec.dim, .keys_version = given[i].keys->version};
        st = dp_partition_block(&partition->part[i], 0, err);
    }
    return st == DP_OK ? dp_partition_cut(partition, client, DP_REQUEST_PULL, all, err) : st;
}

/* step: NULL, or that of the member that this client is. */
static enum dp_status issue(struct dp_client *client, const uint64_t *step, const struct dp_pull_part *parts,
                            uint32_t count, struct dp_pulled_at *pulled_at, uint32_t timeout_ms,
                            struct dp_ticket *out, struct dp_error *err)
{
    struct dp_partition cut = {0};
    struct dp_call *call = NULL;
    enum dp_status st;
    out->id = 0;
    if (count > DP_SECTIONS_MAX)
        return dp_fail(err, DP_ARGUMENT, "pull: %" PRIu32 " parts in one request: at most %u", count,
                       DP_SECTIONS_MAX);
    call = dp_call_new(client, count, timeout_ms);
    if (!call)
        return dp_fail(err, DP_NOMEM, "pull: no memory");
    call->take = take_rows;
    call->pulled_at = pulled_at;
    /* A member asks every shard, also one without rows of it, as its push goes to every shard: else it could push steps there
     * that others have not come to. */
    st = make(client, &cut, parts, step != NULL, call, err);
    if (st != DP_OK) {
        st = dp_wrap(err, st, "pull");
        goto done;
    }
    st = dp_client_await_room(client, "pull", timeout_ms, err);
    if (st != DP_OK)
        goto done;
    if (step)
        dp_client_member_sign(client, call, *step, 0);
    for (uint32_t i = 0; pulled_at && i < client->shards; i++)
        pulled_at[i] = (struct dp_pulled_at){.applied = DP_NOT_MEASURED};
    dp_client_issue(client, &call, out);
done:
    dp_client_drop_draft(client);
    dp_call_free(&call);
    dp_partition_clear(&cut);
    return st;
}

enum dp_status dp_client_pull(struct dp_client *client, const struct dp_pull_part *parts, uint32_t count,
                              struct dp_pulled_at *pulled_at, uint32_t timeout_ms, struct dp_ticket *out,
                              struct dp_error *err)
{
    return issue(client, NULL, parts, count, pulled_at, timeout_ms, out, err);
}

enum dp_status dp_client_pull_step(struct dp_client *client, uint64_t step, const struct dp_pull_part *parts,
                                   uint32_t count, struct dp_pulled_at *pulled_at, uint32_t timeout_ms,
                                   struct dp_ticket *out, struct dp_error *err)
{
    out->id = 0;
    enum dp_status st = dp_client_member_check(client, "pull", err);
    return st == DP_OK ? issue(client, &step, parts, count, pulled_at, timeout_ms, out, err) : st;
}

enum dp_status dp_client_pull_rows(struct dp_client *client, struct dp_client_table *table,
                                   const uint64_t *keys, size_t n, float *weights, uint32_t timeout_ms,
                                   struct dp_error *err)
{
    const struct dp_pull_part part = {.table = table, .keys = client->keys, .weights = weights};
    struct dp_ticket ticket = {0};
    enum dp_status st = dp_keys_set(client->keys, keys, n, err);
    if (st == DP_OK)
        st = dp_client_pull(client, &part, 1, NULL, timeout_ms, &ticket, err);
    return st == DP_OK ? dp_client_finish(client, &ticket, "pull", timeout_ms, err) : st;
}

#include "common/client/ask.h"

#include "common/base/bytes.h"

#include <inttypes.h>

static enum dp_status check(const struct dp_client *client, const struct dp_lease *ask, struct dp_error *err)
{
    if (!client->has_control)
        return dp_fail(err, DP_ARGUMENT, "lease: this client was opened without a control endpoint");
    if (ask->run == 0 || ask->total == 0 || ask->total > DP_LEASE_TOTAL_MAX ||
        ask->rank >= DP_LEASE_RANKS_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "lease: run %" PRIu32 ", %" PRIu64 " numbers, rank %" PRIu32
                       ": expected a run from 1, 1 to %u numbers, a rank below %u",
                       ask->run, ask->total, ask->rank, DP_LEASE_TOTAL_MAX, DP_LEASE_RANKS_MAX);
    if (ask->want > DP_LEASE_WANT_MAX || ask->held_count > DP_LEASE_HELD_MAX ||
        ask->done_count > DP_LEASE_HELD_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "lease: %" PRIu32 " numbers wanted, %" PRIu32 " held, %" PRIu32
                       " done: at most %u, %u and %u are allowed",
                       ask->want, ask->held_count, ask->done_count, DP_LEASE_WANT_MAX, DP_LEASE_HELD_MAX,
                       DP_LEASE_HELD_MAX);
    return DP_OK;
}

static enum dp_status keep_numbers(struct dp_call *call, uint32_t server,
                                   const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                   struct dp_message **message, struct dp_error *err)
{
    const struct dp_frame *frame = &(*message)->frame[1]; /* its size was checked */
    for (size_t i = 0; i < frame->size / 8; i++) {
        uint64_t number = dp_load_u64le((const char *)frame->data + i * 8);
        if (number >= to_shard->request.lease.total || frame->size / 8 > to_shard->request.lease.want)
            return dp_fail(
                err, DP_INVALID,
                "gave %zu leases, among them of number %" PRIu64 ", to a request for %" PRIu32 " of %" PRIu64,
                frame->size / 8, number, to_shard->request.lease.want, to_shard->request.lease.total);
    }
    return dp_call_keep(call, server, to_shard, reply, message, err);
}

static void store(unsigned char *to, const uint64_t *numbers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        dp_store_u64le(to + i * 8, numbers[i]);
}

enum dp_status dp_client_lease(struct dp_client *client, const struct dp_lease *ask, uint32_t timeout_ms,
                               struct dp_leased *out, struct dp_error *err)
{
    *out = (struct dp_leased){.state = DP_LEASE_WAIT};
    enum dp_status st = check(client, ask, err);
    if (st != DP_OK)
        return st;
    uint64_t words = ask->pushed ? (ask->total + 63) / 64 : 0;
    struct dp_call *call;
    struct dp_shard_request *draft =
        dp_client_draft_one(client, DP_REQUEST_LEASE, DP_REPLY_LEASED, NULL, timeout_ms);
    unsigned char *numbers = dp_client_draft_add(&draft, ((size_t)ask->held_count + ask->done_count) * 8);
    if (numbers) {
        store(numbers, ask->held, ask->held_count);
        store(numbers + (size_t)ask->held_count * 8, ask->done, ask->done_count);
    }
    unsigned char *bits = ask->pushed ? dp_client_draft_add(&draft, (size_t)words * 8) : NULL;
    if (bits)
        store(bits, ask->pushed, words);
    if (draft) {
        draft->request.run = ask->run;
        draft->request.epoch = ask->epoch;
        draft->request.lease = (struct dp_lease_ask){.total = ask->total,
                                                     .rank = ask->rank,
                                                     .want = ask->want,
                                                     .held = ask->held_count,
                                                     .done = ask->done_count,
                                                     .tells = ask->pushed != NULL};
        draft->call->take = keep_numbers;
    }
    st = dp_client_ask(client, client->shards, &draft, "lease", timeout_ms, &call, err);
    if (st != DP_OK)
        return st;
    const struct dp_frame *given = &call->message->frame[1];
    *out = (struct dp_leased){.state = call->kept.lease,
                              .wait_ms = call->kept.wait_ms,
                              .done = call->kept.done,
                              .count = (uint32_t)(given->size / 8)};
    for (uint32_t i = 0; i < out->count; i++)
        out->number[i] = dp_load_u64le((const char *)given->data + (size_t)i * 8);
    dp_client_end(client, call);
    return DP_OK;
}

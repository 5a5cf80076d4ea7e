/* Pushed: which numbers of a stream all shards have applied.
 *     for each piece of at most DP_POSITIONS_MAX numbers: all bits set -> ask every shard -> and (anywhere: none set -> or)
 * Why       A number counts only if every shard has it: one that a shard lacks is to be pushed again, to all. */
#include "common/client/client_inner.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

static enum dp_status check_bits(const struct dp_shard_request *to_shard, const struct dp_message *message,
                                 struct dp_error *err)
{
    const struct dp_frame *frame = &message->frame[1];
    size_t words = (to_shard->request.numbers + 63) / 64;
    if (message->frames != 2 || frame->size != words * 8)
        return dp_fail(err, DP_INVALID, "answers about %" PRIu32 " numbers with %zu bytes, not %zu",
                       to_shard->request.numbers, frame->size, words * 8);
    return DP_OK;
}

static enum dp_status take_everywhere(struct dp_call *call, uint32_t server,
                                      const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                      struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)reply;
    enum dp_status st = check_bits(to_shard, *message, err);
    for (size_t w = 0; st == DP_OK && w < (to_shard->request.numbers + 63) / 64; w++)
        call->bits[w] &= dp_load_u64le((const char *)(*message)->frame[1].data + w * 8);
    return st;
}

static enum dp_status take_anywhere(struct dp_call *call, uint32_t server,
                                    const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                    struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)reply;
    enum dp_status st = check_bits(to_shard, *message, err);
    for (size_t w = 0; st == DP_OK && w < (to_shard->request.numbers + 63) / 64; w++)
        call->bits[w] |= dp_load_u64le((const char *)(*message)->frame[1].data + w * 8);
    return st;
}

static enum dp_status ask_all(struct dp_client *client, bool anywhere, uint64_t stream, uint64_t from,
                              uint32_t count, uint64_t *bits, uint32_t timeout_ms, struct dp_error *err)
{
    struct dp_call *call =
        dp_client_draft_all(client, DP_REQUEST_POSITIONS_GET, DP_REPLY_POSITIONS, timeout_ms);
    for (uint32_t i = 0; i < client->shards && call; i++) {
        struct dp_request *request = &client->draft[i]->request;
        request->stream = stream;
        request->number = from;
        request->numbers = count;
    }
    if (call) {
        call->take = anywhere ? take_anywhere : take_everywhere;
        call->bits = bits;
    }
    return dp_client_ask_all(client, &call, "pushed", timeout_ms, err);
}

static enum dp_status ask(struct dp_client *client, bool anywhere, uint64_t stream, uint64_t from,
                          size_t count, uint64_t *bits, uint32_t timeout_ms, struct dp_error *err)
{
    uint64_t until_ns = dp_awake_ns(&client->session.clock) + timeout_ms * MS_NS;
    if (stream == 0 || count > UINT64_MAX - from)
        return dp_fail(err, DP_ARGUMENT, "pushed: %zu numbers from %" PRIu64 " of stream %" PRIu64 ": %s",
                       count, from, stream, stream == 0 ? "0 is no stream" : "they end beyond 2^64");
    size_t words = (count + 63) / 64;
    if (count > 0)
        memset(bits, anywhere ? 0 : 0xff, words * sizeof *bits);
    for (size_t at = 0; at < count;) {
        size_t n = count - at < DP_POSITIONS_MAX ? count - at : DP_POSITIONS_MAX;
        uint64_t now = dp_awake_ns(&client->session.clock);
        uint32_t left_ms = now < until_ns ? (uint32_t)((until_ns - now + MS_NS - 1) / MS_NS) : 0;
        enum dp_status st =
            ask_all(client, anywhere, stream, from + at, (uint32_t)n, bits + at / 64, left_ms, err);
        if (st != DP_OK)
            return st;
        at += n;
    }
    if (count % 64) /* whatever a server says of them */
        bits[words - 1] &= (UINT64_C(1) << count % 64) - 1;
    return DP_OK;
}

enum dp_status dp_client_pushed(struct dp_client *client, uint64_t stream, uint64_t from, size_t count,
                                uint64_t *bits, uint32_t timeout_ms, struct dp_error *err)
{
    return ask(client, false, stream, from, count, bits, timeout_ms, err);
}

enum dp_status dp_client_pushed_anywhere(struct dp_client *client, uint64_t stream, uint64_t from,
                                         size_t count, uint64_t *bits, uint32_t timeout_ms,
                                         struct dp_error *err)
{
    return ask(client, true, stream, from, count, bits, timeout_ms, err);
}

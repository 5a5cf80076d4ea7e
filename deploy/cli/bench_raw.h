/* Raw: the same bytes as a pull or push, over bare sockets: what the wire alone allows.
 *     start (forks the peer) -> connect -> loads -> stop
 * Promise   A header of 48 bytes and the frames of the real request, answered by a header and, for a pull,
 *           the real answer's bytes, all without copies; nothing is looked up, checked or kept. Each end has
 *           as many buffers as requests are under way, since bytes that are on their way cannot be those of
 *           the next. It stands on the net room's sockets, with the settings that servers and clients have.
 *           The peer is a process of its own; it ends when this one does.
 * Thread    One; start before any other thread is made (it forks).                                        */
#ifndef DP_CLI_BENCH_RAW_H
#define DP_CLI_BENCH_RAW_H

#include "deploy/cli/bench_load.h"
#include "deploy/cli/bench_pin.h"

struct dp_raw;

struct dp_raw_shape {
    uint64_t rows;
    size_t keys_bytes, values_bytes; /* of the request */
    size_t reply_bytes;
};

/* at: "tcp://127.0.0.1:*" or "ipc:///PATH". bytes_max: of any frame that will be asked for. buffers: as many as requests will be under way. */
DP_MUST_USE
enum dp_status dp_raw_start(const char *at, size_t bytes_max, uint32_t buffers, const struct dp_pin *pin,
                            struct dp_raw **out, struct dp_error *err);
/* The peer's process. */
long dp_raw_peer(const struct dp_raw *raw);
DP_MUST_USE
enum dp_status dp_raw_connect(struct dp_raw *raw, struct dp_error *err);
void dp_raw_stop(struct dp_raw **raw);

/* Requests of the shapes in turn. Until the next call of this. */
struct dp_load dp_raw_load(struct dp_raw *raw, const struct dp_raw_shape *shapes, uint32_t count);

#endif

/* Raw: the bytes of a pull or push over bare sockets: the limit that the wire sets.
 *     start (forks the peer) -> connect -> loads -> stop
 * Promise   The request is a header of 48 bytes and the frames of the real request. The answer is a header
 *           and, for a pull, as many bytes as the real answer. There are no copies, and nothing is looked
 *           up, checked or kept. Each end has as many buffers as requests may be in flight, since a buffer
 *           in flight cannot be reused. It uses the net room's sockets, with the settings of servers and
 *           clients. The peer is a process of its own, which ends when this one does.
 * Thread    One. start forks: call it before any other thread is started. */
#ifndef DP_BENCH_BENCH_RAW_H
#define DP_BENCH_BENCH_RAW_H

#include "deploy/bench/bench_load.h"
#include "deploy/bench/bench_pin.h"

struct dp_raw;

struct dp_raw_shape {
    uint64_t rows;
    size_t keys_bytes, values_bytes; /* of the request */
    size_t reply_bytes;
};

/* at: "tcp://127.0.0.1:*" or "ipc:///PATH". bytes_max: of any frame. buffers: the largest number of requests
 * in flight. */
enum dp_status dp_raw_start(const char *at, size_t bytes_max, uint32_t buffers, const struct dp_pin *pin,
                            struct dp_raw **out, struct dp_error *err);
/* The peer's process. */
long dp_raw_peer(const struct dp_raw *raw);
enum dp_status dp_raw_connect(struct dp_raw *raw, struct dp_error *err);
void dp_raw_stop(struct dp_raw **raw);

/* A load of requests with these shapes in turn, valid until the next call. */
struct dp_load dp_raw_load(struct dp_raw *raw, const struct dp_raw_shape *shapes, uint32_t count);

#endif

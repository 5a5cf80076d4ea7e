/* Push ids: which pushes a shard has applied, so that a resend is not counted twice. Each stream has a low-
 * water mark (all numbers below it were applied) and a window of DP_PUSH_WINDOW numbers above it, one bit
 * each. Streams are bounded too: of the two kinds (a training run's, and those given at a handshake) the
 * smallest numbers are the oldest; when there are too many the smallest is forgotten, and from then on
 * refused. In memory for now: this memory ends with the server.
 * Thread    The shard's. */
#ifndef DP_SHARD_PUSH_IDS_H
#define DP_SHARD_PUSH_IDS_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_PUSH_WINDOW     65536u
#define DP_STREAMS_MAX     512u
#define DP_STREAM_TRAINING ((uint64_t)1 << 63) /* else: given at a handshake */

struct dp_push_ids;

DP_MUST_USE
enum dp_status dp_push_ids_new(struct dp_push_ids **out);
void dp_push_ids_free(struct dp_push_ids **ids);

enum dp_push_seen {
    DP_PUSH_NEW,
    DP_PUSH_REPEATED, /* applied, or refused, before */
    DP_PUSH_ABOVE,    /* beyond the window: ask again when the ones before it are there */
    DP_PUSH_TOO_OLD,  /* its stream was forgotten */
    DP_PUSH_NOMEM,
};
/* Makes room for the stream when it is new. stream > 0. */
enum dp_push_seen dp_push_ids_look(struct dp_push_ids *ids, uint64_t stream, uint64_t number);
/* The id was looked up in this turn and is new. */
void dp_push_ids_add(struct dp_push_ids *ids, uint64_t stream, uint64_t number);

/* Replay: the id was applied. Whether it is remembered already does not matter; DP_NOMEM. */
DP_MUST_USE
enum dp_status dp_push_ids_restore(struct dp_push_ids *ids, uint64_t stream, uint64_t number);

/* malloc'd bytes, the caller's. NULL: out of memory. */
void *dp_push_ids_pack(const struct dp_push_ids *ids, size_t *size);
/* Into a fresh memory. DP_CORRUPT when the bytes are not a packed one. */
DP_MUST_USE
enum dp_status dp_push_ids_unpack(struct dp_push_ids *ids, const void *bytes, size_t size,
                                  struct dp_error *err);

#endif

/* Push ids: which pushes a shard has applied or refused for good, so that a resend is not counted twice and hears
 * the same.
 * Each stream has a low-water mark (all numbers below it are used up) and a window of DP_PUSH_WINDOW numbers above
 * it, one bit each, kept only while some are used up out of order. DP_PUSH_WIDE_MAX streams at a time may have used up one
 * that is DP_PUSH_NARROW or more above the mark, all others wait for what is missing then: so that packing all of this, in
 * a turn, takes milliseconds whatever peers send. Of the refused the last DP_REFUSED_MAX are known
 * by their status. Streams are bounded too: DP_STREAMS_MAX of the two kinds together (a training run's, and those
 * given at a handshake); in each the smallest numbers are the oldest. When there are too many, the smallest of the
 * kind that has more of them is forgotten, and from then on refused.
 * Packed, this memory is put with each write-back cycle's marks, as the store's mark "ids"; what was used up since is
 * in the journal's records (journaling.c), and replay restores it. Little endian:
 *     format u32 (2) | streams u32 | greatest forgotten u64 of each kind: handshake, training | refused u32 | 0 u32 |
 *     streams times: id u64 | low u64 | words u32 | u64[words], bit i of them: number low + i is used up
 *     refused times, oldest first: stream u64 | number u64 | status u32
 * Thread    The shard's. */
#ifndef DP_SHARD_PUSH_IDS_H
#define DP_SHARD_PUSH_IDS_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_PUSH_WINDOW     65536u
#define DP_PUSH_NARROW     4096u
#define DP_PUSH_WIDE_MAX   256u
#define DP_STREAMS_MAX     16384u
#define DP_REFUSED_MAX     256u
#define DP_STREAM_TRAINING ((uint64_t)1 << 63) /* else: given at a handshake */

struct dp_push_ids;

DP_MUST_USE
enum dp_status dp_push_ids_new(struct dp_push_ids **out);
void dp_push_ids_free(struct dp_push_ids **ids);

enum dp_push_seen {
    DP_PUSH_NEW,
    DP_PUSH_REPEATED, /* applied before; or refused so long ago that its status is not known any more */
    DP_PUSH_REFUSED,  /* before, with *status */
    DP_PUSH_ABOVE,    /* beyond the window: ask again when the ones before it are there */
    DP_PUSH_TOO_OLD,  /* its stream was forgotten */
};
/* Changes nothing. stream > 0. */
enum dp_push_seen dp_push_ids_look(const struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status *status);
/* Makes room for a number that is new, so that add cannot fail. DP_NOMEM; DP_TOO_OLD: all streams kept are younger;
 * DP_AGAIN: it is DP_PUSH_NARROW or more above one that is missing, and DP_PUSH_WIDE_MAX other streams have such. */
DP_MUST_USE
enum dp_status dp_push_ids_reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number);
/* A new number, for which there is room, is used up: applied (DP_OK), or refused with this status. */
void dp_push_ids_add(struct dp_push_ids *ids, uint64_t stream, uint64_t number, enum dp_status status);

/* Replay: the same, whether it is remembered already or not, and however many streams are wide. DP_NOMEM. */
DP_MUST_USE
enum dp_status dp_push_ids_restore(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status status);

/* malloc'd bytes, the caller's. NULL: out of memory. */
void *dp_push_ids_pack(const struct dp_push_ids *ids, size_t *size);
/* Into a fresh memory. DP_CORRUPT when the bytes are not a packed one. */
DP_MUST_USE
enum dp_status dp_push_ids_unpack(struct dp_push_ids *ids, const void *bytes, size_t size,
                                  struct dp_error *err);

/* What is remembered, for people. Holes: numbers above the low-water mark, below the greatest used up, that are not. */
struct dp_push_stream {
    uint64_t stream, low, used_above, holes;
};
/* Streams ascending; refused: oldest first. */
void dp_push_ids_visit(
    const struct dp_push_ids *ids, void (*stream)(void *context, const struct dp_push_stream *stream),
    void (*refused)(void *context, uint64_t stream, uint64_t number, enum dp_status status), void *context);

#endif

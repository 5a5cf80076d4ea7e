/* Push ids: which pushes a shard has applied or refused for good, so that a resend is not applied twice and
 * gets the same answer.
 * Each stream has a low-water mark (all numbers below it are used up) and a window of DP_PUSH_WINDOW numbers
 * above it, one bit each, which exists only while some are used up out of order. At most DP_PUSH_WIDE_MAX
 * streams at a time may have used up a number that is DP_PUSH_NARROW or more above the mark; other streams
 * wait for their missing numbers. This bounds the time to pack all of it, in a turn, to milliseconds,
 * whatever peers send. The statuses of the last DP_REFUSED_MAX refused pushes are kept.
 *
 * Forgetting. The number of streams is bounded, and the least recently used one is forgotten; a push and its
 * resend are uses.
 *     clients   DP_PUSH_CLIENTS_MAX streams that were given at handshakes.
 *     runs      DP_PUSH_RUNS_MAX training runs, each with all its epochs.
 *     epochs    DP_PUSH_EPOCHS_MAX streams of all runs together. The run with the most of them gives one up,
 *     so other runs
 *               never reduce a run to fewer than its share (8).
 * A forgotten stream must never count as new. So a floor is raised past it: a stream below its floor that is
 * not known is too old. There is one floor for clients, one for runs, and one for the epochs of each known
 * run. Floors cannot exceed the admitted streams: the caller admits only streams that can have been given out
 * (admission.c). New clients and runs have a quota: half of the maximum at once, and all of it in
 * DP_PUSH_QUOTA_S seconds. A newcomer waits for its quota, a fraction of a second if there are no others. So
 * a stream that is used every four minutes is not forgotten, however many others come. Epochs have no quota:
 * a run of short epochs needs many, and they displace only epochs of their own run.
 *
 * Each write-back cycle puts this memory, packed, into the store's mark "ids". Numbers used up since are in
 * the journal's records (journaling.c); replay restores it, including the order of use, without quota or
 * clock. Little endian:
 *     format u32 (3) | streams u32 | floor of clients u64 | floor of runs u64 | refused u32 | runs u32 |
 *     runs times, ascending: run u32 | 0 u32 | floor of its epochs u64
 *     streams times, least recently used first: id u64 | low u64 | words u32 | u64[words], bit i of them:
 *     number low + i
 *         is used up
 *     refused times, oldest first: stream u64 | number u64 | status u32
 * Formats 2 (without floors) and 4 (with pushes that the store has for some keys only) are refused, with the
 * way out.
 * Thread    The shard's. */
#ifndef DP_IDS_PUSH_IDS_H
#define DP_IDS_PUSH_IDS_H

#include "common/base/status.h"
#include "common/model/stream.h"

#include <stddef.h>
#include <stdint.h>

#define DP_PUSH_NARROW      4096u
#define DP_PUSH_WIDE_MAX    256u
#define DP_PUSH_CLIENTS_MAX 8192u
#define DP_PUSH_EPOCHS_MAX  8192u
#define DP_PUSH_RUNS_MAX    1024u
#define DP_STREAMS_MAX      (DP_PUSH_CLIENTS_MAX + DP_PUSH_EPOCHS_MAX)
#define DP_PUSH_QUOTA_S     512u
#define DP_REFUSED_MAX      256u

struct dp_push_ids;

enum dp_status dp_push_ids_new(struct dp_push_ids **out);
void dp_push_ids_free(struct dp_push_ids **ids);

enum dp_push_seen {
    DP_PUSH_NEW,
    DP_PUSH_REPEATED, /* applied before, or refused so long ago that its status is no longer known */
    DP_PUSH_REFUSED,  /* refused before, with *status */
    DP_PUSH_ABOVE,    /* beyond the window: retry once the missing numbers before it have come */
    DP_PUSH_TOO_OLD,  /* the stream is unknown and below a floor: it may have been forgotten */
};
/* Changes nothing. stream > 0. */
enum dp_push_seen dp_push_ids_look(const struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status *status);
/* Whether the stream (of training: its run) was admitted before and is remembered. */
bool dp_push_ids_knows(const struct dp_push_ids *ids, uint64_t stream);
/* The floor for streams like this one: unknown streams up to this id are too old; 0: none are. For a training
 * stream whose run is known it is an epoch of that run, else the last epoch of a run. */
uint64_t dp_push_ids_too_old(const struct dp_push_ids *ids, uint64_t stream);
/* The stream of the last epoch of the last run that is remembered; 0: none. */
uint64_t dp_push_ids_last_training(const struct dp_push_ids *ids);
/* The greatest client stream that is known or below the floor; 0: none. */
uint64_t dp_push_ids_last_client(const struct dp_push_ids *ids);
/* The greatest run that is known or below the floor; 0: none. */
uint32_t dp_push_ids_last_run(const struct dp_push_ids *ids);

/* Counts a repeated push as a use of its stream, if that is known. */
void dp_push_ids_use(struct dp_push_ids *ids, uint64_t stream);

enum dp_push_room {
    DP_PUSH_ROOM,
    DP_PUSH_NO_MEMORY,
    DP_PUSH_TOO_FAR,  /* DP_PUSH_NARROW or more above a missing number, like DP_PUSH_WIDE_MAX other streams */
    DP_PUSH_TOO_MANY, /* its client or run is new and the quota is used up: retry */
};
/* Reserves space for a new number, so that add cannot fail. now_ns NULL: ignores the quota and the limit on wide streams. */
DP_MUST_USE
enum dp_push_room dp_push_ids_reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                      const uint64_t *now_ns);
/* Uses up a new number after a successful reserve: the push was applied (DP_OK), or refused with this
 * status. */
void dp_push_ids_add(struct dp_push_ids *ids, uint64_t stream, uint64_t number, enum dp_status status);

/* For replay: uses up a number whether or not it is remembered already, without the limit on wide streams and
 * without the quota. Fails only with DP_NOMEM. */
enum dp_status dp_push_ids_restore(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status status);

/* Of a copy that will be packed: the number counts as new again. One that is not used up stays so. DP_AGAIN: a number of its stream
 * is used up that would be beyond the window then. */
enum dp_status dp_push_ids_take_back(struct dp_push_ids *ids, uint64_t stream, uint64_t number);
/* Likewise: the number, which is used up, is refused with this status from now on. */
void dp_push_ids_refuse(struct dp_push_ids *ids, uint64_t stream, uint64_t number, enum dp_status status);

/* Returns bytes that the caller frees; NULL: out of memory. */
void *dp_push_ids_pack(const struct dp_push_ids *ids, size_t *size);
/* Unpacks into new, empty ids. DP_CORRUPT: the bytes are not packed ids. DP_UNSUPPORTED: of format 2 or 4. */
enum dp_status dp_push_ids_unpack(struct dp_push_ids *ids, const void *bytes, size_t size,
                                  struct dp_error *err);

/* A stream, for inspection. holes: unused numbers between the low-water mark and the greatest used one. */
struct dp_push_stream {
    uint64_t stream, low, used_above, holes;
};
/* Streams ascending; refused: oldest first. */
void dp_push_ids_visit(
    const struct dp_push_ids *ids, void (*stream)(void *context, const struct dp_push_stream *stream),
    void (*refused)(void *context, uint64_t stream, uint64_t number, enum dp_status status), void *context);
/* Unknown client streams and runs below these are too old. */
struct dp_push_floors {
    uint64_t clients, runs;
};
struct dp_push_floors dp_push_ids_floors(const struct dp_push_ids *ids);

#endif

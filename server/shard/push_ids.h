/* Push ids: which pushes a shard has applied or refused for good, so that a resend is not counted twice and hears
 * the same.
 * Each stream has a low-water mark (all numbers below it are used up) and a window of DP_PUSH_WINDOW numbers above
 * it, one bit each, kept only while some are used up out of order. DP_PUSH_WIDE_MAX streams at a time may have used up one
 * that is DP_PUSH_NARROW or more above the mark, all others wait for what is missing then: so that packing all of this, in
 * a turn, takes milliseconds whatever peers send. Of the refused the last DP_REFUSED_MAX are known
 * by their status.
 *
 * Forgetting. Streams are bounded, and what was used longest ago is forgotten; a push and its resend are uses.
 *     clients   DP_PUSH_CLIENTS_MAX streams that were given at handshakes.
 *     runs      DP_PUSH_RUNS_MAX of training, a run with all its epochs.
 *     epochs    DP_PUSH_EPOCHS_MAX streams of all runs together: the run with the most of them gives one up, so no
 *               run ever has fewer than its share (8) because of others.
 * A stream that was forgotten must never count as new. So a floor is raised past it, and what lies below a floor and is
 * not known is too old: one floor for clients, one for runs, and one for the epochs of each run that is known. What
 * was admitted bounds the floors: the caller lets only those in that can have been given out (admission.c).
 * Builds before format 3 admitted any stream. One that cannot have been given out (dp_push_ids_set_due) raises no floor when
 * it is forgotten: admission refuses it without one, and a floor that high would leave nothing for newcomers.
 * New clients and runs have a quota: half of the maximum at once, and the whole of it in DP_PUSH_QUOTA_S seconds. A
 * newcomer waits for it, a fraction of a second when nobody else does. So what is used every four minutes is not
 * forgotten, however many others come. Epochs have none: a run of short epochs needs many, and only its own are at stake.
 *
 * Packed, this memory is put with each write-back cycle's marks, as the store's mark "ids"; what was used up since is
 * in the journal's records (journaling.c), and replay restores it, the order of use included, without quota or
 * clock. Little endian:
 *     format u32 (3) | streams u32 | floor of clients u64 | floor of runs u64 | refused u32 | runs u32 |
 *     runs times, ascending: run u32 | 0 u32 | floor of its epochs u64
 *     streams times, used longest ago first: id u64 | low u64 | words u32 | u64[words], bit i of them: number low + i
 *         is used up
 *     refused times, oldest first: stream u64 | number u64 | status u32
 * Format 2 is read too: it has the greatest forgotten id of each kind (clients, training) in the place of floors, no
 * runs, and streams ascending. Of a forgotten id that cannot have been given out, the floor is above all that can.
 * Thread    The shard's. */
#ifndef DP_SHARD_PUSH_IDS_H
#define DP_SHARD_PUSH_IDS_H

#include "common/base/status.h"
#include "common/model/stream.h"

#include <stddef.h>
#include <stdint.h>

#define DP_PUSH_WINDOW      65536u
#define DP_PUSH_NARROW      4096u
#define DP_PUSH_WIDE_MAX    256u
#define DP_PUSH_CLIENTS_MAX 8192u
#define DP_PUSH_EPOCHS_MAX  8192u
#define DP_PUSH_RUNS_MAX    1024u
#define DP_STREAMS_MAX      (DP_PUSH_CLIENTS_MAX + DP_PUSH_EPOCHS_MAX)
#define DP_PUSH_QUOTA_S     512u
#define DP_REFUSED_MAX      256u

struct dp_push_ids;

DP_MUST_USE
enum dp_status dp_push_ids_new(struct dp_push_ids **out);
void dp_push_ids_free(struct dp_push_ids **ids);

/* The greatest client stream, and the greatest run, that can have been given out by now. Before it is called: any. */
void dp_push_ids_set_due(struct dp_push_ids *ids, uint64_t client, uint64_t run);

enum dp_push_seen {
    DP_PUSH_NEW,
    DP_PUSH_REPEATED, /* applied before; or refused so long ago that its status is not known any more */
    DP_PUSH_REFUSED,  /* before, with *status */
    DP_PUSH_ABOVE,    /* beyond the window: ask again when the ones before it are there */
    DP_PUSH_TOO_OLD,  /* its stream is not known and lies below a floor: it may have been forgotten */
};
/* Changes nothing. stream > 0. */
enum dp_push_seen dp_push_ids_look(const struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status *status);
/* Whether it, or of a training stream its run, was admitted before and is remembered. */
bool dp_push_ids_knows(const struct dp_push_ids *ids, uint64_t stream);
/* Where streams like this one begin to be taken: all up to this id that are not known are too old. 0: none is. Of a
 * training stream whose run is known, an epoch of that run; else the last epoch of a run. */
uint64_t dp_push_ids_too_old(const struct dp_push_ids *ids, uint64_t stream);
/* The greatest run that is known or below the floor; 0: none. */
uint32_t dp_push_ids_last_run(const struct dp_push_ids *ids);

/* A push that was seen before came again: its stream, if it is known, is in use. */
void dp_push_ids_use(struct dp_push_ids *ids, uint64_t stream);

enum dp_push_room {
    DP_PUSH_ROOM,
    DP_PUSH_NO_MEMORY,
    DP_PUSH_TOO_FAR, /* DP_PUSH_NARROW or more above one that is missing, and DP_PUSH_WIDE_MAX other streams have such */
    DP_PUSH_TOO_MANY, /* its client or run is new, and the quota is used up: ask again */
};
/* Makes room for a number that is new, so that add cannot fail. */
DP_MUST_USE
enum dp_push_room dp_push_ids_reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                      uint64_t now_ns);
/* A new number, for which there is room, is used up: applied (DP_OK), or refused with this status. */
void dp_push_ids_add(struct dp_push_ids *ids, uint64_t stream, uint64_t number, enum dp_status status);

/* Replay: the same, whether it is remembered already or not, however many streams are wide, and without the quota.
 * DP_NOMEM. */
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
/* What is not known below these is too old: client streams, runs. */
struct dp_push_floors {
    uint64_t clients, runs;
};
struct dp_push_floors dp_push_ids_floors(const struct dp_push_ids *ids);

#endif

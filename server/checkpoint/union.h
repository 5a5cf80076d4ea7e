/* Union: of what the shards say of a cut, what the checkpoint has: the pushes that any of them had counted, and
 * which of those each one lacks and must add from its journal.
 *     make(parts of all shards) -> ids, steps, t*, what each shard lacks -> leave_out(what never came) -> ids, exceptions
 * Promise   all is the union of the shards' ids; a shard's ids and what it lacks are all. A push that a shard left out, as its
 *           sender is gone, is not in `ids`: it is an exception, with the key ranges of the shards that have it. So is one that the
 *           stores had as an exception already, and that no push has brought to all shards since. In a synchronous run
 *           `step` (t*) is the greatest step that a shard has open: steps below it are in the checkpoint. In ssp a step of which a shard left pushes out is not finished in `steps`. After make, ids and exceptions are what they are if
 *           nothing is left out.
 * Thread    Any, each with its own.
 * Memory    Heap: dp_union_clear.
 * Failure   DP_CORRUPT: a shard's ids or steps are none, or it has exceptions for keys that are not its own; naming the shard. DP_AGAIN: the shards are in different runs: cut again.
 *           DP_DATA: a shard lacks more than DP_UNION_LACKING_MAX pushes; there are too many exceptions. DP_NOMEM. */
#ifndef DP_CHECKPOINT_UNION_H
#define DP_CHECKPOINT_UNION_H

#include "common/base/status.h"
#include "server/checkpoint/copier.h"
#include "server/durable/push_exceptions.h"

/* Pushes under way are at most a window a client; a shard that lacks more has lost some. */
#define DP_UNION_LACKING_MAX 65536u

/* As a shard's cut gave them: packed push ids (push_ids.h), steps mark (steps_mark.h; size 0: it has had no run). */
struct dp_union_part {
    const void *ids, *steps;
    size_t ids_bytes, steps_bytes;
};

struct dp_union_lacking {
    struct dp_copy_push *push; /* ascending by (stream, number) */
    uint32_t count;
};

/* What a shard left out: {stream u64, number u64}, ascending, little endian. In ssp, behind a stream 0: its steps mark of then. */
struct dp_union_left_out {
    const void *pushes;
    size_t bytes;
};

struct dp_push_ids;

struct dp_union {
    struct dp_push_ids *all;
    struct dp_push_exceptions *had; /* [shards]: exceptions of the shards' stores */
    struct dp_push_exceptions exceptions;
    void *ids, *steps; /* steps NULL: no shard has had a run */
    size_t ids_bytes, steps_bytes;
    bool has_sync; /* the run is synchronous */
    uint32_t run;  /* 0: none */
    uint64_t step; /* t*, with has_sync */
    /* For a person: the last run that pushed, its last epoch, its pushes; 0: there was none. */
    uint32_t last_run, last_epoch;
    uint64_t pushes;
    uint32_t shards;
    struct dp_union_lacking *lacking; /* [shards] */
};

DP_MUST_USE
enum dp_status dp_union_make(const struct dp_union_part *parts, uint32_t shards, struct dp_union *out,
                             struct dp_error *err);
/* left_out: [shards], of the shards' cuts when they have copied. Once. */
DP_MUST_USE
enum dp_status dp_union_leave_out(struct dp_union *cut, const struct dp_union_left_out *left_out,
                                  struct dp_error *err);
void dp_union_clear(struct dp_union *cut); /* accepts {0} */

#endif

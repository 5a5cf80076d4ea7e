/* Union: the pushes of a checkpoint. It has each push that any shard had counted at the cut. It lists for
 * each shard the pushes that the shard lacks and must add from its journal.
 *     make(parts of all shards) -> ids, steps, t*, what each shard lacks -> give_up(what will not come) -> ids, partial
 * Promise   `ids` is the union of the shards' ids. A shard's ids and the ids that it lacks make up `ids`. A
 *           push that is given up stays on the shards that have it: it is partial, its number is used up,
 *           and `ids` refuse it with DP_PARTIAL (the last DP_REFUSED_MAX of them). In a synchronous run
 *           `step` (t*) is the greatest step that a shard has open: steps below it are in the checkpoint.
 * Thread    Any, each with its own.
 * Memory    Heap: dp_union_clear.
 * Failure   DP_CORRUPT: a shard's ids or steps are none, naming the shard. DP_AGAIN: the shards are in different runs: cut again.
 *           DP_DATA: a shard lacks more than DP_UNION_LACKING_MAX pushes. DP_NOMEM. */
#ifndef DP_CHECKPOINT_UNION_H
#define DP_CHECKPOINT_UNION_H

#include "common/base/status.h"
#include "server/checkpoint/copier.h"

/* Pushes under way are at most a window a client; a shard that lacks more has lost some. */
#define DP_UNION_LACKING_MAX 65536u

/* As a shard's cut gave them: packed push ids (push_ids.h), steps mark (steps_mark.h; size 0: it has had no run). */
struct dp_union_part {
    const void *ids, *steps;
    size_t ids_bytes, steps_bytes;
};

struct dp_push_ids;

struct dp_union {
    struct dp_push_ids *all;
    void *ids, *steps; /* steps NULL: no shard has had a run */
    size_t ids_bytes, steps_bytes;
    bool has_sync; /* the run is synchronous */
    uint32_t run;  /* 0: none */
    uint64_t step; /* t*, with has_sync */
    /* For a person: the last run that pushed, its last epoch, its pushes; 0: there was none. */
    uint32_t last_run, last_epoch;
    uint64_t pushes;
    uint32_t shards;
    struct dp_copy_pushes *lacking; /* [shards] */
    struct dp_copy_pushes partial;
};

enum dp_status dp_union_make(const struct dp_union_part *parts, uint32_t shards, struct dp_union *out,
                             struct dp_error *err);
/* Finds the pushes that some shard lacked and that `rule` names: each once, ascending. The caller frees out->push. */
enum dp_status dp_union_find_lacking(const struct dp_union *cut,
                                     bool (*rule)(const void *context, const struct dp_copy_push *push),
                                     const void *context, struct dp_copy_pushes *out, struct dp_error *err);
/* pushes: struct dp_copy_pushes, ascending. */
bool dp_union_has_push(const void *pushes, const struct dp_copy_push *push);
/* Shards no longer lack the pushes that is_given_up names; these are partial. */
enum dp_status dp_union_give_up(struct dp_union *cut,
                                bool (*is_given_up)(const void *context, const struct dp_copy_push *push),
                                const void *context, struct dp_error *err);
void dp_union_clear(struct dp_union *cut); /* accepts {0} */

#endif

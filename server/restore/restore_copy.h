/* Restore copy: one shard of a checkpoint becomes a store with its journal, as that shard would be found after a crash at the cut.
 *     files out of the pool -> the tail as `journal` -> marks: own ones, with a new id; ids and steps of all shards; tables
 * Promise   When it returns, everything is durable except the directory's own name. The next opening
 *           replays the tail and has the checkpoint's rows, push ids and steps.
 * Thread    Any.
 * Failure   DP_CORRUPT: a file of the checkpoint is missing or damaged (named). DP_FULL, DP_IO. The caller
 *           removes the incomplete store. */
#ifndef DP_RESTORE_RESTORE_COPY_H
#define DP_RESTORE_RESTORE_COPY_H

#include "server/restore/restore_from.h"

/* Which cluster, and which history of it, the restored stores are of. */
struct dp_restore_own {
    uint64_t cluster, generation, history;
};

/* directory: made here; nothing may be there. */
enum dp_status dp_restore_copy(const struct dp_restore_from *from, uint32_t shard,
                               const struct dp_restore_own *own, const char *directory, struct dp_error *err);

#endif

/* Copier thread: the copier of a server (copier.h): one thread, which does the jobs of all its shards one after the other.
 *     open -> add (for each shard) -> jobs -> remove (for each shard) -> close
 * Thread    open, close, add, remove: any, not at the same time for one shard. A shard's copier: the shard's thread. wake is called by
 *           the copier's thread when a job of that shard is completed.
 * Memory    directory is copied. Jobs that the shard did not take back are freed by remove. */
#ifndef DP_CHECKPOINT_COPIER_THREAD_H
#define DP_CHECKPOINT_COPIER_THREAD_H

#include "server/checkpoint/copier.h"
#include "server/checkpoint/copy_run.h"

struct dp_copier_thread;

struct dp_copier_thread_place {
    struct dp_copy_place place;
    void (*wake)(void *context);
    void *wake_context;
};

enum dp_status dp_copier_thread_open(struct dp_copier_thread **out, struct dp_error *err);
/* All shards were removed. Accepts NULL inside, leaves NULL. */
void dp_copier_thread_close(struct dp_copier_thread **thread);

enum dp_status dp_copier_thread_add(struct dp_copier_thread *thread,
                                    const struct dp_copier_thread_place *place, struct dp_copier *out,
                                    struct dp_error *err);
/* Cancels the shard's jobs, waits until none is under way, and frees them. wake is not called any more when it
 * returns. Accepts {0}, leaves {0}. */
void dp_copier_thread_remove(struct dp_copier *copier);

#endif

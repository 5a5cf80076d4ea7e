/* Listing: the checkpoints that a directory has, and the lock under which they are made and removed.
 * Promise   A checkpoint is a directory checkpoint-N that has a manifest; nothing else is listed.
 * Lock      One process at a time makes, sweeps or prunes in a directory (flock of the file DIR/lock; its end, however it comes,
 *           releases it). Listing, verifying and restoring take no lock. A checkpoint that is removed in
 *           that time is reported as missing, by name.
 * Thread    Any.
 * Failure   DP_NOT_FOUND: there is no such directory, or no checkpoint. DP_IN_USE: another process has the lock. DP_IO. */
#ifndef DP_CHECKPOINT_LISTING_H
#define DP_CHECKPOINT_LISTING_H

#include "server/checkpoint/paths.h"

#include <stddef.h>

struct dp_checkpoint_list {
    uint32_t *number; /* [count], ascending; heap */
    size_t count;
    uint32_t greatest; /* of all directories of that name, with a manifest or without; 0: none */
};

enum dp_status dp_checkpoint_list_read(const char *directory, struct dp_checkpoint_list *out,
                                       struct dp_error *err);
void dp_checkpoint_list_clear(struct dp_checkpoint_list *list); /* accepts {0} */

/* What a person names: DIR/checkpoint-000003, its manifest, or DIR: its last checkpoint. *directory: DIR. */
enum dp_status dp_checkpoint_find(const char *path, struct dp_checkpoint_path *directory, uint32_t *number,
                                  struct dp_error *err);

/* *lock: to be given to unlock. The directory is made if it is missing. */
enum dp_status dp_checkpoint_lock(const char *directory, int *lock, struct dp_error *err);
void dp_checkpoint_unlock(int *lock); /* accepts -1, leaves -1 */

#endif

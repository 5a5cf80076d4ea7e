/* Restore: a cluster from one of the world's checkpoints, as server/restore makes it.
 *     the same number of shards: each is its link with its tail as journal, and the marks that the restore puts
 *     another one: each old shard is made so, opened and drained; its rows go into the stores of the new ones
 * Product   tails (server/checkpoint/tail.c), marks (restore_marks.c), rows (restore_rows.c), the shard's own recovery. Modelled: files, and
 *           in which order they are made durable.
 * Thread    One. Failure: sim_fail. */
#ifndef DP_TESTS_SIM_RESTORE_H
#define DP_TESTS_SIM_RESTORE_H

#include "tests/sim/checkpoints.h"

/* Each of its shards, recovered, has the rows of its image. */
void sim_restore_check(struct sim_world *world, const struct sim_checkpoint *checkpoint);
/* Everybody is killed, and comes back with what the checkpoint has, on so many shards. */
void sim_restore(struct sim_world *world, const struct sim_checkpoint *checkpoint, uint32_t servers);
/* Its register's file, alone. */
struct dp_sim_disk *sim_disk_with_register(const struct sim_checkpoint *checkpoint);

#endif

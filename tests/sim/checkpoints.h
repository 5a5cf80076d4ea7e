/* Checkpoints: what the world has of checkpoints: parts, as the servers' copiers made them, and whole ones, which were finished.
 *     a copier puts parts -> a command finishes them -> (checked) -> a restore takes one
 * Promise   A finished checkpoint is compared with what the model says it has, row by row, as a restore makes it (restore.h).
 * Thread    One. Memory: the world's, to its end. */
#ifndef DP_TESTS_SIM_CHECKPOINTS_H
#define DP_TESTS_SIM_CHECKPOINTS_H

#include "common/client/checkpoint.h"
#include "server/checkpoint/union.h"
#include "server/restore/restore_from.h"
#include "tests/lib/sim_disk.h"
#include "tests/sim/sim_store.h"

#define SIM_CHECKPOINTS_MAX 6u

struct sim_part {
    uint64_t order, lsn, after, until;
    uint32_t shard;
    struct dp_copy_pushes missing;
    struct sim_store_copy *link;
    struct dp_sim_disk *tail; /* a journal's directory */
    struct dp_manifest_tail facts;
};

struct sim_part *sim_part_new(const struct dp_copy_job *job);
void sim_part_free(struct sim_part **part); /* accepts NULL inside, leaves NULL */

struct sim_checkpoint {
    uint64_t order;
    struct sim_part *part[SIM_SERVERS_MAX];
    struct dp_restore_from from; /* by its manifest, as the restore reads it; without files */
    void *registered;            /* the register's file */
    size_t registered_bytes;
    uint64_t view;           /* of the register; 0: none */
    struct sim_image *image; /* what it has (model_image.h); NULL: not checked yet */
};

struct sim_checkpoints *sim_checkpoints_new(struct sim_world *world);
void sim_checkpoints_free(struct sim_checkpoints **checkpoints);
/* Takes the part over. One of the same order and shard that was there goes. */
void sim_checkpoints_put(struct sim_world *world, struct sim_part **part);
/* Every shard has copied its part. Takes the partial pushes of the cut. */
void sim_checkpoints_finish(struct sim_world *world, uint64_t order, struct dp_union *cut,
                            const struct dp_register_value *registered);
/* One that was checked. NULL: there is none. */
const struct sim_checkpoint *sim_checkpoints_pick(struct sim_world *world);

#endif

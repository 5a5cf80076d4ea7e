/* Image: what a checkpoint has, as the model's records say: of each shard the records up to its cut and those behind it that other shards
 * had at theirs; in sync only of steps below the greatest one that was open at a cut.
 *     new (of the model of now) -> compared with what a restore makes -> sim_model_restore -> free
 * Checked   The checkpoint's push ids are those of the records; those that are not on all shards are listed, are of a client that does not
 *           train, and are refused.
 * Thread    One. Failure: sim_fail. */
#ifndef DP_TESTS_SIM_MODEL_IMAGE_H
#define DP_TESTS_SIM_MODEL_IMAGE_H

#include "server/checkpoint/copier.h"
#include "tests/sim/model.h"

struct sim_cut {
    uint64_t lsn, until;                /* all that it has is up to `until` */
    const struct dp_copy_push *missing; /* behind lsn: these only */
    uint32_t missing_count;
};

struct sim_image;

struct sim_image *sim_image_new(struct sim_model *model, const struct sim_cut cut[SIM_SERVERS_MAX],
                                const void *ids, size_t ids_bytes, const struct dp_copy_pushes *partial);
void sim_image_free(struct sim_image **image); /* accepts NULL inside, leaves NULL */
/* One old shard's store, as a restore recovers it. */
void sim_image_compare(const struct sim_image *image, uint32_t shard, const struct sim_store *store);

/* All shards are now what a restore made of it: the greatest lsn of each. same: the number of shards is the image's.
 * view: the register's. */
void sim_model_restore(struct sim_model *model, struct sim_image *image, const uint64_t lsn[SIM_SERVERS_MAX],
                       bool same, uint64_t view);
/* Of now, what the records of this shard gave up to the restore; nothing, without one. */
void sim_model_rewind(struct sim_model *model, uint32_t shard);

#endif

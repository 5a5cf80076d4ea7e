/* Shard bed: one shard, and what outlives it: a store, a clock turned by hand, a simulated disk for its journal.
 *     fill in options, open_store -> shard_bed_open -> turns -> shard_bed_close, or shard_bed_crash -> shard_bed_open ...
 * Unit tests add a fake store, requests and replies (tests/unit/server/shard/bed.h), the simulator a world (tests/sim/server.h).
 * Thread    One. */
#ifndef DP_TESTS_LIB_SHARD_BED_H
#define DP_TESTS_LIB_SHARD_BED_H

#include "server/shard/shard.h"
#include "tests/lib/sim_disk.h"

struct shard_bed {
    struct dp_shard_options options; /* of the next opening, but for the store */
    struct dp_store (*open_store)(void *context);
    void *store_context;
    struct dp_store store;
    struct dp_shard *shard;  /* NULL: closed, or it did not open */
    struct dp_sim_disk *sim; /* NULL: without a journal */
    struct dp_disk disk;     /* its interface, which a test may change */
};

/* From the next opening on there is a journal, on this disk. */
void shard_bed_journal(struct shard_bed *bed, struct dp_sim_disk *sim, enum dp_durability durability,
                       uint64_t segment_bytes, uint64_t budget_bytes);
/* Whatever it returns, shard_bed_close comes next, at some time. */
enum dp_status shard_bed_open(struct shard_bed *bed, struct dp_error *err);
void shard_bed_close(struct shard_bed *bed);
/* Its disk is off from now on, so that closing saves nothing. */
void shard_bed_cut(struct shard_bed *bed);
/* The counter of that name. */
uint64_t shard_bed_counter(const struct shard_bed *bed, const char *name);

#endif

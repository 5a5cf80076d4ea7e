/* Copier: the other form of server/checkpoint/copier.h: one thread of a server, played by events.
 *     new -> (seam: submit -> the tail, by the product's own code -> the link's rows and marks -> completed)* -> free
 * Promise   As copier.h: the journal is read before has_tail, the link before the job's end. Some copies fail, until the world is calm.
 * Thread    One. Memory: parts go to the world's checkpoints. */
#ifndef DP_TESTS_SIM_COPIER_H
#define DP_TESTS_SIM_COPIER_H

#include "server/checkpoint/copier.h"
#include "server/journal/journal.h"
#include "tests/sim/sim_store.h"

struct sim_copier;

struct sim_copier_options {
    struct sim_world *world;
    struct dp_disk *journal; /* of the shard */
    const struct sim_store *rows;
    void (*wake)(void *context);
    void *context;
};

struct sim_copier *sim_copier_new(const struct sim_copier_options *options);
void sim_copier_free(struct sim_copier **copier);
struct dp_copier *sim_copier_seam(struct sim_copier *copier);
/* The process died: its jobs are gone. */
void sim_copier_crash(struct sim_copier *copier);

#endif

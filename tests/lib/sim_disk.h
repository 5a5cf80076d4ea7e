/* Simulated disk: dp_disk in memory, by a seed. It knows what was synced and what was not, loses power at any
 * operation, and shows afterwards what survived.
 * Promise   Unsynced writes survive by whole 512-byte sectors: none, all, or a random subset, the write that the
 *           cut falls into too. Unsynced creates, renames and removes survive: none, all, the first few, or a
 *           random subset. A failed sync makes nothing durable and forgets what was dirty: later syncs say OK and
 *           do not save it; what is read is the old or the new.
 * Counted   open that creates, reserve, write, sync, rename, remove, sync_directory.
 * Thread    Any (one lock). */
#ifndef DP_TESTS_LIB_SIM_DISK_H
#define DP_TESTS_LIB_SIM_DISK_H

#include "common/env/disk.h"

#include <stdbool.h>

struct dp_sim_disk;

enum dp_sim_survival {
    DP_SIM_NOTHING, /* nothing that was not synced */
    DP_SIM_ALL,
    DP_SIM_RANDOM,
    DP_SIM_PROCESS, /* no power was lost, a process died: nothing is lost, nothing becomes durable */
};

enum dp_sim_operation {
    DP_SIM_CREATE,
    DP_SIM_RESERVE,
    DP_SIM_WRITE,
    DP_SIM_SYNC,
    DP_SIM_RENAME,
    DP_SIM_REMOVE,
    DP_SIM_SYNC_DIRECTORY,
    DP_SIM_OPERATIONS
};

struct dp_sim_disk *dp_sim_disk_new(uint64_t seed);
void dp_sim_disk_free(struct dp_sim_disk **sim); /* accepts NULL inside, leaves NULL */
struct dp_disk dp_sim_disk_interface(struct dp_sim_disk *sim);

/* Power goes at the operation with this number, counted from now; 0: never. All fails with DP_IO from there on. */
void dp_sim_disk_cut_at(struct dp_sim_disk *sim, uint64_t operation);
bool dp_sim_disk_is_off(struct dp_sim_disk *sim);
uint64_t dp_sim_disk_operations(struct dp_sim_disk *sim);
/* All open files are dead (they must still be closed). */
void dp_sim_disk_restart(struct dp_sim_disk *sim, enum dp_sim_survival survival);

/* The nth operation of that kind from now fails with this status; 0: none. `times` in a row. */
void dp_sim_disk_fail(struct dp_sim_disk *sim, enum dp_sim_operation kind, uint64_t nth, uint64_t times,
                      enum dp_status status);
/* Space for all files; growing beyond it is DP_FULL. */
void dp_sim_disk_capacity(struct dp_sim_disk *sim, uint64_t bytes);
uint64_t dp_sim_disk_used(struct dp_sim_disk *sim);

/* What a reader sees of a file, for tests that look at it or damage it; NULL: no such file. */
uint8_t *dp_sim_disk_bytes(struct dp_sim_disk *sim, const char *name, uint64_t *bytes);

#endif

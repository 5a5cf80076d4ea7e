/* Sim store: store.h in memory whose jobs take simulated time, finish as a disk's might, and do not survive all.
 *     new -> open(&store) -> jobs ... -> close, or crash -> open again ... -> free
 * Promise   As store.h, as weakly as it allows: reads finish in any order and may see a row before or after a write
 *           that is under way beside them, each row for itself; a write is there before the next marks job only
 *           if luck will have it, where power was lost; what was not done when the process died was done up to
 *           some job, or not.
 * Thread    One. Memory: rows and marks are copied. */
#ifndef DP_TESTS_SIM_SIM_STORE_H
#define DP_TESTS_SIM_SIM_STORE_H

#include "server/store/store.h"
#include "tests/sim/world.h"

struct sim_store;

/* wake(context): a job was completed. wrote(context, lsn): rows are written, the newest of this lsn. */
struct sim_store *sim_store_new(struct sim_world *world, void (*wake)(void *context),
                                void (*wrote)(void *context, uint64_t lsn), void *context);
void sim_store_free(struct sim_store **store); /* closed */
/* Jobs take up to job_ms; at most jobs_max are under way. */
struct dp_store sim_store_open(struct sim_store *store);
/* Everything stops: what was under way is given back by completed(), failed. Then close. */
void sim_store_crash(struct sim_store *store, bool power);
/* The next job of this kind fails; after a write or marks, all later ones do until it is opened again. */
void sim_store_fail(struct sim_store *store, enum dp_store_job_kind kind, enum dp_status why);

/* died(context) right after the next job of this kind is done. */
void sim_store_die(struct sim_store *store, enum dp_store_job_kind kind, void (*died)(void *context));
/* One failed, and all later ones will. */
bool sim_store_is_poisoned(const struct sim_store *store);
void sim_store_heal(struct sim_store *store); /* what waits to fail does not */

uint32_t sim_store_rows(const struct sim_store *store);
/* NULL: not there. Lent until the next change. */
const void *sim_store_row(const struct sim_store *store, struct dp_store_key key, size_t *bytes);

/* ---- links and copies */
uint32_t sim_store_links(const struct sim_store *store);
/* Rows and marks of a link, of a heap of its own; NULL: there is no such link. */
struct sim_store_copy *sim_store_copy_link(const struct sim_store *store, const char *name);
void sim_store_copy_free(struct sim_store_copy **copy); /* accepts NULL inside, leaves NULL */
void sim_store_copy_marks(const struct sim_store_copy *copy,
                          void (*visit)(void *context, const struct dp_store_mark *mark), void *context);
/* Of a store that is closed and empty. */
void sim_store_fill(struct sim_store *store, const struct sim_store_copy *copy);
/* Without a job. Without a value it is removed. */
void sim_store_put_mark(struct sim_store *store, const struct dp_store_mark *mark);
/* Jobs take no time: done when they are submitted. */
void sim_store_at_once(struct sim_store *store, bool at_once);

#endif

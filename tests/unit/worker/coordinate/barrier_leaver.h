/* Barrier leaver: of a barrier run (barrier_run.h), the worker that dies, is let leave, and may come back with pushes.
 * Thread    A process of the world's, or the test's own (leaver_take). */
#ifndef DP_TESTS_UNIT_WORKER_COORDINATE_BARRIER_LEAVER_H
#define DP_TESTS_UNIT_WORKER_COORDINATE_BARRIER_LEAVER_H

#include "tests/unit/worker/coordinate/barrier_run.h"

/* Pushes of `epochs` epochs, with its own. */
uint64_t leaver_due(const struct run *run, uint32_t epochs);
/* Of world_run: takes it away at its step. context: the run. */
void leaver_take(void *context, struct world *world, uint64_t step);
/* Of a job. A process knows that it is gone until it asks again. of: the run. */
bool leaver_is_gone(const void *of, uint32_t worker);
enum dp_status leaver_look(void *of, struct dp_error *err);
enum dp_status leaver_recheck(void *of, struct dp_error *err);
/* Whether this trainee is the leaver, and its next process comes back; and it does. */
bool leaver_comes_back(const struct trainee *trainee);
void leaver_come_back(struct trainee *trainee);

#endif

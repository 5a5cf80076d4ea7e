/* Fake reducer: ranks that are threads of the test. Sums are in order of rank, as servers add.
 *     open -> (a thread for each rank: reducer_of, train, ended) -> close
 * Thread    Any; once a rank has ended nobody waits any more (DP_TIMEOUT), as at the end of a job. */
#ifndef DP_TESTS_UNIT_WORKER_ALLREDUCE_FAKE_REDUCER_H
#define DP_TESTS_UNIT_WORKER_ALLREDUCE_FAKE_REDUCER_H

#include "worker/allreduce/reducer.h"

#define FAKE_RANKS_MAX 8u

struct fake_reducer;

/* meets: called by rank 0 at each meet, alone, with its number from 0 and the limit it has; or NULL. */
struct fake_reducer *fake_reducer_open(uint32_t ranks,
                                       void (*meets)(void *of, uint64_t number, uint64_t limit_ns), void *of);
void fake_reducer_close(struct fake_reducer *fake);
struct dp_reducer fake_reducer_of(struct fake_reducer *fake, uint32_t rank);
/* Rank's sums are off by one in the last place from this one on (counted from 0). */
void fake_reducer_spoil(struct fake_reducer *fake, uint32_t rank, uint64_t from);
void fake_reducer_ended(struct fake_reducer *fake);

#endif

/* Decision: the decisions of a run's workers at its epoch barriers, as one value of the register:
 *     run/<run>/verdict    JSON:
 *                          {"resting":3,"decider":0,"epoch":2,"why":0,...,"from":1,"figures":[[...],...]}
 * Promise   unpack returns the packed values. A value has at most DP_DECISION_BYTES: of a long training the
 *           metrics of the first epochs are left out (`from`), early stopping's state never is. Worker 0's
 *           step log keeps all metrics (stats_history.h).
 * Memory    The struct owns `figures`: init allocates, clear frees. */
#ifndef DP_COORDINATE_DECISION_H
#define DP_COORDINATE_DECISION_H

#include "worker/context/job.h"
#include "worker/schedule/early_stop.h"
#include "worker/telemetry/tested.h"

/* About 370 epochs of a classifier. Half of the register's limit, since each epoch writes and reads the
 * value. */
#define DP_DECISION_BYTES 32768u

struct dp_decision {
    uint32_t resting; /* the last epoch that all workers ended, being evaluated or judged; 0: none */
    uint32_t decider; /* the worker that judges it */
    struct dp_early_stop state; /* of the last epoch that was judged */
    uint32_t workers;           /* of the run */
    uint32_t epochs, from;      /* from: the first epoch with metrics, counted from 1 */
    struct dp_tested *figures;  /* [epochs], metrics of the set that is evaluated after each epoch */
    /* Where the best epoch is kept: metrics of a test set other than that set. */
    struct dp_tested test_kept, test_last; /* of epoch state.kept; of epoch state.epoch */
};

enum dp_status dp_decision_init(struct dp_decision *decision, uint32_t epochs, uint32_t workers,
                                struct dp_error *err);
void dp_decision_clear(struct dp_decision *decision); /* accepts {0} */
/* Returns malloc'd text, or NULL for lack of memory. Raises `from` when the value would be too large. */
char *dp_decision_pack(struct dp_decision *decision);
/* `out` was initialised for the same number of epochs and workers. DP_DATA when the bytes are no decision or contradict
 * themselves; `out` may then be partly filled. */
enum dp_status dp_decision_unpack(const void *bytes, size_t size, struct dp_decision *out,
                                  struct dp_error *err);

#endif

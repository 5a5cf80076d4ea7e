/* First step: a program's forward and backward pass over a batch of zeros when it is opened, on a backend
 * that loads operations at their first use. So if the device lacks memory for them, open fails. Private to
 * this room.
 * Promise   It leaves no trace but the loaded operations: later steps give the same bits as without it, and
 *           its time is not counted. The batch is as large as the worst one.
 * Failure   The status of the failed step. */
#ifndef DP_COMPUTE_FIRST_STEP_H
#define DP_COMPUTE_FIRST_STEP_H

#include "worker/compute/program.h"

enum dp_status dp_first_step(struct dp_program *program, struct dp_error *err);

#endif

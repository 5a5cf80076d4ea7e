/* First step: a program's forward and backward pass over a batch of zeros, taken when it is opened, where the backend loads
 * operations when they are first used. What the device lacks for them, memory most of all, is then an error of open.
 * Promise   It leaves nothing behind but what the device loaded: later steps give the bits that they would give without it, and
 *           its time is in nobody's figures. The batch is as large as the worst one.
 * Failure   What the step failed with. Inside this room only.                                                          */
#ifndef DP_COMPUTE_FIRST_STEP_H
#define DP_COMPUTE_FIRST_STEP_H

#include "worker/compute/program.h"

DP_MUST_USE
enum dp_status dp_first_step(struct dp_program *program, struct dp_error *err);

#endif

/* Program: a graph made ready to run on a backend: every buffer planned and reserved for the worst batch at
 * open; where the backend loads operations at their first use, a step of zeros is taken there, too (first_step.h).
 *     weights in  ->  forward  ->  (backward  ->  gradients out)       each waits until it is done
 *     start  ->  finish                                                both passes, and the host goes on in between
 * Promise   After open nothing is allocated. gradient(p) is d(mean loss)/d(parameter p): dense [rows, width]
 *           (padding up to the block is 0), sparse [distinct, width] in the order of its group's keys.
 * Thread    One thread uses one program.
 * Memory    forward borrows batch and weights until backward returns or the next forward: a backend whose
 *           memory is the host's computes on them where they lie.
 * Failure   DP_ARGUMENT, DP_DATA: nothing was computed. A loss that is NaN or infinite is no failure here: it
 *           is handed on in *loss, and its gradients are what the arithmetic gives.                      */
#ifndef DP_COMPUTE_PROGRAM_H
#define DP_COMPUTE_PROGRAM_H

#include "worker/compute/backend.h"
#include "worker/compute/graph.h"
#include "worker/read/batch.h"

struct dp_program;

/* worst: the worst batch; DP_ARGUMENT where its lists and columns are not those that the graph reads. graph and
 * backend stay the caller's and outlive the program. */
DP_MUST_USE
enum dp_status dp_program_open(const struct dp_graph *graph, const struct dp_backend *backend,
                               const struct dp_batch_shape *worst, struct dp_program **out,
                               struct dp_error *err);
void dp_program_close(struct dp_program **program);
/* Bytes reserved, for the log and the report. */
size_t dp_program_bytes(const struct dp_program *program);

/* From now on forward is that of evaluation (nothing drops out; no backward) or, as at open, of training. A backward needs a
 * forward after it. */
void dp_program_evaluate(struct dp_program *program, bool evaluates);

/* weights[p], host memory: dense: dp_parameter_floats(p); sparse: [distinct keys of its group, width], in
 * their order. output (NULL or host [examples, width of the output node]) gets logits or values; *loss the
 * mean loss. What is pinned (pinned.h) is copied with a deadline. */
DP_MUST_USE
enum dp_status dp_program_forward(struct dp_program *program, const struct dp_batch *batch,
                                  const float *const *weights, float *loss, float *output,
                                  struct dp_error *err);
/* Once after each forward, for the same batch (else DP_ARGUMENT). gradients[p]: host memory of the same
 * shapes as weights[p], overwritten.
 */
DP_MUST_USE
enum dp_status dp_program_backward(struct dp_program *program, float *const *gradients, struct dp_error *err);

/* Forward and backward without waiting: the loss and the gradients are there when the step is finished, in the order of the
 * starts. Up to `depth` steps may be under way: 1 where start computes itself (the CPU), 2 where a device copies one step's
 * data while it computes the other's. Weights and gradients are lent until finish (weights are only read); the batch until finish where depth
 * is 1, else until start returns. After a failure that step is not under way, those started before are. No forward or backward while any
 * is. */
uint32_t dp_program_depth(const struct dp_program *program);
DP_MUST_USE
enum dp_status dp_program_start(struct dp_program *program, const struct dp_batch *batch,
                                const float *const *weights, float *const *gradients, struct dp_error *err);
/* Whether finish will not wait for the oldest step. */
bool dp_program_done(const struct dp_program *program);
/* The oldest one. times: NULL, or what the device spent on it (the CPU: zeros). After a failure no step is under way. */
DP_MUST_USE
enum dp_status dp_program_finish(struct dp_program *program, float *loss, struct dp_device_times *times,
                                 struct dp_error *err);
/* Ends all that are under way, whatever came of them, so that what was lent can be freed. */
void dp_program_drain(struct dp_program *program);

#endif

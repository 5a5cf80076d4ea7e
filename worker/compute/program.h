/* Program: a graph ready to run on a backend. open plans and reserves every buffer for the worst batch; on a
 * backend that loads operations at their first use it also takes a step of zeros (first_step.h).
 *     forward                        weights in, outputs and loss out: waits until it is done
 *     start, (start) -> finish, ...  forward and backward, gradients out; the host continues in between
 * Promise   After open nothing is allocated. gradient(p) is d(mean loss)/d(parameter p): dense [rows, width]
 *           (padding up to the block is 0), sparse [distinct, width] in the order of its group's keys.
 * Thread    One thread uses one program.
 * Memory    A backend with host memory computes on lent batches, weights and gradients in place.
 * Failure   DP_ARGUMENT, DP_DATA: nothing was computed. A loss that is NaN or infinite is not a failure:
 *           *loss has it, and the gradients follow from the arithmetic. */
#ifndef DP_COMPUTE_PROGRAM_H
#define DP_COMPUTE_PROGRAM_H

#include "worker/compute/backend.h"
#include "worker/compute/graph.h"
#include "worker/read/batch.h"

struct dp_program;

/* worst: the worst batch; DP_ARGUMENT when its lists and columns are not those that the graph reads. graph
 * and backend are borrowed and outlive the program. */
enum dp_status dp_program_open(const struct dp_graph *graph, const struct dp_backend *backend,
                               const struct dp_batch_shape *worst, struct dp_program **out,
                               struct dp_error *err);
void dp_program_close(struct dp_program **program);
/* Bytes reserved, for the log and the report. */
size_t dp_program_bytes(const struct dp_program *program);

/* Switches to evaluation (no dropout, no start) or back to training, the state after open. */
void dp_program_evaluate(struct dp_program *program, bool evaluates);

/* weights[p], host memory: dense: dp_parameter_floats(p); sparse: [distinct keys of its group, width], in
 * their order. output (NULL or host [examples, width of the output node]) gets logits or values; *loss the
 * mean loss. Copies of pinned memory (pinned.h) have a deadline. */
enum dp_status dp_program_forward(struct dp_program *program, const struct dp_batch *batch,
                                  const float *const *weights, float *loss, float *output,
                                  struct dp_error *err);

/* Forward and backward without waiting; gradients[p]: host memory of the same shapes as weights[p],
 * overwritten: loss and gradients are complete when the step is finished, in the order of the starts. Up
 * to `depth` steps may be under way: 1 if start itself computes (the CPU), 2 if a device copies one step's
 * data while it computes the other's. Weights (only read) and gradients are lent until finish; the batch
 * until finish if depth is 1, else until start returns. After a failure that step is not under way,
 * earlier ones are. forward may not be called while any step is under way. */
uint32_t dp_program_depth(const struct dp_program *program);
enum dp_status dp_program_start(struct dp_program *program, const struct dp_batch *batch,
                                const float *const *weights, float *const *gradients, struct dp_error *err);
/* Sets what start asks between two operations, where it computes itself (depth 1; NULL: nothing). Once
 * `asked` returns true the step ends as DP_STOPPING; its gradients are undefined. */
void dp_program_gives_up(struct dp_program *program, bool (*asked)(void *of), void *of);
/* Whether finish would return at once. */
bool dp_program_done(const struct dp_program *program);
/* Finishes the oldest step. times: NULL, or the device's times (the CPU: zeros). After a failure no step is
 * under way. */
enum dp_status dp_program_finish(struct dp_program *program, float *loss, struct dp_device_times *times,
                                 struct dp_error *err);
/* Ends all steps that are under way, ignoring failures, so that lent memory can be freed. */
void dp_program_drain(struct dp_program *program);

#endif

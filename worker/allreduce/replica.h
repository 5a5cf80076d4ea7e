/* Replica: one rank's copy of all parameters of a dense model, as the servers would have them: rows with optimizer state.
 *     new -> (rows are pulled -> put the gradients of each parameter -> the ranks' sum -> apply)* -> free
 * Promise   A row begins with the bits that a server gives it (common/model/init.h), and takes a step by the same code
 *           (optimizer.h): the same sums give the same bits.
 * Memory    The gradients of all parameters lie in one array, so that one call adds them; all is allocated by new.
 * Thread    One.
 * Failure   new: DP_UNSUPPORTED names a sparse table, DP_NOMEM a parameter. */
#ifndef DP_ALLREDUCE_REPLICA_H
#define DP_ALLREDUCE_REPLICA_H

#include "worker/compute/graph.h"
#include "worker/context/row_source.h"

struct dp_replica;

/* DP_UNSUPPORTED unless all parameters are dense. model: its name, for the message. */
enum dp_status dp_replica_check(const struct dp_graph *graph, const char *model, struct dp_error *err);
/* extra: floats after the gradients that are added with them. graph: checked; it outlives the replica. */
enum dp_status dp_replica_new(const struct dp_graph *graph, size_t extra, struct dp_replica **out,
                              struct dp_error *err);
void dp_replica_free(struct dp_replica **replica);

/* Its weights, of every parameter. Lives as long as the replica. */
struct dp_row_source dp_replica_rows(struct dp_replica *replica);
/* The gradients of all parameters, then the extra floats. */
float *dp_replica_sums(const struct dp_replica *replica);
/* Of the gradients, without the extra ones. */
size_t dp_replica_floats(const struct dp_replica *replica);
/* Of one parameter the gradients become factor * gradients; NULL: 0. */
void dp_replica_put(struct dp_replica *replica, int parameter, const float *gradients, float factor);

/* One step of the optimizer on every row, by the gradients as they are. rate > 0. */
void dp_replica_apply(struct dp_replica *replica, float rate);

/* Of all rows with their optimizer state. */
uint64_t dp_replica_digest(const struct dp_replica *replica);
/* Weights of a row (row.h: dim floats), or NULL: the parameter has no such row. key: the block's number. Lent
 * until the next apply. */
const float *dp_replica_row(const struct dp_replica *replica, int parameter, uint64_t key);

#endif

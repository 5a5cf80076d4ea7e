/* Weights file: the parameters of a replica as one file of the safetensors format, as `downpour export --to FILE.safetensors` writes
 * those of a store: tensors of the model's shapes, by the tables' names. `downpour import` makes a checkpoint of it.
 * Format    As common/tensors/tensor_file.h, f32.
 * Promise   As atomic_file.h: the file is there whole or not at all.
 * Thread    One.
 * Failure   DP_IO, DP_FULL naming the file. */
#ifndef DP_ALLREDUCE_WEIGHTS_FILE_H
#define DP_ALLREDUCE_WEIGHTS_FILE_H

#include "worker/allreduce/replica.h"

#include "common/config/cluster.h"

/* graph: of the replica. */
DP_MUST_USE
enum dp_status dp_weights_file_write(const char *path, const struct dp_cluster *cluster,
                                     const struct dp_graph *graph, const struct dp_replica *replica,
                                     struct dp_error *err);

#endif

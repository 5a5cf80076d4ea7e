/* Shape: the model in full, where its text leaves out the columns and classes of the training file.
 * Failure   DP_ARGUMENT has the model to type. A file that cannot be measured is no failure if the text can
 *           be in full.
 * Thread    Any. */
#ifndef DP_CONTEXT_SHAPE_H
#define DP_CONTEXT_SHAPE_H

#include "common/config/cluster.h"
#include "worker/compute/models/model.h"

/* out: as cluster->model, in full by cluster->data.train. For a model that dp_model_wants. */
enum dp_status dp_shape_measure(const struct dp_cluster *cluster, char *out, size_t size,
                                struct dp_error *err);

#endif

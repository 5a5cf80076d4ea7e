/* Run shape: the model in full, where its text leaves out the columns and classes of the training file.
 * Promise   A text that is that of the run there stays as it is: older builds had other defaults.
 * Failure   DP_ARGUMENT has the model to type. A file that cannot be measured is left to the workers
 *           if the text can be in full. */
#ifndef DP_RUN_RUN_SHAPE_H
#define DP_RUN_RUN_SHAPE_H

#include "common/config/cluster.h"

/* earlier: the cluster file of the run there. continues: this run trains on its weights, so its columns and classes
 * are those of the earlier data. */
enum dp_status dp_run_shape(struct dp_cluster *cluster, const char *earlier, bool continues,
                            struct dp_error *err);

#endif

/* Names file: what the training file calls the keys of a run's tables, beside its weights (data.names, common/vocab/vocab.h).
 * Promise   Whole or not there. One that is of this run and these data is left alone, so that a worker that starts again reads nothing.
 * Thread    Any.
 * Failure   DP_FULL: there is no room; DP_IO naming the path; DP_DATA: the training file changed since it was loaded. */
#ifndef DP_WORKER_NAMES_FILE_H
#define DP_WORKER_NAMES_FILE_H

#include "worker/read/dataset.h"

struct dp_names_source {
    const struct dp_dataset *data;
    const struct dp_dataset_options *options; /* those that opened it */
    uint32_t run;
};

DP_MUST_USE
enum dp_status dp_names_file_put(const struct dp_names_source *source, const char *path,
                                 struct dp_error *err);

#endif

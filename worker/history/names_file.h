/* Names file: the names that the training file gives to the keys of a run's tables, kept next to the weights
 * (data.names, common/vocab/vocab.h).
 * Promise   The file is complete or absent. A file of this run and this data is left alone, so that a worker
 *           that restarts reads nothing.
 * Thread    Any.
 * Failure   DP_FULL when the disk is full; DP_IO names the path; DP_DATA when the training file changed since
 *           it was loaded. */
#ifndef DP_HISTORY_NAMES_FILE_H
#define DP_HISTORY_NAMES_FILE_H

#include "worker/read/dataset.h"

struct dp_names_source {
    const struct dp_dataset *data;
    const struct dp_dataset_options *options; /* the options that opened it */
    uint32_t run;
};

DP_MUST_USE
enum dp_status dp_names_file_put(const struct dp_names_source *source, const char *path,
                                 struct dp_error *err);

#endif

/* Files: the files of a training for people and other programs next to its store: the columns of its data,
 * the names of its keys, the report.
 * Promise   A full disk is waited for, for training.timeout_ms, and said once: it must not cost a training
 *           or its report.
 * Thread    The client's.
 * Failure   As the file's own `put`; DP_FULL when the disk stayed full. */
#ifndef DP_HISTORY_FILES_H
#define DP_HISTORY_FILES_H

#include "worker/context/job.h"
#include "worker/telemetry/progress.h"

/* Writes one file by its own `put`. */
DP_MUST_USE
enum dp_status dp_files_put(struct dp_job *job, struct dp_progress *progress,
                            enum dp_status (*put)(const void *what, const char *path, struct dp_error *err),
                            const void *what, const char *path, struct dp_error *err);
/* By every worker, before the first push: a store never has weights without the file that says how their features were read. */
DP_MUST_USE
enum dp_status dp_files_columns(struct dp_job *job, struct dp_progress *progress,
                                const struct dp_dataset *train, struct dp_error *err);
/* By worker 0; nothing by the others. */
DP_MUST_USE
enum dp_status dp_files_names(struct dp_job *job, struct dp_progress *progress,
                              const struct dp_dataset *train, struct dp_error *err);

#endif

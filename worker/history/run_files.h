/* Run files: the files for other programs that a training writes next to its store: how its data was read
 * (data.columns, worker/read/schema.h), the names of its keys (data.names, common/vocab/vocab.h),
 * its interactions (data.interactions), and the report.
 * Promise   A file is complete or absent. One with the same content, or of the same run and data, is left
 *           alone: a worker that restarts on a full disk needs no space. A full disk is retried for
 *           training.timeout_ms, and reported once: it must not cost a training or its report.
 * Thread    The client's.
 * Failure   DP_FULL when the disk stays full; DP_IO names the path; DP_DATA when the training file changed
 *           since it was loaded. */
#ifndef DP_HISTORY_RUN_FILES_H
#define DP_HISTORY_RUN_FILES_H

#include "worker/context/job.h"
#include "worker/telemetry/progress.h"

/* Writes one file by its own `put`, again while the disk is full. */
enum dp_status dp_run_files_put(struct dp_job *job, struct dp_progress *progress,
                                enum dp_status (*put)(const void *what, const char *path,
                                                      struct dp_error *err),
                                const void *what, const char *path, struct dp_error *err);
/* Call in every worker before the first push: a store never has weights without the file that says how their
 * features were read. */
enum dp_status dp_run_files_columns(struct dp_job *job, struct dp_progress *progress,
                                    const struct dp_dataset *train, struct dp_error *err);
/* Written by worker 0; the others do nothing. notes: of dp_names_source. */
enum dp_status dp_run_files_names(struct dp_job *job, struct dp_progress *progress,
                                  const struct dp_dataset *train, struct dp_understood *notes,
                                  struct dp_error *err);
/* As names: for pairs, which items each user has met in this and in earlier data
 * (worker/read/interactions.h). */
enum dp_status dp_run_files_interactions(struct dp_job *job, struct dp_progress *progress,
                                         const struct dp_dataset *train, struct dp_error *err);

/* Worker 0, once it trains: DIR/report.json (`dir` of the cluster file) leads to the report of this run. */
void dp_run_files_show_report(const struct dp_job *job);

/* One attempt each. text: written by dp_schema_write. source: a dp_names_source. */
enum dp_status dp_run_files_put_columns(const void *text, const char *path, struct dp_error *err);
struct dp_names_source {
    const struct dp_dataset *data;
    const struct dp_dataset_options *options; /* the options that opened it */
    uint32_t run;
    struct dp_understood *notes; /* gets one for each kind of names that were all unknown before; or NULL */
};
enum dp_status dp_run_files_put_names(const void *source, const char *path, struct dp_error *err);

#endif

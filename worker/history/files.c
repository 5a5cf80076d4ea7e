#include "worker/history/files.h"

#include "common/base/log.h"
#include "worker/history/columns_file.h"
#include "worker/history/names_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FULL_PAUSE_NS 500000000L /* between two attempts to write a file to a full disk */

/* Like a push. */
enum dp_status dp_files_put(struct dp_job *job, struct dp_progress *progress,
                            enum dp_status (*put)(const void *what, const char *path, struct dp_error *err),
                            const void *what, const char *path, struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = FULL_PAUSE_NS};
    uint64_t until_ns = dp_clock_ns(&job->clock) + (uint64_t)job->cluster->training.timeout_ms * 1000000u;
    bool told = false;
    enum dp_status st;
    while ((st = put(what, path, err)) == DP_FULL && dp_clock_ns(&job->clock) < until_ns &&
           !dp_job_stopped(job)) {
        if (!told)
            dp_log(DP_LOG_WARN, "%s; retrying for %" PRIu32 " s (--timeout, training.timeout_ms)", err->text,
                   job->cluster->training.timeout_ms / 1000);
        told = true;
        dp_progress_tick(progress);
        (void)nanosleep(&pause, NULL);
    }
    return st;
}

static enum dp_status put_columns(const void *text, const char *path, struct dp_error *err)
{
    return dp_columns_file_put(text, path, err);
}

enum dp_status dp_files_columns(struct dp_job *job, struct dp_progress *progress,
                                const struct dp_dataset *train, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    char *text = NULL;
    if (!data->columns[0])
        return DP_OK;
    bool counted = strcmp(data->label_base, "auto") != 0;
    enum dp_status st = job->model.labels == DP_LABELS_ANY
                            ? DP_OK
                            : dp_columns_file_check(dp_dataset_schema(train), counted, data->columns, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "%s", data->train);
    st = dp_schema_write(dp_dataset_schema(train), &text, err);
    if (st == DP_OK)
        st = dp_files_put(job, progress, put_columns, text, data->columns, err);
    free(text);
    return st;
}

static enum dp_status put_names(const void *source, const char *path, struct dp_error *err)
{
    return dp_names_file_put(source, path, err);
}

/* By one worker, since it may read the whole file a second time; the other machines need no names. */
enum dp_status dp_files_names(struct dp_job *job, struct dp_progress *progress,
                              const struct dp_dataset *train, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    const struct dp_dataset_options options = dp_job_data(job, data->train, data->train_labels, true);
    const struct dp_names_source source = {
        .data = train, .options = &options, .run = job->cluster->training.run};
    if (!data->names[0] || job->worker != 0)
        return DP_OK;
    return dp_files_put(job, progress, put_names, &source, data->names, err);
}

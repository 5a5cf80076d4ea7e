#include "deploy/checkpoint/saved_logs.h"

#include "deploy/checkpoint/file_bytes.h"
#include "server/checkpoint/making.h"
#include "worker/history/step_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void dp_saved_logs_read(const struct dp_cluster *cluster, struct dp_saved_logs *out)
{
    const struct dp_cluster_training *training = &cluster->training;
    *out = (struct dp_saved_logs){0};
    if (!training->steps[0])
        return;
    out->log = calloc(training->workers, sizeof out->log[0]);
    out->workers = out->log ? training->workers : 0;
    for (uint32_t w = 0; w < out->workers; w++) {
        char path[DP_PATH_MAX + 32];
        struct dp_error err = {0};
        struct dp_saved_logs_one *log = &out->log[w];
        if (dp_step_log_path(training->steps, w, path, sizeof path, &err) != DP_OK || access(path, F_OK) != 0)
            continue;
        if (dp_file_bytes_read(path, &log->bytes, &log->size, &err) != DP_OK) {
            fprintf(stderr, "downpour: warning: %s; a restored run will lack its metrics\n", err.text);
            free(log->bytes);
            *log = (struct dp_saved_logs_one){0};
        }
    }
}

enum dp_status dp_saved_logs_put(const struct dp_saved_logs *logs, const char *directory, uint64_t order,
                                 struct dp_manifest *manifest, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < logs->workers; w++)
        if (logs->log[w].bytes)
            st = dp_checkpoint_put_step_log(directory, order, w, logs->log[w].bytes, logs->log[w].size,
                                            manifest, err);
    return st;
}

void dp_saved_logs_clear(struct dp_saved_logs *logs)
{
    for (uint32_t w = 0; w < logs->workers; w++)
        free(logs->log[w].bytes);
    free(logs->log);
    *logs = (struct dp_saved_logs){0};
}

#include "server/coordinator/saved_files.h"

#include "common/base/log.h"
#include "common/env/file_bytes.h"
#include "server/checkpoint/making.h"

#include <stdlib.h>
#include <sys/stat.h>

void dp_saved_logs_read(const struct dp_cluster *cluster, uint32_t run, struct dp_saved_logs *out)
{
    struct dp_cluster of = *cluster;
    const struct dp_cluster_training *training = &of.training;
    char directory[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    *out = (struct dp_saved_logs){0};
    of.training.run = run;
    if (dp_cluster_dir_of_run(&of, directory, &unheard) != DP_OK || !training->steps[0])
        return;
    out->log = calloc(training->workers, sizeof out->log[0]);
    out->workers = out->log ? training->workers : 0;
    for (uint32_t w = 0; w < out->workers; w++) {
        char path[DP_PATH_MAX + 32];
        struct dp_error err = {0};
        struct dp_saved_log *log = &out->log[w];
        struct stat is;
        if (dp_cluster_step_log(training->steps, w, path, sizeof path, &err) != DP_OK ||
            stat(path, &is) != 0 || !S_ISREG(is.st_mode)) /* a FIFO would be waited for */
            continue;
        if (dp_file_bytes_read(path, &log->bytes, &log->size, &err) != DP_OK) {
            dp_log(DP_LOG_WARN, "%s; a restored run will lack its metrics", err.text);
            free(log->bytes);
            *log = (struct dp_saved_log){0};
        }
    }
}

void dp_saved_logs_clear(struct dp_saved_logs *logs)
{
    for (uint32_t w = 0; w < logs->workers; w++)
        free(logs->log[w].bytes);
    free(logs->log);
    *logs = (struct dp_saved_logs){0};
}

/* Of a side file. */
static enum dp_status put(const char *path, const char *name, const struct dp_checkpoint_ask *asked,
                          struct dp_manifest *manifest, struct dp_manifest_file *out, struct dp_error *err)
{
    struct stat is;
    struct dp_error why = {0};
    char *bytes = NULL;
    size_t size = 0;
    if (!path[0] || stat(path, &is) != 0 || !S_ISREG(is.st_mode))
        return DP_OK;
    enum dp_status st =
        is.st_size > (off_t)DP_SAVED_SIDE_MAX
            ? dp_fail(&why, DP_ARGUMENT, "%s has more than %u MiB", path, DP_SAVED_SIDE_MAX >> 20)
            : dp_file_bytes_read(path, &bytes, &size, &why);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "%s: the checkpoint lacks it", why.text);
    else
        st = dp_checkpoint_put(asked->directory, asked->order, name, bytes, size, out,
                               asked->full ? NULL : &manifest->bytes_linked, err);
    free(bytes);
    return why.status != DP_OK ? DP_OK : st;
}

enum dp_status dp_saved_files_put(const struct dp_cluster *cluster, const char *file,
                                  const struct dp_checkpoint_ask *asked, struct dp_manifest *manifest,
                                  struct dp_error *err)
{
    char *text;
    size_t size;
    enum dp_status st = dp_file_bytes_read(file, &text, &size, err);
    if (st == DP_OK)
        st = dp_checkpoint_put(asked->directory, asked->order, "cluster.conf", text, size,
                               &manifest->cluster_file, NULL, err);
    free(text);
    for (int i = 0; st == DP_OK && i < DP_SIDE_FILES; i++)
        st = put(dp_cluster_side(&cluster->data, i), dp_side_files[i].name, asked, manifest,
                 &manifest->side[i], err);
    return st;
}

enum dp_status dp_saved_logs_put(const struct dp_saved_logs *logs, const struct dp_checkpoint_ask *asked,
                                 struct dp_manifest *manifest, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < logs->workers; w++)
        if (logs->log[w].bytes)
            st = dp_checkpoint_put_step_log(asked->directory, asked->order, w, logs->log[w].bytes,
                                            logs->log[w].size, manifest, err);
    return st;
}

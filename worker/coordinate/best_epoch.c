#include "worker/coordinate/best_epoch.h"

#include "common/base/deadline.h"
#include "common/client/checkpoint.h"
#include "common/env/directory.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS  50u
#define AGAIN_MS 200u
#define WAIT_MS  10000u /* for pushes that only some shards have */

static enum dp_status rest(void *context, const struct dp_checkpoint_state *state, struct dp_error *err)
{
    (void)state;
    return dp_shared_pause(context, LOOK_MS, err);
}

enum dp_status dp_best_epoch_save(struct dp_job *job, const char *cluster_file, uint32_t epoch,
                                  struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct dp_checkpoint_watch watch = {rest, job};
    struct dp_checkpoint_ask ask = {.wait_ms = WAIT_MS, .keep = 1, .run = training->run, .epoch = epoch};
    struct dp_checkpoint_made made;
    enum dp_status st = dp_directory_absolute(training->best, ask.directory, sizeof ask.directory, err);
    if (st == DP_OK)
        st = dp_directory_absolute(cluster_file, ask.file, sizeof ask.file, err);
    if (st != DP_OK)
        return st;
    /* A server that was killed comes back, and another checkpoint under way ends: the workers rest until then. */
    const uint64_t end_ms = dp_now_ms() + training->timeout_ms;
    do {
        if (st != DP_OK)
            st = dp_shared_pause(job, AGAIN_MS, err);
        if (st != DP_STOPPING)
            st = dp_client_checkpoint_make(job->client, &ask, &watch, &made, err);
    } while (st != DP_OK && st != DP_STOPPING && st != DP_INVALID && dp_now_ms() < end_ms);
    return st == DP_OK || st == DP_STOPPING
               ? st
               : dp_wrap(err, st, "the weights of this epoch, the best so far, cannot be saved in '%.200s'",
                         training->best);
}

/* The manifest's fields: server/checkpoint/README.md, format 1. */
static bool is_of(const char *manifest, const struct dp_job *job, uint32_t epoch)
{
    char id[17];
    json_t *root = json_load_file(manifest, 0, NULL);
    const json_t *at = json_object_get(root, "position");
    const char *of = json_string_value(json_object_get(json_object_get(root, "cluster"), "id"));
    (void)snprintf(id, sizeof id, "%016" PRIx64, job->cluster->id);
    bool is = of && strcmp(of, id) == 0 && json_is_integer(json_object_get(at, "epoch")) &&
              json_integer_value(json_object_get(at, "run")) == (json_int_t)job->cluster->training.run &&
              json_integer_value(json_object_get(at, "epoch")) + 1 == (json_int_t)epoch;
    json_decref(root);
    return is;
}

bool dp_best_epoch_is_there(const struct dp_job *job, uint32_t epoch)
{
    const char *best = job->cluster->training.best;
    char manifest[DP_PATH_MAX + 300];
    bool is = false;
    DIR *list = opendir(best);
    for (struct dirent *entry = list ? readdir(list) : NULL; entry && !is; entry = readdir(list)) {
        (void)snprintf(manifest, sizeof manifest, "%s/%s/manifest.json", best, entry->d_name);
        is = strncmp(entry->d_name, "checkpoint-", 11) == 0 && is_of(manifest, job, epoch);
    }
    if (list)
        (void)closedir(list);
    return is;
}

#include "deploy/run/run_best.h"

#include "common/config/consistency.h"
#include "deploy/run/restored.h"
#include "deploy/run/servers.h"

#include <inttypes.h>
#include <stdlib.h>

#define SERVER_STOP_MS 120000u

/* In {0}, which the caller clears. 0: there is none of this run. */
static uint32_t find(const struct dp_folder *folder, const struct dp_cluster *cluster,
                     struct dp_restored *out)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    if (dp_folder_path(folder, path, &unheard, DP_FOLDER_BEST) != DP_OK ||
        dp_restored_find(path, out, &unheard) != DP_OK)
        return 0;
    const struct dp_manifest_position *at = &out->manifest.position;
    bool is_of_run = out->manifest.cluster == cluster->id && at->known && at->run == cluster->training.run;
    return is_of_run ? at->epoch + 1 : 0;
}

uint32_t dp_run_best_find(const struct dp_folder *folder, const struct dp_cluster *cluster)
{
    struct dp_restored found = {0};
    uint32_t epoch = find(folder, cluster, &found);
    dp_restored_clear(&found);
    return epoch;
}

struct restoring_best {
    const struct dp_folder *folder;
    uint32_t run, epoch; /* from 1 */
};

/* The rows are not those that the step logs tell of: a command that is killed from here on leaves a restored run. */
static enum dp_status note_restored(void *context, struct dp_error *err)
{
    const struct restoring_best *best = context;
    struct dp_run_state state = dp_run_state_read(best->folder, best->run);
    state.known = true;
    state.finished = false;
    dp_run_state_restored(&state, best->run, true, best->run, best->epoch - 1);
    return dp_run_state_write(best->folder, best->run, &state, err);
}

/* A cluster file for the restore alone. Of a synchronous run a store keeps the last step's pushes in its journal until all members have
 * left, and is not closed cleanly before. The members of this run do not come back: the rows alone are taken, as for
 * servers without a journal. */
static enum dp_status write_rows_only(const struct dp_folder *folder, struct dp_cluster *of, char *file,
                                      struct dp_error *err)
{
    of->durability = DP_CLUSTER_NONE;
    of->training.keep = DP_KEEP_AUTO;
    (void)snprintf(of->training.consistency, sizeof of->training.consistency, "async");
    enum dp_status st = dp_folder_path(folder, file, err, DP_FOLDER_BEST "/restore.conf");
    return st == DP_OK ? dp_cluster_write(of, file, err) : st;
}

static enum dp_status restore(const struct dp_folder *folder, const struct dp_cluster *cluster,
                              struct dp_restored *from, uint32_t epoch, struct dp_error *err)
{
    struct restoring_best best = {.folder = folder, .run = cluster->training.run, .epoch = epoch};
    struct dp_cluster *of = NULL;
    char file[DP_PATH_MAX + 1];
    uint32_t done;
    enum dp_status st = dp_cluster_read(folder->conf, &of, err);
    (void)snprintf(file, sizeof file, "%s", folder->conf);
    if (st == DP_OK && dp_cluster_rule_by_step(dp_cluster_rule_of(&of->training)))
        st = write_rows_only(folder, of, file, err);
    if (st != DP_OK) {
        dp_cluster_free(&of);
        return st;
    }
    of->training.steps[0] = '\0'; /* the step logs stay those of all of the run */
    const struct dp_restored_stores stores = {.file = file,
                                              .cluster = of,
                                              .overwrite = true,
                                              .lock = folder->lock,
                                              .before_exchange = note_restored,
                                              .context = &best};
    st = dp_restored_stores(from, &stores, &done, err);
    dp_cluster_free(&of);
    return st == DP_OK ? st
                       : dp_wrap(err, st, "giving the stores the weights of epoch %" PRIu32 ", the best one",
                                 cluster->training.first_epoch + epoch);
}

static enum dp_status start_once(const struct dp_folder *folder, const struct dp_cluster *cluster,
                                 struct dp_local *local, struct dp_error *err)
{
    struct dp_client *client = NULL;
    enum dp_status st = dp_servers_start(local, folder, cluster, folder->conf, "server", NULL, err);
    if (st == DP_OK)
        st = dp_servers_await(local, cluster, cluster->training.timeout_ms, &client, err);
    dp_client_close(&client);
    enum dp_status stopped = dp_local_stop(local, DP_LOCAL_SERVER, SERVER_STOP_MS);
    return st == DP_OK && stopped != DP_OK ? dp_fail(err, stopped, "a server did not close its store") : st;
}

enum dp_status dp_run_best_restore(const struct dp_folder *folder, const struct dp_cluster *cluster,
                                   struct dp_local *local, struct dp_error *err)
{
    struct dp_restored from = {0};
    uint32_t first = cluster->training.first_epoch,
             kept = dp_run_report_read(cluster->training.report, cluster->training.run).kept;
    kept = kept > first ? kept - first : 0;
    uint32_t there = kept > 0 ? find(folder, cluster, &from) : 0;
    enum dp_status st = DP_OK;
    if (kept > 0 && there == kept) {
        dp_folder_show(folder, DP_FOLDER_BEST);
        st = restore(folder, cluster, &from, kept, err);
        if (st == DP_OK)
            st = start_once(folder, cluster, local, err);
    } else if (kept > 0) {
        fprintf(stderr,
                "downpour: warning: %s/" DP_FOLDER_BEST " has no checkpoint of epoch %" PRIu32
                ", the best one: the stores keep the weights of the last epoch\n",
                folder->path, first + kept);
    } else {
        st = dp_folder_clear_best(folder, err);
    }
    dp_restored_clear(&from);
    return st;
}

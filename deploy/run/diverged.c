#include "deploy/run/diverged.h"

#include "common/config/consistency.h"
#include "deploy/run/restored.h"
#include "deploy/run/run_best.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <string.h>

/* ---- what helps */

static enum dp_status take_mark(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    char *checkpoint = context;
    (void)err;
    if (mark->key_bytes == sizeof DP_STORE_MARK_CHECKPOINT - 1 && mark->value_bytes <= DP_PATH_MAX) {
        memcpy(checkpoint, mark->value, mark->value_bytes);
        checkpoint[mark->value_bytes] = '\0';
    }
    return DP_OK;
}

/* All shards of a run note the same one; "": none. */
static void find_checkpoint(const struct dp_folder *folder, char checkpoint[DP_PATH_MAX + 1])
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    struct dp_store_view *view = NULL;
    checkpoint[0] = '\0';
    enum dp_status st = dp_folder_path(folder, path, &unheard, "store/server-0/shard-0000");
    if (st == DP_OK)
        st = dp_store_view_open(path, NULL, &view, &unheard);
    if (st == DP_OK)
        st = dp_store_view_marks(view, DP_STORE_MARK_CHECKPOINT, take_mark, checkpoint, &unheard);
    dp_store_view_close(&view);
    if (st != DP_OK)
        checkpoint[0] = '\0';
}

/* A checkpoint of the epoch that diverged may have the weights that did. */
static bool is_older(const struct dp_restored *from, const struct dp_cluster *cluster, uint32_t epoch)
{
    const struct dp_manifest_position *at = &from->manifest.position;
    const struct dp_cluster_training *t = &cluster->training;
    return !at->known || at->run < t->run || t->first_epoch + at->epoch + 1 < epoch;
}

/* false: there is no such checkpoint that helps. */
static bool tell_from(const char *path, const struct dp_folder *folder, const struct dp_cluster *cluster,
                      uint32_t epoch, double rate, FILE *to)
{
    struct dp_restored from = {0};
    struct dp_error unheard = {0};
    char dir[DP_PATH_MAX + 32], quoted[DP_PATH_QUOTED];
    int n = snprintf(dir, sizeof dir, "%s-rate-%.3g", folder->path, rate);
    if (n > DP_PATH_MAX || dp_restored_find(path, &from, &unheard) != DP_OK)
        return false;
    bool helps = is_older(&from, cluster, epoch);
    if (helps) {
        fprintf(to, "downpour:   downpour run --from %s", dp_path_quote(path, quoted));
        fprintf(to, " --dir %s --continue --rate %.3g    (further from the checkpoint made %s)\n",
                dp_path_quote(dir, quoted), rate, from.manifest.made);
    }
    dp_restored_clear(&from);
    return helps;
}

/* false: there is none. */
static bool tell_checkpoint(const struct dp_folder *folder, const struct dp_cluster *cluster, uint32_t epoch,
                            uint32_t best, FILE *to)
{
    char path[DP_PATH_MAX + 16], found[DP_PATH_MAX + 1];
    double rate = dp_cluster_lower_rate(&cluster->training);
    (void)snprintf(path, sizeof path, "%s/" DP_FOLDER_BEST, folder->path);
    if (best > 0 && tell_from(path, folder, cluster, epoch, rate, to))
        return true;
    find_checkpoint(folder, found);
    return found[0] && tell_from(found, folder, cluster, epoch, rate, to);
}

void dp_diverged_tell(const struct dp_folder *folder, const struct dp_cluster *cluster, uint32_t epoch,
                      FILE *to)
{
    const struct dp_cluster_training *t = &cluster->training;
    uint32_t best = dp_run_best_find(folder, cluster);
    char quoted[DP_PATH_QUOTED];
    fprintf(to, "downpour: run %" PRIu32 " has diverged in epoch %" PRIu32 " at --rate %g: ",
            cluster->training.run, epoch, cluster->training.rate);
    fprintf(to, "--resume and --continue would train on from weights that are of no use. ");
    if (best > 0)
        dp_folder_show(folder, DP_FOLDER_BEST);
    if (best > 0)
        fprintf(to,
                "Those of epoch %" PRIu32 ", the best one, are in the checkpoint %s/" DP_FOLDER_BEST
                ", for predict and export. ",
                cluster->training.first_epoch + best, folder->path);
    fprintf(to, "Instead:\n");
    fprintf(to, "downpour:   downpour run --dir %s --fresh --rate %.3g    (the same from the start)\n",
            dp_path_quote(folder->path, quoted), dp_cluster_lower_rate(&cluster->training));
    if (t->workers > 1 && !dp_cluster_rule_by_step(dp_cluster_rule_of(t)))
        fprintf(
            to,
            "downpour:   downpour run --dir %s --fresh --consistency sync    (if stale gradients of %" PRIu32
            " workers are the cause)\n",
            quoted, t->workers);
    if (!tell_checkpoint(folder, cluster, epoch, best, to) && t->first_epoch > 0)
        fprintf(to,
                "downpour: The weights that it continued from are not kept. To keep them for such a case, "
                "make a checkpoint (downpour checkpoint) or copy the directory before a further run.\n");
}

enum dp_status dp_diverged_check(const struct dp_folder *folder, const struct dp_cluster *cluster,
                                 struct dp_error *err)
{
    const struct dp_cluster_training *t = &cluster->training;
    const struct dp_run_state state = dp_run_state_read(folder, t->run);
    uint32_t diverged = dp_run_diverged(&state, t->report, t->run);
    if (!diverged)
        return DP_OK;
    dp_diverged_tell(folder, cluster, diverged, stderr);
    return dp_fail(err, DP_ARGUMENT, "nothing was started");
}

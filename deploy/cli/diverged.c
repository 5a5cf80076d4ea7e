#include "deploy/cli/diverged.h"

#include "deploy/cli/restored.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct found {
    char checkpoint[DP_PATH_MAX + 1]; /* "": none */
};

static enum dp_status take_mark(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct found *found = context;
    (void)err;
    if (mark->key_bytes == sizeof DP_STORE_MARK_CHECKPOINT - 1 &&
        mark->value_bytes < sizeof found->checkpoint) {
        memcpy(found->checkpoint, mark->value, mark->value_bytes);
        found->checkpoint[mark->value_bytes] = '\0';
    }
    return DP_OK;
}

/* All shards of a run note the same one. */
static void find_checkpoint(const struct dp_folder *folder, struct found *found)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    struct dp_store_view *view = NULL;
    enum dp_status st = dp_folder_path(folder, path, &unheard, "store/server-0/shard-0000");
    if (st == DP_OK)
        st = dp_store_view_open(path, NULL, &view, &unheard);
    if (st == DP_OK)
        st = dp_store_view_marks(view, DP_STORE_MARK_CHECKPOINT, take_mark, found, &unheard);
    if (st != DP_OK)
        found->checkpoint[0] = '\0';
    dp_store_view_close(&view);
}

/* A checkpoint of the epoch that diverged may have the weights that did. */
static bool is_older(const struct dp_restored *from, const struct dp_cluster *cluster, uint32_t epoch)
{
    const struct dp_manifest_position *at = &from->manifest.position;
    const struct dp_cluster_training *t = &cluster->training;
    return !at->known || at->run < t->run || t->first_epoch + at->epoch + 1 < epoch;
}

static void tell_checkpoint(const struct dp_folder *folder, const struct dp_cluster *cluster, uint32_t epoch,
                            double rate, FILE *to)
{
    struct found found = {.checkpoint = ""};
    struct dp_restored from = {0};
    struct dp_error unheard = {0};
    char dir[DP_PATH_MAX + 32], quoted[DP_PATH_QUOTED];
    find_checkpoint(folder, &found);
    int n = snprintf(dir, sizeof dir, "%s-rate-%.3g", folder->path, rate);
    if (!found.checkpoint[0] || n > DP_PATH_MAX ||
        dp_restored_find(found.checkpoint, &from, &unheard) != DP_OK)
        return;
    if (is_older(&from, cluster, epoch)) {
        fprintf(to, "downpour:   downpour run --from %s", dp_path_quote(found.checkpoint, quoted));
        fprintf(to, " --dir %s --continue --rate %.3g    (further from the checkpoint made %s)\n",
                dp_path_quote(dir, quoted), rate, from.manifest.made);
    }
    dp_restored_clear(&from);
}

/* Workers that push without waiting for each other multiply the rate. */
static double lower_rate(const struct dp_cluster_training *training)
{
    return training->rate / fmax(10, training->workers);
}

void dp_diverged_tell(const struct dp_folder *folder, const struct dp_cluster *cluster, uint32_t epoch,
                      FILE *to)
{
    double rate = lower_rate(&cluster->training);
    char quoted[DP_PATH_QUOTED];
    fprintf(
        to,
        "downpour: run %" PRIu32 " has diverged in epoch %" PRIu32
        " at --rate %g: --resume and --continue would train on from weights that are of no use. Instead:\n",
        cluster->training.run, epoch, cluster->training.rate);
    fprintf(to, "downpour:   downpour run --dir %s --fresh --rate %.3g    (the same from the start)\n",
            dp_path_quote(folder->path, quoted), rate);
    tell_checkpoint(folder, cluster, epoch, rate, to);
}

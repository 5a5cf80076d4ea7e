#include "deploy/cli/diverged.h"

#include "common/base/bytes.h"
#include "common/base/deadline.h"
#include "common/config/consistency.h"
#include "deploy/cli/restored.h"
#include "server/durable/snapshots.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define REVERT_MS 20000u
#define SLICE_MS  500u /* a shard that reverts is opened again */

/* ---- the best epoch */

static enum dp_status order(struct dp_client *client, enum dp_snapshot_action action, uint32_t run,
                            uint32_t epoch, struct dp_snapshot_state *states, struct dp_error *err)
{
    const struct dp_snapshot_order order = {.action = action, .run = run, .epoch = epoch};
    uint64_t deadline_ms = dp_now_ms() + REVERT_MS;
    enum dp_status st;
    do
        st = dp_client_snapshot(client, &order, states, SLICE_MS, err);
    while (dp_status_class((int)st) == DP_CLASS_RETRY && dp_now_ms() < deadline_ms);
    return st;
}

/* 0: none that all shards have. */
static uint32_t find_kept(struct dp_client *client, uint32_t run, uint32_t last,
                          struct dp_snapshot_state *states)
{
    struct dp_error unheard = {0};
    uint32_t shards = dp_client_shards(client);
    for (uint32_t e = last; e > 0; e--) {
        uint32_t held = 0;
        if (order(client, DP_SNAPSHOT_LOOK, run, e, states, &unheard) != DP_OK)
            return 0;
        while (held < shards && states[held].held)
            held++;
        if (held == shards)
            return e;
    }
    return 0;
}

uint32_t dp_diverged_revert(struct dp_client *client, const struct dp_cluster *cluster, uint32_t epoch)
{
    const struct dp_cluster_training *t = &cluster->training;
    struct dp_error err = {0};
    struct dp_snapshot_state *states = calloc(dp_client_shards(client), sizeof *states);
    uint32_t kept = 0;
    /* The open step of a sync run waits for members that have ended. */
    bool open = dp_cluster_rule_by_step(dp_cluster_rule_of(t));
    if (states && !open && dp_cluster_keeps_best(cluster) && epoch > t->first_epoch)
        kept = find_kept(client, t->run, epoch - t->first_epoch, states);
    if (kept > 0 && order(client, DP_SNAPSHOT_REVERT, t->run, kept, states, &err) != DP_OK) {
        fprintf(stderr, "downpour: cannot take the store back to epoch %" PRIu32 ", the best one: %s\n",
                t->first_epoch + kept, err.text);
        kept = 0;
    }
    free(states);
    return kept > 0 ? t->first_epoch + kept : 0;
}

/* ---- what helps */

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

/* false: the store cannot be read. Signals are blocked in the threads that the store's library starts here and keeps: else one of them could
 * take a SIGCHLD that dp_local_wait waits for. */
static bool read_marks(const struct dp_folder *folder, uint32_t server, uint32_t shard, const char *prefix,
                       enum dp_status (*take)(void *, const struct dp_store_mark *, struct dp_error *),
                       void *context)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    struct dp_store_view *view = NULL;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    enum dp_status st =
        dp_folder_path(folder, path, &unheard, "store/server-%" PRIu32 "/shard-%04" PRIu32, server, shard);
    if (st == DP_OK)
        st = dp_store_view_open(path, NULL, &view, &unheard);
    if (st == DP_OK)
        st = dp_store_view_marks(view, prefix, take, context, &unheard);
    dp_store_view_close(&view);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st == DP_OK;
}

/* All shards of a run note the same one. */
static void find_checkpoint(const struct dp_folder *folder, struct found *found)
{
    if (!read_marks(folder, 0, 0, DP_STORE_MARK_CHECKPOINT, take_mark, found))
        found->checkpoint[0] = '\0';
}

static enum dp_status take_reverted(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct dp_snapshot_state *reverted = context;
    (void)err;
    if (mark->value_bytes == DP_SNAPSHOT_MARK_BYTES)
        *reverted = (struct dp_snapshot_state){.run = dp_load_u32le(mark->value),
                                               .epoch = dp_load_u32le((const char *)mark->value + 4)};
    return DP_OK;
}

/* The best epoch to which a killed run has taken the shards that can be read, counted from 1 in the run; 0: not all of them. */
static uint32_t reverted_epoch(const struct dp_folder *folder, const struct dp_cluster *cluster)
{
    uint32_t shard = 0, epoch = 0;
    for (uint32_t i = 0; i < cluster->server_count; i++)
        for (uint32_t k = 0; k < cluster->server[i].shards; k++) {
            struct dp_snapshot_state reverted = {0};
            if (!read_marks(folder, i, shard++, DP_SNAPSHOT_MARK, take_reverted, &reverted))
                continue;
            if (reverted.run != cluster->training.run)
                return 0;
            epoch = reverted.epoch;
        }
    return epoch;
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

void dp_diverged_tell(const struct dp_folder *folder, const struct dp_cluster *cluster, uint32_t epoch,
                      uint32_t best, FILE *to)
{
    double rate = dp_cluster_lower_rate(&cluster->training);
    char quoted[DP_PATH_QUOTED];
    (void)dp_path_quote(folder->path, quoted);
    fprintf(to, "downpour: run %" PRIu32 " has diverged in epoch %" PRIu32 " at --rate %g: ",
            cluster->training.run, epoch, cluster->training.rate);
    if (best > 0)
        fprintf(to,
                "its store has the weights of epoch %" PRIu32
                " again, the best one, for predict and export. To train on from them, or again:\n"
                "downpour:   downpour run --dir %s --continue --rate %.3g    (further from epoch %" PRIu32
                ")\n",
                best, quoted, rate, best);
    else
        fprintf(to, "--resume and --continue would train on from weights that are of no use. Instead:\n");
    fprintf(to, "downpour:   downpour run --dir %s --fresh --rate %.3g    (the same from the start)\n",
            quoted, rate);
    tell_checkpoint(folder, cluster, epoch, rate, to);
}

enum dp_status dp_diverged_check(const struct dp_folder *folder, const struct dp_cluster *cluster,
                                 bool resumes, struct dp_error *err)
{
    const struct dp_cluster_training *t = &cluster->training;
    const struct dp_run_state state = dp_run_state_read(folder, t->run);
    uint32_t diverged = dp_run_diverged(&state, t->report, t->run);
    if (!diverged)
        return DP_OK;
    uint32_t best = reverted_epoch(folder, cluster);
    if (best > 0 && !resumes)
        return DP_OK;
    if (best > 0)
        return dp_fail(err, DP_ARGUMENT,
                       "run %" PRIu32 " in '%.300s' has diverged in epoch %" PRIu32
                       ", and its store is back at the weights of epoch %" PRIu32
                       ", the best one, so there is nothing to resume: to train further from them, "
                       "give --continue instead, with --rate %.3g",
                       t->run, folder->path, diverged, t->first_epoch + best, dp_cluster_lower_rate(t));
    dp_diverged_tell(folder, cluster, diverged, 0, stderr);
    return dp_fail(err, DP_ARGUMENT, "nothing was started");
}

#include "deploy/checkpoint/pruning.h"

#include "common/base/text.h"
#include "deploy/cli/amounts.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/making.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum dp_status dp_pruning_locked(const char *directory, uint64_t cluster, uint32_t keep, bool reads,
                                 struct dp_prune *out, struct dp_error *err)
{
    int lock;
    *out = (struct dp_prune){0};
    enum dp_status st = dp_checkpoint_lock(directory, &lock, err);
    if (st != DP_OK)
        return st;
    st = dp_checkpoint_prune(directory, cluster, keep, reads, out, err);
    dp_checkpoint_unlock(&lock);
    return st;
}

bool dp_pruning_made_room(const char *directory, uint64_t cluster, uint32_t keep, const struct dp_error *full)
{
    struct dp_prune pruned;
    struct dp_error why = *full;
    char bytes[32];
    if (dp_pruning_locked(directory, cluster, keep, true, &pruned, &why) != DP_OK || pruned.checkpoints == 0)
        return false;
    why = *full;
    dp_text_clean(why.text);
    fprintf(stderr,
            "downpour: checkpoint: %s; %" PRIu32 " earlier ones were removed (%s), and it is tried again\n",
            why.text, pruned.checkpoints, dp_amount_bytes(pruned.bytes, bytes));
    return true;
}

/* A directory without a checkpoint may be anything: not even the lock's file is made there. */
static enum dp_status check_there(const char *directory, struct dp_error *err)
{
    struct dp_checkpoint_list list;
    enum dp_status st = dp_checkpoint_list_read(directory, &list, err);
    if (st == DP_OK && list.greatest == 0)
        st = dp_fail(err, DP_NOT_FOUND, "%s has no checkpoint", directory);
    if (st == DP_OK)
        dp_checkpoint_list_clear(&list);
    return st;
}

enum dp_status dp_pruning_alone(const char *directory, uint64_t cluster, uint32_t keep, struct dp_error *err)
{
    struct dp_prune pruned = {0};
    uint32_t swept = 0;
    int lock = -1;
    char bytes[32];
    enum dp_status st = check_there(directory, err);
    if (st == DP_OK)
        st = dp_checkpoint_lock(directory, &lock, err);
    if (st == DP_OK) /* what a killed command left takes room, too */
        st = dp_checkpoint_sweep(directory, 0, (uint64_t)time(NULL), &swept, err);
    if (st == DP_OK)
        st = dp_checkpoint_prune(directory, cluster, keep, true, &pruned, err);
    dp_checkpoint_unlock(&lock);
    if (st == DP_OK)
        printf("%" PRIu32 " checkpoint%s removed, with %" PRIu64 " file%s (%s) that no other one has\n",
               pruned.checkpoints, pruned.checkpoints == 1 ? "" : "s", pruned.files,
               pruned.files == 1 ? "" : "s", dp_amount_bytes(pruned.bytes, bytes));
    if (st == DP_OK && pruned.damaged > 0)
        printf("damaged, so kept and not counted: %" PRIu32 " (the first is checkpoint %" PRIu32
               "; 'downpour inspect %s/checkpoint-%06" PRIu32 " --verify' names the damage)\n",
               pruned.damaged, pruned.first_damaged, directory, pruned.first_damaged);
    return st;
}

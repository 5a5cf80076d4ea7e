#include "server/discard.h"

#include "common/base/log.h"
#include "common/env/directory.h"
#include "server/checkpoint/paths.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <stdio.h>

#define ASIDE ".discarded"

struct discarded {
    char checkpoint[1200]; /* the store's last one; "": none is known */
};

static enum dp_status see_checkpoint(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct discarded *d = context;
    (void)err;
    (void)snprintf(d->checkpoint, sizeof d->checkpoint, "%.*s", (int)mark->value_bytes,
                   (const char *)mark->value);
    return DP_OK;
}

/* Whether its pushes are lost already. */
static bool is_lost(const char *store, uint64_t cluster, struct discarded *out)
{
    struct dp_store_view *view = NULL;
    struct dp_error unheard = {0};
    *out = (struct discarded){{0}};
    if (dp_store_view_open(store, NULL, &view, &unheard) != DP_OK)
        return false;
    const struct dp_store_view_own *own = dp_store_view_own(view);
    bool lost = own->state == DP_STORE_VIEW_OPEN && own->cluster == cluster;
    if (lost && dp_store_view_marks(view, DP_STORE_MARK_CHECKPOINT, see_checkpoint, out, &unheard) != DP_OK)
        out->checkpoint[0] = '\0';
    dp_store_view_close(&view);
    return lost && dp_store_view_in_use(store) == 0;
}

static enum dp_status discard_shard(const char *directory, uint32_t shard, uint64_t cluster,
                                    struct dp_error *err)
{
    struct dp_checkpoint_path store, aside;
    struct discarded d;
    enum dp_status st = dp_checkpoint_path(&store, err, "%s/shard-%04" PRIu32, directory, shard);
    if (st == DP_OK)
        st = dp_checkpoint_path(&aside, err, "%s" ASIDE, store.text);
    if (st == DP_OK)
        st = dp_directory_remove(aside.text, true, DP_CHECKPOINT_DEPTH, err);
    if (st != DP_OK || !is_lost(store.text, cluster, &d))
        return st;
    dp_log(DP_LOG_WARN, "shard %" PRIu32 ": its store %s, not closed cleanly, is thrown away (--discard)%s%s",
           shard, store.text, d.checkpoint[0] ? "; the rest of it is checkpoint " : "", d.checkpoint);
    if (rename(store.text, aside.text) != 0)
        return dp_checkpoint_failed(err, "cannot rename", store.text);
    st = dp_checkpoint_sync_directory(directory, err);
    return st == DP_OK ? dp_directory_remove(aside.text, true, DP_CHECKPOINT_DEPTH, err) : st;
}

enum dp_status dp_discard(const char *directory, const struct dp_layout *layout, uint64_t cluster,
                          struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < layout->count; i++)
        st = discard_shard(directory, layout->first + i, cluster, err);
    return st;
}

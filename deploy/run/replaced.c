#include "deploy/run/replaced.h"
#include "deploy/run/folder.h"

#include "common/env/read_only_disk.h"
#include "server/control/register_file.h"
#include "server/identity.h"
#include "server/restore/restore_place.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct replaced {
    FILE *to;
    struct dp_stores *stores;
    bool other_register, restored;
    uint32_t count;
};

/* DP_NOT_FOUND: the register is gone. */
static enum dp_status read_stores(const char *server, uint32_t shards, struct dp_stores *out)
{
    struct dp_error unheard = {0};
    struct dp_disk disk;
    struct dp_control_register_content content = {0};
    *out = (struct dp_stores){.shards = shards};
    if (dp_read_only_disk_open(server, &disk, &unheard) != DP_OK)
        return DP_NOT_FOUND;
    enum dp_status st = dp_control_register_file_read(&disk, true, &content, &unheard);
    for (uint32_t i = 0; st == DP_OK && i < content.count; i++)
        if (strcmp(content.item[i]->name, DP_STORES_NAME) == 0)
            st = dp_stores_decode(content.item[i]->bytes, content.item[i]->size, shards, out, &unheard);
    out->register_id = content.id;
    dp_control_register_content_clear(&content);
    dp_disk_close(&disk);
    return st;
}

static void tell_shard(struct replaced *all, const char *server, uint32_t shard)
{
    char path[DP_PATH_MAX + 64];
    struct dp_error unheard = {0};
    struct dp_store_view *view = NULL;
    struct dp_identity_case it = {.shard = shard, .stores = all->stores};
    (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32, server, shard);
    enum dp_status st = dp_store_view_open(path, NULL, &view, &unheard);
    /* Of a run that was killed while it started: the register never knew one, nor had a restore built it. */
    if (st == DP_NOT_FOUND && !all->other_register && !all->restored && all->stores->shard[shard].id == 0)
        return;
    if (st == DP_NOT_FOUND) {
        fprintf(all->to,
                "downpour: there is no store in '%s': shard %" PRIu32
                " begins anew, as --replace-store says; its rows are lost\n",
                path, shard);
        all->count++;
        return;
    }
    if (st != DP_OK)
        return;
    it.found = dp_store_view_own(view)->id;
    dp_store_view_close(&view);
    enum dp_identity verdict = dp_identity_judge(&it);
    if (!dp_identity_is_refused(verdict))
        return;
    all->other_register = all->other_register || verdict == DP_IDENTITY_REGISTER_OTHER;
    if (verdict == DP_IDENTITY_REGISTER_OTHER)
        return;
    fprintf(all->to,
            "downpour: the store in '%s' takes the place of the one of shard %" PRIu32
            ", as --replace-store says; %s\n",
            path, shard, dp_identity_loss(verdict));
    all->count++;
}

uint32_t dp_replaced_tell(const struct dp_folder *folder, const struct dp_cluster *cluster, FILE *to)
{
    char server[DP_PATH_MAX + 1] = "";
    struct dp_error unheard = {0};
    struct replaced all = {.to = to, .stores = calloc(1, sizeof *all.stores)};
    uint32_t shard = 0;
    if (!all.stores || dp_cluster_shards(cluster) > DP_STORES_SHARDS_MAX) {
        free(all.stores);
        return 0;
    }
    enum dp_status st = dp_folder_path(folder, server, &unheard, "store/server-0");
    if (st == DP_OK)
        st = read_stores(server, dp_cluster_shards(cluster), all.stores);
    all.restored = dp_restore_place_history(server) != 0;
    all.other_register = st == DP_NOT_FOUND;
    for (uint32_t i = 0; (st == DP_OK || st == DP_NOT_FOUND) && i < cluster->server_count; i++) {
        bool fits = dp_folder_path(folder, server, &unheard, "store/server-%" PRIu32, i) == DP_OK;
        for (uint32_t k = 0; fits && k < cluster->server[i].shards; k++)
            tell_shard(&all, server, shard++);
    }
    if (all.other_register)
        fprintf(to,
                "downpour: server 0's register is gone, or another one; the stores go on without theirs, as "
                "--replace-store says; %s\n",
                dp_identity_loss(DP_IDENTITY_REGISTER_OTHER));
    all.count += all.other_register;
    if (all.count > 0)
        fprintf(to,
                "downpour: there is no way back from this but a copy of all of '%s' from before: what was "
                "there does not fit any more\n",
                folder->path);
    free(all.stores);
    return all.count;
}

#include "server/restore/restore.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/env/clock.h"
#include "common/model/row.h"
#include "server/cache/cached_tables.h"
#include "server/checkpoint/checksum.h"
#include "server/control/register_file.h"
#include "server/control/stores.h"
#include "server/durable/table_mark.h"
#include "server/layout.h"
#include "server/restore/left_out.h"
#include "server/restore/restore_copy.h"
#include "server/restore/restore_exchange.h"
#include "server/restore/restore_files.h"
#include "server/restore/restore_from.h"
#include "server/restore/restore_place.h"
#include "server/restore/restore_split.h"
#include "server/store/store_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define STORE_ROOM (8u << 20) /* a store's opening takes about half of that in addition to its rows */

struct restoring {
    const struct dp_restore_options *o;
    struct dp_restore_from from;
    struct dp_restore_own own;
    struct dp_layout layout;
    struct dp_restore_place place;
};

static struct dp_layout layout_of(const struct dp_restore_options *o)
{
    struct dp_layout layout = {.count = o->cluster->server[o->server].shards,
                               .total = dp_cluster_shards(o->cluster)};
    for (uint32_t i = 0; i < o->server; i++)
        layout.first += o->cluster->server[i].shards;
    return layout;
}

/* Else rows are written by range into stores that are clean: of another layout; without a journal, which
 * would have to be replayed once; or without some tables, which no record of a journal may name then. */
static bool copies_shards(const struct restoring *r)
{
    return r->layout.total == r->from.manifest.shards && r->o->cluster->durability != DP_CLUSTER_NONE &&
           !r->o->without;
}

/* ---- before anything is made */

/* Workers of another model would be refused by the tables, or train other tables. A program that trains by itself names no model. */
static enum dp_status check_model(const struct restoring *r, struct dp_error *err)
{
    const struct dp_manifest_file *file = &r->from.manifest.cluster_file;
    struct dp_cluster *was = NULL;
    struct dp_checkpoint_path path;
    struct dp_error unheard;
    void *bytes = NULL;
    if (!file->name)
        return DP_OK;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", r->from.checkpoint.text, file->name);
    if (st == DP_OK)
        st = dp_restore_from_read(&r->from, file, &bytes, err);
    free(bytes);
    if (st != DP_OK || dp_cluster_read(path.text, &was, &unheard) != DP_OK)
        return st;
    if (strcmp(was->model, r->o->cluster->model) != 0)
        st = dp_fail(
            err, DP_ARGUMENT,
            "the checkpoint %.200s is of model '%.64s', and the cluster file is of model '%.64s', which has "
            "other "
            "tables: restore it by a cluster file of its own model (it has a copy of its own, cluster.conf)",
            r->from.checkpoint.text, was->model, r->o->cluster->model);
    dp_cluster_free(&was);
    return st;
}

/* Two shards may have taken another last table each, and refused the other one. */
static enum dp_status check_tables(const struct restoring *r, struct dp_error *err)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->from.tables; i++)
        kept += !r->from.table[i].left_out;
    if (kept <= DP_CACHED_TABLES_MAX)
        return DP_OK;
    return dp_fail(
        err, DP_UNSUPPORTED,
        "the shards of the checkpoint %.200s have %" PRIu32
        " tables together, and a shard can have %u: leave out %" PRIu32 " or more with --without TABLE,TABLE",
        r->from.checkpoint.text, r->from.tables, DP_CACHED_TABLES_MAX, kept - DP_CACHED_TABLES_MAX);
}

static enum dp_status check(const struct restoring *r, struct dp_error *err)
{
    const struct dp_manifest *m = &r->from.manifest;
    DP_ASSERT(r->o->server < r->o->cluster->server_count);
    if (m->cluster != r->own.cluster)
        dp_log(DP_LOG_WARN,
               "the checkpoint is of cluster '%s' (0x%016" PRIx64
               "), and is restored into '%s' (0x%016" PRIx64 ")",
               m->cluster_name ? m->cluster_name : "", m->cluster, r->o->cluster->name, r->own.cluster);
    if (r->o->server == 0 && (!m->register_file.name || strcmp(m->register_file.name, DP_REGISTER_FILE) != 0))
        return dp_fail(err, DP_CORRUPT, "the checkpoint %s has no register", r->from.checkpoint.text);
    enum dp_status st = check_tables(r, err);
    return st == DP_OK ? check_model(r, err) : st;
}

static uint64_t number_of(const char *digits)
{
    char text[17];
    (void)snprintf(text, sizeof text, "%.16s", digits);
    return strtoull(text, NULL, 16);
}

/* The servers are restored by processes that know nothing of each other. */
static enum dp_status choose_history(struct restoring *r, struct dp_error *err)
{
    const char *word = r->o->history;
    r->own.generation = r->from.manifest.generation + 1;
    if (!word && r->o->cluster->server_count > 1)
        return dp_fail(
            err, DP_ARGUMENT,
            "the cluster has %" PRIu32
            " servers, which must know that they are of one restore: give all of them --history with the "
            "same word, another one for each restore (`downpour restore` does that)",
            r->o->cluster->server_count);
    if (!word) {
        dp_store_id_draw(&r->own.history);
        return DP_OK;
    }
    r->own.history = dp_restore_history(&r->from.manifest, word);
    return DP_OK;
}

uint64_t dp_restore_history(const struct dp_manifest *manifest, const char *word)
{
    /* Of the checkpoint, too: servers that were restored from two of them must not take each other for one cluster. */
    char order[8], text[DP_CHECKSUM_TEXT];
    struct dp_checksum sum;
    dp_store_u64le(order, manifest->order);
    dp_checksum_begin(&sum);
    dp_checksum_put(&sum, order, sizeof order);
    dp_checksum_put(&sum, word, strlen(word));
    /* And of its tables: a server that has one which another lacks must not serve with that one. */
    for (size_t i = 0; i < manifest->tables.count; i++) {
        const struct dp_manifest_table *table = &manifest->tables.table[i];
        if (!table->left_out)
            continue;
        dp_checksum_put(&sum, "", 1);
        dp_checksum_put(&sum, table->spec.name, strlen(table->spec.name));
    }
    dp_checksum_end(&sum, text);
    uint64_t history = number_of(text);
    return history + (history == 0); /* 0: never restored */
}

static uint64_t bytes_of(const struct dp_manifest_files *files)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < files->count; i++)
        bytes += files->file[i].bytes;
    return bytes;
}

static bool on_one_disk(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev;
}

/* Of the rows' bytes, that which is not left out; 1 where rows were not counted. */
static double kept_share(const struct dp_manifest_tables *tables)
{
    double all = 0, kept = 0;
    for (size_t i = 0; i < tables->count; i++) {
        const struct dp_manifest_table *table = &tables->table[i];
        if (table->rows == DP_TABLE_ROWS_UNKNOWN)
            return 1;
        double bytes = (double)table->rows * (double)dp_row_bytes(&table->spec);
        all += bytes;
        kept += table->left_out ? 0 : bytes;
    }
    return all > 0 ? kept / all : 1;
}

/* An estimate, from above but for rows that merge badly. Checked before hours of copying. */
static uint64_t bytes_needed(const struct restoring *r)
{
    const struct dp_manifest *m = &r->from.manifest;
    bool links = on_one_disk(r->place.building, r->from.directory.text), same = copies_shards(r);
    uint64_t bytes = (uint64_t)STORE_ROOM * r->layout.count, most = 0, all = 0;
    for (uint32_t i = 0; i < m->shards; i++) {
        uint64_t tail = bytes_of(&m->shard[i].tail.files), rows = bytes_of(&m->shard[i].files);
        uint64_t copy = 2 * tail + (links ? 0 : rows);
        bool ours = i - r->layout.first < r->layout.count;
        bytes += same && ours ? copy : 0;
        most = copy > most ? copy : most;
        all += rows + tail;
    }
    /* The new rows, and one old shard at a time. */
    all = (uint64_t)((double)all * kept_share(&m->tables));
    return same ? bytes : bytes + most + all / r->layout.total * r->layout.count;
}

static enum dp_status check_room(const struct restoring *r, struct dp_error *err)
{
    struct statvfs disk;
    uint64_t bytes = bytes_needed(r);
    if (statvfs(r->place.building, &disk) != 0 || (uint64_t)disk.f_bavail * disk.f_frsize >= bytes)
        return DP_OK; /* a failed write says so, too */
    return dp_fail(err, DP_FULL,
                   "the disk of %s has %" PRIu64 " MB left, and the restore takes about %" PRIu64
                   " MB: make room on that disk",
                   r->place.store, (uint64_t)disk.f_bavail * disk.f_frsize / 1000000, bytes / 1000000 + 1);
}

/* ---- shards */

static enum dp_status copy_shards(const struct restoring *r, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = r->layout.first; st == DP_OK && i < r->layout.first + r->layout.count; i++) {
        char name[32];
        struct dp_checkpoint_path path;
        (void)snprintf(name, sizeof name, "shard-%04" PRIu32, i);
        st = dp_checkpoint_path(&path, err, "%s/%s", r->place.building, name);
        if (st == DP_OK)
            st = dp_restore_copy(&r->from, i, &r->own, path.text, err);
        if (st != DP_OK)
            return dp_wrap(err, st, "shard %" PRIu32, i);
        dp_log(DP_LOG_INFO,
               "shard %" PRIu32 ": restored; its next start replays %" PRIu64 " records of the journal", i,
               r->from.manifest.shard[i].tail.records);
    }
    return st;
}

static enum dp_status split_shards(const struct restoring *r, struct dp_error *err)
{
    const struct dp_restore_split split = {.from = &r->from,
                                           .own = &r->own,
                                           .building = r->place.building,
                                           .first = r->layout.first,
                                           .count = r->layout.count,
                                           .total = r->layout.total,
                                           .cache_bytes = r->o->cluster->cache_bytes,
                                           .journal_bytes = r->o->cluster->journal_bytes};
    return dp_restore_split(&split, err);
}

static void drop_stores(struct dp_control_register_content *content)
{
    for (uint32_t i = 0; i < content->count; i++) {
        if (strcmp(content->item[i]->name, DP_STORES_NAME) != 0)
            continue;
        free(content->item[i]);
        content->count--;
        memmove(&content->item[i], &content->item[i + 1], (content->count - i) * sizeof content->item[0]);
        return;
    }
}

/* Without "stores", so that the restored stores, whose ids are new, join it; and with another id, so that no client and no store that
 * knew the earlier register takes it for that one. */
static enum dp_status restore_register(const struct restoring *r, struct dp_error *err)
{
    const struct dp_manifest_file *file = &r->from.manifest.register_file;
    struct dp_control_register_content content = {0};
    struct dp_disk disk = {0};
    void *bytes = NULL;
    if (r->o->server != 0)
        return DP_OK;
    enum dp_status st = dp_restore_from_read(&r->from, file, &bytes, err);
    if (st == DP_OK)
        st = dp_control_register_file_unpack(bytes, (size_t)file->bytes, &content, err);
    if (st == DP_OK)
        st = dp_disk_open(r->place.building, &disk, err);
    if (st == DP_OK) {
        drop_stores(&content);
        dp_store_id_draw(&content.id);
        st = dp_control_register_file_write(&disk, &content, err);
    }
    dp_disk_close(&disk);
    dp_control_register_content_clear(&content);
    free(bytes);
    return st == DP_OK ? st : dp_wrap(err, st, "the register in %s", r->from.checkpoint.text);
}

static enum dp_status build(struct restoring *r, struct dp_error *err)
{
    enum dp_status st = check_room(r, err);
    if (st == DP_OK)
        st = copies_shards(r) ? copy_shards(r, err) : split_shards(r, err);
    if (st == DP_OK)
        st = restore_register(r, err);
    if (st == DP_OK)
        st = dp_layout_put(r->place.building, &r->layout, err);
    return st == DP_OK ? dp_restore_place_built(&r->place, r->own.history, err) : st;
}

/* A store is replaced by an earlier state of its own cluster; another training's weights are not given up for it. */
static enum dp_status check_replaced(const struct restoring *r, struct dp_error *err)
{
    const struct dp_manifest *m = &r->from.manifest;
    const struct dp_cluster *cluster = r->o->cluster;
    if (r->place.cluster != 0 && r->place.cluster != cluster->id)
        return dp_fail(err, DP_EXISTS,
                       "the store in %.250s is of another cluster (id %016" PRIx64
                       ") than the cluster file (cluster '%.40s', id %016" PRIx64
                       "): it stays. Give servers.store another directory, or move it away",
                       r->place.store, r->place.cluster, cluster->name, cluster->id);
    if (!r->place.replaces || m->cluster == cluster->id)
        return DP_OK;
    return dp_fail(
        err, DP_EXISTS,
        "%.120s is a checkpoint of another training (cluster '%.40s', id %016" PRIx64
        ") than the store in %.120s (cluster '%.40s', id %016" PRIx64
        "), which stays. To go on from the checkpoint in another directory: 'downpour run --from CHECKPOINT "
        "--dir NEW', or a cluster file with other stores",
        r->from.checkpoint.text, m->cluster_name ? m->cluster_name : "", m->cluster, r->place.store,
        cluster->name, cluster->id);
}

/* The first server's exchange decides for all (restore_exchange.h). */
static enum dp_status check_exchange(const struct dp_restore_options *o, struct dp_error *err)
{
    if (!o->exchanges || (o->server == 0 && o->history))
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT,
                   "--exchange is for server 0 alone, with the --history that all servers built with: the "
                   "others follow when they start");
}

static enum dp_status restore(struct restoring *r, struct dp_error *err)
{
    const struct dp_restore_options *o = r->o;
    char shards[DP_LAYOUT_NAME_BYTES], without[64];
    enum dp_status st = check_exchange(o, err);
    if (st == DP_OK)
        st = dp_restore_from_open(&r->from, o->checkpoint, o->without, err);
    if (st == DP_OK)
        st = check(r, err);
    if (st == DP_OK)
        st = choose_history(r, err);
    if (st != DP_OK || o->exchanges)
        return st;
    dp_layout_name(&r->layout, shards);
    dp_log(DP_LOG_INFO, "restoring %s (made %s, %" PRIu32 " shards) as %s in %s%s", r->from.checkpoint.text,
           r->from.manifest.made ? r->from.manifest.made : "", r->from.manifest.shards, shards,
           o->cluster->server[o->server].store, dp_restore_left_out_text(&r->from.manifest, without));
    st = dp_restore_exchange_settle(o->cluster->server[o->server].store, err);
    if (st == DP_OK)
        st = dp_restore_place_begin(&r->place, o->cluster->server[o->server].store, o->overwrite, err);
    if (st == DP_OK)
        st = check_replaced(r, err);
    return st == DP_OK ? build(r, err) : st;
}

enum dp_status dp_restore(const struct dp_restore_options *o, struct dp_error *err)
{
    struct restoring r = {
        .o = o, .own = {.cluster = o->cluster->id}, .layout = layout_of(o), .place = {.lock = -1}};
    struct dp_clock clock = dp_clock_real();
    uint64_t began_ns = dp_clock_ns(&clock);
    bool is_alone = o->cluster->server_count == 1;
    const char *const store[] = {o->cluster->server[o->server].store};
    enum dp_status st = restore(&r, err);
    dp_restore_place_give_up(&r.place);
    dp_restore_from_close(&r.from);
    if (st == DP_OK && (is_alone || o->exchanges)) /* else another server may fail yet */
        st = dp_restore_exchange_all(store, 1, r.own.history, err);
    if (st == DP_OK && is_alone)
        dp_restore_exchange_clean(store, 1);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "%s in %.1f s: generation %" PRIu64 ", history %016" PRIx64,
               is_alone || o->exchanges ? "restored" : "built",
               (double)(dp_clock_ns(&clock) - began_ns) / 1e9, r.own.generation, r.own.history);
    return st;
}

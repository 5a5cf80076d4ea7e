#include "server/restore/restore_split.h"

#include "common/base/log.h"
#include "common/env/directory.h"
#include "server/restore/restore_marks.h"
#include "server/restore/restore_source.h"
#include "server/store/rocks_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct splitting {
    const struct dp_restore_split *o;
    struct dp_store *store; /* [count] */
    struct dp_restore_target *target;
    struct dp_restore_rows *rows;
    uint64_t streams; /* no stream from this one on was given out */
};

static enum dp_status path_of(struct dp_checkpoint_path *path, const struct dp_restore_split *o,
                              const char *prefix, uint32_t index, struct dp_error *err)
{
    return dp_checkpoint_path(path, err, "%s/%s-%04" PRIu32, o->building, prefix, index);
}

static enum dp_status open_targets(struct splitting *s, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++) {
        struct dp_checkpoint_path path;
        const struct dp_rocks_store_options store = {.directory = path.text,
                                                     .cluster = o->own->cluster,
                                                     .generation = o->own->generation,
                                                     .history = o->own->history,
                                                     .range = dp_range_of_shard(o->first + i, o->total),
                                                     .writes_first = true};
        st = path_of(&path, o, "shard", o->first + i, err);
        if (st == DP_OK)
            st = dp_rocks_store_open(&store, &s->store[i], err);
        s->target[i] = (struct dp_restore_target){.range = store.range, .store = &s->store[i]};
    }
    return st;
}

/* ---- old shards */

static enum dp_status take_shard(struct splitting *s, uint32_t index, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    const struct dp_manifest_shard *shard = &o->from->manifest.shard[index];
    struct dp_restore_source *source = NULL;
    struct dp_checkpoint_path path;
    enum dp_status st = path_of(&path, o, "source", index, err);
    const struct dp_restore_source_options options = {.directory = path.text,
                                                      .index = index,
                                                      .shards = shard->shards,
                                                      .cluster = o->own->cluster,
                                                      .cache_bytes = o->cache_bytes,
                                                      .journal_bytes = o->journal_bytes};
    if (st == DP_OK)
        st = dp_restore_copy(o->from, index, o->own, path.text, err);
    if (st == DP_OK)
        st = dp_restore_source_open(&options, &source, err);
    struct dp_store *store = st == DP_OK ? dp_restore_source_store(source) : NULL;
    if (st == DP_OK)
        st = dp_restore_see_streams(&s->streams, store, err);
    if (st == DP_OK)
        st = dp_restore_rows_take(s->rows, store, shard->range, err);
    dp_restore_source_close(&source);
    if (st == DP_OK)
        st = dp_directory_remove(path.text, true, 0, err);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "shard %" PRIu32 " of the checkpoint's %" PRIu32 ": its rows are restored", index,
               shard->shards);
    return st == DP_OK ? st : dp_wrap(err, st, "shard %" PRIu32 " of the checkpoint", index);
}

/* ---- marks */

static enum dp_status finish(struct splitting *s, uint32_t target, struct dp_error *err)
{
    const struct dp_restore_from *from = s->o->from;
    struct dp_restore_marks *marks = calloc(1, sizeof *marks);
    if (!marks)
        return dp_fail(err, DP_NOMEM, "the marks of shard %" PRIu32, s->o->first + target);
    dp_restore_put_new(marks, from, s->streams, s->rows, target);
    enum dp_status st = dp_restore_marks_write(marks, &s->store[target], err);
    dp_restore_marks_clear(marks);
    free(marks);
    return st == DP_OK ? dp_rocks_store_mark_clean(&s->store[target], err) : st;
}

/* ---- */

/* Whether a shard of the checkpoint has rows of ours. */
static bool needs(const struct dp_restore_split *split, struct dp_range range)
{
    for (uint32_t i = 0; i < split->count; i++) {
        const struct dp_range own = dp_range_of_shard(split->first + i, split->total);
        if (own.first <= range.last && range.first <= own.last)
            return true;
    }
    return false;
}

static enum dp_status split(struct splitting *s, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    const struct dp_manifest *m = &o->from->manifest;
    const struct dp_restore_rows_options rows = {.target = s->target,
                                                 .targets = o->count,
                                                 .table = o->from->table,
                                                 .tables = o->from->tables,
                                                 .lsn_max = o->from->lsn_max};
    enum dp_status st = open_targets(s, err);
    if (st == DP_OK)
        st = dp_restore_rows_new(&rows, &s->rows, err);
    for (uint32_t i = 0; st == DP_OK && i < m->shards; i++)
        if (needs(o, m->shard[i].range))
            st = take_shard(s, i, err);
    if (st == DP_OK)
        st = dp_restore_rows_end(s->rows, err);
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++)
        st = finish(s, i, err);
    dp_restore_rows_free(&s->rows); /* before the stores: it may have jobs there */
    return st;
}

enum dp_status dp_restore_split(const struct dp_restore_split *o, struct dp_error *err)
{
    struct splitting s = {
        .o = o, .store = calloc(o->count, sizeof s.store[0]), .target = calloc(o->count, sizeof s.target[0])};
    enum dp_status st = s.store && s.target
                            ? split(&s, err)
                            : dp_fail(err, DP_NOMEM, "restoring %" PRIu32 " shards", o->count);
    for (uint32_t i = 0; s.store && i < o->count; i++)
        if (s.store[i].close)
            s.store[i].close(s.store[i].self);
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++) {
        struct dp_checkpoint_path path;
        st = path_of(&path, o, "shard", o->first + i, err);
        if (st == DP_OK)
            st = dp_checkpoint_sync_directory(path.text, err);
    }
    free(s.store);
    free(s.target);
    return st;
}

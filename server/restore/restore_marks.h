/* Restore marks: the marks of a restored store (server/durable/durable_marks.h), in a list that owns their
 * keys and values.
 *     a shard that is copied, with its tail as its journal: put_copied -> write
 *     a new shard with the rows of several: see_streams of each old store, recovered -> put_new -> write
 * Memory    put copies; clear frees all. Without memory a put sets `failed`, and later ones do nothing.
 * Thread    Any. */
#ifndef DP_RESTORE_RESTORE_MARKS_H
#define DP_RESTORE_RESTORE_MARKS_H

#include "server/cache/cached_tables.h"
#include "server/restore/restore_from.h"

#define DP_RESTORE_MARKS_MAX (DP_CACHED_TABLES_ROOM + 16u) /* of each table, and the others */

struct dp_restore_marks {
    struct dp_store_mark mark[DP_RESTORE_MARKS_MAX];
    uint32_t count;
    bool failed;
};

void dp_restore_marks_put(struct dp_restore_marks *marks, const struct dp_store_mark *mark);
/* key: a text. value NULL: the mark is to be removed. */
void dp_restore_marks_put_bytes(struct dp_restore_marks *marks, const char *key, const void *value,
                                size_t bytes);
void dp_restore_marks_put_u64(struct dp_restore_marks *marks, const char *key, uint64_t value);
/* Ids and steps of all shards, tables that its link lacks, and what makes the tail its journal. */
void dp_restore_put_copied(struct dp_restore_marks *marks, const struct dp_restore_from *from,
                           const struct dp_manifest_shard *shard);
/* *streams: 0 before the first store. No stream from it on was given out. */
enum dp_status dp_restore_see_streams(uint64_t *streams, const struct dp_store *store, struct dp_error *err);
/* rows: those of this shard, `target`; they were counted. */
void dp_restore_put_new(struct dp_restore_marks *marks, const struct dp_restore_from *from, uint64_t streams,
                        const struct dp_restore_rows *rows, uint32_t target);
/* Puts them into a store that has no job under way, durably. DP_NOMEM, too, where a put failed. */
enum dp_status dp_restore_marks_write(const struct dp_restore_marks *marks, const struct dp_store *store,
                                      struct dp_error *err);
void dp_restore_marks_clear(struct dp_restore_marks *marks);

#endif

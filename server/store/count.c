#include "server/store/count.h"

#include "server/store/rocks_error.h"
#include "server/store/rows.h"

#include <inttypes.h>

void dp_count_begin(const struct dp_rocks_db *db, struct dp_count *count)
{
    *count = (struct dp_count){.read = dp_rocks_db_scan_options()};
    count->at = rocksdb_create_iterator_cf(db->db, count->read, db->families[DP_ROCKS_ROWS]);
}

static enum dp_status count_row(const struct dp_rocks_db *db, const struct dp_count *count,
                                const struct dp_store_job *job, uint32_t *table, struct dp_error *err)
{
    struct dp_store_key key;
    enum dp_status st = dp_key_take(db, count->at, &key, err);
    if (st != DP_OK)
        return st;
    while (*table < job->count && job->keys[*table].table < key.table)
        ++*table;
    if (*table == job->count || job->keys[*table].table != key.table)
        return dp_fail(err, DP_CORRUPT, "store %s has rows of table %08" PRIx32 ", which has no mark",
                       db->directory, key.table);
    job->counts[*table]++;
    return DP_OK;
}

enum dp_status dp_count_step(const struct dp_rocks_db *db, struct dp_count *count, struct dp_store_job *job,
                             uint32_t most, bool *done, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    uint32_t table = 0;
    if (!count->started)
        rocksdb_iter_seek_to_first(count->at);
    count->started = true;
    for (; st == DP_OK && most > 0 && rocksdb_iter_valid(count->at); most--) {
        st = count_row(db, count, job, &table, err);
        if (st == DP_OK)
            rocksdb_iter_next(count->at);
    }
    *done = !rocksdb_iter_valid(count->at);
    return st == DP_OK && *done ? dp_rocks_error_of(count->at, db->directory, "count rows", err) : st;
}

void dp_count_end(struct dp_count *count)
{
    if (!count->at)
        return;
    rocksdb_iter_destroy(count->at);
    rocksdb_readoptions_destroy(count->read);
    *count = (struct dp_count){0};
}

#include "server/store/count.h"

#include "server/store/keys.h"
#include "server/store/rocks_error.h"

#include <inttypes.h>

#define READAHEAD_BYTES (2u << 20)

void dp_count_begin(const struct dp_rocks_db *db, struct dp_count *count)
{
    *count = (struct dp_count){.read = dp_rocks_db_read_options()};
    rocksdb_readoptions_set_readahead_size(count->read, READAHEAD_BYTES);
    rocksdb_readoptions_set_fill_cache(count->read, 0); /* each block is read once */
    count->at = rocksdb_create_iterator_cf(db->db, count->read, db->families[DP_ROCKS_ROWS]);
}

static enum dp_status count_row(const struct dp_rocks_db *db, const struct dp_count *count,
                                const struct dp_store_job *job, uint32_t *table, struct dp_error *err)
{
    size_t bytes = 0;
    const char *key = rocksdb_iter_key(count->at, &bytes);
    if (bytes != DP_KEY_BYTES)
        return dp_fail(err, DP_CORRUPT, "store %s: a row's key has %zu bytes instead of %u", db->directory,
                       bytes, DP_KEY_BYTES);
    uint32_t id = dp_key_get(key).table;
    while (*table < job->count && job->keys[*table].table < id)
        ++*table;
    if (*table == job->count || job->keys[*table].table != id)
        return dp_fail(err, DP_CORRUPT, "store %s has rows of table %08" PRIx32 ", which has no mark",
                       db->directory, id);
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
    if (st == DP_OK && *done) { /* an iterator that failed looks like one that ended */
        char *text = NULL;
        rocksdb_iter_get_error(count->at, &text);
        st = dp_rocks_error_take(&text, db->directory, "count rows", err);
    }
    return st;
}

void dp_count_end(struct dp_count *count)
{
    if (!count->at)
        return;
    rocksdb_iter_destroy(count->at);
    rocksdb_readoptions_destroy(count->read);
    *count = (struct dp_count){0};
}

#include "tests/bench/bare.h"

#include "server/store/rocks_error.h"
#include "server/store/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SCAN_BYTES (64u << 20)

struct dp_bare {
    struct dp_rocks_db db;
};

struct dp_bare_scratch {
    struct dp_rows_scratch rows;
};
_Static_assert(DP_BARE_KEYS_MAX == DP_ROWS_CHUNK, "asked as a server's reader asks");

enum dp_status dp_bare_open(const char *directory, struct dp_bare **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for a store opened read-only");
    enum dp_status st = dp_rocks_db_open_beside(directory, &(*out)->db, err);
    if (st != DP_OK)
        dp_bare_close(out);
    return st;
}

void dp_bare_close(struct dp_bare **bare)
{
    if (*bare)
        dp_rocks_db_close(&(*bare)->db);
    free(*bare);
    *bare = NULL;
}

struct dp_bare_scratch *dp_bare_scratch_new(void)
{
    return calloc(1, sizeof(struct dp_bare_scratch));
}

enum dp_status dp_bare_read(const struct dp_bare *bare, struct dp_bare_scratch *scratch,
                            const struct dp_store_key *keys, uint32_t n, uint64_t *missing,
                            struct dp_error *err)
{
    struct dp_rows_scratch *s = &scratch->rows;
    enum dp_status st = DP_OK;
    DP_ASSERT(n <= DP_BARE_KEYS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        dp_key_put(s->keys[i], keys[i]);
        s->key[i] = s->keys[i];
        s->key_bytes[i] = DP_KEY_BYTES;
        s->values[i] = NULL;
        s->errors[i] = NULL;
    }
    rocksdb_batched_multi_get_cf(bare->db.db, bare->db.read, bare->db.families[DP_ROCKS_ROWS], n, s->key,
                                 s->key_bytes, s->values, s->errors, true);
    for (uint32_t i = 0; i < n; i++) { /* to the end, also after a failure: all of it is freed here */
        size_t bytes = 0;
        if (st == DP_OK)
            st = dp_rocks_error_take(&s->errors[i], bare->db.directory, "read rows", err);
        else
            rocksdb_free(s->errors[i]);
        *missing += !s->values[i] || !rocksdb_pinnableslice_value(s->values[i], &bytes);
        if (s->values[i])
            rocksdb_pinnableslice_destroy(s->values[i]);
    }
    return st;
}

/* ---- scan */

struct bare_scan {
    const struct dp_rocks_db *db;
    const char *to;
    rocksdb_sstfilewriter_t *writer; /* NULL: none is open */
    size_t bytes;                    /* in its file */
    uint64_t *rows;
};

static enum dp_status end_file(struct bare_scan *scan, struct dp_error *err)
{
    char *text = NULL;
    if (!scan->writer)
        return DP_OK;
    rocksdb_sstfilewriter_finish(scan->writer, &text);
    rocksdb_sstfilewriter_destroy(scan->writer);
    scan->writer = NULL;
    scan->bytes = 0;
    return dp_rocks_error_take(&text, scan->to, "end a file", err);
}

static enum dp_status begin_file(struct bare_scan *scan, struct dp_error *err)
{
    char path[4096], *text = NULL;
    (void)snprintf(path, sizeof path, "%s/rows-%" PRIu64 ".sst", scan->to,
                   *scan->rows); /* of several scans, too */
    scan->writer = rocksdb_sstfilewriter_create(scan->db->env, scan->db->options[DP_ROCKS_ROWS]);
    rocksdb_sstfilewriter_open(scan->writer, path, &text);
    return dp_rocks_error_take(&text, scan->to, "make a file", err);
}

static enum dp_status put_row(struct bare_scan *scan, rocksdb_iterator_t *at, struct dp_error *err)
{
    char *text = NULL;
    size_t key_bytes = 0, row_bytes = 0;
    const char *key = rocksdb_iter_key(at, &key_bytes), *row = rocksdb_iter_value(at, &row_bytes);
    enum dp_status st = scan->bytes > SCAN_BYTES ? end_file(scan, err) : DP_OK;
    if (st == DP_OK && !scan->writer)
        st = begin_file(scan, err);
    if (st != DP_OK)
        return st;
    rocksdb_sstfilewriter_put(scan->writer, key, key_bytes, row, row_bytes, &text);
    scan->bytes += key_bytes + row_bytes;
    ++*scan->rows;
    return dp_rocks_error_take(&text, scan->to, "write rows", err);
}

enum dp_status dp_bare_scan(const char *directory, const char *to, uint64_t *rows, struct dp_error *err)
{
    struct dp_rocks_db db;
    enum dp_status st = dp_rocks_db_open_beside(directory, &db, err);
    if (st != DP_OK)
        return st;
    struct bare_scan scan = {.db = &db, .to = to, .rows = rows};
    rocksdb_readoptions_t *read = dp_rocks_db_read_options();
    rocksdb_readoptions_set_readahead_size(read, 2u << 20); /* as a restore's */
    rocksdb_readoptions_set_fill_cache(read, 0);
    rocksdb_iterator_t *at = rocksdb_create_iterator_cf(db.db, read, db.families[DP_ROCKS_ROWS]);
    for (rocksdb_iter_seek_to_first(at); st == DP_OK && rocksdb_iter_valid(at); rocksdb_iter_next(at))
        st = put_row(&scan, at, err);
    enum dp_status ended = end_file(&scan, st == DP_OK ? err : &(struct dp_error){0});
    rocksdb_iter_destroy(at);
    rocksdb_readoptions_destroy(read);
    dp_rocks_db_close(&db);
    return st == DP_OK ? ended : st;
}

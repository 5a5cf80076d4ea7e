#include "server/store/rows.h"

#include "server/store/rocks_error.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum dp_status dp_rows_key(const struct dp_rocks_db *db, const rocksdb_iterator_t *at,
                           struct dp_store_key *out, struct dp_error *err)
{
    size_t bytes = 0;
    const char *key = rocksdb_iter_key(at, &bytes);
    if (bytes != DP_KEY_BYTES)
        return dp_fail(err, DP_CORRUPT, "store %s: a row's key has %zu bytes instead of %u", db->directory,
                       bytes, DP_KEY_BYTES);
    *out = dp_key_get(key);
    return DP_OK;
}

static enum dp_status write_file(struct dp_rocks_db *db, const struct dp_store_job *const *jobs,
                                 uint32_t count, struct dp_error *err)
{
    char *text = NULL;
    rocksdb_sstfilewriter_t *writer = rocksdb_sstfilewriter_create(db->env, db->options[DP_ROCKS_ROWS]);
    rocksdb_sstfilewriter_open(writer, db->ingest_path, &text);
    for (uint32_t j = 0; j < count; j++)
        for (uint32_t i = 0; i < jobs[j]->count && !text; i++) {
            char key[DP_KEY_BYTES];
            dp_key_put(key, jobs[j]->keys[i]);
            rocksdb_sstfilewriter_put(writer, key, sizeof key, jobs[j]->rows[i], jobs[j]->row_bytes[i],
                                      &text);
        }
    if (!text)
        rocksdb_sstfilewriter_finish(writer, &text); /* syncs the file */
    rocksdb_sstfilewriter_destroy(writer);
    return dp_rocks_error_take(&text, db->directory, "write rows", err);
}

enum dp_status dp_rows_write(struct dp_rocks_db *db, const struct dp_store_job *const *jobs, uint32_t count,
                             struct dp_error *err)
{
    uint64_t rows = 0;
    for (uint32_t j = 0; j < count; j++)
        rows += jobs[j]->count;
    if (rows == 0)
        return DP_OK; /* RocksDB refuses an empty file */
    enum dp_status st = write_file(db, jobs, count, err);
    if (st != DP_OK) {
        (void)unlink(db->ingest_path); /* frees its blocks */
        return st;
    }
    char *text = NULL;
    const char *const paths[] = {db->ingest_path};
    /* RocksDB links the file instead of copying it, and syncs the manifest that names it before this returns.
     * If that fails, the file is kept, since the next open may need it (rocks_kept.h). The store takes no
     * more writes then, so the file is not overwritten. */
    rocksdb_ingest_external_file_cf(db->db, db->families[DP_ROCKS_ROWS], paths, 1, db->ingest, &text);
    st = dp_rocks_error_take(&text, db->directory, "ingest rows", err);
    /* The database itself met a full disk, and takes no write until it is opened again: not to be retried. */
    if (st == DP_FULL)
        st = dp_wrap(err, DP_IO, "the store accepts no more writes; make room and restart the server");
    /* RocksDB tries to remove this name and ignores a failure. The name must go: it links to a file of the
     * database now, which the next portion would overwrite. */
    if (st == DP_OK && unlink(db->ingest_path) != 0 && errno != ENOENT)
        st = dp_fail(err, DP_IO, "store: cannot remove %s: %s", db->ingest_path, strerror(errno));
    return st;
}

static enum dp_status take_row(const struct dp_rocks_db *db, const struct dp_store_job *job, uint32_t at,
                               const rocksdb_pinnableslice_t *value, struct dp_error *err)
{
    size_t bytes = 0;
    const char *row = value ? rocksdb_pinnableslice_value(value, &bytes) : NULL;
    job->found[at] = row != NULL;
    if (row && bytes != job->row_bytes[at])
        return dp_fail(err, DP_CORRUPT,
                       "store %s: the row of table %" PRIu32 ", mixed key 0x%016" PRIx64 " has %zu bytes, "
                       "expected %" PRIu32 ": it was written with another dim or optimizer",
                       db->directory, job->keys[at].table, job->keys[at].mixed, bytes, job->row_bytes[at]);
    if (bytes > 0)
        memcpy(job->rows[at], row, bytes);
    return DP_OK;
}

static enum dp_status read_chunk(struct dp_rocks_db *db, struct dp_rows_scratch *scratch,
                                 const struct dp_store_job *job, uint32_t from, uint32_t len,
                                 struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < len; i++) {
        dp_key_put(scratch->keys[i], job->keys[from + i]);
        scratch->key[i] = scratch->keys[i];
        scratch->key_bytes[i] = DP_KEY_BYTES;
        scratch->values[i] = NULL;
        scratch->errors[i] = NULL;
    }
    rocksdb_batched_multi_get_cf(db->db, db->read, db->families[DP_ROCKS_ROWS], len, scratch->key,
                                 scratch->key_bytes, scratch->values, scratch->errors, true);
    for (uint32_t i = 0; i < len; i++) { /* also after a failure: this loop frees the results */
        if (st != DP_OK)
            rocksdb_free(scratch->errors[i]);
        else
            st = dp_rocks_error_take(&scratch->errors[i], db->directory, "read rows", err);
        if (st == DP_OK)
            st = take_row(db, job, from + i, scratch->values[i], err);
        if (scratch->values[i])
            rocksdb_pinnableslice_destroy(scratch->values[i]);
    }
    return st;
}

enum dp_status dp_rows_read(struct dp_rocks_db *db, struct dp_rows_scratch *scratch,
                            const struct dp_store_job *job, uint32_t from, uint32_t count,
                            struct dp_error *err)
{
    enum dp_status st = DP_OK;
    while (st == DP_OK && count > 0) {
        uint32_t len = count < DP_ROWS_CHUNK ? count : DP_ROWS_CHUNK;
        st = read_chunk(db, scratch, job, from, len, err);
        from += len;
        count -= len;
    }
    return st;
}

enum dp_status dp_rows_scan(const struct dp_rocks_db *db, const rocksdb_readoptions_t *read,
                            char last[DP_KEY_BYTES], dp_store_visit_row *visit, void *context,
                            struct dp_error *err)
{
    enum dp_status st = DP_OK;
    rocksdb_iterator_t *at = rocksdb_create_iterator_cf(db->db, read, db->families[DP_ROCKS_ROWS]);
    for (rocksdb_iter_seek(at, last, DP_KEY_BYTES); st == DP_OK && rocksdb_iter_valid(at);
         rocksdb_iter_next(at)) {
        size_t row_bytes = 0;
        struct dp_store_key key;
        st = dp_rows_key(db, at, &key, err);
        if (st != DP_OK)
            break;
        dp_key_put(last, key);
        const char *row = rocksdb_iter_value(at, &row_bytes);
        st = visit(context, key, row, row_bytes, err);
    }
    if (st == DP_OK)
        st = dp_rocks_error_of(at, db->directory, "read rows", err);
    rocksdb_iter_destroy(at);
    return st;
}

enum dp_status dp_rows_visit(struct dp_rocks_db *db, dp_store_visit_row *visit, void *context,
                             struct dp_error *err)
{
    char last[DP_KEY_BYTES] = {0};
    rocksdb_readoptions_t *read = dp_rocks_db_scan_options();
    enum dp_status st = dp_rows_scan(db, read, last, visit, context, err);
    rocksdb_readoptions_destroy(read);
    return st;
}

/* ---- counting */

void dp_count_begin(const struct dp_rocks_db *db, struct dp_count *count)
{
    *count = (struct dp_count){.read = dp_rocks_db_scan_options()};
    count->at = rocksdb_create_iterator_cf(db->db, count->read, db->families[DP_ROCKS_ROWS]);
}

static enum dp_status count_row(const struct dp_rocks_db *db, const struct dp_count *count,
                                const struct dp_store_job *job, uint32_t *table, struct dp_error *err)
{
    struct dp_store_key key;
    enum dp_status st = dp_rows_key(db, count->at, &key, err);
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

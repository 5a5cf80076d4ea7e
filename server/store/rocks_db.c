#include "server/store/rocks_db.h"

#include "common/env/directory.h"
#include "server/store/rocks_current.h"
#include "server/store/rocks_error.h"
#include "server/store/rocks_kept.h"
#include "server/store/rocks_log.h"
#include "server/store/rocks_tail.h"
#include "server/store/store_directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_BYTES        (32u << 20) /* small: hot rows are in the shard's row cache */
#define MARKS_BUFFER_BYTES (1u << 20)
#define BLOOM_BITS         10.0
/* Files of 2 or 3 write-back cycles of a large table; a key is in at most one file of each cycle. */
#define L0_MERGED       16
#define L0_ANY          (1 << 20)
#define LOG_LEVEL_FATAL 4
#define MANIFEST_BYTES  (64u << 10)
#define LOG_FILES       2u
#define LOG_BYTES       (1u << 20)
#define BACKGROUND_JOBS 2

static const char *const family_names[DP_ROCKS_FAMILIES] = {"default", "rows", "marks"};

static rocksdb_options_t *make_options(rocksdb_cache_t *cache)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_paranoid_checks(options, 1);
    /* Drops an incomplete record at the end of the log (a crash came before its sync) and refuses other
     * damage; rocks_tail.h finds out which of that is a torn write. RocksDB's default would silently drop all
     * marks after the damage. */
    rocksdb_options_set_wal_recovery_mode(options, rocksdb_tolerate_corrupted_tail_records_recovery);
    rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS);
    rocksdb_options_set_keep_log_file_num(options, LOG_FILES);
    rocksdb_options_set_max_log_file_size(options, LOG_BYTES);
    /* Debian builds RocksDB with assertions on: after a failed write to the info log (full disk), the next
     * write aborts the process. So RocksDB logs as little as possible, and dp_store_directory_check requires
     * some free space. */
    rocksdb_options_set_info_log_level(options, LOG_LEVEL_FATAL);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    /* By default RocksDB reserves 4 MB in each shard's directory; our manifest has some KB. */
    rocksdb_options_set_manifest_preallocation_size(options, MANIFEST_BYTES);
    rocksdb_options_set_compression(options, rocksdb_no_compression);   /* floats hardly shrink */
    rocksdb_options_set_write_buffer_size(options, MARKS_BUFFER_BYTES); /* rows use none */
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    return options;
}

/* With range deletions enabled, RocksDB 7.8's iterator ends at a damaged block without an error, as if there
 * were no more rows. The store has no range deletions. */
rocksdb_readoptions_t *dp_rocks_db_read_options(void)
{
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(read, 1);
    rocksdb_readoptions_set_ignore_range_deletions(read, 1);
    return read;
}

/* RocksDB's constructors never return NULL: without memory they throw. */
static void make_settings(struct dp_rocks_db *db)
{
    db->cache = rocksdb_cache_create_lru(CACHE_BYTES);
    for (int i = 0; i < DP_ROCKS_FAMILIES; i++)
        db->options[i] = make_options(db->cache);
    /* The small write buffer must not lead to small files of rows. */
    rocksdb_options_set_target_file_size_base(db->options[DP_ROCKS_ROWS], 64u << 20);
    /* A merge rewrites most rows, so it should take in the files of several cycles. */
    rocksdb_options_set_level0_file_num_compaction_trigger(db->options[DP_ROCKS_ROWS], L0_MERGED);
    /* RocksDB's own throttling would delay the marks, also at opening. Write-back throttles itself
     * (write_back.c). */
    rocksdb_options_set_level0_slowdown_writes_trigger(db->options[DP_ROCKS_ROWS], L0_ANY);
    rocksdb_options_set_level0_stop_writes_trigger(db->options[DP_ROCKS_ROWS], L0_ANY);
    rocksdb_options_set_soft_pending_compaction_bytes_limit(db->options[DP_ROCKS_ROWS], 0);
    rocksdb_options_set_hard_pending_compaction_bytes_limit(db->options[DP_ROCKS_ROWS], 0);
    db->read = dp_rocks_db_read_options();
    /* Rows that are read go to the shard's row cache; caching their blocks too halved the rows read per
     * second. */
    rocksdb_readoptions_set_fill_cache(db->read, 0);
    db->write_sync = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(db->write_sync, 1);
    db->ingest = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(db->ingest, 1);
    db->env = rocksdb_envoptions_create();
}

static enum dp_status name_paths(const char *directory, struct dp_rocks_db *db, struct dp_error *err)
{
    static const char file[] = "/" DP_ROCKS_KEPT;
    size_t len = strlen(directory) + sizeof file;
    db->directory = strdup(directory);
    db->ingest_path = malloc(len);
    if (!db->directory || !db->ingest_path)
        return dp_fail(err, DP_NOMEM, "store %s: no memory for its paths", directory);
    (void)snprintf(db->ingest_path, len, "%s%s", directory, file);
    return DP_OK;
}

static enum dp_status open_families(const char *directory, struct dp_rocks_db *db, struct dp_error *err)
{
    char *text = NULL;
    db->db = rocksdb_open_column_families(db->options[DP_ROCKS_DEFAULT], directory, DP_ROCKS_FAMILIES,
                                          family_names, (const rocksdb_options_t *const *)db->options,
                                          db->families, &text);
    return dp_rocks_error_take(&text, directory, "open", err);
}

enum dp_status dp_rocks_db_open(const char *directory, struct dp_rocks_db *out, struct dp_error *err)
{
    struct dp_error mending;
    struct dp_rocks_kept kept = {0};
    bool mended = false;
    *out = (struct dp_rocks_db){0};
    enum dp_status st = name_paths(directory, out, err);
    if (st == DP_OK)
        st = dp_directory_make(directory, err);
    if (st == DP_OK)
        st = dp_store_directory_check(directory, err);
    if (st == DP_OK)
        st = dp_rocks_current_mend(directory, err);
    if (st == DP_OK)
        st = dp_rocks_log_check(directory, err);
    if (st == DP_OK)
        st = dp_rocks_kept_put_back(directory, &kept, err);
    if (st != DP_OK)
        goto done;
    make_settings(out);
    st = open_families(directory, out, err);
    if (st == DP_CORRUPT) {
        enum dp_status mend = dp_rocks_tail_mend(directory, &mended, &mending);
        if (mend == DP_OK && mended) {
            st = open_families(directory, out, err);
        } else if (mend == DP_FULL) { /* torn, not damaged: it can be repaired once there is space */
            st = mend;
            *err = mending;
        }
    }
    if (st == DP_CORRUPT)
        dp_rocks_log_name_damage(directory, err);
    if (st != DP_OK)
        goto done;
    /* Not earlier: until RocksDB holds the lock, the file may be another server's. */
    if (unlink(out->ingest_path) != 0 && errno != ENOENT)
        st = dp_fail(err, DP_IO, "store: cannot remove %s: %s", out->ingest_path, strerror(errno));
done:
    if (st != DP_OK) {
        dp_rocks_db_close(out);
        dp_rocks_kept_take_away(directory, &kept);
    }
    return st;
}

enum dp_status dp_rocks_db_open_beside(const char *directory, struct dp_rocks_db *out, struct dp_error *err)
{
    char *text = NULL;
    *out = (struct dp_rocks_db){0};
    enum dp_status st = name_paths(directory, out, err);
    if (st == DP_OK) {
        make_settings(out);
        /* Otherwise RocksDB would create the directory. */
        rocksdb_options_set_create_if_missing(out->options[DP_ROCKS_DEFAULT], 0);
        out->db = rocksdb_open_for_read_only_column_families(
            out->options[DP_ROCKS_DEFAULT], directory, DP_ROCKS_FAMILIES, family_names,
            (const rocksdb_options_t *const *)out->options, out->families, 0, &text);
        st = dp_rocks_error_take(&text, directory, "open read-only", err);
    }
    if (st != DP_OK)
        dp_rocks_db_close(out);
    return st;
}

enum dp_status dp_rocks_db_open_to_read(const char *directory, struct dp_rocks_db *out, struct dp_error *err)
{
    char path[4096];
    *out = (struct dp_rocks_db){0};
    (void)snprintf(path, sizeof path, "%s/CURRENT", directory);
    if (access(path, F_OK) != 0)
        return dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO,
                       "%s: %s: there is no store to read; restore the whole directory", path,
                       strerror(errno));
    enum dp_status st = dp_rocks_log_check(directory, err);
    if (st == DP_OK)
        st = dp_rocks_db_open_beside(directory, out, err);
    if (st != DP_CORRUPT)
        return st;
    dp_rocks_log_name_damage(directory, err);
    return dp_wrap(err, st,
                   "opened read-only (a server without --read-only repairs at its start what a crash left)");
}

void dp_rocks_db_close(struct dp_rocks_db *db)
{
    /* RocksDB aborts if a handle outlives its database, so the order is handles, database, options, cache. */
    for (int i = 0; i < DP_ROCKS_FAMILIES; i++)
        if (db->families[i])
            rocksdb_column_family_handle_destroy(db->families[i]);
    if (db->db)
        rocksdb_close(db->db);
    if (db->cache) { /* either all settings exist or none */
        rocksdb_envoptions_destroy(db->env);
        rocksdb_ingestexternalfileoptions_destroy(db->ingest);
        rocksdb_writeoptions_destroy(db->write_sync);
        rocksdb_readoptions_destroy(db->read);
        for (int i = 0; i < DP_ROCKS_FAMILIES; i++)
            rocksdb_options_destroy(db->options[i]);
        rocksdb_cache_destroy(db->cache);
    }
    free(db->ingest_path);
    free(db->directory);
    *db = (struct dp_rocks_db){0};
}

#include "server/store/rocks_db.h"

#include "common/base/log.h"
#include "common/env/directory.h"
#include "common/env/read_only_disk.h"
#include "server/store/hard_link.h"
#include "server/store/repair/older.h"
#include "server/store/repair/rocks_current.h"
#include "server/store/rocks_error.h"
#include "server/store/store_directory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_BYTES     (32u << 20) /* small: hot rows are in the shard's row cache */
#define BUFFER_BYTES    (1u << 20)  /* of writes: there are none */
#define BLOOM_BITS      10.0
#define READAHEAD_BYTES (2u << 20)
/* Files of 2 or 3 write-back cycles of a large table; a key is in at most one file of each cycle. */
#define L0_MERGED       16
#define L0_ANY          (1 << 20)
#define LOG_LEVEL_FATAL 4
#define MANIFEST_BYTES  (64u << 10)
#define LOG_FILES       2u
#define LOG_BYTES       (1u << 20)
#define BACKGROUND_JOBS 2

#define OLD_MARKS "marks" /* the column family of format 1 */

const char *const dp_rocks_family_names[DP_ROCKS_FAMILIES] = {"default", "rows"};

static rocksdb_options_t *make_options(rocksdb_cache_t *cache)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_paranoid_checks(options, 1);
    /* For a log of marks of format 1, the only thing that RocksDB's log ever held: an incomplete record at its end is dropped, other
     * damage is refused. */
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
    rocksdb_options_set_compression(options, rocksdb_no_compression); /* floats hardly shrink */
    rocksdb_options_set_write_buffer_size(options, BUFFER_BYTES);
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

rocksdb_readoptions_t *dp_rocks_db_scan_options(void)
{
    rocksdb_readoptions_t *read = dp_rocks_db_read_options();
    rocksdb_readoptions_set_readahead_size(read, READAHEAD_BYTES);
    rocksdb_readoptions_set_fill_cache(read, 0); /* each block is read once */
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
    /* Write-back throttles itself (write_back.c). */
    rocksdb_options_set_level0_slowdown_writes_trigger(db->options[DP_ROCKS_ROWS], L0_ANY);
    rocksdb_options_set_level0_stop_writes_trigger(db->options[DP_ROCKS_ROWS], L0_ANY);
    rocksdb_options_set_soft_pending_compaction_bytes_limit(db->options[DP_ROCKS_ROWS], 0);
    rocksdb_options_set_hard_pending_compaction_bytes_limit(db->options[DP_ROCKS_ROWS], 0);
    db->read = dp_rocks_db_read_options();
    /* Rows that are read go to the shard's row cache; caching their blocks too halved the rows read per
     * second. */
    rocksdb_readoptions_set_fill_cache(db->read, 0);
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

/* ---- marks of format 1 */

static bool has_old_marks(const struct dp_rocks_db *db)
{
    char *text = NULL;
    size_t count = 0;
    bool found = false;
    char **names = rocksdb_list_column_families(db->options[DP_ROCKS_DEFAULT], db->directory, &count, &text);
    rocksdb_free(text); /* there is no database, or its opening reports what is wrong */
    if (!names)
        return false;
    for (size_t i = 0; i < count; i++)
        found = found || strcmp(names[i], OLD_MARKS) == 0;
    rocksdb_list_column_families_destroy(names, count);
    return found;
}

static enum dp_status take_old_marks(struct dp_rocks_db *db, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    rocksdb_iterator_t *at = rocksdb_create_iterator_cf(db->db, db->read, db->old_marks);
    for (rocksdb_iter_seek_to_first(at); st == DP_OK && rocksdb_iter_valid(at); rocksdb_iter_next(at)) {
        struct dp_store_mark mark = {0};
        mark.key = rocksdb_iter_key(at, &mark.key_bytes);
        mark.value = rocksdb_iter_value(at, &mark.value_bytes);
        st = dp_marks_file_take(db->marks, &mark, err);
    }
    if (st == DP_OK)
        st = dp_rocks_error_of(at, db->directory, "read marks of format 1", err);
    rocksdb_iter_destroy(at);
    return st;
}

/* The family goes last: until the file is durable, its marks count. A build that knows no file must not take what is left for marks. */
enum dp_status dp_rocks_db_drop_old_marks(struct dp_rocks_db *db, struct dp_error *err)
{
    char *text = NULL;
    rocksdb_drop_column_family(db->db, db->old_marks, &text);
    enum dp_status st = dp_rocks_error_take(&text, db->directory, "drop the marks of format 1", err);
    if (st != DP_OK)
        return st;
    rocksdb_column_family_handle_destroy(db->old_marks);
    db->old_marks = NULL;
    dp_log(DP_LOG_INFO, "store %s: moved its marks from RocksDB to the file '" DP_MARKS_FILE "'",
           db->directory);
    return DP_OK;
}

/* RocksDB's log held such marks alone, so damage at the open may be theirs. */
static enum dp_status name_old_marks(const struct dp_rocks_db *db, enum dp_status st, struct dp_error *err)
{
    return st == DP_CORRUPT && dp_marks_file_is_empty(db->marks)
               ? dp_wrap(err, st,
                         "its marks are of format 1, and a loss of power may have torn their log: start its "
                         "server "
                         "once with the version before, which repairs that; else")
               : st;
}

/* ---- open */

static enum dp_status load_marks(struct dp_rocks_db *db, struct dp_error *err)
{
    dp_marks_file_close(&db->marks);
    enum dp_status st = dp_marks_file_load(&db->disk, &db->marks, err);
    if (st == DP_CORRUPT)
        return dp_fail(err, st, "store %s: the file '" DP_MARKS_FILE "' is damaged; " DP_STORE_RESTORE_ALL,
                       db->directory);
    return st == DP_OK ? st : dp_wrap(err, st, "store %s", db->directory);
}

/* The marks come first: of a store that a server has open they are then not newer than its rows. */
static enum dp_status load(struct dp_rocks_db *db, struct dp_error *err)
{
    enum dp_status st = load_marks(db, err);
    if (st == DP_OK)
        st = dp_rocks_current_check(&db->disk, db->directory, err);
    if (st != DP_OK)
        return st;
    const struct dp_rocks_seal seal = dp_marks_file_seal(db->marks);
    return dp_rocks_manifest_check(&db->disk, db->directory, &seal, err);
}

static enum dp_status open_families(struct dp_rocks_db *db, struct dp_rocks_kept *kept, struct dp_error *err)
{
    char *text = NULL;
    bool old = has_old_marks(db);
    const int count = DP_ROCKS_FAMILIES + old;
    const char *const names[] = {dp_rocks_family_names[DP_ROCKS_DEFAULT],
                                 dp_rocks_family_names[DP_ROCKS_ROWS], OLD_MARKS};
    const rocksdb_options_t *const options[] = {db->options[DP_ROCKS_DEFAULT], db->options[DP_ROCKS_ROWS],
                                                db->options[DP_ROCKS_DEFAULT]};
    rocksdb_column_family_handle_t *families[DP_ROCKS_FAMILIES + 1] = {NULL};
    /* RocksDB's threads start at the first open of a process and stay: one that takes signals would take a
     * SIGCHLD that a signalfd waits for. */
    sigset_t all, before;
    DP_ASSERT(sigfillset(&all) == 0 && pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    db->db = db->writes ? rocksdb_open_column_families(options[0], db->directory, count, names, options,
                                                       families, &text)
                        : rocksdb_open_for_read_only_column_families(options[0], db->directory, count, names,
                                                                     options, families, 0, &text);
    DP_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    dp_rocks_kept_find(&db->disk, text, kept);
    enum dp_status st =
        dp_rocks_error_take(&text, db->directory, db->writes ? "open" : "open read-only", err);
    if (st != DP_OK)
        return old ? name_old_marks(db, st, err) : st;
    memcpy(db->families, families, sizeof db->families);
    db->old_marks = families[DP_ROCKS_FAMILIES];
    if (db->writes) /* again, now that RocksDB holds the lock: a server that closed the store just then has put more */
        st = load_marks(db, err);
    return st == DP_OK && old && dp_marks_file_is_empty(db->marks) ? take_old_marks(db, err) : st;
}

/* Opens it, after repairs if need be. */
static enum dp_status open_mended(struct dp_rocks_db *db, struct dp_error *err)
{
    struct dp_error mending;
    struct dp_rocks_kept kept;
    bool mended = false;
    enum dp_status st = open_families(db, &kept, err);
    if (db->db) /* open, whatever its marks are */
        return st;
    if (st == DP_CORRUPT && kept.name[0] == '\0') {
        enum dp_status mend = dp_rocks_manifest_mend(&db->disk, db->directory, &mended, &mending);
        if (mend == DP_OK && mended) {
            st = open_families(db, &kept, err);
        } else if (mend == DP_FULL) { /* torn, not damaged: it can be repaired once there is space */
            st = mend;
            *err = mending;
        }
    }
    if (st == DP_CORRUPT && !db->db && dp_rocks_kept_put_back(&db->disk, db->directory, &kept)) {
        struct dp_rocks_kept another;
        struct dp_error first = *err;
        st = open_families(db, &another, err);
        if (!db->db) {
            dp_rocks_kept_take_away(&db->disk, &kept);
            *err = first;
            st = first.status;
        }
    }
    return st;
}

enum dp_status dp_rocks_db_open(const char *directory, struct dp_rocks_db *out, struct dp_error *err)
{
    dp_hard_link_use();
    *out = (struct dp_rocks_db){.writes = true};
    enum dp_status st = name_paths(directory, out, err);
    if (st == DP_OK)
        st = dp_directory_make(directory, err);
    if (st == DP_OK)
        st = dp_store_older_check(directory, err);
    if (st == DP_OK)
        st = dp_store_directory_check(directory, err);
    if (st == DP_OK)
        st = dp_disk_open(directory, &out->disk, err);
    if (st == DP_OK)
        st = dp_rocks_current_mend(&out->disk, directory, err);
    if (st == DP_OK)
        st = load(out, err);
    if (st == DP_OK) {
        make_settings(out);
        st = open_mended(out, err);
    }
    /* Not earlier: until RocksDB holds the lock, the file may be another server's. */
    if (st == DP_OK && unlink(out->ingest_path) != 0 && errno != ENOENT)
        st = dp_fail(err, DP_IO, "store: cannot remove %s: %s", out->ingest_path, strerror(errno));
    if (st != DP_OK)
        dp_rocks_db_close(out);
    return st;
}

enum dp_status dp_rocks_db_open_with(const char *directory, struct dp_rocks_db *db,
                                     struct dp_rocks_kept *kept, struct dp_error *err)
{
    *kept = (struct dp_rocks_kept){0};
    enum dp_status st = db->directory ? DP_OK : name_paths(directory, db, err);
    if (st == DP_OK)
        st = dp_read_only_disk_open(directory, &db->disk, err);
    if (st == DP_OK)
        st = load(db, err);
    return st == DP_OK ? open_families(db, kept, err) : st;
}

enum dp_status dp_rocks_db_open_beside(const char *directory, struct dp_rocks_db *out, struct dp_error *err)
{
    struct dp_rocks_kept kept;
    *out = (struct dp_rocks_db){0};
    make_settings(out);
    /* Otherwise RocksDB would create the directory. */
    rocksdb_options_set_create_if_missing(out->options[DP_ROCKS_DEFAULT], 0);
    enum dp_status st = dp_store_older_check(directory, err);
    if (st == DP_OK)
        st = dp_rocks_db_open_with(directory, out, &kept, err);
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
                       "%s: %s: there is no store to read; restore the complete directory", path,
                       strerror(errno));
    enum dp_status st = dp_rocks_db_open_beside(directory, out, err);
    if (st != DP_CORRUPT)
        return st;
    return dp_wrap(err, st,
                   "opened read-only (a server without --read-only repairs at its start what a crash left)");
}

void dp_rocks_db_close(struct dp_rocks_db *db)
{
    /* RocksDB aborts if a handle outlives its database, so the order is handles, database, options, cache. */
    for (int i = 0; i < DP_ROCKS_FAMILIES; i++)
        if (db->families[i])
            rocksdb_column_family_handle_destroy(db->families[i]);
    if (db->old_marks)
        rocksdb_column_family_handle_destroy(db->old_marks);
    if (db->db)
        rocksdb_close(db->db);
    if (db->cache) { /* the others exist, too; store_view.c has none for writing */
        if (db->env) {
            rocksdb_envoptions_destroy(db->env);
            rocksdb_ingestexternalfileoptions_destroy(db->ingest);
        }
        rocksdb_readoptions_destroy(db->read);
        for (int i = 0; i < DP_ROCKS_FAMILIES; i++)
            rocksdb_options_destroy(db->options[i]);
        rocksdb_cache_destroy(db->cache);
    }
    dp_marks_file_close(&db->marks);
    dp_disk_close(&db->disk);
    free(db->ingest_path);
    free(db->directory);
    *db = (struct dp_rocks_db){0};
}

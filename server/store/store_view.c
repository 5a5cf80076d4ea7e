/* Opens RocksDB read-only: no lock, no info log, no removal of files.
 * Damage    The first open is as strict as a server's. If damage makes it fail, a second, lax open is
 *           tried, only to report more damage. Its result never counts as complete. */
#include "server/store/store_view.h"

#include "common/base/text.h"
#include "common/env/read_only_disk.h"
#include "server/store/marks.h"
#include "server/store/repair/older.h"
#include "server/store/repair/rocks_current.h"
#include "server/store/repair/rocks_text.h"
#include "server/store/rocks_error.h"
#include "server/store/rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_BYTES (8u << 20)
/* as in rocks_db.c: without a policy filter blocks are neither read nor checked */
#define BLOOM_BITS     10.0
#define LIVE_TRIES     50
#define EDGES_PER_FILE 2u

static const char *const state_names[] = {"new", "clean", "open-journaled", "open"};

/* An end of a file of rows. */
struct edge {
    char key[DP_KEY_BYTES];
    char file[32];
};

struct dp_store_view {
    struct dp_rocks_db db; /* without the members for writing */
    struct dp_store_view_own own;
    /* the first keys of the files of rows, and the keys after their last ones; ascending */
    struct edge *edges;
    size_t edge_count;
};

const char *dp_store_view_state_name(enum dp_store_view_state state)
{
    return state_names[state];
}

/* ---- the directory */

static void join(char *to, size_t room, const char *directory, const char *name)
{
    (void)snprintf(to, room, "%s/%s", directory, name);
}

bool dp_store_view_is_store(const char *directory)
{
    static const char *const signs[] = {"CURRENT", "IDENTITY", "journal"};
    char path[4096];
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        join(path, sizeof path, directory, signs[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

pid_t dp_store_view_in_use(const char *directory)
{
    char path[4096];
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET}; /* other readers do not count */
    join(path, sizeof path, directory, "LOCK");
    int file;
    if (dp_read_only_disk_file(AT_FDCWD, path, &file, NULL) != DP_OK)
        return 0;
    bool asked = fcntl(file, F_GETLK, &lock) == 0;
    (void)close(file);
    pid_t holder = lock.l_pid > 0 ? lock.l_pid : -1; /* in another container it has no number here */
    return asked && lock.l_type != F_UNLCK ? holder : 0;
}

/* RocksDB would wait for ever for the writer of a pipe. */
static enum dp_status check_kinds(const char *directory, DIR *list, struct dp_error *err)
{
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        struct stat found;
        if (fstatat(dirfd(list), entry->d_name, &found, 0) == 0 && !S_ISREG(found.st_mode) &&
            !S_ISDIR(found.st_mode))
            return dp_fail(err, DP_CORRUPT,
                           "store %s: %s is a pipe, a socket or a device, not a file; restore that file, or "
                           "a copy of the "
                           "store",
                           directory, entry->d_name);
    }
    return DP_OK;
}

static enum dp_status check_directory(const char *directory, struct dp_error *err)
{
    char path[4096];
    DIR *list = opendir(directory);
    if (!list)
        return dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO,
                       "cannot inspect %s: %s; name a store's directory", directory, strerror(errno));
    enum dp_status st = check_kinds(directory, list, err);
    (void)closedir(list);
    if (st == DP_OK)
        st = dp_store_older_check(directory, err);
    if (st != DP_OK)
        return st;
    if (!dp_store_view_is_store(directory))
        return dp_fail(err, DP_NOT_FOUND,
                       "%s is not a store: it has none of CURRENT, IDENTITY and journal; name a shard's "
                       "directory, or a server's (with shard-0000, ...)",
                       directory);
    join(path, sizeof path, directory, "CURRENT");
    if (access(path, F_OK) != 0)
        return dp_fail(err, DP_CORRUPT,
                       "store %s: the file CURRENT is missing: without it no row can be found; restore that "
                       "file, or a copy of the store",
                       directory);
    return DP_OK;
}

/* ---- opening */

static rocksdb_options_t *make_options(rocksdb_cache_t *cache, bool strict)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 0);
    rocksdb_options_set_paranoid_checks(options, strict);
    rocksdb_options_set_wal_recovery_mode(options, rocksdb_tolerate_corrupted_tail_records_recovery);
    /* A scan must read every block and not skip older versions of a row. */
    rocksdb_options_set_max_sequential_skip_in_iterations(options, UINT64_MAX);
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    return options;
}

static enum dp_status open_db(const char *directory, bool strict, struct dp_rocks_db *db,
                              struct dp_rocks_kept *kept, struct dp_error *err)
{
    *db = (struct dp_rocks_db){.cache = rocksdb_cache_create_lru(CACHE_BYTES)};
    for (int i = 0; i < DP_ROCKS_FAMILIES; i++)
        db->options[i] = make_options(db->cache, strict);
    db->read = dp_rocks_db_scan_options();
    enum dp_status st = dp_rocks_db_open_with(directory, db, kept, err);
    if (st != DP_OK)
        dp_rocks_db_close(db);
    return st;
}

/* Names the manifest, where RocksDB names no file. */
static void name_manifest(const char *directory, struct dp_error *err)
{
    struct dp_disk disk;
    char name[DP_ROCKS_CURRENT_BYTES];
    if (dp_rocks_text_names_file(err) || dp_read_only_disk_open(directory, &disk, NULL) != DP_OK)
        return;
    if (dp_rocks_current_read(&disk, name, NULL) == DP_OK)
        (void)dp_wrap(err, err->status, "%s/%s, or what it names, is damaged", directory, name);
    dp_disk_close(&disk);
}

/* ---- files */

static int compare_edges(const void *a, const void *b)
{
    return memcmp(((const struct edge *)a)->key, ((const struct edge *)b)->key, DP_KEY_BYTES);
}

/* The smallest key above `key`. */
static void step_key(char key[DP_KEY_BYTES])
{
    for (size_t i = DP_KEY_BYTES; i-- > 0 && ++key[i] == 0;)
        continue;
}

/* Else it has marks of format 1. */
static bool is_of_rows(const rocksdb_livefiles_t *files, int i)
{
    return strcmp(rocksdb_livefiles_column_family_name(files, i), dp_rocks_family_names[DP_ROCKS_ROWS]) == 0;
}

static enum dp_status find_edges(struct dp_store_view *view, struct dp_error *err)
{
    const rocksdb_livefiles_t *files = rocksdb_livefiles(view->db.db);
    int count = rocksdb_livefiles_count(files);
    view->edges = calloc((size_t)count * EDGES_PER_FILE + 1, sizeof view->edges[0]);
    for (int i = 0; i < count && view->edges; i++) {
        size_t bytes = 0;
        if (!is_of_rows(files, i))
            continue;
        struct edge *edge = &view->edges[view->edge_count];
        const char *key = rocksdb_livefiles_smallestkey(files, i, &bytes);
        memcpy(edge[0].key, key, bytes < DP_KEY_BYTES ? bytes : DP_KEY_BYTES);
        key = rocksdb_livefiles_largestkey(files, i, &bytes);
        memcpy(edge[1].key, key, bytes < DP_KEY_BYTES ? bytes : DP_KEY_BYTES);
        step_key(edge[1].key);
        for (int e = 0; e < 2; e++)
            (void)snprintf(edge[e].file, sizeof edge[e].file, "%s", rocksdb_livefiles_name(files, i));
        view->edge_count += EDGES_PER_FILE;
    }
    rocksdb_livefiles_destroy(files);
    if (!view->edges)
        return dp_fail(err, DP_NOMEM, "no memory to inspect %s", view->db.directory);
    qsort(view->edges, view->edge_count, sizeof view->edges[0], compare_edges);
    return DP_OK;
}

enum dp_status dp_store_view_files(const struct dp_store_view *view,
                                   enum dp_status (*visit)(void *context,
                                                           const struct dp_store_view_file *file,
                                                           struct dp_error *err),
                                   void *context, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    const rocksdb_livefiles_t *files = rocksdb_livefiles(view->db.db);
    for (int i = 0; st == DP_OK && i < rocksdb_livefiles_count(files); i++) {
        const char *name = rocksdb_livefiles_name(files, i);
        struct dp_store_view_file file = {.name = *name == '/' ? name + 1 : name,
                                          .level = rocksdb_livefiles_level(files, i),
                                          .bytes = rocksdb_livefiles_size(files, i),
                                          .entries = rocksdb_livefiles_entries(files, i)};
        if (is_of_rows(files, i))
            st = visit(context, &file, err);
    }
    rocksdb_livefiles_destroy(files);
    return st;
}

/* ---- open, close */

static enum dp_status open_whole(struct dp_store_view *view, const char *directory, struct dp_error *err)
{
    struct dp_rocks_kept kept;
    enum dp_status st = open_db(directory, true, &view->db, &kept, err);
    /* A running server may remove a file between listing and opening it: the next manifest no longer names
     * it. */
    for (int i = 0;
         (st == DP_CORRUPT || st == DP_IO) && i < LIVE_TRIES && dp_store_view_in_use(directory) != 0; i++)
        st = open_db(directory, true, &view->db, &kept, err);
    /* A missing table that the server's next start puts back is not damage. */
    if (st == DP_CORRUPT && kept.name[0] != '\0')
        st = dp_fail(err, DP_UNCLEAN,
                     "store %s: the manifest names %s, which is missing: its rows may be in " DP_ROCKS_KEPT
                     ", if a sync of the manifest failed during write-back. Start and stop the server, which "
                     "restores the file then, and inspect the store again",
                     directory, kept.name);
    if (st == DP_CORRUPT)
        name_manifest(directory, err);
    return st;
}

static enum dp_status read_own(struct dp_store_view *view, struct dp_error *err)
{
    enum dp_status st = dp_marks_own(&view->db, &view->own, err);
    return st == DP_NOT_FOUND ? DP_OK : st; /* its state is new */
}

enum dp_status dp_store_view_open(const char *directory, const struct dp_store_view_damage *damaged,
                                  struct dp_store_view **out, struct dp_error *err)
{
    enum dp_status st = check_directory(directory, err);
    if (st != DP_OK)
        return st;
    struct dp_store_view *view = calloc(1, sizeof *view);
    if (!view)
        return dp_fail(err, DP_NOMEM, "no memory to inspect %s", directory);
    st = open_whole(view, directory, err);
    if (st == DP_CORRUPT && damaged) {
        struct dp_error lax;
        struct dp_rocks_kept kept;
        damaged->report(damaged->context, err);
        if (open_db(directory, false, &view->db, &kept, &lax) == DP_OK)
            st = DP_OK;
    }
    if (st == DP_OK)
        st = read_own(view, err);
    if (st == DP_OK)
        st = find_edges(view, err);
    if (st != DP_OK)
        dp_store_view_close(&view);
    *out = view;
    return st;
}

void dp_store_view_close(struct dp_store_view **view)
{
    if (!*view)
        return;
    dp_rocks_db_close(&(*view)->db);
    free((*view)->edges);
    free(*view);
    *view = NULL;
}

const struct dp_store_view_own *dp_store_view_own(const struct dp_store_view *view)
{
    return &view->own;
}

/* ---- marks and rows */

enum dp_status dp_store_view_marks(struct dp_store_view *view, const char *prefix, dp_store_visit_mark *visit,
                                   void *context, struct dp_error *err)
{
    return dp_marks_visit(&view->db, prefix, strlen(prefix), visit, context, err);
}

struct scan {
    struct dp_store_view *view;
    dp_store_visit_row *visit;
    void *context;
    bool ended;              /* visit ended the scan */
    char last[DP_KEY_BYTES]; /* the last key tried */
};

static enum dp_status see_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                              struct dp_error *err)
{
    struct scan *scan = context;
    enum dp_status st = scan->visit(scan->context, key, row, row_bytes, err);
    scan->ended = st != DP_OK;
    return st;
}

/* From scan->last on. */
static enum dp_status scan_on(struct scan *scan, struct dp_error *err)
{
    return dp_rows_scan(&scan->view->db, scan->view->db.read, scan->last, see_row, scan, err);
}

/* For some kinds of damage RocksDB does not name the file: then it is the file that was being read, or the
 * next one. */
static void name_file(const struct scan *scan, struct dp_error *err)
{
    const struct dp_store_view *view = scan->view;
    if (dp_rocks_text_names_table(err))
        return;
    for (size_t i = 0; i < view->edge_count; i++)
        if (memcmp(view->edges[i].key, scan->last, DP_KEY_BYTES) >= 0) {
            (void)dp_wrap(err, err->status, "at or near %s%s", view->db.directory, view->edges[i].file);
            return;
        }
}

/* Skips a damaged place: goes on at the next key where a file begins or has ended. */
static bool next_edge(struct scan *scan)
{
    const struct dp_store_view *view = scan->view;
    for (size_t i = 0; i < view->edge_count; i++)
        if (memcmp(view->edges[i].key, scan->last, DP_KEY_BYTES) > 0) {
            memcpy(scan->last, view->edges[i].key, DP_KEY_BYTES);
            return true;
        }
    return false;
}

enum dp_status dp_store_view_rows(struct dp_store_view *view, const struct dp_store_view_damage *damaged,
                                  dp_store_visit_row *visit, void *context, struct dp_error *err)
{
    struct scan scan = {.view = view, .visit = visit, .context = context};
    for (;;) {
        enum dp_status st = scan_on(&scan, err);
        if (st == DP_OK || scan.ended || !damaged)
            return st;
        name_file(&scan, err);
        damaged->report(damaged->context, err);
        if (!next_edge(&scan))
            return DP_OK;
    }
}

enum dp_status dp_store_view_rows_from(struct dp_store_view *view, struct dp_store_key from,
                                       dp_store_visit_row *visit, void *context, struct dp_error *err)
{
    struct scan scan = {.view = view, .visit = visit, .context = context};
    dp_key_put(scan.last, from);
    return scan_on(&scan, err);
}

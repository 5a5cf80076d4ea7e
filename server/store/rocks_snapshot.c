#include "server/store/rocks_snapshot.h"

#include "common/base/log.h"
#include "common/env/limits.h"
#include "server/store/hard_link.h"
#include "server/store/marks.h"
#include "server/store/rocks_error.h"
#include "server/store/snapshot_name.h"
#include "server/store/space.h"
#include "server/store/store_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TMP         "snapshot-tmp"
#define DROP        "snapshot-drop"
#define SNAPSHOT    "snapshot"
#define REVERT      "revert"
#define NEW_CURRENT "CURRENT.dbtmp"
#define TAKE_BYTES  ((uint64_t)4 << 20) /* RocksDB writes logs and a manifest for a snapshot or a revert */
#define COPY_BYTES  (256u << 10)

struct path {
    char text[DP_ROCKS_PLACE_BYTES];
};

static bool path_of(const char *directory, const char *name, struct path *out)
{
    return snprintf(out->text, sizeof out->text, "%s/%s", directory, name) < (int)sizeof out->text;
}

static enum dp_status failed(struct dp_error *err, const char *what, const char *path)
{
    enum dp_status st = dp_limits_full(errno) ? DP_FULL : DP_IO;
    return dp_fail(err, st, "store: %s %s: %s%s", what, path, strerror(errno), dp_limits_remedy(errno));
}

static enum dp_status too_long(const char *directory, struct dp_error *err)
{
    return dp_fail(err, DP_IO, "store %s: its path is too long", directory);
}

/* A status other than DP_OK from visit ends the walk and is returned. */
static enum dp_status each_name(const char *directory,
                                enum dp_status (*visit)(void *context, const char *name,
                                                        struct dp_error *err),
                                void *context, struct dp_error *err)
{
    DIR *list = opendir(directory);
    enum dp_status st = DP_OK;
    if (!list && (errno == ENOENT || errno == ENOTDIR)) /* creating the directory will report the error */
        return DP_OK;
    if (!list)
        return failed(err, "list directory", directory);
    for (struct dirent *entry = readdir(list); st == DP_OK && entry; entry = readdir(list))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            st = visit(context, entry->d_name, err);
    (void)closedir(list);
    return st;
}

struct snapshot_found {
    const char *stem;
    struct dp_rocks_snapshots *out;
};

static enum dp_status see(void *context, const char *name, struct dp_error *err)
{
    const struct snapshot_found *found = context;
    struct dp_store_snapshot snapshot;
    (void)err;
    if (found->out->count < DP_STORE_SNAPSHOTS_MAX &&
        dp_store_snapshot_name_parse_with(found->stem, name, &snapshot))
        found->out->snapshot[found->out->count++] = snapshot;
    return DP_OK;
}

static enum dp_status find(const char *directory, const char *stem, struct dp_rocks_snapshots *out,
                           struct dp_error *err)
{
    struct snapshot_found found = {.stem = stem, .out = out};
    *out = (struct dp_rocks_snapshots){0};
    return each_name(directory, see, &found, err);
}

enum dp_status dp_rocks_snapshot_list(const char *directory, struct dp_rocks_snapshots *out,
                                      struct dp_error *err)
{
    return find(directory, SNAPSHOT, out, err);
}

void dp_rocks_snapshot_place(const char *directory, char out[DP_ROCKS_PLACE_BYTES])
{
    struct dp_rocks_snapshots reverts;
    char name[DP_SNAPSHOT_NAME_BYTES];
    struct path path;
    (void)snprintf(out, DP_ROCKS_PLACE_BYTES, "%s", directory);
    if (find(directory, REVERT, &reverts, NULL) != DP_OK || reverts.count == 0)
        return;
    dp_store_snapshot_name_with(REVERT, reverts.snapshot[0], name);
    if (path_of(directory, name, &path))
        (void)snprintf(out, DP_ROCKS_PLACE_BYTES, "%s", path.text);
}

/* ---- removing */

static enum dp_status remove_name(void *context, const char *name, struct dp_error *err)
{
    struct path path;
    if (!path_of(context, name, &path))
        return too_long(context, err);
    return unlink(path.text) == 0 || errno == ENOENT ? DP_OK : failed(err, "remove", path.text);
}

/* Removes the directory with its files; it has no subdirectories. */
enum dp_status dp_rocks_snapshot_remove(const char *directory, const char *name, struct dp_error *err)
{
    struct path path;
    if (!path_of(directory, name, &path))
        return too_long(directory, err);
    enum dp_status st = each_name(path.text, remove_name, path.text, err);
    if (st == DP_OK && rmdir(path.text) != 0 && errno != ENOENT && errno != ENOTDIR)
        st = failed(err, "remove", path.text);
    return st;
}

static enum dp_status move(const char *directory, const char *from, const char *to, struct dp_error *err)
{
    struct path from_path, to_path;
    if (!path_of(directory, from, &from_path) || !path_of(directory, to, &to_path))
        return too_long(directory, err);
    if (rename(from_path.text, to_path.text) != 0)
        return errno == ENOENT ? dp_fail(err, DP_NOT_FOUND, "store %s: there is no %s", directory, from)
                               : failed(err, "rename", from_path.text);
    return dp_store_directory_sync(directory, err);
}

/* Renames the snapshot first, so that a directory with a snapshot's name is always complete. */
static enum dp_status drop_one(const char *directory, const char *name, struct dp_error *err)
{
    enum dp_status st = dp_rocks_snapshot_remove(directory, DROP, err);
    if (st == DP_OK)
        st = move(directory, name, DROP, err);
    return st == DP_OK ? dp_rocks_snapshot_remove(directory, DROP, err) : st;
}

static bool is_same(struct dp_store_snapshot a, struct dp_store_snapshot b)
{
    return a.run == b.run && a.epoch == b.epoch;
}

enum dp_status dp_rocks_snapshot_drop(const char *directory, struct dp_store_snapshot but,
                                      struct dp_store_snapshot and_but, struct dp_error *err)
{
    struct dp_rocks_snapshots there;
    char name[DP_SNAPSHOT_NAME_BYTES];
    enum dp_status st = dp_rocks_snapshot_list(directory, &there, err);
    for (uint32_t i = 0; st == DP_OK && i < there.count; i++) {
        if (is_same(there.snapshot[i], but) || is_same(there.snapshot[i], and_but))
            continue;
        dp_store_snapshot_name_with(SNAPSHOT, there.snapshot[i], name);
        st = drop_one(directory, name, err);
    }
    return st;
}

/* ---- taking */

static enum dp_status checkpoint(const struct dp_rocks_db *db, const char *path, struct dp_error *err)
{
    char *text = NULL;
    rocksdb_checkpoint_t *maker = rocksdb_checkpoint_object_create(db->db, &text);
    if (maker) {
        /* UINT64_MAX: there is nothing to flush. */
        rocksdb_checkpoint_create(maker, path, UINT64_MAX, &text);
        rocksdb_checkpoint_object_destroy(maker);
    }
    return dp_rocks_error_take(&text, db->directory, "take a snapshot", err);
}

enum dp_status dp_rocks_snapshot_copy(const struct dp_rocks_db *db, const char *path, struct dp_error *err)
{
    enum dp_status st = dp_space_check(db->directory, TAKE_BYTES, DP_SPACE_ROWS, err);
    if (st == DP_OK)
        st = checkpoint(db, path, err);
    return st == DP_OK ? dp_marks_file_copy(db->marks, path, NULL, err) : st;
}

static enum dp_status sweep_tmp(const char *directory, struct dp_error *err)
{
    enum dp_status st =
        dp_rocks_snapshot_remove(directory, TMP ".tmp", err); /* RocksDB's own temporary name */
    return st == DP_OK ? dp_rocks_snapshot_remove(directory, TMP, err) : st;
}

enum dp_status dp_rocks_snapshot_take(const struct dp_rocks_db *db, struct dp_store_snapshot snapshot,
                                      struct dp_error *err)
{
    char name[DP_SNAPSHOT_NAME_BYTES];
    struct path tmp, path;
    dp_store_snapshot_name_with(SNAPSHOT, snapshot, name);
    if (!path_of(db->directory, TMP, &tmp) || !path_of(db->directory, name, &path))
        return too_long(db->directory, err);
    if (access(path.text, F_OK) == 0)
        return DP_OK;
    enum dp_status st = sweep_tmp(db->directory, err);
    if (st == DP_OK)
        st = dp_rocks_snapshot_copy(db, tmp.text, err);
    /* Last, on purpose: a directory with a snapshot's name is complete. */
    if (st == DP_OK)
        st = move(db->directory, TMP, name, err);
    if (st != DP_OK) {
        struct dp_error swept;
        if (sweep_tmp(db->directory, &swept) != DP_OK)
            dp_log(DP_LOG_WARN, "%s", swept.text);
    }
    return st;
}

/* ---- reverting */

/* Copies the store's current marks into the snapshot. */
static enum dp_status bring_marks(const char *directory, const char *snapshot,
                                  const struct dp_store_mark *mark, struct dp_error *err)
{
    struct dp_rocks_db now;
    enum dp_status st = dp_rocks_db_open_to_read(directory, &now, err);
    if (st != DP_OK)
        return st;
    st = dp_marks_copy(&now, snapshot, mark, err);
    dp_rocks_db_close(&now);
    return st;
}

enum dp_status dp_rocks_snapshot_revert(const char *directory, struct dp_store_snapshot snapshot,
                                        const struct dp_store_mark *mark, struct dp_error *err)
{
    char name[DP_SNAPSHOT_NAME_BYTES], to[DP_SNAPSHOT_NAME_BYTES];
    struct path path;
    dp_store_snapshot_name_with(SNAPSHOT, snapshot, name);
    dp_store_snapshot_name_with(REVERT, snapshot, to);
    if (!path_of(directory, name, &path))
        return too_long(directory, err);
    if (access(path.text, F_OK) != 0)
        return dp_fail(err, DP_NOT_FOUND, "store %s: there is no %s", directory, name);
    enum dp_status st = dp_space_check(directory, TAKE_BYTES, DP_SPACE_ROWS, err);
    if (st == DP_OK)
        st = bring_marks(directory, path.text, mark, err);
    return st == DP_OK ? move(directory, name, to, err) : st;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

/* Whether RocksDB reads the file, or would remove it. Its lock and its info logs are not among them. */
static bool is_of_database(const char *name)
{
    return ends_with(name, ".sst") || ends_with(name, ".log") || ends_with(name, ".dbtmp") ||
           strncmp(name, "MANIFEST-", 9) == 0 || strncmp(name, "OPTIONS-", 8) == 0 ||
           strcmp(name, "IDENTITY") == 0 || strcmp(name, "CURRENT") == 0 ||
           strcmp(name, DP_ROCKS_KEPT) == 0 || strcmp(name, DP_MARKS_FILE) == 0;
}

/* Clears all but CURRENT, which is never missing: a directory without it counts as a lost store
 * (server/layout.c). */
static enum dp_status clear_name(void *context, const char *name, struct dp_error *err)
{
    return is_of_database(name) && strcmp(name, "CURRENT") != 0 ? remove_name(context, name, err) : DP_OK;
}

static enum dp_status copy_bytes(int from, int to, const char *name, struct dp_error *err)
{
    static _Thread_local char bytes[COPY_BYTES];
    ssize_t n;
    while ((n = read(from, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0, put; at < n; at += put)
            if ((put = write(to, bytes + at, (size_t)(n - at))) < 0)
                return failed(err, "write", name);
    if (n < 0)
        return failed(err, "read", name);
    return fsync(to) == 0 ? DP_OK : failed(err, "sync", name);
}

/* For file systems without hard links. */
static enum dp_status copy_file(const char *from, const char *to, struct dp_error *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
    enum dp_status st = in < 0 ? failed(err, "read", from) : DP_OK;
    if (st == DP_OK && (out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) < 0)
        st = failed(err, "write", to);
    if (st == DP_OK)
        st = copy_bytes(in, out, to, err);
    if (in >= 0)
        (void)close(in);
    if (out >= 0)
        (void)close(out);
    return st;
}

struct bringing {
    const char *from, *to;
};

static enum dp_status bring(const struct bringing *way, const char *name, const char *as,
                            struct dp_error *err)
{
    struct path from, to;
    if (!path_of(way->from, name, &from) || !path_of(way->to, as, &to))
        return too_long(way->to, err);
    if (dp_hard_link(from.text, to.text) == 0)
        return DP_OK;
    return errno == EOPNOTSUPP ? copy_file(from.text, to.text, err) : failed(err, "link", to.text);
}

static enum dp_status bring_name(void *context, const char *name, struct dp_error *err)
{
    return is_of_database(name) && strcmp(name, "CURRENT") != 0 ? bring(context, name, name, err) : DP_OK;
}

static enum dp_status bring_any(void *context, const char *name, struct dp_error *err)
{
    return is_of_database(name) ? bring(context, name, name, err) : DP_OK;
}

static enum dp_status link_one(const char *directory, struct dp_store_snapshot snapshot, const char *into,
                               struct dp_error *err)
{
    char name[DP_SNAPSHOT_NAME_BYTES];
    struct path from, to;
    dp_store_snapshot_name(snapshot, name);
    if (!path_of(directory, name, &from) || !path_of(into, name, &to))
        return too_long(into, err);
    if (mkdir(to.text, 0777) != 0)
        return failed(err, "make", to.text);
    struct bringing way = {.from = from.text, .to = to.text};
    enum dp_status st = each_name(from.text, bring_any, &way, err);
    return st == DP_OK ? dp_store_directory_sync(to.text, err) : st;
}

enum dp_status dp_rocks_snapshot_link(const char *directory, const char *into, struct dp_error *err)
{
    struct dp_rocks_snapshots there;
    enum dp_status st = dp_rocks_snapshot_list(directory, &there, err);
    for (uint32_t i = 0; st == DP_OK && i < there.count; i++)
        st = link_one(directory, there.snapshot[i], into, err);
    return st == DP_OK && there.count > 0 ? dp_store_directory_sync(into, err) : st;
}

/* Removes NEW_CURRENT at the end: when this is repeated, both names are links to one file, and rename then
 * keeps both. */
static enum dp_status bring_current(const struct bringing *way, struct dp_error *err)
{
    enum dp_status st = bring(way, "CURRENT", NEW_CURRENT, err);
    if (st == DP_OK)
        st = move(way->to, NEW_CURRENT, "CURRENT", err);
    return st == DP_OK ? remove_name((void *)way->to, NEW_CURRENT, err) : st;
}

/* revert-RUN-EPOCH is the store until that directory is dropped, so all of this can be repeated. */
static enum dp_status settle(const char *directory, const char *name, struct dp_error *err)
{
    struct path from;
    if (!path_of(directory, name, &from))
        return too_long(directory, err);
    const struct dp_store_snapshot none = {0};
    struct bringing way = {.from = from.text, .to = directory};
    enum dp_status st = each_name(directory, clear_name, (void *)directory, err);
    if (st == DP_OK)
        st = each_name(from.text, bring_name, &way, err);
    if (st == DP_OK)
        st = bring_current(&way, err);
    if (st == DP_OK)
        st = dp_store_directory_sync(directory, err);
    if (st == DP_OK)
        st = dp_rocks_snapshot_drop(directory, none, none, err); /* they are obsolete */
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "store %s: reverted to snapshot %s", directory, name + sizeof REVERT);
    return st == DP_OK ? drop_one(directory, name, err) : st;
}

static enum dp_status settle_locked(const char *directory, const char *name, struct dp_error *err)
{
    struct path lock_path;
    int lock = dp_store_directory_lock(directory);
    if (lock < 0 && path_of(directory, "LOCK", &lock_path) && access(lock_path.text, F_OK) == 0)
        return dp_fail(err, DP_IO, "store %s: another server is using it; stop that one", directory);
    enum dp_status st = settle(directory, name, err);
    if (lock >= 0)
        (void)close(lock);
    return st;
}

enum dp_status dp_rocks_snapshot_settle(const char *directory, struct dp_error *err)
{
    struct dp_rocks_snapshots reverts;
    char name[DP_SNAPSHOT_NAME_BYTES];
    enum dp_status st = find(directory, REVERT, &reverts, err);
    if (st == DP_OK && reverts.count > 0) {
        dp_store_snapshot_name_with(REVERT, reverts.snapshot[0], name);
        st = settle_locked(directory, name, err);
    }
    if (st == DP_OK)
        st = sweep_tmp(directory, err);
    return st == DP_OK ? dp_rocks_snapshot_remove(directory, DROP, err) : st;
}

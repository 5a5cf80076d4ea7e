#include "server/store/rocks_link.h"

#include "common/base/log.h"
#include "common/env/directory.h"
#include "server/store/rocks_error.h"
#include "server/store/space.h"
#include "server/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAKE_BYTES ((uint64_t)4 << 20) /* RocksDB writes logs and a manifest for a link */

static bool is_link(const char *name)
{
    return strncmp(name, DP_STORE_LINK_PREFIX, sizeof DP_STORE_LINK_PREFIX - 1) == 0;
}

/* Of a version before: of a run and an epoch, or the begin or the end of one. */
static bool is_snapshot(const char *name)
{
    unsigned run, epoch;
    int read = 0;
    if (sscanf(name, "snapshot-%u-%u%n", &run, &epoch, &read) != 2)
        return false;
    return name[read] == '\0' || strcmp(name + read, "-tmp") == 0 || strcmp(name + read, "-drop") == 0;
}

static enum dp_status path_of(const char *directory, const char *name, char out[DP_ROCKS_PLACE_BYTES],
                              struct dp_error *err)
{
    return snprintf(out, DP_ROCKS_PLACE_BYTES, "%s/%s", directory, name) < (int)DP_ROCKS_PLACE_BYTES
               ? DP_OK
               : dp_fail(err, DP_IO, "store %s: its path is too long", directory);
}

static enum dp_status remove_one(const char *directory, const char *name, struct dp_error *err)
{
    char path[DP_ROCKS_PLACE_BYTES];
    enum dp_status st = path_of(directory, name, path, err);
    return st == DP_OK ? dp_directory_remove(path, true, 0, err) : st;
}

static enum dp_status copy(const struct dp_rocks_db *db, const char *path, struct dp_error *err)
{
    char *text = NULL;
    enum dp_status st = dp_space_check(db->directory, MAKE_BYTES, DP_SPACE_ROWS, err);
    if (st != DP_OK)
        return st;
    rocksdb_checkpoint_t *maker = rocksdb_checkpoint_object_create(db->db, &text);
    if (maker) {
        /* UINT64_MAX: there is nothing to flush. */
        rocksdb_checkpoint_create(maker, path, UINT64_MAX, &text);
        rocksdb_checkpoint_object_destroy(maker);
    }
    st = dp_rocks_error_take(&text, db->directory, "make a link", err);
    return st == DP_OK ? dp_marks_file_copy(db->marks, path, err) : st;
}

enum dp_status dp_rocks_link_make(const struct dp_rocks_db *db, const char *name, struct dp_error *err)
{
    char path[DP_ROCKS_PLACE_BYTES];
    struct dp_error swept;
    DP_ASSERT(is_link(name) && !strchr(name, '/'));
    enum dp_status st = path_of(db->directory, name, path, err);
    if (st != DP_OK)
        return st;
    if (access(path, F_OK) == 0)
        return dp_fail(err, DP_EXISTS, "store %s has a link %s", db->directory, name);
    st = copy(db, path, err);
    if (st != DP_OK && dp_rocks_link_remove(db->directory, name, &swept) != DP_OK)
        dp_log(DP_LOG_WARN, "%s; the next opening removes it", swept.text);
    return st;
}

enum dp_status dp_rocks_link_remove(const char *directory, const char *name, struct dp_error *err)
{
    char temp[128];
    DP_ASSERT(is_link(name) && !strchr(name, '/'));
    (void)snprintf(temp, sizeof temp, "%.100s.tmp", name); /* RocksDB's own temporary name */
    enum dp_status st = remove_one(directory, temp, err);
    return st == DP_OK ? remove_one(directory, name, err) : st;
}

static bool is_directory(const char *directory, const char *name)
{
    char path[DP_ROCKS_PLACE_BYTES];
    struct dp_error unheard = {0};
    struct stat info;
    return path_of(directory, name, path, &unheard) == DP_OK && lstat(path, &info) == 0 &&
           S_ISDIR(info.st_mode);
}

static bool find_link(const char *directory, char *out, size_t size)
{
    DIR *list = opendir(directory);
    bool found = false;
    for (struct dirent *entry; list && !found && (entry = readdir(list));)
        if ((is_link(entry->d_name) || is_snapshot(entry->d_name)) && strlen(entry->d_name) < size &&
            is_directory(directory, entry->d_name)) {
            (void)snprintf(out, size, "%s", entry->d_name);
            found = true;
        }
    if (list)
        (void)closedir(list);
    return found;
}

enum dp_status dp_rocks_link_sweep(const char *directory, struct dp_error *err)
{
    char name[96];
    enum dp_status st = DP_OK;
    while (st == DP_OK && find_link(directory, name, sizeof name)) {
        if (is_snapshot(name))
            dp_log(DP_LOG_INFO,
                   "store %s: removes %s, which a version before kept: the best epoch is a checkpoint now",
                   directory, name);
        st = remove_one(directory, name, err);
    }
    return st;
}

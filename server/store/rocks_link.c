#include "server/store/rocks_link.h"

#include "common/base/log.h"
#include "server/store/rocks_snapshot.h"
#include "server/store/snapshot_name.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_link(const char *name)
{
    return strncmp(name, DP_STORE_LINK_PREFIX, sizeof DP_STORE_LINK_PREFIX - 1) == 0;
}

enum dp_status dp_rocks_link_make(const struct dp_rocks_db *db, const char *name, struct dp_error *err)
{
    char path[DP_ROCKS_PLACE_BYTES];
    struct dp_error swept;
    DP_ASSERT(is_link(name) && !strchr(name, '/'));
    if (snprintf(path, sizeof path, "%s/%s", db->directory, name) >= (int)sizeof path)
        return dp_fail(err, DP_IO, "store %s: its path is too long", db->directory);
    if (access(path, F_OK) == 0)
        return dp_fail(err, DP_EXISTS, "store %s has a link %s", db->directory, name);
    enum dp_status st = dp_rocks_snapshot_copy(db, path, err);
    if (st == DP_OK)
        st = dp_rocks_snapshot_link(db->directory, path, err);
    if (st != DP_OK && dp_rocks_link_remove(db->directory, name, &swept) != DP_OK)
        dp_log(DP_LOG_WARN, "%s; the next opening removes it", swept.text);
    return st;
}

/* Its snapshots first. */
static enum dp_status remove_one(const char *directory, const char *name, struct dp_error *err)
{
    struct dp_rocks_snapshots there;
    char path[DP_ROCKS_PLACE_BYTES], inner[DP_SNAPSHOT_NAME_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return dp_fail(err, DP_IO, "store %s: its path is too long", directory);
    enum dp_status st = dp_rocks_snapshot_list(path, &there, err);
    for (uint32_t i = 0; st == DP_OK && i < there.count; i++) {
        dp_store_snapshot_name(there.snapshot[i], inner);
        st = dp_rocks_snapshot_remove(path, inner, err);
    }
    return st == DP_OK ? dp_rocks_snapshot_remove(directory, name, err) : st;
}

enum dp_status dp_rocks_link_remove(const char *directory, const char *name, struct dp_error *err)
{
    char temp[128];
    DP_ASSERT(is_link(name) && !strchr(name, '/'));
    (void)snprintf(temp, sizeof temp, "%.100s.tmp", name); /* RocksDB's own temporary name */
    enum dp_status st = dp_rocks_snapshot_remove(directory, temp, err);
    return st == DP_OK ? remove_one(directory, name, err) : st;
}

/* Names are looked for anew after each one that was removed. */
static bool find_link(const char *directory, char *out, size_t size)
{
    DIR *list = opendir(directory);
    bool found = false;
    for (struct dirent *entry; list && !found && (entry = readdir(list));)
        if (is_link(entry->d_name) && strlen(entry->d_name) < size) {
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
    while (st == DP_OK && find_link(directory, name, sizeof name))
        st = remove_one(directory, name, err);
    return st;
}

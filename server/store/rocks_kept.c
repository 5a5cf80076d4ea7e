#include "server/store/rocks_kept.h"

#include "common/base/log.h"
#include "server/store/rocks_manifest.h"
#include "server/store/store_directory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 1400u

static bool path_of(const char *directory, const char *name, char path[PATH_ROOM])
{
    return snprintf(path, PATH_ROOM, "%s/%s", directory, name) < (int)PATH_ROOM;
}

/* RocksDB looks for both names. A file that cannot be checked counts as present. */
static bool is_missing(const char *directory, uint64_t number)
{
    static const char *const endings[] = {"sst", "ldb"};
    for (int i = 0; i < 2; i++) {
        char path[PATH_ROOM], name[32];
        (void)snprintf(name, sizeof name, "%06" PRIu64 ".%s", number, endings[i]);
        if (!path_of(directory, name, path) || access(path, F_OK) == 0 || errno != ENOENT)
            return false;
    }
    return true;
}

enum dp_status dp_rocks_kept_find(const char *directory, struct dp_rocks_kept *out, struct dp_error *err)
{
    char path[PATH_ROOM];
    struct stat kept;
    struct dp_rocks_table *tables, missing = {0};
    size_t count, gone = 0;
    *out = (struct dp_rocks_kept){0};
    if (!path_of(directory, DP_ROCKS_KEPT, path) || lstat(path, &kept) != 0 || !S_ISREG(kept.st_mode))
        return DP_OK;
    enum dp_status st = dp_rocks_manifest_tables(directory, &tables, &count, err);
    if (st != DP_OK)
        return st == DP_NOMEM ? st : DP_OK;
    for (size_t i = 0; i < count; i++)
        if (is_missing(directory, tables[i].number)) {
            missing = tables[i];
            gone++;
        }
    free(tables);
    if (gone == 1 && missing.bytes == (uint64_t)kept.st_size)
        (void)snprintf(out->name, sizeof out->name, "%06" PRIu64 ".sst", missing.number);
    return DP_OK;
}

static enum dp_status move(const char *directory, const char *from, const char *to, struct dp_error *err)
{
    char from_path[PATH_ROOM], to_path[PATH_ROOM];
    if (!path_of(directory, from, from_path) || !path_of(directory, to, to_path))
        return dp_fail(err, DP_IO, "store %s: its path is too long", directory);
    if (rename(from_path, to_path) != 0)
        return dp_fail(err, DP_IO, "store: cannot rename %s to %s: %s", from_path, to, strerror(errno));
    return dp_store_directory_sync(directory, err);
}

enum dp_status dp_rocks_kept_put_back(const char *directory, struct dp_rocks_kept *out, struct dp_error *err)
{
    struct dp_rocks_kept kept;
    *out = (struct dp_rocks_kept){0};
    enum dp_status st = dp_rocks_kept_find(directory, &kept, err);
    if (st != DP_OK || kept.name[0] == '\0')
        return st;
    int lock = dp_store_directory_lock(directory);
    if (lock < 0)
        return DP_OK;
    st = move(directory, DP_ROCKS_KEPT, kept.name, err);
    if (st == DP_OK) {
        *out = kept;
        dp_log(
            DP_LOG_WARN,
            "store %s: the manifest names %s, which is missing because a sync of the manifest failed during "
            "write-back. Restored the file from " DP_ROCKS_KEPT,
            directory, kept.name);
    }
    (void)close(lock);
    return st;
}

void dp_rocks_kept_take_away(const char *directory, const struct dp_rocks_kept *kept)
{
    struct dp_error err;
    if (kept->name[0] != '\0' && move(directory, kept->name, DP_ROCKS_KEPT, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "%s", err.text);
}

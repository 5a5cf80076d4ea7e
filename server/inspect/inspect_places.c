#include "server/inspect/inspect_places.h"

#include "common/base/memory.h"
#include "common/config/cluster.h"
#include "server/layout.h"
#include "server/store/store_view.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum dp_status put(struct dp_places *places, const char *path, struct dp_error *err)
{
    if (!dp_array_reserve(&places->path, places->count, &places->room, sizeof places->path[0]))
        return dp_fail(err, DP_NOMEM, "inspect %s", path);
    places->path[places->count] = strdup(path);
    return places->path[places->count++] ? DP_OK : dp_fail(err, DP_NOMEM, "inspect %s", path);
}

static bool is_numbered(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(name, prefix, len) == 0 && name[len] &&
           strspn(name + len, "0123456789") == strlen(name + len);
}

static int visible(const struct dirent *entry)
{
    return is_numbered(entry->d_name, "shard-") || is_numbered(entry->d_name, "server-") ||
           strcmp(entry->d_name, "store") == 0;
}

static int is_server(const struct dirent *entry)
{
    return is_numbered(entry->d_name, "server-");
}

/* It is a run's: it has some server's directory in store/. */
static bool has_servers(const char *directory)
{
    char path[DP_PATH_MAX + 256];
    struct dirent **names = NULL;
    (void)snprintf(path, sizeof path, "%s/store", directory);
    int count = scandir(path, &names, is_server, alphasort);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return count > 0;
}

static enum dp_status incomplete(const char *directory, const char *missing, struct dp_error *err)
{
    return dp_fail(err, DP_NOT_FOUND,
                   "'%.300s' is not complete: '%.300s' is missing; bring it back, or name the directories of "
                   "the shards that are there",
                   directory, missing);
}

/* NULL: all shards of the server are there; else the first that is not. */
static const char *missing_shard(const char *server, const struct dp_layout *layout, char *path, size_t size)
{
    for (uint32_t i = layout->first; i < layout->first + layout->count; i++) {
        int len = snprintf(path, size, "%s/shard-%04" PRIu32, server, i);
        if (len < 0 || (size_t)len >= size || !dp_store_view_is_store(path))
            return path;
    }
    return NULL;
}

/* A server without a layout: not all of its shards have ever served, it is an older build's, or a damaged one was removed. It is
 * unknown then how many shards there are, but the next one is there. */
static enum dp_status check_unnamed(const char *directory, const char *server, uint32_t next,
                                    struct dp_error *err)
{
    char shard[DP_PATH_MAX + 320];
    if (access(server, F_OK) != 0)
        return incomplete(directory, server, err);
    (void)snprintf(shard, sizeof shard, "%s/shard-%04" PRIu32, server, next);
    return next == 0 || dp_store_view_is_store(shard) ? DP_OK : incomplete(directory, shard, err);
}

/* A run's directory has the servers that together have all shards. inspect_layout.h reports a wrong layout later. */
static enum dp_status check_run(const char *directory, struct dp_error *err)
{
    char path[DP_PATH_MAX + 256], shard[DP_PATH_MAX + 320];
    struct dp_layout layout = {.total = 1};
    struct dp_error unknown = {0};
    uint32_t shards = 0;
    for (uint32_t i = 0; shards < layout.total; i++) {
        (void)snprintf(path, sizeof path, "%s/store/server-%" PRIu32, directory, i);
        enum dp_status st = dp_layout_read(path, &layout, &unknown);
        if (st == DP_NOT_FOUND)
            return check_unnamed(directory, path, shards, err);
        if (st != DP_OK)
            return DP_OK;
        const char *missing = missing_shard(path, &layout, shard, sizeof shard);
        if (missing)
            return incomplete(directory, missing, err);
        shards += layout.count;
    }
    return DP_OK;
}

/* depth: how many levels of directories are below. */
static enum dp_status look(struct dp_places *places, const char *directory, int depth, struct dp_error *err)
{
    if (dp_store_view_is_store(directory))
        return put(places, directory, err);
    struct dirent **names = NULL;
    int count = depth > 0 ? scandir(directory, &names, visible, alphasort) : 0;
    if (count < 0)
        return errno == ENOTDIR && depth < 3
                   ? DP_OK
                   : dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO,
                             "'%.300s': %s; give the directory of a store", directory, strerror(errno));
    enum dp_status st = DP_OK;
    for (int i = 0; i < count; i++) {
        char path[DP_PATH_MAX + 256];
        int len = snprintf(path, sizeof path, "%s/%s", directory, names[i]->d_name);
        if (st == DP_OK && (len < 0 || (size_t)len >= sizeof path))
            st = dp_fail(err, DP_ARGUMENT, "%s: the path is too long", directory);
        if (st == DP_OK)
            st = look(places, path, depth - 1, err);
        free(names[i]);
    }
    free(names);
    return st;
}

enum dp_status dp_places_add(struct dp_places *places, const char *directory, struct dp_error *err)
{
    size_t before = places->count;
    enum dp_status st = look(places, directory, 3, err);
    if (st == DP_OK && has_servers(directory))
        st = check_run(directory, err);
    if (st == DP_OK && places->count == before)
        st = dp_fail(err, DP_NOT_FOUND,
                     "'%.100s' is no store: it was looked there, and in shard-N, server-N/shard-N and "
                     "store/server-N/shard-N, for a "
                     "shard's CURRENT, IDENTITY or journal; give the directory of a shard, of a server (its "
                     "store), of a 'downpour run', or of checkpoints",
                     directory);
    return st;
}

void dp_places_clear(struct dp_places *places)
{
    for (size_t i = 0; i < places->count; i++)
        free(places->path[i]);
    free(places->path);
    *places = (struct dp_places){0};
}

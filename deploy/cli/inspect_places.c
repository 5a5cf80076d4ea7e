#include "deploy/cli/inspect_places.h"

#include "common/config/cluster.h"
#include "server/store/inspect.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum dp_status put(struct dp_places *places, const char *path, struct dp_error *err)
{
    if (places->count == places->room) {
        size_t room = places->room ? 2 * places->room : 16;
        char **more = realloc(places->path, room * sizeof more[0]);
        if (!more)
            return dp_fail(err, DP_NOMEM, "inspect %s", path);
        places->path = more;
        places->room = room;
    }
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

/* depth: how many levels of directories are below. */
static enum dp_status look(struct dp_places *places, const char *directory, int depth, struct dp_error *err)
{
    if (dp_inspect_is_store(directory))
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
    if (st == DP_OK && places->count == before)
        st = dp_fail(err, DP_NOT_FOUND,
                     "'%.100s' is no store: it was looked there, and in shard-N, server-N/shard-N and "
                     "store/server-N/shard-N, for a "
                     "shard's CURRENT, IDENTITY or journal; give the directory of a shard, of a server (its "
                     "store), or of a "
                     "'downpour run'",
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

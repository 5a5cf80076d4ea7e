#define _GNU_SOURCE /* renameat2 */
#include "server/restore/restore_place.h"

#include "common/base/log.h"
#include "common/env/directory.h"
#include "server/checkpoint/paths.h"
#include "server/control/register_file.h"
#include "server/restore/restore_files.h"
#include "server/store/store_view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILDING ".restoring"
#define BEFORE   ".before"

/* ---- names */

static enum dp_status name_places(struct dp_restore_place *place, const char *store, struct dp_error *err)
{
    char real[4096], copy[DP_RESTORE_PLACE_BYTES];
    const char *from = realpath(store, real) ? real : store;
    size_t len = strlen(from);
    while (len > 1 && from[len - 1] == '/')
        len--;
    if (len == 0 || len + sizeof BUILDING > DP_RESTORE_PLACE_BYTES - 100)
        return dp_fail(err, DP_ARGUMENT, "the store's path '%.200s' is empty or too long", store);
    (void)snprintf(place->store, sizeof place->store, "%.*s", (int)len, from);
    (void)snprintf(place->building, sizeof place->building, "%.*s" BUILDING, (int)len, from);
    (void)snprintf(place->before, sizeof place->before, "%.*s" BEFORE, (int)len, from);
    (void)snprintf(copy, sizeof copy, "%s", place->store);
    (void)snprintf(place->parent, sizeof place->parent, "%s", dirname(copy));
    return DP_OK;
}

static bool is_numbered(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(name, prefix, len) == 0 && strlen(name + len) == 4 &&
           strspn(name + len, "0123456789") == 4;
}

/* Of a server's directory, or of one that is being built. */
static bool is_ours(const char *name)
{
    static const char *const names[] = {"layout", "layout.tmp", DP_REGISTER_FILE, DP_REGISTER_FILE ".new"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return is_numbered(name, "shard-") || is_numbered(name, "source-") || is_numbered(name, "keeping-");
}

/* ---- what is there */

static enum dp_status look_at_name(void *context, const char *name, struct dp_error *err)
{
    struct dp_restore_place *place = context;
    struct dp_checkpoint_path path;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", place->store, name);
    if (st != DP_OK)
        return st;
    place->empty = false;
    if (!is_ours(name))
        return dp_fail(err, DP_EXISTS,
                       "%s is not part of a store, and a restore replaces its whole directory: move it away, "
                       "or give servers.store another directory",
                       path.text);
    place->replaces =
        place->replaces || strcmp(name, DP_REGISTER_FILE) == 0 || dp_store_view_is_store(path.text);
    pid_t user = dp_store_view_in_use(path.text);
    if (user != 0)
        return dp_fail(err, DP_IN_USE, "%s is in use by process %ld: stop that server first", path.text,
                       (long)user);
    return DP_OK;
}

/* Whether the store may be replaced, if there is one. */
static enum dp_status look_at_store(struct dp_restore_place *place, bool overwrite, struct dp_error *err)
{
    struct stat store, parent;
    place->replaces = false;
    place->empty = true;
    if (stat(place->store, &store) != 0)
        return errno == ENOENT ? DP_OK : dp_checkpoint_failed(err, "cannot look at", place->store);
    if (stat(place->parent, &parent) == 0 && parent.st_dev != store.st_dev)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s is a mount point, which cannot be replaced: give servers.store a directory below it",
            place->store);
    enum dp_status st = dp_checkpoint_visit(place->store, look_at_name, place, err);
    if (st == DP_OK && place->replaces && !overwrite)
        st = dp_fail(err, DP_EXISTS,
                     "%s holds a store: move it away, or let the restore replace it with --overwrite: what "
                     "it holds is lost then",
                     place->store);
    return st;
}

/* A restore was killed between two renames: the old store comes back. */
static enum dp_status bring_back(const struct dp_restore_place *place, struct dp_error *err)
{
    if (access(place->before, F_OK) != 0)
        return DP_OK;
    if (access(place->store, F_OK) == 0)
        return dp_fail(err, DP_EXISTS,
                       "%s is in the way: it is the store that an earlier restore replaced; remove it",
                       place->before);
    if (rename(place->before, place->store) != 0)
        return dp_checkpoint_failed(err, "cannot rename", place->before);
    dp_log(DP_LOG_INFO, "a restore was interrupted: %s is again what it was before", place->store);
    return dp_checkpoint_sync_directory(place->parent, err);
}

static enum dp_status see_only_ours(void *context, const char *name, struct dp_error *err)
{
    const struct dp_restore_place *place = context;
    return is_ours(name)
               ? DP_OK
               : dp_fail(err, DP_EXISTS, "%s/%s is not of a restore, which would build there: move it away",
                         place->building, name);
}

static enum dp_status make_building(struct dp_restore_place *place, struct dp_error *err)
{
    if (mkdir(place->building, 0777) != 0 && errno != EEXIST)
        return dp_checkpoint_failed(err, "cannot make", place->building);
    place->lock = open(place->building, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->lock < 0)
        return dp_checkpoint_failed(err, "cannot open", place->building);
    if (flock(place->lock, LOCK_EX | LOCK_NB) != 0) {
        enum dp_status st = dp_fail(err, DP_IN_USE, "another restore is under way in %s", place->building);
        (void)close(place->lock);
        place->lock = -1; /* so nobody removes it */
        return st;
    }
    enum dp_status st = dp_checkpoint_visit(place->building, see_only_ours, place, err);
    if (st == DP_OK)
        st = dp_restore_remove(place->building, false, err);
    if (st != DP_OK) {
        (void)close(place->lock);
        place->lock = -1;
    }
    return st;
}

enum dp_status dp_restore_place_begin(struct dp_restore_place *place, const char *store, bool overwrite,
                                      struct dp_error *err)
{
    *place = (struct dp_restore_place){.lock = -1};
    enum dp_status st = name_places(place, store, err);
    if (st == DP_OK)
        st = dp_directory_make(place->parent, err);
    if (st == DP_OK)
        st = bring_back(place, err);
    if (st == DP_OK)
        st = look_at_store(place, overwrite, err);
    return st == DP_OK ? make_building(place, err) : st;
}

/* ---- the end */

/* *old: where the store that was replaced lies now; NULL: there was none. */
static enum dp_status take_place(const struct dp_restore_place *place, const char **old, struct dp_error *err)
{
    *old = NULL;
    if (place->empty)
        return rename(place->building, place->store) == 0
                   ? DP_OK
                   : dp_checkpoint_failed(err, "cannot rename", place->building);
    if (renameat2(AT_FDCWD, place->building, AT_FDCWD, place->store, RENAME_EXCHANGE) == 0) {
        *old = place->building;
        return DP_OK;
    }
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return dp_checkpoint_failed(err, "cannot exchange", place->building);
    if (rename(place->store, place->before) != 0)
        return dp_checkpoint_failed(err, "cannot rename", place->store);
    if (rename(place->building, place->store) != 0) {
        enum dp_status st = dp_checkpoint_failed(err, "cannot rename", place->building);
        (void)rename(place->before, place->store);
        return st;
    }
    *old = place->before;
    return DP_OK;
}

enum dp_status dp_restore_place_end(struct dp_restore_place *place, struct dp_error *err)
{
    const char *old = NULL;
    struct dp_error removing;
    bool replaces = place->replaces;
    DP_ASSERT(place->lock >= 0);
    enum dp_status st = dp_checkpoint_sync_directory(place->building, err);
    if (st == DP_OK) /* a server may have been started meanwhile */
        st = look_at_store(place, replaces, err);
    if (st == DP_OK)
        st = take_place(place, &old, err);
    if (st != DP_OK)
        return st;
    /* It cannot be told any more which of the two a loss of power would leave; either is whole. */
    st = dp_checkpoint_sync_directory(place->parent, err);
    (void)close(place->lock);
    place->lock = -1;
    if (st == DP_OK && old && dp_restore_remove(old, true, &removing) != DP_OK)
        dp_log(DP_LOG_WARN, "the store is restored, but the old one is left in %s: %s", old, removing.text);
    return st;
}

void dp_restore_place_give_up(struct dp_restore_place *place)
{
    struct dp_error ignored;
    if (place->lock < 0)
        return;
    if (dp_restore_remove(place->building, true, &ignored) != DP_OK)
        dp_log(DP_LOG_WARN, "%s; the next restore removes it", ignored.text);
    (void)close(place->lock);
    place->lock = -1;
}

enum dp_status dp_restore_place_check(const char *store, struct dp_error *err)
{
    struct dp_restore_place place;
    enum dp_status st = name_places(&place, store, err);
    if (st == DP_OK && access(place.store, F_OK) != 0 && access(place.before, F_OK) == 0)
        st = dp_fail(err, DP_UNCLEAN,
                     "there is no %s, because a restore was interrupted: run it again, or rename %s to it to "
                     "go on with the store of before",
                     place.store, place.before);
    return st;
}

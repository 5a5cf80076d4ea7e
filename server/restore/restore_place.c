#define _GNU_SOURCE /* realpath, statx */
#include "server/restore/restore_place.h"

#include "common/base/log.h"
#include "common/env/atomic_file.h"
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

#define BUILDING   ".restoring"
#define BEFORE     ".before"
#define MARK       "restored" /* 16 hex digits of the history, and a newline */
#define MARK_BYTES 17u
#define PATH_BYTES 4096u
#define LINKS_MAX  8u

/* ---- names */

static void trim(char *path)
{
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
}

/* The path that the link at `path` names takes its place. False: there is no link. */
static bool follow(char path[PATH_BYTES])
{
    char to[PATH_BYTES], from[PATH_BYTES];
    ssize_t len = readlink(path, to, sizeof to - 1);
    if (len <= 0)
        return false;
    to[len] = '\0';
    (void)snprintf(from, sizeof from, "%s", path);
    int all = to[0] == '/' ? snprintf(path, PATH_BYTES, "%s", to)
                           : snprintf(path, PATH_BYTES, "%s/%s", dirname(from), to);
    trim(path);
    return all > 0 && (uint32_t)all < PATH_BYTES;
}

/* Where the store lies, or would lie. Between the two renames of an exchange a link to it leads nowhere: it is followed, too. */
static void find_store(const char *store, char path[PATH_BYTES])
{
    char real[PATH_BYTES];
    (void)snprintf(path, PATH_BYTES, "%s", store);
    trim(path);
    bool there = realpath(path, real) != NULL;
    for (uint32_t links = 0; !there && links < LINKS_MAX && follow(path); links++)
        there = realpath(path, real) != NULL;
    if (there)
        (void)snprintf(path, PATH_BYTES, "%s", real);
}

enum dp_status dp_restore_place_name(struct dp_restore_place *place, const char *store, struct dp_error *err)
{
    *place = (struct dp_restore_place){.lock = -1};
    char from[PATH_BYTES], copy[DP_RESTORE_PLACE_BYTES];
    find_store(store, from);
    size_t len = strlen(from);
    if (len == 0 || len + sizeof BUILDING > DP_RESTORE_PLACE_BYTES - 100)
        return dp_fail(err, DP_ARGUMENT, "the store's path '%.200s' is empty or too long", store);
    (void)snprintf(place->store, sizeof place->store, "%s", from);
    (void)snprintf(place->building, sizeof place->building, "%s" BUILDING, from);
    (void)snprintf(place->before, sizeof place->before, "%s" BEFORE, from);
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

/* A temp file of that file (common/env/atomic_file.h). */
static bool is_temp(const char *name, const char *of)
{
    size_t len = strlen(of);
    return strncmp(name, of, len) == 0 && strncmp(name + len, ".new-", 5) == 0;
}

/* Of a server's directory, or of one that is being built. */
static bool is_ours(const char *name)
{
    static const char *const names[] = {"layout",
                                        "layout.new",
                                        "layout.tmp", /* of builds before 0.2 */
                                        DP_REGISTER_FILE,
                                        DP_REGISTER_FILE ".new",
                                        MARK};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strcmp(name, DP_CHECKPOINT_ORDER) == 0 || is_temp(name, MARK) ||
           is_temp(name, DP_CHECKPOINT_ORDER) || is_numbered(name, "shard-") ||
           is_numbered(name, "source-") || is_numbered(name, "keeping-");
}

/* ---- what is there */

static void look_at_cluster(struct dp_restore_place *place, const char *store)
{
    struct dp_store_view *view = NULL;
    struct dp_error unread; /* a store that is damaged may be replaced */
    if (place->cluster == 0 && dp_store_view_is_store(store) &&
        dp_store_view_open(store, NULL, &view, &unread) == DP_OK)
        place->cluster = dp_store_view_own(view)->cluster;
    dp_store_view_close(&view);
}

static enum dp_status look_at_name(void *context, const char *name, struct dp_error *err)
{
    struct dp_restore_place *place = context;
    struct dp_checkpoint_path path;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", place->store, name);
    if (st != DP_OK)
        return st;
    place->empty = false;
    if (!is_ours(name))
        return dp_fail(
            err, DP_EXISTS,
            "%s is not part of a store, and a restore replaces all of its directory: move it away, "
            "or give servers.store another directory",
            path.text);
    place->replaces =
        place->replaces || strcmp(name, DP_REGISTER_FILE) == 0 || dp_store_view_is_store(path.text);
    pid_t user = dp_store_view_in_use(path.text);
    if (user != 0)
        return dp_fail(err, DP_IN_USE, "%s is in use by process %ld: stop that server first", path.text,
                       (long)user);
    look_at_cluster(place, path.text);
    return DP_OK;
}

/* A directory that is mounted from its own disk has its parent's device: the kernel says so since Linux 5.8. */
static bool is_mount_point(const struct dp_restore_place *place, const struct stat *store)
{
    struct stat parent;
    struct statx of;
    if (stat(place->parent, &parent) == 0 && parent.st_dev != store->st_dev)
        return true;
    return statx(AT_FDCWD, place->store, 0, 0, &of) == 0 &&
           (of.stx_attributes_mask & of.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

enum dp_status dp_restore_place_look(struct dp_restore_place *place, bool overwrite, struct dp_error *err)
{
    struct stat store;
    place->replaces = false;
    place->cluster = 0;
    place->empty = true;
    if (stat(place->store, &store) != 0)
        return errno == ENOENT ? DP_OK : dp_checkpoint_failed(err, "cannot look at", place->store);
    if (is_mount_point(place, &store))
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

static enum dp_status see_only_ours(void *context, const char *name, struct dp_error *err)
{
    const char *directory = context;
    return is_ours(name)
               ? DP_OK
               : dp_fail(err, DP_EXISTS,
                         "%s/%s is not of a restore, which would remove that directory: move it away",
                         directory, name);
}

enum dp_status dp_restore_place_only_ours(const char *directory, struct dp_error *err)
{
    return dp_checkpoint_visit(directory, see_only_ours, (void *)(uintptr_t)directory, err);
}

/* What was built does not count any more, durably. */
static enum dp_status unmark(const struct dp_restore_place *place, struct dp_error *err)
{
    struct dp_checkpoint_path path;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/" MARK, place->building);
    if (st == DP_OK && unlink(path.text) != 0 && errno != ENOENT)
        st = dp_checkpoint_failed(err, "cannot remove", path.text);
    return st == DP_OK ? dp_checkpoint_sync_directory(place->building, err) : st;
}

enum dp_status dp_restore_place_sweep(const struct dp_restore_place *place, bool itself, struct dp_error *err)
{
    DP_ASSERT(place->lock >= 0);
    enum dp_status st = dp_restore_place_only_ours(place->building, err);
    if (st == DP_OK) /* first: a part of a store must not count as built */
        st = unmark(place, err);
    return st == DP_OK ? dp_directory_remove(place->building, itself, 0, err) : st;
}

static enum dp_status make_building(struct dp_restore_place *place, struct dp_error *err)
{
    if (mkdir(place->building, 0777) != 0 && errno != EEXIST)
        return dp_checkpoint_failed(err, "cannot make", place->building);
    enum dp_status st = dp_restore_place_lock(place, err);
    if (st != DP_OK)
        return st;
    st = dp_restore_place_sweep(place, false, err);
    if (st != DP_OK)
        dp_restore_place_unlock(place);
    return st;
}

enum dp_status dp_restore_place_begin(struct dp_restore_place *place, const char *store, bool overwrite,
                                      struct dp_error *err)
{
    enum dp_status st = dp_restore_place_name(place, store, err);
    if (st == DP_OK)
        st = dp_directory_make(place->parent, err);
    if (st == DP_OK)
        st = dp_restore_place_look(place, overwrite, err);
    return st == DP_OK ? make_building(place, err) : st;
}

/* ---- the end */

static enum dp_status write_mark(const char *path, uint64_t history, struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    enum dp_status st = dp_atomic_file_open(path, &file, err);
    if (st == DP_OK) {
        (void)fprintf(file.stream, "%016" PRIx64 "\n", history);
        st = dp_atomic_file_commit(&file, err);
    }
    dp_atomic_file_drop(&file);
    return st;
}

enum dp_status dp_restore_place_built(struct dp_restore_place *place, uint64_t history, struct dp_error *err)
{
    struct dp_checkpoint_path path;
    DP_ASSERT(place->lock >= 0 && history != 0);
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/" MARK, place->building);
    if (st == DP_OK)
        st = dp_checkpoint_sync_directory(place->building, err);
    /* Last, on purpose: only a complete store has it. */
    if (st == DP_OK)
        st = write_mark(path.text, history, err);
    if (st == DP_OK)
        st = dp_checkpoint_sync_directory(place->building, err);
    if (st == DP_OK) /* its own name, which was made in begin */
        st = dp_checkpoint_sync_directory(place->parent, err);
    if (st == DP_OK)
        dp_restore_place_unlock(place);
    return st;
}

uint64_t dp_restore_place_history(const char *directory)
{
    struct dp_checkpoint_path path;
    char text[MARK_BYTES + 2] = "";
    if (dp_checkpoint_path(&path, NULL, "%s/" MARK, directory) != DP_OK)
        return 0;
    FILE *file = fopen(path.text, "rbe");
    size_t count = file ? fread(text, 1, MARK_BYTES + 1, file) : 0;
    if (file)
        (void)fclose(file);
    bool is_mark = count == MARK_BYTES && strspn(text, "0123456789abcdef") == MARK_BYTES - 1;
    return is_mark ? strtoull(text, NULL, 16) : 0;
}

void dp_restore_place_give_up(struct dp_restore_place *place)
{
    struct dp_error ignored;
    if (place->lock < 0)
        return;
    if (dp_directory_remove(place->building, true, 0, &ignored) != DP_OK)
        dp_log(DP_LOG_WARN, "%s; the next restore removes it", ignored.text);
    dp_restore_place_unlock(place);
}

/* ---- the lock */

enum dp_status dp_restore_place_lock(struct dp_restore_place *place, struct dp_error *err)
{
    place->lock = open(place->building, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->lock < 0)
        return dp_checkpoint_failed(err, "cannot open", place->building);
    if (flock(place->lock, LOCK_EX | LOCK_NB) == 0)
        return DP_OK;
    dp_restore_place_unlock(place);
    return dp_fail(err, DP_IN_USE, "another restore is under way in %s", place->building);
}

void dp_restore_place_unlock(struct dp_restore_place *place)
{
    if (place->lock >= 0)
        (void)close(place->lock);
    place->lock = -1;
}

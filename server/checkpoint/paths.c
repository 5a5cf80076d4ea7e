#define _GNU_SOURCE /* realpath */
#include "server/checkpoint/paths.h"

#include "common/env/limits.h"
#include "server/checkpoint/manifest_json.h"
#include "server/store/store_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names */

enum dp_status dp_checkpoint_path(struct dp_checkpoint_path *out, struct dp_error *err, const char *format,
                                  ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(out->text, sizeof out->text, format, args);
    va_end(args);
    return len >= 0 && len < (int)sizeof out->text
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT, "the path %.200s... is too long", out->text);
}

enum dp_status dp_checkpoint_path_of(const char *directory, uint32_t number, struct dp_checkpoint_path *out,
                                     struct dp_error *err)
{
    return dp_checkpoint_path(out, err, "%s/checkpoint-%06" PRIu32, directory, number);
}

enum dp_status dp_checkpoint_path_making(const char *directory, uint64_t order,
                                         struct dp_checkpoint_path *out, struct dp_error *err)
{
    return dp_checkpoint_path(out, err, "%s/making-%016" PRIx64, directory, order);
}

enum dp_status dp_checkpoint_path_pool(const char *directory, uint64_t store, const char *name,
                                       const char *checksum, struct dp_checkpoint_path *out,
                                       struct dp_error *err)
{
    if (!name)
        return dp_checkpoint_path(out, err, "%s/" DP_CHECKPOINT_POOL "/%016" PRIx64, directory, store);
    return dp_checkpoint_path(out, err, "%s/" DP_CHECKPOINT_POOL "/%016" PRIx64 "/%s-%s", directory, store,
                              name, checksum);
}

bool dp_checkpoint_name_number(const char *name, uint32_t *number)
{
    char same[32];
    if (strncmp(name, "checkpoint-", 11) != 0 || strspn(name + 11, "0123456789") > 9)
        return false;
    *number = (uint32_t)strtoul(name + 11, NULL, 10);
    (void)snprintf(same, sizeof same, "checkpoint-%06" PRIu32, *number);
    return strcmp(name, same) == 0 && *number > 0;
}

bool dp_checkpoint_name_order(const char *name, uint64_t *order)
{
    if (strncmp(name, "making-", 7) != 0 || !dp_manifest_json_is_hex(name + 7, 16))
        return false;
    *order = strtoull(name + 7, NULL, 16);
    return true;
}

void dp_checkpoint_step_log(uint32_t worker, char name[DP_CHECKPOINT_STEP_LOG_BYTES])
{
    (void)snprintf(name, DP_CHECKPOINT_STEP_LOG_BYTES, "step-log-%04" PRIu32, worker);
}

bool dp_checkpoint_name_step_log(const char *name, uint32_t *worker)
{
    char same[DP_CHECKPOINT_STEP_LOG_BYTES];
    if (strncmp(name, "step-log-", 9) != 0 || strspn(name + 9, "0123456789") > 9)
        return false;
    *worker = (uint32_t)strtoul(name + 9, NULL, 10);
    dp_checkpoint_step_log(*worker, same);
    return strcmp(name, same) == 0;
}

/* ---- directories */

enum dp_status dp_checkpoint_failed(struct dp_error *err, const char *what, const char *path)
{
    return dp_fail(err, dp_limits_full(errno) ? DP_FULL : DP_IO, "%s %s: %s%s%s", what, path, strerror(errno),
                   dp_limits_remedy(errno),
                   errno == ENOSPC || errno == EDQUOT ? ", or keep fewer checkpoints" : "");
}

enum dp_status dp_checkpoint_sync_directory(const char *path, struct dp_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return dp_checkpoint_failed(err, "open directory", path);
    enum dp_status st = fsync(fd) == 0 ? DP_OK : dp_checkpoint_failed(err, "sync directory", path);
    (void)close(fd);
    return st;
}

enum dp_status dp_checkpoint_visit(const char *path,
                                   enum dp_status (*visit)(void *context, const char *name,
                                                           struct dp_error *err),
                                   void *context, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    DIR *dir = opendir(path);
    if (!dir && errno == ENOENT)
        return dp_fail(err, DP_NOT_FOUND, "there is no directory %s", path);
    if (!dir)
        return dp_checkpoint_failed(err, "list directory", path);
    errno = 0;
    for (struct dirent *entry; st == DP_OK && (entry = readdir(dir)); errno = 0)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            st = visit(context, entry->d_name, err);
    if (st == DP_OK && errno != 0)
        st = dp_checkpoint_failed(err, "list directory", path);
    (void)closedir(dir);
    return st;
}

/* ---- where checkpoints may lie */

static enum dp_status see_shard(void *context, const char *name, struct dp_error *err)
{
    const char *server = context;
    struct dp_checkpoint_path path;
    (void)err;
    bool shard = strncmp(name, "shard-", 6) == 0 && strspn(name + 6, "0123456789") == strlen(name) - 6;
    if (!shard || dp_checkpoint_path(&path, NULL, "%s/%s", server, name) != DP_OK)
        return DP_OK;
    return dp_store_view_is_store(path.text) ? DP_EXISTS : DP_OK; /* ends the visit */
}

static bool holds_a_store(const char *path)
{
    char copy[4096];
    (void)snprintf(copy, sizeof copy, "%s", path);
    return dp_store_view_is_store(path) || dp_checkpoint_visit(path, see_shard, copy, NULL) == DP_EXISTS;
}

/* Heap: of the directory, or of the nearest one above it that is there; NULL: why in errno. */
static char *nearest(const char *directory)
{
    char *part = strdup(directory), *real = NULL;
    while (part && !(real = realpath(part, NULL)) && errno == ENOENT) {
        char *slash = strrchr(part, '/');
        if (slash && slash != part) {
            *slash = '\0';
            continue;
        }
        real = realpath(slash ? "/" : ".", NULL);
        break;
    }
    free(part);
    return real;
}

enum dp_status dp_checkpoint_place_check(const char *directory, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    char *path = nearest(directory), *slash = path;
    if (!path)
        return dp_checkpoint_failed(err, "look at", directory);
    while (st == DP_OK && slash) {
        if (holds_a_store(path))
            st = dp_fail(
                err, DP_ARGUMENT,
                "%.180s lies inside %.180s, which holds a store: what removes or restores the store would "
                "take its checkpoints with it; name a directory elsewhere",
                directory, path);
        slash = strrchr(path, '/');
        if (slash == path) /* the root */
            break;
        if (slash)
            *slash = '\0';
    }
    free(path);
    return st;
}

#include "server/store/rocks_tail.h"

#include "common/base/log.h"
#include "common/env/atomic_file.h"
#include "server/store/rocks_manifest.h"
#include "server/store/rocks_record.h"
#include "server/store/store_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR    512u
#define NAME_ROOM 1400u

/* Where the record after the last intact one begins, in the sequence that begins at the file's start. */
static size_t intact(const struct dp_rocks_bytes *log)
{
    size_t end = 0, at = 0;
    bool within = false;
    while (at < log->size) {
        if (DP_ROCKS_BLOCK - at % DP_ROCKS_BLOCK < DP_ROCKS_HEADER) { /* a block's trailer */
            at += DP_ROCKS_BLOCK - at % DP_ROCKS_BLOCK;
            end = within ? end : at;
            continue;
        }
        size_t bytes = dp_rocks_part_at(log, at);
        enum dp_rocks_part part = bytes ? dp_rocks_part_type(log, at) : DP_ROCKS_NONE;
        bool starts = part == DP_ROCKS_FULL || part == DP_ROCKS_FIRST;
        if (!bytes || starts == within)
            break;
        at += bytes;
        within = part == DP_ROCKS_FIRST || part == DP_ROCKS_MIDDLE;
        if (!within)
            end = at;
    }
    return end;
}

static bool has_zero_sector(const struct dp_rocks_bytes *log, size_t from)
{
    for (size_t at = from; at < log->size;) {
        size_t next = (at / SECTOR + 1) * SECTOR, i = at;
        next = next < log->size ? next : log->size;
        while (i < next && log->bytes[i] == 0)
            i++;
        if (i == next)
            return true;
        at = next;
    }
    return false;
}

/* The record at `from` is incomplete. (Its first part may be intact if the rest is in the next block.) */
static bool is_torn(const struct dp_rocks_bytes *log, size_t from)
{
    for (size_t at = from + 1; at < log->size; at++)
        if ((size_t)(DP_ROCKS_BLOCK - at % DP_ROCKS_BLOCK) >= DP_ROCKS_HEADER &&
            log->size - at >= DP_ROCKS_HEADER &&
            (dp_rocks_part_type(log, at) == DP_ROCKS_FULL || dp_rocks_part_type(log, at) == DP_ROCKS_FIRST) &&
            dp_rocks_part_at(log, at) > 0)
            return false; /* a later record is intact, so everything before it was synced */
    return has_zero_sector(log, from);
}

/* Keeps the bytes to be cut off in a file of their own, durably: if they were bit rot instead of a torn
 * write, they are not lost. */
static enum dp_status keep_tail(const char *kept, const struct dp_rocks_bytes *log, size_t from,
                                struct dp_error *err)
{
    struct dp_atomic_file file;
    enum dp_status st = dp_atomic_file_open(kept, &file, err);
    if (st == DP_OK) {
        (void)fwrite(log->bytes + from, 1, log->size - from, file.stream); /* commit reports a failure */
        st = dp_atomic_file_commit(&file, err);
    }
    return st == DP_OK ? st : dp_wrap(err, st, "store: nothing is lost, but a torn log cannot be repaired");
}

static enum dp_status cut(const char *path, const char *kept, const struct dp_rocks_bytes *log, size_t end,
                          struct dp_error *err)
{
    enum dp_status st = keep_tail(kept, log, end, err);
    if (st != DP_OK)
        return st;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)end) != 0 || fsync(fd) != 0)
        st = dp_fail(err, DP_IO, "store: cannot cut %s to %zu bytes: %s", path, end, strerror(errno));
    else
        dp_log(
            DP_LOG_WARN,
            "%s: a loss of power tore its last write, which was never synced: cut off %zu bytes from offset "
            "%zu and kept them in '%s'",
            path, log->size - end, end, kept);
    if (fd >= 0)
        (void)close(fd);
    return st;
}

static enum dp_status mend_file(const char *path, const char *directory, const char *name, bool *mended,
                                struct dp_error *err)
{
    struct dp_rocks_bytes log;
    char kept[NAME_ROOM];
    (void)snprintf(kept, sizeof kept, "%s/%s", directory, name);
    enum dp_status st = dp_rocks_bytes_read(path, &log, err);
    size_t end = intact(&log);
    if (st == DP_OK && end < log.size && is_torn(&log, end)) {
        st = cut(path, kept, &log, end, err);
        *mended = *mended || st == DP_OK;
    }
    dp_rocks_bytes_clear(&log);
    return st;
}

/* The path of the newest log of marks, NUMBER.log, that is not empty; false: there is none. An open creates
 * the next log before the manifest drops the last one, and writes nothing into it until then. */
static bool last_written_log(const char *directory, char path[NAME_ROOM])
{
    uint64_t newest = 0;
    bool found = false;
    DIR *list = opendir(directory);
    if (!list)
        return false;
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        char *end;
        struct stat info;
        uint64_t number = strtoull(entry->d_name, &end, 10);
        if (end == entry->d_name || strcmp(end, ".log") != 0 || (found && number < newest) ||
            fstatat(dirfd(list), entry->d_name, &info, 0) != 0 || info.st_size == 0)
            continue;
        newest = number;
        found = snprintf(path, NAME_ROOM, "%s/%s", directory, entry->d_name) < (int)NAME_ROOM;
    }
    (void)closedir(list);
    return found;
}

enum dp_status dp_rocks_tail_mend(const char *directory, bool *mended, struct dp_error *err)
{
    char path[NAME_ROOM];
    enum dp_status st = DP_OK;
    *mended = false;
    int lock = dp_store_directory_lock(directory);
    if (lock < 0)
        return DP_OK;
    if (last_written_log(directory, path))
        st = mend_file(path, directory, "marks.torn", mended, err);
    if (st == DP_OK && dp_rocks_manifest_path(directory, path, sizeof path))
        st = mend_file(path, directory, "manifest.torn", mended, err);
    (void)close(lock);
    return st;
}

#include "server/store/rocks_tail.h"

#include "common/base/log.h"
#include "server/store/directory.h"
#include "server/store/rocks_manifest.h"
#include "server/store/rocks_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR    512u
#define NAME_ROOM 1400u
#define MANIFEST  "MANIFEST-"
#define TORN      ".torn"
#define TORN_MOST 2u /* an opening may cut two: the log's and the manifest's */

struct file {
    int fd;
    struct dp_rocks_bytes log;
};

/* Where the last whole record ends of those that follow each other from the file's start. */
static size_t intact(const struct dp_rocks_bytes *log)
{
    size_t end = 0, at = 0;
    bool within = false;
    while (at < log->size) {
        if (DP_ROCKS_BLOCK - at % DP_ROCKS_BLOCK < DP_ROCKS_HEADER) { /* a block's trailer */
            at += DP_ROCKS_BLOCK - at % DP_ROCKS_BLOCK;
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

/* The record at `from` is not whole (its first part may be: it is in one block, the rest in the next). */
static bool is_torn(const struct dp_rocks_bytes *log, size_t from)
{
    for (size_t at = from + 1; at < log->size; at++)
        if ((size_t)(DP_ROCKS_BLOCK - at % DP_ROCKS_BLOCK) >= DP_ROCKS_HEADER &&
            log->size - at >= DP_ROCKS_HEADER &&
            (dp_rocks_part_type(log, at) == DP_ROCKS_FULL || dp_rocks_part_type(log, at) == DP_ROCKS_FIRST) &&
            dp_rocks_part_at(log, at) > 0)
            return false; /* a later record: what lies before it was synced once */
    return has_zero_sector(log, from);
}

static enum dp_status read_all(const char *path, struct file *file, struct dp_error *err)
{
    struct stat found;
    file->fd = open(path, O_RDWR | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &found) != 0)
        return dp_fail(err, DP_IO, "store: open %s: %s", path, strerror(errno));
    file->log.size = (size_t)found.st_size;
    file->log.bytes = malloc(file->log.size + 1);
    if (!file->log.bytes)
        return dp_fail(err, DP_NOMEM, "store: read %s (%zu bytes)", path, file->log.size);
    for (size_t done = 0; done < file->log.size;) {
        ssize_t n = pread(file->fd, file->log.bytes + done, file->log.size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return dp_fail(err, DP_IO, "store: read %s: %s", path, n < 0 ? strerror(errno) : "it ends early");
        done += (size_t)n;
    }
    return DP_OK;
}

static enum dp_status cannot_keep(const char *path, int why, struct dp_error *err)
{
    bool full = why == ENOSPC || why == EDQUOT;
    return dp_fail(err, full ? DP_FULL : DP_IO, "store: write %s: %s%s", path, strerror(why),
                   full ? "; nothing is lost: make room on that disk (some KiB)" : "");
}

/* What is to be cut off goes into a file beside, durably: should it have rotted, not torn, it is not gone. */
static enum dp_status keep_tail(const char *path, const struct file *file, size_t from, struct dp_error *err)
{
    char kept[NAME_ROOM + sizeof TORN];
    enum dp_status st = DP_OK;
    (void)snprintf(kept, sizeof kept, "%s%s", path, TORN);
    int fd = open(kept, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    for (size_t at = from; st == DP_OK && fd >= 0 && at < file->log.size;) {
        ssize_t n = write(fd, file->log.bytes + at, file->log.size - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            st = cannot_keep(kept, n < 0 ? errno : ENOSPC, err);
        else
            at += (size_t)n;
    }
    if (st == DP_OK && (fd < 0 || fsync(fd) != 0))
        st = cannot_keep(kept, errno, err);
    if (fd >= 0)
        (void)close(fd);
    if (st != DP_OK)
        (void)unlink(kept); /* half of it is of no use, and takes room */
    return st;
}

static enum dp_status cut(const char *directory, const char *path, const struct file *file, size_t end,
                          struct dp_error *err)
{
    enum dp_status st = keep_tail(path, file, end, err);
    if (st == DP_OK)
        st = dp_directory_sync(directory, err);
    if (st == DP_OK && (ftruncate(file->fd, (off_t)end) != 0 || fsync(file->fd) != 0))
        st = dp_fail(err, DP_IO, "store: cut %s to %zu bytes: %s", path, end, strerror(errno));
    if (st == DP_OK)
        dp_log(DP_LOG_WARN,
               "%s: its last write was torn by a loss of power and never synced: %zu bytes, from offset %zu, "
               "cut "
               "off and kept beside it, in a file whose name ends with %s",
               path, file->log.size - end, end, TORN);
    return st;
}

static enum dp_status mend_file(const char *directory, const char *path, bool *mended, struct dp_error *err)
{
    struct file file = {.fd = -1};
    enum dp_status st = read_all(path, &file, err);
    if (st == DP_OK) {
        size_t end = intact(&file.log);
        if (end < file.log.size && is_torn(&file.log, end)) {
            st = cut(directory, path, &file, end, err);
            *mended = *mended || st == DP_OK;
        }
    }
    free(file.log.bytes);
    if (file.fd >= 0)
        (void)close(file.fd);
    return st;
}

/* The newest log of marks: NUMBER.log. False: there is none. */
static bool newest_log(const char *directory, char path[NAME_ROOM])
{
    uint64_t newest = 0;
    bool found = false;
    DIR *list = opendir(directory);
    if (!list)
        return false;
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        char *end;
        uint64_t number = strtoull(entry->d_name, &end, 10);
        if (end == entry->d_name || strcmp(end, ".log") != 0 || (found && number < newest))
            continue;
        newest = number;
        found = snprintf(path, NAME_ROOM, "%s/%s", directory, entry->d_name) < (int)NAME_ROOM;
    }
    (void)closedir(list);
    return found;
}

/* Of what was cut off once: NUMBER.log.torn, MANIFEST-NUMBER.torn. RocksDB numbers both in one row, so those that were just
 * kept have the highest ones. */
static bool is_torn_name(const char *name, uint64_t *number)
{
    const char *digits =
        strncmp(name, MANIFEST, sizeof MANIFEST - 1) == 0 ? name + sizeof MANIFEST - 1 : name;
    char *end;
    *number = strtoull(digits, &end, 10);
    return end != digits && (strcmp(end, digits == name ? ".log" TORN : TORN) == 0);
}

/* The one with the lowest number, if there are more than the newest few. */
static bool oldest_torn(const char *directory, char path[NAME_ROOM])
{
    char at[NAME_ROOM];
    uint64_t number, oldest = 0;
    uint32_t count = 0;
    DIR *list = opendir(directory);
    if (!list)
        return false;
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (!is_torn_name(entry->d_name, &number) ||
            snprintf(at, sizeof at, "%s/%s", directory, entry->d_name) >= (int)sizeof at)
            continue;
        if (count++ == 0 || number < oldest) {
            oldest = number;
            memcpy(path, at, sizeof at);
        }
    }
    (void)closedir(list);
    return count > TORN_MOST;
}

/* The newest stay; a crash or a failure here leaves some more until the next time. */
static void remove_old_torn(const char *directory)
{
    char path[NAME_ROOM];
    while (oldest_torn(directory, path)) {
        if (unlink(path) != 0) {
            dp_log(DP_LOG_WARN, "%s: it is not needed any more and cannot be removed: %s", path,
                   strerror(errno));
            return;
        }
        dp_log(DP_LOG_INFO, "%s: removed, newer ones are there", path);
    }
}

enum dp_status dp_rocks_tail_mend(const char *directory, bool *mended, struct dp_error *err)
{
    char path[NAME_ROOM];
    enum dp_status st = DP_OK;
    *mended = false;
    int lock = dp_directory_lock(directory);
    if (lock < 0)
        return DP_OK;
    if (newest_log(directory, path))
        st = mend_file(directory, path, mended, err);
    if (st == DP_OK && dp_rocks_manifest_path(directory, path, sizeof path))
        st = mend_file(directory, path, mended, err);
    if (*mended)
        remove_old_torn(directory);
    (void)close(lock);
    return st;
}

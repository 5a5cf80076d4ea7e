#define _GNU_SOURCE /* pwritev, O_DIRECT */
#include "common/env/disk.h"

#include "common/env/limits.h"

#include "common/base/blocking.h"

#include "common/env/directory.h"
#include "common/env/read_only_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

struct real_disk {
    int directory;
    bool read_only;
    char *path;
};

struct dp_file {
    int fd;
    bool direct;
    char name[]; /* with the directory: what a person looks for */
};

static enum dp_status failed(struct dp_error *err, const char *what, const char *path, int why)
{
    if (dp_limits_full(why))
        return dp_fail(err, DP_FULL, "%s %s: %s%s", what, path, strerror(why), dp_limits_remedy(why));
    if (why == EMFILE || why == ENFILE) /* before anything was looked up or made */
        return dp_fail(err, DP_FULL, "%s %s: %s; raise 'ulimit -n'", what, path, strerror(why));
    if (why == ENOENT)
        return dp_fail(err, DP_NOT_FOUND, "%s %s: %s", what, path, strerror(why));
    return dp_fail(err, DP_IO, "%s %s: %s", what, path, strerror(why));
}

static enum dp_status failed_name(struct dp_error *err, const struct real_disk *disk, const char *what,
                                  const char *name, int why)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%.180s/%.70s", disk->path, name);
    return failed(err, what, path, why);
}

static enum dp_status check_writable(const struct real_disk *disk, struct dp_error *err)
{
    return disk->read_only ? dp_fail(err, DP_UNSUPPORTED, "%s is only read", disk->path) : DP_OK;
}

enum dp_status dp_read_only_disk_file(int directory, const char *name, int *out, struct dp_error *err)
{
    struct stat found;
    int file = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *out = -1;
    if (file < 0)
        return dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "%s", strerror(errno));
    enum dp_status st = DP_OK;
    if (fstat(file, &found) != 0)
        st = dp_fail(err, DP_IO, "%s", strerror(errno));
    else if (!S_ISREG(found.st_mode))
        st = dp_fail(err, DP_CORRUPT, "it is no file: bring the file back");
    if (st == DP_OK)
        *out = file;
    else
        (void)close(file);
    return st;
}

static enum dp_status open_fd(const struct real_disk *disk, const char *name, bool create,
                              struct dp_file *file, struct dp_error *err)
{
    if (disk->read_only) {
        enum dp_status st = dp_read_only_disk_file(disk->directory, name, &file->fd, err);
        return st == DP_OK ? st : dp_wrap(err, st, "open %s", file->name);
    }
    file->fd = openat(disk->directory, name, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0666);
    return file->fd >= 0 ? DP_OK : failed(err, "open", file->name, errno);
}

static enum dp_status real_open(void *self, const char *name, _Bool create, struct dp_file **out,
                                struct dp_error *err)
{
    dp_blocking();
    struct real_disk *disk = self;
    size_t room = strlen(disk->path) + strlen(name) + 2;
    enum dp_status st = create ? check_writable(disk, err) : DP_OK;
    if (st != DP_OK)
        return st;
    struct dp_file *file = malloc(sizeof *file + room);
    if (!file)
        return dp_fail(err, DP_NOMEM, "open %s/%s", disk->path, name);
    (void)snprintf(file->name, room, "%s/%s", disk->path, name);
    file->direct = false;
    st = open_fd(disk, name, create, file, err);
    if (st != DP_OK) {
        free(file);
        return st;
    }
    *out = file;
    return DP_OK;
}

static void real_close(void *self, struct dp_file *file)
{
    (void)self;
    (void)close(file->fd);
    free(file);
}

static enum dp_status real_size(void *self, struct dp_file *file, uint64_t *bytes, struct dp_error *err)
{
    dp_blocking();
    (void)self;
    struct stat found;
    if (fstat(file->fd, &found) != 0)
        return failed(err, "size of", file->name, errno);
    *bytes = (uint64_t)found.st_size;
    return DP_OK;
}

static enum dp_status real_reserve(void *self, struct dp_file *file, uint64_t bytes, struct dp_error *err)
{
    dp_blocking();
    enum dp_status writable = check_writable(self, err);
    if (writable != DP_OK)
        return writable;
    int why;
    do {
        why = posix_fallocate(file->fd, 0, (off_t)bytes);
    } while (why == EINTR);
    if (why != ENOSPC)
        return why ? failed(err, "reserve space for", file->name, why) : DP_OK;
    struct statvfs disk = {0};
    (void)fstatvfs(file->fd, &disk);
    return dp_fail(err, DP_FULL,
                   "reserve %" PRIu64 " KiB for %s: its disk has %" PRIu64
                   " KiB left: no space; make room on that disk",
                   bytes >> 10, file->name, ((uint64_t)disk.f_bavail * disk.f_frsize) >> 10);
}

static enum dp_status real_read(void *self, struct dp_file *file, uint64_t at, void *to, size_t bytes,
                                struct dp_error *err)
{
    dp_blocking();
    (void)self;
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(file->fd, (char *)to + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(err, "read", file->name, errno);
        if (n == 0)
            return dp_fail(err, DP_IO, "read %s: the file ends at %llu, %zu bytes were wanted from %llu",
                           file->name, (unsigned long long)(at + done), bytes, (unsigned long long)at);
        done += (size_t)n;
    }
    return DP_OK;
}

static void set_direct(struct dp_file *file, bool direct)
{
    int flags = fcntl(file->fd, F_GETFL);
    file->direct =
        flags >= 0 && fcntl(file->fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0 && direct;
}

static void real_go_direct(void *self, struct dp_file *file)
{
    (void)self;
    set_direct(file, true); /* where the file system refuses, all stays as it is */
}

static enum dp_status real_write(void *self, struct dp_file *file, uint64_t at,
                                 const struct dp_disk_piece *pieces, uint32_t count, struct dp_error *err)
{
    dp_blocking();
    enum dp_status writable = check_writable(self, err);
    if (writable != DP_OK)
        return writable;
    struct iovec parts[DP_DISK_PIECES_MAX];
    DP_ASSERT(count <= DP_DISK_PIECES_MAX);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = (struct iovec){.iov_base = (void *)(uintptr_t)pieces[i].data, .iov_len = pieces[i].bytes};
    struct iovec *part = parts;
    while (count > 0) {
        if (part->iov_len == 0) {
            part++, count--;
            continue;
        }
        ssize_t n = pwritev(file->fd, part, (int)count, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL && file->direct) { /* it wants more than whole pages */
            set_direct(file, false);
            continue;
        }
        if (n < 0)
            return failed(err, "write", file->name, errno);
        at += (uint64_t)n;
        for (size_t left = (size_t)n; left > 0;) {
            size_t step = left < part->iov_len ? left : part->iov_len;
            part->iov_base = (char *)part->iov_base + step;
            part->iov_len -= step;
            left -= step;
            if (part->iov_len == 0)
                part++, count--;
        }
    }
    return DP_OK;
}

static enum dp_status real_sync(void *self, struct dp_file *file, struct dp_error *err)
{
    dp_blocking();
    enum dp_status writable = check_writable(self, err);
    if (writable != DP_OK)
        return writable;
    return fdatasync(file->fd) ? failed(err, "sync", file->name, errno) : DP_OK;
}

static enum dp_status real_rename(void *self, const char *from, const char *to, struct dp_error *err)
{
    dp_blocking();
    enum dp_status writable = check_writable(self, err);
    if (writable != DP_OK)
        return writable;
    struct real_disk *disk = self;
    if (renameat(disk->directory, from, disk->directory, to) != 0)
        return failed_name(err, disk, "rename", from, errno);
    return DP_OK;
}

static enum dp_status real_remove(void *self, const char *name, struct dp_error *err)
{
    dp_blocking();
    enum dp_status writable = check_writable(self, err);
    if (writable != DP_OK)
        return writable;
    struct real_disk *disk = self;
    if (unlinkat(disk->directory, name, 0) != 0)
        return failed_name(err, disk, "remove", name, errno);
    return DP_OK;
}

static enum dp_status real_sync_directory(void *self, struct dp_error *err)
{
    dp_blocking();
    enum dp_status writable = check_writable(self, err);
    if (writable != DP_OK)
        return writable;
    struct real_disk *disk = self;
    return fsync(disk->directory) ? failed(err, "sync directory", disk->path, errno) : DP_OK;
}

static enum dp_status real_list(void *self, void (*visit)(void *context, const char *name), void *context,
                                struct dp_error *err)
{
    dp_blocking();
    struct real_disk *disk = self;
    DIR *list = opendir(disk->path);
    if (!list)
        return failed(err, "list directory", disk->path, errno);
    errno = 0;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            visit(context, entry->d_name);
        errno = 0;
    }
    int why = errno;
    (void)closedir(list);
    return why ? failed(err, "list directory", disk->path, why) : DP_OK;
}

static enum dp_status open_disk(const char *directory, bool read_only, struct dp_disk *out,
                                struct dp_error *err)
{
    enum dp_status st;
    if (!*directory)
        return dp_fail(err, DP_ARGUMENT, "disk: the directory's name is empty");
    struct real_disk *disk = calloc(1, sizeof *disk);
    if (!disk)
        return dp_fail(err, DP_NOMEM, "disk %s", directory);
    disk->directory = -1;
    disk->read_only = read_only;
    disk->path = strdup(directory);
    if (!disk->path) {
        st = dp_fail(err, DP_NOMEM, "disk %s", directory);
        goto done;
    }
    st = read_only ? DP_OK : dp_directory_make(disk->path, err);
    if (st != DP_OK)
        goto done;
    disk->directory = open(disk->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (disk->directory < 0) {
        st = failed(err, "open directory", disk->path, errno);
        goto done;
    }
    *out = (struct dp_disk){
        .open = real_open,
        .close = real_close,
        .size = real_size,
        .reserve = real_reserve,
        .read = real_read,
        .write = real_write,
        .sync = real_sync,
        .rename = real_rename,
        .remove = real_remove,
        .sync_directory = real_sync_directory,
        .list = real_list,
        .go_direct = real_go_direct,
        .self = disk,
    };
done:
    if (st != DP_OK) {
        free(disk->path);
        free(disk);
    }
    return st;
}

enum dp_status dp_disk_open(const char *directory, struct dp_disk *out, struct dp_error *err)
{
    return open_disk(directory, false, out, err);
}

enum dp_status dp_read_only_disk_open(const char *directory, struct dp_disk *out, struct dp_error *err)
{
    return open_disk(directory, true, out, err);
}

void dp_disk_close(struct dp_disk *disk)
{
    struct real_disk *real = disk->self;
    if (!real)
        return;
    (void)close(real->directory);
    free(real->path);
    free(real);
    *disk = (struct dp_disk){0};
}

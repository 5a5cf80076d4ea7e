#include "common/env/read_only_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reading {
    int directory;
    char *path;
};

struct dp_file {
    int fd;
    char name[256];
};

static enum dp_status failed(struct dp_error *err, const struct reading *disk, const char *what,
                             const char *name)
{
    return dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "%s %s/%s: %s", what, disk->path, name,
                   strerror(errno));
}

static enum dp_status refuse(struct dp_error *err)
{
    return dp_fail(err, DP_UNSUPPORTED, "inspect changes nothing");
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

static enum dp_status read_open(void *self, const char *name, _Bool create, struct dp_file **out,
                                struct dp_error *err)
{
    const struct reading *disk = self;
    if (create)
        return refuse(err);
    struct dp_file *file = calloc(1, sizeof *file);
    if (!file)
        return dp_fail(err, DP_NOMEM, "open %s/%s", disk->path, name);
    (void)snprintf(file->name, sizeof file->name, "%s", name);
    enum dp_status st = dp_read_only_disk_file(disk->directory, name, &file->fd, err);
    if (st != DP_OK) {
        free(file);
        return dp_wrap(err, st, "open %s/%s", disk->path, name);
    }
    *out = file;
    return DP_OK;
}

static void read_close(void *self, struct dp_file *file)
{
    (void)self;
    (void)close(file->fd);
    free(file);
}

static enum dp_status read_size(void *self, struct dp_file *file, uint64_t *bytes, struct dp_error *err)
{
    struct stat found;
    if (fstat(file->fd, &found) != 0)
        return failed(err, self, "size of", file->name);
    *bytes = (uint64_t)found.st_size;
    return DP_OK;
}

static enum dp_status read_read(void *self, struct dp_file *file, uint64_t at, void *to, size_t bytes,
                                struct dp_error *err)
{
    const struct reading *disk = self;
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(file->fd, (char *)to + done, bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(err, disk, "read", file->name);
        if (got == 0)
            return dp_fail(err, DP_IO, "read %s/%s: it ends at %llu", disk->path, file->name,
                           (unsigned long long)(at + done));
        done += (size_t)got;
    }
    return DP_OK;
}

static enum dp_status read_list(void *self, void (*visit)(void *context, const char *name), void *context,
                                struct dp_error *err)
{
    const struct reading *disk = self;
    DIR *list = opendir(disk->path);
    if (!list)
        return failed(err, disk, "list", "");
    errno = 0;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
        visit(context, entry->d_name);
    enum dp_status st = errno == 0 ? DP_OK : failed(err, disk, "list", "");
    (void)closedir(list);
    return st;
}

static enum dp_status no_reserve(void *self, struct dp_file *file, uint64_t bytes, struct dp_error *err)
{
    (void)self, (void)file, (void)bytes;
    return refuse(err);
}
static enum dp_status no_write(void *self, struct dp_file *file, uint64_t at,
                               const struct dp_disk_piece *pieces, uint32_t count, struct dp_error *err)
{
    (void)self, (void)file, (void)at, (void)pieces, (void)count;
    return refuse(err);
}
static enum dp_status no_sync(void *self, struct dp_file *file, struct dp_error *err)
{
    (void)self, (void)file;
    return refuse(err);
}
static enum dp_status no_rename(void *self, const char *from, const char *to, struct dp_error *err)
{
    (void)self, (void)from, (void)to;
    return refuse(err);
}
static enum dp_status no_remove(void *self, const char *name, struct dp_error *err)
{
    (void)self, (void)name;
    return refuse(err);
}
static enum dp_status no_sync_directory(void *self, struct dp_error *err)
{
    (void)self;
    return refuse(err);
}

enum dp_status dp_read_only_disk_open(const char *directory, struct dp_disk *out, struct dp_error *err)
{
    struct reading *disk = calloc(1, sizeof *disk);
    char *path = strdup(directory);
    if (!disk || !path) {
        free(disk);
        free(path);
        return dp_fail(err, DP_NOMEM, "open %s", directory);
    }
    disk->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (disk->directory < 0) {
        enum dp_status st = dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "open directory %s: %s",
                                    directory, strerror(errno));
        free(disk);
        free(path);
        return st;
    }
    disk->path = path;
    *out = (struct dp_disk){.open = read_open,
                            .close = read_close,
                            .size = read_size,
                            .reserve = no_reserve,
                            .read = read_read,
                            .write = no_write,
                            .sync = no_sync,
                            .rename = no_rename,
                            .remove = no_remove,
                            .sync_directory = no_sync_directory,
                            .list = read_list,
                            .self = disk};
    return DP_OK;
}

void dp_read_only_disk_close(struct dp_disk *disk)
{
    struct reading *self = disk->self;
    if (!self)
        return;
    (void)close(self->directory);
    free(self->path);
    free(self);
    *disk = (struct dp_disk){0};
}

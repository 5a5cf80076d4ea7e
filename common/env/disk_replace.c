#include "common/env/disk_replace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES 256u

static enum dp_status write_temp(const struct dp_disk *disk, const char *temp, const void *data, size_t bytes,
                                 struct dp_error *err)
{
    struct dp_disk_piece piece = {.data = data, .bytes = bytes};
    struct dp_file *file = NULL;
    /* Never reuse the file of a failed write: it may be longer than this content, or have pages that a failed
     * sync dropped. */
    enum dp_status st = disk->remove(disk->self, temp, err);
    if (st == DP_OK || st == DP_NOT_FOUND)
        st = disk->open(disk->self, temp, true, &file, err);
    if (st != DP_OK)
        return st;
    st = disk->write(disk->self, file, 0, &piece, 1, err);
    if (st == DP_OK)
        st = disk->sync(disk->self, file, err);
    disk->close(disk->self, file);
    return st;
}

enum dp_status dp_disk_replace(const struct dp_disk *disk, const char *name, const void *data, size_t bytes,
                               struct dp_error *err)
{
    char temp[NAME_BYTES];
    struct dp_error ignored;
    DP_ASSERT(snprintf(temp, sizeof temp, "%s.new", name) < (int)sizeof temp);
    enum dp_status st = write_temp(disk, temp, data, bytes, err);
    if (st == DP_OK)
        st = disk->rename(disk->self, temp, name, err);
    if (st == DP_OK)
        st = disk->sync_directory(disk->self, err);
    else /* frees its blocks: the disk may be full */
        (void)disk->remove(disk->self, temp, &ignored);
    return st == DP_NOT_FOUND ? dp_wrap(err, DP_IO, "%s", name) : st;
}

enum dp_status dp_disk_read_all(const struct dp_disk *disk, const char *name, _Bool syncs, void **data,
                                size_t *bytes, struct dp_error *err)
{
    struct dp_file *file = NULL;
    uint64_t size = 0;
    *data = NULL;
    *bytes = 0;
    enum dp_status st = disk->open(disk->self, name, false, &file, err);
    if (st != DP_OK)
        return st;
    st = disk->size(disk->self, file, &size, err);
    if (st == DP_OK && !(*data = malloc((size_t)size + 1)))
        st = dp_fail(err, DP_NOMEM, "no memory to read %s (%" PRIu64 " bytes)", name, size);
    if (st == DP_OK)
        st = disk->read(disk->self, file, 0, *data, (size_t)size, err);
    if (st == DP_OK && syncs)
        st = disk->sync(disk->self, file, err);
    disk->close(disk->self, file);
    if (st == DP_OK && syncs)
        st = disk->sync_directory(disk->self, err);
    *bytes = st == DP_OK ? (size_t)size : 0;
    return st;
}

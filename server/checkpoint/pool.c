#define _GNU_SOURCE /* sync_file_range */
#include "server/checkpoint/pool.h"

#include "common/base/log.h"
#include "common/env/directory.h"
#include "common/env/read_only_disk.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES ((size_t)1 << 20)
#define TEMP       "tmp-"
#define SYNC_BYTES ((uint64_t)4 << 20)

/* ---- open */

static enum dp_status sweep(void *context, const char *name, struct dp_error *err)
{
    const struct dp_pool *pool = context;
    struct dp_checkpoint_path at, path;
    if (strncmp(name, TEMP, sizeof TEMP - 1) != 0)
        return DP_OK;
    enum dp_status st = dp_checkpoint_path_pool(pool->directory, pool->store, NULL, NULL, &at, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/%s", at.text, name);
    if (st == DP_OK && unlink(path.text) != 0 && errno != ENOENT)
        st = dp_checkpoint_failed(err, "remove", path.text);
    return st;
}

static enum dp_status know_files(struct dp_pool *pool, const struct dp_manifest_files *files,
                                 struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < files->count; i++) {
        const struct dp_manifest_file *file = &files->file[i];
        st = dp_manifest_files_add(&pool->known, file->name, file->bytes, file->checksum, err);
    }
    return st;
}

static enum dp_status know_shard(struct dp_pool *pool, const struct dp_manifest_shard *shard,
                                 struct dp_error *err)
{
    return shard->store == pool->store ? know_files(pool, &shard->files, err) : DP_OK;
}

/* A manifest that cannot be read only costs that its files are written again. */
static enum dp_status know_checkpoint(struct dp_pool *pool, uint32_t number, struct dp_error *err)
{
    struct dp_manifest manifest = {0};
    struct dp_checkpoint_path at, path;
    struct dp_error why = {0};
    enum dp_status st = dp_checkpoint_path_of(pool->directory, number, &at, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/" DP_MANIFEST_NAME, at.text);
    if (st != DP_OK)
        return st;
    if (dp_manifest_read(path.text, &manifest, &why) != DP_OK)
        dp_log(DP_LOG_WARN, "checkpoint: files of %s are not used again: %s", at.text, why.text);
    for (uint32_t s = 0; st == DP_OK && s < manifest.shards; s++)
        st = know_shard(pool, &manifest.shard[s], err);
    dp_manifest_clear(&manifest);
    return st;
}

static int by_name(const void *a, const void *b)
{
    const struct dp_manifest_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum dp_status know(struct dp_pool *pool, struct dp_error *err)
{
    struct dp_checkpoint_list list;
    enum dp_status st = dp_checkpoint_list_read(pool->directory, &list, err);
    for (size_t i = 0; st == DP_OK && i < list.count; i++)
        st = know_checkpoint(pool, list.number[i], err);
    if (pool->known.count > 0)
        qsort(pool->known.file, pool->known.count, sizeof pool->known.file[0], by_name);
    dp_checkpoint_list_clear(&list);
    return st;
}

enum dp_status dp_pool_open(struct dp_pool *pool, struct dp_error *err)
{
    struct dp_checkpoint_path at;
    pool->known = (struct dp_manifest_files){0};
    pool->bytes_new = 0;
    enum dp_status st = dp_checkpoint_path_pool(pool->directory, pool->store, NULL, NULL, &at, err);
    if (st == DP_OK)
        st = dp_directory_make(at.text, err);
    if (st == DP_OK)
        st = dp_checkpoint_visit(at.text, sweep, pool, err);
    if (st == DP_OK && !pool->full)
        st = know(pool, err);
    if (st != DP_OK)
        dp_pool_close(pool);
    return st;
}

void dp_pool_close(struct dp_pool *pool)
{
    dp_manifest_files_clear(&pool->known);
}

/* ---- put */

/* checksum NULL: any. */
static bool is_known(const struct dp_pool *pool, const char *name, uint64_t bytes, const char *checksum)
{
    size_t low = 0, high = pool->known.count;
    while (low < high) { /* the first of that name */
        size_t middle = low + (high - low) / 2;
        if (strcmp(pool->known.file[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < pool->known.count && strcmp(pool->known.file[low].name, name) == 0; low++)
        if (pool->known.file[low].bytes == bytes &&
            (!checksum || strcmp(pool->known.file[low].checksum, checksum) == 0))
            return true;
    return false;
}

static bool is_there(const char *path, uint64_t bytes)
{
    struct stat is;
    return lstat(path, &is) == 0 && S_ISREG(is.st_mode) && (uint64_t)is.st_size == bytes;
}

/* *taken: the pool has it already. */
static enum dp_status take_known(struct dp_pool *pool, const char *from, const char *name,
                                 struct dp_manifest_files *files, bool *taken, struct dp_error *err)
{
    struct dp_checkpoint_path path;
    struct stat is;
    char sum[DP_CHECKSUM_TEXT];
    uint64_t bytes;
    *taken = false;
    if (lstat(from, &is) != 0)
        return dp_checkpoint_failed(err, "look at", from);
    if (!is_known(pool, name, (uint64_t)is.st_size, NULL))
        return DP_OK;
    enum dp_status st = dp_checksum_file(from, pool->pace, &bytes, sum, err);
    if (st != DP_OK || !is_known(pool, name, bytes, sum))
        return st;
    st = dp_checkpoint_path_pool(pool->directory, pool->store, name, sum, &path, err);
    if (st != DP_OK || !is_there(path.text, bytes))
        return st;
    *taken = true;
    return dp_manifest_files_add(files, name, bytes, sum, err);
}

static enum dp_status write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return DP_IO;
        bytes += n;
        size -= (size_t)n;
    }
    return DP_OK;
}

/* In portions, while the copy goes on: one sync of a large file would make the journal's syncs wait for all of it. Each portion is
 * waited for before the one after the next is written. A hint: fsync reports failures. */
static void sync_part(int fd, uint64_t before, uint64_t now)
{
    uint64_t end = now - now % SYNC_BYTES;
    if (end <= before)
        return;
    (void)sync_file_range(fd, (off_t)(end - SYNC_BYTES), (off_t)SYNC_BYTES, SYNC_FILE_RANGE_WRITE);
    if (end >= 2 * SYNC_BYTES)
        (void)sync_file_range(fd, (off_t)(end - 2 * SYNC_BYTES), (off_t)SYNC_BYTES,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                  SYNC_FILE_RANGE_WAIT_AFTER);
}

/* From one open file to the other, with the checksum of what is written. */
static enum dp_status copy_bytes(struct dp_pool *pool, int in, int out, const char *to, uint64_t *bytes,
                                 char sum[DP_CHECKSUM_TEXT], struct dp_error *err)
{
    struct dp_checksum of;
    char *part = malloc(PART_BYTES);
    enum dp_status st = part ? DP_OK : dp_fail(err, DP_NOMEM, "no memory to copy %s", to);
    *bytes = 0;
    dp_checksum_begin(&of);
    for (ssize_t got = 1; st == DP_OK && got != 0;) {
        got = read(in, part, PART_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            st = dp_checkpoint_failed(err, "read what is copied to", to);
            break;
        }
        dp_checksum_put(&of, part, (size_t)got);
        if (write_all(out, part, (size_t)got) != DP_OK)
            st = dp_checkpoint_failed(err, "write", to);
        *bytes += (uint64_t)got;
        sync_part(out, *bytes - (uint64_t)got, *bytes);
        if (st == DP_OK)
            st = dp_pace_step(pool->pace, (uint64_t)got, err);
    }
    free(part);
    dp_checksum_end(&of, sum);
    if (st == DP_OK && fsync(out) != 0)
        st = dp_checkpoint_failed(err, "sync", to);
    return st;
}

static enum dp_status copy_file(struct dp_pool *pool, const char *from, const char *to, uint64_t *bytes,
                                char sum[DP_CHECKSUM_TEXT], struct dp_error *err)
{
    int in;
    enum dp_status st = dp_read_only_disk_file(AT_FDCWD, from, &in, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "read %s", from);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out < 0)
        st = dp_checkpoint_failed(err, "make", to);
    if (st == DP_OK)
        st = copy_bytes(pool, in, out, to, bytes, sum, err);
    if (out >= 0 && close(out) != 0 && st == DP_OK)
        st = dp_checkpoint_failed(err, "close", to);
    (void)close(in);
    return st;
}

/* The second checksum is of what the disk gives back. */
static enum dp_status read_back(const char *path, uint64_t bytes, const char *sum, struct dp_error *err)
{
    uint64_t read;
    char again[DP_CHECKSUM_TEXT];
    enum dp_status st = dp_checksum_file(path, NULL, &read, again, err);
    if (st == DP_OK && (read != bytes || strcmp(again, sum) != 0))
        st = dp_fail(err, DP_CORRUPT,
                     "%s reads back differently: %s in %" PRIu64 " bytes was written, %s in %" PRIu64
                     " is read; check that disk's health",
                     path, sum, bytes, again, read);
    return st;
}

static enum dp_status sync_file(const char *path, struct dp_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    enum dp_status st = synced ? DP_OK : dp_checkpoint_failed(err, "sync", path);
    if (fd >= 0)
        (void)close(fd);
    return st;
}

/* *written: the bytes of a copy; 0 for a link. */
static enum dp_status bring_file(struct dp_pool *pool, const char *from, const char *to, uint64_t *bytes,
                                 uint64_t *written, char sum[DP_CHECKSUM_TEXT], struct dp_error *err)
{
    *written = 0;
    if (pool->link && link(from, to) == 0) {
        enum dp_status st = sync_file(to, err);
        return st == DP_OK ? dp_checksum_file(to, pool->pace, bytes, sum, err) : st;
    }
    enum dp_status st = copy_file(pool, from, to, bytes, sum, err);
    *written = *bytes;
    return st == DP_OK ? read_back(to, *bytes, sum, err) : st;
}

enum dp_status dp_pool_put(struct dp_pool *pool, const char *from, const char *name,
                           struct dp_manifest_files *files, struct dp_error *err)
{
    struct dp_checkpoint_path at, temp, path;
    char sum[DP_CHECKSUM_TEXT];
    uint64_t bytes = 0, written;
    bool taken;
    enum dp_status st = take_known(pool, from, name, files, &taken, err);
    if (st != DP_OK || taken)
        return st;
    st = dp_checkpoint_path_pool(pool->directory, pool->store, NULL, NULL, &at, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&temp, err, "%s/" TEMP "%016" PRIx64 "-%s", at.text, pool->order, name);
    if (st != DP_OK)
        return st;
    st = bring_file(pool, from, temp.text, &bytes, &written, sum, err);
    if (st == DP_OK)
        st = dp_checkpoint_path_pool(pool->directory, pool->store, name, sum, &path, err);
    if (st == DP_OK && rename(temp.text, path.text) != 0)
        st = dp_checkpoint_failed(err, "rename", temp.text);
    if (st != DP_OK) {
        (void)unlink(temp.text);
        return st;
    }
    pool->bytes_new += written;
    return dp_manifest_files_add(files, name, bytes, sum, err);
}

enum dp_status dp_pool_sync(const struct dp_pool *pool, struct dp_error *err)
{
    struct dp_checkpoint_path at;
    enum dp_status st = dp_checkpoint_path_pool(pool->directory, pool->store, NULL, NULL, &at, err);
    return st == DP_OK ? dp_checkpoint_sync_directory(at.text, err) : st;
}

#include "server/checkpoint/making.h"

#include "common/env/atomic_file.h"
#include "common/env/directory.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/prune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 100u

enum dp_status dp_checkpoint_begin(const char *directory, uint64_t order, struct dp_error *err)
{
    struct dp_checkpoint_path making, pool;
    enum dp_status st = dp_checkpoint_place_check(directory, err);
    if (st == DP_OK)
        st = dp_checkpoint_path_making(directory, order, &making, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&pool, err, "%s/" DP_CHECKPOINT_POOL, directory);
    if (st == DP_OK)
        st = dp_directory_make(pool.text, err);
    return st == DP_OK ? dp_directory_make(making.text, err) : st;
}

/* As it is read from the disk. */
static enum dp_status check_bytes(const char *path, uint64_t bytes, const char *sum, struct dp_error *err)
{
    char again[DP_CHECKSUM_TEXT];
    uint64_t read = 0;
    enum dp_status st = dp_checksum_file(path, NULL, &read, again, err);
    if (st == DP_OK && (read != bytes || strcmp(sum, again) != 0))
        st = dp_fail(err, DP_CORRUPT, "%s reads back differently; check that disk's health", path);
    return st;
}

static enum dp_status write_file(const char *path, const void *bytes, size_t size, const char *sum,
                                 struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    enum dp_status st = dp_atomic_file_open(path, &file, err);
    if (st == DP_OK) {
        if (size > 0)
            (void)fwrite(bytes, 1, size, file.stream);
        st = dp_atomic_file_commit(&file, err);
    }
    return st == DP_OK ? check_bytes(path, size, sum, err) : st;
}

/* False: it has to be written. */
static bool link_last(const char *directory, const char *name, const char *path, size_t size, const char *sum)
{
    struct dp_error ignored;
    struct dp_checkpoint_list list;
    struct dp_checkpoint_path last, known;
    if (dp_checkpoint_list_read(directory, &list, &ignored) != DP_OK)
        return false;
    bool is_known = list.count > 0 &&
                    dp_checkpoint_path_of(directory, list.number[list.count - 1], &last, &ignored) == DP_OK &&
                    dp_checkpoint_path(&known, &ignored, "%s/%s", last.text, name) == DP_OK &&
                    check_bytes(known.text, size, sum, &ignored) == DP_OK && link(known.text, path) == 0;
    dp_checkpoint_list_clear(&list);
    return is_known;
}

enum dp_status dp_checkpoint_put(const char *directory, uint64_t order, const char *name, const void *bytes,
                                 size_t size, struct dp_manifest_file *out, uint64_t *linked,
                                 struct dp_error *err)
{
    struct dp_checkpoint_path making, path;
    struct dp_checksum of;
    *out = (struct dp_manifest_file){.bytes = size};
    enum dp_status st = dp_checkpoint_path_making(directory, order, &making, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/%s", making.text, name);
    if (st != DP_OK)
        return st;
    dp_checksum_begin(&of);
    dp_checksum_put(&of, bytes, size);
    dp_checksum_end(&of, out->checksum);
    if (linked && link_last(directory, name, path.text, size, out->checksum))
        *linked += size;
    else
        st = write_file(path.text, bytes, size, out->checksum, err);
    if (st != DP_OK)
        return st;
    out->name = strdup(name);
    return out->name ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for a manifest");
}

enum dp_status dp_checkpoint_put_step_log(const char *directory, uint64_t order, uint32_t worker,
                                          const void *bytes, size_t size, struct dp_manifest *manifest,
                                          struct dp_error *err)
{
    struct dp_manifest_file file;
    char name[DP_CHECKPOINT_STEP_LOG_BYTES];
    dp_checkpoint_step_log(worker, name);
    enum dp_status st = dp_checkpoint_put(directory, order, name, bytes, size, &file, NULL, err);
    if (st == DP_OK)
        st = dp_manifest_files_add(&manifest->step_logs, name, size, file.checksum, err);
    free(file.name);
    return st;
}

/* One try: *taken: there is a directory of that number already. */
static enum dp_status publish_as(const char *directory, struct dp_manifest *manifest, const char *making,
                                 bool *taken, bool *renamed, struct dp_error *err)
{
    struct dp_checkpoint_path path, to;
    *taken = false;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/" DP_MANIFEST_NAME, making);
    if (st == DP_OK)
        st = dp_checkpoint_path_of(directory, manifest->number, &to, err);
    if (st == DP_OK)
        st = dp_manifest_write(path.text, manifest, err);
    if (st == DP_OK)
        st = dp_checkpoint_sync_directory(making, err);
    if (st != DP_OK)
        return st;
    *renamed = rename(making, to.text) == 0; /* fails where a directory is that is not empty */
    if (*renamed)
        return dp_checkpoint_sync_directory(directory, err);
    *taken = errno == EEXIST || errno == ENOTEMPTY;
    return dp_checkpoint_failed(err, "rename", making);
}

enum dp_status dp_checkpoint_publish(const char *directory, struct dp_manifest *manifest,
                                     struct dp_error *err)
{
    struct dp_checkpoint_path making;
    struct dp_checkpoint_list list;
    bool taken = true, renamed = false;
    enum dp_status st = dp_checkpoint_path_making(directory, manifest->order, &making, err);
    if (st == DP_OK)
        st = dp_checkpoint_list_read(directory, &list, err);
    if (st != DP_OK)
        return st;
    uint32_t number = list.greatest;
    dp_checkpoint_list_clear(&list);
    for (uint32_t i = 0; taken && i < TRIES; i++) {
        if (number >= DP_CHECKPOINT_NUMBER_MAX)
            return dp_fail(err, DP_ARGUMENT,
                           "%s has a checkpoint of the greatest number; name another directory", directory);
        manifest->number = ++number;
        st = publish_as(directory, manifest, making.text, &taken, &renamed, err);
        if (!renamed)
            manifest->number = 0;
    }
    return st;
}

enum dp_status dp_checkpoint_abandon(const char *directory, uint64_t order, struct dp_error *err)
{
    struct dp_checkpoint_path making;
    struct dp_prune pruned;
    enum dp_status st = dp_checkpoint_path_making(directory, order, &making, err);
    if (st == DP_OK)
        st = dp_directory_remove(making.text, true, DP_CHECKPOINT_DEPTH, err);
    return st == DP_OK ? dp_checkpoint_prune(directory, 0, UINT32_MAX, NULL, &pruned, err) : st;
}

/* ---- sweep */

struct sweeping {
    const char *directory;
    uint64_t but_order;
};

static enum dp_status sweep_one(void *context, const char *name, struct dp_error *err)
{
    const struct sweeping *sweeping = context;
    struct dp_checkpoint_path path;
    uint64_t order;
    if (!dp_checkpoint_name_order(name, &order) || order == sweeping->but_order)
        return DP_OK;
    enum dp_status st = dp_checkpoint_path_making(sweeping->directory, order, &path, err);
    return st == DP_OK ? dp_directory_remove(path.text, true, DP_CHECKPOINT_DEPTH, err) : st;
}

enum dp_status dp_checkpoint_sweep(const char *directory, uint64_t but_order, struct dp_error *err)
{
    struct sweeping sweeping = {directory, but_order};
    return dp_checkpoint_visit(directory, sweep_one, &sweeping, err);
}

#include "server/checkpoint/copy_snapshots.h"

#include "server/store/snapshot_name.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum dp_status path_of(const char *link, const struct dp_manifest_snapshot *snapshot,
                              struct dp_checkpoint_path *out, struct dp_error *err)
{
    char name[DP_SNAPSHOT_NAME_BYTES];
    dp_store_snapshot_name((struct dp_store_snapshot){snapshot->run, snapshot->epoch}, name);
    return dp_checkpoint_path(out, err, "%s/%s", link, name);
}

/* Whether the directory has this very file, under that name. */
static bool has_same(const char *directory, const char *name, const struct stat *file)
{
    struct dp_checkpoint_path path;
    struct stat is;
    return dp_checkpoint_path(&path, NULL, "%s/%s", directory, name) == DP_OK && lstat(path.text, &is) == 0 &&
           is.st_dev == file->st_dev && is.st_ino == file->st_ino;
}

/* ---- find */

static enum dp_status see_directory(void *context, const char *name, struct dp_error *err)
{
    struct dp_manifest_shard *shard = context;
    struct dp_store_snapshot is;
    if (!dp_store_snapshot_name_parse(name, &is))
        return DP_OK;
    struct dp_manifest_snapshot *more =
        realloc(shard->snapshot, (shard->snapshots + 1) * sizeof shard->snapshot[0]);
    if (!more)
        return dp_fail(err, DP_NOMEM, "no memory for a list of snapshots");
    shard->snapshot = more;
    more[shard->snapshots++] = (struct dp_manifest_snapshot){.run = is.run, .epoch = is.epoch};
    return DP_OK;
}

static int by_epoch(const void *a, const void *b)
{
    const struct dp_manifest_snapshot *x = a, *y = b;
    int run = (x->run > y->run) - (x->run < y->run);
    return run ? run : (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

struct snapshot_sizes {
    const char *link, *directory;
    uint64_t bytes;
};

static enum dp_status see_size(void *context, const char *name, struct dp_error *err)
{
    struct snapshot_sizes *sizes = context;
    struct dp_checkpoint_path path;
    struct stat is;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", sizes->directory, name);
    if (st == DP_OK && lstat(path.text, &is) == 0 && !has_same(sizes->link, name, &is))
        sizes->bytes += (uint64_t)is.st_size;
    return st;
}

enum dp_status dp_copy_snapshots_find(const char *link, struct dp_manifest_shard *shard, uint64_t *bytes,
                                      struct dp_error *err)
{
    struct snapshot_sizes sizes = {.link = link};
    enum dp_status st = dp_checkpoint_visit(link, see_directory, shard, err);
    if (st == DP_OK && shard->snapshots > 0)
        qsort(shard->snapshot, shard->snapshots, sizeof shard->snapshot[0], by_epoch);
    for (uint32_t i = 0; st == DP_OK && i < shard->snapshots; i++) {
        struct dp_checkpoint_path directory;
        st = path_of(link, &shard->snapshot[i], &directory, err);
        sizes.directory = directory.text;
        if (st == DP_OK)
            st = dp_checkpoint_visit(directory.text, see_size, &sizes, err);
    }
    *bytes = sizes.bytes;
    return st;
}

/* ---- put */

struct snapshot_putting {
    struct dp_pool *pool;
    const char *link;
    struct dp_manifest_shard *shard;
    uint32_t at; /* which snapshot */
    struct dp_checkpoint_path directory;
};

static const struct dp_manifest_file *find_name(const struct dp_manifest_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->file[i].name, name) == 0)
            return &files->file[i];
    return NULL;
}

/* As it was put with the link, or with an earlier snapshot; NULL: it was not. */
static const struct dp_manifest_file *find_put(const struct snapshot_putting *p, const char *name,
                                               const struct stat *file)
{
    struct dp_checkpoint_path directory;
    if (has_same(p->link, name, file))
        return find_name(&p->shard->files, name);
    for (uint32_t i = 0; i < p->at; i++)
        if (path_of(p->link, &p->shard->snapshot[i], &directory, NULL) == DP_OK &&
            has_same(directory.text, name, file))
            return find_name(&p->shard->snapshot[i].files, name);
    return NULL;
}

static enum dp_status put_file(void *context, const char *name, struct dp_error *err)
{
    struct snapshot_putting *p = context;
    struct dp_manifest_files *files = &p->shard->snapshot[p->at].files;
    struct dp_checkpoint_path path;
    struct stat is;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", p->directory.text, name);
    if (st == DP_OK && lstat(path.text, &is) != 0)
        st = dp_checkpoint_failed(err, "look at", path.text);
    if (st != DP_OK || !S_ISREG(is.st_mode))
        return st;
    const struct dp_manifest_file *put = find_put(p, name, &is);
    return put ? dp_manifest_files_add(files, name, put->bytes, put->checksum, err)
               : dp_pool_put(p->pool, path.text, name, files, err);
}

enum dp_status dp_copy_snapshots_put(struct dp_pool *pool, const char *link, struct dp_manifest_shard *shard,
                                     struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < shard->snapshots; i++) {
        struct snapshot_putting putting = {.pool = pool, .link = link, .shard = shard, .at = i};
        st = path_of(link, &shard->snapshot[i], &putting.directory, err);
        if (st == DP_OK)
            st = dp_checkpoint_visit(putting.directory.text, put_file, &putting, err);
    }
    return st;
}

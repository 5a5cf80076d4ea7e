#include "server/checkpoint/prune.h"

#include "common/base/memory.h"
#include "common/env/directory.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/manifest_json.h"
#include "server/checkpoint/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file's place in the pool, as "<store>/<name>-<checksum>". */
struct named {
    char **place;
    size_t count, room;
};

static void named_clear(struct named *named)
{
    for (size_t i = 0; i < named->count; i++)
        free(named->place[i]);
    free(named->place);
    *named = (struct named){0};
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum dp_status add(struct named *named, uint64_t store, const struct dp_manifest_file *file,
                          struct dp_error *err)
{
    struct dp_checkpoint_path place;
    if (!dp_array_reserve(&named->place, named->count, &named->room, sizeof named->place[0]))
        return dp_fail(err, DP_NOMEM, "no memory for a list of files");
    enum dp_status st =
        dp_checkpoint_path(&place, err, "%016" PRIx64 "/%s-%s", store, file->name, file->checksum);
    char *copy = st == DP_OK ? strdup(place.text) : NULL;
    if (copy)
        named->place[named->count++] = copy;
    return copy || st != DP_OK ? st : dp_fail(err, DP_NOMEM, "no memory for a list of files");
}

static enum dp_status add_all(struct named *named, uint64_t store, const struct dp_manifest_files *files,
                              struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < files->count; i++)
        st = add(named, store, &files->file[i], err);
    return st;
}

static enum dp_status read_manifest(const char *directory, uint32_t number, struct dp_manifest *out,
                                    struct dp_error *err)
{
    struct dp_checkpoint_path at, path;
    enum dp_status st = dp_checkpoint_path_of(directory, number, &at, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/" DP_MANIFEST_NAME, at.text);
    return st == DP_OK ? dp_manifest_read(path.text, out, err) : st;
}

static enum dp_status name_all(const char *directory, const struct dp_checkpoint_list *list,
                               struct named *named, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < list->count; i++) {
        struct dp_manifest manifest = {0};
        st = read_manifest(directory, list->number[i], &manifest, err);
        for (uint32_t s = 0; st == DP_OK && s < manifest.shards; s++)
            st = add_all(named, manifest.shard[s].store, &manifest.shard[s].files, err);
        dp_manifest_clear(&manifest);
    }
    if (named->count > 0)
        qsort(named->place, named->count, sizeof named->place[0], by_text);
    return st;
}

/* ---- checkpoints */

enum dp_status dp_checkpoint_remove(const char *directory, uint32_t number, struct dp_error *err)
{
    struct dp_checkpoint_path at, path;
    enum dp_status st = dp_checkpoint_path_of(directory, number, &at, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/" DP_MANIFEST_NAME, at.text);
    if (st == DP_OK && unlink(path.text) != 0 && errno != ENOENT)
        st = dp_checkpoint_failed(err, "remove", path.text);
    if (st == DP_OK) /* before anything that it names goes */
        st = dp_checkpoint_sync_directory(at.text, err);
    return st == DP_OK ? dp_directory_remove(at.text, true, DP_CHECKPOINT_DEPTH, err) : st;
}

/* A file or directory of a checkpoint, or a temp file (common/env/atomic_file.h) of one. */
static enum dp_status see_own(void *context, const char *name, struct dp_error *err)
{
    const char *const names[] = {"ids",
                                 "steps",
                                 "register",
                                 "cluster.conf",
                                 DP_MANIFEST_NAME,
                                 dp_side_files[DP_SIDE_NAMES].name,
                                 dp_side_files[DP_SIDE_COLUMNS].name,
                                 dp_side_files[DP_SIDE_INTERACTIONS].name};
    uint32_t worker;
    (void)context;
    (void)err;
    bool own = dp_checkpoint_name_step_log(name, &worker) ||
               (strncmp(name, "tail-", 5) == 0 && strspn(name + 5, "0123456789") == strlen(name) - 5);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !own; i++) {
        size_t len = strlen(names[i]);
        own =
            strncmp(name, names[i], len) == 0 && (name[len] == '\0' || strncmp(name + len, ".new-", 5) == 0);
    }
    return own ? DP_OK : DP_EXISTS; /* ends the visit */
}

/* Of a prune that died: no manifest, so no checkpoint. A directory of that name that has other files is not ours: it stays. */
static enum dp_status remove_rest(void *context, const char *name, struct dp_error *err)
{
    const char *directory = context;
    struct dp_checkpoint_path at, manifest;
    uint32_t number;
    if (!dp_checkpoint_name_number(name, &number))
        return DP_OK;
    enum dp_status st = dp_checkpoint_path(&at, err, "%s/%s", directory, name);
    if (st == DP_OK)
        st = dp_checkpoint_path(&manifest, err, "%s/" DP_MANIFEST_NAME, at.text);
    if (st != DP_OK || access(manifest.text, F_OK) == 0)
        return st;
    if (errno != ENOENT)
        return errno == ENOTDIR ? DP_OK : dp_checkpoint_failed(err, "look at", manifest.text);
    st = dp_checkpoint_visit(at.text, see_own, NULL, err);
    return st == DP_OK       ? dp_directory_remove(at.text, true, DP_CHECKPOINT_DEPTH, err)
           : st == DP_EXISTS ? DP_OK
                             : st;
}

/* ---- files */

struct pruning {
    const char *pool, *store; /* store: the directory that is visited */
    const struct named *named;
    struct dp_prune *out;
};

/* "<name>-<checksum>", or "tmp-...": not what a person put there. */
static bool is_of_pool(const char *name)
{
    size_t len = strlen(name);
    return strncmp(name, "tmp-", 4) == 0 ||
           (len > 33 && name[len - 33] == '-' && dp_manifest_json_is_hex(name + len - 32, 32));
}

static enum dp_status prune_file(void *context, const char *name, struct dp_error *err)
{
    const struct pruning *pruning = context;
    struct dp_checkpoint_path place, path;
    struct stat is;
    const char *key = place.text;
    enum dp_status st = dp_checkpoint_path(&place, err, "%s/%s", pruning->store, name);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/%s", pruning->pool, place.text);
    const struct named *named = pruning->named;
    bool is_named =
        named->count > 0 && bsearch(&key, named->place, named->count, sizeof named->place[0], by_text);
    if (st != DP_OK || is_named || !is_of_pool(name) || lstat(path.text, &is) != 0 || !S_ISREG(is.st_mode))
        return st;
    if (unlink(path.text) != 0 && errno != ENOENT)
        return dp_checkpoint_failed(err, "remove", path.text);
    pruning->out->files++;
    pruning->out->bytes += (uint64_t)is.st_size;
    return DP_OK;
}

static enum dp_status prune_store(void *context, const char *name, struct dp_error *err)
{
    struct pruning pruning = *(const struct pruning *)context;
    struct dp_checkpoint_path path;
    struct stat is;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", pruning.pool, name);
    if (st != DP_OK || !dp_manifest_json_is_hex(name, 16) || lstat(path.text, &is) != 0 ||
        !S_ISDIR(is.st_mode))
        return st;
    pruning.store = name;
    st = dp_checkpoint_visit(path.text, prune_file, &pruning, err);
    if (st == DP_OK && rmdir(path.text) != 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
        st = dp_checkpoint_failed(err, "remove directory", path.text);
    return st;
}

static enum dp_status prune_pool(const char *directory, const struct dp_checkpoint_list *list,
                                 struct dp_prune *out, struct dp_error *err)
{
    struct named named = {0};
    struct dp_checkpoint_path pool;
    enum dp_status st = name_all(directory, list, &named, err);
    if (st != DP_OK)
        st = dp_wrap(err, st,
                     "no file of the pool was removed, as the files of this checkpoint are not known (mend "
                     "it, or remove its directory)");
    if (st == DP_OK)
        st = dp_checkpoint_path(&pool, err, "%s/" DP_CHECKPOINT_POOL, directory);
    struct pruning pruning = {.pool = pool.text, .named = &named, .out = out};
    if (st == DP_OK) {
        st = dp_checkpoint_visit(pool.text, prune_store, &pruning, err);
        st = st == DP_NOT_FOUND ? DP_OK : st;
    }
    named_clear(&named);
    return st;
}

/* ---- which checkpoints go */

/* A checkpoint, as it counts. */
struct prune_entry {
    uint64_t cluster;
    bool damaged; /* its manifest: its cluster is not known */
    bool counts;  /* it is one of the cluster's, or may have been */
    bool whole, goes;
};

/* Two directories that were moved over each other: by their names the later one would go. */
static enum dp_status check_number(const char *directory, uint32_t number, uint32_t is, struct dp_error *err)
{
    struct dp_manifest manifest;
    enum dp_status st = is == number ? DP_OK : dp_manifest_read_numbered(directory, number, &manifest, err);
    return st == DP_OK ? st : dp_wrap(err, st, "no checkpoint was removed");
}

static enum dp_status count(const char *directory, uint32_t number, uint64_t cluster, struct prune_entry *out,
                            struct dp_error *err)
{
    struct dp_manifest manifest = {0};
    struct dp_error ignored;
    enum dp_status st = read_manifest(directory, number, &manifest, &ignored);
    *out = (struct prune_entry){.cluster = manifest.cluster, .damaged = st == DP_CORRUPT};
    out->counts = out->damaged || (st == DP_OK && (cluster == 0 || manifest.cluster == cluster));
    st = st == DP_OK && out->counts ? check_number(directory, number, manifest.number, err) : DP_OK;
    dp_manifest_clear(&manifest);
    return st;
}

static enum dp_status look(const char *directory, uint32_t number, struct dp_pace *reads, bool *whole,
                           struct dp_error *err)
{
    const struct dp_verify_options verify = {
        .directory = directory, .number = number, .checksums = reads != NULL, .pace = reads};
    struct dp_verify seen;
    enum dp_status st = dp_checkpoint_verify(&verify, &seen, err);
    *whole = st == DP_OK;
    return st == DP_STOPPING ? st : DP_OK;
}

/* Of the cluster's checkpoints after this one; of any cluster's after a damaged one. */
static uint32_t whole_behind(const struct prune_entry *entry, size_t at, size_t all)
{
    uint32_t whole = 0;
    for (size_t i = at + 1; i < all; i++)
        whole += entry[i].whole && (entry[at].damaged || entry[i].cluster == entry[at].cluster);
    return whole;
}

/* From the last one on, so that files are looked at until enough are complete. */
static enum dp_status choose(const char *directory, uint64_t cluster, uint32_t keep, struct dp_pace *reads,
                             const struct dp_checkpoint_list *list, struct prune_entry *entry,
                             struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = list->count; st == DP_OK && i-- > 0;) {
        struct prune_entry *one = &entry[i];
        st = count(directory, list->number[i], cluster, one, err);
        if (st != DP_OK || !one->counts)
            continue;
        one->goes = whole_behind(entry, i, list->count) >= keep;
        if (!one->goes && !one->damaged)
            st = look(directory, list->number[i], reads, &one->whole, err);
    }
    return st;
}

/* Removes all before the last `keep` complete ones, from the list, too. */
static enum dp_status remove_earlier(const char *directory, uint64_t cluster, uint32_t keep,
                                     struct dp_pace *reads, struct dp_checkpoint_list *list,
                                     struct dp_prune *out, struct dp_error *err)
{
    size_t left = 0;
    if (list->count <= keep)
        return DP_OK;
    struct prune_entry *entry = calloc(list->count, sizeof *entry);
    if (!entry)
        return dp_fail(err, DP_NOMEM, "no memory for a list of %zu checkpoints", list->count);
    enum dp_status st = choose(directory, cluster, keep, reads, list, entry, err);
    for (size_t i = 0; i < list->count; i++) {
        if (st == DP_OK && entry[i].goes) {
            st = dp_checkpoint_remove(directory, list->number[i], err);
            out->checkpoints += st == DP_OK;
        } else {
            if (entry[i].counts && !entry[i].whole && out->damaged++ == 0)
                out->first_damaged = list->number[i];
            list->number[left++] = list->number[i];
        }
    }
    list->count = left;
    free(entry);
    return st;
}

enum dp_status dp_checkpoint_prune(const char *directory, uint64_t cluster, uint32_t keep,
                                   struct dp_pace *reads, struct dp_prune *out, struct dp_error *err)
{
    struct dp_checkpoint_list list;
    DP_ASSERT(keep > 0);
    *out = (struct dp_prune){0};
    enum dp_status st = dp_checkpoint_list_read(directory, &list, err);
    if (st != DP_OK)
        return st;
    st = remove_earlier(directory, cluster, keep, reads, &list, out, err);
    if (st == DP_OK)
        st = dp_checkpoint_visit(directory, remove_rest, (void *)(uintptr_t)directory, err);
    if (st == DP_OK && out->checkpoints > 0)
        st = dp_checkpoint_sync_directory(directory, err);
    if (st == DP_OK)
        st = prune_pool(directory, &list, out, err);
    dp_checkpoint_list_clear(&list);
    return st;
}

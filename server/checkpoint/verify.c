#include "server/checkpoint/verify.h"

#include "common/env/read_only_disk.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/manifest.h"
#include "server/durable/table_mark.h"
#include "server/journal/journal_replay.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct verifying {
    const struct dp_verify_options *o;
    struct dp_verify *out;
    struct dp_manifest manifest;
    struct dp_checkpoint_path at; /* the checkpoint's directory */
    struct dp_error first;
};

static void tell(struct verifying *v, const struct dp_error *what)
{
    if (v->out->damages++ == 0)
        v->first = *what;
    if (v->o->damaged)
        v->o->damaged(v->o->context, what);
}

static void damaged(struct verifying *v, const char *format, ...) DP_PRINTF(2, 3);
static void damaged(struct verifying *v, const char *format, ...)
{
    struct dp_error what = {.status = DP_CORRUPT};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what.text, sizeof what.text, format, args);
    va_end(args);
    tell(v, &what);
}

/* ---- one file */

static enum dp_status check_sum(struct verifying *v, const char *path, const struct dp_manifest_file *file,
                                struct dp_error *err)
{
    char sum[DP_CHECKSUM_TEXT];
    uint64_t bytes;
    struct dp_error what = {0};
    enum dp_status st = dp_checksum_file(path, v->o->pace, &bytes, sum, &what);
    if (st == DP_STOPPING || st == DP_NOMEM) {
        *err = what;
        return st;
    }
    if (st != DP_OK)
        tell(v, &what);
    else if (strcmp(sum, file->checksum) != 0)
        damaged(v, "%s fails its checksum: the manifest has %s, its bytes have %s", path, file->checksum,
                sum);
    return DP_OK;
}

static enum dp_status check_file(struct verifying *v, const char *path, const struct dp_manifest_file *file,
                                 struct dp_error *err)
{
    struct stat is;
    v->out->files++;
    if (lstat(path, &is) != 0) {
        damaged(v, "%s %s", path, errno == ENOENT ? "is missing" : strerror(errno));
        return DP_OK;
    }
    v->out->bytes += (uint64_t)is.st_size;
    if (!S_ISREG(is.st_mode))
        damaged(v, "%s is no file", path);
    else if ((uint64_t)is.st_size != file->bytes)
        damaged(v, "%s has %" PRIu64 " bytes, the manifest has %" PRIu64, path, (uint64_t)is.st_size,
                file->bytes);
    else if (v->o->checksums)
        return check_sum(v, path, file, err);
    return DP_OK;
}

static enum dp_status check_own(struct verifying *v, const struct dp_manifest_file *file,
                                struct dp_error *err)
{
    struct dp_checkpoint_path path;
    if (!file->name)
        return DP_OK;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", v->at.text, file->name);
    return st == DP_OK ? check_file(v, path.text, file, err) : st;
}

/* ---- a shard */

/* As an opening reads it: the records that the manifest names, and no others. */
static void check_journal(struct verifying *v, const struct dp_manifest_shard *shard, const char *path)
{
    struct dp_disk disk = {0};
    struct dp_journal_found found = {0};
    struct dp_error what = {0};
    const struct dp_journal_options options = {.disk = &disk, .replay_after = shard->after};
    enum dp_status st = dp_read_only_disk_open(path, &disk, &what);
    if (st == DP_OK)
        st = dp_journal_look(&options, &found, &what);
    if (st != DP_OK) {
        (void)dp_wrap(&what, st, "%s", path);
        tell(v, &what);
    } else if (found.last_lsn != shard->tail.last_lsn || found.incarnation != shard->tail.incarnation)
        damaged(v,
                "%s ends with record %" PRIu64 " of opening %" PRIu64 ", the manifest has record %" PRIu64
                " of opening %" PRIu64,
                path, found.last_lsn, found.incarnation, shard->tail.last_lsn, shard->tail.incarnation);
    dp_journal_found_clear(&options, &found);
    dp_disk_close(&disk);
}

struct surplus {
    struct verifying *v;
    const char *path;
    const struct dp_manifest_files *files; /* NULL: the checkpoint's directory itself */
};

static bool is_named(const struct dp_manifest_file *file, const char *name)
{
    return file->name && strcmp(file->name, name) == 0;
}

static bool belongs(const struct surplus *surplus, const char *name)
{
    const struct dp_manifest *m = &surplus->v->manifest;
    for (size_t i = 0; surplus->files && i < surplus->files->count; i++)
        if (is_named(&surplus->files->file[i], name))
            return true;
    if (surplus->files)
        return false;
    for (uint32_t i = 0; i < m->shards; i++) {
        char tail[32];
        (void)snprintf(tail, sizeof tail, "tail-%04" PRIu32, i);
        if (strcmp(tail, name) == 0)
            return true;
    }
    for (size_t i = 0; i < m->step_logs.count; i++)
        if (is_named(&m->step_logs.file[i], name))
            return true;
    for (int i = 0; i < DP_SIDE_FILES; i++)
        if (is_named(&m->side[i], name))
            return true;
    return strcmp(name, DP_MANIFEST_NAME) == 0 || is_named(&m->ids, name) || is_named(&m->steps, name) ||
           is_named(&m->register_file, name) || is_named(&m->cluster_file, name);
}

static enum dp_status see(void *context, const char *name, struct dp_error *err)
{
    const struct surplus *surplus = context;
    (void)err;
    if (!belongs(surplus, name))
        damaged(surplus->v, "%s/%s is not in the manifest", surplus->path, name);
    return DP_OK;
}

static void check_surplus(struct verifying *v, const char *path, const struct dp_manifest_files *files)
{
    struct surplus surplus = {v, path, files};
    struct dp_error what = {0};
    if (dp_checkpoint_visit(path, see, &surplus, &what) != DP_OK)
        tell(v, &what);
}

static enum dp_status check_pool(struct verifying *v, const struct dp_manifest_shard *shard,
                                 struct dp_error *err)
{
    const struct dp_manifest_files *files = &shard->files;
    struct dp_checkpoint_path path;
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < files->count; i++) {
        const struct dp_manifest_file *file = &files->file[i];
        st = dp_checkpoint_path_pool(v->o->directory, shard->store, file->name, file->checksum, &path, err);
        if (st == DP_OK)
            st = check_file(v, path.text, file, err);
    }
    return st;
}

static enum dp_status check_shard(struct verifying *v, const struct dp_manifest_shard *shard,
                                  struct dp_error *err)
{
    struct dp_checkpoint_path tail, path;
    uint64_t before = v->out->damages;
    enum dp_status st = dp_checkpoint_path(&tail, err, "%s/tail-%04" PRIu32, v->at.text, shard->index);
    for (size_t i = 0; st == DP_OK && i < shard->tail.files.count; i++) {
        st = dp_checkpoint_path(&path, err, "%s/%s", tail.text, shard->tail.files.file[i].name);
        if (st == DP_OK)
            st = check_file(v, path.text, &shard->tail.files.file[i], err);
    }
    if (st == DP_OK)
        check_surplus(v, tail.text, &shard->tail.files);
    if (st == DP_OK && v->o->checksums && v->out->damages == before)
        check_journal(v, shard, tail.text);
    if (st == DP_OK)
        st = check_pool(v, shard, err);
    return st;
}

/* ---- all */

/* The tables of the checkpoint are those of its shards. */
static enum dp_status check_tables(struct verifying *v, struct dp_error *err)
{
    struct dp_manifest *m = &v->manifest;
    struct dp_manifest_tables said = m->tables;
    uint64_t bytes = m->bytes, bytes_new = m->bytes_new;
    struct dp_error what = {0};
    m->tables = (struct dp_manifest_tables){0};
    enum dp_status st = dp_manifest_sum(m, &what);
    if (st == DP_NOMEM)
        *err = what;
    else if (st != DP_OK)
        tell(v, &what);
    bool same = said.count == m->tables.count;
    for (size_t i = 0; st == DP_OK && same && i < said.count; i++)
        same = dp_table_same(&said.table[i].spec, &m->tables.table[i].spec, NULL) == DP_OK &&
               strcmp(said.table[i].spec.name, m->tables.table[i].spec.name) == 0;
    if (st == DP_OK && !same)
        damaged(v, "%s/" DP_MANIFEST_NAME " has other tables than its shards have", v->at.text);
    bool had_more = false;
    for (uint32_t i = 0; i < m->shards; i++)
        had_more = had_more || m->shard[i].had_snapshots;
    if (st == DP_OK && m->bytes != bytes && !had_more)
        damaged(v, "%s/" DP_MANIFEST_NAME " says %" PRIu64 " bytes, its files have %" PRIu64, v->at.text,
                bytes, m->bytes);
    free(m->tables.table);
    m->tables = said;
    m->bytes = bytes;
    m->bytes_new = bytes_new;
    return st == DP_NOMEM ? st : DP_OK;
}

static enum dp_status check_all(struct verifying *v, struct dp_error *err)
{
    const struct dp_manifest *m = &v->manifest;
    if (m->number != v->o->number)
        damaged(v, "%s/" DP_MANIFEST_NAME " is that of checkpoint %" PRIu32, v->at.text, m->number);
    enum dp_status st = check_tables(v, err);
    const struct dp_manifest_file *own[] = {&m->ids, &m->steps, &m->register_file, &m->cluster_file};
    for (size_t i = 0; st == DP_OK && i < sizeof own / sizeof own[0]; i++)
        st = check_own(v, own[i], err);
    for (int i = 0; st == DP_OK && i < DP_SIDE_FILES; i++)
        st = check_own(v, &m->side[i], err);
    for (size_t i = 0; st == DP_OK && i < m->step_logs.count; i++)
        st = check_own(v, &m->step_logs.file[i], err);
    if (st == DP_OK)
        check_surplus(v, v->at.text, NULL);
    for (uint32_t i = 0; st == DP_OK && i < m->shards; i++)
        st = check_shard(v, &m->shard[i], err);
    return st;
}

enum dp_status dp_checkpoint_verify(const struct dp_verify_options *options, struct dp_verify *out,
                                    struct dp_error *err)
{
    struct verifying v = {.o = options, .out = out};
    struct dp_checkpoint_path path;
    *out = (struct dp_verify){0};
    enum dp_status st = dp_checkpoint_path_of(options->directory, options->number, &v.at, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/" DP_MANIFEST_NAME, v.at.text);
    if (st == DP_OK)
        st = dp_manifest_read(path.text, &v.manifest, err);
    if (st != DP_OK)
        return st;
    st = check_all(&v, err);
    dp_manifest_clear(&v.manifest);
    if (st != DP_OK || out->damages == 0)
        return st;
    if (err)
        *err = v.first;
    return dp_wrap(err, DP_CORRUPT, "checkpoint %" PRIu32 " has %" PRIu64 " damaged place%s", options->number,
                   out->damages, out->damages == 1 ? "" : "s, the first");
}

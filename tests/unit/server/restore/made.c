#include "tests/unit/server/restore/made.h"

#include "common/env/directory.h"
#include "common/env/read_only_disk.h"
#include "server/checkpoint/manifest.h"
#include "server/durable/durable_marks.h"
#include "server/inspect/inspect_view.h"
#include "server/journal/journal.h"
#include "tests/lib/test.h"

#include <dirent.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH 900u

static void path_of(char to[PATH], const char *format, ...) DP_PRINTF(2, 3);
static void path_of(char to[PATH], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(to, PATH, format, args);
    va_end(args);
    assert_true(n > 0 && n < (int)PATH);
}

static char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        fail_msg("%s is missing", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    char *bytes = malloc(*size + 1);
    rewind(file);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    (void)fclose(file);
    return bytes;
}

static void spit(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wbe");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void checksum_of(const void *bytes, size_t size, char text[DP_CHECKSUM_TEXT])
{
    unsigned char hash[16];
    assert_int_equal(crypto_generichash(hash, sizeof hash, bytes, size, NULL, 0), 0);
    (void)sodium_bin2hex(text, DP_CHECKSUM_TEXT, hash, sizeof hash);
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

static bool is_of_database(const char *name)
{
    return ends_with(name, ".sst") || strcmp(name, "marks") == 0 || strncmp(name, "MANIFEST-", 9) == 0 ||
           strncmp(name, "OPTIONS-", 8) == 0 || strcmp(name, "CURRENT") == 0;
}

static void add_file(struct dp_manifest_files *files, const char *name, const void *bytes, size_t size,
                     char checksum[DP_CHECKSUM_TEXT])
{
    struct dp_error err = {0};
    checksum_of(bytes, size, checksum);
    assert_int_equal(dp_manifest_files_add(files, name, size, checksum, &err), DP_OK);
}

/* ---- the pool */

static void pool_files(const struct made *made, const char *store, uint64_t id,
                       struct dp_manifest_files *files)
{
    char from[PATH], to[PATH], pool[PATH], checksum[DP_CHECKSUM_TEXT];
    struct dp_error err = {0};
    size_t size;
    DIR *list = opendir(store);
    assert_non_null(list);
    path_of(pool, "%s/files/%016" PRIx64, made->directory, id);
    assert_int_equal(dp_directory_make(pool, &err), DP_OK);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (!is_of_database(entry->d_name))
            continue;
        path_of(from, "%s/%s", store, entry->d_name);
        char *bytes = slurp(from, &size);
        add_file(files, entry->d_name, bytes, size, checksum);
        path_of(to, "%s/%s-%s", pool, entry->d_name, checksum);
        spit(to, bytes, size);
        free(bytes);
    }
    (void)closedir(list);
}

/* ---- the tail */

struct tailing {
    struct dp_journal *to;
    uint64_t records, bytes;
};

static enum dp_status append(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err)
{
    struct tailing *tail = context;
    const struct dp_journal_piece piece = {record, bytes};
    uint64_t at = 0;
    enum dp_status st;
    while ((st = dp_journal_append(tail->to, &piece, 1, &at, err)) == DP_AGAIN || st == DP_BEHIND)
        dp_journal_commit(tail->to);
    assert_int_equal(st, DP_OK);
    assert_int_equal(at, lsn);
    dp_journal_commit(tail->to);
    tail->records++;
    tail->bytes += bytes;
    return DP_OK;
}

static void read_journal(const char *store, const struct dp_inspect_view *view, struct tailing *tail)
{
    char path[PATH];
    struct dp_disk disk;
    struct dp_error err = {0};
    struct dp_journal_figures found;
    path_of(path, "%s/journal", store);
    if (view->own.state == DP_STORE_VIEW_CLEAN)
        return;
    assert_int_equal(dp_read_only_disk_open(path, &disk, &err), DP_OK);
    const struct dp_journal_options options = {.disk = &disk,
                                               .replay_after = view->rows_lsn,
                                               .incarnation = view->incarnation,
                                               .released = view->released,
                                               .must_be_there = true,
                                               .replay = append,
                                               .replay_context = tail};
    if (dp_journal_read(&options, &found, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_disk_close(&disk);
}

static void list_tail(const char *directory, struct dp_manifest_files *files)
{
    char path[PATH], checksum[DP_CHECKSUM_TEXT];
    size_t size;
    DIR *list = opendir(directory);
    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (entry->d_name[0] == '.')
            continue;
        path_of(path, "%s/%s", directory, entry->d_name);
        char *bytes = slurp(path, &size);
        add_file(files, entry->d_name, bytes, size, checksum);
        free(bytes);
    }
    (void)closedir(list);
}

static void make_tail(const char *checkpoint, const char *store, const struct dp_inspect_view *view,
                      struct dp_manifest_shard *out)
{
    char path[PATH];
    struct dp_disk disk;
    struct dp_error err = {0};
    struct tailing tail = {0};
    struct dp_journal_figures figures;
    path_of(path, "%s/tail-%04" PRIu32, checkpoint, out->index);
    assert_int_equal(dp_disk_open(path, &disk, &err), DP_OK);
    const struct dp_journal_options options = {
        .disk = &disk, .replay_after = out->after, .segment_bytes = 1u << 20};
    assert_int_equal(dp_journal_open(&options, &tail.to, &err), DP_OK);
    read_journal(store, view, &tail);
    dp_journal_figures(tail.to, &figures);
    out->tail.incarnation = figures.incarnation;
    out->tail.last_lsn = out->lsn = dp_journal_last(tail.to);
    out->tail.records = tail.records;
    out->tail.bytes = tail.bytes;
    dp_journal_close(&tail.to);
    dp_disk_close(&disk);
    list_tail(path, &out->tail.files);
}

/* ---- all */

void made_copy_rows(const char *store, const char *to)
{
    char from[PATH], path[PATH];
    struct dp_error err = {0};
    size_t size;
    DIR *list = opendir(store);
    assert_non_null(list);
    assert_int_equal(dp_directory_make(to, &err), DP_OK);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (!is_of_database(entry->d_name))
            continue;
        path_of(from, "%s/%s", store, entry->d_name);
        path_of(path, "%s/%s", to, entry->d_name);
        char *bytes = slurp(from, &size);
        spit(path, bytes, size);
        free(bytes);
    }
    (void)closedir(list);
}

static void make_shard(const struct made *made, const char *checkpoint, uint32_t index,
                       struct dp_manifest *manifest)
{
    struct dp_manifest_shard *out = &manifest->shard[index];
    const char *link = made->link[index] ? made->link[index] : made->shard[index];
    const struct dp_inspect_view_options options = {0};
    struct dp_inspect_view view, now;
    struct dp_error err = {0};
    assert_int_equal(dp_inspect_view_gather(made->shard[index], &options, &now, &err), DP_OK);
    assert_int_equal(dp_inspect_view_gather(link, &options, &view, &err), DP_OK);
    assert_true(view.opened && now.opened && now.damages == 0);
    *out = (struct dp_manifest_shard){.index = index,
                                      .shards = made->shards,
                                      .range = view.own.range,
                                      .store = view.own.id.id,
                                      .after = view.rows_lsn};
    manifest->cluster = view.own.cluster;
    manifest->generation = view.own.id.generation;
    manifest->history = view.own.id.history;
    out->tables.table = calloc(view.tables + 1, sizeof out->tables.table[0]);
    for (size_t i = 0; i < view.tables; i++) {
        size_t at = out->tables.count++; /* ascending by name */
        for (; at > 0 && strcmp(out->tables.table[at - 1].spec.name, view.table[i].spec.name) > 0; at--)
            out->tables.table[at] = out->tables.table[at - 1];
        out->tables.table[at] = (struct dp_manifest_table){.spec = view.table[i].spec, .rows = UINT64_MAX};
    }
    pool_files(made, link, out->store, &out->files);
    now.rows_lsn = view.rows_lsn;
    make_tail(checkpoint, made->shard[index], &now, out);
    dp_inspect_view_clear(&view);
    dp_inspect_view_clear(&now);
}

static struct dp_manifest_file small_file(const char *checkpoint, const char *name, const void *bytes,
                                          size_t size)
{
    char path[PATH];
    struct dp_manifest_file file = {.name = strdup(name), .bytes = size};
    path_of(path, "%s/%s", checkpoint, name);
    spit(path, bytes, size);
    checksum_of(bytes, size, file.checksum);
    return file;
}

struct steps_mark {
    const char *checkpoint;
    struct dp_manifest *manifest;
};

static enum dp_status take_steps(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    const struct steps_mark *steps = context;
    steps->manifest->steps = small_file(steps->checkpoint, "steps", mark->value, mark->value_bytes);
    return DP_OK;
}

static void make_steps(const struct made *made, const char *checkpoint, struct dp_manifest *manifest)
{
    struct steps_mark steps = {checkpoint, manifest};
    struct dp_store_view *view = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_store_view_open(made->shard[0], NULL, &view, &err), DP_OK);
    assert_int_equal(dp_store_view_marks(view, "steps", take_steps, &steps, &err), DP_OK);
    assert_non_null(manifest->steps.name);
    dp_store_view_close(&view);
}

void made_checkpoint(const struct made *made)
{
    char checkpoint[PATH], path[PATH];
    struct dp_error err = {0};
    size_t size = 0;
    struct dp_manifest manifest = {.number = made->number,
                                   .order = 0x1234 + made->number,
                                   .made = strdup("2026-01-01T00:00:00Z"),
                                   .cluster_name = strdup("test")};
    path_of(checkpoint, "%s/checkpoint-%06" PRIu32, made->directory, made->number);
    assert_int_equal(dp_directory_make(checkpoint, &err), DP_OK);
    manifest.shard = calloc(made->shards, sizeof manifest.shard[0]);
    manifest.shards = made->shards;
    for (uint32_t i = 0; i < made->shards; i++)
        make_shard(made, checkpoint, i, &manifest);
    void *ids = dp_push_ids_pack(made->ids, &size);
    manifest.ids = small_file(checkpoint, "ids", ids, size);
    free(ids);
    if (made->has_steps)
        make_steps(made, checkpoint, &manifest);
    path_of(path, "%s/register", made->register_directory);
    char *bytes = slurp(path, &size);
    manifest.register_file = small_file(checkpoint, "register", bytes, size);
    free(bytes);
    manifest.cluster_file = small_file(checkpoint, "cluster.conf", "", 0);
    assert_int_equal(dp_manifest_sum(&manifest, &err), DP_OK);
    path_of(path, "%s/" DP_MANIFEST_NAME, checkpoint);
    if (dp_manifest_write(path, &manifest, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_manifest_clear(&manifest);
}

#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/unit/server/checkpoint/area.h"
#include "common/env/directory.h"

#include "server/journal/record.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS 20u

void area_put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ---- shards */

static void fill_journal(const char *path)
{
    struct dp_disk disk;
    struct dp_journal *journal = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_disk_open(path, &disk, &err), DP_OK);
    const struct dp_journal_options options = {.disk = &disk,
                                               .segment_bytes = 64u << 10,
                                               .first_bytes = 64u << 10,
                                               .budget_bytes = 1u << 20,
                                               .secret = 3};
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    for (uint64_t i = 1; i <= RECORDS; i++) {
        static struct dp_request push;
        const struct dp_record record = {.kind = DP_RECORD_PUSH};
        struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
        char head[DP_RECORD_HEAD_MAX];
        uint64_t lsn;
        push.stream = 7;
        push.number = i;
        uint32_t n = dp_record_encode(&record, &push, head, pieces);
        assert_int_equal(dp_journal_append(journal, pieces, n, &lsn, &err), DP_OK);
    }
    dp_journal_close(&journal);
    dp_disk_close(&disk);
}

struct area *area_new(void)
{
    struct area *area = calloc(1, sizeof *area);
    const char *tmp = getenv("TMPDIR");
    char path[160];
    (void)snprintf(area->top, sizeof area->top, "%.30s/dp_area_XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(area->top));
    (void)snprintf(area->directory, sizeof area->directory, "%s/checkpoints", area->top);
    (void)snprintf(path, sizeof path, "%s/store", area->top);
    assert_int_equal(mkdir(path, 0777), 0);
    for (uint32_t i = 0; i < AREA_SHARDS; i++) {
        (void)snprintf(area->shard[i], sizeof area->shard[i], "%s/store/shard-%04u", area->top, i);
        assert_int_equal(mkdir(area->shard[i], 0777), 0);
        (void)snprintf(path, sizeof path, "%s/journal", area->shard[i]);
        fill_journal(path);
    }
    area->order = 0x1000;
    area->after = 5;
    area->lsn = 10;
    area->until = RECORDS;
    area_change(area);
    return area;
}

void area_free(struct area *area)
{
    for (uint32_t i = 0; i < AREA_SHARDS; i++)
        dp_manifest_shard_clear(&area->copied[i]);
    assert_int_equal(dp_directory_remove(area->top, true, 0, NULL), DP_OK);
    free(area);
}

static void fill_link(const struct area *area, uint32_t shard)
{
    static char bytes[100000];
    char link[200], path[260], name[DP_COPY_LINK_BYTES];
    dp_copy_link_name(area->order, 1, name);
    (void)snprintf(link, sizeof link, "%s/%s", area->shard[shard], name);
    assert_true(mkdir(link, 0777) == 0);
    memset(bytes, 'a' + (int)shard, sizeof bytes);
    (void)snprintf(path, sizeof path, "%s/000010.sst", link);
    area_put_file(path, bytes, sizeof bytes);
    memset(bytes, (int)area->version, 5000);
    (void)snprintf(path, sizeof path, "%s/%06u.sst", link, 10 + area->version);
    area_put_file(path, bytes, 5000 + area->version);
    (void)snprintf(path, sizeof path, "%s/CURRENT", link);
    area_put_file(path, bytes, 16);
}

void area_change(struct area *area)
{
    area->version++;
    area->order++;
    for (uint32_t i = 0; i < AREA_SHARDS; i++)
        fill_link(area, i);
}

/* ---- checkpoints */

struct dp_copy_job *area_job(const struct area *area, uint32_t shard)
{
    struct dp_copy_job *job = dp_copy_job_new();
    assert_non_null(job);
    job->order = area->order;
    job->cut = 1;
    (void)snprintf(job->directory, sizeof job->directory, "%s", area->directory);
    job->shard = shard;
    job->shards = AREA_SHARDS;
    job->store = 0x5000 + shard;
    job->after = area->after;
    job->lsn = area->lsn;
    job->until = area->until;
    job->full = area->full;
    job->link = area->link;
    job->missing = malloc(sizeof job->missing[0]);
    job->missing[0] = (struct dp_copy_push){7, RECORDS - 1};
    job->missing_count = 1;
    return job;
}

static enum dp_status tables(void *context, const char *link, struct dp_manifest_tables *out,
                             struct dp_error *err)
{
    out->table = calloc(1, sizeof out->table[0]);
    out->count = 1;
    out->table[0].spec = (struct dp_table_spec){.name = "items", .dim = 8, .seed = 1};
    out->table[0].spec.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    return DP_OK;
}

void area_copy(const struct area *area, struct dp_copy_job *job)
{
    const struct dp_copy_place place = {.directory = area->shard[job->shard], .tables = tables};
    struct dp_copy_run *run = dp_copy_run_begin(job, &place);
    if (run)
        dp_copy_run_end(&run);
}

static enum dp_status copy_all(struct area *area, struct dp_manifest *manifest, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    manifest->shard = calloc(AREA_SHARDS, sizeof manifest->shard[0]);
    for (uint32_t i = 0; st == DP_OK && i < AREA_SHARDS; i++) {
        struct dp_copy_job *job = area_job(area, i);
        area_copy(area, job);
        st = job->status;
        *err = job->error;
        if (st == DP_OK)
            st = dp_manifest_shard_parse(job->manifest, strlen(job->manifest), &manifest->shard[i], err);
        manifest->shards += st == DP_OK;
        dp_manifest_shard_clear(&area->copied[i]);
        if (st == DP_OK)
            st = dp_manifest_shard_parse(job->manifest, strlen(job->manifest), &area->copied[i], err);
        dp_copy_job_free(&job);
    }
    return st;
}

static enum dp_status make(struct area *area, uint32_t *number, struct dp_error *err)
{
    struct dp_manifest m = {.order = area->order,
                            .cluster = area->cluster,
                            .made = strdup("2026-01-01T00:00:00Z"),
                            .cluster_name = strdup("c")};
    enum dp_status st = dp_checkpoint_begin(area->directory, area->order, err);
    if (st == DP_OK)
        st = copy_all(area, &m, err);
    if (st == DP_OK)
        st = dp_checkpoint_put(area->directory, area->order, "ids", "idsids", 6, &m.ids, NULL, err);
    if (st == DP_OK)
        st = dp_checkpoint_put(area->directory, area->order, "register", "", 0, &m.register_file, NULL, err);
    if (st == DP_OK)
        st = dp_checkpoint_put_step_log(area->directory, area->order, 1, "steps", 5, &m, err);
    if (st == DP_OK)
        st = dp_checkpoint_put(area->directory, area->order, "names.tsv", "names", 5, &m.side[DP_SIDE_NAMES],
                               area->full ? NULL : &m.bytes_linked, err);
    if (st == DP_OK)
        st = dp_manifest_sum(&m, err);
    if (st == DP_OK)
        st = dp_checkpoint_publish(area->directory, &m, err);
    *number = m.number;
    dp_manifest_clear(&m);
    return st;
}

enum dp_status area_make(struct area *area, uint32_t *number, struct dp_error *err)
{
    int lock;
    enum dp_status st = dp_checkpoint_lock(area->directory, &lock, err);
    if (st == DP_OK)
        st = make(area, number, err);
    dp_checkpoint_unlock(&lock);
    return st;
}

enum dp_status area_prune(const struct area *area, uint32_t keep, struct dp_prune *out, struct dp_error *err)
{
    int lock;
    struct dp_pace pace = dp_pace_real();
    pace.cancelled = area->cancelled;
    enum dp_status st = dp_checkpoint_lock(area->directory, &lock, err);
    if (st == DP_OK)
        st = dp_checkpoint_prune(area->directory, area->cluster, keep, &pace, out, err);
    dp_checkpoint_unlock(&lock);
    return st;
}

/* ---- what is there */

enum dp_status area_verify(const struct area *area, uint32_t number, struct dp_error *err)
{
    const struct dp_verify_options options = {
        .directory = area->directory, .number = number, .checksums = true};
    struct dp_verify found;
    return dp_checkpoint_verify(&options, &found, err);
}

size_t area_expect_whole(const struct area *area)
{
    struct dp_checkpoint_list list;
    struct dp_error err = {0};
    assert_int_equal(dp_checkpoint_list_read(area->directory, &list, &err), DP_OK);
    for (size_t i = 0; i < list.count; i++)
        if (area_verify(area, list.number[i], &err) != DP_OK)
            fail_msg("checkpoint %u: %s", list.number[i], err.text);
    size_t count = list.count;
    dp_checkpoint_list_clear(&list);
    return count;
}

static const char *counted;
static uint32_t count;

static int count_one(const char *path, const struct stat *is, int kind, struct FTW *at)
{
    count += kind == FTW_F && strncmp(path + at->base, counted, strlen(counted)) == 0;
    return 0;
}

uint32_t area_count(const struct area *area, const char *at, const char *prefix)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/%s", area->directory, at);
    counted = prefix;
    count = 0;
    (void)nftw(path, count_one, 16, FTW_PHYS);
    return count;
}

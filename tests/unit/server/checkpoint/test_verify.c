/* Verify. Goal: each flipped bit, each file that is missing, swapped, cut short or surplus, another version, other tables and another
 * checkpoint's manifest are named; what is whole passes. Method: a checkpoint of two shards; each kind of damage on each of its
 * files in turn, put back afterwards. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/unit/server/checkpoint/area.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 64u

/* Every file of the directory but the lock. */
static char files[FILES_MAX][200];
static uint32_t count;

static int list_one(const char *path, const struct stat *is, int kind, struct FTW *at)
{
    if (kind == FTW_F && strcmp(path + at->base, "lock") != 0)
        (void)snprintf(files[count++], sizeof files[0], "%s", path);
    return count < FILES_MAX ? 0 : -1;
}

static struct area *one_checkpoint(void)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    uint32_t number;
    assert_int_equal(area_make(area, &number, &err), DP_OK);
    assert_int_equal(area_expect_whole(area), 1);
    count = 0;
    assert_int_equal(nftw(area->directory, list_one, 16, FTW_PHYS), 0);
    assert_int_equal(
        count, 1 + 4 +
                   AREA_SHARDS *
                       (1 + 3)); /* manifest; ids, register, a step log, names; tail and link of each shard */
    return area;
}

/* ---- told */

static char told[4096];
static uint32_t tells;

static void tell(void *context, const struct dp_error *what)
{
    tells++;
    (void)snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", what->text);
}

static enum dp_status verify(const struct area *area, bool checksums, struct dp_error *err)
{
    const struct dp_verify_options options = {
        .directory = area->directory, .number = 1, .checksums = checksums, .damaged = tell};
    struct dp_verify found;
    tells = 0;
    told[0] = '\0';
    enum dp_status st = dp_checkpoint_verify(&options, &found, err);
    assert_int_equal(found.damages, tells);
    assert_true(st != DP_OK || tells == 0);
    return st;
}

static bool is_manifest(const char *path)
{
    return strcmp(strrchr(path, '/'), "/manifest.json") == 0;
}

/* The damage of this file is found, and nothing else is told. */
static void expect_named(const struct area *area, const char *path, bool checksums)
{
    struct dp_error err = {0};
    enum dp_status st = verify(area, checksums, &err);
    if (is_manifest(path)) {
        assert_true(st == DP_CORRUPT || st == DP_UNSUPPORTED || st == DP_NOT_FOUND);
        assert_non_null(strstr(err.text, "manifest"));
        return;
    }
    assert_int_equal(st, DP_CORRUPT);
    assert_int_equal(tells, 1);
    assert_non_null(strstr(told, path));
    assert_non_null(strstr(err.text, path));
}

/* ---- damage */

static void flip(const char *path, off_t at, int bit)
{
    char byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte = (char)(byte ^ 1 << bit);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

static off_t size_of(const char *path)
{
    struct stat is;
    assert_int_equal(stat(path, &is), 0);
    return is.st_size;
}

static void a_flipped_bit_in_any_file_is_named(void **state)
{
    struct area *area = one_checkpoint();
    uint32_t flipped = 0;
    for (uint32_t i = 0; i < count; i++) {
        off_t size = size_of(files[i]), step = size / 150 + 1;
        for (off_t at = 0; at < size; at += step, flipped++) {
            flip(files[i], at, (int)(at % 8));
            expect_named(area, files[i], true);
            flip(files[i], at, (int)(at % 8));
        }
        if (size > 0) {
            flip(files[i], size - 1, 7);
            expect_named(area, files[i], true);
            flip(files[i], size - 1, 7);
        }
    }
    print_message("%u bits of %u files\n", flipped, count);
    assert_int_equal(area_expect_whole(area), 1);
    area_free(area);
}

static void a_file_that_is_missing_or_of_another_size_is_named(void **state)
{
    struct area *area = one_checkpoint();
    char aside[200];
    (void)snprintf(aside, sizeof aside, "%s/aside", area->top);
    for (uint32_t i = 0; i < count; i++) {
        off_t size = size_of(files[i]);
        assert_int_equal(rename(files[i], aside), 0);
        expect_named(area, files[i], false);
        assert_int_equal(mkdir(files[i], 0777), 0); /* something else stands there */
        struct dp_error err = {0};
        assert_int_not_equal(verify(area, false, &err), DP_OK);
        assert_int_equal(rmdir(files[i]), 0);
        assert_int_equal(rename(aside, files[i]), 0);
        if (is_manifest(files[i]))
            continue;
        assert_int_equal(truncate(files[i], size + 1), 0);
        expect_named(area, files[i], false);
        assert_int_equal(truncate(files[i], size), 0);
    }
    assert_int_equal(area_expect_whole(area), 1);
    area_free(area);
}

static void swap(const struct area *area, const char *a, const char *b)
{
    char aside[200];
    (void)snprintf(aside, sizeof aside, "%s/aside", area->top);
    assert_int_equal(rename(a, aside), 0);
    assert_int_equal(rename(b, a), 0);
    assert_int_equal(rename(aside, b), 0);
}

/* Same sizes, other bytes. */
static void swapped_files_are_named(void **state)
{
    struct area *area = one_checkpoint();
    struct dp_error err = {0};
    char a[300], b[300];
    (void)snprintf(a, sizeof a, "%s/files/0000000000005000/000010.sst-%s", area->directory,
                   area->copied[0].files.file[0].checksum);
    (void)snprintf(b, sizeof b, "%s/files/0000000000005001/000010.sst-%s", area->directory,
                   area->copied[1].files.file[0].checksum);
    swap(area, a, b);
    assert_int_equal(verify(area, true, &err), DP_CORRUPT);
    assert_int_equal(tells, 2);
    assert_true(strstr(told, a) && strstr(told, b));
    assert_non_null(strstr(err.text, "2 damaged places"));
    swap(area, a, b);
    (void)snprintf(a, sizeof a, "%s/checkpoint-000001/tail-0000", area->directory);
    (void)snprintf(b, sizeof b, "%s/checkpoint-000001/tail-0001", area->directory);
    swap(area, a, b);
    assert_int_equal(verify(area, true, &err), DP_CORRUPT);
    assert_true(strstr(told, a) && strstr(told, b));
    swap(area, a, b);
    assert_int_equal(area_expect_whole(area), 1);
    area_free(area);
}

static void files_that_are_too_many_are_named(void **state)
{
    struct area *area = one_checkpoint();
    struct dp_error err = {0};
    char path[300];
    static const char *const names[] = {"checkpoint-000001/ids2", "checkpoint-000001/steps",
                                        "checkpoint-000001/columns.csv", "checkpoint-000001/tail-0002",
                                        "checkpoint-000001/tail-0001/journal-0000000000000009"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", area->directory, names[i]);
        area_put_file(path, "x", 1);
        expect_named(area, path, false);
        assert_int_equal(unlink(path), 0);
    }
    (void)snprintf(path, sizeof path, "%s/files/0000000000005000/000099.sst-x", area->directory);
    area_put_file(path, "x", 1); /* of the pool, which others may name */
    assert_int_equal(verify(area, true, &err), DP_OK);
    area_free(area);
}

/* ---- the manifest */

static void change(const struct area *area, void (*how)(struct dp_manifest *manifest), const char *said)
{
    struct dp_manifest m;
    struct dp_error err = {0};
    char path[200], aside[200];
    (void)snprintf(path, sizeof path, "%s/checkpoint-000001/manifest.json", area->directory);
    (void)snprintf(aside, sizeof aside, "%s/aside", area->top);
    assert_int_equal(dp_manifest_read(path, &m, &err), DP_OK);
    assert_int_equal(dp_manifest_write(aside, &m, &err), DP_OK);
    how(&m);
    assert_int_equal(dp_manifest_write(path, &m, &err), DP_OK);
    assert_int_equal(verify(area, true, &err), DP_CORRUPT);
    if (!strstr(told, said))
        fail_msg("'%s' does not say '%s'", told, said);
    assert_int_equal(rename(aside, path), 0);
    dp_manifest_clear(&m);
}

static void another_number(struct dp_manifest *m)
{
    m->number = 2;
}
static void other_tables(struct dp_manifest *m)
{
    m->tables.table[0].spec.seed++;
}
static void no_tables(struct dp_manifest *m)
{
    m->tables.count = 0;
}
static void other_tables_of_a_shard(struct dp_manifest *m)
{
    m->shard[1].tables.table[0].spec.dim++;
}
static void other_bytes(struct dp_manifest *m)
{
    m->bytes++;
}
static void a_longer_tail(struct dp_manifest *m)
{
    m->shard[1].tail.last_lsn++;
    m->shard[1].tail.records++;
}
static void another_opening(struct dp_manifest *m)
{
    m->shard[0].tail.incarnation++;
}

static void a_manifest_that_does_not_fit_is_named(void **state)
{
    struct area *area = one_checkpoint();
    struct dp_error err = {0};
    char path[200];
    change(area, another_number, "checkpoint 2");
    change(area, other_tables, "other tables");
    change(area, no_tables, "other tables");
    change(area, other_tables_of_a_shard, "different tables of one name");
    change(area, other_bytes, "bytes");
    change(area, a_longer_tail, "tail-0001");
    change(area, another_opening, "tail-0000");
    assert_int_equal(area_expect_whole(area), 1);
    (void)snprintf(path, sizeof path, "%s/checkpoint-000001/manifest.json", area->directory);
    area_put_file(path, "{\"format\": 2}", 13);
    assert_int_equal(verify(area, true, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "format 2"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(verify(area, true, &err), DP_NOT_FOUND);
    area_free(area);
}

static void it_can_be_cancelled(void **state)
{
    struct area *area = one_checkpoint();
    atomic_bool cancelled = true;
    struct dp_pace pace = dp_pace_real();
    struct dp_verify found;
    struct dp_error err = {0};
    pace.cancelled = &cancelled;
    const struct dp_verify_options options = {
        .directory = area->directory, .number = 1, .checksums = true, .pace = &pace, .damaged = tell};
    tells = 0;
    assert_int_equal(dp_checkpoint_verify(&options, &found, &err), DP_STOPPING);
    assert_int_equal(tells, 0);
    area_free(area);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_bit_in_any_file_is_named),
        cmocka_unit_test(a_file_that_is_missing_or_of_another_size_is_named),
        cmocka_unit_test(swapped_files_are_named),
        cmocka_unit_test(files_that_are_too_many_are_named),
        cmocka_unit_test(a_manifest_that_does_not_fit_is_named),
        cmocka_unit_test(it_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

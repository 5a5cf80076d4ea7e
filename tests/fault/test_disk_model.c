/* The disk model by hand-made logs: what is durable survives always, what is not by its rules; sectors are whole. */
#define _XOPEN_SOURCE 700
#include "common/env/directory.h"
#include "tests/fault/disk_file.h"
#include "tests/fault/disk_names.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR 512u
#define SEEDS  300u

static void change(struct dp_disk_file *file, uint64_t moment, enum dp_record_kind kind, uint64_t at,
                   const uint8_t *data, size_t bytes)
{
    struct dp_disk_change one = {.moment = moment, .kind = kind, .at = at, .data = data, .bytes = bytes};
    dp_disk_file_change(file, &one);
}

/* Two writes that overlap by half a sector, the first synced: each sector is old or new, and the old is what was synced. */
static void synced_bytes_survive_and_others_by_whole_sectors(void **state)
{
    uint8_t first[3 * SECTOR], second[3 * SECTOR];
    uint32_t seen_old = 0, seen_new = 0, seen_both = 0;
    struct dp_disk_file file = {0};
    memset(first, 1, sizeof first);
    memset(second, 2, sizeof second);
    change(&file, 1, DP_RECORD_WRITE, 0, first, sizeof first);
    dp_disk_file_sync(&file, 1);
    change(&file, 2, DP_RECORD_WRITE, 2 * SECTOR, second, sizeof second);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct dp_disk_bytes bytes;
        uint32_t fresh = 0;
        dp_disk_file_survives(&file, DP_DISK_RANDOM, seed, &bytes);
        assert_in_range(bytes.size, sizeof first, 5 * SECTOR);
        assert_memory_equal(bytes.data, first, 2 * SECTOR);
        for (size_t at = 2 * SECTOR; at < bytes.size; at += SECTOR) {
            uint8_t old = at < sizeof first ? 1 : 0;
            assert_true(bytes.data[at] == old || bytes.data[at] == 2);
            fresh += bytes.data[at] == 2;
            for (size_t i = 1; i < SECTOR; i++)
                assert_int_equal(bytes.data[at + i], bytes.data[at]);
        }
        seen_old += fresh == 0, seen_new += fresh == 3, seen_both += fresh == 1 || fresh == 2;
        free(bytes.data);
    }
    assert_true(seen_old > SEEDS / 10 && seen_new > SEEDS / 10 && seen_both > SEEDS / 10);
    dp_disk_file_free(&file);
}

/* Of two writes into one sector the later is never there without the earlier. */
static void a_sector_is_as_of_one_moment(void **state)
{
    const uint8_t a[100] = {1}, b[100] = {2};
    struct dp_disk_file file = {0};
    bool alone = false;
    change(&file, 1, DP_RECORD_WRITE, 0, a, sizeof a);
    change(&file, 2, DP_RECORD_WRITE, 100, b, sizeof b);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct dp_disk_bytes bytes;
        dp_disk_file_survives(&file, DP_DISK_RANDOM, seed, &bytes);
        if (bytes.size > 100 && bytes.data[100] == 2)
            assert_int_equal(bytes.data[0], 1);
        alone = alone || (bytes.size > 0 && bytes.data[0] == 1 && (bytes.size <= 100 || !bytes.data[100]));
        free(bytes.data);
    }
    assert_true(alone);
    dp_disk_file_free(&file);
}

static void what_was_written_during_a_sync_is_not_durable(void **state)
{
    const uint8_t a[8] = {1}, b[8] = {2};
    struct dp_disk_file file = {0};
    struct dp_disk_bytes bytes;
    change(&file, 1, DP_RECORD_WRITE, 0, a, sizeof a);
    change(&file, 3, DP_RECORD_WRITE, 8, b, sizeof b);
    change(&file, 4, DP_RECORD_CUT, 4, NULL, 0);
    dp_disk_file_sync(&file, 2);
    dp_disk_file_survives(&file, DP_DISK_NOTHING, 1, &bytes);
    assert_int_equal(bytes.size, 8);
    free(bytes.data);
    dp_disk_file_survives(&file, DP_DISK_ALL, 1, &bytes);
    assert_int_equal(bytes.size, 4);
    free(bytes.data);
    dp_disk_file_free(&file);
}

/* ---- logs */

struct log {
    FILE *stream;
    char directory[512], path[600];
};

static void say(struct log *log, enum dp_record_kind kind, int fd, uint64_t at, const char *name,
                const char *other, const char *data)
{
    struct dp_record record = {.magic = DP_RECORD_MAGIC,
                               .kind = kind,
                               .fd = fd,
                               .at = at,
                               .name_bytes = (uint32_t)strlen(name),
                               .other_bytes = (uint32_t)strlen(other),
                               .data_bytes = strlen(data)};
    assert_int_equal(fwrite(&record, sizeof record, 1, log->stream), 1);
    assert_true(fprintf(log->stream, "%s%s%s", name, other, data) >= 0);
}

static void say_sync(struct log *log, int fd, uint64_t number)
{
    say(log, DP_RECORD_SYNC_BEGIN, fd, number, "", "", "");
    say(log, DP_RECORD_SYNC_END, 0, number, "", "", "");
}

/* The image behind record `records`, its files as "NAME=BYTES " in a fixed order. */
static void expect(const struct log *log, uint32_t records, enum dp_disk_survival survival, const char *want)
{
    static const char *const names[] = {"a", "b", "d/c", "d/e"};
    struct dp_disk_model *model = NULL;
    struct dp_disk_step step;
    struct dp_error err = {0};
    char image[600], got[256] = "";
    (void)snprintf(image, sizeof image, "%s/image", log->directory);
    (void)mkdir(image, 0777);
    assert_int_equal(dp_directory_remove(image, false, 0, &err), DP_OK);
    assert_int_equal(dp_disk_model_open(log->path, DP_DISK_SOUND, &model, &err), DP_OK);
    for (uint32_t i = 0; i < records; i++)
        if (dp_disk_model_step(model, &step, &err) != DP_OK)
            fail_msg("%s", err.text);
    assert_int_equal(dp_disk_model_image(model, survival, 1, image, &err), DP_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[700], bytes[32] = "";
        (void)snprintf(path, sizeof path, "%s/%s", image, names[i]);
        FILE *stream = fopen(path, "rb");
        if (!stream)
            continue;
        (void)fread(bytes, 1, sizeof bytes - 1, stream);
        (void)fclose(stream);
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s=%s ", names[i], bytes);
    }
    assert_string_equal(got, want);
    dp_disk_model_close(&model);
}

static void names_are_durable_by_a_sync_of_their_directory_only(void **state)
{
    struct log *log = *state;
    say(log, DP_RECORD_OPEN, 3, 0, "", "", "");                          /* 1: the root */
    say(log, DP_RECORD_MAKE, 0, 0, "d", "", "");                         /* 2 */
    say(log, DP_RECORD_OPEN, 4, DP_RECORD_OPEN_CREATED, "a", "", "");    /* 3 */
    say(log, DP_RECORD_WRITE, 4, 0, "", "", "xyz");                      /* 4 */
    say_sync(log, 4, 1);                                                 /* 5, 6 */
    say_sync(log, 3, 2);                                                 /* 7, 8 */
    say(log, DP_RECORD_RENAME, 0, 0, "a", "b", "");                      /* 9 */
    say(log, DP_RECORD_OPEN, 5, DP_RECORD_OPEN_CREATED, "d/c", "", "");  /* 10 */
    say(log, DP_RECORD_LINK, 0, 0, "d/c", "d/e", "");                    /* 11 */
    say(log, DP_RECORD_WRITE, 5, 0, "", "", "123");                      /* 12 */
    say(log, DP_RECORD_OPEN, 6, 0, "d", "", "");                         /* 13 */
    say_sync(log, 6, 3);                                                 /* 14, 15 */
    say(log, DP_RECORD_REMOVE, 0, 0, "d/c", "", "");                     /* 16 */
    say(log, DP_RECORD_START, 0, 0, "", "", "");                         /* 17 */
    say(log, DP_RECORD_WRITE, 5, 0, "", "", "not open in this process"); /* 18 */
    assert_int_equal(fflush(log->stream), 0);
    expect(log, 6, DP_DISK_NOTHING, "");
    expect(log, 6, DP_DISK_ALL, "a=xyz ");
    expect(log, 7, DP_DISK_NOTHING, "");
    expect(log, 8, DP_DISK_NOTHING, "a=xyz ");
    expect(log, 9, DP_DISK_NOTHING, "a=xyz ");
    expect(log, 9, DP_DISK_ALL, "b=xyz ");
    expect(log, 13, DP_DISK_NOTHING, "a=xyz ");
    expect(log, 15, DP_DISK_NOTHING, "a=xyz d/c= d/e= ");
    expect(log, 15, DP_DISK_ALL, "b=xyz d/c=123 d/e=123 ");
    expect(log, 17, DP_DISK_NOTHING, "a=xyz d/c= d/e= ");
    expect(log, 17, DP_DISK_ALL, "b=xyz d/e=123 ");

    struct dp_disk_model *model = NULL;
    struct dp_disk_step step;
    struct dp_error err = {0};
    enum dp_status st = dp_disk_model_open(log->path, DP_DISK_SOUND, &model, &err);
    for (int i = 0; i < 18 && st == DP_OK; i++)
        st = dp_disk_model_step(model, &step, &err);
    assert_int_equal(st, DP_DATA);
    dp_disk_model_close(&model);
}

static void a_call_that_is_not_followed_is_refused(void **state)
{
    struct log *log = *state;
    struct dp_disk_model *model = NULL;
    struct dp_disk_step step;
    struct dp_error err = {0};
    say(log, DP_RECORD_UNKNOWN, 0, 0, "mmap", "", "");
    assert_int_equal(fflush(log->stream), 0);
    assert_int_equal(dp_disk_model_open(log->path, DP_DISK_SOUND, &model, &err), DP_OK);
    assert_int_equal(dp_disk_model_step(model, &step, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "mmap"));
    dp_disk_model_close(&model);
}

static int log_setup(void **state)
{
    struct log *log = calloc(1, sizeof *log);
    if (!log)
        return -1;
    const char *above = getenv("TMPDIR");
    (void)snprintf(log->directory, sizeof log->directory, "%s/dp_disk_model_XXXXXX", above ? above : "/tmp");
    if (!mkdtemp(log->directory))
        return -1;
    (void)snprintf(log->path, sizeof log->path, "%s/log", log->directory);
    log->stream = fopen(log->path, "wb");
    *state = log;
    return log->stream ? 0 : -1;
}

static int log_teardown(void **state)
{
    struct log *log = *state;
    (void)fclose(log->stream);
    assert_int_equal(dp_directory_remove(log->directory, true, 0, NULL), DP_OK);
    free(log);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_bytes_survive_and_others_by_whole_sectors),
        cmocka_unit_test(a_sector_is_as_of_one_moment),
        cmocka_unit_test(what_was_written_during_a_sync_is_not_durable),
        cmocka_unit_test_setup_teardown(names_are_durable_by_a_sync_of_their_directory_only, log_setup,
                                        log_teardown),
        cmocka_unit_test_setup_teardown(a_call_that_is_not_followed_is_refused, log_setup, log_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

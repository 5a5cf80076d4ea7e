/* A write into RocksDB's own logs that a loss of power tore is cut off; what was synced before it stays, and any other
 * damage is refused. Every sector of the last write is lost in turn, each bit pattern of rot is left as it is. */
#define _XOPEN_SOURCE 700
#include "server/store/rocks_tail.h"

#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512u
#define BLOCK  32768u /* of RocksDB's log */
#define LONG   5000u  /* bytes of a mark: many sectors */
#define FAR    29000u /* so many bytes before, it crosses the end of a block of RocksDB's log */

struct file {
    char path[640];
    unsigned char bytes[1u << 20];
    size_t size;
};

static void read_it(const char *path, struct file *file)
{
    (void)snprintf(file->path, sizeof file->path, "%s", path);
    FILE *stream = fopen(file->path, "rb");
    assert_non_null(stream);
    file->size = fread(file->bytes, 1, sizeof file->bytes, stream);
    assert_int_equal(fclose(stream), 0);
}

static void find(const struct form *form, const char *with, struct file *file)
{
    char path[640];
    char newest[256] = "";
    DIR *list = opendir(form->directory);
    assert_non_null(list);
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list))
        if (strstr(entry->d_name, with) && strcmp(entry->d_name, newest) > 0 &&
            (strstr(with, ".torn") || !strstr(entry->d_name, ".torn")))
            (void)snprintf(newest, sizeof newest, "%s", entry->d_name);
    (void)closedir(list);
    (void)snprintf(path, sizeof path, "%s/%s", form->directory, newest);
    read_it(path, file);
}

static void put(const struct file *file)
{
    FILE *stream = fopen(file->path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(file->bytes, 1, file->size, stream), file->size);
    assert_int_equal(fclose(stream), 0);
}

static enum dp_status open_it(struct form *form, struct dp_error *err)
{
    form->options.journaled = true;
    return form_open(form, err);
}

/* Marks of many sectors, put one after the other, then the end of the process (for RocksDB: nothing is flushed). */
static struct form *marks_after(size_t before, struct file *log)
{
    static char first[FAR + 1];
    struct dp_error err = {0};
    struct form *form = form_new(true);
    assert_int_equal(open_it(form, &err), DP_OK);
    memset(first, 'z', before);
    first[before] = '\0';
    struct dp_store_mark mark = mark_text("before", first);
    struct dp_store_job job = marks_job(&mark, 1);
    assert_int_equal(form_do(form, &job), DP_OK);
    for (int i = 0; i < 2; i++) {
        char value[LONG + 1];
        memset(value, 'a' + i, LONG);
        value[LONG] = '\0';
        mark = mark_text(i == 0 ? "first" : "second", value);
        job = marks_job(&mark, 1);
        assert_int_equal(form_do(form, &job), DP_OK);
    }
    form_close(form, false);
    find(form, ".log", log);
    assert_true(log->size > 2 * LONG);
    return form;
}

static struct form *two_marks(struct file *log)
{
    return marks_after(1, log);
}

struct seen {
    bool first, second;
};

static enum dp_status see(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct seen *seen = context;
    (void)err;
    seen->first = seen->first || (mark->key_bytes == 5 && mark->value_bytes == LONG);
    seen->second = seen->second || (mark->key_bytes == 6 && memcmp(mark->key, "second", 6) == 0);
    return DP_OK;
}

static struct seen seen_in(struct form *form)
{
    struct dp_error err = {0};
    struct seen seen = {0};
    assert_int_equal(form->store.visit_marks(form->store.self, "", 0, see, &seen, &err), DP_OK);
    return seen;
}

static void torn_after(size_t before)
{
    static struct file log;
    size_t lost = 0, sectors = 0;
    do {
        struct form *form = marks_after(before, &log);
        struct dp_error err = {0};
        size_t from = (log.size - LONG + SECTOR - 1) / SECTOR * SECTOR;
        sectors = (log.size - from) / SECTOR;
        memset(log.bytes + from + lost * SECTOR, 0, SECTOR);
        put(&log);
        enum dp_status st = open_it(form, &err);
        if (st != DP_OK)
            fail_msg("sector %zu: %s", lost, err.text);
        assert_true(seen_in(form).first);
        assert_false(seen_in(form).second);
        form_free(form);
    } while (++lost < sectors);
    assert_true(lost > 5);
}

static void a_torn_last_write_is_cut_off(void **state)
{
    (void)state;
    torn_after(1);
}

/* Its first part is whole where only the rest, in the next block, is torn. */
static void one_over_two_blocks_too(void **state)
{
    (void)state;
    torn_after(FAR - LONG);
    torn_after(FAR - LONG - 2000);
}

/* A log with a number above that log's, as an open creates it before the manifest drops that log. */
static void put_next_log(const struct file *log, const void *bytes, size_t size)
{
    static struct file next;
    const char *name = strrchr(log->path, '/') + 1;
    next.size = size;
    memcpy(next.bytes, bytes, size);
    (void)snprintf(next.path, sizeof next.path, "%.*s%06lu.log", (int)(name - log->path), log->path,
                   strtoul(name, NULL, 10) + 5);
    put(&next);
}

/* The process died before the sync, and power was lost while the next one opened the store. */
static void a_torn_write_before_an_empty_log_is_cut_off(void **state)
{
    static struct file log;
    struct dp_error err = {0};
    struct form *form = two_marks(&log);
    (void)state;
    memset(log.bytes + (log.size - LONG + SECTOR) / SECTOR * SECTOR, 0, SECTOR);
    put(&log);
    put_next_log(&log, "", 0);
    if (open_it(form, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_true(seen_in(form).first);
    assert_false(seen_in(form).second);
    form_free(form);
}

/* Nothing is written into a log before the one before it is synced or dropped. */
static void a_lost_sector_before_a_written_log_is_refused(void **state)
{
    static struct file log, after;
    struct dp_error err = {0};
    struct form *form = two_marks(&log);
    (void)state;
    put_next_log(&log, log.bytes, log.size);
    memset(log.bytes + (log.size - LONG + SECTOR) / SECTOR * SECTOR, 0, SECTOR);
    put(&log);
    assert_int_equal(open_it(form, &err), DP_CORRUPT);
    read_it(log.path, &after);
    assert_int_equal(after.size, log.size);
    assert_memory_equal(after.bytes, log.bytes, log.size);
    form_free(form);
}

static void put_mark(struct form *form, const char *key, char fill, size_t bytes)
{
    static char value[2 * BLOCK];
    memset(value, fill, bytes);
    value[bytes] = '\0';
    struct dp_store_mark mark = mark_text(key, value);
    struct dp_store_job job = marks_job(&mark, 1);
    assert_int_equal(form_do(form, &job), DP_OK);
}

/* The last mark's record begins a block, after a trailer of 3 bytes. */
static struct form *mark_after_a_trailer(size_t bytes, struct file *log)
{
    struct dp_error err = {0};
    struct form *form = form_new(true);
    assert_int_equal(open_it(form, &err), DP_OK);
    put_mark(form, "first", 'a', LONG);
    find(form, ".log", log);
    size_t before = log->size;
    put_mark(form, "pad", 'p', LONG);
    find(form, ".log", log);
    size_t record = log->size - before - LONG; /* of a value of 128 to 16,383 bytes */
    while (BLOCK - log->size % BLOCK > 3 * LONG) {
        put_mark(form, "pad", 'p', LONG);
        find(form, ".log", log);
    }
    put_mark(form, "pad", 'p', BLOCK - log->size % BLOCK - 3 - record);
    find(form, ".log", log);
    assert_int_equal(log->size % BLOCK, BLOCK - 3);
    put_mark(form, "second", 'b', bytes);
    find(form, ".log", log);
    form_close(form, false);
    return form;
}

static void a_torn_write_after_a_trailer_is_cut_off(void **state)
{
    static struct file log;
    (void)state;
    for (int blocks = 0; blocks < 2; blocks++) { /* of its first, intact parts */
        struct dp_error err = {0};
        struct form *form = mark_after_a_trailer((size_t)blocks * BLOCK + LONG, &log);
        memset(log.bytes + (log.size - LONG + SECTOR) / SECTOR * SECTOR, 0, SECTOR);
        put(&log);
        if (open_it(form, &err) != DP_OK)
            fail_msg("%d: %s", blocks, err.text);
        assert_true(seen_in(form).first);
        assert_false(seen_in(form).second);
        form_free(form);
    }
}

static void refused(struct form *form, const struct file *file)
{
    static struct file after;
    struct dp_error err = {0};
    put(file);
    assert_int_equal(open_it(form, &err), DP_CORRUPT);
    find(form, strstr(file->path, ".log") ? ".log" : "MANIFEST", &after);
    assert_string_equal(after.path, file->path);
    assert_int_equal(after.size, file->size);
    assert_memory_equal(after.bytes, file->bytes, file->size);
    form_free(form);
}

static void rot_in_the_last_write_is_refused(void **state)
{
    static struct file log;
    (void)state;
    for (size_t back = 1; back < LONG; back += 499) {
        struct form *form = two_marks(&log);
        log.bytes[log.size - back] ^= 0x10;
        refused(form, &log);
    }
}

/* The trailer's zeros are no lost sector. */
static void rot_after_a_trailer_is_refused(void **state)
{
    static struct file log;
    struct form *form = mark_after_a_trailer(LONG, &log);
    (void)state;
    log.bytes[log.size - LONG] ^= 0x10;
    refused(form, &log);
}

static void a_lost_sector_before_the_last_write_is_refused(void **state)
{
    static struct file log;
    struct form *form = two_marks(&log);
    (void)state;
    memset(log.bytes + (log.size - 2 * LONG + SECTOR) / SECTOR * SECTOR, 0, SECTOR);
    refused(form, &log);
}

/* A manifest that ends with a record of which the second half did not arrive; or arrived and is wrong. */
static void a_torn_manifest_is_cut_off_and_a_rotten_one_refused(void **state)
{
    static struct file manifest, torn;
    (void)state;
    for (int rotten = 0; rotten < 2; rotten++) {
        struct dp_error err = {0};
        struct form *form = form_new(true);
        struct batch *batch = batch_new(40, 64);
        assert_int_equal(open_it(form, &err), DP_OK);
        batch_fill(batch, 1, 0, 3, 1);
        assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
        form_close(form, false);
        find(form, "MANIFEST", &manifest);
        unsigned char *record = manifest.bytes + manifest.size;
        memset(record, 0x5a, 7 + 2000);
        record[4] = 2000 & 255, record[5] = 2000 >> 8, record[6] = 1;
        if (!rotten)
            memset(record + 800, 0, 1207);
        manifest.size += 7 + 2000;
        if (rotten) {
            refused(form, &manifest);
        } else {
            put(&manifest);
            assert_int_equal(open_it(form, &err), DP_OK);
            find(form, "manifest.torn", &torn); /* what was cut off is kept */
            assert_int_equal(torn.size, 7 + 2000);
            assert_memory_equal(torn.bytes, record, torn.size);
            batch_fill(batch, 1, 0, 3, 0);
            assert_int_equal(form_do(form, batch_job(batch, DP_STORE_READ)), DP_OK);
            batch_expect(batch, 1);
            form_free(form);
        }
        batch_free(batch);
    }
}

static uint32_t torn_files(const struct form *form)
{
    uint32_t count = 0;
    DIR *list = opendir(form->directory);
    assert_non_null(list);
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list))
        count += strstr(entry->d_name, ".torn") != NULL;
    (void)closedir(list);
    return count;
}

static bool is_there(const struct form *form, const char *name)
{
    char path[640];
    (void)snprintf(path, sizeof path, "%s/%s", form->directory, name);
    FILE *stream = fopen(path, "rb");
    if (stream)
        (void)fclose(stream);
    return stream != NULL;
}

/* Torn again and again: what was cut off the last time is kept, and nothing of another's name goes. */
static void the_newest_of_what_was_cut_off_stays(void **state)
{
    static struct file log, torn;
    static const char *const others[] = {"notes.torn", "000001.log.torn", "MANIFEST.torn"};
    (void)state;
    struct form *form = two_marks(&log);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        static struct file other = {.size = 1};
        (void)snprintf(other.path, sizeof other.path, "%s/%s", form->directory, others[i]);
        put(&other);
    }
    for (char times = 'a'; times < 'd'; times++) {
        struct dp_error err = {0};
        struct dp_store_mark mark;
        char value[LONG + 1];
        memset(log.bytes + (log.size - LONG + SECTOR) / SECTOR * SECTOR, 0, SECTOR);
        put(&log);
        assert_int_equal(open_it(form, &err), DP_OK);
        assert_int_equal(torn_files(form), 3 + 1);
        find(form, "marks.torn", &torn);
        assert_true(torn.size > LONG && torn.size < LONG + 100);
        assert_memory_equal(torn.bytes, log.bytes + log.size - torn.size, torn.size);
        memset(value, times, LONG);
        value[LONG] = '\0';
        for (int i = 0; i < 2; i++) {
            mark = mark_text(i == 0 ? "first" : "second", value);
            struct dp_store_job job = marks_job(&mark, 1);
            assert_int_equal(form_do(form, &job), DP_OK);
        }
        form_close(form, false);
        find(form, ".log", &log);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_true(is_there(form, others[i]));
    form_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_torn_last_write_is_cut_off),
        cmocka_unit_test(one_over_two_blocks_too),
        cmocka_unit_test(a_torn_write_before_an_empty_log_is_cut_off),
        cmocka_unit_test(a_lost_sector_before_a_written_log_is_refused),
        cmocka_unit_test(a_torn_write_after_a_trailer_is_cut_off),
        cmocka_unit_test(rot_after_a_trailer_is_refused),
        cmocka_unit_test(rot_in_the_last_write_is_refused),
        cmocka_unit_test(a_lost_sector_before_the_last_write_is_refused),
        cmocka_unit_test(a_torn_manifest_is_cut_off_and_a_rotten_one_refused),
        cmocka_unit_test(the_newest_of_what_was_cut_off_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

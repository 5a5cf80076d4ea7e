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
#define LONG   5000u  /* bytes of a mark: many sectors */
#define FAR    29000u /* so many bytes before, it crosses the end of a block of RocksDB's log */

struct file {
    char path[640];
    unsigned char bytes[1u << 20];
    size_t size;
};

static void find(const struct form *form, const char *with, struct file *file)
{
    char newest[256] = "";
    DIR *list = opendir(form->directory);
    assert_non_null(list);
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list))
        if (strstr(entry->d_name, with) && strcmp(entry->d_name, newest) > 0 &&
            (strstr(with, ".torn") || !strstr(entry->d_name, ".torn")))
            (void)snprintf(newest, sizeof newest, "%s", entry->d_name);
    (void)closedir(list);
    (void)snprintf(file->path, sizeof file->path, "%s/%s", form->directory, newest);
    FILE *stream = fopen(file->path, "rb");
    assert_non_null(stream);
    file->size = fread(file->bytes, 1, sizeof file->bytes, stream);
    assert_int_equal(fclose(stream), 0);
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
    seen->second = seen->second || (mark->key_bytes == 6 && mark->value_bytes == LONG);
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
        cmocka_unit_test(rot_in_the_last_write_is_refused),
        cmocka_unit_test(a_lost_sector_before_the_last_write_is_refused),
        cmocka_unit_test(a_torn_manifest_is_cut_off_and_a_rotten_one_refused),
        cmocka_unit_test(the_newest_of_what_was_cut_off_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

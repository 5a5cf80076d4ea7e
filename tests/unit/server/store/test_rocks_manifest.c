/* RocksDB's manifest: a write that a loss of power tore is cut off; damage below the seal in the marks is refused before RocksDB sees
 * it, and all other damage by RocksDB. Method: records are put behind those of a real store, whole, torn in each sector, or rotten. */
#define _XOPEN_SOURCE 700
#include "server/store/repair/rocks_manifest.h"

#include "common/base/bytes.h"
#include "server/journal/crc32c.h"
#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTOR 512u
#define HEADER 7u
#define FULL   1u
#define LONG   2000u /* bytes of a record: several sectors */

struct file {
    char path[640];
    unsigned char bytes[1u << 18];
    size_t size;
};

static void read_it(const struct form *form, const char *name, struct file *file)
{
    (void)snprintf(file->path, sizeof file->path, "%s/%s", form->directory, name);
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

/* The manifest that CURRENT names. */
static void find(const struct form *form, struct file *manifest)
{
    static struct file current;
    read_it(form, "CURRENT", &current);
    current.bytes[current.size - 1] = '\0';
    read_it(form, (const char *)current.bytes, manifest);
}

static enum dp_status open_it(struct form *form, struct dp_error *err)
{
    form->options.journaled = true;
    return form_open(form, err);
}

static void do_rows(struct form *form, enum dp_store_job_kind kind, uint32_t version)
{
    struct batch *batch = batch_new(40, 64);
    batch_fill(batch, 1, 0, 3, version);
    assert_int_equal(form_do(form, batch_job(batch, kind)), DP_OK);
    if (kind == DP_STORE_READ)
        batch_expect(batch, version);
    batch_free(batch);
}

/* Rows, marks (so the manifest is sealed), and the end of the process. */
static struct form *sealed(struct file *manifest)
{
    struct dp_error err = {0};
    struct form *form = form_new(true);
    const struct dp_store_mark mark = mark_text("m", "1");
    struct dp_store_job job = marks_job(&mark, 1);
    assert_int_equal(open_it(form, &err), DP_OK);
    do_rows(form, DP_STORE_WRITE, 1);
    assert_int_equal(form_do(form, &job), DP_OK);
    form_close(form, false);
    find(form, manifest);
    return form;
}

/* A record behind the others, whole; RocksDB would not know it. */
static unsigned char *add(struct file *manifest)
{
    unsigned char *record = manifest->bytes + manifest->size;
    memset(record + HEADER, 0x5a, LONG);
    record[4] = LONG & 255, record[5] = LONG >> 8, record[6] = FULL;
    uint32_t crc = dp_crc32c(0, record + 6, 1 + LONG);
    dp_store_u32le(record, (crc >> 15 | crc << 17) + 0xa282ead8u);
    manifest->size += HEADER + LONG;
    return record;
}

static void opens(struct form *form)
{
    struct dp_error err = {0};
    if (open_it(form, &err) != DP_OK)
        fail_msg("%s", err.text);
    do_rows(form, DP_STORE_READ, 1);
    form_close(form, true);
}

/* In each sector that is its own; what is cut off is kept. */
static void a_torn_last_write_is_cut_off(void **state)
{
    static struct file manifest, torn;
    size_t lost = 0, sectors = 0;
    do {
        struct form *form = sealed(&manifest);
        unsigned char *record = add(&manifest);
        size_t begin = (size_t)(record - manifest.bytes), from = (begin + SECTOR - 1) / SECTOR * SECTOR;
        sectors = (manifest.size - from) / SECTOR;
        memset(manifest.bytes + from + lost * SECTOR, 0, SECTOR);
        put(&manifest);
        opens(form);
        read_it(form, "manifest.torn", &torn);
        assert_int_equal(torn.size, HEADER + LONG);
        assert_memory_equal(torn.bytes, record, torn.size);
        form_free(form);
    } while (++lost < sectors);
    assert_true(lost > 1);
}

/* Two writes that waited for one sync, the first torn and the second whole. */
static void a_whole_record_behind_a_torn_one_goes_with_it(void **state)
{
    static struct file manifest, torn;
    struct form *form = sealed(&manifest);
    unsigned char *record = add(&manifest);
    memset(record + 600, 0, 2 * SECTOR);
    (void)add(&manifest);
    put(&manifest);
    opens(form);
    read_it(form, "manifest.torn", &torn);
    assert_int_equal(torn.size, 2 * (HEADER + LONG));
    form_free(form);
}

static void refused(struct form *form, const struct file *manifest, const char *text)
{
    static struct file after;
    struct dp_error err = {0};
    struct dp_store_view *view = NULL;
    put(manifest);
    enum dp_status seen = dp_store_view_open(form->directory, NULL, &view, &err);
    assert_int_equal(seen, DP_CORRUPT);
    if (!strstr(err.text, text))
        fail_msg("no '%s' in: %s", text, err.text);
    assert_int_equal(open_it(form, &err), DP_CORRUPT);
    if (!strstr(err.text, text) || !strstr(err.text, "MANIFEST-"))
        fail_msg("no '%s' in: %s", text, err.text);
    find(form, &after);
    assert_string_equal(after.path, manifest->path);
    assert_int_equal(after.size, manifest->size);
    assert_memory_equal(after.bytes, manifest->bytes, manifest->size);
    (void)snprintf(after.path, sizeof after.path, "%s/manifest.torn", form->directory);
    assert_int_not_equal(access(after.path, F_OK), 0);
    form_free(form);
}

static void rot_in_the_last_write_is_refused(void **state)
{
    static struct file manifest;
    struct form *form = sealed(&manifest);
    add(&manifest)[LONG / 2] ^= 0x10;
    refused(form, &manifest, "checksum mismatch");
}

/* Also where RocksDB alone would take the record for a torn one, or for the log's end, and lose the rows. */
static void damage_below_the_seal_is_refused(void **state)
{
    static struct file manifest;
    static const struct {
        size_t at;
        unsigned char bit;
    } flips[] = {{0, 1}, {4, 1}, {5, 0x40}, {6, 4}, {8, 0x20}};
    for (size_t i = 0; i < sizeof flips / sizeof flips[0] + 2; i++) {
        struct form *form = sealed(&manifest);
        size_t last = 0, next = 0; /* the record of the rows */
        while (next < manifest.size) {
            last = next;
            next += HEADER + manifest.bytes[next + 4] + 256u * manifest.bytes[next + 5];
        }
        char place[64];
        (void)snprintf(place, sizeof place, "damaged at offset %zu", last);
        if (i < sizeof flips / sizeof flips[0])
            manifest.bytes[last + flips[i].at] ^= flips[i].bit;
        else if (i == sizeof flips / sizeof flips[0])
            manifest.size = last; /* it ends earlier */
        else
            memset(manifest.bytes + last, 0, manifest.size - last); /* zeros are no torn write here */
        refused(form, &manifest, place);
    }
}

/* Of another copy of the store: its rows may be older than the marks say. */
static void a_manifest_older_than_the_marks_is_refused(void **state)
{
    static struct file before, current, manifest;
    struct dp_error err = {0};
    struct form *form = sealed(&before);
    read_it(form, "CURRENT", &current);
    opens(form);
    find(form, &manifest);
    assert_string_not_equal(manifest.path, before.path);
    assert_int_equal(unlink(manifest.path), 0);
    put(&before);
    put(&current);
    assert_int_equal(open_it(form, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "older than the file 'marks'"));
    form_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_torn_last_write_is_cut_off),
        cmocka_unit_test(a_whole_record_behind_a_torn_one_goes_with_it),
        cmocka_unit_test(rot_in_the_last_write_is_refused),
        cmocka_unit_test(damage_below_the_seal_is_refused),
        cmocka_unit_test(a_manifest_older_than_the_marks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal: idx files are read to the byte; each wrong byte count, magic or size is refused with its place.
 * Method: every truncation of a small file. */
#include "worker/read/idx.h"

#include "common/base/bytes.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum dp_status read_images(const char *path, struct dp_idx_images *images, struct dp_error *err)
{
    struct dp_unpack *unpack;
    assert_int_equal(dp_unpack_open(path, &unpack, err), DP_OK);
    enum dp_status st = dp_idx_read_images(unpack, images, err);
    dp_unpack_close(&unpack);
    return st;
}

static enum dp_status read_labels(const char *path, uint32_t count, uint8_t **labels, struct dp_error *err)
{
    struct dp_unpack *unpack;
    assert_int_equal(dp_unpack_open(path, &unpack, err), DP_OK);
    enum dp_status st = dp_idx_read_labels(unpack, count, labels, err);
    dp_unpack_close(&unpack);
    return st;
}

static void round_trips(void **state)
{
    size_t images_len, labels_len;
    uint8_t *images = make_images(700, 40, 30, &images_len), *labels = make_labels(700, 10, &labels_len);
    for (int p = 0; p < PACKINGS; p++) {
        struct dp_error err = {0};
        struct dp_idx_images got;
        uint8_t *got_labels;
        const char *path = write_packed(*state, "images", (enum packing)p, images, images_len);
        assert_int_equal(read_images(path, &got, &err), DP_OK);
        assert_true(got.count == 700 && got.rows == 40 && got.columns == 30);
        assert_memory_equal(got.pixels, images + 16, images_len - 16);
        free(got.pixels);
        path = write_packed(*state, "labels", (enum packing)p, labels, labels_len);
        assert_int_equal(read_labels(path, 700, &got_labels, &err), DP_OK);
        assert_memory_equal(got_labels, labels + 8, 700);
        free(got_labels);
    }
    free(images);
    free(labels);
}

static void every_truncation(void **state)
{
    size_t images_len, labels_len;
    uint8_t *images = make_images(3, 4, 5, &images_len), *labels = make_labels(9, 10, &labels_len);
    char place[64];
    for (size_t cut = 0; cut < images_len; cut++) {
        struct dp_error err = {0};
        struct dp_idx_images got;
        const char *path = write_file(*state, "file", images, cut);
        (void)snprintf(place, sizeof place, "file: byte %zu: file ends", cut);
        if (read_images(path, &got, &err) != DP_DATA || !strstr(err.text, place))
            fail_msg("cut at %zu: '%s'", cut, err.text);
        assert_null(got.pixels);
    }
    for (size_t cut = 0; cut < labels_len; cut++) {
        struct dp_error err = {0};
        uint8_t *got;
        const char *path = write_file(*state, "file", labels, cut);
        (void)snprintf(place, sizeof place, "file: byte %zu: file ends", cut);
        if (read_labels(path, 9, &got, &err) != DP_DATA || !strstr(err.text, place))
            fail_msg("cut at %zu: '%s'", cut, err.text);
        assert_null(got);
    }
    free(images);
    free(labels);
}

static void expect_images(struct test_dir *dir, const uint8_t *file, size_t len, const char *why)
{
    struct dp_error err = {0};
    struct dp_idx_images got;
    if (read_images(write_file(dir, "file", file, len), &got, &err) != DP_DATA || !strstr(err.text, why))
        fail_msg("expected '%s': '%s'", why, err.text);
    assert_null(got.pixels);
}

static void bad_headers(void **state)
{
    size_t len;
    uint8_t *file = make_images(3, 4, 5, &len);
    file = realloc(file, len + 1);
    assert_non_null(file);
    file[len] = 0;
    expect_images(*state, file, len + 1, "file: byte 76: expected the end of the file");
    dp_store_u32be(file, 0x801);
    expect_images(*state, file, len, "byte 0: expected the magic number 0x00000803");
    dp_store_u32be(file, 0xd03); /* floats */
    expect_images(*state, file, len, "found 0x00000d03");
    dp_store_u32be(file, 0x803);
    dp_store_u32be(file + 4, 0);
    expect_images(*state, file, len, "byte 4: expected at least one image");
    /* Claims of far more than there is cost no memory. */
    dp_store_u32be(file + 4, UINT32_MAX);
    expect_images(*state, file, len, "byte 76: file ends");
    dp_store_u32be(file + 8, 0);
    expect_images(*state, file, len, "byte 8: expected images of 1 to");
    dp_store_u32be(file + 8, UINT32_MAX);
    expect_images(*state, file, len, "byte 8: expected images of 1 to");
    free(file);
    struct dp_error err = {0};
    uint8_t *got;
    file = make_labels(9, 10, &len);
    assert_int_equal(read_labels(write_file(*state, "file", file, len), 8, &got, &err), DP_DATA);
    assert_non_null(strstr(err.text, "byte 4: expected 8 labels, one an image, found 9"));
    dp_store_u32be(file + 4, 8);
    assert_int_equal(read_labels(write_file(*state, "file", file, len), 8, &got, &err), DP_DATA);
    assert_non_null(strstr(err.text, "byte 16: expected the end"));
    free(file);
}

static int setup(void **state)
{
    static struct test_dir dir;
    test_dir_open(&dir);
    *state = &dir;
    return 0;
}

static int teardown(void **state)
{
    test_dir_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trips), cmocka_unit_test(every_truncation),
                                       cmocka_unit_test(bad_headers)};
    return cmocka_run_group_tests_name("idx", tests, setup, teardown);
}

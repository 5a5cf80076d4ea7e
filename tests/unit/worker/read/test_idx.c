/* Goal: idx files are read to the byte; each wrong byte count, magic or size is refused with its place.
 * Method: every truncation of a small file. What is read right is in test_dataset. */
#include "common/base/bytes.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refused(const uint8_t *images, size_t images_len, const uint8_t *labels, size_t labels_len,
                    const char *why)
{
    struct dp_error err = {0};
    struct dp_dataset *dataset = NULL;
    (void)write_file("labels-idx1", labels, labels_len);
    const char *path = write_file("images-idx3", images, images_len);
    const struct dp_dataset_options options = {.path = path,
                                               .format = "idx",
                                               .labels = DP_LABELS_CLASS,
                                               .classes = 10,
                                               .form = DP_FORM_DENSE,
                                               .width = 20,
                                               .batch = 2};
    if (dp_dataset_open(&options, &dataset, &err) != DP_DATA || !strstr(err.text, why))
        fail_msg("expected '%s': '%s'", why, err.text);
    assert_null(dataset);
}

static void every_truncation(void **state)
{
    size_t images_len, labels_len;
    uint8_t *images = make_images(3, 4, 5, &images_len), *labels = make_labels(3, 10, &labels_len);
    char place[64];
    for (size_t cut = 1; cut < images_len; cut++) {
        (void)snprintf(place, sizeof place, "images-idx3: byte %zu: file ends", cut);
        refused(images, cut, labels, labels_len, place);
    }
    for (size_t cut = 0; cut < labels_len; cut++) {
        (void)snprintf(place, sizeof place, "labels-idx1: byte %zu: file ends", cut);
        refused(images, images_len, labels, cut, place);
    }
    free(images);
    free(labels);
}

static void bad_headers(void **state)
{
    static const struct {
        size_t at; /* in the images; 100 and more: in the labels */
        uint32_t number;
        const char *why;
    } cases[] = {
        {0, 0x801, "images-idx3: byte 0: expected the magic number 0x00000803"},
        {0, 0xd03, "found 0x00000d03"}, /* floats */
        {4, 0, "byte 4: expected at least one image"},
        {4, 2, "byte 56: expected the end of the file"},
        {4, UINT32_MAX, "byte 76: file ends"}, /* claims of far more than there is cost no memory */
        {8, 0, "byte 8: images are 0 x 5"},
        {8, UINT32_MAX, "byte 8: images are 4294967295 x 5"},
        {100, 0x803, "labels-idx1: byte 0: expected the magic number 0x00000801"},
        {104, 2, "labels-idx1: byte 4: expected 3 labels, one an image, found 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t images_len, labels_len;
        uint8_t *images = make_images(3, 4, 5, &images_len), *labels = make_labels(3, 10, &labels_len);
        uint8_t *at = cases[i].at < 100 ? images + cases[i].at : labels + cases[i].at - 100;
        dp_store_u32be(at, cases[i].number);
        refused(images, images_len, labels, labels_len, cases[i].why);
        free(images);
        free(labels);
    }
    size_t images_len, labels_len;
    uint8_t *images = make_images(3, 4, 5, &images_len), *labels = make_labels(4, 10, &labels_len);
    dp_store_u32be(labels + 4, 3);
    refused(images, images_len, labels, labels_len, "labels-idx1: byte 11: expected the end");
    free(images);
    free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FILES_TEST(every_truncation), FILES_TEST(bad_headers)};
    return cmocka_run_group_tests_name("idx", tests, NULL, NULL);
}

/* Goal: what fill gives is right, and a function of (data, options, epoch, number) alone.
 * Method: a generated data set whose examples name themselves in their labels, so that a batch can be compared with
 * the rule. */
#include "worker/read/dataset.h"

#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLES 257u

/* The rule: example i has label i and i % 13 entries, in falling order of index; index and value follow. */
static uint32_t rule_entries(uint32_t i)
{
    return i % 13;
}

static uint64_t rule_index(uint32_t i, uint32_t j)
{
    return (uint64_t)(rule_entries(i) - j) * (i % 3 + 1);
}

static float rule_value(uint32_t i, uint32_t j)
{
    return (float)(i % 5) * 0.25f - (float)j;
}

static char *rule_text(size_t *len)
{
    char *text = malloc(EXAMPLES * 13 * 32);
    assert_non_null(text);
    *len = 0;
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        *len += (size_t)sprintf(text + *len, "%u", i);
        for (uint32_t j = 0; j < rule_entries(i); j++)
            *len += (size_t)sprintf(text + *len, " %lu:%g", (unsigned long)rule_index(i, j),
                                    (double)rule_value(i, j));
        *len += (size_t)sprintf(text + *len, "\n");
    }
    return text;
}

static struct dp_dataset_options options_of(const char *path)
{
    return (struct dp_dataset_options){.path = path, .form = DP_FORM_SPARSE, .scale = 1, .batch = 10};
}

/* The batch against the rule, entry by entry. */
static void check_sparse(const struct dp_batch *b)
{
    assert_int_equal(b->list[0].offsets[0], 0);
    for (uint32_t d = 1; d < b->group[0].distinct; d++)
        assert_true(b->group[0].keys[d - 1] < b->group[0].keys[d]);
    for (uint32_t e = 0; e < b->examples; e++) {
        uint32_t i = (uint32_t)b->labels[e];
        assert_int_equal(b->list[0].offsets[e + 1] - b->list[0].offsets[e], rule_entries(i));
        for (uint32_t j = 0; j < rule_entries(i); j++) {
            uint32_t at = b->list[0].offsets[e] + j;
            assert_true(b->list[0].slots[at] < b->group[0].distinct);
            assert_true(b->group[0].keys[b->list[0].slots[at]] == dp_mix(rule_index(i, j)));
            assert_true(b->list[0].values[at] == rule_value(i, j));
        }
    }
}

static void every_packing_and_batch_size(void **state)
{
    size_t len;
    char *text = rule_text(&len);
    uint64_t digest = 0;
    static const uint32_t sizes[] = {1, 2, 7, 64, 256, 257, 258, 100000, UINT32_MAX};
    for (int p = 0; p < PACKINGS; p++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            struct dp_dataset_options options = options_of(write_packed("file", (enum packing)p, text, len));
            options.batch = sizes[s];
            options.shuffle = s % 2 == 0;
            options.seed = s;
            struct dp_dataset *dataset = formats_open(&options);
            digest = digest ? digest : dp_dataset_digest(dataset);
            assert_true(dp_dataset_digest(dataset) == digest);
            assert_int_equal(dp_dataset_examples(dataset), EXAMPLES);
            assert_int_equal(dp_dataset_batches(dataset), (EXAMPLES + (uint64_t)sizes[s] - 1) / sizes[s]);
            struct dp_batch *batch = formats_batch(dataset);
            for (uint32_t epoch = 0; epoch < 3; epoch++) {
                int seen[EXAMPLES] = {0};
                uint64_t at = 0;
                for (uint64_t n = 0; n < dp_dataset_batches(dataset); n++) {
                    dp_dataset_fill(dataset, epoch, n, batch);
                    assert_true(batch->epoch == epoch && batch->number == n);
                    check_sparse(batch);
                    for (uint32_t e = 0; e < batch->examples; e++, at++) {
                        seen[(uint32_t)batch->labels[e]]++;
                        assert_true((uint64_t)batch->labels[e] == dp_dataset_example_at(dataset, epoch, at));
                    }
                }
                for (uint32_t i = 0; i < EXAMPLES; i++)
                    assert_int_equal(seen[i], 1);
            }
        }
    free(text);
}

static void order_by_seed_and_epoch(void **state)
{
    size_t len;
    char *text = rule_text(&len);
    struct dp_dataset_options options = options_of(write_file("file", text, len));
    struct dp_dataset *plain = formats_open(&options);
    options.shuffle = true;
    struct dp_dataset *a = formats_open(&options), *b = formats_open(&options);
    options.seed = 1;
    struct dp_dataset *other = formats_open(&options);
    uint64_t same_epochs = 0, same_seeds = 0, in_place = 0;
    for (uint64_t i = 0; i < EXAMPLES; i++) {
        assert_true(dp_dataset_example_at(a, 4, i) == dp_dataset_example_at(b, 4, i));
        assert_true(dp_dataset_example_at(plain, 4, i) == i);
        same_epochs += dp_dataset_example_at(a, 4, i) == dp_dataset_example_at(a, 5, i);
        same_seeds += dp_dataset_example_at(a, 4, i) == dp_dataset_example_at(other, 4, i);
        in_place += dp_dataset_example_at(a, 4, i) == i;
    }
    assert_true(same_epochs < 12 && same_seeds < 12 && in_place < 12);
    free(text);
}

static void any_order_any_thread(void **state)
{
    size_t len;
    char *text = rule_text(&len);
    struct dp_dataset_options options = options_of(NULL);
    options.shuffle = true;
    formats_check(options, text);
    free(text);
}

static void worst_batch(void **state)
{
    size_t len;
    char *text = rule_text(&len);
    uint32_t sizes[EXAMPLES];
    for (uint32_t i = 0; i < EXAMPLES; i++)
        sizes[i] = rule_entries(i);
    for (uint32_t i = 0; i < EXAMPLES; i++)
        for (uint32_t j = i; j > 0 && sizes[j] > sizes[j - 1]; j--) {
            uint32_t t = sizes[j];
            sizes[j] = sizes[j - 1];
            sizes[j - 1] = t;
        }
    const char *path = write_file("file", text, len);
    for (uint32_t batch = 1, sum = 0; batch <= EXAMPLES; batch++) {
        struct dp_dataset_options options = options_of(path);
        options.batch = batch;
        struct dp_dataset *dataset = formats_open(&options);
        sum += sizes[batch - 1];
        assert_int_equal(dp_dataset_shape(dataset)->list[0].entries, sum);
    }
    free(text);
}

static void dense_columns(void **state)
{
    struct dp_dataset_options options = options_of(write_text("file", "5 1:1 3:-2\n6\n7 4:8 2:0.5\n"));
    options.form = DP_FORM_DENSE;
    options.width = 4;
    options.index_base = 1;
    options.scale = 0.5;
    options.batch = 2;
    static const float want[3][4] = {{0.5f, 0, -1, 0}, {0, 0, 0, 0}, {0, 0.25f, 0, 4}};
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *batch = formats_batch(dataset);
    /* Twice, backwards: nothing of an earlier batch may stay. */
    for (int n = 3; n >= 0; n--) {
        dp_dataset_fill(dataset, 0, (uint64_t)n % 2, batch);
        assert_int_equal(batch->examples, n % 2 ? 1 : 2);
        assert_int_equal(batch->width, 4);
        assert_memory_equal(batch->dense, want[n % 2 ? 2 : 0], batch->examples * sizeof want[0]);
    }
}

static void scale_and_normalize(void **state)
{
    struct dp_dataset_options options = options_of(write_text("file", "1 1:3 2:-4\n2 1:0\n3\n"));
    options.scale = 2;
    struct dp_dataset *scaled = formats_open(&options);
    options.normalize = true;
    struct dp_dataset *unit = formats_open(&options);
    assert_true(dp_dataset_digest(scaled) == dp_dataset_digest(unit));
    struct dp_batch *batch = formats_filled(scaled, 0, 0);
    assert_true(batch->list[0].values[0] == 6 && batch->list[0].values[1] == -8 &&
                batch->list[0].values[2] == 0);
    dp_dataset_fill(unit, 0, 0, batch);
    assert_true(batch->list[0].values[0] == 0.6f && batch->list[0].values[1] == -0.8f &&
                batch->list[0].values[2] == 0);
}

static struct dp_dataset_options idx_options(enum packing packing)
{
    size_t len;
    uint8_t *images = make_images(50, 3, 4, &len);
    const char *path = write_packed("t-images-idx3-ubyte", packing, images, len);
    free(images);
    uint8_t *labels = make_labels(50, 10, &len);
    (void)write_packed("t-labels-idx1-ubyte", packing, labels, len);
    free(labels);
    return (struct dp_dataset_options){.path = path,
                                       .labels = DP_LABELS_CLASS,
                                       .classes = 10,
                                       .form = DP_FORM_DENSE,
                                       .width = 12,
                                       .scale = 1 / 255.0,
                                       .batch = 7,
                                       .shuffle = true};
}

static void idx_images(void **state)
{
    for (int p = 0; p < PACKINGS; p++)
        for (int normalize = 0; normalize < 2; normalize++) {
            struct dp_dataset_options options = idx_options((enum packing)p);
            options.normalize = normalize;
            struct dp_dataset *dataset = formats_open(&options);
            assert_int_equal(dp_dataset_examples(dataset), 50);
            assert_int_equal(dp_dataset_shape(dataset)->lists, 0);
            struct dp_batch *batch = formats_batch(dataset);
            uint64_t at = 0;
            for (uint64_t n = 0; n < dp_dataset_batches(dataset); n++) {
                dp_dataset_fill(dataset, 1, n, batch);
                for (uint32_t e = 0; e < batch->examples; e++) {
                    uint64_t i = dp_dataset_example_at(dataset, 1, at++);
                    double squares = 0;
                    assert_true((uint64_t)batch->labels[e] == i % 10);
                    for (uint64_t k = 0; k < 12; k++) {
                        double pixel = (double)((i * 7 + k * 3) % 256) / 255.0;
                        double got = (double)batch->dense[e * 12 + k];
                        squares += got * got;
                        assert_true(normalize || fabs(got - pixel) < 1e-7);
                    }
                    assert_true(!normalize || fabs(squares - 1) < 1e-6);
                }
            }
            assert_int_equal(at, 50);
        }
}

static void expect(const struct dp_dataset_options *options, enum dp_status want, const char *why)
{
    struct dp_error err = {0};
    struct dp_dataset *dataset = (void *)&err;
    enum dp_status st = dp_dataset_open(options, &dataset, &err);
    if (st != want || !strstr(err.text, why))
        fail_msg("expected %d '%s', got %d '%s'", (int)want, why, (int)st, err.text);
    assert_null(dataset);
}

/* To be scored, images need no labels, whatever their name. And a scale of 0 is what the format has. */
static void idx_images_without_labels(void **state)
{
    struct dp_dataset_options options = idx_options(PACK_PLAIN);
    size_t len;
    uint8_t *images = make_images(50, 3, 4, &len);
    options.path = write_file("digits", images, len);
    options.shuffle = false;
    options.scale = 0;
    options.labels = DP_LABELS_ANY;
    expect(&options, DP_ARGUMENT, "name its labels file too");
    options.scored = true;
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *batch = formats_batch(dataset);
    assert_int_equal(dp_dataset_examples(dataset), 50);
    dp_dataset_fill(dataset, 0, 3, batch);
    for (uint32_t e = 0; e < batch->examples; e++) {
        assert_true(batch->labels[e] == 0);
        for (uint32_t k = 0; k < 12; k++)
            assert_true(batch->dense[e * 12 + k] == (float)(images[16 + (21 + e) * 12 + k] * (1 / 255.0)));
    }
    free(images);
    options.labels_path = "/nowhere-at-all"; /* but what is named must be there */
    expect(&options, DP_IO, "/nowhere-at-all");
    /* Of text: 1. */
    options = options_of(write_text("file", "1 1:5\n"));
    options.scale = 0;
    dataset = formats_open(&options);
    batch = formats_filled(dataset, 0, 0);
    assert_true(batch->list[0].values[0] == 5);
}

static void bad_idx(void **state)
{
    struct dp_dataset_options options = idx_options(PACK_PLAIN);
    options.width = 13;
    expect(&options, DP_DATA, "images are 3 x 4, but the model takes 13 columns");
    options.width = 12;
    options.classes = 5;
    expect(&options, DP_DATA, "t-labels-idx1-ubyte: byte 13: label 5: expected a class from 0 to 4");
    options.classes = 10;
    options.form = DP_FORM_SPARSE;
    expect(&options, DP_ARGUMENT, "gives no lists of features");
    options.form = DP_FORM_DENSE;
    options.scale = 1e38;
    expect(&options, DP_ARGUMENT, "infinite");
    options.scale = 1;
    options.labels_path = options.path;
    expect(&options, DP_DATA, "magic number 0x00000801");
    size_t len;
    uint8_t *labels = make_labels(49, 10, &len);
    options.labels_path = write_file("labels", labels, len);
    free(labels);
    expect(&options, DP_DATA, "labels: byte 4: expected 50 labels");
    options.labels_path = "/nonexistent";
    expect(&options, DP_IO, "/nonexistent: cannot open");
    options.labels_path = NULL;
    uint8_t *images = make_images(2, 3, 4, &len);
    options.path = write_file("pictures", images, len);
    free(images);
    expect(&options, DP_ARGUMENT, "pictures: is an idx file of images: name its labels file");
}

static void bad_text(void **state)
{
    static const struct {
        const char *text;
        enum dp_labels labels;
        enum dp_data_form form;
        const char *why;
    } cases[] = {
        {"", DP_LABELS_ANY, DP_FORM_SPARSE, "/file: is empty"},
        {"\n# x\n", DP_LABELS_ANY, DP_FORM_SPARSE, "/file: holds no examples"},
        {"1 1:1\n1 x\n", DP_LABELS_ANY, DP_FORM_SPARSE, "/file:2: expected index:value"},
        {"1 1:1\n0 1:1\n2 1:1\n", DP_LABELS_BINARY, DP_FORM_SPARSE, "/file:3: label 2"},
        {"1 1:1\n-1 1:1\n\n0 1:1\n", DP_LABELS_BINARY, DP_FORM_SPARSE, "/file:4: label 0: the file has both"},
        {"0 1:1\n3 1:1\n", DP_LABELS_CLASS, DP_FORM_SPARSE, "/file:2: label 3: expected a class from 0 to 2"},
        {"0.5 1:1\n", DP_LABELS_CLASS, DP_FORM_SPARSE, "/file:1: label 0.5"},
        {"1 1:1 4:1\n1 5:1", DP_LABELS_ANY, DP_FORM_DENSE, "/file:2: index 5: expected 1 to 4"},
        {"1 0:1\n", DP_LABELS_ANY, DP_FORM_DENSE, "/file:1: index 0: expected 1 to 4"},
        {"1 1:1e30\n1 2:3e38\n", DP_LABELS_ANY, DP_FORM_SPARSE,
         "/file:2: value 3e+38 of index 2 is infinite"},
        {"1 9223372036854775808:1\n", DP_LABELS_ANY, DP_FORM_SPARSE, "/file:1: expected an index below"},
        {"1 1:nan\n", DP_LABELS_ANY, DP_FORM_SPARSE, "/file:1: expected index:value with a finite"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int p = 0; p < PACKINGS; p++) {
            struct dp_dataset_options options =
                options_of(write_packed("file", (enum packing)p, cases[i].text, strlen(cases[i].text)));
            options.labels = cases[i].labels;
            options.classes = 3;
            options.form = cases[i].form;
            options.width = 4;
            options.index_base = 1;
            options.scale = 2;
            expect(&options, DP_DATA, cases[i].why);
        }
}

/* A hole that a crash left is no file of images. */
static void holes(void **state)
{
    static const char zeros[64];
    for (int form = DP_FORM_SPARSE; form <= DP_FORM_DENSE; form++) {
        struct dp_dataset_options options = options_of(write_file("file", zeros, sizeof zeros));
        options.form = (enum dp_data_form)form;
        options.width = 4;
        expect(&options, DP_DATA, "/file:1: byte 1 of the line is NUL");
    }
}

static void bad_options(void **state)
{
    struct dp_dataset_options good = options_of(write_text("file", "1 1:1\n")), options = good;
    options.batch = 0;
    expect(&options, DP_ARGUMENT, "minibatch of 0");
    options = good;
    options.scale = (double)NAN;
    expect(&options, DP_ARGUMENT, "scale");
    options = good;
    options.form = DP_FORM_DENSE;
    expect(&options, DP_ARGUMENT, "0 columns");
    options = good;
    options.labels = DP_LABELS_CLASS;
    expect(&options, DP_ARGUMENT, "0 classes");
    options.classes = (1 << 24) + 1;
    expect(&options, DP_ARGUMENT, "classes");
    options = good;
    options.path = NULL;
    expect(&options, DP_ARGUMENT, "no data file");
    options.path = "/nonexistent";
    expect(&options, DP_IO, "/nonexistent");
    options = good;
    options.labels_path = "labels";
    expect(&options, DP_ARGUMENT, "leave out");
}

/* Cut anywhere, a packed data set never opens, except where only the line of a plain prefix is left. */
static void truncated_anywhere(void **state)
{
    size_t len, packed_len;
    char *text = rule_text(&len);
    len = 1500;
    for (int p = 1; p < PACK_ZIP; p++) { /* what is cut of a zip may be only its directory, after the data */
        uint8_t *packed = pack((enum packing)p, text, len, &packed_len);
        for (size_t cut = 0; cut < packed_len; cut++) {
            struct dp_dataset_options options = options_of(write_file("file", packed, cut));
            expect(&options, DP_DATA, options.path);
        }
        free(packed);
    }
    free(text);
}

static void digest_tells_apart(void **state)
{
    static const char *const texts[] = {"1 1:1\n1 2:1\n", "1 2:1\n1 1:1\n", "1 1:1 2:1\n1\n",
                                        "1 1:2\n1 2:1\n", "0 1:1\n1 2:1\n", "1 1:1\n1 3:1\n"};
    uint64_t digests[6];
    for (int i = 0; i < 6; i++) {
        struct dp_dataset_options options = options_of(write_text("file", texts[i]));
        struct dp_dataset *dataset = formats_open(&options);
        digests[i] = dp_dataset_digest(dataset);
        for (int j = 0; j < i; j++)
            assert_true(digests[i] != digests[j]);
    }
    struct dp_dataset_options options = options_of(write_text("file", "# c\r\n1 1:1.0\r\n+1\t2:1e0"));
    struct dp_dataset *same = formats_open(&options);
    assert_true(dp_dataset_digest(same) == digests[0]);
}

/* 2^64 bytes: refused by arithmetic, before any memory is touched. */
static void batch_without_memory(void **state)
{
    struct dp_error err = {0};
    struct dp_batch *batch = (void *)&err;
    struct dp_batch_shape shape = {.examples = 1u << 31, .width = 1u << 31};
    assert_int_equal(dp_batch_reserve(&shape, &batch, &err), DP_NOMEM);
    assert_non_null(strstr(err.text, "18446744073709551615 bytes"));
    assert_null(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(every_packing_and_batch_size),
        FILES_TEST(order_by_seed_and_epoch),
        FILES_TEST(any_order_any_thread),
        FILES_TEST(worst_batch),
        FILES_TEST(dense_columns),
        FILES_TEST(scale_and_normalize),
        FILES_TEST(idx_images),
        FILES_TEST(idx_images_without_labels),
        FILES_TEST(bad_idx),
        FILES_TEST(bad_text),
        FILES_TEST(holes),
        FILES_TEST(bad_options),
        FILES_TEST(truncated_anywhere),
        FILES_TEST(digest_tells_apart),
        FILES_TEST(batch_without_memory),
    };
    return cmocka_run_group_tests_name("dataset", tests, NULL, NULL);
}

/* Goal: a CSV's numbers are standardized by its training file, everywhere in the same way: known values, and a row's bits do not
 * depend on the file that it stands in, on a cache, or on where the schema comes from. Method: files written by hand; a column's
 * mean and deviation by long double. */
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dp_dataset_options options_of(enum dp_data_form form, uint32_t width)
{
    return (struct dp_dataset_options){.form = form,
                                       .labels = DP_LABELS_BINARY,
                                       .width = width,
                                       .label = "y",
                                       .standardize = true,
                                       .batch = 4096};
}

/* Columns around 1, of 1e5, a constant, and missing numbers. */
static void known_values(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_DENSE, 4);
    options.path = write_text(
        "t", "y,a,b,c,d\n1,1,100000,0.1,7\n0,3,300000,0.1,\n1,1,300000,0.1,9\n0,3,100000,0.1,NA\n");
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *batch = formats_filled(dataset, 0, 0);
    static const float want[] = {-1, -1, 0, -1, 1, 1, 0, 0, -1, 1, 0, 1, 1, -1, 0, 0};
    assert_memory_equal(batch->dense, want, sizeof want);
    const struct dp_schema *schema = dp_dataset_schema(dataset);
    assert_true(schema->standardized);
    assert_true(schema->column[2].mean == 200000 && schema->column[2].deviation == 100000);
    assert_true(schema->column[3].deviation == 0);
    uint64_t digest = dp_dataset_digest(dataset);
    options.scale = 0.5; /* comes behind it */
    dataset = formats_open(&options);
    batch = formats_filled(dataset, 0, 0);
    assert_true(batch->dense[0] == -0.5f);
    options.scale = 0;
    options.standardize = false;
    dataset = formats_open(&options);
    batch = formats_filled(dataset, 0, 0);
    assert_true(batch->dense[1] == 100000 && batch->dense[2] == 0.1f);
    assert_false(dp_dataset_schema(dataset)->standardized);
    assert_int_equal(dp_dataset_digest(dataset), digest); /* the file says the same */
    /* A missing number, and one at the mean, is no feature with a weight. */
    options = options_of(DP_FORM_SPARSE, 0);
    options.path = write_text("t", "y,a\n1,1\n0,\n1,3\n");
    dataset = formats_open(&options);
    batch = formats_filled(dataset, 0, 0);
    assert_int_equal(batch->list[0].offsets[1], 1);
    assert_int_equal(batch->list[0].offsets[2], 1);
    assert_int_equal(batch->list[0].offsets[3], 2);
}

/* Seconds since 1970 within a minute, which f32 cannot tell apart, and numbers at the ends of f32. */
static void wide_numbers(void **state)
{
    enum { ROWS = 1000 };
    static char text[ROWS * 64];
    long double sum[3] = {0}, squares[3] = {0};
    static double x[ROWS][3];
    size_t len = (size_t)snprintf(text, sizeof text, "y,time,huge,tiny\n");
    for (int i = 0; i < ROWS; i++) {
        x[i][0] = 1700000000 + i % 60;
        x[i][1] = (i % 2 ? -3e38 : 3e38) / (1 + i % 5);
        x[i][2] = i % 7 * 1e-44;
        for (int c = 0; c < 3; c++)
            sum[c] += (long double)x[i][c];
        len += (size_t)snprintf(text + len, sizeof text - len, "%d,%.17g,%.17g,%.17g\n", i % 2, x[i][0],
                                x[i][1], x[i][2]);
    }
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < 3; c++) {
            long double d = (long double)x[i][c] - sum[c] / ROWS;
            squares[c] += d * d;
        }
    struct dp_dataset_options options = options_of(DP_FORM_DENSE, 3);
    options.path = write_text("t", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *batch = formats_filled(dataset, 0, 0);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < 3; c++) {
            double want = (double)(((long double)x[i][c] - sum[c] / ROWS) / sqrtl(squares[c] / ROWS));
            if (!(fabs((double)batch->dense[3 * i + c] - want) <= 1e-6 * (1 + fabs(want))))
                fail_msg("row %d, column %d: %g, not %g", i, c, (double)batch->dense[3 * i + c], want);
        }
}

static const char *write_rows(const char *name)
{
    char text[4096];
    size_t len = (size_t)snprintf(text, sizeof text, "y,a,b,c\n");
    for (int i = 0; i < 50; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%d,%d.%d,%s,%d\n", i % 2, i, i % 3,
                                i % 4 ? "x" : "", i * i * 1000);
    return write_text(name, text);
}

/* Of all files and ways a row has the bits that it has in training. */
static void one_row_has_one_value(void **state)
{
    struct dp_error err = {0};
    char *text = NULL;
    const char *train = write_rows("train"), *again = write_rows("again");
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE, 0);
    options.path = train;
    struct dp_dataset *a = formats_open(&options), *b;
    assert_int_equal(dp_schema_write(dp_dataset_schema(a), &text, &err), DP_OK);
    const char *kept = write_text("kept", text);
    for (int way = 0; way < 6; way++) {
        struct dp_dataset_options other = options;
        other.path = way == 0 || way == 4 ? train : again;
        other.cache = way >= 2 ? files_dir : NULL;
        other.like = way != 1 && way != 0 && way != 4 ? dp_dataset_schema(a) : NULL;
        other.columns_path = way == 1 ? kept : NULL;
        for (int open = 0; open < 2; open++) { /* the second out of the cache */
            b = formats_open(&other);
            formats_same(a, b, 0);
            free(text);
            assert_int_equal(dp_schema_write(dp_dataset_schema(b), &text, &err), DP_OK);
            struct dp_schema schema;
            assert_int_equal(dp_schema_parse("text", text, strlen(text), &schema, &err), DP_OK);
            assert_true(schema.standardized && schema.column[1].mean == dp_dataset_schema(a)->column[1].mean);
            dp_schema_clear(&schema);
        }
    }
    free(text);
}

/* A cache of one setting, or of one training file's schema, is not another's. */
static void caches_are_told_apart(void **state)
{
    static const float want[] = {4, -2, 5};
    for (int i = 0; i < 3; i++) {
        struct dp_dataset_options options = options_of(DP_FORM_DENSE, 1);
        options.cache = files_dir;
        options.standardize = i != 2;
        options.path = write_text("train", i == 1 ? "y,a\n1,6\n0,8\n" : "y,a\n1,0\n0,2\n");
        struct dp_dataset *a = formats_open(&options);
        options.like = dp_dataset_schema(a);
        options.path = write_text("test", "y,a\n1,5\n");
        struct dp_dataset *b = formats_open(&options);
        struct dp_batch *batch = formats_filled(b, 0, 0);
        assert_true(batch->dense[0] == want[i]);
    }
}

/* Both parts of a file are standardized by all of it. */
static void a_share_is_of_the_whole_file(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE, 0);
    options.path = write_rows("train");
    struct dp_dataset *all = formats_open(&options);
    options.held_out = 0.3;
    for (int held = 0; held < 2; held++) {
        options.held = held;
        struct dp_dataset *part = formats_open(&options);
        assert_true(dp_dataset_schema(part)->column[3].mean == dp_dataset_schema(all)->column[3].mean);
    }
}

/* Far outside of what was trained on a value may have none in f32: the line says so. Where a column was constant it has one: 0. */
static void far_values(void **state)
{
    struct dp_error err = {0};
    struct dp_dataset *b = NULL;
    struct dp_dataset_options options = options_of(DP_FORM_DENSE, 2);
    options.path = write_text("train", "y,a,b\n1,1,5\n0,1.0000000001,5\n");
    struct dp_dataset *a = formats_open(&options);
    options.like = dp_dataset_schema(a);
    options.path = write_text("test", "y,a,b\n1,1,-3e38\n1,2,5\n0,3e38,5\n");
    assert_int_equal(dp_dataset_open(&options, &b, &err), DP_DATA);
    assert_non_null(strstr(err.text, "/test:4: column 'a'"));
    assert_non_null(strstr(err.text, "deviations away from the training file's mean"));
    assert_non_null(strstr(err.text, "--standardize no (data.standardize)"));
    options.path = write_text("test", "y,a,b\n1,1,-3e38\n1,2,5\n");
    b = formats_open(&options);
    struct dp_batch *batch = formats_filled(b, 0, 0);
    assert_true(batch->dense[1] == 0 && batch->dense[3] == 0 && isfinite(batch->dense[2]));
    formats_refused(options_of(DP_FORM_DENSE, 2), "y,a,b\n1,1,5\n0,1e39,5\n", 3, DP_DATA,
                    "expected a number in the range of f32");
}

/* Labels of a regression, in the training file, one read like it, a later one, and those of older builds. */
static void labels_of_a_regression(void **state)
{
    struct dp_dataset_options options = {
        .form = DP_FORM_SPARSE, .labels = DP_LABELS_ANY, .batch = 16, .scale_labels = true};
    const char *two = write_text("two", "1e30 1:1\n3e30 1:1\n1e30 1:1\n3e30 1:1\n");
    options.path = two;
    struct dp_dataset *train = formats_open(&options);
    const struct dp_label_scale scale = dp_dataset_schema(train)->label_scale;
    assert_true(fabs(scale.mean / 2e30 - 1) < 1e-6 && fabs(scale.deviation / 1e30 - 1) < 1e-6);
    static const float want[] = {-1, 1, -1, 1};
    assert_memory_equal(formats_filled(train, 0, 0)->labels, want, sizeof want);
    float raw;
    assert_true(dp_dataset_label(train, 1, &raw) && raw == 3e30f);
    /* A file that is read like it, and a later training file. */
    options.path = write_text("other", "5e30 1:1\n2e30 1:1\n");
    for (int like = 0; like < 2; like++) {
        options.like = like ? dp_dataset_schema(train) : NULL;
        options.label_scale = like ? NULL : &scale;
        struct dp_batch *batch = formats_filled(formats_open(&options), 0, 0);
        assert_true(fabsf(batch->labels[0] - 3) < 1e-5f && fabsf(batch->labels[1]) < 1e-5f);
    }
    options.like = NULL;
    const struct dp_label_scale none = {0};
    options.label_scale = &none; /* of an older build */
    assert_true(formats_filled(formats_open(&options), 0, 0)->labels[0] == 5e30f);
    /* One value: whatever the model outputs, it is predicted. A later file with others is measured. */
    options.label_scale = NULL;
    options.path = write_text("one", "-7.5 1:1\n");
    const struct dp_label_scale one = dp_dataset_schema(formats_open(&options))->label_scale;
    assert_true(dp_label_scale_is_constant(&one) && !dp_label_scale_is_constant(&scale));
    assert_true(fabs(dp_label_scale_restore(&one, 1) + 7.5) < 1e-5);
    char shown[160];
    dp_schema_labels_text(&(struct dp_schema){.label_scale = one}, false, 0, shown, sizeof shown);
    assert_string_equal(shown, "-7.5 in every example: the model predicts this value");
    options.label_scale = &one;
    options.path = two;
    assert_true(dp_dataset_schema(formats_open(&options))->label_scale.deviation == scale.deviation);
    options.scale_labels = false;
    assert_true(formats_filled(formats_open(&options), 0, 0)->labels[0] == 1e30f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FILES_TEST(known_values),
                                       FILES_TEST(wide_numbers),
                                       FILES_TEST(one_row_has_one_value),
                                       FILES_TEST(caches_are_told_apart),
                                       FILES_TEST(a_share_is_of_the_whole_file),
                                       FILES_TEST(far_values),
                                       FILES_TEST(labels_of_a_regression)};
    return cmocka_run_group_tests_name("standardize", tests, NULL, NULL);
}

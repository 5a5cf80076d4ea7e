/* Goal: Criteo's lines become columns, categories and lists of features as the rules say.
 * Method: a file made by a rule with empty cells and negative integers; keys are compared between places, not with
 * numbers. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINES 37u

/* Integer c of line i: none where (i + c) % 5 == 0. */
static int integer(uint32_t i, uint32_t c)
{
    return (int)(i * 31 + c * 17) % 200 - 50;
}

static bool is_there(uint32_t i, uint32_t c)
{
    return (i + c) % 5 != 0;
}

/* Category c of line i: one of 3 texts, the same in all columns; or none. */
static uint32_t category(uint32_t i, uint32_t c)
{
    return (i / (c % 3 + 1) + c) % 4;
}

static void make_text(char *text, size_t size, bool labels)
{
    static const char *const texts[] = {"", "68fd1e64", "x y", "\xc3\xa4"};
    size_t len = 0;
    for (uint32_t i = 0; i < LINES; i++) {
        if (labels)
            len += (size_t)snprintf(text + len, size - len, "%u\t", i % 3 == 0);
        for (uint32_t c = 0; c < 13; c++) {
            if (is_there(i, c))
                len += (size_t)snprintf(text + len, size - len, "%d", integer(i, c));
            len += (size_t)snprintf(text + len, size - len, "\t");
        }
        for (uint32_t c = 0; c < 26; c++)
            len += (size_t)snprintf(text + len, size - len, "%s%s", texts[category(i, c)],
                                    c < 25  ? "\t"
                                    : i % 2 ? "\r\n"
                                            : "\n");
    }
}

static struct dp_dataset_options options_of(enum dp_data_form form)
{
    return (struct dp_dataset_options){
        .form = form, .labels = DP_LABELS_BINARY, .scale = 1, .width = 13, .fields = 26, .batch = LINES};
}

static float wanted(uint32_t i, uint32_t c)
{
    double x = integer(i, c);
    return (float)(x < 0 ? -log(1 - x) : log(1 + x));
}

static void columns_and_categories(void **state)
{
    char text[32768];
    make_text(text, sizeof text, true);
    for (int form = DP_FORM_FIELDS; form <= DP_FORM_TABLES; form++) {
        struct dp_dataset_options options = options_of((enum dp_data_form)form);
        float scale = form == DP_FORM_FIELDS ? 1 : 3, given = form == DP_FORM_FIELDS ? 10 : 1;
        options.scale = form == DP_FORM_FIELDS ? 0 : 3; /* where none is given: a tenth */
        options.path = write_text("clicks", text);
        struct dp_dataset *dataset = formats_open(&options);
        struct dp_batch *b = formats_batch(dataset);
        bool tables = form == DP_FORM_TABLES;
        dp_dataset_fill(dataset, 0, 0, b);
        assert_int_equal(b->examples, LINES);
        assert_int_equal(b->room.lists, tables ? 26 : 1);
        if (!tables)
            assert_int_equal(b->group[0].distinct, 26 * 4);
        for (uint32_t i = 0; i < LINES; i++) {
            assert_true(b->labels[i] == (i % 3 == 0));
            for (uint32_t c = 0; c < 13; c++) {
                float want = is_there(i, c) ? wanted(i, c) * scale / given : 0;
                assert_true(fabsf(b->dense[i * 13 + c] - want) < 1e-6f);
            }
            for (uint32_t c = 0; c < 26; c++) /* against lines before */
                for (uint32_t other = i >= 4 ? i - 4 : 0; other < i; other++) {
                    uint32_t group = tables ? c : 0;
                    uint64_t x = formats_key(b, group, group, i, tables ? 0 : c),
                             y = formats_key(b, group, group, other, tables ? 0 : c);
                    assert_int_equal(x == y, category(i, c) == category(other, c));
                }
        }
        for (uint32_t g = 0; tables && g < 26; g++)
            assert_int_equal(b->group[g].distinct, 4);
        options.batch = 5;
        options.shuffle = true;
        formats_check(options, text);
    }
}

static void lists_of_features(void **state)
{
    char text[32768];
    make_text(text, sizeof text, true);
    for (int normalize = 0; normalize < 2; normalize++) {
        struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
        options.normalize = normalize;
        options.scale = 0.5;
        options.path = write_text("clicks", text);
        struct dp_dataset *dataset = formats_open(&options);
        struct dp_batch *b = formats_filled(dataset, 0, 0);
        assert_int_equal(b->group[0].distinct, 13 + 26 * 4);
        for (uint32_t i = 0; i < LINES; i++) {
            uint32_t entry = 0;
            double squares = 26;
            const float *values = b->list[0].values + b->list[0].offsets[i];
            for (uint32_t c = 0; c < 13; c++)
                squares += is_there(i, c) ? pow(0.5 * (double)wanted(i, c), 2) : 0;
            double norm = normalize ? sqrt(squares) : 1;
            for (uint32_t c = 0; c < 13; c++)
                if (is_there(i, c)) {
                    assert_true(fabs((double)values[entry] - 0.5 * (double)wanted(i, c) / norm) < 1e-6);
                    entry++;
                }
            for (uint32_t c = 0; c < 26; c++)
                assert_true(fabs((double)values[entry++] - 1 / norm) < 1e-6);
            assert_int_equal(b->list[0].offsets[i + 1] - b->list[0].offsets[i], entry);
        }
        options.batch = 5;
        formats_check(options, text);
    }
}

static void hashed_to_few_bits(void **state)
{
    char text[32768];
    make_text(text, sizeof text, true);
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.path = write_text("clicks", text);
    options.hash_bits = 5;
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_filled(dataset, 0, 0);
    assert_in_range(b->group[0].distinct, 20, 32);
    for (uint32_t k = 0; k < b->group[0].distinct; k++) {
        bool below = false;
        for (uint64_t plain = 0; plain < 32; plain++)
            below = below || dp_mix(plain) == b->group[0].keys[k];
        assert_true(below);
    }
}

/* Criteo's own test file has no labels: to be scored it need not. */
static void labels_may_be_missing_for_scores(void **state)
{
    char with[32768], without[32768];
    make_text(with, sizeof with, true);
    make_text(without, sizeof without, false);
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.scored = true;
    options.labels = DP_LABELS_ANY;
    const char *path = write_text("with", with);
    options.path = path;
    struct dp_dataset *a = formats_open(&options);
    options.path = write_text("without", without);
    struct dp_dataset *b = formats_open(&options);
    struct dp_batch *x = formats_batch(a), *y = formats_batch(b);
    dp_dataset_fill(a, 0, 0, x);
    dp_dataset_fill(b, 0, 0, y);
    assert_memory_equal(x->dense, y->dense, LINES * 13 * sizeof(float));
    assert_memory_equal(x->list[0].slots, y->list[0].slots, LINES * 26 * sizeof(uint32_t));
    options.scored = false;
    options.format = "criteo";
    formats_refused(options, without, 1, DP_DATA, "expected 40 columns");
}

#define INTS "1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t"
#define CATS "a\tb\tc\td\te\tf\tg\th\ti\tj\tk\tl\tm\tn\to\tp\tq\tr\ts\tt\tu\tv\tw\tx\ty\tz"
#define GOOD "1\t" INTS "13\t" CATS "\n"

static void bad_files_are_refused(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    formats_refused(options, GOOD "1\t" INTS CATS "\n", 2, DP_DATA,
                    "26 categories, separated by tabs), found 39");
    formats_refused(options, GOOD "1\t" INTS "13\t" CATS "\t\n", 2, DP_DATA, "found 41");
    formats_refused(options, GOOD "\n2\t" INTS "13\t" CATS "\n", 3, DP_DATA, "label 2: expected 0 or 1");
    formats_refused(options, GOOD "\t" INTS "13\t" CATS "\n", 2, DP_DATA, "expected a label");
    formats_refused(options, GOOD "1\t" INTS "0x1f\t" CATS "\n", 2, DP_DATA,
                    "integer 13: expected a number, or nothing, found '0x1f'");
    formats_refused(options, GOOD "1\t" INTS " \t" CATS "\n", 2, DP_DATA, "integer 13: expected a number");
    formats_refused(options, "\n\n", 0, DP_DATA, "holds no examples");
    options.fields = 20;
    formats_refused(options, GOOD, 0, DP_ARGUMENT,
                    "has 13 columns of numbers and 26 of categories, but the model takes 13 and 20: add "
                    "columns=13,fields=26 to the model");
    options.fields = 26;
    options.normalize = true;
    formats_refused(options, GOOD, 0, DP_ARGUMENT, "cannot be normalized");
    options.normalize = false;
    options.hash_bits = 64;
    formats_refused(options, GOOD, 0, DP_ARGUMENT, "keys of 64 bits");
}

/* The first line says for the whole file whether it has labels: a line that lacks something else is none without one. */
static void the_first_line_tells_of_labels(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.scored = true;
    options.labels = DP_LABELS_ANY;
    formats_refused(options, GOOD "1\t" INTS CATS "\n" GOOD, 2, DP_DATA,
                    "expected 40 columns (label, 13 integers, 26 categories, separated by tabs), found 39");
    formats_refused(
        options, INTS "13\t" CATS "\n" GOOD, 2, DP_DATA,
        "expected 39 columns (13 integers, 26 categories, separated by tabs, without a label as in the first "
        "line), found 40");
    formats_refused(options, INTS "13\t" CATS "\n" INTS CATS "\n", 2, DP_DATA, "found 38");
    options.format = "criteo";
    formats_refused(options, INTS CATS "\n", 1, DP_DATA, "expected 40 columns");
}

/* Editors cut the tabs of empty fields at the end: the message is that of this format, where a line has all
 * columns; else of both. */
static void trimmed_lines_are_named(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    const char *found = "found 15: empty fields at the end need their tabs, too";
    formats_refused(
        options, "1\t" INTS "13\ta\n" GOOD GOOD, 1, DP_DATA,
        "expected 40 columns (label, 13 integers, 26 categories, separated by tabs), found 15: empty");
    formats_refused(options, GOOD GOOD "1\t" INTS "13\ta\n", 3, DP_DATA, found);
    formats_refused(options, GOOD "1\t" INTS "13\ta\n1\t" INTS "13\ta\n1\t" INTS "13\ta\n", 2, DP_DATA,
                    "expected 40 columns");
    formats_refused(options, "1\t" INTS "13\ta\n", 1, DP_DATA, "expected index:value, found '");
    formats_refused(options, "1\t" INTS "13\ta\n", 1, DP_DATA, found);
    formats_refused(options, "1\t" INTS "13\t" CATS "\tb\n", 1, DP_DATA, "separated by tabs, found 41");
    formats_refused(options, "1,2,3\n4,5,6\n", 1, DP_DATA,
                    "If this is a table (CSV): its first line must be its header, and --label NAME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(columns_and_categories),  FILES_TEST(lists_of_features),
        FILES_TEST(hashed_to_few_bits),      FILES_TEST(labels_may_be_missing_for_scores),
        FILES_TEST(bad_files_are_refused),   FILES_TEST(the_first_line_tells_of_labels),
        FILES_TEST(trimmed_lines_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

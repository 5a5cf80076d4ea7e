/* Goal: what was read of a training file is said in five short lines, and what is likely a mistake is noted
 * with its remedy. Method: tables made by a rule; every line and note is compared. */
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dp_dataset_options options_of(void)
{
    return (struct dp_dataset_options){.form = DP_FORM_SPARSE,
                                       .labels = DP_LABELS_BINARY,
                                       .scale = 1,
                                       .label = "y",
                                       .standardize = true,
                                       .batch = 4};
}

static struct dp_understood understood(const struct dp_dataset_options *options)
{
    struct dp_understood out;
    dp_dataset_understood(formats_open(options), options, &out);
    return out;
}

static void line_is(const struct dp_understood *u, unsigned line, const char *expected)
{
    if (line >= u->lines || !strstr(u->line[line], expected))
        fail_msg("line %u is not '%s' but '%s'", line, expected, line < u->lines ? u->line[line] : "(none)");
}

static void noted(const struct dp_understood *u, const char *words)
{
    for (unsigned i = 0; i < u->notes; i++)
        if (strstr(u->note[i], words))
            return;
    fail_msg("no note has '%s'; the first of %u is '%s'", words, u->notes, u->notes ? u->note[0] : "");
}

static FILE *begin(char **text, size_t *len, const char *header)
{
    FILE *file = open_memstream(text, len);
    assert_non_null(file);
    (void)fprintf(file, "%s\n", header);
    return file;
}

static const char *written(FILE *file, char **text)
{
    assert_int_equal(fclose(file), 0);
    const char *path = write_text("table", *text);
    free(*text);
    return path;
}

/* Codes that are numbers, an id, an ignored column, missing cells; the same out of the cache. */
static void a_table_in_five_lines(void **state)
{
    char *text;
    size_t len;
    FILE *file = begin(&text, &len, "key,month,distance,carrier,y,note,zero");
    for (int i = 0; i < 400; i++)
        (void)fprintf(file, "r%d,%d,%d.5,c%d,%s,x,%s\n", i, i % 12 + 1, i * 7 % 400, i % 16,
                      i % 4 ? "no" : "yes", i % 3 ? "0" : "");
    struct dp_dataset_options options = options_of();
    options.path = written(file, &text);
    options.id = "key";
    options.ignore = "note";
    options.cache = files_dir;
    for (int cached = 0; cached < 2; cached++) {
        const struct dp_understood u = understood(&options);
        assert_int_equal(u.lines, 5);
        line_is(&u, 0, "table: csv, 400 examples");
        line_is(&u, 1, "numbers: month (12 values), distance, zero (1 value)");
        line_is(&u, 2, "categories: carrier (16)");
        line_is(&u, 3, "ignored: note; id: key");
        line_is(&u, 4, "label: y (yes 25%)");
        assert_int_equal(u.notes, 2);
        noted(&u, "month has 12 whole values: if they are codes, not amounts, --categories month makes");
        noted(&u,
              "zero: one value, or none, in all rows, which teaches nothing; to leave it out: --ignore zero");
    }
    options.cache = NULL;
    options.categories = "month"; /* the hint was followed */
    options.ignore = "note,zero";
    const struct dp_understood u = understood(&options);
    line_is(&u, 1, "numbers: distance");
    line_is(&u, 2, "categories: month (12), carrier (16)");
    assert_int_equal(u.notes, 0);
}

/* Years and months of a contract are amounts. Planted: a bound for the cells of a value only. */
static void codes_are_few_or_alike(void **state)
{
    char *text;
    size_t len;
    FILE *file = begin(&text, &len, "y,zip,year,few");
    for (int i = 0; i < 2000; i++)
        (void)fprintf(file, "%d,%d,%d,%d\n", i % 2, 10115 + i * 7 % 100 * 801, 1890 + i * 7 % 134,
                      i * 7 % 64);
    struct dp_dataset_options options = options_of();
    options.path = written(file, &text);
    const struct dp_understood u = understood(&options);
    noted(&u,
          "zip has 100, few has 64 whole values: if they are codes, not amounts, --categories zip,few makes");
    assert_int_equal(u.notes, 1);
}

/* In a category an empty cell is a value of its own, which may teach something. */
static void one_value_or_an_empty_cell(void **state)
{
    struct dp_dataset_options options = options_of();
    options.path = write_text("t", "y,a,b\n1,x,x\n0,,x\n1,x,x\n");
    const struct dp_understood u = understood(&options);
    assert_int_equal(u.notes, 1);
    noted(&u, "b: one value, or none, in all rows, which teaches nothing; to leave it out: --ignore b");
}

/* "1st" and "2nd" in 40 rows are ranks. */
static void several_units(void **state)
{
    char *text;
    size_t len;
    FILE *file = begin(&text, &len, "y,price,rank,none");
    for (int i = 0; i < 40; i++)
        (void)fprintf(file, "%d,%s%d%s,%s,\n", i % 2, i % 3 ? "" : "$", i, i % 3 ? " EUR" : "",
                      i % 2 ? "1st" : "2nd");
    struct dp_dataset_options options = options_of();
    options.path = written(file, &text);
    const struct dp_understood u = understood(&options);
    noted(&u,
          "40 of 40 values of 'price' are different: each is a number with '$' before it, or ' EUR' after "
          "it ('$0'), read as a category; convert all to one unit and write plain numbers, or leave");
    noted(&u, "none: one value, or none, in all rows, which teaches nothing; to leave it out: --ignore none");
    assert_int_equal(u.notes, 2);
}

/* Categories that occur once each, and numbers that are read as categories by their sign. */
static void columns_that_teach_nothing(void **state)
{
    char *text;
    size_t len;
    FILE *file = begin(&text, &len, "y,row,price,share,way,name,code");
    for (int i = 0; i < 400; i++)
        (void)fprintf(file, "%d,%d,%s$%d.%d,%d%%,%d km,n%d,A%d\n", i % 3 == 0, i * 5 + i % 3,
                      i % 5 ? "" : "-", i * 13, i % 10, i % 4, i / 2, i % 390, i % 7);
    struct dp_dataset_options options = options_of();
    options.path = written(file, &text);
    const struct dp_understood u = understood(&options);
    noted(&u, "400 of 400 values of 'price' are different: each is a number with '$' before it ('-$0.0'), "
              "read as a "
              "category; write plain numbers (sed 's/[$]//g'), or leave it out (--ignore price)");
    noted(
        &u,
        "each value of 'share' is a number with '%' after it ('0%'), read as a category; write plain numbers "
        "(sed 's/[%]//g')");
    noted(&u, "each value of 'way' is a number with ' km' after it ('0 km'), read as a category; write plain "
              "numbers "
              "(sed 's/ km//g')");
    noted(&u, "4 columns are numbers with a sign, ids, times or texts, but were read as categories: price, "
              "share, way, name");
    options.ignore = "price,row";
    const struct dp_understood less = understood(&options);
    noted(
        &less,
        "390 of 400 values of 'name' are different: ids, times and texts teach nothing as categories; leave "
        "it out (--ignore name)");
    assert_int_equal(less.notes, 3);
    noted(&u, "row: each value is above the one before, as ids and times are; to leave it out: "
              "--ignore row");
    for (unsigned i = 0; i < u.notes; i++)
        assert_null(strstr(u.note[i], "code"));
}

static void units_and_texts(void **state)
{
    static const struct {
        const char *cell, *other, *unit; /* NULL: none */
    } cases[] = {
        {"US$5", "US$1.5", "'US$' before it"},
        {"\"$1,303.56\"", "$7", "'$' before it"},
        {"€5", "€-6", "'€' before it"},
        {"5kg", "6.25kg", "'kg' after it"},
        {"$5 m", "$6 m", "'$' before it and ' m' after it"},
        {"A5", "A6", NULL},
        {"district 7", "district 12", NULL},
        {"Room-7", "Room-8", NULL},
        {"район 7", "район 8", NULL},
        {"EUR 7.50", "EUR 8.25", "'EUR ' before it"},
        {"$5", "€5", NULL},
        {"$5", "none", NULL},
        {"2020-01-01", "2021-01-01", NULL},
        {"12:30", "12:45", NULL},
        {"1st", "2nd", NULL},
        {"x", "y", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_dataset_options options = options_of();
        char text[200];
        (void)snprintf(text, sizeof text, "y,c\n1,%s\n0,%s\n0,\n1,%s\n", cases[i].cell, cases[i].other,
                       cases[i].cell);
        options.path = write_text("t", text);
        const struct dp_understood u = understood(&options);
        if (cases[i].unit)
            noted(&u, cases[i].unit);
        else if (u.notes > 0)
            fail_msg("'%s' and '%s': %s", cases[i].cell, cases[i].other, u.note[0]);
    }
}

/* Many columns, long names, many values: lines stay short, and say how many there are. */
static void long_lists_are_cut(void **state)
{
    char *text;
    size_t len;
    FILE *file = begin(&text, &len, "y");
    (void)fseek(file, -1, SEEK_CUR);
    for (int c = 0; c < 300; c++)
        (void)fprintf(file, ",年齢年齢年齢年齢年齢年齢年齢年齢%d,c%d", c, c);
    (void)fprintf(file, "\n");
    for (int i = 0; i < 30; i++) {
        (void)fprintf(file, "%d", i % 30 == 0);
        for (int c = 0; c < 300; c++)
            (void)fprintf(file, ",%d.5,v%d", i * c, i % 2);
        (void)fprintf(file, "\n");
    }
    struct dp_dataset_options options = options_of();
    options.path = written(file, &text);
    const struct dp_understood u = understood(&options);
    assert_int_equal(u.lines, 4);
    for (unsigned i = 1; i < u.lines; i++)
        assert_true(strlen(u.line[i]) <= DP_UNDERSTOOD_WIDTH + 60);
    line_is(&u, 1, ", ... (300 in all)");
    line_is(&u, 2, "categories: c0 (2), c1 (2), ");
    line_is(&u, 2, ", ... (300 in all)");
    line_is(&u, 3, "label: y (1 3%)");
}

static void labels_of_all_kinds(void **state)
{
    struct dp_dataset_options options = options_of();
    options.labels = DP_LABELS_ANY;
    options.path = write_text("t", "y,a\n1.5,1.5\n-2,1\n6.5,2\n");
    struct dp_understood u = understood(&options);
    line_is(&u, u.lines - 1, "label: y (-2 to 6.5, mean 2)");
    options.labels = DP_LABELS_CLASS;
    options.classes = 4;
    options.path = write_text("t", "y,a\nd,1.5\na,1\nb,2\nb,1\nc,0\n");
    u = understood(&options);
    line_is(&u, u.lines - 1, "label: y (4 classes: a 20%, b 40%, c 20%, ...)");
    options.classes = 3;
    options.label_base = DP_LABEL_BASE_AUTO;
    options.path = write_text("t", "y,a\n1,1.5\n2,1\n3,2\n3,1\n");
    u = understood(&options);
    line_is(&u, u.lines - 1, "label: y (1 25%, 2 25%, 3 50%)");
    /* Of other formats there is one line. */
    options.label = NULL;
    options.path = write_text("t", "1 1:2\n2 1:3\n3 2:1\n");
    u = understood(&options);
    assert_true(u.lines == 1 && u.notes == 0);
    line_is(&u, 0, "t: libsvm, 3 examples");
}

/* Ids of many digits are counted as they are written, not as they are rounded. */
static void digits_are_lost(void **state)
{
    char *text;
    size_t len;
    FILE *file = begin(&text, &len, "y,a,b,few");
    for (int i = 0; i < 3000; i++)
        (void)fprintf(file, "%d,%d,%d,%d\n", i % 2, i * 7 % 3000, i * 7 % 3000, i % 5);
    struct dp_dataset_options options = options_of();
    options.path = written(file, &text);
    assert_int_equal(understood(&options).notes, 1); /* few */
    file = begin(&text, &len, "y,b,big,few");
    for (int i = 0; i < 3000; i++)
        (void)fprintf(file, "%d,100000%04d,100000000000000%04d,100000000000000000%d\n", i % 2, i * 7 % 3000,
                      i * 7 % 3000, i % 5);
    options.path = written(file, &text);
    struct dp_understood u = understood(&options);
    line_is(&u, 1, "numbers: b, big, few (5 values)");
    assert_int_equal(u.notes, 2);
    noted(&u, "few has 5 whole values: if they are codes");
    noted(&u, "big, few: whole numbers that lose digits, as ids do; to leave it out: --ignore big,few");
    options.standardize = false;
    u = understood(&options);
    noted(&u, "b, big, few: whole numbers that lose digits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(a_table_in_five_lines),  FILES_TEST(columns_that_teach_nothing),
        FILES_TEST(units_and_texts),        FILES_TEST(long_lists_are_cut),
        FILES_TEST(labels_of_all_kinds),    FILES_TEST(digits_are_lost),
        FILES_TEST(several_units),          FILES_TEST(one_value_or_an_empty_cell),
        FILES_TEST(codes_are_few_or_alike),
    };
    return cmocka_run_group_tests_name("understood", tests, NULL, NULL);
}

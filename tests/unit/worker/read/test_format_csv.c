/* Goal: a CSV's columns are told apart, by names and whatever the quotes hide; bad files name their line.
 * Method: files written by hand, whose values are known. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT                                                                                                 \
    "\xef\xbb\xbf"                                                                                           \
    "age,\"the city\",y, income ,note\r\n"                                                                   \
    "31,Rome,1,-2.5e3,\n"                                                                                    \
    " 40 ,\"New\"\" York, \nNY\",0,,x\n"                                                                     \
    "\n"                                                                                                     \
    ",Rome,1,7,\"\"\n"                                                                                       \
    "5,\"\",\"0\",8,x"

#define KEPT(names, kinds) "version,2\nformat,csv\nnames," names "\nkinds," kinds "\nend\n"

static struct dp_dataset_options options_of(enum dp_data_form form)
{
    return (struct dp_dataset_options){.form = form,
                                       .labels = DP_LABELS_BINARY,
                                       .scale = 1,
                                       .width = 2,
                                       .fields = 2,
                                       .label = "y",
                                       .batch = 4};
}

static void columns_are_told_apart(void **state)
{
    static const float dense[] = {31, -2500, 40, 0, 0, 7, 5, 8}, labels[] = {1, 0, 1, 0};
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.path = write_text("t", TEXT);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_filled(dataset, 0, 0);
    assert_int_equal(b->examples, 4);
    assert_memory_equal(b->dense, dense, sizeof dense);
    assert_memory_equal(b->labels, labels, sizeof labels);
    assert_int_equal(b->group[0].distinct, 3 + 2); /* Rome, New York, none; none, x */
    assert_true(formats_key(b, 0, 0, 0, 0) == formats_key(b, 0, 0, 2, 0));
    assert_true(formats_key(b, 0, 0, 0, 1) == formats_key(b, 0, 0, 2, 1)); /* nothing is "" */
    assert_true(formats_key(b, 0, 0, 1, 1) == formats_key(b, 0, 0, 3, 1));
    assert_true(formats_key(b, 0, 0, 3, 0) !=
                formats_key(b, 0, 0, 0, 1)); /* in each column another nothing */
    for (int form = DP_FORM_SPARSE; form < DP_FORMS; form++) {
        options.form = (enum dp_data_form)form;
        options.batch = 3;
        if (form == DP_FORM_SPARSE || form == DP_FORM_FIELDS || form == DP_FORM_TABLES)
            formats_check(options, TEXT);
    }
}

static void numbers_alone(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_DENSE);
    options.normalize = true;
    options.path = write_text("t", "y,a,b\n1,3,4\n0,,\n");
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_filled(dataset, 0, 0);
    assert_true(fabsf(b->dense[0] - 0.6f) < 1e-6f && fabsf(b->dense[1] - 0.8f) < 1e-6f);
    assert_true(b->dense[2] == 0 && b->dense[3] == 0);
    formats_check(options, "y,a,b\n1,3,4\n0,,\n");
    formats_refused(
        options, TEXT, 0, DP_ARGUMENT,
        "2 columns of categories ('the city' by 'Rome' in line 2, 'note' by 'x' in line 3), but the model "
        "takes numbers only");
    formats_refused(options, "y,a\n1,2\n", 0, DP_ARGUMENT, "has 1 columns of numbers, but the model takes 2");
}

/* A number by its looks that is named is a category; texts are categories without a name. */
static void named_categories(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.categories = " age,the city,note";
    options.width = 1;
    options.fields = 3;
    options.path = write_text("t", TEXT);
    struct dp_dataset *dataset = formats_open(&options);
    assert_int_equal(dp_dataset_shape(dataset)->width, 1);
    options.categories = "age,town";
    formats_refused(
        options, TEXT, 1, DP_DATA,
        "--categories (data.categories) names 'town', which is no column of this file; there are: "
        "age, the city, y");
    options.categories = "age,y";
    formats_refused(options, TEXT, 1, DP_DATA, "column 'y' is the label");
    options.categories = "age";
    formats_open(&options); /* fields are 3 */
}

static struct dp_dataset *open_text(struct dp_dataset_options options, const char *text)
{
    options.path = write_text("further", text);
    return formats_open(&options);
}

/* Columns that are left out change nothing but the names of rows; a further file may lack them. */
static void columns_are_left_out(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    options.standardize = true;
    options.path = write_text("plain", "y,a,c\n1,3,Rome\n0,5,Oslo\n");
    const struct dp_dataset *plain = formats_open(&options);
    options.ignore = "note, title";
    options.id = "key";
    options.path = write_text("more", "key,y,title,a,note,c\nr 1,1,x,3,2,Rome\n\"r\t2\",0,?,5,,Oslo\n");
    const struct dp_dataset *more = formats_open(&options);
    formats_same(more, plain, 0);
    assert_null(dp_dataset_id(more, 0));
    const struct dp_schema *schema = dp_dataset_schema(more);
    assert_true(schema->column[0].kind == DP_COLUMN_ID && schema->column[2].kind == DP_COLUMN_IGNORED &&
                schema->column[4].kind == DP_COLUMN_IGNORED);
    options = options_of(DP_FORM_SPARSE);
    options.standardize = true;
    options.like = schema;
    options.scored = options.keeps_ids = true;
    const struct dp_dataset *scored = open_text(options, "a,c,key\n3,Rome,\n5,Oslo,r\t2\n");
    assert_string_equal(dp_dataset_id(scored, 0), "");
    assert_string_equal(dp_dataset_id(scored, 1), "r\t2");
    const struct dp_dataset *unnamed = open_text(options, "a,c\n3,Rome\n5,Oslo\n");
    assert_null(dp_dataset_id(unnamed, 1));
}

static void columns_that_cannot_be_left_out(void **state)
{
    static const struct {
        const char *ignore, *id, *words;
    } bad[] = {
        {"a,y", NULL, "column 'y' is the label and cannot be ignored too"},
        {NULL, "y", "column 'y' is the label and cannot be the id too"},
        {"b", "b", "column 'b' is the id and cannot be ignored too"},
        {"c", NULL, "column 'c' is ignored and cannot be a category too"},
        {"d", NULL,
         "--ignore (data.ignore) names 'd', which is no column of this file; there are: y, a, b, c"},
        {NULL, "d", "--id (data.id) is 'd', which is no column of this file"},
        {"a,b", "c", "column 'c' is the id and cannot be a category too"},
    };
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    options.categories = "c";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        options.ignore = bad[i].ignore;
        options.id = bad[i].id;
        formats_refused(options, "y,a,b,c\n1,2,3,4\n", 1, DP_DATA, bad[i].words);
    }
    options.categories = options.label = NULL;
    formats_refused(options, "1 1:2\n", 0, DP_ARGUMENT,
                    "a file of format libsvm has no names of columns: leave --ignore, --id, --missing");
    options.label = "y";
    options.ignore = "a,b";
    options.id = "c";
    formats_refused(options, "y,a,b,c\n1,2,3,4\n", 1, DP_DATA, "no column is left to train on");
}

/* Further texts of missing cells are those of an empty one, in numbers and in categories, here and in a
 * further file. */
static void texts_of_missing_cells(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    options.standardize = true;
    options.path = write_text("plain", "y,a,c\n1,3,Rome\n0,,\n1,5,NA\n0,NA,Oslo\n");
    const struct dp_dataset *plain = formats_open(&options);
    options.missing = "?, n.a.";
    options.path = write_text("texts", "y,a,c\n1,3,Rome\n0,?,n.a.\n1,5,NA\n0,NA,Oslo\n");
    const struct dp_dataset *texts = formats_open(&options);
    formats_same(texts, plain, 0);
    options = options_of(DP_FORM_SPARSE);
    options.standardize = true;
    options.like = dp_dataset_schema(plain);
    const struct dp_dataset *a = open_text(options, "y,a,c\n1,,\n0,3,\n");
    options.like = dp_dataset_schema(texts);
    formats_same(open_text(options, "y,a,c\n1,n.a.,?\n0,3,?\n"), a, 0);
    options.like = NULL;
    options.standardize = false;
    options.missing = "?";
    formats_refused(options, "y,a\n1,2\n?,2\n", 3, DP_DATA, "column 'y': expected a label");
}

/* The training file says what the columns are: a test file may have them in another order, and only numbers in a column
 * of categories. */
static void a_test_file_is_like_the_training_file(void **state)
{
    const char *train = write_text("train", "y,a,c,d\n1,2,7,5\n0,3,x,6\n");
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.fields = 1;
    options.batch = 1;
    options.path = train;
    struct dp_dataset *a = formats_open(&options);
    options.like = dp_dataset_schema(a);
    options.path = write_text("test", "c,d,y,a\n7,5,1,2\n");
    struct dp_dataset *b = formats_open(&options);
    formats_same_batch(formats_filled(a, 0, 0), formats_filled(b, 0, 0));
    formats_refused(options, "c,d,y,b\n", 1, DP_DATA,
                    "columns of the training file are missing: 'a' (--missing-columns empty, "
                    "data.missing_columns, takes them as empty cells); columns are not in the training file: "
                    "'b' (--new-columns ignore");
    formats_refused(options, "c,d,y\n", 1, DP_DATA, "columns of the training file are missing: 'a' (");
    formats_refused(options, "c,d,y,a,a\n", 1, DP_DATA, "two columns are named 'a'");
    formats_refused(options, "c,d,a\n7,5,2\n", 1, DP_DATA, "the label's column 'y' is missing");
    options.scored = true; /* but not where it is not needed */
    options.labels = DP_LABELS_ANY;
    options.path = write_text("scored", "c,d,a\n7,5,2\n");
    b = formats_open(&options);
    formats_refused(options, "c,d,a\n7,5,4o\n", 2, DP_DATA,
                    "column 'a' (numbers in training): expected a number, or nothing, found '4o'");
}

static void same_rows(const struct dp_dataset_options *x, const struct dp_dataset_options *y)
{
    struct dp_dataset *a = formats_open(x), *b = formats_open(y);
    formats_same(a, b, 0);
}

/* Names that want quotes; categories that were found and that were named; out of the file and out of a cache. */
static void kept_columns_of(const char *categories, const char *kinds, bool cached)
{
    char expected[320], *text = NULL;
    struct dp_error err = {0};
    const char *train = write_text("train", "y,\"a,\"\"b\"\"\n\",c,d\n1,2,7,5\n0,3,x,6\n");
    const char *test = write_text("test", "c,d,y,\"a,\"\"b\"\"\n\"\n7,5,1,2\n8,,0,1\n");
    (void)snprintf(expected, sizeof expected,
                   "version,3\nformat,csv\nnames,\"y\",\"a,\"\"b\"\"\n\",\"c\",\"d\"\nkinds,%s\ntrimmed\n"
                   "values,0,2,2,2\ncells,0,2,2,2\ninputs,63,0,1,0\nend,",
                   kinds);
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    options.categories = categories;
    options.path = train;
    options.cache = cached ? files_dir : NULL;
    struct dp_dataset *dataset = formats_open(&options);
    if (cached) {
        dataset = formats_open(&options);
    }
    assert_int_equal(dp_schema_write(dp_dataset_schema(dataset), &text, &err), DP_OK);
    assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
    struct dp_dataset_options like = options, kept = options;
    like.path = kept.path = test;
    like.cache = kept.cache = NULL;
    like.like = dp_dataset_schema(dataset);
    kept.columns_path = write_text("columns", text);
    same_rows(&like, &kept);
    free(text);
}

static void kept_columns_are_those_of_the_training_file(void **state)
{
    for (int cached = 0; cached < 2; cached++) {
        kept_columns_of(NULL, "label,number,category,number", cached);
        kept_columns_of("c", "label,number,category,number", cached);
        kept_columns_of("d, c", "label,number,category,category", cached);
    }
}

static void bad_kept_columns_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "columns: has no header"},
        {KEPT("\"y\",\"b\"", "label,number"), "columns of the training file are missing: 'b' (--missing"},
        {KEPT("\"x\",\"a\"", "label,number"), "the label is 'y', but 'x' was when the model was trained"},
        {KEPT("\"y\",\"a\",\"a\"", "label,number,number"), "two columns are named 'a'"},
    };
    struct dp_dataset *dataset = NULL;
    struct dp_error err = {0};
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    const char *path = write_text("data", "y,a\n1,2\n");
    options.path = path;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        options.columns_path = write_text("columns", bad[i].text);
        assert_int_equal(dp_dataset_open(&options, &dataset, &err), DP_DATA);
        if (!strstr(err.text, bad[i].why))
            fail_msg("no \"%s\" in \"%s\"", bad[i].why, err.text);
    }
    options.columns_path = "/nowhere/columns";
    assert_int_equal(dp_dataset_open(&options, &dataset, &err), DP_IO);
    assert_non_null(strstr(err.text, "/nowhere/columns: cannot open"));
    assert_non_null(strstr(err.text, "restore it"));
}

/* Columns that only one of the two files has are left out, or read as empty cells, if that is allowed. */
static void unmatched_columns(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.fields = 1;
    options.standardize = true;
    options.path = write_text("train", "y,a,c,d\n1,2,7,5\n0,3,x,6\n");
    struct dp_dataset *train = formats_open(&options);
    options.like = dp_dataset_schema(train);
    options.new_ignored = true;
    options.path = write_text("new", "e,c,y,d,a,f\nx,7,1,5,2,\n,x,0,6,3,1\n");
    formats_same_batch(formats_filled(train, 0, 0), formats_filled(formats_open(&options), 0, 0));
    formats_refused(options, "e,y,d\n", 1, DP_DATA, "columns of the training file are missing: 'a', 'c' (");
    options.path = write_text("empty", "y,c,d,a\n1,,5,\n0,,6,\n");
    struct dp_dataset *empty = formats_open(&options);
    options.missing_empty = true;
    options.path = write_text("missing", "d,y\n5,1\n6,0\n");
    formats_same_batch(formats_filled(empty, 0, 0), formats_filled(formats_open(&options), 0, 0));
    options.new_ignored = false;
    formats_refused(options, "e,y,d\n", 1, DP_DATA, "columns are not in the training file: 'e' (");
    formats_refused(options, "a,c,d\n1,x,3\n", 1, DP_DATA, "the label's column 'y' is missing");
    formats_refused(options, "a,c,d,y\n", 0, DP_DATA, "holds no examples");
    formats_refused(options, "y,a,c,d\n1,2,7,5\n0,text,x,6\n", 3, DP_DATA,
                    "column 'a' (numbers in training): expected a number, or nothing, found 'text'");
    formats_refused(options, "y,a,c,d\n1,2,7,5\nyes,2,x,6\n", 3, DP_DATA, "expected a label (a number)");
}

/* The schema says what inputs were. Settings that would change that are refused; equal ones are not. */
static void settings_are_those_of_the_schema(void **state)
{
    static const char text[] = "y,a,c,d\n1,2,7,5\n2,3,x,6\n";
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    options.label_base = DP_LABEL_BASE_AUTO;
    options.standardize = true;
    options.path = write_text("train", text);
    struct dp_dataset *train = formats_open(&options);
    options.like = dp_dataset_schema(train);
    options.hash_bits = 63;
    options.categories = " c ";
    formats_same(train, formats_open(&options), 0);
    options.ignore = "new";
    options.path = write_text("new", "c,new,d,y,a\n7,x,5,1,2\nx,y,6,2,3\n");
    formats_same_batch(formats_filled(train, 0, 0), formats_filled(formats_open(&options), 0, 0));
    options.ignore = NULL;
    struct dp_dataset_options other[10];
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        other[i] = options;
    static const char *const why[] = {
        "--hash-bits (data.hash_bits) is 16, but was 63 when",
        "--index-base (data.index_base) is 1, but was 0 when",
        "--scale (data.scale) is 0.5, but was 1 when",
        "--normalize (data.normalize) is yes, but was no when",
        "--standardize (data.standardize) is no, but was yes when",
        "by --categories (data.categories) column 'd' is a category, but it was not a category when",
        "by --categories (data.categories) column 'd' is a category, but it was not a category when",
        "by --ignore (data.ignore) column 'a' is left out, but it was not left out when",
        "by --id (data.id) column 'a' is an id, but it was not an id when",
        "--missing (data.missing) names other texts than when"};
    other[0].hash_bits = 16;
    other[1].index_base = 1;
    other[2].scale = 0.5;
    other[3].normalize = true;
    other[4].standardize = false;
    other[5].categories = "c,d";
    other[6].categories = "d";
    other[7].ignore = "a";
    other[8].id = "a";
    other[9].missing = "?";
    other[6].like = NULL;
    other[6].columns_path = "columns";
    for (size_t i = 0; i < sizeof why / sizeof why[0]; i++) {
        char *kept = NULL;
        struct dp_error err = {0};
        assert_int_equal(dp_schema_write(options.like, &kept, &err), DP_OK);
        if (other[i].columns_path)
            other[i].columns_path = write_text("columns", kept);
        free(kept);
        formats_refused(other[i], text, 0, DP_ARGUMENT, why[i]);
    }
    /* Its labels were 1 and 2; that they are 0 and 1 now has to be said. */
    formats_refused(options, "y,a,c,d\n1,2,7,5\n0,3,x,6\n", 3, DP_DATA, "label 0: expected 1 or 2");
    options.label_base = 0;
    options.path = write_text("zero", "y,a,c,d\n1,2,7,5\n0,3,x,6\n");
    assert_int_equal(dp_dataset_schema(formats_open(&options))->label_base, 0);
}

/* What parts the cells is each file's own; quotes hide it. */
static void separators(void **state)
{
    static const char *const texts[] = {"y,a,b\n1,2,\"x,y\"\n0,3,z\n", "y;a;b\n1;2;x,y\n0;3;\"z\"\n",
                                        "y\ta\tb\n1\t 2\tx,y\n0\t3\tz\n"};
    static const char *const names[] = {"\"a;b;c,d\",y\n1,0\n2,1\n", "\"a;b;c,d\";y\n1;0\n2;1\n",
                                        "\"a;b;c,d\"\ty\n1\t0\n2\t1\n"};
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    options.standardize = true;
    const char *path = write_text("comma", texts[0]);
    for (size_t i = 0; i < 3; i++) {
        struct dp_dataset_options other = options;
        options.path = path;
        other.path = write_text("other", texts[i]);
        same_rows(&options, &other);
        struct dp_dataset *a = formats_open(&options);
        other.like = dp_dataset_schema(a);
        struct dp_dataset *b = formats_open(&other);
        formats_same(a, b, 0);
    }
    for (size_t i = 0; i < 3; i++) {
        options.path = write_text("names", names[i]);
        struct dp_dataset *a = formats_open(&options);
        assert_int_equal(dp_dataset_schema(a)->columns, 2);
        assert_string_equal(dp_dataset_schema(a)->column[0].name, "a;b;c,d");
    }
    formats_refused(options, "y;a\n1;2\n0;\"3\"x\n", 3, DP_DATA, "a semicolon after a quoted field");
    formats_refused(options, "y;a\n1;2\n0;3;4\n", 3, DP_DATA, "expected 2 columns");
    formats_refused(options, "y;a\n1;2\n0;1,5\n", 3, DP_DATA,
                    "column 'a': '1,5' is a number with a comma: write a point for the decimals");
    formats_refused(options, "y,a\n1,2\n0,\"-1.234,5\"\n", 3, DP_DATA, "'-1.234,5' is a number with a comma");
    options.categories = "a";
    options.path = write_text("named", "y;a\n1;2\n0;1,5\n");
    (void)formats_open(&options);
}

/* A header is known by its names, without being told what the label is; what is libsvm's stays so. */
static void a_label_is_asked_for(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    options.label = NULL;
    formats_refused(options, "age,work,y\n1,x,0\n", 0, DP_ARGUMENT,
                    "--label NAME (data.label); its header is: age,work,y");
    formats_refused(options, "age;\"work;\";y\r\n1;x;0\n", 0, DP_ARGUMENT, "is: age;\"work;\";y");
    formats_refused(options, "age,2,y\n1,x,0\n", 1, DP_DATA, "expected a label (a finite decimal number)");
    options.path = write_text("libsvm", "1\t3:0.5\t4:1\n");
    struct dp_dataset *a = formats_open(&options);
    /* Without labels where it is scored; a line may have one all the same. */
    formats_refused(options, "3:0.5\t4:1\n", 1, DP_DATA, "expected a label");
    options.scored = true;
    options.labels = DP_LABELS_ANY;
    options.path = write_text("scored", "3:0.5\t4:1\n5:1\n1 7:1\n 8:1 # x\n");
    a = formats_open(&options);
    assert_int_equal(dp_dataset_examples(a), 4);
    struct dp_batch *b = formats_filled(a, 0, 0);
    assert_int_equal(b->list[0].offsets[1], 2);
    assert_int_equal(b->group[0].distinct, 5);
}

static void other_formats_are_refused(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    const struct dp_schema libsvm = {.format = "libsvm"}, criteo = {.format = "criteo"};
    char click[256] = "1";
    for (int i = 0; i < 39; i++)
        (void)snprintf(click + strlen(click), sizeof click - strlen(click), "\t%d", i);
    options.label = NULL;
    options.like = &libsvm;
    formats_refused(
        options, click, 0, DP_ARGUMENT,
        "is a file of format criteo (lines of a label, 13 integers and 26 categories), but the training "
        "file is of format libsvm");
    formats_refused(options, "a,b\n1,2\n", 0, DP_ARGUMENT, "is a file of format csv");
    options.like = &criteo;
    formats_refused(options, "1 3:1\n", 0, DP_ARGUMENT, "is a file of format libsvm");
    /* What is nothing's is for the training's own reader to say. */
    formats_refused(options, "1\t2\t3\n", 1, DP_DATA, "expected 40 columns");
}

static void late_text_is_refused(void **state)
{
    char text[16384];
    size_t len = (size_t)snprintf(text, sizeof text, "y,a,b\n");
    for (int i = 0; i < 1100; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "1,%d,%s\n", i, i == 1050 ? "late" : "0");
    formats_refused(options_of(DP_FORM_SPARSE), text, 1052, DP_DATA, "column 'b' (text?");
}

/* What stands where no number is known is as nothing there: the column is one of numbers. */
static void missing_numbers(void **state)
{
    static const char nothing[] = "y,a,b,c\n1,,5,x\n0,2,,NA\n1,,6,\n1,3,,nan\n",
                      written[] = "y,a,b,c\n1,NA,5,x\n0,2,NaN,NA\n1, null ,6,\n1,3,\"NULL\",nan\n";
    for (int form = DP_FORM_SPARSE; form <= DP_FORM_TABLES; form++) {
        if (form != DP_FORM_SPARSE && form != DP_FORM_FIELDS && form != DP_FORM_TABLES)
            continue;
        struct dp_dataset_options options = options_of((enum dp_data_form)form);
        options.fields = 1;
        options.path = write_text("nothing", nothing);
        struct dp_dataset *a = formats_open(&options);
        options.path = write_text("written", written);
        struct dp_dataset *b = formats_open(&options);
        formats_same(a, b, 0);
        struct dp_batch *batch = formats_filled(b, 0, 0);
        /* A text of a category is one, whatever it says: x, NA, nothing and nan. */
        assert_int_equal(batch->group[0].distinct, form == DP_FORM_SPARSE ? 2 + 4 : 4);
    }
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    formats_refused(
        options, "y,a,b\n1,2,3\n1,n/a,3\n", 0, DP_ARGUMENT,
        "has 1 columns of numbers and 1 of categories ('a' by 'n/a' in line 3), but the model takes 2 and 2: "
        "add columns=1,fields=1 to the model, or name the categories (--categories, data.categories)");
    formats_refused(options, "y,a,b\nNA,2,3\n", 0, DP_ARGUMENT,
                    "has 2 columns of numbers and 0 of categories, but the model takes 2 and 2: add "
                    "columns=2,fields=0 to the model");
    formats_refused(options_of(DP_FORM_SPARSE), "y,a,b\nNA,2,3\n", 2, DP_DATA,
                    "column 'y': expected a label, found 'NA'");
}

/* The same cells with another column as the label are other data. */
static void the_label_is_in_the_digest(void **state)
{
    uint64_t digest[2];
    for (int i = 0; i < 2; i++) {
        struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
        options.label = i ? "a" : "y";
        options.path = write_text("t", "y,a,b\n1,0,3\n0,1,\n");
        struct dp_dataset *dataset = formats_open(&options);
        digest[i] = dp_dataset_digest(dataset);
    }
    assert_true(digest[0] != digest[1]);
}

static void bad_files_are_refused(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    static const struct {
        const char *text;
        unsigned line;
        const char *words;
    } bad[] = {
        {"a,b\n1,2\n", 1, "--label (data.label) is 'y', which is no column of this file; there are: a, b"},
        {"a1,7.5,yes,2\n1,2,3,4\n", 1,
         "7.5, yes, 2. The first line seems to be data: put a line with the columns' names"},
        {"y,a,a\n", 1, "two columns are named 'a'"},
        /* Names are printed as they are; of a long one no character is cut. */
        {"年齢,都市\n1,2\n", 1, "which is no column of this file; there are: 年齢, 都市"},
        {"年齢,年齢\n1,2\n", 1, "two columns are named '年齢'"},
        {"y,年\x1b\n1,2\n1,x\xc2\x9b都\n1,,\n", 4, "found 3"},
        {"y,a\n東京東京東京東京東京東京東京,2\nx,2\ny,3\n", 4,
         "after 'x' in line 3, '東京東京東京東京東京東京東...' in line 2"},
        {"y,,a\n", 1, "column 2 has no name"},
        {"y,a\n1,2\n1\n", 3, "expected 2 columns, as the header has, found 1"},
        {"y,a\n1,2\n1,2,3\n", 3, "found 3"},
        {"y,a\n1,\"2\"x\n", 2, "expected a comma after a quoted field, found 'x'"},
        {"y,a\n1,2\"\"\n", 2, "expected quotes around a complete field only"},
        {"w\f\"x\"\n1,2\n", 1, "byte 2 of the line is no text: is the file complete, and UTF-8 text?"},
        {"y,a\n1,2\n1,\"2\n", 3, "a field begins with a quote that is not closed"},
        {"y,a\n2,2\n", 2, "column 'y': label 2: expected 0 or 1"},
        {"y,a\n2.5,2\n", 2,
         "fm:8,loss=squared any number); if the label is in another column, name that with --label"},
        {"y,a\n,2\n", 2, "column 'y': expected a label"},
        {"y,a\n", 0, "holds no examples, only a header"},
        /* Out of range, a number is one all the same: no category, and the others neither. */
        {"y,a\n1,2\n1,-1e39\n", 3,
         "column 'a' (text? name it in --categories, data.categories): expected a number in the range"},
        {"\n\n", 0, "has no header"},
        {"y\n1\n0\n", 1, "no column is left to train on"},
        {"x|y\n1|2\n", 1,
         "there are: x|y. The line has one column: commas, semicolons or tabs separate them"},
        {"y,a\r1,2\r0,3\r", 1, "byte 4 of the line is a carriage return without a line feed: if they end"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        formats_refused(options, bad[i].text, bad[i].line, DP_DATA, bad[i].words);
    options.label = "lat";
    formats_refused(options, "x,y,late\n1,2,3\n", 1, DP_DATA, "there are: x, y, late (did you mean 'late'?)");
    options.label = "2";
    formats_refused(options, "x,y\n1,2\n", 1, DP_DATA,
                    "there are: x, y (a name, not a number: column 2 is 'y')");
    options.label = NULL;
    options.format = "csv";
    formats_refused(options, "y,a\n1,2\n", 0, DP_ARGUMENT,
                    "needs the name of its label's column: --label NAME (data.label); its header is: y,a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(columns_are_told_apart),
        FILES_TEST(numbers_alone),
        FILES_TEST(named_categories),
        FILES_TEST(columns_are_left_out),
        FILES_TEST(columns_that_cannot_be_left_out),
        FILES_TEST(texts_of_missing_cells),
        FILES_TEST(a_test_file_is_like_the_training_file),
        FILES_TEST(bad_kept_columns_are_refused),
        FILES_TEST(unmatched_columns),
        FILES_TEST(settings_are_those_of_the_schema),
        FILES_TEST(kept_columns_are_those_of_the_training_file),
        FILES_TEST(separators),
        FILES_TEST(a_label_is_asked_for),
        FILES_TEST(other_formats_are_refused),
        FILES_TEST(late_text_is_refused),
        FILES_TEST(missing_numbers),
        FILES_TEST(the_label_is_in_the_digest),
        FILES_TEST(bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal: a schema that was written is read as it was, bit for bit; what is damaged is named. Method: every
 * kind of line; every line left out, doubled and out of order; every length of the text; every flipped
 * bit. */
#include "worker/read/schema.h"

#include "common/base/text.h"
#include "tests/lib/test.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char csv[] = "version,2\n"
                          "format,csv\n"
                          "names,\"y\",\"a,\"\"b\"\"\n\",\"c\",\"\x1f\x8b\",\"key\",\"x\"\n"
                          "kinds,label,number,category,number,id,ignored\n"
                          "trimmed\n"
                          "means,,0.10000000000000001,,-3.4028234663852886e+38,,\n"
                          "deviations,,4.9406564584124654e-324,,0,,\n"
                          "classes,\"<=50K\",\">50K, or \"\"so\"\"\",\"\"\n"
                          "label_base,16777216\n"
                          "missing,\"?\",\"n.a.\"\n"
                          "values,0,1,65536,0,0,0\n"
                          "cells,0,3,9223372036854775807,0,0,0\n"
                          "label_scale,-4000.1000000000004,1e+30\n"
                          "end\n";

static struct dp_schema parse(const char *text)
{
    struct dp_schema schema;
    struct dp_error err = {0};
    if (dp_schema_parse("kept", text, strlen(text), &schema, &err) != DP_OK)
        fail_msg("%s", err.text);
    return schema;
}

static void refused(const char *text, size_t len, const char *why)
{
    struct dp_schema schema;
    struct dp_error err = {0};
    enum dp_status st = dp_schema_parse("kept", text, len, &schema, &err);
    if (st != DP_DATA || strncmp(err.text, "kept:", 5) != 0 || !strstr(err.text, why))
        fail_msg("'%.*s': status %d, '%s', not '%s'", (int)len, text, (int)st, err.text, why);
    assert_null(schema.column);
    assert_null(schema.class_text);
}

static void written(const struct dp_schema *schema, const char *expected)
{
    char *text = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_schema_write(schema, &text, &err), DP_OK);
    assert_string_equal(text, expected);
    free(text);
}

static void what_is_written_is_read(void **state)
{
    struct dp_schema schema = parse(csv);
    assert_string_equal(schema.format, "csv");
    assert_int_equal(schema.columns, 6);
    assert_true(schema.column[4].kind == DP_COLUMN_ID && schema.column[5].kind == DP_COLUMN_IGNORED);
    assert_true(dp_schema_is_missing(&schema, dp_cell_of("n.a.")) &&
                dp_schema_is_missing(&schema, dp_cell_of("NA")) &&
                !dp_schema_says_missing(&schema, dp_cell_of("NA")));
    assert_string_equal(schema.column[1].name, "a,\"b\"\n");
    assert_int_equal(schema.column[2].kind, DP_COLUMN_CATEGORY);
    assert_true(schema.standardized);
    assert_true(schema.column[1].mean == 0.1 && schema.column[1].deviation == DBL_TRUE_MIN);
    assert_true(schema.column[3].mean == -(double)FLT_MAX && schema.column[3].deviation == 0);
    assert_int_equal(schema.classes, 3);
    assert_string_equal(schema.class_text[1], ">50K, or \"so\"");
    assert_int_equal(schema.label_base, 1 << 24);
    assert_true(schema.label_scale.mean == -4000.1000000000004 && schema.label_scale.deviation == 1e30);
    written(&schema, csv);
    dp_schema_clear(&schema);
    dp_schema_clear(&schema);
    /* Their meaning is cut at a character. */
    char labels[32];
    schema = parse("version,2\nformat,csv\nnames,\"y\"\nkinds,label\nclasses,\"東京\",\"大阪大阪\"\nend\n");
    for (size_t size = 1; size <= sizeof labels; size++) {
        dp_schema_labels_text(&schema, true, 2, labels, size);
        assert_ptr_equal(dp_text_not_utf8(labels, labels + strlen(labels)), labels + strlen(labels));
    }
    dp_schema_clear(&schema);
    static const char libsvm[] = "version,2\nformat,libsvm\nlabel_base,1\nend\n";
    schema = parse(libsvm);
    written(&schema, libsvm);
    dp_schema_clear(&schema);
}

static const struct dp_schema_inputs inputs = {
    .known = true, .hash_bits = 18, .index_base = 1, .scale = 1.0 / 255, .normalize = true, .words = 2};

static char *with_inputs(void)
{
    char *text = NULL;
    struct dp_error err = {0};
    struct dp_schema schema = parse(csv);
    assert_false(schema.inputs.known);
    schema.inputs = inputs;
    assert_int_equal(dp_schema_write(&schema, &text, &err), DP_OK);
    dp_schema_clear(&schema);
    return text;
}

static void inputs_are_read_as_written(void **state)
{
    char *text = with_inputs();
    struct dp_schema schema = parse(text);
    assert_int_equal(strncmp(text, "version,3\n", 10), 0);
    assert_true(schema.inputs.known && schema.inputs.normalize && schema.inputs.scale == inputs.scale);
    assert_int_equal(schema.inputs.hash_bits, 18);
    assert_int_equal(schema.inputs.index_base, 1);
    assert_int_equal(schema.inputs.words, 2);
    written(&schema, text);
    dp_schema_clear(&schema);
    free(text);
}

/* A digit of a mean, a letter of a name: nothing but the checksum shows it. */
static void every_flipped_bit(void **state)
{
    char *text = with_inputs();
    size_t len = strlen(text);
    for (size_t bit = 0; bit < 8 * (len - 1); bit++) {
        struct dp_schema schema;
        struct dp_error err = {0};
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        enum dp_status st = dp_schema_parse("kept", text, len, &schema, &err);
        if (st != DP_DATA && st != DP_VERSION)
            fail_msg("bit %zu flipped: status %d: %s", bit, (int)st, text);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t cut = 0; cut + 1 < len; cut++)
        refused(text, cut, "");
    free(text);
}

/* Of version 1, and with categories that keep the blanks around them. */
static void older_files_are_refused(void **state)
{
    static const char *const older[] = {
        "\"version\",\"a\"\nlabel,number\n",
        "version,2\nformat,csv\nnames,\"y\",\"a\"\nkinds,label,category\nend\n"};
    for (size_t i = 0; i < 2; i++) {
        struct dp_schema schema;
        struct dp_error err = {0};
        assert_int_equal(dp_schema_parse("kept", older[i], strlen(older[i]), &schema, &err), DP_VERSION);
        assert_true(strncmp(err.text, "kept:", 5) == 0 && strstr(err.text, "train again"));
        assert_null(schema.column);
    }
}

static void every_cut(void **state)
{
    for (size_t len = 0; len + 2 < sizeof csv; len++)
        refused(csv, len, "");
}

#define HEAD "version,2\nformat,csv\nnames,\"y\",\"a\"\nkinds,label,number\n"

static void damage_is_named(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "has no header"},
        {"format,csv\n", "expected the file's version first"},
        {"version,2\nend\n", "lacks the line of the format"},
        {"version,2\nformat,a-name-that-is-too-long\n", "expected the name of one format"},
        {"version,2\nformat,csv\nend\n", "lacks the line of the columns' names"},
        {"version,2\nformat,csv\nnames\n", "expected the names of 1 to 65536 columns, found 0"},
        {"version,2\nformat,csv\nnames,\"y\"\nend\n", "lacks the line of the columns' kinds"},
        {"version,2\nformat,csv\nkinds,label\n", "expected one line with the kinds of 0 columns"},
        {"version,2\nformat,csv\nnames,\"y\"\nkinds,number\nend\n", "has 0 labels among its columns"},
        {"version,2\nformat,csv\nnames,\"y\",\"a\"\nkinds,label,label\nend\n",
         "has 2 labels among its columns"},
        {"version,2\nformat,csv\nnames,\"y\",\"a\"\nkinds,label\n",
         "expected one line with the kinds of 2 columns"},
        {"version,2\nformat,csv\nnames,\"y\"\nkinds,numbe\n",
         "expected number, category, label or another kind of column, found 'numbe'"},
        {HEAD "mean,,1\n", "kept:5: expected version, format, names, kinds, trimmed, means"},
        {HEAD "trimmed,1\n", "expected nothing after it"},
        {HEAD "means,,1\nend\n", "lacks the line of the deviations"},
        {HEAD "deviations,,1\nend\n", "lacks the line of the means"},
        {HEAD "means,,1\nmeans,,1\n", "'means' after 'means': expected each line once"},
        {HEAD "deviations,,1\nmeans,,1\n", "'means' after 'deviations'"},
        {HEAD "means,1\n", "expected the means of 2 columns, found 1"},
        {HEAD "means,1,1\n", "expected nothing in a column of no numbers, found '1'"},
        {HEAD "means,,nan\n", "expected a mean, found 'nan'"},
        {HEAD "means,,1e999\n", "expected a mean, found '1e999'"},
        {HEAD "means,,\n", "expected a mean, found ''"},
        {HEAD "means,,1\ndeviations,,-1\n", "expected a deviation, found '-1'"},
        {HEAD "classes\n", "expected texts of labels"},
        {HEAD "values,1\n", "expected a count for each of 2 columns, found 1"},
        {HEAD "cells,1,-1\n", "expected a count, found '-1'"},
        {HEAD "missing\n", "expected texts of missing cells"},
        {"version,2\nformat,csv\nnames,\"y\",\"a\",\"b\"\nkinds,label,id,id\nend\n",
         "has 2 ids among its columns"},
        {HEAD "label_base,16777217\n", "expected one integer up to 16777216"},
        {HEAD "label_base,1,2\n", "expected one integer"},
        {HEAD "end,\n", "expected a checksum of 16 digits after it"},
        {HEAD "end,0123456789abcdef\n", "its checksum is not that of its lines"},
        {HEAD "inputs,63,1,1,0\nend\n", "its checksum is not that of its lines"},
        {HEAD "inputs,64,1,1,0\n", "expected hash bits, index base, scale"},
        {HEAD "inputs,63,1,1,0,2,1\n", "expected hash bits, index base, scale"},
        {HEAD "inputs,63,1,1\n", "expected hash bits, index base, scale"},
        {HEAD "end\nmeans,,1\n", "'means' after 'end'"},
        {HEAD "", "ends before its last line"},
        {HEAD "label_base,x\n", "expected one integer"},
        {HEAD "label_scale,1\n", "expected the mean and the deviation of labels, found 1 cells"},
        {HEAD "label_scale,1,0\n", "expected a deviation above 0"},
        {HEAD "label_scale,nan,1\n", "expected a mean, found 'nan'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(bad[i].text, strlen(bad[i].text), bad[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read),
                                       cmocka_unit_test(inputs_are_read_as_written),
                                       cmocka_unit_test(every_flipped_bit),
                                       cmocka_unit_test(older_files_are_refused),
                                       cmocka_unit_test(every_cut),
                                       cmocka_unit_test(damage_is_named)};
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}

/* Goal: lines become examples, and each kind of bad line is refused with its number and what was expected. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct dp_dataset_options as_features = {
    .format = "libsvm", .form = DP_FORM_SPARSE, .scale = 1, .batch = 1000};

/* The examples of a text, "label|index=value,...;". */
static void show(const char *text, char *out, size_t size)
{
    struct dp_dataset_options options = as_features;
    options.path = write_text("good", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *batch = formats_batch(dataset);
    size_t len = 0;
    dp_dataset_fill(dataset, 0, 0, batch);
    for (uint32_t i = 0; i < batch->examples; i++) {
        const uint32_t *offsets = batch->list[0].offsets + i;
        len += (size_t)snprintf(out + len, size - len, "%g|", (double)batch->labels[i]);
        for (uint32_t j = 0; j < offsets[1] - offsets[0]; j++)
            len += (size_t)snprintf(out + len, size - len, "%" PRIu64 "=%g,",
                                    dp_unmix(formats_key(batch, 0, 0, i, j)),
                                    (double)batch->list[0].values[offsets[0] + j]);
        len += (size_t)snprintf(out + len, size - len, ";");
    }
}

static void good_lines(void **state)
{
    static const struct {
        const char *text, *seen;
    } cases[] = {
        {"1 1:2 3:4\n", "1|1=2,3=4,;"},
        {"1 1:2 3:4", "1|1=2,3=4,;"},
        {"+1 1:2\r\n-1 2:1\r\n", "1|1=2,;-1|2=1,;"},
        {"+1 1:2\r\n-1 2:1\r", "1|1=2,;-1|2=1,;"},
        {"1\n2 \n3\t\n", "1|;2|;3|;"},
        {"\t 1 \t 5:.5 \t\n", "1|5=0.5,;"},
        {"# all\n\n  \n \t# x\n\r\n2 1:1 # 2:x\n3# y\n4 7:8#\n", "2|1=1,;3|;4|7=8,;"},
        {"0 9:1 3:2 5:-3e-1\n", "0|9=1,3=2,5=-0.3,;"},
        {"0 0:1 9223372036854775807:2\n", "0|0=1,9223372036854775807=2,;"},
        {"0 007:1\n", "0|7=1,;"},
        {"2.5 1:0\n", "2.5|1=0,;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char seen[256];
        show(cases[i].text, seen, sizeof seen);
        assert_string_equal(seen, cases[i].seen);
    }
}

static void bad_lines(void **state)
{
    static const struct {
        const char *line, *why;
    } cases[] = {
        {"1 2", "expected index:value, found '2'"},
        {"1 2:", "expected index:value with a finite"},
        {"1 :2", "expected index:value"},
        {"1 2:3:4", "expected index:value with a finite"},
        {"1 2:3x", "found '2:3x'"},
        {"1 2 :3", "expected index:value, found '2'"},
        {"1 2: 3", "expected index:value with a finite"},
        {"1 1:1,2:1", "found '1:1,2:1'"},
        {"1,2,yes", "expected a label (a finite decimal number) at the start of the line"},
        {"1 qid:3 1:1", "found 'qid:3'"},
        {"1 a:1", "expected index:value"},
        {"1 1.5:1", "expected index:value"},
        {"1 +1:1", "expected index:value"},
        {"1 1:nan", "finite"},
        {"1 1:NaN", "finite"},
        {"1 1:inf", "finite"},
        {"1 1:-infinity", "finite"},
        {"1 1:1e39", "range of f32"},
        {"1 1:0x10", "finite"},
        {"1 -1:1", "non-negative"},
        {"1 9223372036854775808:1", "2^63"},
        {"1 99999999999999999999999999:1", "2^63"},
        {"1 3:1 3:2", "once a line, found 3 twice"},
        {"1 9:1 3:1 5:1 3:2", "once a line, found 3 twice"},
        {"1:2 3:4", "expected a label"},
        {" 1:2", "expected a label"},
        {"nan 1:1", "expected a label"},
        {"inf 1:1", "expected a label"},
        {"1e39 1:1", "expected a label"},
        {"x 1:1", "expected a label"},
        {"1x 1:1", "found '1x'"},
        {"1,2 1:1", "expected a label"},
        {"1 1:1\r2:2", "found '1:1?2:2'"},
        {"1 \x1b[31m:1", "byte 3 of the line is no text"},
        {"1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "found 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int last = 0; last < 2; last++) {
            char text[256];
            (void)snprintf(text, sizeof text, "1 1:1\n# c\n%s%s", cases[i].line, last ? "" : "\n1 1:1\n");
            formats_refused(as_features, text, 3, DP_DATA, cases[i].why);
        }
}

/* Of indices that do not ascend, too. */
static void line_of_many_entries(void **state)
{
    size_t entries = 200000, len = 0;
    char *text = malloc(entries * 16);
    assert_non_null(text);
    text[len++] = '1';
    for (size_t i = 0; i < entries; i++)
        len += (size_t)sprintf(text + len, " %zu:1", i % 2 ? i : entries * 2 + i);
    struct dp_dataset_options options = as_features;
    options.path = write_file("long", text, len);
    struct dp_dataset *dataset = formats_open(&options);
    assert_int_equal(dp_dataset_shape(dataset)->list[0].entries, entries);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FILES_TEST(good_lines), FILES_TEST(bad_lines),
                                       FILES_TEST(line_of_many_entries)};
    return cmocka_run_group_tests_name("libsvm", tests, NULL, NULL);
}

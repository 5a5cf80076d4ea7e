/* Goal: lines become examples however the text is cut into blocks, and each kind of bad line is refused with
 * its number and what was expected. */
#include "worker/read/libsvm.h"
#include "worker/read/lines.h"

#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes what it sees as text, "label|index=value,...;". */
struct record {
    char text[4096];
    size_t len, examples, entries;
    enum dp_status answer;
};

static enum dp_status visit(void *self, const struct dp_libsvm_example *example, struct dp_error *err)
{
    struct record *r = self;
    r->examples++;
    r->entries += example->entries;
    if (r->len < 3000) {
        r->len += (size_t)snprintf(r->text + r->len, 64, "%g|", (double)example->label);
        for (size_t i = 0; i < example->entries && r->len < 3000; i++)
            r->len += (size_t)snprintf(r->text + r->len, 64, "%" PRIu64 "=%g,", example->indices[i],
                                       (double)example->values[i]);
        r->len += (size_t)snprintf(r->text + r->len, 64, ";");
    }
    return r->answer == DP_OK ? DP_OK : dp_fail(err, r->answer, "not wanted");
}

/* Feeds the text in blocks of `block` bytes, each at the end of a block of memory of its own. */
static enum dp_status parse(const char *text, size_t len, size_t block, struct record *record,
                            struct dp_error *err)
{
    struct dp_libsvm *libsvm;
    record->len = record->examples = record->entries = 0;
    record->text[0] = '\0';
    enum dp_status st = dp_libsvm_new("name", false, (struct dp_libsvm_sink){visit, record}, &libsvm, err);
    for (size_t at = 0; at < len && st == DP_OK; at += block) {
        size_t part = len - at < block ? len - at : block;
        char *copy = malloc(part);
        assert_non_null(copy);
        memcpy(copy, text + at, part);
        st = dp_libsvm_feed(libsvm, copy, part, err);
        free(copy);
    }
    if (st == DP_OK)
        st = dp_libsvm_finish(libsvm, err);
    dp_libsvm_free(&libsvm);
    dp_libsvm_free(&libsvm);
    return st;
}

static void good_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text, *seen;
    } cases[] = {
        {"", ""},
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
    struct record *record = calloc(1, sizeof *record);
    assert_non_null(record);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t block = 1; block <= strlen(cases[i].text) + 1; block++) {
            struct dp_error err = {0};
            if (parse(cases[i].text, strlen(cases[i].text), block, record, &err) != DP_OK)
                fail_msg("'%s': %s", cases[i].text, err.text);
            assert_string_equal(record->text, cases[i].seen);
        }
    free(record);
}

static void bad_lines(void **state)
{
    (void)state;
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
        {"1 \x1b[31m:1", "found '?[31m:1'"},
        {"1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "found 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"},
    };
    struct record *record = calloc(1, sizeof *record);
    assert_non_null(record);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        for (int last = 0; last < 2; last++) {
            struct dp_error err = {0};
            (void)snprintf(text, sizeof text, "1 1:1\n# c\n%s%s", cases[i].line, last ? "" : "\n1 1:1\n");
            enum dp_status st = parse(text, strlen(text), 7, record, &err);

            if (st != DP_DATA || strncmp(err.text, "name:3: ", 8) != 0 || !strstr(err.text, cases[i].why))
                fail_msg("'%s': status %d, '%s'", cases[i].line, (int)st, err.text);
            assert_int_equal(record->examples, 1);
        }
    }
    struct dp_error err = {0};
    assert_int_equal(parse("1 1:1\0\n", 7, 99, record, &err), DP_DATA);
    free(record);
}

static void line_of_any_length(void **state)
{
    (void)state;
    size_t entries = 200000, len = 0;
    char *text = malloc(entries * 16);
    struct record *record = calloc(1, sizeof *record);
    assert_true(text && record);
    text[len++] = '1';
    for (size_t i = 0; i < entries; i++)
        len += (size_t)sprintf(text + len, " %zu:1", i % 2 ? i : entries * 2 + i);
    for (size_t block = 1000; block <= len; block += len - 1000) {
        struct dp_error err = {0};
        assert_int_equal(parse(text, len, block, record, &err), DP_OK);
        assert_int_equal(record->entries, entries);
    }
    free(text);
    free(record);
}

static void visit_may_refuse(void **state)
{
    (void)state;
    struct dp_error err = {0};
    struct record *record = calloc(1, sizeof *record);
    assert_non_null(record);
    record->answer = DP_FULL;
    assert_int_equal(parse("\n1 1:1\n2 1:1\n", 13, 99, record, &err), DP_FULL);
    assert_string_equal(err.text, "name:2: not wanted");
    assert_int_equal(record->examples, 1);
    free(record);
}

/* A few packed megabytes may be a line of many gigabytes. */
static void endless_line_is_refused(void **state)
{
    (void)state;
    struct dp_libsvm *libsvm;
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    static char block[1 << 20];
    uint64_t fed = 0;
    memset(block, '1', sizeof block);
    assert_int_equal(dp_libsvm_new("name", false, (struct dp_libsvm_sink){visit, NULL}, &libsvm, &err),
                     DP_OK);
    for (; st == DP_OK && fed < DP_LINES_MAX + 4 * sizeof block; fed += sizeof block)
        st = dp_libsvm_feed(libsvm, block, sizeof block, &err);
    dp_libsvm_free(&libsvm);
    assert_int_equal(st, DP_DATA);
    assert_true(fed == DP_LINES_MAX + sizeof block);
    assert_non_null(strstr(err.text, "name:1: the line is longer than 256 MiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_lines), cmocka_unit_test(bad_lines), cmocka_unit_test(line_of_any_length),
        cmocka_unit_test(visit_may_refuse), cmocka_unit_test(endless_line_is_refused)};
    return cmocka_run_group_tests_name("libsvm", tests, NULL, NULL);
}

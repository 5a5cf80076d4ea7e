/* Goal: lines and CSV records are told apart wherever the blocks are cut, with their numbers.
 * Method: a text cut at each pair of places against the same text whole. */
#include "tests/lib/test.h"
#include "worker/read/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct seen {
    char text[512];  /* "1:first|2:second|" */
    uint64_t refuse; /* this line */
};

static enum dp_status see(void *self, const char *at, const char *end, uint64_t line, struct dp_error *err)
{
    struct seen *seen = self;
    size_t len = strlen(seen->text);
    if (line == seen->refuse)
        return dp_lines_unexpected("something else", at, end, err);
    (void)snprintf(seen->text + len, sizeof seen->text - len, "%" PRIu64 ":%.*s|", line, (int)(end - at), at);
    return DP_OK;
}

static enum dp_status read_cut(const char *text, bool quotes, size_t a, size_t b, struct seen *seen,
                               struct dp_error *err)
{
    struct dp_lines *lines;
    size_t len = strlen(text);
    assert_int_equal(dp_lines_new("file", quotes, (struct dp_lines_sink){see, seen}, &lines, err), DP_OK);
    enum dp_status st = dp_lines_feed(lines, text, a, err);
    if (st == DP_OK)
        st = dp_lines_feed(lines, text + a, b - a, err);
    if (st == DP_OK)
        st = dp_lines_feed(lines, text + b, len - b, err);
    if (st == DP_OK)
        st = dp_lines_finish(lines, err);
    dp_lines_free(&lines);
    assert_null(lines);
    return st;
}

static void check(const char *text, bool quotes, const char *want)
{
    size_t len = strlen(text);
    for (size_t a = 0; a <= len; a++)
        for (size_t b = a; b <= len; b++) {
            struct seen seen = {.text = ""};
            struct dp_error err = {0};
            assert_int_equal(read_cut(text, quotes, a, b, &seen, &err), DP_OK);
            assert_string_equal(seen.text, want);
        }
}

static void cut_anywhere(void **state)
{
    check("", false, "");
    check("a\nbc\r\n\n d", false, "1:a|2:bc|3:|4: d|");
    check("a\nbc\n", false, "1:a|2:bc|");
    check("a\"\nb\"\n", false, "1:a\"|2:b\"|");
    check("a,\"x\ny\r\n\",b\nc,\"\"\"\n\"\nd", true, "1:a,\"x\ny\r\n\",b|4:c,\"\"\"\n\"|6:d|");
}

static void failures_name_the_place(void **state)
{
    struct dp_error err = {0};
    struct seen seen = {.refuse = 2};
    assert_int_equal(read_cut("a\nb\x80"
                              "0123456789012345678901234567890123456789\n",
                              false, 1, 3, &seen, &err),
                     DP_DATA);
    assert_string_equal(
        err.text, "file:2: expected something else, found 'b?01234567890123456789012345678901234567...'");
    seen.refuse = 0;
    assert_int_equal(read_cut("a\nb\"c\nd\n", true, 1, 3, &seen, &err), DP_DATA);
    assert_non_null(strstr(err.text, "file:2: a field begins with a quote"));
    seen.text[0] = '\0'; /* the line of the quote, not of its record */
    assert_int_equal(read_cut("a\n\"b\nc\",\"d\ne\n", true, 1, 3, &seen, &err), DP_DATA);
    assert_non_null(strstr(err.text, "file:3: a field begins with a quote"));
}

static void nul_bytes_are_refused(void **state)
{
    for (int quotes = 0; quotes < 2; quotes++)
        for (size_t cut = 0; cut <= 8; cut++) {
            struct dp_lines *lines;
            struct seen seen = {.text = ""};
            struct dp_error err = {0};
            assert_int_equal(dp_lines_new("file", quotes, (struct dp_lines_sink){see, &seen}, &lines, &err),
                             DP_OK);
            enum dp_status st = dp_lines_feed(lines, "a\nbc\0d\ne", cut, &err);
            if (st == DP_OK)
                st = dp_lines_feed(lines, "a\nbc\0d\ne" + cut, 8 - cut, &err);
            dp_lines_free(&lines);
            assert_int_equal(st, DP_DATA);
            assert_non_null(strstr(err.text, "file:2: byte 3 of the line is NUL"));
            assert_string_equal(seen.text, "1:a|");
        }
}

/* A quote without its second is refused within a bound, however large the file is; doubled quotes do not begin anew. */
static void endless_quotes_are_refused(void **state)
{
    static const char *const tails[] = {"x\n", "\"\"\n", "\"\""};
    for (size_t t = 0; t < 3; t++) {
        struct dp_lines *lines;
        struct seen seen = {.text = ""};
        struct dp_error err = {0};
        enum dp_status st = DP_OK;
        uint64_t fed = 0, block = 512 * strlen(tails[t]);
        char many[2048];
        for (size_t i = 0; i < block; i++)
            many[i] = tails[t][i % strlen(tails[t])];
        assert_int_equal(dp_lines_new("file", true, (struct dp_lines_sink){see, &seen}, &lines, &err), DP_OK);
        assert_int_equal(dp_lines_feed(lines, "a,b\nc,\"d\ne\",\"", 13, &err), DP_OK);
        for (; st == DP_OK && fed < 8 * DP_LINES_QUOTED_MAX; fed += block)
            st = dp_lines_feed(lines, many, block, &err);
        dp_lines_free(&lines);
        assert_int_equal(st, DP_DATA);
        assert_in_range(fed, DP_LINES_QUOTED_MAX, DP_LINES_QUOTED_MAX + 2 * block);
        assert_non_null(
            strstr(err.text, "file:3: a field begins with a quote that is not closed within 1 MiB"));
        assert_string_equal(seen.text, "1:a,b|");
    }
}

/* Many fields, each shorter than that, are a record. */
static void many_quoted_fields_are_read(void **state)
{
    struct dp_lines *lines;
    struct seen seen = {.text = "", .refuse = 1};
    struct dp_error err = {0};
    static char field[1 << 18];
    memset(field, 'x', sizeof field);
    field[0] = field[sizeof field - 2] = '"';
    field[sizeof field - 1] = ',';
    assert_int_equal(dp_lines_new("file", true, (struct dp_lines_sink){see, &seen}, &lines, &err), DP_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(dp_lines_feed(lines, field, sizeof field, &err), DP_OK);
    assert_int_equal(dp_lines_finish(lines, &err), DP_DATA); /* by `see` */
    assert_non_null(strstr(err.text, "file:1: expected something else"));
    dp_lines_free(&lines);
}

/* A few packed megabytes may be a line of many gigabytes: it costs no more memory than the bound. */
static void endless_lines_are_refused(void **state)
{
    struct dp_lines *lines;
    struct seen seen = {.text = ""};
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    static char block[1 << 20];
    uint64_t fed = 0;
    memset(block, '1', sizeof block);
    assert_int_equal(dp_lines_new("file", false, (struct dp_lines_sink){see, &seen}, &lines, &err), DP_OK);
    for (; st == DP_OK && fed < DP_LINES_MAX + 4 * sizeof block; fed += sizeof block)
        st = dp_lines_feed(lines, block, sizeof block, &err);
    dp_lines_free(&lines);
    assert_int_equal(st, DP_DATA);
    assert_true(fed == DP_LINES_MAX + sizeof block);
    assert_non_null(strstr(err.text, "file:1: the line is longer than 256 MiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cut_anywhere),
                                       cmocka_unit_test(failures_name_the_place),
                                       cmocka_unit_test(nul_bytes_are_refused),
                                       cmocka_unit_test(endless_quotes_are_refused),
                                       cmocka_unit_test(many_quoted_fields_are_read),
                                       cmocka_unit_test(endless_lines_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

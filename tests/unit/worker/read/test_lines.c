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
    (void)state;
    check("", false, "");
    check("a\nbc\r\n\n d", false, "1:a|2:bc|3:|4: d|");
    check("a\nbc\n", false, "1:a|2:bc|");
    check("a\"\nb\"\n", false, "1:a\"|2:b\"|");
    check("a,\"x\ny\r\n\",b\nc,\"\"\"\n\"\nd", true, "1:a,\"x\ny\r\n\",b|4:c,\"\"\"\n\"|6:d|");
}

static void failures_name_the_place(void **state)
{
    (void)state;
    struct dp_error err = {0};
    struct seen seen = {.refuse = 2};
    assert_int_equal(read_cut("a\nb\x01"
                              "0123456789012345678901234567890123456789\n",
                              false, 1, 3, &seen, &err),
                     DP_DATA);
    assert_string_equal(
        err.text, "file:2: expected something else, found 'b?01234567890123456789012345678901234567...'");
    seen.refuse = 0;
    assert_int_equal(read_cut("a\nb\"c\nd\n", true, 1, 3, &seen, &err), DP_DATA);
    assert_non_null(strstr(err.text, "file:2: a field begins with a quote"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cut_anywhere),
                                       cmocka_unit_test(failures_name_the_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

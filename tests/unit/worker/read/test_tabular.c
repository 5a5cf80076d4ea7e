/* Goal: every tabular format gives the same names and records for the same content, with the lines where they begin. Method: a callback
 * that writes down what it is given; one file of each format. */
#include "worker/read/tabular.h"

#include "tests/lib/test.h"
#include "tests/unit/worker/read/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct seen {
    char text[512];
    uint64_t stop_at; /* 0: never */
};

static void put(struct seen *seen, const struct dp_tabular_record *record, const char *what)
{
    size_t len = strlen(seen->text);
    len += (size_t)snprintf(seen->text + len, sizeof seen->text - len, "%s %" PRIu64 ":", what, record->line);
    for (size_t i = 0; i < record->count; i++)
        len += (size_t)snprintf(seen->text + len, sizeof seen->text - len, "%s%.*s", i ? "|" : "",
                                (int)(record->cells[i].end - record->cells[i].at), record->cells[i].at);
    (void)snprintf(seen->text + len, sizeof seen->text - len, "\n");
}

static enum dp_status names(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    put(self, record, "names");
    return DP_OK;
}

static enum dp_status next(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    struct seen *seen = self;
    put(seen, record, "record");
    return record->line == seen->stop_at ? dp_fail(err, DP_STOPPING, "enough") : DP_OK;
}

static enum dp_status read_all(const char *format, const char *path, struct seen *seen, struct dp_error *err)
{
    const struct dp_dataset_options options = {.format = format};
    return dp_tabular_read(&options, path, (struct dp_tabular_sink){names, next, seen}, err);
}

/* {format, a file of it}: "a", "b" and two records; the first one's second cell is empty, the second one's first is "x y". */
static const char *const files[][2] = {
    {"csv", "a,b\n1,\n\n\"x y\",2\n"},
    {"csv", "a;b\r\n1;\r\n\r\nx y;2"},
    {"csv", "a\tb\n1\t\n\nx y\t2\n"},
};

static void names_then_records(void **state)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = write_text("file", files[i][1]);
        const char *const formats[] = {files[i][0], "auto", NULL};
        for (size_t f = 0; f < 3; f++) {
            struct seen seen = {0};
            struct dp_error err = {0};
            if (read_all(formats[f], path, &seen, &err) != DP_OK)
                fail_msg("%s", err.text);
            assert_string_equal(seen.text, "names 1:a|b\nrecord 2:1|\nrecord 4:x y|2\n");
        }
        assert_ptr_equal(dp_tabular_begins((const unsigned char *)files[i][1], strlen(files[i][1])),
                         dp_tabular_named(files[i][0]));
    }
}

static void a_record_lacks_cells(void **state)
{
    struct seen seen = {0};
    struct dp_error err = {0};
    const char *path = write_text("file", "a,b\n1,2\n3\n");
    assert_int_equal(read_all("csv", path, &seen, &err), DP_DATA);
    assert_non_null(strstr(err.text, ":3: expected 2 columns, as the header has, found 1"));
    assert_string_equal(seen.text, "names 1:a|b\nrecord 2:1|2\n");
}

static void a_callback_stops_it(void **state)
{
    struct seen seen = {.stop_at = 2};
    struct dp_error err = {0};
    const char *path = write_text("file", "a,b\n1,2\n3\n");
    assert_int_equal(read_all("csv", path, &seen, &err), DP_STOPPING);
    assert_non_null(strstr(err.text, ":2: enough"));
}

static void what_is_no_header(void **state)
{
    static const char *const texts[] = {"", "1,2\n", "a\n", "a,\n", "a,1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_null(dp_tabular_begins((const unsigned char *)texts[i], strlen(texts[i])));
    assert_null(dp_tabular_named("libsvm"));
    assert_null(dp_tabular_named(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(names_then_records),
        FILES_TEST(a_record_lacks_cells),
        FILES_TEST(a_callback_stops_it),
        FILES_TEST(what_is_no_header),
    };
    return cmocka_run_group_tests_name("tabular", tests, NULL, NULL);
}

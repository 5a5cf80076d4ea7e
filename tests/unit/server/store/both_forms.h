/* Both forms: a test of store.h on RocksDB and on the fake, rows and marks in it. */
#ifndef DP_TESTS_UNIT_SERVER_STORE_BOTH_FORMS_H
#define DP_TESTS_UNIT_SERVER_STORE_BOTH_FORMS_H

#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW 144u

static int set_up(void **state, bool rocks)
{
    struct dp_error err = {0};
    struct form *form = form_new(rocks);
    *state = form;
    return form_open(form, &err) == DP_OK ? 0 : -1;
}
static int rocks(void **state)
{
    return set_up(state, true);
}
static int fake(void **state)
{
    return set_up(state, false);
}
static int tear_down(void **state)
{
    form_free(*state);
    return 0;
}

static void write_rows(struct form *form, uint32_t count, uint32_t table, uint64_t from, uint32_t version)
{
    struct batch *batch = batch_new(count, ROW);
    batch_fill(batch, table, from, 3, version);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    batch_free(batch);
}

static void expect_rows(struct form *form, uint32_t count, uint32_t table, uint64_t from, uint32_t version)
{
    struct batch *batch = batch_new(count, ROW);
    batch_fill(batch, table, from, 3, 0);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_READ)), DP_OK);
    batch_expect(batch, version);
    batch_free(batch);
}

struct seen {
    char text[256];
    uint32_t stop_at, len;
};

static enum dp_status note(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct seen *seen = context;
    size_t at = strlen(seen->text);
    (void)snprintf(seen->text + at, sizeof seen->text - at, "%.*s=%.*s ", (int)mark->key_bytes,
                   (const char *)mark->key, (int)mark->value_bytes, (const char *)mark->value);
    return ++seen->len == seen->stop_at ? dp_fail(err, DP_DATA, "enough") : DP_OK;
}

static void expect_marks(struct form *form, const char *prefix, const char *expected)
{
    struct dp_error err = {0};
    struct seen seen = {0};
    assert_int_equal(form->store.visit_marks(form->store.self, prefix, strlen(prefix), note, &seen, &err),
                     DP_OK);
    assert_string_equal(seen.text, expected);
}

static void put_marks(struct form *form)
{
    const struct dp_store_mark marks[] = {mark_text("t/b", "2"), mark_text("t/a", "1"), mark_text("u", ""),
                                          mark_text("t", "0"), mark_text("\xff", "z")};
    const struct dp_store_mark over = mark_text("t/b", "two");
    struct dp_store_job job = marks_job(marks, 5);
    assert_int_equal(form_do(form, &job), DP_OK);
    job = marks_job(&over, 1);
    assert_int_equal(form_do(form, &job), DP_OK);
}

#define ON_BOTH(test)                                                                                        \
    {"rocks: " #test, test, rocks, tear_down, NULL},                                                         \
    {                                                                                                        \
        "fake: " #test, test, fake, tear_down, NULL                                                          \
    }

#endif

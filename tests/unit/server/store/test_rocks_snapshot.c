/* Snapshots on disk. Goal: wherever the process dies while one is taken, dropped or reverted to, the next opening has the rows of
 * then or those of now, all of them, and what was answered is there. Method: each of the room's own file calls is the last
 * one in turn (all behind it fail), then the store is opened anew. (RocksDB's own calls: tests/fault.) */
#include "server/store/store_view.h"
#include "tests/lib/patience.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW  64u
#define ROWS 300u

/* ---- calls that fail from the n-th on */

static uint32_t calls, dies_at; /* 0: none fails */
static bool no_links;

static bool dies(void)
{
    calls++;
    if (dies_at == 0 || calls < dies_at)
        return false;
    errno = EIO;
    return true;
}

#define WRAPPED(name, parameters, arguments)                                                                 \
    int __real_##name parameters;                                                                            \
    int __wrap_##name parameters;                                                                            \
    int __wrap_##name parameters                                                                             \
    {                                                                                                        \
        return dies() ? -1 : __real_##name arguments;                                                        \
    }
WRAPPED(rename, (const char *from, const char *to), (from, to))
WRAPPED(unlink, (const char *path), (path))
WRAPPED(rmdir, (const char *path), (path))
WRAPPED(fsync, (int fd), (fd))

int __real_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int __wrap_linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    if (no_links) {
        errno = EPERM;
        return -1;
    }
    return dies() ? -1 : __real_linkat(from_at, from, to_at, to, flags);
}

/* ---- */

static const struct dp_store_snapshot then = {1, 2}, before = {1, 1};

static struct form *form_with_journal(void)
{
    struct dp_error err = {0};
    struct form *form = form_new(true);
    form->options.journaled = true;
    assert_int_equal(form_open(form, &err), DP_OK);
    return form;
}

static void write_rows(struct form *form, uint32_t version)
{
    struct batch *batch = batch_new(ROWS, ROW);
    batch_fill(batch, 1, 0, 3, version);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    batch_free(batch);
    char text[16];
    (void)snprintf(text, sizeof text, "%u", version);
    const struct dp_store_mark mark = mark_text("version", text);
    struct dp_store_job marks = marks_job(&mark, 1);
    assert_int_equal(form_do(form, &marks), DP_OK);
}

static void expect_rows(struct form *form, uint32_t version)
{
    struct batch *batch = batch_new(ROWS, ROW);
    batch_fill(batch, 1, 0, 3, 0);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_READ)), DP_OK);
    batch_expect(batch, version);
    batch_free(batch);
}

static enum dp_status see(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    (void)err;
    (void)snprintf(context, 16, "%.*s", (int)mark->value_bytes, (const char *)mark->value);
    return DP_OK;
}

static const char *mark_of(struct form *form, const char *key)
{
    static char value[16];
    struct dp_error err = {0};
    value[0] = '\0';
    assert_int_equal(form->store.visit_marks(form->store.self, key, strlen(key), see, value, &err), DP_OK);
    return value;
}

static enum dp_status take(struct form *form, struct dp_store_snapshot name, struct dp_store_snapshot keeps)
{
    struct dp_store_job job = {.kind = DP_STORE_SNAPSHOT, .snapshot = name, .keeps = keeps};
    return form_do(form, &job);
}

static bool holds(struct form *form, struct dp_store_snapshot name)
{
    return form->store.holds(form->store.self, name);
}

static enum dp_status revert(struct form *form, struct dp_error *err)
{
    const struct dp_store_mark mark = mark_text("back", "yes");
    return form_revert(form, then, &mark, err);
}

/* Rows of version 1 in snapshot 1-1, 2 in 1-2, 3 now; closed. */
static struct form *three_versions(void)
{
    struct form *form = form_with_journal();
    write_rows(form, 1);
    assert_int_equal(take(form, before, before), DP_OK);
    write_rows(form, 2);
    assert_int_equal(take(form, then, before), DP_OK);
    write_rows(form, 3);
    form_close(form, true);
    return form;
}

static void nothing_is_left_over(const struct form *form)
{
    static const char *const names[] = {"snapshot-tmp", "snapshot-tmp.tmp", "snapshot-drop",
                                        "revert-1-2",   "snapshot-1-1",     "snapshot-1-2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", form->directory, names[i]);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

/* What a server and all who look for a store ask for before they open it: without it the store is taken for lost. */
static void store_is_seen(const struct form *form)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/CURRENT", form->directory);
    assert_int_equal(access(path, F_OK), 0);
}

/* The process dies at this call of the revert, or of the opening that ends it (opens: of that one alone). True: it did. */
static bool revert_dies_at(uint32_t at, bool opens)
{
    struct dp_error err = {0};
    struct form *form = three_versions();
    calls = 0;
    dies_at = opens ? 0 : at;
    enum dp_status st = revert(form, &err);
    if (opens) {
        assert_int_equal(st, DP_OK);
        calls = 0;
        dies_at = at;
    }
    if (st == DP_OK && form_open(form, &err) == DP_OK)
        form_close(form, true);
    bool died = calls >= at;
    dies_at = 0;
    store_is_seen(form);
    assert_int_equal(form_open(form, &err), DP_OK);
    bool back = strcmp(mark_of(form, "back"), "yes") == 0;
    assert_true(back || !opens);
    expect_rows(form, back ? 2 : 3);
    assert_string_equal(mark_of(form, "version"), "3");
    if (back) {
        nothing_is_left_over(form);
    } else { /* asked for again */
        assert_true(holds(form, then));
        form_close(form, true);
        assert_int_equal(revert(form, &err), DP_OK);
        assert_int_equal(form_open(form, &err), DP_OK);
        expect_rows(form, 2);
        assert_string_equal(mark_of(form, "back"), "yes");
    }
    write_rows(form, 4);
    form_close(form, true);
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_rows(form, 4);
    form_free(form);
    return died;
}

static void a_revert_may_die_at_any_call(void **state)
{
    uint32_t swept = 0;
    (void)state;
    for (uint32_t at = 1; revert_dies_at(at, false); at += dp_stride(3))
        swept = at;
    print_message("%u calls\n", swept);
    assert_true(swept > 10);
}

static void an_opening_that_ends_a_revert_may_die_at_any_call(void **state)
{
    uint32_t swept = 0;
    (void)state;
    for (uint32_t at = 1; revert_dies_at(at, true); at += dp_stride(3))
        swept = at;
    print_message("%u calls\n", swept);
    assert_true(swept > 10);
}

/* True: it died at this call. The store goes on, and another process opens it. */
static bool take_dies_at(uint32_t at)
{
    struct dp_error err = {0};
    struct form *form = form_with_journal();
    write_rows(form, 1);
    assert_int_equal(take(form, before, before), DP_OK);
    write_rows(form, 2);
    calls = 0;
    dies_at = at;
    enum dp_status st = take(form, then, before);
    bool died = calls >= at;
    dies_at = 0;
    assert_true(st == DP_OK || died);
    assert_true(holds(form, before));
    write_rows(form, 3); /* a failed snapshot fails nothing else */
    form_close(form, true);
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_rows(form, 3);
    assert_true(holds(form, before));
    assert_true(holds(form, then) || st != DP_OK);
    if (holds(form, then)) { /* then it is whole */
        form_close(form, true);
        assert_int_equal(revert(form, &err), DP_OK);
        assert_int_equal(form_open(form, &err), DP_OK);
        expect_rows(form, 2);
    }
    form_free(form);
    return died;
}

static void taking_one_may_die_at_any_call(void **state)
{
    uint32_t swept = 0;
    (void)state;
    for (uint32_t at = 1; take_dies_at(at); at++)
        swept++;
    print_message("%u calls\n", swept);
    assert_true(swept > 2);
}

/* A snapshot that is half removed must not pass for one. */
static bool drop_dies_at(uint32_t at)
{
    const struct dp_store_snapshot none = {0};
    struct dp_error err = {0};
    struct form *form = three_versions();
    assert_int_equal(form_open(form, &err), DP_OK);
    calls = 0;
    dies_at = at;
    (void)take(form, none, none);
    bool died = calls >= at;
    dies_at = 0;
    form_close(form, true);
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_rows(form, 3);
    if (holds(form, then)) {
        form_close(form, true);
        assert_int_equal(revert(form, &err), DP_OK);
        assert_int_equal(form_open(form, &err), DP_OK);
        expect_rows(form, 2);
    }
    form_free(form);
    return died;
}

static void dropping_may_die_at_any_call(void **state)
{
    (void)state;
    for (uint32_t at = 1; drop_dies_at(at); at++)
        continue;
}

static void a_revert_needs_no_links(void **state)
{
    struct dp_error err = {0};
    struct form *form = three_versions();
    (void)state;
    no_links = true;
    assert_int_equal(revert(form, &err), DP_OK);
    assert_int_equal(form_open(form, &err), DP_OK);
    no_links = false;
    expect_rows(form, 2);
    form_free(form);
}

/* Who only reads finds the rows where they are, before the files were brought over, and leaves them there. */
static void a_reader_reads_from_a_revert_that_is_not_ended(void **state)
{
    struct dp_error err = {0};
    struct form *form = three_versions();
    char path[512];
    (void)state;
    assert_int_equal(revert(form, &err), DP_OK);
    (void)snprintf(path, sizeof path, "%s/CURRENT", form->directory); /* the old files are on their way out */
    assert_int_equal(unlink(path), 0);
    struct dp_store_view *inspect = NULL;
    assert_int_equal(dp_store_view_open(form->directory, NULL, &inspect, &err), DP_OK);
    assert_int_equal(dp_store_view_own(inspect)->state, DP_STORE_VIEW_CLEAN);
    dp_store_view_close(&inspect);
    form->options.read_only = true;
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_rows(form, 2);
    form_close(form, false);
    (void)snprintf(path, sizeof path, "%s/revert-1-2/CURRENT", form->directory);
    assert_int_equal(access(path, F_OK), 0);
    form->options.read_only = false;
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_rows(form, 2);
    form_free(form);
}

/* What was not closed cleanly has its rows in a journal: it is not thrown away. */
static void a_store_that_was_not_closed_cleanly_is_not_reverted(void **state)
{
    struct dp_error err = {0};
    struct form *form = form_with_journal();
    (void)state;
    write_rows(form, 2);
    assert_int_equal(take(form, then, then), DP_OK);
    write_rows(form, 3);
    form_close(form, false);
    assert_int_equal(revert(form, &err), DP_UNCLEAN);
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_rows(form, 3);
    form_free(form);
}

/* Files of that name that are none. */
static void other_names_are_no_snapshots(void **state)
{
    static const char *const names[] = {
        "snapshot-",     "snapshot-1",    "snapshot-01-2",         "snapshot-1-2x",
        "snapshot--1-2", "snapshots-1-2", "snapshot-1-99999999999"};
    struct dp_error err = {0};
    struct form *form = form_with_journal();
    (void)state;
    write_rows(form, 1);
    form_close(form, true);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", form->directory, names[i]);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_false(holds(form, then));
    assert_false(holds(form, (struct dp_store_snapshot){1, 99999999999 & UINT32_MAX}));
    assert_int_equal(take(form, (struct dp_store_snapshot){0}, (struct dp_store_snapshot){0}), DP_OK);
    expect_rows(form, 1);
    form_free(form);
}

/* ---- links */

struct linked_snapshot {
    struct batch *expected;
    uint32_t seen;
};

static enum dp_status see_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                              struct dp_error *err)
{
    struct linked_snapshot *linked = context;
    (void)err;
    assert_true(linked->seen < ROWS && key.mixed == linked->expected->keys[linked->seen].mixed);
    assert_int_equal(row_bytes, ROW);
    assert_memory_equal(row, linked->expected->rows[linked->seen++], ROW);
    return DP_OK;
}

static void expect_in_link(const struct form *form, const char *name, uint32_t version)
{
    struct linked_snapshot linked = {.expected = batch_new(ROWS, ROW)};
    struct dp_store_view *view = NULL;
    struct dp_error err = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/cut-1-1/%s", form->directory, name);
    batch_fill(linked.expected, 1, 0, 3, version);
    assert_int_equal(dp_store_view_open(path, NULL, &view, &err), DP_OK);
    assert_int_equal(dp_store_view_rows(view, NULL, see_row, &linked, &err), DP_OK);
    assert_int_equal(linked.seen, ROWS);
    dp_store_view_close(&view);
    batch_free(linked.expected);
}

/* Whatever becomes of them in the store. */
static void a_link_has_the_snapshots_of_its_moment(bool links)
{
    struct form *form = form_with_journal();
    struct dp_store_job link = {.kind = DP_STORE_LINK, .link_name = "cut-1-1"};
    const struct dp_store_snapshot later = {1, 3};
    struct dp_error err = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/cut-1-1", form->directory);
    write_rows(form, 1);
    assert_int_equal(take(form, before, before), DP_OK);
    write_rows(form, 2);
    assert_int_equal(take(form, then, before), DP_OK);
    write_rows(form, 3);
    no_links = !links;
    assert_int_equal(form_do(form, &link), DP_OK);
    no_links = false;
    assert_int_equal(take(form, later, later), DP_OK);
    assert_false(holds(form, then));
    expect_in_link(form, "snapshot-1-1", 1);
    expect_in_link(form, "snapshot-1-2", 2);
    assert_int_equal(access(path, F_OK), 0);
    form_close(form, true);
    assert_int_equal(form_open(form, &err), DP_OK); /* which sweeps it */
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(holds(form, later));
    form_free(form);
}

static void a_link_has_snapshots(void **state)
{
    (void)state;
    a_link_has_the_snapshots_of_its_moment(true);
}

static void a_link_has_snapshots_without_hard_links(void **state)
{
    (void)state;
    a_link_has_the_snapshots_of_its_moment(false);
}

/* It fails, or is whole; what is left of it goes at the next opening. */
static void linking_may_die_at_any_call(void **state)
{
    uint32_t died = 0;
    (void)state;
    for (uint32_t at = 1;; at++) {
        struct form *form = form_with_journal();
        struct dp_store_job link = {.kind = DP_STORE_LINK, .link_name = "cut-1-1"};
        struct dp_error err = {0};
        char path[512];
        (void)snprintf(path, sizeof path, "%s/cut-1-1", form->directory);
        write_rows(form, 1);
        assert_int_equal(take(form, then, then), DP_OK);
        calls = 0;
        dies_at = at;
        enum dp_status st = form_do(form, &link);
        dies_at = 0;
        bool over = calls < at;
        died += st != DP_OK;
        if (st == DP_OK)
            expect_in_link(form, "snapshot-1-2", 1);
        form_close(form, true);
        assert_int_equal(form_open(form, &err), DP_OK);
        assert_int_not_equal(access(path, F_OK), 0);
        assert_true(holds(form, then));
        form_free(form);
        if (over)
            break;
    }
    print_message("%u ends\n", died);
    assert_true(died >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_revert_may_die_at_any_call),
        cmocka_unit_test(an_opening_that_ends_a_revert_may_die_at_any_call),
        cmocka_unit_test(taking_one_may_die_at_any_call),
        cmocka_unit_test(dropping_may_die_at_any_call),
        cmocka_unit_test(a_revert_needs_no_links),
        cmocka_unit_test(a_reader_reads_from_a_revert_that_is_not_ended),
        cmocka_unit_test(a_store_that_was_not_closed_cleanly_is_not_reverted),
        cmocka_unit_test(other_names_are_no_snapshots),
        cmocka_unit_test(a_link_has_snapshots),
        cmocka_unit_test(a_link_has_snapshots_without_hard_links),
        cmocka_unit_test(linking_may_die_at_any_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The contract of store.h, on both forms: counts, what outlasts a close, and snapshots. */
#include "tests/unit/server/store/both_forms.h"

#include <unistd.h>

static void rows_and_marks_outlast_a_close(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    write_rows(form, 1000, 1, 0, 1);
    put_marks(form);
    write_rows(form, 10, 1, 5, 2);
    for (int i = 0; i < 2; i++) {
        form_close(form, true);
        assert_int_equal(form_open(form, &err), DP_OK);
        expect_marks(form, "t", "t=0 t/a=1 t/b=two ");
        expect_rows(form, 5, 1, 0, 1);
        expect_rows(form, 10, 1, 5, 2);
        expect_rows(form, 985, 1, 15, 1);
    }
}

/* 1200 rows of table 1, 30 of which are overwritten, 500 of table 7, none of 3; what is written behind the count's
 * submit is not in it. */
static void rows_are_counted_as_of_submit(void **state)
{
    struct form *form = *state;
    struct dp_store_key keys[3] = {{1, 0}, {3, 0}, {7, 0}};
    uint64_t counts[3] = {9, 9, 9};
    struct dp_store_job count = {.kind = DP_STORE_COUNT, .count = 3, .keys = keys, .counts = counts};
    struct batch *late = batch_new(100, ROW);
    write_rows(form, 1200, 1, 0, 1);
    write_rows(form, 30, 1, 100, 2);
    write_rows(form, 500, 7, 0, 1);
    batch_fill(late, 3, 0, 1, 1);
    if (form->fake)
        dp_fake_store_hold(form->fake, true);
    form_submit(form, &count);
    form_submit(form, batch_job(late, DP_STORE_WRITE));
    if (form->fake)
        dp_fake_store_hold(form->fake, false);
    (void)form_wait(form);
    (void)form_wait(form);
    assert_int_equal(count.status, DP_OK);
    assert_int_equal(counts[0], 1200);
    assert_int_equal(counts[1], 0);
    assert_int_equal(counts[2], 500);
    assert_int_equal(form_do(form, &count), DP_OK);
    assert_int_equal(counts[1], 100);
    batch_free(late);
}

static void a_cancelled_count_stops(void **state)
{
    struct form *form = *state;
    struct dp_store_key key = {1, 0};
    uint64_t rows = 0;
    struct dp_store_job count = {.kind = DP_STORE_COUNT, .count = 1, .keys = &key, .counts = &rows};
    write_rows(form, 10, 1, 0, 1);
    atomic_store(&count.cancelled, true);
    assert_int_equal(form_do(form, &count), DP_STOPPING);
    atomic_store(&count.cancelled, false);
    assert_int_equal(form_do(form, &count), DP_OK);
    assert_int_equal(rows, 10);
}

static bool holds(struct form *form, uint32_t run, uint32_t epoch)
{
    return form->store.holds(form->store.self, (struct dp_store_snapshot){run, epoch});
}

static void take_snapshot(struct form *form, uint32_t run, uint32_t epoch, uint32_t keeps)
{
    struct dp_store_job job = snapshot_job(run, epoch, keeps);
    assert_int_equal(form_do(form, &job), DP_OK);
}

static void go_back(struct form *form, uint32_t run, uint32_t epoch)
{
    struct dp_error err = {0};
    const struct dp_store_mark mark = mark_text("t/back", "yes");
    form_close(form, true);
    assert_int_equal(form_revert(form, (struct dp_store_snapshot){run, epoch}, &mark, &err), DP_OK);
    assert_int_equal(form_open(form, &err), DP_OK);
}

/* Rows are those of then, those that came since are gone; marks are those of now, and one more. */
static void a_snapshot_brings_rows_back_and_leaves_marks(void **state)
{
    struct form *form = *state;
    write_rows(form, 1000, 1, 0, 1);
    put_marks(form);
    take_snapshot(form, 1, 7, 0);
    struct dp_store_mark mark = mark_text("t/a", "later");
    struct dp_store_job marks = marks_job(&mark, 1);
    write_rows(form, 100, 1, 10, 2);
    write_rows(form, 5, 2, 0, 1);
    assert_int_equal(form_do(form, &marks), DP_OK);
    assert_true(holds(form, 1, 7));
    go_back(form, 1, 7);
    expect_rows(form, 1000, 1, 0, 1);
    expect_marks(form, "t", "t=0 t/a=later t/b=two t/back=yes ");
    assert_false(holds(form, 1, 7));
    struct batch *batch = batch_new(5, ROW);
    batch_fill(batch, 2, 0, 3, 0);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_READ)), DP_OK);
    for (int i = 0; i < 5; i++)
        assert_false(batch->found[i]);
    batch_free(batch);
    write_rows(form, 10, 1, 0, 3);
    form_close(form, true);
    struct dp_error err = {0};
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_rows(form, 10, 1, 0, 3);
    expect_rows(form, 990, 1, 10, 1);
}

/* The one of then is asked for again after more was written: it stays what it was. */
static void a_snapshot_that_is_there_stays_as_it_is(void **state)
{
    struct form *form = *state;
    write_rows(form, 10, 1, 0, 1);
    take_snapshot(form, 1, 1, 0);
    write_rows(form, 10, 1, 0, 2);
    take_snapshot(form, 1, 1, 0);
    form_close(form, true);
    struct dp_error err = {0};
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_true(holds(form, 1, 1));
    expect_rows(form, 10, 1, 0, 2);
    go_back(form, 1, 1);
    expect_rows(form, 10, 1, 0, 1);
}

static void snapshots_stay_that_are_kept(void **state)
{
    struct form *form = *state;
    write_rows(form, 10, 1, 0, 1);
    take_snapshot(form, 1, 1, 0);
    take_snapshot(form, 1, 2, 1);
    assert_true(holds(form, 1, 1) && holds(form, 1, 2));
    take_snapshot(form, 1, 3, 1);
    assert_true(holds(form, 1, 1) && !holds(form, 1, 2) && holds(form, 1, 3));
    take_snapshot(form, 2, 1, 0);
    assert_true(!holds(form, 1, 1) && !holds(form, 1, 3) && holds(form, 2, 1));
    take_snapshot(form, 0, 0, 0);
    assert_false(holds(form, 2, 1) || holds(form, 0, 0));
}

static void no_such_snapshot_is_not_found(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    const struct dp_store_mark mark = mark_text("back", "yes");
    write_rows(form, 10, 1, 0, 1);
    take_snapshot(form, 1, 1, 0);
    form_close(form, true);
    assert_int_equal(form_revert(form, (struct dp_store_snapshot){1, 2}, &mark, &err), DP_NOT_FOUND);
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_rows(form, 10, 1, 0, 1);
    expect_marks(form, "back", "");
}

static struct dp_store_job link_job(enum dp_store_job_kind kind, const char *name)
{
    struct dp_store_job job = {.kind = kind};
    (void)snprintf(job.link_name, sizeof job.link_name, "%s", name);
    return job;
}

struct linked_rows {
    struct batch *expected;
    uint32_t seen;
};

static enum dp_status see_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                              struct dp_error *err)
{
    struct linked_rows *rows = context;
    (void)err;
    assert_true(rows->seen < rows->expected->count && key.mixed == rows->expected->keys[rows->seen].mixed);
    assert_int_equal(row_bytes, ROW);
    assert_memory_equal(row, rows->expected->rows[rows->seen], ROW);
    rows->seen++;
    return DP_OK;
}

/* What a link's rows and mark "t" are, from a store of its own on it. */
static void expect_link(struct form *form, const char *name, uint32_t count, uint32_t version,
                        const char *marks)
{
    if (form->fake) {
        struct batch *batch = batch_new(count, ROW);
        size_t bytes = 0;
        batch_fill(batch, 1, 0, 3, version);
        for (uint32_t i = 0; i < count; i++) {
            const void *row = dp_fake_store_link_row(form->fake, name, batch->keys[i], &bytes);
            assert_non_null(row);
            assert_int_equal(bytes, ROW);
            assert_memory_equal(row, batch->rows[i], ROW);
        }
        batch_free(batch);
        return;
    }
    struct form copy = {.options = form->options};
    struct linked_rows rows = {.expected = batch_new(count, ROW)};
    struct dp_error err = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", form->directory, name);
    copy.options.directory = path;
    copy.options.journaled = true; /* it was open when it was linked */
    copy.options.read_only = true;
    batch_fill(rows.expected, 1, 0, 3, version);
    if (dp_rocks_store_open(&copy.options, &copy.store, &err) != DP_OK)
        fail_msg("%s", err.text);
    expect_marks(&copy, "t", marks);
    assert_int_equal(copy.store.visit_rows(copy.store.self, see_row, &rows, &err), DP_OK);
    assert_int_equal(rows.seen, count);
    copy.store.close(copy.store.self);
    batch_free(rows.expected);
}

static bool has_link(const struct form *form, const char *name)
{
    char path[512];
    if (form->fake)
        return dp_fake_store_has_link(form->fake, name);
    (void)snprintf(path, sizeof path, "%s/%s", form->directory, name);
    return access(path, F_OK) == 0;
}

/* A link has all that was submitted before it and nothing of what was submitted behind it, whatever is written later. */
static void a_link_is_as_of_its_place_among_writes(void **state)
{
    struct form *form = *state;
    const struct dp_store_mark first = mark_text("t", "1"), second = mark_text("t", "2");
    struct dp_store_job before = marks_job(&first, 1), behind = marks_job(&second, 1),
                        link = link_job(DP_STORE_LINK, "cut-1-1");
    struct batch *old = batch_new(500, ROW), *new = batch_new(600, ROW);
    struct dp_error err = {0};
    form_close(form, true);
    form->options.journaled = true; /* else a copy of an open store is refused */
    assert_int_equal(form_open(form, &err), DP_OK);
    batch_fill(old, 1, 0, 3, 1);
    batch_fill(new, 1, 0, 3, 2);
    if (form->fake)
        dp_fake_store_hold(form->fake, true);
    form_submit(form, batch_job(old, DP_STORE_WRITE));
    form_submit(form, &before);
    form_submit(form, &link);
    form_submit(form, batch_job(new, DP_STORE_WRITE));
    form_submit(form, &behind);
    if (form->fake)
        dp_fake_store_hold(form->fake, false);
    for (int i = 0; i < 5; i++)
        assert_int_equal(form_wait(form)->status, DP_OK);
    expect_rows(form, 600, 1, 0, 2);
    expect_link(form, "cut-1-1", 500, 1, "t=1 ");
    batch_free(old);
    batch_free(new);
}

static void a_link_goes_when_asked_and_at_an_opening(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    struct dp_store_job one = link_job(DP_STORE_LINK, "cut-1-1"), two = link_job(DP_STORE_LINK, "cut-1-2"),
                        drop = link_job(DP_STORE_UNLINK, "cut-1-1"), again = one;
    form->options.journaled = true;
    write_rows(form, 10, 1, 0, 1);
    assert_int_equal(form_do(form, &one), DP_OK);
    assert_int_equal(form_do(form, &again), DP_EXISTS);
    write_rows(form, 10, 1, 0, 2); /* which fails no later job */
    assert_int_equal(form_do(form, &two), DP_OK);
    assert_true(has_link(form, "cut-1-1") && has_link(form, "cut-1-2"));
    assert_int_equal(form_do(form, &drop), DP_OK);
    assert_int_equal(form_do(form, &drop), DP_OK); /* there is none */
    assert_true(!has_link(form, "cut-1-1") && has_link(form, "cut-1-2"));
    form_close(form, true);
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_false(has_link(form, "cut-1-2"));
    expect_rows(form, 10, 1, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(rows_are_counted_as_of_submit),
        ON_BOTH(a_cancelled_count_stops),
        ON_BOTH(rows_and_marks_outlast_a_close),
        ON_BOTH(a_snapshot_brings_rows_back_and_leaves_marks),
        ON_BOTH(a_snapshot_that_is_there_stays_as_it_is),
        ON_BOTH(snapshots_stay_that_are_kept),
        ON_BOTH(no_such_snapshot_is_not_found),
        ON_BOTH(a_link_is_as_of_its_place_among_writes),
        ON_BOTH(a_link_goes_when_asked_and_at_an_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The contract of store.h, on both forms: counts, what outlasts a close, and snapshots. */
#include "tests/unit/server/store/both_forms.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

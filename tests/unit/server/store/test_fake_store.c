/* What the fake adds to store.h: order and failures at a test's word. */
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <string.h>

#define ROW 32u

static int set_up(void **state)
{
    struct dp_error err = {0};
    struct form *form = form_new(false);
    *state = form;
    return form_open(form, &err) == DP_OK ? 0 : -1;
}
static int tear_down(void **state)
{
    form_free(*state);
    return 0;
}

static struct batch *batch_of(uint32_t version)
{
    struct batch *batch = batch_new(2, ROW);
    batch_fill(batch, 1, 0, 1, version);
    return batch;
}

static void held_reads_come_back_in_any_order(void **state)
{
    struct form *form = *state;
    struct batch *reads[3] = {batch_of(0), batch_of(0), batch_of(0)};
    dp_fake_store_hold(form->fake, true);
    for (int i = 0; i < 3; i++)
        form_submit(form, batch_job(reads[i], DP_STORE_READ));
    assert_null(form->store.completed(form->store.self));
    assert_int_equal(dp_fake_store_held(form->fake), 3);
    assert_ptr_equal(dp_fake_store_held_job(form->fake, 1), &reads[1]->job);
    dp_fake_store_release(form->fake, 2);
    dp_fake_store_release(form->fake, 0);
    assert_ptr_equal(form_wait(form), &reads[2]->job);
    assert_ptr_equal(form_wait(form), &reads[0]->job);
    form_submit(form, batch_job(reads[0], DP_STORE_READ)); /* after the last was taken out of the list */
    dp_fake_store_hold(form->fake, false);
    assert_ptr_equal(form_wait(form), &reads[1]->job);
    assert_ptr_equal(form_wait(form), &reads[0]->job);
    assert_int_equal(dp_fake_store_jobs(form->fake, DP_STORE_READ), 4);
    assert_int_equal(dp_fake_store_items(form->fake, DP_STORE_READ), 8);
    for (int i = 0; i < 3; i++)
        batch_free(reads[i]);
}

/* A read before a write, released after it: sees it, or what was there at submit, as the test wants. */
static void read_sees_its_moment(void **state)
{
    struct form *form = *state;
    for (uint32_t at_submit = 0; at_submit < 2; at_submit++) {
        struct batch *before = batch_of(10), *write = batch_of(at_submit), *read = batch_of(0);
        assert_int_equal(form_do(form, batch_job(before, DP_STORE_WRITE)), DP_OK);
        dp_fake_store_read_at_submit(form->fake, at_submit == 1);
        dp_fake_store_hold(form->fake, true);
        form_submit(form, batch_job(read, DP_STORE_READ));
        form_submit(form, batch_job(write, DP_STORE_WRITE));
        dp_fake_store_release(form->fake, 1);
        dp_fake_store_hold(form->fake, false);
        assert_ptr_equal(form_wait(form), &write->job);
        assert_ptr_equal(form_wait(form), &read->job);
        batch_expect(read, at_submit ? 10 : 0);
        batch_free(before);
        batch_free(write);
        batch_free(read);
    }
}

static void failure_hits_the_job_named_and_all_writes_after(void **state)
{
    struct form *form = *state;
    struct batch *write = batch_of(1), *read = batch_of(0);
    const struct dp_store_mark mark = mark_text("m", "1");
    struct dp_store_job marks = marks_job(&mark, 1);
    struct dp_error err = {0};
    size_t bytes = 0;
    dp_fake_store_fail(form->fake, DP_STORE_WRITE, 2, DP_IO);
    dp_fake_store_fail(form->fake, DP_STORE_READ, 1, DP_CORRUPT);
    assert_int_equal(form_do(form, batch_job(write, DP_STORE_WRITE)), DP_OK);
    batch_fill(write, 1, 0, 1, 2);
    assert_int_equal(form_do(form, batch_job(write, DP_STORE_WRITE)), DP_IO);
    assert_int_equal(form_do(form, batch_job(write, DP_STORE_WRITE)), DP_IO);
    assert_int_equal(form_do(form, &marks), DP_IO);
    assert_null(dp_fake_store_mark(form->fake, "m", 1, &bytes));
    assert_int_equal(form_do(form, batch_job(read, DP_STORE_READ)), DP_CORRUPT);
    assert_int_equal(form_do(form, batch_job(read, DP_STORE_READ)), DP_OK);
    batch_expect(read, 1);
    form_close(form, false);
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_int_equal(form_do(form, &marks), DP_OK);
    assert_memory_equal(dp_fake_store_mark(form->fake, "m", 1, &bytes), "1", 1);
    assert_int_equal(bytes, 1);
    batch_free(write);
    batch_free(read);
}

static void full_fails_one_job_only(void **state)
{
    struct form *form = *state;
    struct batch *write = batch_of(1), *read = batch_of(0);
    dp_fake_store_fail(form->fake, DP_STORE_WRITE, 1, DP_FULL);
    assert_int_equal(form_do(form, batch_job(write, DP_STORE_WRITE)), DP_FULL);
    assert_int_equal(dp_fake_store_rows(form->fake), 0);
    assert_int_equal(form_do(form, batch_job(write, DP_STORE_WRITE)), DP_OK);
    assert_int_equal(form_do(form, batch_job(read, DP_STORE_READ)), DP_OK);
    batch_expect(read, 1);
    batch_free(write);
    batch_free(read);
}

static void stored_state_is_put_and_looked_at(void **state)
{
    struct form *form = *state;
    struct dp_store_key key = {1, 1};
    size_t bytes = 0;
    assert_null(dp_fake_store_row(form->fake, key, &bytes));
    dp_fake_store_put_row(form->fake, key, "abc", 3);
    assert_memory_equal(dp_fake_store_row(form->fake, key, &bytes), "abc", 3);
    assert_int_equal(bytes, 3);
    assert_int_equal(dp_fake_store_rows(form->fake), 1);
    struct batch *read = batch_of(0);
    assert_int_equal(form_do(form, batch_job(read, DP_STORE_READ)), DP_CORRUPT);
    batch_free(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(held_reads_come_back_in_any_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(read_sees_its_moment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failure_hits_the_job_named_and_all_writes_after, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_fails_one_job_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stored_state_is_put_and_looked_at, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

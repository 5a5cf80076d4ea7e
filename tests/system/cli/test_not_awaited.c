/* Pushes that a checkpoint does not wait for. Goal: exceptions of the one before and pushes of earlier runs, and no others. */
#include "common/model/stream.h"
#include "deploy/checkpoint/not_awaited.h"
#include "tests/lib/test.h"

static void known_ones_and_those_of_earlier_runs(void **state)
{
    const uint64_t stream = dp_stream_of_run(2, 1);
    struct dp_copy_push push[] = {{9, 0}, {9, 1}, {dp_stream_of_run(1, 4), 3}, {stream, 5}, {stream, 6}};
    const struct dp_union_lacking lacking = {.push = push, .count = 5};
    struct dp_push_exception one[] = {{9, 1, {0, 5}}, {stream, 5, {0, 5}}, {stream, 5, {9, 12}}};
    const struct dp_push_exceptions before = {.one = one, .count = 3}, none = {0};
    (void)state;
    assert_int_equal(dp_not_awaited_count(&lacking, &before, 2), 3);
    assert_int_equal(dp_not_awaited_count(&lacking, &none, 2), 1);
    assert_int_equal(dp_not_awaited_count(&lacking, &none, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_ones_and_those_of_earlier_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

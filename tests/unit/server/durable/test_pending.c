/* Pending replies: taken in the order of their lsns, none before its lsn is durable, over growths of the ring. */
#include "tests/lib/test.h"

#include "server/durable/pending.h"

#include <stdlib.h>

static void add(struct dp_pending *pending, uint64_t lsn, uint64_t id)
{
    struct dp_pending_reply reply = {.lsn = lsn, .asker = {.id = id}};
    assert_int_equal(dp_pending_add(pending, &reply), DP_OK);
}

static void none_before_its_lsn_is_durable(void **state)
{
    (void)state;
    struct dp_pending pending = {0};
    struct dp_pending_reply reply;
    assert_false(dp_pending_take(&pending, UINT64_MAX, &reply));
    add(&pending, 5, 1);
    add(&pending, 5, 2); /* a repeated one waits with the last */
    add(&pending, 6, 3);
    assert_false(dp_pending_take(&pending, 4, &reply));
    for (uint64_t id = 1; id <= 2; id++) {
        assert_true(dp_pending_take(&pending, 5, &reply));
        assert_int_equal(reply.asker.id, id);
    }
    assert_false(dp_pending_take(&pending, 5, &reply));
    assert_true(dp_pending_take(&pending, 6, &reply));
    assert_int_equal(pending.count, 0);
    dp_pending_clear(&pending);
}

/* So many under way that the ring grows while its first is in its middle. */
static void the_order_survives_growth(void **state)
{
    (void)state;
    struct dp_pending pending = {0};
    struct dp_pending_reply reply;
    uint64_t added = 0, taken = 0;
    for (uint32_t round = 0; round < 40; round++) {
        for (uint32_t i = 0; i < 3 * round + 7; i++, added++)
            add(&pending, added, added);
        for (uint32_t i = 0; i < 2 * round + 5 && dp_pending_take(&pending, added, &reply); i++, taken++)
            assert_int_equal(reply.asker.id, taken);
        assert_int_equal(pending.count, added - taken);
    }
    assert_true(pending.capacity > 256);
    while (dp_pending_take(&pending, added, &reply))
        assert_int_equal(reply.asker.id, taken++);
    assert_int_equal(taken, added);
    dp_pending_clear(&pending);
}

static void what_is_left_is_freed_with_its_refusal(void **state)
{
    (void)state;
    struct dp_pending pending = {0};
    struct dp_pending_reply reply = {.lsn = 1, .refused = calloc(1, sizeof *reply.refused)};
    assert_int_equal(dp_pending_add(&pending, &reply), DP_OK);
    dp_pending_clear(&pending); /* the sanitizer sees what is not */
    assert_int_equal(pending.count, 0);
    assert_null(pending.reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_before_its_lsn_is_durable),
        cmocka_unit_test(the_order_survives_growth),
        cmocka_unit_test(what_is_left_is_freed_with_its_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

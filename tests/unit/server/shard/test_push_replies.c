/* Push replies: sent in the order of their lsns, none before its lsn is durable, over growths of the ring. */
#include "tests/lib/test.h"

#include "server/shard/push_replies.h"

#include <string.h>

struct bed {
    struct dp_shard_base base;
    struct dp_replies replies;
    struct dp_journaling journaling;
    struct dp_push_replies held;
    uint32_t answered; /* in the order of their links, which count up */
};

static void receive(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct bed *bed = context;
    assert_int_equal(to->link, bed->answered);
    bed->answered++;
    dp_message_free(message);
}

static void set_up(struct bed *bed)
{
    memset(bed, 0, sizeof *bed);
    bed->replies = (struct dp_replies){.base = &bed->base, .reply = receive, .context = bed};
    bed->held = (struct dp_push_replies){.replies = &bed->replies, .journaling = &bed->journaling};
}

static void hold(struct bed *bed, uint64_t lsn, uint32_t link, const struct dp_error *refused)
{
    static const struct dp_pushed pushed = {.rate = 0.5f};
    struct dp_waiting waiting = {.peer = {.link = link}};
    bed->journaling.lsn = lsn;
    dp_push_replies_hold(&bed->held, &waiting, refused ? NULL : &pushed, refused);
}

static void turn(struct bed *bed, uint64_t durable)
{
    bed->journaling.durable = durable;
    dp_push_replies_turn(&bed->held);
}

static void none_before_its_lsn_is_durable(void **state)
{
    struct bed bed;
    set_up(&bed);
    turn(&bed, 0);
    hold(&bed, 5, 0, NULL);
    hold(&bed, 5, 1, NULL); /* a repeated one waits with the last */
    hold(&bed, 6, 2, NULL);
    turn(&bed, 4);
    assert_int_equal(bed.answered, 0);
    turn(&bed, 5);
    assert_int_equal(bed.answered, 2);
    turn(&bed, 6);
    assert_int_equal(bed.answered, 3);
    assert_int_equal(bed.held.count, 0);
    dp_push_replies_clear(&bed.held);
}

/* What counts as durable at once (durability none) is held until the turn too. */
static void what_is_durable_already_is_answered_in_order(void **state)
{
    struct bed bed;
    set_up(&bed);
    turn(&bed, 0);
    hold(&bed, 1, 0, NULL);
    bed.journaling.durable = 1;
    hold(&bed, 1, 1, NULL);
    assert_int_equal(bed.answered, 0);
    turn(&bed, 1);
    assert_int_equal(bed.answered, 2);
    dp_push_replies_clear(&bed.held);
}

/* So many under way that the ring grows while its first is in its middle. */
static void the_order_survives_growth(void **state)
{
    struct bed bed;
    set_up(&bed);
    uint32_t added = 0, durable = 0;
    for (uint32_t round = 0; round < 40; round++) {
        for (uint32_t i = 0; i < 3 * round + 7; i++, added++)
            hold(&bed, added + 1, added, NULL);
        durable += 2 * round + 5;
        turn(&bed, durable);
        assert_int_equal(bed.answered, durable);
        assert_int_equal(bed.held.count, added - durable);
    }
    assert_true(bed.held.capacity > 256);
    turn(&bed, added);
    assert_int_equal(bed.answered, added);
    dp_push_replies_clear(&bed.held);
}

static void what_is_left_is_freed_with_its_refusal(void **state)
{
    struct bed bed;
    struct dp_error refused = {0};
    (void)dp_fail(&refused, DP_INVALID, "a reason");
    set_up(&bed);
    hold(&bed, 1, 0, &refused);
    hold(&bed, 2, 1, &refused);
    turn(&bed, 1);
    assert_int_equal(bed.answered, 1);
    dp_push_replies_clear(&bed.held); /* the sanitizer sees what is not */
    assert_int_equal(bed.held.count, 0);
    assert_null(bed.held.reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_before_its_lsn_is_durable),
        cmocka_unit_test(what_is_durable_already_is_answered_in_order),
        cmocka_unit_test(the_order_survives_growth),
        cmocka_unit_test(what_is_left_is_freed_with_its_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Unread answers: pulls whose answers would be dropped wait, hold up nobody else, go in order once clients have read, and leave
 * room for others where they are many. Sessions 1 to 3; table "t" of dim 2, SGD at rate 1 from 0. */
#include "tests/unit/server/shard/bed.h"

#define T    ((uint64_t)1 << 63 | 1)
#define ROWS 40u

struct scene {
    struct bed bed;      /* first: the shard's context is its */
    uint64_t bytes_most; /* of an answer that would be sent */
    uint64_t keys[ROWS];
};

static bool may_reply(void *context, const struct dp_peer *to, uint64_t bytes)
{
    const struct scene *s = context;
    assert_int_equal(to->size, 5);
    return bytes <= s->bytes_most;
}

static void start(struct scene *s, uint32_t requests_max)
{
    bed_start(&s->bed);
    bed_keys(&s->bed, 0, ROWS, s->keys);
    s->bed.host.options.may_reply = may_reply;
    s->bed.host.options.requests_max = requests_max;
    s->bytes_most = 8; /* one row */
    bed_restart(&s->bed);
    for (uint64_t session = 1; session < 4; session++)
        bed_meet(&s->bed, session);
}

static uint64_t pull_all(struct scene *s, uint64_t session, uint64_t sequence)
{
    return bed_pull(&s->bed, session, sequence, "t", s->keys, ROWS);
}

static void answers_wait_in_order_until_clients_have_read(void **state)
{
    struct scene s;
    start(&s, 100);
    uint64_t first = pull_all(&s, 1, 1);
    uint64_t second = pull_all(&s, 1, 2);
    uint64_t push = bed_push(&s.bed, 1, 3, "t", s.keys, 1, 2, 1, T, 0);
    bed_turn(&s.bed);
    assert_null(bed_reply_to(&s.bed, first));
    assert_null(bed_reply_to(&s.bed, push)); /* it would overtake them */
    assert_true(bed_value(&s.bed, 2, 1, s.keys[0]) == 0);
    assert_int_equal(bed_counter(&s.bed, "pulls"), 1);
    uint32_t before = s.bed.replies;
    s.bytes_most = UINT64_MAX;
    bed_turn(&s.bed);
    assert_true(bed_expect(&s.bed, first, DP_OK)->value[0] == 0);
    assert_true(bed_expect(&s.bed, second, DP_OK)->value[0] == 0); /* of before the push */
    bed_expect(&s.bed, push, DP_OK);
    assert_int_equal(s.bed.reply[before].reply.id, first);
    assert_int_equal(s.bed.reply[before + 1].reply.id, second);
    bed_close(&s.bed);
}

/* A client that is slow to read sends again what waits here already: it is answered once. */
static void a_resend_of_what_waits_is_not_answered_twice(void **state)
{
    struct scene s;
    start(&s, 100);
    uint64_t pull = pull_all(&s, 1, 1);
    bed_turn(&s.bed);
    for (uint32_t i = 0; i < 5; i++) {
        s.bed.now_ns += UINT64_C(900000000); /* of 1 s: each is a new deadline */
        s.bed.next_id = pull;
        assert_int_equal(pull_all(&s, 1, 1), pull);
        bed_turn(&s.bed);
        assert_null(bed_reply_to(&s.bed, pull));
    }
    uint32_t before = s.bed.replies;
    s.bytes_most = UINT64_MAX;
    bed_turn(&s.bed);
    bed_expect(&s.bed, pull, DP_OK);
    assert_int_equal(s.bed.replies, before + 1);
    bed_close(&s.bed);
}

static void the_wait_ends_at_the_deadline(void **state)
{
    struct scene s;
    start(&s, 100);
    uint64_t pull = pull_all(&s, 1, 1);
    bed_turn(&s.bed);
    s.bed.now_ns += UINT64_C(1100000000);
    bed_turn(&s.bed);
    bed_expect_wait(&s.bed, pull, DP_TIMEOUT, UNREAD);
    bed_close(&s.bed);
}

/* Clients that read nothing: others have half of the places. */
static void many_that_wait_leave_room_for_others(void **state)
{
    struct scene s;
    start(&s, 20);
    uint64_t pull[11];
    for (uint32_t i = 0; i < 10; i++)
        pull[i] = pull_all(&s, 1 + i % 2, 1 + i / 2);
    bed_turn(&s.bed);
    assert_null(bed_reply_to(&s.bed, pull[0]));
    assert_null(bed_reply_to(&s.bed, pull[1]));
    pull[10] = pull_all(&s, 1, 6);
    bed_turn(&s.bed);
    bed_expect_wait(&s.bed, pull[0], DP_AGAIN, UNREAD);
    for (uint64_t i = 0; i < 12; i++)
        assert_true(bed_value(&s.bed, 3, 1 + i, s.keys[0]) == 0);
    assert_int_equal(bed_counter(&s.bed, "pulls"), 12);
    s.bytes_most = UINT64_MAX;
    bed_turn(&s.bed);
    bed_close(&s.bed);
}

static void a_drain_does_not_wait_for_clients(void **state)
{
    struct scene s;
    struct dp_error err = {0};
    start(&s, 100);
    uint64_t pull = pull_all(&s, 1, 1);
    bed_turn(&s.bed);
    assert_int_equal(bed_drain(&s.bed, &err), DP_OK);
    bed_expect(&s.bed, pull, DP_STOPPING);
    bed_close(&s.bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_wait_in_order_until_clients_have_read),
        cmocka_unit_test(a_resend_of_what_waits_is_not_answered_twice),
        cmocka_unit_test(the_wait_ends_at_the_deadline),
        cmocka_unit_test(many_that_wait_leave_room_for_others),
        cmocka_unit_test(a_drain_does_not_wait_for_clients),
    };
    return cmocka_run_group_tests_name("unread_answers", tests, NULL, NULL);
}

/* heartbeats: what a member tells the first server of itself, and hears of the others. */
#include "tests/unit/client/bench.h"

static const struct dp_join as_one = {.run = 3, .rank = 1, .members = 3, .mode = DP_SYNC};

static struct bench joined(uint32_t timeout_ms)
{
    struct bench b = opened(1, false);
    dp_client_heartbeats(b.client, timeout_ms);
    if (dp_client_join(b.client, &as_one, WAIT_MS, &b.err) != DP_OK)
        fail_msg("%s", b.err.text);
    return b;
}

static void a_member_beats_from_before_it_has_a_place(void **state)
{
    struct bench b = opened(1, false);
    dp_client_heartbeats(b.client, 8000);
    advance(&b, 5000);
    assert_int_equal(b.net->heartbeats, 0);
    b.net->dead[1] = true; /* the first server: no heartbeat, no place */
    assert_int_equal(dp_client_join(b.client, &as_one, 2000, &b.err), DP_TIMEOUT);
    assert_int_equal(b.net->value.version, 0);
    done(&b);
    b = joined(8000);
    assert_int_equal(b.net->heartbeats, 1);
    advance(&b, 10000);
    assert_in_range(b.net->heartbeats, 10, 12); /* one a second */
    assert_int_equal(dp_client_leave(b.client, 5, WAIT_MS, &b.err), DP_OK);
    advance(&b, 5000); /* its process lives on */
    assert_in_range(b.net->heartbeats, 15, 17);
    done(&b);
    b = joined(1600);
    advance(&b, 10050);
    assert_in_range(b.net->heartbeats, 48, 52);
    done(&b);
    b = joined(0);
    advance(&b, 10000);
    assert_int_equal(b.net->heartbeats, 0);
    done(&b);
}

/* Goal    a member that joins while a shard is away, perhaps for longer than the others wait for a silent one, keeps its place.
 * Planted it heartbeats only once every shard has heard of it. */
static void a_member_beats_while_a_shard_does_not_answer_its_join(void **state)
{
    struct bench b = opened(1, false);
    dp_client_heartbeats(b.client, 8000);
    b.net->dead[0] = true;
    assert_int_equal(dp_client_join(b.client, &as_one, 10000, &b.err), DP_TIMEOUT);
    assert_int_equal(b.net->value.version, 1); /* the register has it in its place */
    assert_in_range(b.net->heartbeats, 9, 12);
    assert_int_equal(dp_client_join(b.client, &as_one, 5000, &b.err), DP_TIMEOUT);
    assert_in_range(b.net->heartbeats, 13, 17);
    b.net->dead[0] = false;
    assert_int_equal(dp_client_join(b.client, &as_one, WAIT_MS, &b.err), DP_OK);
    done(&b);
}

/* Goal    a server that was away for a minute hears all members within a heartbeat of its return, not when a pause that grew with its
 *         silence is over.
 * Planted the same request is sent again and again. */
static void a_server_that_comes_back_hears_of_it_at_once(void **state)
{
    struct bench b = made(1);
    b.options.retry_ms = 1000; /* doubled 3 times: 8 s */
    assert_int_equal(open_client(&b), DP_OK);
    dp_client_heartbeats(b.client, 1600);
    assert_int_equal(dp_client_join(b.client, &as_one, WAIT_MS, &b.err), DP_OK);
    b.net->dead[1] = true;
    advance(&b, 60000);
    uint32_t before = b.net->heartbeats;
    b.net->dead[1] = false;
    advance(&b, 260);
    assert_in_range(b.net->heartbeats - before, 1, 2);
    done(&b);
}

static void silences_come_from_the_first_server(void **state)
{
    struct bench b = joined(8000);
    uint64_t ms[3] = {7, 7, 7};
    assert_int_equal(dp_client_silences(b.client, ms, WAIT_MS, &b.err), DP_OK);
    assert_true(ms[0] == 0 && ms[1] == 1000 && ms[2] == 2000);
    b.net->dead[1] = true;
    assert_int_equal(dp_client_silences(b.client, ms, 500, &b.err), DP_TIMEOUT);
    assert_non_null(strstr(b.err.text, "control"));
    done(&b);
    b = joined(0);
    assert_int_equal(dp_client_silences(b.client, ms, 500, &b.err), DP_ARGUMENT);
    done(&b);
    b = opened(1, false);
    dp_client_heartbeats(b.client, 8000);
    assert_int_equal(dp_client_silences(b.client, ms, 500, &b.err), DP_ARGUMENT);
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_beats_from_before_it_has_a_place),
        cmocka_unit_test(a_member_beats_while_a_shard_does_not_answer_its_join),
        cmocka_unit_test(a_server_that_comes_back_hears_of_it_at_once),
        cmocka_unit_test(silences_come_from_the_first_server),
    };
    return cmocka_run_group_tests_name("heartbeats", tests, NULL, NULL);
}

/* Client: of which restore its servers' rows are, and what becomes of it when they are restored. */
#include "tests/unit/client/bench.h"

static void is_at(const struct bench *b, uint64_t generation, uint64_t history)
{
    uint64_t at, of;
    dp_client_generation(b->client, &at, &of);
    assert_true(at == generation && of == history);
}

static void pushes(struct bench *b)
{
    struct dp_client_table *t = table(b, "t", 4);
    struct dp_ticket ticket;
    uint32_t before = b->net->shard[0].pushes;
    assert_int_equal(push_one(b, t, 3, WAIT_MS, &ticket), DP_OK);
    if (dp_client_wait(b->client, &ticket, WAIT_MS, NULL, &b->err) != DP_OK)
        fail_msg("%s", b->err.text);
    assert_int_equal(b->net->shard[0].pushes, before + 1);
}

static struct bench restored(uint32_t shards)
{
    struct bench b = made(shards);
    b.options.generation = 0;
    b.net->generation = 3;
    b.net->history = UINT64_MAX;
    return b;
}

static void it_is_learned_from_the_shards(void **state)
{
    struct bench b = restored(2);
    struct dp_register_value value;
    assert_int_equal(open_client(&b), DP_OK);
    is_at(&b, 3, UINT64_MAX);
    pushes(&b);
    assert_int_equal(dp_client_register_get(b.client, "v", 0, 0, WAIT_MS, &value, &b.err), DP_OK);
    dp_register_value_clear(&value);
    done(&b);
}

/* It greets nobody: its first request is refused, and sent again. */
static void it_is_learned_from_control(void **state)
{
    struct bench b = restored(0);
    struct dp_register_value value;
    bool won = false;
    assert_int_equal(open_client(&b), DP_OK);
    is_at(&b, 0, 0);
    assert_int_equal(dp_client_register_set(b.client, "v", 0, "x", 1, WAIT_MS, &won, NULL, &b.err), DP_OK);
    assert_true(won);
    is_at(&b, 3, UINT64_MAX);
    b.net->history = 5;
    assert_int_equal(dp_client_register_get(b.client, "v", 0, 0, WAIT_MS, &value, &b.err), DP_GENERATION);
    done(&b);
}

/* Both copies of the first request are refused; the second refusal comes when the request was sent again. */
static void a_late_refusal_of_an_earlier_copy_is_ignored(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct bench b = restored(0);
        struct dp_register_value value;
        b.net->random += seed;
        b.net->faults = (struct dp_fake_faults){.twice = 500, .slow = 500, .slow_ms = 400};
        assert_int_equal(open_client(&b), DP_OK);
        if (dp_client_register_get(b.client, "v", 0, 0, WAIT_MS, &value, &b.err) != DP_OK)
            fail_msg("seed %u: %s", (unsigned)seed, b.err.text);
        dp_register_value_clear(&value);
        is_at(&b, 3, UINT64_MAX);
        done(&b);
    }
}

static void servers_of_an_earlier_version_are_greeted_again(void **state)
{
    struct bench b = made(2);
    b.options.generation = 0;
    b.net->is_old = true;
    assert_int_equal(open_client(&b), DP_OK);
    is_at(&b, 1, 0);
    pushes(&b);
    done(&b);
}

static void another_one_than_wanted_is_refused(void **state)
{
    struct bench b = restored(2);
    b.options.generation = 2;
    assert_int_equal(open_client(&b), DP_GENERATION);
    text_has(&b, "shard 0 at tcp://f0: is at generation 3, this client is for generation 2");
    done(&b);
}

static void misses_shard_1(const struct dp_fake_turn *it)
{
    (void)it->context, (void)it->frames, (void)it->frame_count;
    it->reply->history = it->shard == 1 ? 7 : it->reply->history;
}

static void shards_of_two_histories_are_refused(void **state)
{
    struct bench b = restored(2);
    b.net->tamper = misses_shard_1;
    assert_int_equal(open_client(&b), DP_GENERATION);
    text_has(&b, "shard 1 at tcp://f1: is at generation 3 (history 0000000000000007), shard 0 at 3 (history "
                 "ffffffffffffffff): a restore did not reach all servers");
    done(&b);
}

/* What was under way when the servers were restored is refused, whether they were restarted, as they are for a restore, or not. */
static void what_was_sent_before_a_restore_changes_nothing(void **state)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        struct bench b = restored(2);
        struct dp_ticket ticket[2];
        assert_int_equal(open_client(&b), DP_OK);
        pushes(&b);
        struct dp_client_table *t = table(&b, "t", 4);
        b.net->generation = 4;
        b.net->history = 8;
        for (uint32_t i = 0; i < 2 && restarts; i++)
            dp_fake_net_restart(b.net, i);
        for (int i = 0; i < 2; i++)
            assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
        for (int i = 0; i < 2; i++)
            assert_int_equal(dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err), DP_GENERATION);
        assert_true(b.net->shard[0].pushes == 1 && b.net->shard[1].pushes == 1);
        is_at(&b, 3, UINT64_MAX); /* for good */
        dp_client_close(&b.client);
        b.net->closed = false;
        assert_int_equal(open_client(&b), DP_OK);
        is_at(&b, 4, 8);
        t = table(&b, "t", 4);
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[0]), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket[0], WAIT_MS, NULL, &b.err), DP_OK);
        done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_learned_from_the_shards),
        cmocka_unit_test(it_is_learned_from_control),
        cmocka_unit_test(a_late_refusal_of_an_earlier_copy_is_ignored),
        cmocka_unit_test(servers_of_an_earlier_version_are_greeted_again),
        cmocka_unit_test(another_one_than_wanted_is_refused),
        cmocka_unit_test(shards_of_two_histories_are_refused),
        cmocka_unit_test(what_was_sent_before_a_restore_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

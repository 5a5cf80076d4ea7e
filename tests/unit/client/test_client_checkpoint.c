/* client: orders of a checkpoint to all shards at once, whatever is lost; what a shard refuses; a copy of the register;
 * a checkpoint by the first server that is given up. */
#include "common/client/checkpoint.h"
#include "tests/unit/client/bench.h"

#define SHARDS 3u

static struct dp_checkpoint_ask asks[SHARDS];
static struct dp_checkpoint_answer answers[SHARDS];

static enum dp_status order(struct bench *b, enum dp_checkpoint_action action)
{
    dp_client_checkpoint_clear(answers, SHARDS);
    for (uint32_t i = 0; i < SHARDS; i++) {
        asks[i].action = action;
        asks[i].order = 8;
        asks[i].cut = action == DP_CHECKPOINT_CUT || action == DP_CHECKPOINT_FINISH ? 2 : 0;
        (void)snprintf(asks[i].directory, sizeof asks[i].directory, "%s",
                       action == DP_CHECKPOINT_BEGIN ? "/checkpoints" : "");
    }
    return dp_client_checkpoint(b->client, asks, answers, WAIT_MS, &b->err);
}

static void all_shards_answer_whatever_is_lost(void **state)
{
    struct bench b = opened(SHARDS, false);
    b.net->faults.lose = 300;
    b.net->faults.twice = 300;
    for (uint32_t round = 0; round < 50; round++) {
        assert_int_equal(order(&b, DP_CHECKPOINT_BEGIN), DP_OK);
        assert_int_equal(order(&b, DP_CHECKPOINT_CUT), DP_OK);
        for (uint32_t i = 0; i < SHARDS; i++) {
            char ids[32];
            (void)snprintf(ids, sizeof ids, "ids of shard %u", (unsigned)i);
            assert_true(answers[i].answered && answers[i].state.stage == DP_CHECKPOINT_IS_CUT);
            assert_true(answers[i].state.order == 8 && answers[i].state.cut == 2);
            assert_string_equal(answers[i].frame[0], ids);
            assert_int_equal(answers[i].bytes[0], strlen(ids));
            assert_non_null(answers[i].frame[1]);
            assert_int_equal(answers[i].bytes[1], 0);
        }
    }
    dp_client_checkpoint_clear(answers, SHARDS);
    done(&b);
}

static void each_shard_hears_what_it_lacks(void **state)
{
    struct bench b = opened(SHARDS, false);
    const uint64_t pushes[4] = {70, 1, 71, 4};
    asks[1].missing = 2;
    asks[1].pushes = pushes;
    assert_int_equal(order(&b, DP_CHECKPOINT_FINISH), DP_OK);
    assert_int_equal(answers[0].state.lacking, 0);
    assert_int_equal(answers[1].state.lacking, 2);
    assert_true(answers[1].state.lack_stream == 70 && answers[1].state.lack_number == 1);
    memset(asks, 0, sizeof asks);
    dp_client_checkpoint_clear(answers, SHARDS);
    done(&b);
}

static enum dp_status second_refuses(const struct dp_fake_turn *it)
{
    if (it->request->kind != DP_REQUEST_CHECKPOINT || it->shard != 1)
        return DP_OK;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "order 7 is under way");
    return DP_IN_USE;
}

static void a_refusal_and_a_silence_name_the_shard(void **state)
{
    struct bench b = opened(SHARDS, false);
    b.net->refuse = second_refuses;
    assert_int_equal(order(&b, DP_CHECKPOINT_BEGIN), DP_IN_USE);
    assert_non_null(strstr(b.err.text, "shard 1"));
    assert_non_null(strstr(b.err.text, "order 7 is under way"));
    b.net->refuse = NULL;
    b.net->dead[2] = true;
    assert_int_not_equal(order(&b, DP_CHECKPOINT_LOOK), DP_OK);
    assert_non_null(strstr(b.err.text, "shard 2"));
    dp_client_checkpoint_clear(answers, SHARDS);
    done(&b);
}

static void first_server_gives_up(const struct dp_fake_turn *turn)
{
    uint32_t *looks = turn->context;
    struct dp_reply *reply = turn->reply;
    if (turn->shard != SHARDS || reply->kind != DP_REPLY_CHECKPOINT)
        return;
    reply->checkpoint.stage = (*looks)++ < 2 ? DP_CHECKPOINT_CUTTING : DP_CHECKPOINT_ABANDONED;
    reply->checkpoint.why_status = DP_AGAIN;
    (void)snprintf(reply->checkpoint.why, sizeof reply->checkpoint.why, "each of 5 cuts came too early");
}

static enum dp_status rest(void *context, const struct dp_checkpoint_state *state, struct dp_error *err)
{
    assert_int_equal(state->stage, DP_CHECKPOINT_CUTTING);
    return DP_OK;
}

/* Its status is no reason to look again. */
static void one_that_the_first_server_gives_up_is_over(void **state)
{
    struct bench b = opened(SHARDS, false);
    const struct dp_checkpoint_watch watch = {rest, NULL};
    struct dp_checkpoint_ask ask = {.directory = "/checkpoints"};
    struct dp_checkpoint_made made;
    uint32_t looks = 0;
    b.net->tamper = first_server_gives_up;
    b.net->context = &looks;
    assert_int_equal(dp_client_checkpoint_make(b.client, &ask, &watch, &made, &b.err), DP_AGAIN);
    assert_int_equal(looks, 3);
    assert_string_equal(b.err.text, "each of 5 cuts came too early");
    done(&b);
}

static bool stops;

static bool is_interrupted(void *context)
{
    (void)context;
    return stops;
}

static enum dp_status interrupted(void *context, const struct dp_checkpoint_state *state,
                                  struct dp_error *err)
{
    (void)context;
    (void)state;
    return dp_fail(err, DP_STOPPING, "interrupted");
}

/* The first server is silent: neither the wait for it nor the ABANDON takes its 10 s. */
static void one_that_is_interrupted_ends_soon(void **state)
{
    (void)state;
    struct bench b = made(SHARDS);
    const struct dp_checkpoint_watch watch = {interrupted, NULL};
    struct dp_checkpoint_ask ask = {.directory = "/checkpoints"};
    struct dp_checkpoint_made out;
    b.options.gives_up = is_interrupted;
    assert_int_equal(open_client(&b), DP_OK);
    b.net->dead[SHARDS] = true; /* the control */
    stops = true;
    uint64_t start = b.net->now_ns;
    assert_int_equal(dp_client_checkpoint_make(b.client, &ask, &watch, &out, &b.err), DP_STOPPING);
    assert_true(b.net->now_ns - start < 5000000000u);
    stops = false;
    done(&b);
}

static void the_register_is_copied(void **state)
{
    struct bench b = opened(1, false);
    struct dp_register_value value = {0};
    bool won = false;
    b.net->faults.lose = 300;
    assert_int_equal(
        dp_client_register_set(b.client, "run/1/view", 0, "members", 7, WAIT_MS, &won, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_register_copy(b.client, WAIT_MS, &value, &b.err), DP_OK);
    assert_true(value.version == 1 && value.size == 7);
    assert_string_equal(value.bytes, "members");
    dp_register_value_clear(&value);
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shards_answer_whatever_is_lost),
        cmocka_unit_test(each_shard_hears_what_it_lacks),
        cmocka_unit_test(a_refusal_and_a_silence_name_the_shard),
        cmocka_unit_test(one_that_the_first_server_gives_up_is_over),
        cmocka_unit_test(one_that_is_interrupted_ends_soon),
        cmocka_unit_test(the_register_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

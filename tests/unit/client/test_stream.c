/* The client's own stream: where a shard refuses it as too old, shard 0 gives another; nothing is pushed twice. */
#include "tests/unit/client/bench.h"

enum { ABOVE = 5000 };

/* Shard 1 has forgotten all up to ABOVE, and knows no stream before it is pushed to. */
static void floors(const struct dp_fake_turn *it)
{
    if (it->reply->kind == DP_REPLY_WELCOME && it->shard == 1)
        it->reply->too_old = ABOVE;
}

static enum dp_status push_row(struct bench *b, struct dp_client_table *t)
{
    const uint64_t key = 7;
    const float gradient = 1;
    return dp_client_push_rows(b->client, t, &key, 1, &gradient, 1, WAIT_MS, &b->err);
}

static void expect_push(const struct bench *b, uint32_t shard, uint32_t at, uint64_t stream, uint64_t number)
{
    const struct dp_fake_shard *s = &b->net->shard[shard];
    assert_true(at < s->pushes);
    assert_true(s->push[at].stream == stream && s->push[at].number == number);
}

static void a_fresh_client_gets_one_that_all_shards_take(void **state)
{
    struct bench b = made(2);
    b.net->tamper = floors;
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_client_table *t = table(&b, "t", 1);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(push_row(&b, t), DP_OK);
        for (uint32_t shard = 0; shard < 2; shard++)
            expect_push(&b, shard, i, ABOVE + 1, i);
    }
    done(&b);
}

/* Any message lost or late. */
static void so_it_does_on_a_bad_network(void **state)
{
    for (uint32_t i = 0; i < 50; i++) {
        struct bench b = made(3);
        b.net->random += i;
        b.net->tamper = floors;
        b.net->faults = (struct dp_fake_faults){.lose = 200, .slow = 300, .slow_ms = 300};
        b.options.open_timeout_ms = 60000;
        assert_int_equal(open_client(&b), DP_OK);
        struct dp_client_table *t = table(&b, "t", 1);
        assert_int_equal(push_row(&b, t), DP_OK);
        for (uint32_t shard = 0; shard < 3; shard++)
            expect_push(&b, shard, 0, ABOVE + 1, 0);
        done(&b);
    }
}

static enum dp_status too_old(const struct dp_fake_turn *it)
{
    uint32_t *times = it->context;
    if (it->request->kind != DP_REQUEST_PUSH || it->shard != 1 || *times == 0)
        return DP_OK;
    --*times;
    it->reply->too_old = it->request->stream | ABOVE;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "it was forgotten");
    return DP_TOO_OLD;
}

/* The push that hears so may be there on other shards: it is not made again, and its caller is told. */
static void one_that_was_forgotten_is_replaced_for_the_next_push(void **state)
{
    struct bench b = opened(2, false);
    uint32_t times = 0;
    struct dp_client_table *t = table(&b, "t", 1);
    b.net->refuse = too_old;
    b.net->context = &times;
    assert_int_equal(push_row(&b, t), DP_OK);
    times = 1;
    assert_int_equal(push_row(&b, t), DP_TOO_OLD);
    text_has(&b, "shard 1 at tcp://f1");
    assert_int_equal(dp_client_too_old(b.client), 900 | ABOVE);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(push_row(&b, t), DP_OK);
    expect_push(&b, 0, 0, 900, 0);
    expect_push(&b, 0, 1, 900, 1);
    for (uint32_t i = 0; i < 2; i++) {
        expect_push(&b, 0, 2 + i, (900 | ABOVE) + 1, i);
        expect_push(&b, 1, 1 + i, (900 | ABOVE) + 1, i);
    }
    done(&b);
}

/* What a shard does not know means nothing for a stream that it knows, nor what it says of others. */
static void one_in_use_is_kept(void **state)
{
    struct bench b = opened(2, false);
    uint32_t times = 0;
    struct dp_client_table *t = table(&b, "t", 1);
    const struct dp_push_options training = {.rate = 1, .stream = UINT64_C(1) << 63 | 4};
    struct dp_ticket ticket;
    b.net->refuse = too_old;
    b.net->context = &times;
    assert_int_equal(push_row(&b, t), DP_OK);
    times = 1;
    assert_int_equal(dp_client_push(b.client, &training, NULL, 0, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_TOO_OLD);
    assert_true(dp_client_too_old(b.client) == (UINT64_C(1) << 63 | 4 | ABOVE));
    b.net->tamper = floors;
    b.net->shard[1].session = 0; /* it greets again */
    assert_int_equal(push_row(&b, t), DP_OK);
    assert_int_equal(b.net->shard[1].hellos, 2);
    assert_int_equal(push_row(&b, t), DP_OK); /* now that it has heard */
    for (uint32_t shard = 0; shard < 2; shard++)
        expect_push(&b, shard, b.net->shard[shard].pushes - 1, 900, 2);
    done(&b);
}

/* Shard 0 has forgotten the session and is greeted for that, when it turns out that the stream is too old. */
static void a_greeting_that_asked_for_none_is_followed_by_one_that_does(void **state)
{
    struct bench b = opened(2, false);
    uint32_t times = 0;
    struct dp_client_table *t = table(&b, "t", 1);
    b.net->refuse = too_old;
    b.net->context = &times;
    assert_int_equal(push_row(&b, t), DP_OK);
    times = 1;
    b.net->shard[0].session = 0;
    b.net->faults = (struct dp_fake_faults){.slow = 500, .slow_ms = 50};
    assert_int_equal(push_row(&b, t), DP_TOO_OLD);
    assert_int_equal(push_row(&b, t), DP_OK);
    expect_push(&b, 0, b.net->shard[0].pushes - 1, (900 | ABOVE) + 1, 0);
    done(&b);
}

/* Shard 1 refuses one push as too old, then shard 0 a stream for it, once for each. */
static enum dp_status refuse_both_once(const struct dp_fake_turn *it)
{
    uint32_t *times = it->context;
    if (it->request->kind != DP_REQUEST_HELLO || it->shard != 0 || !it->request->want_stream || times[1] == 0)
        return too_old(it);
    times[1]--;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "not by this clock");
    return DP_INVALID;
}

/* Later its clock may be right: each push asks once more. */
static void one_that_was_not_given_is_asked_for_again(void **state)
{
    struct bench b = opened(2, false);
    uint32_t times[2] = {0, 0};
    struct dp_client_table *t = table(&b, "t", 1);
    b.net->refuse = refuse_both_once;
    b.net->context = times;
    assert_int_equal(push_row(&b, t), DP_OK);
    times[0] = 1;
    times[1] = 2;
    assert_int_equal(push_row(&b, t), DP_TOO_OLD);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(push_row(&b, t), DP_INVALID);
        text_has(&b, "not by this clock");
    }
    assert_int_equal(push_row(&b, t), DP_OK);
    done(&b);
}

static void no_other(const struct dp_fake_turn *it)
{
    floors(it);
    if (it->reply->stream)
        it->reply->stream = 900;
}

/* A shard 0 that gives the same again. */
static void without_another_the_deadline_ends_it(void **state)
{
    struct bench b = made(2);
    b.net->tamper = no_other;
    assert_int_equal(open_client(&b), DP_UNAVAILABLE);
    text_has(&b, "shard 0");
    assert_in_range(b.net->sent_to[0], 2, 40); /* and not in a loop */
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_client_gets_one_that_all_shards_take),
        cmocka_unit_test(so_it_does_on_a_bad_network),
        cmocka_unit_test(one_that_was_forgotten_is_replaced_for_the_next_push),
        cmocka_unit_test(one_in_use_is_kept),
        cmocka_unit_test(a_greeting_that_asked_for_none_is_followed_by_one_that_does),
        cmocka_unit_test(one_that_was_not_given_is_asked_for_again),
        cmocka_unit_test(without_another_the_deadline_ends_it),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}

/* Pushed: what a client is told of the numbers that all shards have applied. */
#include "tests/unit/client/bench.h"

#define STREAM (UINT64_C(1) << 63 | 9)

/* As if some worker had pushed it to this shard alone. */
static void applied_on(struct bench *b, uint32_t shard, uint64_t stream, uint64_t number)
{
    struct dp_fake_shard *s = &b->net->shard[shard];
    s->push[s->pushes++] = (struct dp_fake_push){.stream = stream, .number = number};
}

static bool bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static void a_number_counts_when_every_shard_has_it(void **state)
{
    struct bench b = opened(3, false);
    uint64_t bits[2] = {0, 0};
    for (uint32_t shard = 0; shard < 3; shard++) {
        applied_on(&b, shard, STREAM, 4);
        applied_on(&b, shard, STREAM, 69);
        applied_on(&b, shard, STREAM, 70);     /* behind those asked for */
        applied_on(&b, shard, STREAM + 1, 10); /* another stream */
    }
    applied_on(&b, 0, STREAM, 5);
    applied_on(&b, 2, STREAM, 5);
    applied_on(&b, 1, STREAM, 6);
    assert_int_equal(dp_client_pushed(b.client, STREAM, 4, 66, bits, WAIT_MS, &b.err), DP_OK);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(bit(bits, i), i == 0 || i == 65);
    assert_int_equal(dp_client_pushed_anywhere(b.client, STREAM, 4, 66, bits, WAIT_MS, &b.err), DP_OK);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(bit(bits, i), i <= 2 || i == 65);
    assert_int_equal(dp_client_pushed(b.client, STREAM, 0, 0, NULL, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_pushed(b.client, 0, 0, 1, bits, WAIT_MS, &b.err), DP_ARGUMENT);
    assert_int_equal(dp_client_pushed(b.client, STREAM, UINT64_MAX, 2, bits, WAIT_MS, &b.err), DP_ARGUMENT);
    done(&b);
}

static void many_numbers_are_asked_for_in_pieces(void **state)
{
    struct bench b = opened(2, false);
    enum { COUNT = 2 * DP_POSITIONS_MAX + 100 };
    static uint64_t bits[(COUNT + 63) / 64];
    static const uint64_t numbers[] = {7, DP_POSITIONS_MAX + 6, DP_POSITIONS_MAX + 7, COUNT + 6};
    for (size_t i = 0; i < 4; i++) {
        applied_on(&b, 0, STREAM, numbers[i]);
        applied_on(&b, 1, STREAM, numbers[i]);
    }
    assert_int_equal(dp_client_pushed(b.client, STREAM, 7, COUNT, bits, WAIT_MS, &b.err), DP_OK);
    for (size_t i = 0; i < COUNT; i++) {
        bool is = i == 0 || i == DP_POSITIONS_MAX - 1 || i == DP_POSITIONS_MAX || i == COUNT - 1;
        assert_int_equal(bit(bits, i), is);
    }
    done(&b);
}

static enum dp_status forgotten(const struct dp_fake_turn *it)
{
    uint32_t *times = it->context;
    if (it->request->kind != DP_REQUEST_POSITIONS_GET || it->shard != 1)
        return DP_OK;
    if ((*times)++ < 3) { /* first it is recovering */
        (void)snprintf(it->reply->reason, sizeof it->reply->reason, "shard 1 is recovering: 4 of 9 MB");
        return DP_AGAIN;
    }
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "it was forgotten");
    return DP_TOO_OLD;
}

static void a_forgotten_stream_is_said_by_its_shard(void **state)
{
    struct bench b = opened(2, false);
    uint32_t times = 0;
    uint64_t bits;
    b.net->refuse = forgotten;
    b.net->context = &times;
    assert_int_equal(dp_client_pushed(b.client, STREAM, 0, 64, &bits, WAIT_MS, &b.err), DP_TOO_OLD);
    text_has(&b, "shard 1 at tcp://f1");
    text_has(&b, "forgotten");
    assert_int_equal(times, 4);
    done(&b);
}

static void a_silent_shard_is_named_when_the_time_is_over(void **state)
{
    struct bench b = opened(2, false);
    uint64_t bits[2 * DP_POSITIONS_MAX / 64], before = b.net->now_ns;
    b.net->dead[1] = true;
    assert_int_equal(dp_client_pushed(b.client, STREAM, 0, 2 * DP_POSITIONS_MAX, bits, 5000, &b.err),
                     DP_TIMEOUT);
    text_has(&b, "shard 1 at tcp://f1");
    assert_int_equal((b.net->now_ns - before) / 1000000, 5000);
    /* Nothing of that call is left: late answers do no harm. */
    b.net->dead[1] = false;
    assert_int_equal(dp_client_pushed(b.client, STREAM, 0, 64, bits, WAIT_MS, &b.err), DP_OK);
    done(&b);
}

static void wrong_size(const struct dp_fake_turn *it)
{
    if (it->shard != 1 || it->reply->kind != DP_REPLY_POSITIONS)
        return;
    dp_frame_release(&it->frames[0]);
    it->frames[0] = dp_frame_new(3);
}

static void an_answer_of_another_size_is_refused(void **state)
{
    struct bench b = opened(2, false);
    uint64_t bits;
    b.net->tamper = wrong_size;
    assert_int_equal(dp_client_pushed(b.client, STREAM, 0, 64, &bits, WAIT_MS, &b.err), DP_INVALID);
    text_has(&b, "3 bytes, not 8");
    done(&b);
}

/* Lost, doubled and late messages change no answer. */
static void a_bad_network_changes_nothing(void **state)
{
    struct bench b = opened(3, false);
    uint64_t bits;
    b.net->faults =
        (struct dp_fake_faults){.lose = 200, .twice = 200, .slow = 300, .slow_ms = 300, .full = 100};
    for (uint64_t n = 0; n < 50; n++) {
        for (uint32_t shard = 0; shard < 3; shard++)
            if (n % 3 != shard) /* one lacks it */
                applied_on(&b, shard, STREAM, n);
        applied_on(&b, (uint32_t)(n % 3), STREAM, 50 + n / 2);
        assert_int_equal(dp_client_pushed(b.client, STREAM, 0, 50, &bits, WAIT_MS, &b.err), DP_OK);
        assert_int_equal(bits, 0);
    }
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_counts_when_every_shard_has_it),
        cmocka_unit_test(many_numbers_are_asked_for_in_pieces),
        cmocka_unit_test(a_forgotten_stream_is_said_by_its_shard),
        cmocka_unit_test(a_silent_shard_is_named_when_the_time_is_over),
        cmocka_unit_test(an_answer_of_another_size_is_refused),
        cmocka_unit_test(a_bad_network_changes_nothing),
    };
    return cmocka_run_group_tests_name("pushed", tests, NULL, NULL);
}

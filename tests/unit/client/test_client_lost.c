/* Client: servers that are lost, restarted, or lie. */
#include "tests/unit/client/bench.h"

#include "common/client/client_session.h"

#include "common/model/mix.h"

#include <stdlib.h>

/* A line on which each large answer takes a second, and all behind it waits. */
static struct slow_line {
    bool (*receive)(void *self, uint32_t *server, struct dp_message **message);
    struct dp_message *held[64];
    uint32_t from, count;
    uint64_t free_ns;
} line;

static bool receive_slowly(void *self, uint32_t *server, struct dp_message **message)
{
    const struct dp_fake_net *net = self;
    while (line.receive(self, server, message)) {
        assert_true(line.count < 64);
        if (line.from == line.count && net->now_ns > line.free_ns)
            line.free_ns = net->now_ns;
        if (line.from == line.count && dp_message_bytes(*message) > 1 << 20)
            line.free_ns += UINT64_C(1000000000);
        line.held[line.count++] = *message;
    }
    *server = 0;
    *message = NULL;
    if (line.from == line.count || net->now_ns < line.free_ns)
        return false;
    *message = line.held[line.from++];
    if (line.from < line.count && dp_message_bytes(line.held[line.from]) > 1 << 20)
        line.free_ns += UINT64_C(1000000000);
    return true;
}

enum { MANY = 49152, WIDE = 64 }; /* 12.4 MiB of keys and weights: 1,031 ms at the slowest rate */

static struct dp_ticket pull_many(struct bench *b, struct dp_client_table *t, struct dp_keys *keys,
                                  float *weights)
{
    struct dp_ticket ticket;
    const struct dp_pull_part pull = {t, keys, weights};
    assert_int_equal(dp_client_pull(b->client, &pull, 1, NULL, WAIT_MS, &ticket, &b->err), DP_OK);
    return ticket;
}

static void a_slow_transfer_is_not_asked_for_twice(void **state)
{
    struct bench b = made(1);
    struct dp_transport transport = dp_fake_net_transport(b.net);
    struct dp_clock clock = dp_fake_net_clock(b.net);
    struct dp_ticket ticket[6];
    struct dp_keys *keys;
    uint64_t *key = calloc(MANY, sizeof *key);
    float *weights = calloc((size_t)MANY * WIDE, sizeof *weights);
    assert_true(key && weights);
    for (uint64_t i = 0; i < MANY; i++)
        key[i] = i;
    line = (struct slow_line){.receive = transport.receive};
    transport.receive = receive_slowly;
    assert_int_equal(dp_client_open_over(&b.options, &transport, &clock, 41, &b.client, &b.err), DP_OK);
    struct dp_client_table *t = table(&b, "t", WIDE);
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, key, MANY, &b.err), DP_OK);

    /* Six seconds, 60 times retry_ms, with a second of silence before each answer. */
    uint32_t before = b.net->sent_to[0];
    for (int i = 0; i < 6; i++)
        ticket[i] = pull_many(&b, t, keys, weights);
    advance(&b, 5900);
    assert_int_equal(dp_client_wait(b.client, &ticket[4], 0, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket[5], 0, NULL, &b.err), DP_TIMEOUT);
    advance(&b, 200);
    for (int i = 0; i < 6; i++) {
        if (i != 4)
            assert_int_equal(dp_client_wait(b.client, &ticket[i], 0, NULL, &b.err), DP_OK);
    }
    assert_int_equal(b.net->sent_to[0] - before, 6);

    /* One that is lost is asked for again, when it would have been here. */
    b.net->dead[0] = true;
    ticket[0] = pull_many(&b, t, keys, weights);
    advance(&b, 1100);
    assert_int_equal(b.net->sent_to[0] - before, 7);
    b.net->dead[0] = false;
    advance(&b, 50);
    assert_int_equal(b.net->sent_to[0] - before, 8);
    assert_int_equal(dp_client_wait(b.client, &ticket[0], WAIT_MS, NULL, &b.err), DP_OK);

    /* What is small does not wait for what was large. */
    b.net->dead[0] = true;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[0]), DP_OK);
    advance(&b, 101);
    assert_int_equal(b.net->sent_to[0] - before, 10);
    dp_keys_free(&keys);
    done(&b);
    free(key);
    free(weights);
}

/* ---- links that are slower than the slowest that the retry timer expects ---- */

static uint64_t carried;

static uint64_t carried_now(void *self, uint32_t server)
{
    const struct dp_fake_net *net = self;
    return carried ? carried : 1 + net->now_ns / 10000; /* 100 KB/s */
}

/* A client whose connection carries 100 KB/s, and what a large pull takes. */
struct slow {
    struct bench b;
    struct dp_client_table *table;
    struct dp_keys *keys;
    uint64_t *key;
    float *weights;
};

static void slow_open(struct slow *slow, uint64_t seed)
{
    slow->b = made(1);
    struct dp_transport transport = dp_fake_net_transport(slow->b.net);
    struct dp_clock clock = dp_fake_net_clock(slow->b.net);
    slow->key = calloc(MANY, sizeof *slow->key);
    slow->weights = calloc((size_t)MANY * WIDE, sizeof *slow->weights);
    assert_true(slow->key && slow->weights);
    for (uint64_t i = 0; i < MANY; i++)
        slow->key[i] = i;
    carried = 0;
    transport.carried = carried_now;
    assert_int_equal(
        dp_client_open_over(&slow->b.options, &transport, &clock, seed, &slow->b.client, &slow->b.err),
        DP_OK);
    slow->table = table(&slow->b, "t", WIDE);
    assert_int_equal(dp_keys_new(&slow->keys, &slow->b.err), DP_OK);
    assert_int_equal(dp_keys_set(slow->keys, slow->key, MANY, &slow->b.err), DP_OK);
}

static void slow_close(struct slow *slow)
{
    dp_keys_free(&slow->keys);
    done(&slow->b);
    free(slow->key);
    free(slow->weights);
}

/* Seen to fail without the look, and with one that does not compare. */
static void what_moves_is_not_sent_again(void **state)
{
    struct slow slow;
    struct dp_ticket ticket;
    slow_open(&slow, 43);
    uint32_t before = slow.b.net->sent_to[0];
    slow.b.net->dead[0] = true; /* nothing of it has arrived completely */
    ticket = pull_many(&slow.b, slow.table, slow.keys, slow.weights);
    for (int i = 0; i < 30; i++)
        advance(&slow.b, 1000);
    assert_int_equal(slow.b.net->sent_to[0] - before, 1);
    carried = 7; /* nothing moves any more: it is lost */
    advance(&slow.b, 1000);
    advance(&slow.b, 1100);
    slow.b.net->dead[0] = false;
    assert_int_equal(dp_client_wait(slow.b.client, &ticket, WAIT_MS, NULL, &slow.b.err), DP_OK);
    assert_true(slow.b.net->sent_to[0] - before >= 2);
    slow_close(&slow);
}

static uint32_t answers_lost;

static void loses_a_pull(const struct dp_fake_turn *it)
{
    if (it->reply->kind != DP_REPLY_PULLED || answers_lost == 0)
        return;
    answers_lost--;
    it->reply->session++; /* another's: nobody takes it */
}

/* Goal    what moves is not sent again where a later request was answered first, either.
 * Planted after such an answer, no look counts. */
static void what_was_overtaken_and_moves_is_not_sent_again(void **state)
{
    struct slow slow;
    struct dp_ticket large, push;
    slow_open(&slow, 45);
    struct dp_client_table *narrow = table(&slow.b, "narrow", 4);
    slow.b.net->tamper = loses_a_pull; /* it is still on its way */
    answers_lost = 1;
    large = pull_many(&slow.b, slow.table, slow.keys, slow.weights);
    assert_int_equal(push_one(&slow.b, narrow, 3, WAIT_MS, &push), DP_OK);
    uint32_t before = slow.b.net->sent_to[0];
    for (int i = 0; i < 30; i++)
        advance(&slow.b, 1000);
    assert_int_equal(slow.b.net->sent_to[0] - before, 0);
    assert_int_equal(dp_client_wait(slow.b.client, &push, 0, NULL, &slow.b.err), DP_OK);
    carried = 7; /* nothing moves any more */
    assert_int_equal(dp_client_wait(slow.b.client, &large, WAIT_MS, NULL, &slow.b.err), DP_OK);
    slow_close(&slow);
}

/* Goal    a large request whose answer is lost is sent again, though others' answers move on its connection.
 * Planted bytes count as moving whenever something was heard since the last look. */
static void bytes_of_others_do_not_excuse_it(void **state)
{
    struct slow slow;
    struct dp_ticket lost, push;
    slow_open(&slow, 44);
    struct dp_client_table *narrow = table(&slow.b, "narrow", 4);
    slow.b.net->tamper = loses_a_pull;
    answers_lost = 1;
    lost = pull_many(&slow.b, slow.table, slow.keys, slow.weights);
    for (int i = 0; i < 60; i++) { /* an answer every 50 ms, for 3 s */
        assert_int_equal(push_one(&slow.b, narrow, 3, WAIT_MS, &push), DP_OK);
        advance(&slow.b, 50);
        assert_int_equal(dp_client_wait(slow.b.client, &push, 0, NULL, &slow.b.err), DP_OK);
    }
    assert_int_equal(dp_client_wait(slow.b.client, &lost, 0, NULL, &slow.b.err), DP_OK);
    slow_close(&slow);
}

/* ---- answers that are no good ---- */

enum lie {
    LIE_SHORT_FRAME,
    LIE_LONG_FRAME,
    LIE_FEW_FRAMES,
    LIE_MANY_FRAMES,
    LIE_KIND,
    LIE_ID,
    LIE_SESSION,
    LIE_REASON,
    LIE_UNKNOWN,
    LIES
};

struct liar {
    enum lie lie;
    bool on;
};

static void tell_a_lie(const struct dp_fake_turn *it)
{
    const struct liar *liar = it->context;
    if (!liar->on || it->shard != 1 || it->reply->kind != DP_REPLY_PULLED)
        return;
    switch (liar->lie) {
    case LIE_SHORT_FRAME:
        it->frames[0].size -= 1;
        break;
    case LIE_LONG_FRAME:
        dp_frame_release(&it->frames[0]);
        it->frames[0] = dp_frame_copy("0123456789abcdefghij", 20);
        break;
    case LIE_FEW_FRAMES:
        dp_frame_release(&it->frames[0]);
        *it->frame_count = 0;
        break;
    case LIE_MANY_FRAMES:
        it->frames[(*it->frame_count)++] = dp_frame_copy("x", 1);
        break;
    case LIE_KIND:
        dp_frame_release(&it->frames[0]);
        *it->frame_count = 0;
        it->reply->kind = DP_REPLY_PUSHED;
        break;
    case LIE_ID:
        it->reply->id += 1000;
        break;
    case LIE_SESSION:
        it->reply->session++;
        break;
    default:
        dp_frame_release(&it->frames[0]);
        *it->frame_count = 0;
        it->reply->kind = DP_REPLY_NONE;
        it->reply->status = liar->lie == LIE_REASON ? DP_NOT_FOUND : (enum dp_status)9999;
        (void)snprintf(it->reply->reason, sizeof it->reply->reason, "no such table here");
    }
}

static void lies_fail_their_ticket_and_nothing_else(void **state)
{
    uint64_t key = 0;
    while (dp_mix(key) >> 63 == 0)
        key++; /* shard 1's */
    for (enum lie lie = 0; lie < LIES; lie++) {
        struct bench b = opened(2, false);
        struct dp_client_table *t = table(&b, "t", 4);
        float w[6] = {-5, -5, -5, -5, -5, -5};
        struct liar liar = {.lie = lie, .on = true};
        b.net->tamper = tell_a_lie;
        b.net->context = &liar;
        enum dp_status st = dp_client_pull_rows(b.client, t, &key, 1, w + 1, 300, &b.err);
        assert_int_equal(st, lie == LIE_ID || lie == LIE_SESSION ? DP_TIMEOUT
                             : lie == LIE_REASON                 ? DP_NOT_FOUND
                             : lie == LIE_UNKNOWN                ? DP_INTERNAL
                                                                 : DP_INVALID);
        text_has(&b, "shard 1 at tcp://f1");
        for (int i = 0; i < 6; i++)
            assert_true(w[i] == -5);
        liar.on = false;
        assert_int_equal(dp_client_pull_rows(b.client, t, &key, 1, w + 1, WAIT_MS, &b.err), DP_OK);
        assert_true(w[0] == -5 && w[1] == 0 && w[4] == 0 && w[5] == -5);
        done(&b);
    }
}

/* Bytes instead of replies. */
static bool (*real_receive)(void *self, uint32_t *server, struct dp_message **message);

static bool receive_rubbish(void *self, uint32_t *server, struct dp_message **message)
{
    struct dp_fake_net *net = self;
    bool there = real_receive(self, server, message);
    if (!there || dp_fake_net_random(net, 2) == 0)
        return there;
    size_t size = (*message)->frame[0].size;
    unsigned char *bytes = (*message)->frame[0].data;
    for (int i = 0; i < 3 && size > 0; i++)
        bytes[dp_fake_net_random(net, size)] ^= (unsigned char)(1 + dp_fake_net_random(net, 255));
    if (dp_fake_net_random(net, 3) == 0)
        *server = (uint32_t)dp_fake_net_random(net, 7);
    return true;
}

static void rubbish_breaks_nothing(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct bench b = opened(2, false);
        (void)table(&b, "t", 4);
        dp_client_close(&b.client);
        b.net->random = seed;
        struct dp_transport transport = dp_fake_net_transport(b.net);
        struct dp_clock clock = dp_fake_net_clock(b.net);
        real_receive = transport.receive;
        transport.receive = receive_rubbish;
        if (dp_client_open_over(&b.options, &transport, &clock, 42, &b.client, &b.err) == DP_OK) {
            struct dp_table_spec spec = {
                .name = "t", .dim = 4, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
            struct dp_client_table *again;
            uint64_t key[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
            float w[9][4] = {{1}};
            if (dp_client_table(b.client, &spec, 500, &again, &b.err) == DP_OK) {
                (void)!dp_client_push_rows(b.client, again, key, 9, w[0], 1, 500, &b.err);
                (void)!dp_client_pull_rows(b.client, again, key, 9, w[0], 500, &b.err);
            }
        }
        done(&b);
    }
}

static enum dp_status drop_second(const struct dp_fake_turn *it)
{
    bool *dropped = it->context;
    if (*dropped || it->request->kind != DP_REQUEST_PUSH || it->request->number != 1)
        return DP_OK;
    *dropped = true;
    return DP_TIMEOUT;
}

static void lose_one(uint32_t apart_ns, uint32_t resends)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[10];
    bool dropped = false;
    b.net->refuse = drop_second;
    b.net->context = &dropped;
    uint64_t start = b.net->now_ns;
    uint32_t before = b.net->sent;
    for (int i = 0; i < 10; i++) {
        b.net->now_ns += apart_ns;
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err), DP_OK);
    assert_true(dropped);
    assert_true(b.net->now_ns - start < 5000000); /* not by silence, which is 100 ms */
    assert_int_equal(b.net->shard[0].hellos, 1);  /* nor by a new session */
    assert_int_equal(b.net->sent - before, 10 + resends);
    done(&b);
}

/* The ORDERs that the requests behind it bring are one loss, whether they come together or one by one. */
static void a_lost_request_is_mended_at_once_and_once(void **state)
{
    lose_one(0, 9);
    lose_one(20000, 7); /* a hop is 50000: seven are under way when the first ORDER comes */
}

static void a_restarted_server_is_greeted_again(void **state)
{
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[4];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err), DP_OK);
    }
    b.net->shard[0].session = 0;
    b.net->shard[0].expected = 1;
    b.net->shard[0].boot++;
    for (int i = 0; i < 4; i++)
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(b.net->shard[0].hellos, 2);
    assert_int_equal(b.net->shard[0].pushes, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(b.net->shard[0].push[i].number, i);
    assert_int_equal(b.net->shard[0].stream, 900);
    done(&b);
}

static enum dp_status refuse_hello(const struct dp_fake_turn *it)
{
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "restored as generation 2");
    if (it->shard != 1)
        return DP_OK;
    return it->request->kind == DP_REQUEST_HELLO ? DP_GENERATION : DP_SESSION;
}

static void a_refused_greeting_fails_what_waits_and_is_tried_anew(void **state)
{
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[2];
    b.net->refuse = refuse_hello;
    for (int i = 0; i < 2; i++)
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err), DP_GENERATION);
        text_has(&b, "shard 1 at tcp://f1: restored as generation 2");
    }
    b.net->refuse = NULL;
    b.net->shard[1].session = 0;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[0]), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket[0], WAIT_MS, NULL, &b.err), DP_OK);
    assert_true(b.net->shard[0].pushes == 3 && b.net->shard[1].pushes == 1);
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_transfer_is_not_asked_for_twice),
        cmocka_unit_test(what_moves_is_not_sent_again),
        cmocka_unit_test(what_was_overtaken_and_moves_is_not_sent_again),
        cmocka_unit_test(bytes_of_others_do_not_excuse_it),
        cmocka_unit_test(lies_fail_their_ticket_and_nothing_else),
        cmocka_unit_test(rubbish_breaks_nothing),
        cmocka_unit_test(a_lost_request_is_mended_at_once_and_once),
        cmocka_unit_test(a_restarted_server_is_greeted_again),
        cmocka_unit_test(a_refused_greeting_fails_what_waits_and_is_tried_anew),
    };
    return cmocka_run_group_tests_name("client_lost", tests, NULL, NULL);
}

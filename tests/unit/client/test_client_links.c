/* client: waits that end and name their cause, the window, resends, servers that lie or come back. */
#include "tests/unit/client/bench.h"

#include "common/client/session.h"

#include "common/model/mix.h"

#include <stdlib.h>

static enum dp_status push_one(struct bench *b, struct dp_client_table *t, uint64_t key, uint32_t timeout_ms,
                               struct dp_ticket *out)
{
    const float g[DP_FAKE_DIM_MAX] = {1, 1, 1, 1};
    struct dp_keys *keys;
    assert_int_equal(dp_keys_new(&keys, &b->err), DP_OK);
    assert_int_equal(dp_keys_set(keys, &key, 1, &b->err), DP_OK);
    const struct dp_push_part part = {t, keys, g};
    const struct dp_push_options options = {.rate = 1};
    enum dp_status st = dp_client_push(b->client, &options, &part, 1, timeout_ms, out, &b->err);
    dp_keys_free(&keys);
    return st;
}

static void advance(struct bench *b, uint32_t ms)
{
    uint64_t until = b->net->now_ns + ms * UINT64_C(1000000);
    while (b->net->now_ns < until) {
        dp_client_progress(b->client);
        b->net->now_ns += 1000000;
    }
    dp_client_progress(b->client);
}

static void wait_names_the_silent_shard_and_may_be_repeated(void **state)
{
    (void)state;
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    struct dp_outcome outcome;
    b.net->dead[1] = true;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    uint64_t start = b.net->now_ns;
    assert_int_equal(dp_client_wait(b.client, &ticket, 500, NULL, &b.err), DP_TIMEOUT);
    text_has(&b, "no answer from shard 1 at tcp://f1 in 500 ms: is its server running?");
    assert_true(b.net->now_ns - start >= 500000000u && b.net->now_ns - start < 510000000u);
    assert_true(ticket.id != 0);
    b.net->dead[1] = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_false(outcome.repeated);
    assert_int_equal(ticket.id, 0);
    assert_int_equal(dp_client_wait(b.client, &ticket, 0, NULL, &b.err), DP_ARGUMENT);
    assert_true(b.net->shard[0].pushes == 1 && b.net->shard[1].pushes == 1);
    done(&b);
}

static void silence_is_asked_again_ever_more_slowly(void **state)
{
    (void)state;
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    b.net->dead[0] = true;
    uint32_t before = b.net->sent_to[0];
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    advance(&b, 99);
    assert_int_equal(b.net->sent_to[0] - before, 1);
    advance(&b, 1);
    assert_int_equal(b.net->sent_to[0] - before, 2); /* after 100, 200, 400, 800, 800 ... */
    advance(&b, 199);
    assert_int_equal(b.net->sent_to[0] - before, 2);
    advance(&b, 201 + 400);
    assert_int_equal(b.net->sent_to[0] - before, 4);
    advance(&b, 8000);
    assert_in_range(b.net->sent_to[0] - before, 13, 15);
    done(&b);
}

/* Answers nothing but status while `hold`. */
static enum dp_status only_status(void *context, uint32_t shard, const struct dp_request *r,
                                  struct dp_reply *reply)
{
    (void)shard;
    (void)reply;
    const bool *hold = context;
    return *hold && r->kind != DP_REQUEST_STATUS ? DP_TIMEOUT : DP_OK;
}

static void a_shard_that_is_heard_is_not_hurried(void **state)
{
    (void)state;
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    struct dp_status_report *report;
    bool hold = true;
    b.net->refuse = only_status;
    b.net->context = &hold;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    for (int i = 0; i < 9; i++) { /* 720 ms; retry_ms is 100 */
        uint32_t before = b.net->sent_to[0];
        advance(&b, 80);
        assert_int_equal(b.net->sent_to[0], before);
        assert_int_equal(dp_client_status(b.client, 0, WAIT_MS, &report, &b.err), DP_OK);
        dp_client_status_free(&report);
        assert_null(report);
    }
    advance(&b, 80);
    uint32_t before = b.net->sent_to[0];
    assert_int_equal(dp_client_status(b.client, 0, WAIT_MS, &report, &b.err), DP_OK);
    dp_client_status_free(&report);
    advance(&b, 90); /* but not for ever: 8 retries after the first answer that overtook it */
    assert_int_equal(b.net->sent_to[0], before + 2);
    hold = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    done(&b);
}

/* A line on which each large answer takes a second, and all behind it waits. */
static struct slow_line {
    enum dp_status (*receive)(void *self, uint32_t *server, struct dp_message **message);
    struct dp_message *held[64];
    uint32_t from, count;
    uint64_t free_ns;
} line;

static enum dp_status receive_slowly(void *self, uint32_t *server, struct dp_message **message)
{
    const struct dp_fake_net *net = self;
    while (line.receive(self, server, message) == DP_OK) {
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
        return DP_AGAIN;
    *message = line.held[line.from++];
    if (line.from < line.count && dp_message_bytes(line.held[line.from]) > 1 << 20)
        line.free_ns += UINT64_C(1000000000);
    return DP_OK;
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
    (void)state;
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

static void the_window_is_respected(void **state)
{
    (void)state;
    struct bench b = made(2);
    b.options.window = 5;
    b.net->window = 3; /* the server's is smaller */
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[4];
    b.net->dead[1] = true;
    uint32_t before = b.net->sent_to[1];
    for (int i = 0; i < 3; i++)
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    assert_int_equal(b.net->sent_to[1] - before, 3);
    assert_int_equal(push_one(&b, t, 3, 50, &ticket[3]), DP_TIMEOUT);
    text_has(&b, "push: window of 3 requests is full: no answer from shard 1 at tcp://f1");
    assert_int_equal(b.net->sent_to[1] - before, 3);
    b.net->dead[1] = false;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[3]), DP_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err), DP_OK);
    for (uint32_t i = 0; i < 4; i++) /* the one that found no room used up no number */
        assert_true(b.net->shard[0].push[i].number == i && b.net->shard[1].push[i].number == i);
    done(&b);
}

static void staleness_is_measured(void **state)
{
    (void)state;
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4);
    uint64_t key = 0, applied[2]; /* mixed 0: shard 0 */
    float w[4];
    struct dp_keys *keys;
    struct dp_ticket ticket;
    struct dp_outcome outcome;
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, &key, 1, &b.err), DP_OK);
    const struct dp_pull_part pull = {t, keys, w};
    assert_int_equal(push_one(&b, t, 0, WAIT_MS, &ticket), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_int_equal(outcome.measured, 0);
    assert_int_equal(dp_client_pull(b.client, &pull, 1, applied, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(applied[0], 1);
    assert_true(applied[1] == DP_NOT_MEASURED);
    assert_true(b.net->shard[0].pulls == 1 && b.net->shard[1].pulls == 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(push_one(&b, t, 0, WAIT_MS, &ticket), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    }
    const struct dp_push_part push = {t, keys, w};
    struct dp_push_options options = {.rate = 1, .applied = applied};
    assert_int_equal(dp_client_push(b.client, &options, &push, 1, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.measured == 1 && outcome.staleness_sum == 2 && outcome.staleness_max == 2);
    applied[1] = 0;
    assert_int_equal(dp_client_push(b.client, &options, &push, 1, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.measured == 2 && outcome.staleness_sum == 3 + 4 && outcome.staleness_max == 4);
    dp_keys_free(&keys);
    done(&b);
}

static void a_number_of_ones_own_counts_once(void **state)
{
    (void)state;
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4);
    const struct dp_push_options options = {.rate = 1, .stream = 7, .number = 12};
    (void)t;
    for (int i = 0; i < 2; i++) {
        struct dp_ticket ticket;
        struct dp_outcome outcome;
        assert_int_equal(dp_client_push(b.client, &options, NULL, 0, WAIT_MS, &ticket, &b.err), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
        assert_int_equal(outcome.repeated, i == 1);
    }
    assert_int_equal(b.net->shard[1].pushes, 1);
    assert_true(b.net->shard[1].push[0].stream == 7 && b.net->shard[1].push[0].number == 12);
    done(&b);
}

static void a_simple_push_whose_number_was_taken_is_an_error(void **state)
{
    (void)state;
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 2);
    uint64_t key[1] = {5};
    float gradient[2] = {1, 1};
    assert_int_equal(dp_client_push_rows(b.client, t, key, 1, gradient, 1, WAIT_MS, &b.err), DP_OK);
    /* Somebody else's push under the number that comes next. */
    struct dp_fake_shard *shard = &b.net->shard[1];
    assert_int_equal(shard->pushes, 1);
    shard->push[1] = shard->push[0];
    shard->push[1].number++;
    shard->pushes = 2;
    assert_int_equal(dp_client_push_rows(b.client, t, key, 1, gradient, 1, WAIT_MS, &b.err), DP_EXISTS);
    assert_non_null(strstr(b.err.text, "two clients share a stream"));
    assert_non_null(strstr(b.err.text, "number 1 of stream"));
    assert_int_equal(dp_client_push_rows(b.client, t, key, 1, gradient, 1, WAIT_MS, &b.err), DP_OK);
    /* Sent twice since its answer was lost: no error, though the second is repeated. */
    b.net->faults.lose = 500;
    for (int i = 0; i < 40; i++)
        assert_int_equal(dp_client_push_rows(b.client, t, key, 1, gradient, 1, 600000, &b.err), DP_OK);
    b.net->faults.lose = 0;
    assert_int_equal(shard->pushes, 43);
    done(&b);
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

static void tell_a_lie(void *context, uint32_t shard, struct dp_reply *reply, struct dp_frame *frames,
                       uint32_t *n)
{
    const struct liar *liar = context;
    if (!liar->on || shard != 1 || reply->kind != DP_REPLY_PULLED)
        return;
    switch (liar->lie) {
    case LIE_SHORT_FRAME:
        frames[0].size -= 1;
        break;
    case LIE_LONG_FRAME:
        dp_frame_release(&frames[0]);
        frames[0] = dp_frame_copy("0123456789abcdefghij", 20);
        break;
    case LIE_FEW_FRAMES:
        dp_frame_release(&frames[0]);
        *n = 0;
        break;
    case LIE_MANY_FRAMES:
        frames[(*n)++] = dp_frame_copy("x", 1);
        break;
    case LIE_KIND:
        dp_frame_release(&frames[0]);
        *n = 0;
        reply->kind = DP_REPLY_PUSHED;
        break;
    case LIE_ID:
        reply->id += 1000;
        break;
    case LIE_SESSION:
        reply->session++;
        break;
    default:
        dp_frame_release(&frames[0]);
        *n = 0;
        reply->kind = DP_REPLY_NONE;
        reply->status = liar->lie == LIE_REASON ? DP_NOT_FOUND : (enum dp_status)9999;
        (void)snprintf(reply->reason, sizeof reply->reason, "no such table here");
    }
}

static void lies_fail_their_ticket_and_nothing_else(void **state)
{
    (void)state;
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
static enum dp_status (*real_receive)(void *self, uint32_t *server, struct dp_message **message);

static enum dp_status receive_rubbish(void *self, uint32_t *server, struct dp_message **message)
{
    struct dp_fake_net *net = self;
    enum dp_status st = real_receive(self, server, message);
    if (st != DP_OK || dp_fake_net_random(net, 2) == 0)
        return st;
    size_t size = (*message)->frame[0].size;
    unsigned char *bytes = (*message)->frame[0].data;
    for (int i = 0; i < 3 && size > 0; i++)
        bytes[dp_fake_net_random(net, size)] ^= (unsigned char)(1 + dp_fake_net_random(net, 255));
    if (dp_fake_net_random(net, 3) == 0)
        *server = (uint32_t)dp_fake_net_random(net, 7);
    return DP_OK;
}

static void rubbish_breaks_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct bench b = opened(2, false);
        struct dp_client_table *t = table(&b, "t", 4);
        dp_client_close(&b.client);
        b.net->random = seed;
        struct dp_transport transport = dp_fake_net_transport(b.net);
        struct dp_clock clock = dp_fake_net_clock(b.net);
        real_receive = transport.receive;
        transport.receive = receive_rubbish;
        (void)t;
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

static void keys_that_change_under_a_pull_are_noticed(void **state)
{
    (void)state;
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    uint64_t key[2] = {1, 2};
    float w[8];
    struct dp_keys *keys;
    struct dp_ticket ticket;
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, key, 2, &b.err), DP_OK);
    const struct dp_pull_part pull = {t, keys, w};
    assert_int_equal(dp_client_pull(b.client, &pull, 1, NULL, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, key, 1, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_ARGUMENT);
    dp_keys_free(&keys);
    done(&b);
}

/* ---- servers that stop, come back, are busy ---- */

static enum dp_status busy(void *context, uint32_t shard, const struct dp_request *r, struct dp_reply *reply)
{
    const uint32_t *from = context;
    (void)snprintf(reply->reason, sizeof reply->reason, "number is above the window");
    return shard == 0 && r->kind == DP_REQUEST_PUSH && r->number >= *from ? DP_AGAIN : DP_OK;
}

static void a_busy_shard_is_quoted_and_asked_again(void **state)
{
    (void)state;
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[3];
    uint32_t from = 1;
    b.net->refuse = busy;
    b.net->context = &from;
    for (int i = 0; i < 3; i++)
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket[0], WAIT_MS, NULL, &b.err), DP_OK);
    uint32_t before = b.net->sent;
    assert_int_equal(dp_client_wait(b.client, &ticket[1], 1000, NULL, &b.err), DP_TIMEOUT);
    text_has(&b, "it said: AGAIN: number is above the window");
    assert_in_range(b.net->sent - before, 10, 60); /* with growing pauses, not in a loop */
    from = 100;
    assert_int_equal(dp_client_wait(b.client, &ticket[2], WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket[1], WAIT_MS, NULL, &b.err), DP_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(b.net->shard[0].push[i].number, i);
    done(&b);
}

/* The shard's disk is full: it refuses push 1 for that, and all behind it because push 1 is missing. */
static enum dp_status full_and_in_order(void *context, uint32_t shard, const struct dp_request *r,
                                        struct dp_reply *reply)
{
    uint64_t *refused = context;
    (void)shard;
    if (r->kind != DP_REQUEST_PUSH || r->number == 0)
        return DP_OK;
    (void)snprintf(reply->reason, sizeof reply->reason, "%s",
                   r->number == 1 ? "the disk is full" : "request 3 came before request 2");
    if (r->number == 1)
        *refused = r->sequence;
    reply->sequence = *refused;
    return r->number == 1 ? DP_AGAIN : DP_ORDER;
}

static void the_cause_is_quoted_not_what_follows_from_it(void **state)
{
    (void)state;
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[4];
    uint64_t refused = 0;
    b.net->refuse = full_and_in_order;
    b.net->context = &refused;
    for (int i = 0; i < 4; i++)
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    for (uint32_t ms = 100; ms < 2000; ms += 100) {
        assert_int_equal(dp_client_wait(b.client, &ticket[3], ms, NULL, &b.err), DP_TIMEOUT);
        text_has(&b, "it said: AGAIN: the disk is full");
    }
    b.net->refuse = NULL;
    assert_int_equal(dp_client_wait(b.client, &ticket[3], WAIT_MS, NULL, &b.err), DP_OK);
    done(&b);
}

static enum dp_status drop_second(void *context, uint32_t shard, const struct dp_request *r,
                                  struct dp_reply *reply)
{
    bool *dropped = context;
    (void)shard;
    (void)reply;
    if (*dropped || r->kind != DP_REQUEST_PUSH || r->number != 1)
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
    (void)state;
    lose_one(0, 9);
    lose_one(20000, 7); /* a hop is 50000: seven are under way when the first ORDER comes */
}

static void a_restarted_server_is_greeted_again(void **state)
{
    (void)state;
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

static enum dp_status refuse_hello(void *context, uint32_t shard, const struct dp_request *r,
                                   struct dp_reply *reply)
{
    (void)context;
    (void)snprintf(reply->reason, sizeof reply->reason, "restored as generation 2");
    if (shard != 1)
        return DP_OK;
    return r->kind == DP_REQUEST_HELLO ? DP_GENERATION : DP_SESSION;
}

static void a_refused_greeting_fails_what_waits_and_is_tried_anew(void **state)
{
    (void)state;
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

/* ---- status and notes ---- */

static void status_tells_of_a_shard(void **state)
{
    (void)state;
    struct bench b = opened(3, false);
    struct dp_status_report *report = NULL;
    (void)table(&b, "t", 4);
    assert_int_equal(dp_client_status(b.client, 2, WAIT_MS, &report, &b.err), DP_OK);
    assert_true(report->shard == 2 && report->shards == 3 && report->tables == 1 && report->counters == 1);
    assert_string_equal(report->table[0].spec.name, "t");
    dp_client_status_free(&report);
    b.net->dead[2] = true;
    assert_int_equal(dp_client_status(b.client, 2, 200, &report, &b.err), DP_TIMEOUT);
    text_has(&b, "shard 2 at tcp://f2");
    assert_null(report);
    assert_int_equal(dp_client_status(b.client, 3, 200, &report, &b.err), DP_ARGUMENT);
    done(&b);
}

static void collect(void *context, const char *name, const void *bytes, size_t size)
{
    char *text = context;
    (void)snprintf(text + strlen(text), 100 - strlen(text), "%s=%.*s;", name, (int)size, (const char *)bytes);
}

static void notes_come_back_in_name_order(void **state)
{
    (void)state;
    struct bench b = opened(2, false);
    char text[100] = "";
    b.net->faults.lose = 300; /* asked again until they arrive */
    assert_int_equal(dp_client_note_put(b.client, "w/2", "two", 3, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_note_put(b.client, "w/1", "one", 3, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_note_put(b.client, "x", "", 0, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_note_put(b.client, "w/2", "zwei", 4, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_notes(b.client, "w/", collect, text, WAIT_MS, &b.err), DP_OK);
    assert_string_equal(text, "w/1=one;w/2=zwei;");
    assert_int_equal(dp_client_note_put(b.client, "", "x", 1, WAIT_MS, &b.err), DP_ARGUMENT);
    b.net->dead[2] = true;
    assert_int_equal(dp_client_notes(b.client, "", collect, text, 200, &b.err), DP_TIMEOUT);
    text_has(&b, "control at tcp://control");
    done(&b);

    b = made(1);
    b.options.control = NULL;
    assert_int_equal(open_client(&b), DP_OK);
    assert_int_equal(dp_client_notes(b.client, "", collect, text, 200, &b.err), DP_ARGUMENT);
    done(&b);
}

static enum dp_status recovering(void *context, uint32_t shard, const struct dp_request *r,
                                 struct dp_reply *reply)
{
    (void)shard;
    (void)r;
    const bool *still = context;
    (void)snprintf(reply->reason, sizeof reply->reason, "shard 0 is recovering: 3 of 9 segments");
    return *still ? DP_AGAIN : DP_OK;
}

/* For a minute; then all is as it was. */
static void a_shard_that_recovers_is_asked_with_pauses(void **state)
{
    (void)state;
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    bool still = true;
    b.net->refuse = recovering;
    b.net->context = &still;
    b.net->shard[0].session = 0; /* it was started again */
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    uint32_t before = b.net->sent_to[0];
    for (int i = 0; i < 6; i++) {
        assert_int_equal(dp_client_wait(b.client, &ticket, 10000, NULL, &b.err), DP_TIMEOUT);
        text_has(&b, "shard 0 at tcp://f0");
        text_has(&b, "AGAIN: shard 0 is recovering: 3 of 9 segments");
    }
    /* Pauses of 100 to 125 ms once they have grown. */
    assert_in_range(b.net->sent_to[0] - before, 60000 / 125, 60000 / 100 + 20);
    still = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, 1000, NULL, &b.err), DP_OK);
    assert_int_equal(b.net->shard[0].pushes, 1);
    done(&b);
}

/* Clients of one server do not come back all at once. */
static void pauses_are_drawn(void **state)
{
    (void)state;
    struct dp_session session = {.random = 41};
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t pause = dp_session_jitter(&session, 1000000);
        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    assert_in_range(least, 1000000, 1010000);
    assert_in_range(most, 1240000, 1250000);
    assert_in_range(dp_session_jitter(&session, 0), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_names_the_silent_shard_and_may_be_repeated),
        cmocka_unit_test(a_shard_that_recovers_is_asked_with_pauses),
        cmocka_unit_test(pauses_are_drawn),
        cmocka_unit_test(silence_is_asked_again_ever_more_slowly),
        cmocka_unit_test(a_shard_that_is_heard_is_not_hurried),
        cmocka_unit_test(a_slow_transfer_is_not_asked_for_twice),
        cmocka_unit_test(the_window_is_respected),
        cmocka_unit_test(staleness_is_measured),
        cmocka_unit_test(a_number_of_ones_own_counts_once),
        cmocka_unit_test(a_simple_push_whose_number_was_taken_is_an_error),
        cmocka_unit_test(lies_fail_their_ticket_and_nothing_else),
        cmocka_unit_test(rubbish_breaks_nothing),
        cmocka_unit_test(keys_that_change_under_a_pull_are_noticed),
        cmocka_unit_test(a_busy_shard_is_quoted_and_asked_again),
        cmocka_unit_test(the_cause_is_quoted_not_what_follows_from_it),
        cmocka_unit_test(a_lost_request_is_mended_at_once_and_once),
        cmocka_unit_test(a_restarted_server_is_greeted_again),
        cmocka_unit_test(a_refused_greeting_fails_what_waits_and_is_tried_anew),
        cmocka_unit_test(status_tells_of_a_shard),
        cmocka_unit_test(notes_come_back_in_name_order),
    };
    return cmocka_run_group_tests_name("client_links", tests, NULL, NULL);
}

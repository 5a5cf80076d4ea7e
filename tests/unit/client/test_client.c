/* client: what each call promises, on a network that behaves unless the test says otherwise. */
#include "tests/unit/client/bench.h"

#include "common/base/bf16.h"
#include "common/model/mix.h"
#include "common/model/range.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static void open_greets_each_shard_and_asks_the_first_for_a_stream(void **state)
{
    struct bench b = opened(3, false);
    assert_int_equal(dp_client_shards(b.client), 3);
    assert_int_equal(b.net->shard[0].stream, 900);
    assert_int_equal(b.net->shard[1].stream, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(b.net->shard[i].hellos, 1);
    done(&b);
}

static void open_names_the_shard_that_is_not_there(void **state)
{
    struct bench b = made(3);
    b.net->dead[1] = true;
    uint64_t start = b.net->now_ns;
    assert_int_equal(open_client(&b), DP_UNAVAILABLE);
    text_has(&b, "no answer from shard 1 at tcp://f1 in 1000 ms: is its server running?");
    assert_true(b.net->now_ns - start >= 1000000000u && b.net->now_ns - start < 1200000000u);
    assert_in_range(b.net->sent_to[1], 9, 11); /* hello again each retry_ms */
    done(&b);
}

static void swap_ranges(const struct dp_fake_turn *it)
{
    struct dp_range other = dp_range_of_shard(1 - it->shard, 2);
    it->reply->first = other.first;
    it->reply->last = other.last;
}

static void no_stream(const struct dp_fake_turn *it)
{
    it->reply->stream = 0;
}

static enum dp_status other_generation(const struct dp_fake_turn *it)
{
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "this is generation 9");
    return it->shard == 1 ? DP_GENERATION : DP_OK;
}

static enum dp_status not_the_first(const struct dp_fake_turn *it)
{
    (void)snprintf(it->reply->reason, sizeof it->reply->reason,
                   "streams are given by shard 0, this is shard 1");
    return it->request->want_stream ? DP_INVALID : DP_OK;
}

static void open_passes_refusals_on(void **state)
{
    struct bench b = made(2);
    b.net->tamper = swap_ranges;
    assert_int_equal(open_client(&b), DP_ARGUMENT);
    text_has(&b, "the list of shards is in another order or not complete");
    text_has(&b, "shard 0 at tcp://f0");
    done(&b);

    b = made(2);
    b.net->refuse = other_generation;
    assert_int_equal(open_client(&b), DP_GENERATION);
    text_has(&b, "shard 1 at tcp://f1: this is generation 9");
    done(&b);

    b = made(2);
    b.net->tamper = no_stream;
    assert_int_equal(open_client(&b), DP_INVALID);
    done(&b);

    b = made(2);
    b.net->refuse = not_the_first;
    assert_int_equal(open_client(&b), DP_INVALID);
    text_has(&b, "this is shard 1: is the list of shards in another order?");
    done(&b);

    b = made(2);
    b.options.shard_count = 0;
    b.options.control = NULL;
    assert_int_equal(open_client(&b), DP_ARGUMENT);
    done(&b);
}

/* ---- which stores ---- */

static uint64_t stores[2], registers[2]; /* as the shards tell */

static void tell_stores(const struct dp_fake_turn *it)
{
    if (it->reply->kind != DP_REPLY_WELCOME)
        return;
    it->reply->store = stores[it->shard];
    it->reply->register_id = registers[it->shard];
}

static struct bench made_with_stores(uint64_t first, uint64_t second)
{
    struct bench b = made(2);
    b.net->tamper = tell_stores;
    stores[0] = UINT64_C(1) << 32;
    stores[1] = UINT64_C(2) << 32;
    registers[0] = first << 32;
    registers[1] = second << 32;
    return b;
}

static void stores_of_two_registers_do_not_belong_together(void **state)
{
    struct bench b = made_with_stores(8, 9);
    assert_int_equal(open_client(&b), DP_GENERATION);
    text_has(&b, "its store is known to register 0000000");
    text_has(&b, "the stores do not belong together");
    done(&b);
    static const uint64_t good[][2] = {{8, 8}, {8, 0}, {0, 8}, {0, 0}}; /* 0: no register knows it yet */
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        b = made_with_stores(good[i][0], good[i][1]);
        assert_int_equal(open_client(&b), DP_OK);
        done(&b);
    }
}

static void restarted(struct bench *b)
{
    b->net->shard[1].boot++;
    b->net->shard[1].session = 0;
}

static void a_store_does_not_become_another(void **state)
{
    struct bench b = made_with_stores(8, 8);
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_client_table *t = table(&b, "t", 3);
    const uint64_t keys[4] = {1, 2, 3, 4};
    const float gradients[12] = {1};
    assert_int_equal(dp_client_push_rows(b.client, t, keys, 4, gradients, 0.1f, WAIT_MS, &b.err), DP_OK);
    restarted(&b);
    assert_int_equal(dp_client_push_rows(b.client, t, keys, 4, gradients, 0.1f, WAIT_MS, &b.err), DP_OK);
    stores[1] = UINT64_C(3) << 32;
    restarted(&b);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(dp_client_push_rows(b.client, t, keys, 4, gradients, 0.1f, WAIT_MS, &b.err),
                         DP_GENERATION);
        text_has(&b, "shard 1 at tcp://f1: its store is another one now (00000003, it was 00000002)");
    }
    stores[1] = UINT64_C(2) << 32; /* put back */
    restarted(&b);
    assert_int_equal(dp_client_push_rows(b.client, t, keys, 4, gradients, 0.1f, WAIT_MS, &b.err), DP_OK);
    done(&b);
}

/* ---- control alone, and giving up ---- */

static bool gives_up(void *context)
{
    uint32_t *left = context;
    return (*left)-- == 0;
}

static void control_alone_and_given_up(void **state)
{
    struct bench b = made(0);
    uint32_t left = UINT32_MAX;
    b.options.gives_up = gives_up;
    b.options.gives_up_context = &left;
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_table_spec spec = {.name = "t", .dim = 3, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    struct dp_client_table *t;
    assert_int_equal(dp_client_table(b.client, &spec, WAIT_MS, &t, &b.err), DP_ARGUMENT);
    text_has(&b, "without shards");
    b.net->dead[0] = true; /* the control */
    uint64_t start = b.net->now_ns;
    left = 3;
    assert_int_equal(dp_client_note_put(b.client, "n", "", 0, WAIT_MS, &b.err), DP_TIMEOUT);
    assert_true(b.net->now_ns - start < 2000000000u);
    done(&b);
}

/* ---- rows ---- */

static void rows_come_and_go(uint32_t shards, bool bf16)
{
    enum { N = 500, DIM = 5 };
    struct bench b = opened(shards, bf16);
    struct dp_client_table *t = table(&b, "t", DIM);
    static uint64_t key[N];
    static float gradient[N][DIM], weights[N][DIM], expected[N / 4][DIM];
    memset(expected, 0, sizeof expected);
    for (size_t i = 0; i < N; i++) {
        key[i] = dp_fake_net_random(b.net, N / 4);
        for (size_t c = 0; c < DIM; c++) {
            gradient[i][c] = (float)dp_fake_net_random(b.net, 8) - 3;
            expected[key[i]][c] += gradient[i][c];
        }
    }
    assert_int_equal(dp_client_push_rows(b.client, t, key, N, gradient[0], 0.5f, WAIT_MS, &b.err), DP_OK);
    for (size_t i = 0; i < N; i++)
        key[i] = dp_fake_net_random(b.net, N / 4);
    assert_int_equal(dp_client_pull_rows(b.client, t, key, N, weights[0], WAIT_MS, &b.err), DP_OK);
    for (size_t i = 0; i < N; i++)
        assert_memory_equal(weights[i], expected[key[i]], sizeof weights[i]);
    for (uint32_t s = 0; s < shards; s++) {
        assert_int_equal(b.net->shard[s].pushes, 1);
        assert_true(b.net->shard[s].push[0].rate == 0.5f);
        assert_true(b.net->shard[s].rows > 0);
    }
    done(&b);
}

static void duplicates_and_any_order_on_any_number_of_shards(void **state)
{
    for (uint32_t shards = 1; shards <= 8; shards++) {
        rows_come_and_go(shards, false);
        rows_come_and_go(shards, true);
    }
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void lent_keys_and_several_tables_in_one_request(void **state)
{
    enum { N = 40 };
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct bench b = opened(4, bf16);
        struct dp_client_table *one = table(&b, "one", 1), *wide = table(&b, "wide", 33);
        uint64_t mixed[N];
        float g1[N], w1[N], g2[3][33], w2[3][33];
        const uint64_t user[3] = {8, 1, 8};
        struct dp_keys *lent, *set;
        struct dp_ticket ticket;
        for (size_t i = 0; i < N; i++)
            mixed[i] = dp_mix(i);
        qsort(mixed, N, sizeof mixed[0], ascending);
        for (size_t i = 0; i < N; i++)
            g1[i] = (float)dp_unmix(mixed[i]) + 1;
        for (size_t i = 0; i < 99; i++)
            g2[i / 33][i % 33] = (float)i;
        assert_int_equal(dp_keys_new(&lent, &b.err), DP_OK);
        assert_int_equal(dp_keys_new(&set, &b.err), DP_OK);
        assert_int_equal(dp_keys_lend(lent, mixed, N, &b.err), DP_OK);
        assert_int_equal(dp_keys_set(set, user, 3, &b.err), DP_OK);
        const struct dp_push_part push[] = {{one, lent, g1}, {wide, set, g2[0]}};
        const struct dp_pull_part pull[] = {{wide, set, w2[0]}, {one, lent, w1}};
        const struct dp_push_options options = {.rate = 1};
        assert_int_equal(dp_client_push(b.client, &options, push, 2, WAIT_MS, &ticket, &b.err), DP_OK);
        memset(g1, 0xff, sizeof g1); /* a push copies */
        assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
        assert_int_equal(dp_client_pull(b.client, pull, 2, NULL, WAIT_MS, &ticket, &b.err), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
        for (size_t i = 0; i < N; i++)
            assert_true(w1[i] == (float)dp_unmix(mixed[i]) + 1);
        for (size_t c = 0; c < 33; c++) {
            assert_true(w2[0][c] == (float)(c + 66 + c) && w2[2][c] == w2[0][c]);
            assert_true(w2[1][c] == (float)(33 + c));
        }
        dp_keys_free(&lent);
        dp_keys_free(&set);
        done(&b);
    }
}

static void bf16_halves_the_bytes_of_values(void **state)
{
    size_t bytes[2];
    static float g[100][64];
    uint64_t key[100];
    for (size_t i = 0; i < 100; i++)
        key[i] = i;
    g[3][4] = 1.00390625f; /* between two bf16 */
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct bench b = opened(1, bf16);
        struct dp_client_table *t = table(&b, "t", 64);
        bytes[bf16] = b.net->sent_bytes;
        assert_int_equal(dp_client_push_rows(b.client, t, key, 100, g[0], 1, WAIT_MS, &b.err), DP_OK);
        bytes[bf16] = b.net->sent_bytes - bytes[bf16];
        float want = bf16 ? dp_bf16_to_f32(dp_f32_to_bf16(g[3][4])) : g[3][4];
        assert_true(dp_fake_net_row(b.net, dp_table_id("t"), dp_mix(3))[4] == want);
        done(&b);
    }
    assert_in_range(bytes[0] - bytes[1], 100 * 64 * 2 - 8, 100 * 64 * 2); /* the header says which, too */
}

static void empty_requests(void **state)
{
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 2);
    struct dp_pulled_at at[2] = {{1, 1}, {1, 1}};
    struct dp_keys *keys;
    struct dp_ticket ticket;
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    const struct dp_pull_part pull = {t, keys, NULL};
    const struct dp_push_options options = {.rate = 1};
    uint32_t sent = b.net->sent;
    assert_int_equal(dp_client_pull(b.client, &pull, 1, at, 0, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, 0, NULL, &b.err), DP_OK);
    assert_true(at[0].applied == DP_NOT_MEASURED && at[1].applied == DP_NOT_MEASURED);
    assert_int_equal(b.net->sent, sent);
    assert_int_equal(dp_client_push(b.client, &options, NULL, 0, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    assert_true(b.net->shard[0].pushes == 1 && b.net->shard[1].pushes == 1);
    dp_keys_free(&keys);
    done(&b);
}

/* ---- refusals before anything is sent ---- */

static void a_push_that_is_not_finite_is_refused_whole(void **state)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct bench b = opened(4, bf16);
        struct dp_client_table *t = table(&b, "users", 2);
        uint64_t key[50];
        float g[50][2];
        for (uint64_t i = 0; i < 50; i++) {
            key[i] = i < 49 ? i : 48; /* 48 twice */
            g[i][0] = g[i][1] = 1;
        }
        uint32_t sent = b.net->sent;
        g[17][1] = NAN;
        assert_int_equal(dp_client_push_rows(b.client, t, key, 50, g[0], 1, WAIT_MS, &b.err), DP_NOT_FINITE);
        text_has(&b, "table 'users', key 17, column 1");
        g[17][1] = -INFINITY;
        assert_int_equal(dp_client_push_rows(b.client, t, key, 50, g[0], 1, WAIT_MS, &b.err), DP_NOT_FINITE);
        text_has(&b, "-inf");
        g[17][1] = 0;
        g[48][0] = g[49][0] = 3e38f;
        assert_int_equal(dp_client_push_rows(b.client, t, key, 50, g[0], 1, WAIT_MS, &b.err), DP_NOT_FINITE);
        text_has(&b, "key 48: its gradients are finite, but their sum is beyond");
        g[48][0] = g[49][0] = 0;
        const float rates[] = {0, -1, NAN, INFINITY};
        for (int i = 0; i < 4; i++)
            assert_int_equal(dp_client_push_rows(b.client, t, key, 50, g[0], rates[i], WAIT_MS, &b.err),
                             DP_ARGUMENT);
        assert_int_equal(b.net->sent, sent);
        assert_int_equal(dp_client_push_rows(b.client, t, key, 50, g[0], 1, WAIT_MS, &b.err), DP_OK);
        assert_int_equal(b.net->shard[0].push[0].number, 0); /* refused ones used up none */
        done(&b);
    }
}

static void arguments_are_checked(void **state)
{
    struct bench b = opened(1, false), other = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 2), *foreign = table(&other, "t", 2), *none;
    struct dp_keys *keys;
    struct dp_ticket ticket = {99};
    float w[2];
    const uint64_t key = 1;
    struct dp_table_spec spec = {.name = "bad name", .dim = 1};
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, &key, 1, &b.err), DP_OK);
    const struct dp_pull_part twice[] = {{t, keys, w}, {t, keys, w}}, other_s = {foreign, keys, w},
                              no_table = {NULL, keys, w}, no_room = {t, keys, NULL};
    assert_int_equal(dp_client_pull(b.client, twice, 2, NULL, 0, &ticket, &b.err), DP_ARGUMENT);
    text_has(&b, "table 't' is in two parts");
    assert_int_equal(ticket.id, 0);
    assert_int_equal(dp_client_pull(b.client, &other_s, 1, NULL, 0, &ticket, &b.err), DP_ARGUMENT);
    assert_int_equal(dp_client_pull(b.client, &no_table, 1, NULL, 0, &ticket, &b.err), DP_ARGUMENT);
    assert_int_equal(dp_client_pull(b.client, &no_room, 1, NULL, 0, &ticket, &b.err), DP_ARGUMENT);
    assert_int_equal(dp_client_wait(b.client, &ticket, 0, NULL, &b.err), DP_ARGUMENT);
    assert_int_equal(dp_client_table(b.client, &spec, 0, &none, &b.err), DP_ARGUMENT);
    assert_int_equal(dp_client_pull_rows(b.client, t, &key, 1, w, WAIT_MS, NULL), DP_OK); /* err NULL */
    dp_keys_free(&keys);
    done(&other);
    done(&b);
}

static void a_request_over_the_limits_is_not_sent(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 64);
    size_t n = DP_FRAME_BYTES_MAX / 256 + 1;
    uint64_t *mixed = malloc(n * sizeof *mixed);
    float unused;
    struct dp_keys *keys;
    struct dp_ticket ticket;
    assert_non_null(mixed);
    for (size_t i = 0; i < n; i++)
        mixed[i] = i;
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_lend(keys, mixed, n, &b.err), DP_OK);
    const struct dp_pull_part part = {t, keys, &unused};
    uint32_t sent = b.net->sent;
    assert_int_equal(dp_client_pull(b.client, &part, 1, NULL, WAIT_MS, &ticket, &b.err), DP_ARGUMENT);
    text_has(&b, "cut it into several");
    assert_int_equal(b.net->sent, sent);
    dp_keys_free(&keys);
    free(mixed);
    done(&b);
}

/* The shard that lacks it makes it as the others have it, not as this client would. */
static void a_table_that_one_shard_lost_keeps_its_initial_values(void **state)
{
    struct bench b = opened(2, false);
    struct dp_table_spec spec = {.name = "t", .dim = 4, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    struct dp_client_table *again = NULL;
    (void)table(&b, "t", 4);
    (void)snprintf(b.net->shard[0].table[0].name, 9, "lost");
    spec.init = (struct dp_init_spec){.kind = DP_INIT_NORMAL, .scale = 1};
    dp_client_close(&b.client);
    assert_int_equal(open_client(&b), DP_OK);
    assert_int_equal(dp_client_table_kept(b.client, &spec, WAIT_MS, &again, &b.err), DP_OK);
    assert_string_equal(b.net->shard[0].table[1].name, "t");
    assert_int_equal(b.net->shard[0].table[1].init.kind, b.net->shard[1].table[0].init.kind);
    done(&b);
}

static void tables_are_checked_against_what_is_there(void **state)
{
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4), *again = NULL;
    struct dp_table_spec spec = {.name = "t", .dim = 4, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    assert_int_equal(dp_client_table(b.client, &spec, WAIT_MS, &again, &b.err), DP_OK);
    assert_ptr_equal(t, again);
    struct dp_table_spec other = spec;
    other.init = (struct dp_init_spec){.kind = DP_INIT_NORMAL, .scale = 1};
    assert_int_equal(dp_client_table(b.client, &other, WAIT_MS, &again, &b.err), DP_EXISTS);
    assert_int_equal(dp_client_table_kept(b.client, &other, WAIT_MS, &again, &b.err), DP_OK);
    assert_ptr_equal(t, again);
    other.dim = 5;
    assert_int_equal(dp_client_table_kept(b.client, &other, WAIT_MS, &again, &b.err), DP_EXISTS);
    spec.dim = 5;
    assert_int_equal(dp_client_table(b.client, &spec, WAIT_MS, &again, &b.err), DP_EXISTS);
    assert_null(again);
    (void)snprintf(b.net->shard[1].table[0].name, 9, "u"); /* as another client had made it */
    (void)snprintf(spec.name, sizeof spec.name, "u");
    assert_int_equal(dp_client_table(b.client, &spec, WAIT_MS, &again, &b.err), DP_EXISTS);
    text_has(&b, "shard 1 at tcp://f1");
    text_has(&b, "dim");
    done(&b);
}

/* Which pushes of which numbers came to the shard; while `silent`, either nothing is done and answered, or all is done and the
 * answers are lost. */
struct deaf {
    bool silent, applies;
    uint32_t pushes;
    uint64_t stream, least, most;
};

static enum dp_status note_push(const struct dp_fake_turn *it)
{
    struct deaf *deaf = it->context;
    if (it->request->kind != DP_REQUEST_PUSH)
        return DP_OK;
    deaf->least = deaf->pushes == 0 || it->request->number < deaf->least ? it->request->number : deaf->least;
    deaf->most = deaf->pushes == 0 || it->request->number > deaf->most ? it->request->number : deaf->most;
    assert_true(deaf->pushes == 0 || it->request->stream == deaf->stream);
    deaf->stream = it->request->stream;
    deaf->pushes++;
    return deaf->silent && !deaf->applies ? DP_TIMEOUT : DP_OK;
}

static void lose_answer(const struct dp_fake_turn *it)
{
    const struct deaf *deaf = it->context;
    if (deaf->silent && it->reply->kind == DP_REPLY_PUSHED)
        it->reply->id += UINT64_C(1) << 40; /* nobody's */
}

/* A simple push whose deadline passes was sent under one number, however often, and its number is not given again: whether the
 * shard applied it or not, it counts once at most, and the next push counts. */
static void a_push_that_times_out_counts_once_at_most(void **state)
{
    for (uint32_t applies = 0; applies < 2; applies++) {
        struct bench b = opened(1, false);
        struct dp_client_table *t = table(&b, "t", 1);
        const uint64_t key = 3;
        const float one = 1, four = 4;
        struct deaf deaf = {.silent = true, .applies = applies};
        b.net->refuse = note_push;
        b.net->tamper = lose_answer;
        b.net->context = &deaf;
        assert_int_equal(dp_client_push_rows(b.client, t, &key, 1, &one, 1, 3000, &b.err), DP_TIMEOUT);
        assert_true(deaf.pushes > 1); /* it was asked for again */
        assert_true(deaf.least == 0 && deaf.most == 0);
        deaf.silent = false;
        assert_int_equal(dp_client_push_rows(b.client, t, &key, 1, &four, 1, WAIT_MS, &b.err), DP_OK);
        assert_int_equal(deaf.most, 1);
        const float *sum = dp_fake_net_row(b.net, dp_table_id("t"), dp_mix(key));
        assert_non_null(sum);
        assert_true(sum[0] == 5 || (!applies && sum[0] == 4));
        done(&b);
    }
}

/* A push whose first answer was lost is repeated because it was sent again: that is no news for its owner. */
static void a_push_that_was_sent_again_is_not_told_as_repeated(void **state)
{
    struct bench b = opened(1, false);
    struct deaf deaf = {.silent = true, .applies = true};
    const struct dp_push_options options = {.rate = 1};
    struct dp_ticket ticket;
    struct dp_outcome outcome;
    b.net->refuse = note_push;
    b.net->tamper = lose_answer;
    b.net->context = &deaf;
    assert_int_equal(dp_client_push(b.client, &options, NULL, 0, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, 500, NULL, &b.err), DP_TIMEOUT);
    assert_int_equal(b.net->shard[0].pushes, 1);
    deaf.silent = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(deaf.pushes > 1);
    assert_false(outcome.repeated);
    assert_int_equal(b.net->shard[0].pushes, 1);
    done(&b);
}

struct deadlines {
    uint32_t timeout_ms[16]; /* of the last request of each kind; 0: none came */
};

static enum dp_status note_deadline(const struct dp_fake_turn *it)
{
    struct deadlines *seen = it->context;
    if (it->request->kind < 16)
        seen->timeout_ms[it->request->kind] = it->request->timeout_ms;
    return DP_OK;
}

/* What changes rows or tables carries no deadline of its caller: a shard that dropped it would let what is behind it overtake. */
static void only_pulls_carry_their_deadline(void **state)
{
    struct bench b = opened(1, false);
    struct deadlines seen = {{0}};
    const struct dp_table_spec spec = {.name = "t", .dim = 1, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    struct dp_client_table *t = NULL;
    const uint64_t key = 3;
    float value = 1;
    b.net->refuse = note_deadline;
    b.net->context = &seen;
    assert_int_equal(dp_client_table(b.client, &spec, 50, &t, &b.err), DP_OK);
    assert_int_equal(dp_client_push_rows(b.client, t, &key, 1, &value, 1, 50, &b.err), DP_OK);
    assert_int_equal(dp_client_pull_rows(b.client, t, &key, 1, &value, 50, &b.err), DP_OK);
    assert_int_equal(seen.timeout_ms[DP_REQUEST_CREATE_TABLE], DP_TIMEOUT_MS_MAX);
    assert_int_equal(seen.timeout_ms[DP_REQUEST_PUSH], DP_TIMEOUT_MS_MAX);
    assert_in_range(seen.timeout_ms[DP_REQUEST_PULL], 50, 10000);
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_greets_each_shard_and_asks_the_first_for_a_stream),
        cmocka_unit_test(open_names_the_shard_that_is_not_there),
        cmocka_unit_test(open_passes_refusals_on),
        cmocka_unit_test(stores_of_two_registers_do_not_belong_together),
        cmocka_unit_test(a_store_does_not_become_another),
        cmocka_unit_test(control_alone_and_given_up),
        cmocka_unit_test(duplicates_and_any_order_on_any_number_of_shards),
        cmocka_unit_test(lent_keys_and_several_tables_in_one_request),
        cmocka_unit_test(bf16_halves_the_bytes_of_values),
        cmocka_unit_test(empty_requests),
        cmocka_unit_test(a_push_that_is_not_finite_is_refused_whole),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(a_push_that_times_out_counts_once_at_most),
        cmocka_unit_test(a_push_that_was_sent_again_is_not_told_as_repeated),
        cmocka_unit_test(only_pulls_carry_their_deadline),
        cmocka_unit_test(a_request_over_the_limits_is_not_sent),
        cmocka_unit_test(a_table_that_one_shard_lost_keeps_its_initial_values),
        cmocka_unit_test(tables_are_checked_against_what_is_there),
    };
    return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}

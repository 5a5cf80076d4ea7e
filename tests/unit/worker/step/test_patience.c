/* Goal    a worker waits for servers as long as it was told, in slices, and ends when a signal came. */
#include "tests/lib/test.h"
#include "worker/patience.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

struct bench {
    uint64_t now_ns;
    atomic_int stop;
    struct dp_cluster cluster;
    struct dp_job job;
};

static uint64_t now_of(void *self)
{
    return ((struct bench *)self)->now_ns;
}

static void begin(struct bench *b, uint32_t timeout_ms)
{
    *b = (struct bench){.now_ns = 5000 * MS, .cluster.training.timeout_ms = timeout_ms};
    b->job = (struct dp_job){.cluster = &b->cluster, .stop = &b->stop, .clock = {now_of, b}};
}

/* Tries that take their whole slice and give `why`; how long it went on, in ms. */
static uint64_t patience_of(struct bench *b, enum dp_status why, uint32_t slice_ms, struct dp_error *err,
                            enum dp_status *st)
{
    struct dp_patience patience = dp_patience_begin(&b->job);
    uint64_t begun = b->now_ns;
    do {
        uint32_t ms = dp_patience_slice_ms(&patience, slice_ms);
        assert_in_range(ms, 1, slice_ms);
        b->now_ns += ms * MS;
        *st = why == DP_OK ? DP_OK : dp_fail(err, why, "shard 1 is gone");
    } while (dp_patience_more(&patience, st, err));
    return (b->now_ns - begun) / MS;
}

static void silence_is_borne_as_long_as_told(void **state)
{
    (void)state;
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    begin(&b, 65000);
    assert_in_range(patience_of(&b, DP_TIMEOUT, 200, &err, &st), 65000, 65001);
    assert_int_equal(st, DP_TIMEOUT);
    assert_string_equal(err.text, "gave up after 65000 ms; the last try says: shard 1 is gone");
    begin(&b, 1000);
    assert_in_range(patience_of(&b, DP_UNAVAILABLE, 10000, &err, &st), 1000, 1001);
    assert_int_equal(st, DP_UNAVAILABLE);
}

static void answers_end_it(void **state)
{
    (void)state;
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    begin(&b, 65000);
    assert_in_range(patience_of(&b, DP_OK, 200, &err, &st), 200, 200);
    assert_int_equal(st, DP_OK);
    assert_in_range(patience_of(&b, DP_GENERATION, 200, &err, &st), 200, 200);
    assert_int_equal(st, DP_GENERATION);
    assert_string_equal(err.text, "shard 1 is gone");
}

static void a_signal_leaves_a_few_seconds(void **state)
{
    (void)state;
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    begin(&b, 65000);
    atomic_store(&b.stop, 15);
    assert_in_range(patience_of(&b, DP_TIMEOUT, 200, &err, &st), 5000, 5400);
    assert_int_equal(st, DP_STOPPING);
    assert_non_null(strstr(err.text, "stopped by a signal"));
}

/* Planted: it counts as the server's silence; it is counted off when it was a slow look only. */
static void a_suspended_process_waits_as_if_it_had_not_been(void **state)
{
    (void)state;
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    begin(&b, 10000);
    struct dp_patience patience = dp_patience_begin(&b.job);
    uint64_t begun = b.now_ns;
    int slices = 0;
    do {
        b.now_ns += dp_patience_slice_ms(&patience, 200) * MS;
        if (++slices == 10 || slices == 20)
            b.now_ns += 3600000 * MS;
        else if (slices < 5)
            b.now_ns += 1000 * MS; /* a busy machine */
        st = dp_fail(&err, DP_TIMEOUT, "shard 1 is gone");
    } while (dp_patience_more(&patience, &st, &err));
    assert_in_range((b.now_ns - begun) / MS, 7210000, 7210401);
    assert_string_equal(err.text, "gave up after 10000 ms; the last try says: shard 1 is gone");
}

/* What servers say at each try; how long it is borne, in ms. */
static uint64_t told(struct bench *b, void (*say)(char *text, size_t size, uint64_t ms), struct dp_error *err)
{
    struct dp_patience patience = dp_patience_begin(&b->job);
    uint64_t begun = b->now_ns;
    enum dp_status st;
    char text[200];
    do {
        b->now_ns += dp_patience_slice_ms(&patience, 200) * MS;
        say(text, sizeof text, (b->now_ns - begun) / MS);
        st = dp_fail(err, DP_TIMEOUT, "push: shard 1 at tcp://a:1 did not finish it in 200 ms; it said: %s",
                     text);
    } while (dp_patience_more(&patience, &st, err));
    assert_int_equal(st, DP_TIMEOUT);
    return (b->now_ns - begun) / MS;
}

static void comes_nearer(char *text, size_t size, uint64_t ms)
{
    (void)snprintf(text, size, "AGAIN: shard 1 is recovering: %u of 346 MB of its journal replayed",
                   (unsigned)(ms < 40000 ? ms / 5000 : 8));
}

static void comes_nearer_for_ever(char *text, size_t size, uint64_t ms)
{
    (void)snprintf(text, size, "AGAIN: shard 1 is recovering: %u of 346 MB of its journal checked",
                   (unsigned)(ms / 1000));
}

static void opens(char *text, size_t size, uint64_t ms)
{
    (void)snprintf(text, size, ms < 40000 ? "AGAIN: shard 1 is opening its store" : "AGAIN: too busy");
}

static void waits_for_a_worker(char *text, size_t size, uint64_t ms)
{
    (void)ms;
    (void)snprintf(text, size, "AGAIN: push 70000 of stream 80 is over 65536 ahead of one that is missing");
}

/* Planted: the same place counts as nearer; no upper bound; nothing is heard at all. */
static void a_server_that_comes_nearer_is_no_silence(void **state)
{
    (void)state;
    static struct bench b;
    struct dp_error err = {0};
    begin(&b, 10000);
    assert_in_range(told(&b, comes_nearer, &err), 50000, 50401);
    assert_non_null(strstr(err.text, "gave up after 50"));
    assert_non_null(strstr(err.text, "is recovering: 8 of 346 MB"));
    assert_in_range(told(&b, opens, &err), 49800, 50201);
    assert_in_range(told(&b, comes_nearer_for_ever, &err), 100000, 100001);
    assert_in_range(told(&b, waits_for_a_worker, &err), 100000, 100001);
    assert_non_null(strstr(err.text, "ahead of one that is missing"));
    atomic_store(&b.stop, 15);
    struct dp_patience patience = dp_patience_begin(&b.job);
    enum dp_status st = DP_OK;
    do {
        b.now_ns += 200 * MS;
        st = dp_fail(&err, DP_TIMEOUT,
                     "AGAIN: push 70000 of stream 80 is over 65536 ahead of one that is missing");
    } while (dp_patience_more(&patience, &st, &err));
    assert_int_equal(st, DP_STOPPING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_borne_as_long_as_told),
        cmocka_unit_test(answers_end_it),
        cmocka_unit_test(a_server_that_comes_nearer_is_no_silence),
        cmocka_unit_test(a_signal_leaves_a_few_seconds),
        cmocka_unit_test(a_suspended_process_waits_as_if_it_had_not_been),
    };
    return cmocka_run_group_tests_name("patience", tests, NULL, NULL);
}

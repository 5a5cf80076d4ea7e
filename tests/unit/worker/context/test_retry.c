/* Goal    a worker waits for servers as long as it was told, in slices, and ends when a signal came. */
#include "tests/lib/test.h"
#include "worker/context/retry.h"

#include <stdio.h>
#include <string.h>

#define MS      UINT64_C(1000000)
#define HOUR_MS 3600000u

struct bench {
    uint64_t now_ns;
    uint32_t looks, asleep_at; /* an hour passes before this look at the clock; 0: never */
    atomic_int stop;
    struct dp_cluster cluster;
    struct dp_job job;
};

static uint64_t now_of(void *self)
{
    struct bench *b = self;
    b->now_ns += ++b->looks == b->asleep_at ? HOUR_MS * MS : 0;
    return b->now_ns;
}

static void begin(struct bench *b, uint32_t timeout_ms)
{
    *b = (struct bench){.now_ns = 5000 * MS, .cluster.training.timeout_ms = timeout_ms};
    b->job = (struct dp_job){.cluster = &b->cluster, .stop = &b->stop, .clock = {now_of, b}};
}

/* Tries that take their whole slice and give `why`; how long it went on, in ms. */
static uint64_t tried_for(struct bench *b, enum dp_status why, uint32_t slice_ms, struct dp_error *err,
                          enum dp_status *st)
{
    struct dp_retry retry = dp_retry_begin(&b->job);
    uint64_t begun = b->now_ns;
    do {
        uint32_t ms = dp_retry_slice_ms(&retry, slice_ms);
        assert_in_range(ms, 1, slice_ms);
        b->now_ns += ms * MS;
        *st = why == DP_OK ? DP_OK : dp_fail(err, why, "shard 1 is gone");
    } while (dp_retry_more(&retry, st, err));
    return (b->now_ns - begun) / MS;
}

static void silence_is_borne_as_long_as_told(void **state)
{
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    begin(&b, 65000);
    assert_in_range(tried_for(&b, DP_TIMEOUT, 200, &err, &st), 65000, 65001);
    assert_int_equal(st, DP_TIMEOUT);
    assert_string_equal(err.text, "gave up after 65000 ms; last error: shard 1 is gone");
    begin(&b, 1000);
    assert_in_range(tried_for(&b, DP_UNAVAILABLE, 10000, &err, &st), 1000, 1001);
    assert_int_equal(st, DP_UNAVAILABLE);
}

static void answers_end_it(void **state)
{
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    begin(&b, 65000);
    assert_in_range(tried_for(&b, DP_OK, 200, &err, &st), 200, 200);
    assert_int_equal(st, DP_OK);
    assert_in_range(tried_for(&b, DP_GENERATION, 200, &err, &st), 200, 200);
    assert_int_equal(st, DP_GENERATION);
    assert_string_equal(err.text, "shard 1 is gone");
}

static void a_signal_leaves_a_few_seconds(void **state)
{
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    begin(&b, 65000);
    atomic_store(&b.stop, 15);
    assert_in_range(tried_for(&b, DP_TIMEOUT, 200, &err, &st), 5000, 5400);
    assert_int_equal(st, DP_STOPPING);
    assert_non_null(strstr(err.text, "stopped by a signal"));
}

/* Method  suspended before each look at the clock in turn.
 * Planted the hour counts where it begins between two slices. */
static void a_suspended_process_waits_as_if_it_had_not_been(void **state)
{
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    for (uint32_t at = 1; b.looks + 1 >= at; at++) {
        begin(&b, 10000);
        b.asleep_at = at;
        assert_in_range(tried_for(&b, DP_TIMEOUT, 200, &err, &st) % HOUR_MS, 9750, 10001);
        assert_non_null(strstr(err.text, "last error: shard 1 is gone"));
    }
    assert_true(b.looks >= 100);
}

/* Planted: a late look does not count at all. */
static void a_late_process_gives_up_too(void **state)
{
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st = DP_TIMEOUT;
    begin(&b, 10000);
    struct dp_retry retry = dp_retry_begin(&b.job);
    uint64_t begun = b.now_ns;
    do
        b.now_ns += (dp_retry_slice_ms(&retry, 200) + 3000) * MS;
    while (dp_retry_more(&retry, &st, &err));
    assert_in_range((b.now_ns - begun) / MS, 10000, 3200 * 10000 / 200 + 3200);
}

/* What servers say at each try; how long that goes on, in ms. */
static uint64_t told(struct bench *b, struct dp_wait (*say)(uint64_t ms), struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(&b->job);
    uint64_t begun = b->now_ns;
    enum dp_status st;
    do {
        b->now_ns += dp_retry_slice_ms(&retry, 200) * MS;
        /* The words mean nothing. */
        st = dp_fail_wait(
            err, DP_TIMEOUT, say((b->now_ns - begun) / MS),
            "AGAIN: shard 1 is recovering: %u, is opening its store, ahead of a push that has not arrived",
            (unsigned)(b->now_ns / MS));
    } while (dp_retry_more(&retry, &st, err));
    assert_int_equal(st, DP_TIMEOUT);
    return (b->now_ns - begun) / MS;
}

static enum dp_wait_reason reason;

static struct dp_wait stands(uint64_t ms)
{
    return (struct dp_wait){.reason = reason, .subject = 2, .done = 8, .total = 346};
}

static struct dp_wait moves(uint64_t ms)
{
    return (struct dp_wait){.reason = reason, .subject = 2, .done = ms < 40000 ? ms / 5000 : 8, .total = 346};
}

static struct dp_wait moves_for_ever(uint64_t ms)
{
    return (struct dp_wait){.reason = reason, .done = 8, .total = ms / 1000};
}

static struct dp_wait ends(uint64_t ms)
{
    return (struct dp_wait){.reason = ms < 40000 ? reason : DP_WAIT_QUEUE};
}

/* Goal    what shows that a server lives is decided by the reason to wait alone, of every reason but a rule's.
 * Planted the words count; the same place counts as moved; no upper bound; nothing is heard at all. */
static void each_reason_is_borne_as_its_sign_says(void **state)
{
    static struct bench b;
    struct dp_error err = {0};
    begin(&b, 10000);
    for (uint32_t number = 0; number < 64; number++) {
        if (number == DP_WAIT_STEP)
            continue;
        reason = dp_wait_from_number(number);
        enum dp_wait_sign sign = dp_wait_sign(reason);
        bool always = reason == DP_WAIT_GAP || reason == DP_WAIT_OPENING;
        bool by_moving = reason == DP_WAIT_RECOVERING;
        assert_int_equal(sign, always ? DP_SIGN_ALWAYS : by_moving ? DP_SIGN_MOVES : DP_SIGN_NEVER);
        uint64_t standing = told(&b, stands, &err), moving = told(&b, moves, &err),
                 without_end = told(&b, moves_for_ever, &err), ended = told(&b, ends, &err);
        assert_in_range(standing, always ? 100000 : 10000, always ? 100001 : by_moving ? 10201 : 10001);
        assert_in_range(moving,
                        always      ? 100000
                        : by_moving ? 50000
                                    : 10000,
                        always      ? 100001
                        : by_moving ? 50401
                                    : 10001);
        assert_in_range(without_end, always || by_moving ? 100000 : 10000,
                        always || by_moving ? 100001 : 10001);
        assert_in_range(ended, always ? 49800 : 10000, always ? 50201 : by_moving ? 10201 : 10001);
    }
}

/* What a shard says that holds a pull for another worker, for two hours; then it is silent, or there is a signal. */
static uint64_t held_for(struct bench *b, bool silent_then, enum dp_status *st)
{
    struct dp_retry retry = dp_retry_begin(&b->job);
    struct dp_error err = {0};
    uint64_t begun = b->now_ns, ms = 0;
    do {
        b->now_ns += dp_retry_slice_ms(&retry, 200) * MS;
        ms = (b->now_ns - begun) / MS;
        bool held = ms < 2 * HOUR_MS || !silent_then;
        const struct dp_wait wait = {.reason = held ? DP_WAIT_STEP : DP_WAIT_NONE, .subject = 2, .done = 5};
        atomic_store(&b->stop, !silent_then && ms >= 2 * HOUR_MS ? 15 : 0);
        *st = dp_fail_wait(&err, DP_TIMEOUT, wait, "step 7 waits for worker 2");
    } while (dp_retry_more(&retry, st, &err));
    assert_non_null(strstr(err.text, "step 7 waits for worker 2"));
    return ms - 2 * HOUR_MS;
}

/* Planted: a limit of DP_RETRY_MOST timeouts from the begin; five seconds more after a signal. */
static void a_rule_is_waited_for_without_a_limit(void **state)
{
    static struct bench b;
    enum dp_status st;
    begin(&b, 10000);
    assert_in_range(held_for(&b, true, &st), 9600, 10400);
    assert_int_equal(st, DP_TIMEOUT);
    begin(&b, 10000);
    assert_in_range(held_for(&b, false, &st), 0, 200);
    assert_int_equal(st, DP_STOPPING);
}

static void a_signal_ends_what_shows_life(void **state)
{
    static struct bench b;
    struct dp_error err = {0};
    enum dp_status st;
    begin(&b, 10000);
    atomic_store(&b.stop, 15);
    struct dp_retry retry = dp_retry_begin(&b.job);
    do {
        b.now_ns += 200 * MS;
        st = dp_fail_wait(&err, DP_TIMEOUT, (struct dp_wait){.reason = DP_WAIT_GAP}, "not yet");
    } while (dp_retry_more(&retry, &st, &err));
    assert_int_equal(st, DP_STOPPING);
}

/* ---- values of the register (shared.h) */

static enum dp_status set(struct dp_client *self, const char *name, uint64_t expected, const void *bytes,
                          size_t size, uint32_t timeout_ms, bool *won, struct dp_error *err)
{
    *won = true;
    return dp_fail(err, *(enum dp_status *)self, "register value '%s'", name);
}

static enum dp_status get(struct dp_client *self, const char *name, uint64_t above, uint32_t wait_ms,
                          uint32_t timeout_ms, struct dp_register_value *out, struct dp_error *err)
{
    return dp_fail(err, *(enum dp_status *)self, "register value '%s'", name);
}

/* Who reads of a run that is forgotten is told so. */
static void who_is_far_behind_has_lost(void **state)
{
    static const struct dp_shared_ops ops = {.set = set, .get = get};
    static struct bench b;
    enum dp_status answer = DP_TOO_OLD;
    begin(&b, 1000);
    b.cluster.training.run = 12;
    b.job.shared = &ops;
    b.job.client = (struct dp_client *)&answer;
    struct dp_register_value value = {0};
    struct dp_error err = {0};
    bool won = true;
    assert_int_equal(dp_shared_set(&b.job, "plan", 3, "x", 1, &won, &err), DP_OK);
    assert_false(won);
    assert_int_equal(err.status, DP_OK);
    assert_int_equal(dp_shared_get(&b.job, "plan", 0, 0, &value, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "dropped the decisions of run 12"));
    answer = DP_IO;
    assert_int_equal(dp_shared_set(&b.job, "plan", 3, "x", 1, &won, &err), DP_IO);
    assert_false(won);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_borne_as_long_as_told),
        cmocka_unit_test(answers_end_it),
        cmocka_unit_test(each_reason_is_borne_as_its_sign_says),
        cmocka_unit_test(a_rule_is_waited_for_without_a_limit),
        cmocka_unit_test(a_signal_ends_what_shows_life),
        cmocka_unit_test(a_signal_leaves_a_few_seconds),
        cmocka_unit_test(a_suspended_process_waits_as_if_it_had_not_been),
        cmocka_unit_test(a_late_process_gives_up_too),
        cmocka_unit_test(who_is_far_behind_has_lost),
    };
    return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}

/* Goal    a minibatch that the reader is slow with is waited for as long as was told, others see that this worker lives, a signal
 *         ends the wait, and what may help is said.
 * Method  a reader that takes its whole slice each time, under a clock that it moves. */
#include "tests/lib/test.h"
#include "worker/context/job.h"
#include "worker/read/reader.h"

#include <string.h>

#define MS UINT64_C(1000000)

enum dp_status __wrap_dp_reader_next(struct dp_reader *reader, uint32_t timeout_ms, struct dp_batch **out);

static struct {
    uint64_t now_ns;
    atomic_int stop;
    struct dp_cluster cluster;
    struct dp_job job;
    struct dp_batch batch;
    unsigned asked, ticks, there_at, signal_at, asleep_at; /* the try with this number, from 1; 0: none */
    bool end;
} w;

static uint64_t now_of(void *self)
{
    return w.now_ns;
}

enum dp_status __wrap_dp_reader_next(struct dp_reader *reader, uint32_t timeout_ms, struct dp_batch **out)
{
    w.asked++;
    *out = NULL;
    if (w.end)
        return DP_OK;
    if (w.asked == w.there_at) {
        *out = &w.batch;
        return DP_OK;
    }
    w.now_ns += (timeout_ms + (w.asked == w.asleep_at ? 3600000u : 0)) * MS;
    if (w.asked == w.signal_at)
        atomic_store(&w.stop, 15);
    return DP_TIMEOUT;
}

static void tick(void *ticks)
{
    ++*(unsigned *)ticks;
}

static unsigned asleep_at;

static enum dp_status next(unsigned there_at, unsigned signal_at, bool end, struct dp_error *err)
{
    struct dp_batch *batch;
    memset(&w, 0, sizeof w);
    w.cluster.training.timeout_ms = 1000;
    w.job = (struct dp_job){
        .cluster = &w.cluster, .stop = &w.stop, .clock = {now_of, NULL}, .alive = tick, .alive_of = &w.ticks};
    w.there_at = there_at;
    w.signal_at = signal_at;
    w.asleep_at = asleep_at;
    w.end = end;
    *err = (struct dp_error){0};
    return dp_job_next_batch(&w.job, NULL, &batch, err);
}

static void what_is_there_is_had_at_once(void **state)
{
    struct dp_error err;
    assert_int_equal(next(1, 0, false, &err), DP_OK);
    assert_int_equal(w.now_ns, 0);
    assert_int_equal(w.ticks, 0);
    assert_int_equal(next(4, 0, false, &err), DP_OK);
    assert_int_equal(w.ticks, 3);
}

static void a_slow_reader_is_told_with_its_remedy(void **state)
{
    static const char *const words[] = {"within 1000 ms", "the disk is too slow", "memory too small",
                                        "data.cache", "--timeout"};
    struct dp_error err;
    assert_int_equal(next(0, 0, false, &err), DP_IO);
    assert_in_range(w.now_ns / MS, 1000, 1001);
    assert_true(w.ticks >= 4);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_non_null(strstr(err.text, words[i]));
    assert_int_equal(next(0, 0, true, &err), DP_INTERNAL);
}

static void a_signal_ends_the_wait(void **state)
{
    struct dp_error err;
    for (unsigned at = 1; at <= 4; at++) {
        assert_int_equal(next(0, at, false, &err), DP_STOPPING);
        assert_int_equal(w.asked, at);
        assert_non_null(strstr(err.text, "stopped by a signal"));
    }
}

static void a_suspended_process_blames_nobody(void **state)
{
    struct dp_error err;
    asleep_at = 4;
    assert_int_equal(next(6, 0, false, &err), DP_OK);
    assert_int_equal(next(0, 0, false, &err), DP_IO);
    assert_in_range(w.now_ns / MS, 3601000, 3601001);
    asleep_at = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_had_at_once),
        cmocka_unit_test(a_slow_reader_is_told_with_its_remedy),
        cmocka_unit_test(a_signal_ends_the_wait),
        cmocka_unit_test(a_suspended_process_blames_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

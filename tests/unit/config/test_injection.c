/* Goal    what is injected is what was written, for each worker, and is told in words. */
#include "tests/lib/test.h"

#include "common/config/injection.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

static struct dp_cluster_training of(const char *pace, enum dp_cluster_jitter jitter, const char *straggler)
{
    struct dp_cluster_training t = {.workers = 4, .jitter = jitter};
    (void)snprintf(t.pace, sizeof t.pace, "%s", pace);
    (void)snprintf(t.straggler, sizeof t.straggler, "%s", straggler);
    assert_int_equal(dp_injection_check(&t, NULL, NULL), DP_OK);
    return t;
}

static void is(const struct dp_cluster_training *t, uint32_t worker, uint64_t pace_ns, double times,
               uint64_t longer_ns)
{
    const struct dp_injection got = dp_injection_of(t, worker);
    assert_true(got.pace_ns == pace_ns && got.times == times && got.longer_ns == longer_ns);
    assert_int_equal(got.jitter, t->jitter);
}

static void says(const struct dp_cluster_training *t, const char *text)
{
    char out[DP_INJECTION_TEXT_BYTES];
    assert_string_equal(dp_injection_text(t, out), text);
}

/* Planted: the first item of the list is everybody's; the last one wins. */
static void each_worker_has_its_own(void **state)
{
    struct dp_cluster_training t = of("20ms", DP_JITTER_EXP, "3:10x,1:50ms,0:1.5x");
    is(&t, 0, 20 * MS, 1.5, 0);
    is(&t, 1, 20 * MS, 1, 50 * MS);
    is(&t, 2, 20 * MS, 1, 0);
    is(&t, 3, 20 * MS, 10, 0);
    says(&t, "minibatches take times drawn from the exponential distribution of mean 20 ms, or more; worker "
             "3's take 10 "
             "times as long; worker 1's take 50 ms longer; worker 0's take 1.5 times as long");
}

static void none_is_none(void **state)
{
    static const char *const paces[] = {"", "0", "0ms", "none"}, *const stragglers[] = {"", "none"};
    for (size_t p = 0; p < 4; p++)
        for (size_t s = 0; s < 2; s++) {
            struct dp_cluster_training t = of(paces[p], DP_JITTER_NONE, stragglers[s]);
            is(&t, 0, 0, 1, 0);
            says(&t, "");
        }
    struct dp_cluster_training t = of("", DP_JITTER_NONE, "2:1.5s");
    is(&t, 2, 0, 1, 1500 * MS);
    says(&t, "worker 2's minibatches take 1.5 s longer");
    t = of("250us", DP_JITTER_NONE, "");
    is(&t, 3, 250000, 1, 0);
    says(&t, "minibatches take 0.25 ms or more");
    t = of("1s", DP_JITTER_UNIFORM, "");
    says(&t, "minibatches take times drawn from the uniform distribution of mean 1 s, or more");
}

/* As long a list as there can be is told as far as there is room. */
static void a_long_list_is_cut(void **state)
{
    struct dp_cluster_training t = {.workers = 4096};
    char out[DP_INJECTION_TEXT_BYTES];
    size_t at = 0;
    for (unsigned w = 0; at + 8 < sizeof t.straggler; w++)
        at += (size_t)snprintf(t.straggler + at, sizeof t.straggler - at, "%s%u:9x", w ? "," : "", w);
    assert_int_equal(dp_injection_check(&t, NULL, NULL), DP_OK);
    assert_true(strlen(dp_injection_text(&t, out)) == sizeof out - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_worker_has_its_own),
        cmocka_unit_test(none_is_none),
        cmocka_unit_test(a_long_list_is_cut),
    };
    return cmocka_run_group_tests_name("injection", tests, NULL, NULL);
}

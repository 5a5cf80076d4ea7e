/* Goal    who falls far behind in a compare-and-set has lost, and reads what stands; who reads of a run that is forgotten is told so. */
#include "tests/lib/test.h"
#include "worker/context/job.h"

#include <string.h>

static enum dp_status set(struct dp_client *self, const char *name, uint64_t expected, const void *bytes,
                          size_t size, uint32_t timeout_ms, bool *won, struct dp_error *err)
{
    (void)name, (void)expected, (void)bytes, (void)size, (void)timeout_ms;
    *won = true;
    return dp_fail(err, *(enum dp_status *)self, "register value '%s'", name);
}

static enum dp_status get(struct dp_client *self, const char *name, uint64_t above, uint32_t wait_ms,
                          uint32_t timeout_ms, struct dp_register_value *out, struct dp_error *err)
{
    (void)above, (void)wait_ms, (void)timeout_ms, (void)out;
    return dp_fail(err, *(enum dp_status *)self, "register value '%s'", name);
}

static uint64_t now_of(void *self)
{
    (void)self;
    return 1;
}

static void who_is_far_behind_has_lost(void **state)
{
    (void)state;
    static const struct dp_shared_ops ops = {.set = set, .get = get};
    static struct dp_cluster cluster = {.training = {.run = 12, .timeout_ms = 1000}};
    static atomic_int stop;
    enum dp_status answer = DP_TOO_OLD;
    struct dp_job job = {.cluster = &cluster,
                         .stop = &stop,
                         .clock = {now_of, NULL},
                         .shared = &ops,
                         .client = (struct dp_client *)&answer};
    struct dp_register_value value = {0};
    struct dp_error err = {0};
    bool won = true;
    assert_int_equal(dp_shared_set(&job, "plan", 3, "x", 1, &won, &err), DP_OK);
    assert_false(won);
    assert_int_equal(err.status, DP_OK);
    assert_int_equal(dp_shared_get(&job, "plan", 0, 0, &value, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "dropped the decisions of run 12"));
    answer = DP_IO;
    assert_int_equal(dp_shared_set(&job, "plan", 3, "x", 1, &won, &err), DP_IO);
    assert_false(won);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_is_far_behind_has_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

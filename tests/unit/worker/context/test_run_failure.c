/* Goal    a worker that would fail again ends the run for all, where the servers end with it and the others
 *         cannot go on without it; others that would try again end for that.
 * Method  the register's value is in this file. */
#include "tests/lib/test.h"
#include "worker/context/run_failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kept {
    char text[512]; /* "": the value was never set */
    uint64_t version;
} kept;

static enum dp_status get(struct dp_client *self, const char *name, uint64_t above, uint32_t wait_ms,
                          uint32_t timeout_ms, struct dp_register_value *out, struct dp_error *err)
{
    assert_string_equal(name, "failed");
    *out = (struct dp_register_value){.version = kept.version, .size = strlen(kept.text)};
    out->bytes = kept.text[0] ? strdup(kept.text) : NULL;
    return DP_OK;
}

static enum dp_status set(struct dp_client *self, const char *name, uint64_t expected, const void *bytes,
                          size_t size, uint32_t timeout_ms, bool *won, struct dp_error *err)
{
    assert_int_equal(expected, kept.version++);
    assert_true(size < sizeof kept.text);
    memcpy(kept.text, bytes, size);
    kept.text[size] = '\0';
    *won = true;
    return DP_OK;
}

static const struct dp_shared_ops ops = {.get = get, .set = set};
static struct dp_cluster cluster;
static atomic_int stop;

static struct dp_job begin(const char *text, uint32_t worker)
{
    cluster = (struct dp_cluster){.training = {.run = 3, .workers = 2}};
    atomic_store(&stop, 0);
    kept = (struct kept){.version = 5};
    (void)snprintf(kept.text, sizeof kept.text, "%s", text);
    return (struct dp_job){.cluster = &cluster, .worker = worker, .stop = &stop, .shared = &ops};
}

/* Ends for `why`; whether it put its failure. */
static bool is_put(struct dp_job *job, enum dp_status why, bool has_place)
{
    struct dp_error err = {.status = why, .text = "t.csv:7: no \"number\""};
    assert_int_equal(dp_run_failure_settle(job, why, has_place, &err), why);
    return kept.version == 6;
}

static void it_is_put_and_seen(void **state)
{
    struct dp_job job = begin("{}", 1), other = job;
    struct dp_error err = {0};
    (void)state;
    assert_int_equal(dp_run_failure_check(&job, &err), DP_OK);
    assert_true(is_put(&job, DP_DATA, true));
    other.worker = 0;
    assert_int_equal(dp_run_failure_check(&other, &err), DP_DATA);
    assert_string_equal(err.text, "worker 1 ended run 3 for all: t.csv:7: no \"number\"");
    err = (struct dp_error){.status = DP_TIMEOUT};
    assert_int_equal(dp_run_failure_settle(&other, DP_TIMEOUT, false, &err), DP_DATA);
    /* The first one stays. A signal's end is its own. A next run is another one. */
    assert_int_equal(dp_run_failure_settle(&other, DP_NOMEM, true, &err), DP_NOMEM);
    assert_int_equal(kept.version, 6);
    atomic_store(&stop, 15);
    assert_int_equal(dp_run_failure_settle(&other, DP_STOPPING, true, &err), DP_STOPPING);
    cluster.training.run = 4;
    assert_int_equal(dp_run_failure_check(&other, &err), DP_OK);
}

static void it_is_not_put(void **state)
{
    static const char *const not_by_these[] = {"", "null", "{\"run\":3,\"worker\":0,\"why\":\"x\"}", "[1",
                                               "7"};
    static const enum dp_status not_for[] = {DP_TIMEOUT, DP_UNAVAILABLE, DP_REPLACED, DP_GENERATION};
    struct dp_job job;
    (void)state;
    for (size_t i = 0; i < sizeof not_by_these / sizeof not_by_these[0]; i++) {
        job = begin(not_by_these[i], 1);
        assert_false(is_put(&job, DP_DATA, true));
    }
    for (size_t i = 0; i < sizeof not_for / sizeof not_for[0]; i++) {
        job = begin("{}", 1);
        assert_false(is_put(&job, not_for[i], true));
    }
    job = begin("{}", 1);
    assert_false(is_put(&job, DP_DATA, false));
    for (uint32_t worker = 0; worker < 2; worker++) {
        job = begin("{}", worker);
        cluster.training.worker_timeout = 5;
        assert_true(is_put(&job, DP_DATA, true) == (worker == 0));
        job = begin("{}", worker);
        cluster.training.work = DP_CLUSTER_LEASED;
        assert_true(is_put(&job, DP_DATA, true) == (worker == 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_put_and_seen),
        cmocka_unit_test(it_is_not_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

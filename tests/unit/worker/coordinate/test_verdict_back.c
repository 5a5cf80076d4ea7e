/* Verdict back: an epoch barrier that reads an earlier decision than before, or none of an epoch that is over,
 * ends by name. */
#include "tests/lib/test.h"

#include "worker/coordinate/epoch_barrier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct first_server {
    uint32_t reads, epoch[2]; /* of the first and the second reading */
    uint64_t version[2];
};

static enum dp_status get(struct dp_client *self, const char *name, uint64_t above, uint32_t wait_ms,
                          uint32_t timeout_ms, struct dp_register_value *out, struct dp_error *err)
{
    struct first_server *server = (struct first_server *)self;
    uint32_t read = server->reads++ > 0;
    char text[256];
    assert_string_equal(name, "run/3/verdict");
    int n = snprintf(text, sizeof text,
                     "{\"resting\":%u,\"decider\":0,\"epoch\":%u,\"why\":0,\"best_epoch\":1,\"kept\":0,"
                     "\"from\":1,\"figures\":[]}",
                     (unsigned)server->epoch[read], (unsigned)server->epoch[read]);
    *out = (struct dp_register_value){
        .version = server->version[read], .bytes = strdup(text), .size = (size_t)n};
    assert_non_null(out->bytes);
    return DP_OK;
}

/* Another was faster. */
static enum dp_status set(struct dp_client *self, const char *name, uint64_t expected, const void *bytes,
                          size_t size, uint32_t timeout_ms, bool *won, struct dp_error *err)
{
    *won = false;
    return DP_OK;
}

/* begun: epochs that the worker began, of which the second reading should know all but the last. */
static void read_twice(struct first_server *server, uint32_t begun, const char *says)
{
    static const struct dp_shared_ops ops = {.get = get, .set = set};
    struct dp_cluster cluster = {.training = {.run = 3, .workers = 1, .epochs = 8, .timeout_ms = 1000}};
    atomic_int never = 0;
    struct dp_job job = {.cluster = &cluster,
                         .stop = &never,
                         .clock = dp_clock_real(),
                         .shared = &ops,
                         .client = (struct dp_client *)server};
    struct dp_peers peers = {.job = &job};
    struct dp_epoch_barrier barrier = {.peers = &peers};
    struct dp_error err = {0};
    assert_int_equal(dp_epoch_barrier_open(&barrier, 8, 0, 0, &err), DP_OK);
    dp_decision_clear(&barrier.decision);
    assert_int_equal(dp_epoch_barrier_open(&barrier, 8, 0, begun, &err), DP_DATA);
    assert_non_null(strstr(err.text, says));
    dp_epoch_barrier_close(&barrier);
}

static void a_decision_that_goes_back_ends_the_run(void **state)
{
    struct first_server epoch_back = {.epoch = {3, 2}, .version = {7, 8}},
                        version_back = {.epoch = {3, 3}, .version = {7, 6}};
    read_twice(&epoch_back, 0, "went back from epoch 3 to 2");
    read_twice(&version_back, 0, "has lost the decisions of run 3");
    struct first_server earlier = {.epoch = {2, 2}, .version = {7, 7}};
    read_twice(&earlier, 4, "does not know what was decided after epoch 3 of run 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_decision_that_goes_back_ends_the_run)};
    return cmocka_run_group_tests_name("verdict_back", tests, NULL, NULL);
}

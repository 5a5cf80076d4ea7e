/* Workers that are gone for good (training.worker_timeout), as real processes: the others let them leave, and finish. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Of 90 minibatches, 30 each. */
#define WORKERS 3u
#define MINE    30u
#define EPOCHS  30u

struct cast {
    const char *conf;
    struct dp_process *server[2], *worker[WORKERS];
};

static struct cast start(struct dp_place *place, const char *file, const char *training, const char *test)
{
    struct dp_place_cluster cluster = {
        .file = file, .servers = 2, .workers = WORKERS, .epochs = EPOCHS, .training = training, .test = test};
    struct cast cast = {.conf = dp_place_conf(place, &cluster)};
    for (uint32_t i = 0; i < 2; i++)
        cast.server[i] = dp_place_server(place, cast.conf, i);
    for (uint32_t w = 0; w < WORKERS; w++)
        cast.worker[w] = dp_place_worker(place, cast.conf, w);
    return cast;
}

static double number(struct dp_place *place, const char *file, const char *where)
{
    return dp_place_number(place, dp_place_path(place, "%s.json", file), where);
}

static void closes(struct cast *cast)
{
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(cast->server[i]);
}

/* What the report says of a worker that left adds up with where it was. */
static void is_told(struct dp_place *place, const char *file, uint32_t worker)
{
    double step = number(place, file, dp_place_text(place, "workers.%u.left.step", worker));
    double undone = number(place, file, dp_place_text(place, "workers.%u.left.minibatches", worker));
    assert_true(step > MINE && undone > 0);
    assert_true(step + undone == EPOCHS * MINE);
}

static void the_others_finish(struct dp_place *place, const char *file, const char *training)
{
    struct cast cast = start(place, file, training, NULL);
    dp_place_awaits(cast.worker[0], "epoch 2 of");
    dp_process_signal(cast.worker[2], SIGKILL);
    for (uint32_t w = 0; w < 2; w++)
        dp_place_ended(cast.worker[w], 0);
    dp_place_says(cast.worker[0], "worker 2 has been silent for");
    dp_place_says(cast.worker[0], "worker 2 has left before step");
    is_told(place, file, 2);
    assert_true(number(place, file, "final.test.accuracy") > 0.8);
    closes(&cast);
}

static void in_sync(void **state)
{
    the_others_finish(*state, "sync", "consistency = \"sync\"; worker_timeout = 2;");
}

static void in_ssp(void **state)
{
    the_others_finish(*state, "ssp", "consistency = \"ssp:2\"; worker_timeout = 2;");
}

int main(void)
{
#define DP_LEAVES_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_LEAVES_TEST(in_sync),
        DP_LEAVES_TEST(in_ssp),
    };
    return cmocka_run_group_tests_name("leaves", tests, NULL, NULL);
}

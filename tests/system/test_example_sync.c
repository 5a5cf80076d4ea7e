/* Goal    synchronous training by a user's own program (example_sync.c) on real servers ends with the same weights, to the last bit, in
 *         each run: also with servers that are killed, or stopped within a step, and a copy that is killed.
 * Planted ssp in place of sync: the copies' gradients are applied as they come. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { COPIES = 3 };

struct cluster {
    struct dp_place *place;
    const char *conf;
    uint32_t port;
    struct dp_process *server[2];
};

static void start(struct cluster *c, struct dp_place *place, const char *name)
{
    struct dp_place_cluster settings = {.file = name, .servers = 2, .top = "id = 7;"};
    *c = (struct cluster){.place = place, .conf = dp_place_conf(place, &settings), .port = settings.port};
    for (uint32_t i = 0; i < 2; i++)
        c->server[i] = dp_place_server(place, c->conf, i);
}

static struct dp_process *copy(const struct cluster *c, uint32_t rank)
{
    const char *at[4];
    for (uint32_t i = 0; i < 4; i++) /* control 0, shard 0, control 1, shard 1 */
        at[i] = dp_place_text(c->place, "tcp://127.0.0.1:%u", (unsigned)(c->port + i));
    return dp_place_start(c->place, DP_TESTS_BIN "/example_sync",
                          dp_place_text(c->place, "%u", (unsigned)rank),
                          dp_place_text(c->place, "%d", COPIES), "7", "1", at[0], at[1], at[3], NULL);
}

/* All copies print the same; given back, and the servers stop. */
static const char *weights_of(struct cluster *c, struct dp_process *const *copies)
{
    const char *weights = NULL;
    for (uint32_t i = 0; i < COPIES; i++) {
        dp_place_ended(copies[i], 0);
        const char *printed = dp_place_text(c->place, "%s", dp_process_out(copies[i]));
        if (weights && strcmp(weights, printed) != 0)
            fail_msg("copy 0 has the weights %scopy %u %s", weights, (unsigned)i, printed);
        weights = printed;
    }
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(c->server[i]);
    return weights;
}

/* Of a run in which nothing happens; lent. */
static const char *quiet_weights(struct dp_place *place)
{
    static char weights[512];
    struct cluster c;
    struct dp_process *copies[COPIES];
    if (weights[0])
        return weights;
    start(&c, place, "quiet");
    for (uint32_t i = 0; i < COPIES; i++)
        copies[i] = copy(&c, i);
    (void)snprintf(weights, sizeof weights, "%s", weights_of(&c, copies));
    return weights;
}

static void near_the_true_ones(const char *weights)
{
    double w[8];
    assert_int_equal(sscanf(weights, "%la %la %la %la %la %la %la %la", w, w + 1, w + 2, w + 3, w + 4, w + 5,
                            w + 6, w + 7),
                     8);
    for (int i = 0; i < 8; i++) {
        if (w[i] < i + 0.9 || w[i] > i + 1.1)
            fail_msg("weight %d is %f, not %d", i, w[i], i + 1);
    }
}

static void a_server_that_is_killed_changes_no_bit(void **state)
{
    struct dp_place *place = *state;
    const char *quiet = quiet_weights(place);
    struct cluster c;
    struct dp_process *copies[COPIES];
    near_the_true_ones(quiet);
    start(&c, place, "killed");
    for (uint32_t i = 0; i < COPIES; i++)
        copies[i] = copy(&c, i);
    for (uint32_t i = 0; i < 2; i++) {
        dp_place_awaits(copies[2], i == 0 ? "step 200 is pushed" : "step 400 is pushed");
        dp_process_signal(c.server[i], SIGKILL);
        dp_place_ended(c.server[i], -SIGKILL);
        c.server[i] = dp_place_server(place, c.conf, i);
    }
    assert_string_equal(weights_of(&c, copies), quiet);
}

/* Servers that are stopped while a step is open keep its pushes in their journals. */
static void servers_that_stop_within_a_step_change_no_bit(void **state)
{
    struct dp_place *place = *state;
    const char *quiet = quiet_weights(place);
    struct cluster c;
    struct dp_process *copies[COPIES];
    start(&c, place, "stopped");
    for (uint32_t i = 0; i < COPIES; i++)
        copies[i] = copy(&c, i);
    dp_place_awaits(copies[1], "step 300 is pushed");
    dp_process_signal(copies[1], SIGKILL);
    dp_place_ended(copies[1], -SIGKILL);
    dp_place_awaits(copies[0], "waits for worker 1, which has finished");
    for (uint32_t i = 0; i < 2; i++)
        dp_process_signal(c.server[i], SIGTERM);
    for (uint32_t i = 0; i < 2; i++) {
        dp_place_ended(c.server[i], 0);
        dp_place_says(c.server[i], "within a synchronous step");
    }
    for (uint32_t i = 0; i < 2; i++) {
        const char *store = dp_place_path(place, "stopped-%u", (unsigned)i);
        struct dp_process *inspect = dp_place_try(place, 0, "downpour", "inspect", store, "--verify");
        dp_place_says(inspect, "3 in run 1, sync, step");
    }
    for (uint32_t i = 0; i < 2; i++)
        c.server[i] = dp_place_server(place, c.conf, i);
    copies[1] = copy(&c, 1);
    assert_string_equal(weights_of(&c, copies), quiet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_server_that_is_killed_changes_no_bit, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(servers_that_stop_within_a_step_change_no_bit, dp_place_setup,
                                        dp_place_teardown),
    };
    return cmocka_run_group_tests_name("example_sync", tests, NULL, NULL);
}

/* Threads that share the weights of a fetch, with one thread in that path: the same bits as a worker without threads. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

/* The digest of all rows after three epochs of pushes of four minibatches, and each epoch's training loss. */
static const char *rows_of(struct dp_place *place, const char *file, const char *worker, uint32_t threads,
                           double losses[3])
{
    struct dp_place_cluster cluster = {
        .file = file,
        .epochs = 3,
        .training = dp_place_text(place,
                                  "overlap = false; pushes_max = 1; fetch_every = 4; push_every = 4; "
                                  "warmup_steps = 100; decay = \"linear\"; threads = %u;",
                                  (unsigned)threads)};
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0);
    struct dp_process *trains = dp_place_start(place, worker, "--cluster", conf, "--worker", "0", NULL);
    dp_place_ended(trains, 0);
    if (threads > 1)
        dp_place_says(trains, "threads");
    dp_place_stops_cleanly(server);
    for (uint32_t e = 0; e < 3; e++)
        losses[e] = dp_place_number(place, dp_place_path(place, "%s.json", file),
                                    dp_place_text(place, "epochs.%u.train_loss", (unsigned)e));
    return dp_place_digest(place, dp_place_path(place, "%s-0", file), NULL);
}

/* Threads share the weights of a fetch: local steps at each minibatch's rate, one push, the losses of all. With one thread in that path the
 * order is fixed, and all is that of a worker without threads: 89 minibatches of 16 and one of 13 are 22 pushes of four and one of two.
 * Planted: the loss of the first minibatch of a push, of the last one; all but the first at rate 0, at the first one's rate, at the push's;
 * a push at the first one's rate. */
static void one_thread_is_none(void **state)
{
    struct dp_place *place = *state;
    double plain[3], lane[3];
    const char *rows = rows_of(place, "plain", "downpour-worker", 1, plain);
    assert_string_equal(rows_of(place, "lane", DP_TESTS_BIN "/lane_worker", 2, lane), rows);
    for (int e = 0; e < 3; e++)
        assert_true(lane[e] == plain[e]);
    assert_true(plain[2] < plain[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_thread_is_none, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("same bits", tests, NULL, NULL);
}

/* Goal    injected delays are a function of seed, epoch and number of the minibatch, with the distribution that was asked for; the wait ends
 *         when the minibatch has taken its time, and at a signal.
 * Method  100,000 draws; a clock that sleeping moves. */
#include "tests/lib/test.h"
#include "worker/loop/delays.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS    UINT64_C(1000000)
#define DRAWS 100000u

static struct {
    uint64_t now_ns, slept_ns, stop_at_ns;
    unsigned sleeps, alive;
    atomic_int stop;
} world;

static uint64_t now_of(void *self)
{
    return world.now_ns;
}

static void sleep_of(uint64_t ns)
{
    assert_true(ns > 0);
    world.now_ns += ns;
    world.slept_ns += ns;
    world.sleeps++;
    if (world.stop_at_ns && world.now_ns >= world.stop_at_ns)
        atomic_store(&world.stop, 1);
}

void __wrap_dp_client_progress(struct dp_client *client);
void __wrap_dp_client_progress(struct dp_client *client)
{
    world.alive++;
}

static struct dp_delays delays_of(struct dp_job *job, struct dp_cluster *cluster, uint32_t worker)
{
    memset(&world, 0, sizeof world);
    *job = (struct dp_job){.cluster = cluster,
                           .worker = worker,
                           .stop = &world.stop,
                           .clock = {now_of, NULL},
                           .client = (struct dp_client *)&world};
    struct dp_delays delays = dp_delays_of(job);
    delays.sleep = sleep_of;
    return delays;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest distance of the draws' distribution from the one that it is to be (Kolmogorov and Smirnov). */
static double distance(enum dp_cluster_jitter jitter, uint64_t epoch, double *mean)
{
    double *d = malloc(DRAWS * sizeof *d), most = 0;
    assert_non_null(d);
    *mean = 0;
    for (uint64_t n = 0; n < DRAWS; n++) {
        d[n] = dp_injection_draw(jitter, 1, epoch, n);
        *mean += d[n] / DRAWS;
    }
    qsort(d, DRAWS, sizeof *d, ascending);
    for (uint64_t n = 0; n < DRAWS; n++) {
        double is = jitter == DP_JITTER_EXP ? 1 - exp(-d[n]) : d[n] / 2;
        most = fmax(most, fabs(is - ((double)n + 0.5) / DRAWS));
    }
    free(d);
    return most;
}

/* 1.95 / sqrt(n): exceeded once in 1,000 samples. Planted: u of 32 bits' range; 1 - u twice; a constant. */
static void draws_have_their_distribution(void **state)
{
    static const enum dp_cluster_jitter kinds[] = {DP_JITTER_EXP, DP_JITTER_UNIFORM};
    for (size_t k = 0; k < 2; k++)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            double mean, most = distance(kinds[k], epoch, &mean);
            assert_true(fabs(mean - 1) < 0.01);
            assert_true(most < 1.95 / sqrt(DRAWS));
        }
    assert_true(dp_injection_draw(DP_JITTER_NONE, 5, 6, 7) == 1);
}

/* Neighbours in each of the three, which share two, are drawn anew; and the values stay what they are: a resumed run goes on with them. */
static void draws_are_of_seed_epoch_and_number(void **state)
{
    double sum = 0;
    for (uint64_t n = 0; n < 1000; n++) {
        double d = dp_injection_draw(DP_JITTER_UNIFORM, 1, 0, n) - 1;
        assert_true(d == dp_injection_draw(DP_JITTER_UNIFORM, 1, 0, n) - 1);
        sum += d * (dp_injection_draw(DP_JITTER_UNIFORM, 1, 0, n + 1) - 1) +
               d * (dp_injection_draw(DP_JITTER_UNIFORM, 1, 1, n) - 1) +
               d * (dp_injection_draw(DP_JITTER_UNIFORM, 2, 0, n) - 1);
    }
    assert_true(fabs(sum / 1000) < 0.1); /* of independent ones: standard deviation 0.018 */
    assert_true(fabs(dp_injection_draw(DP_JITTER_UNIFORM, 1, 0, 0) - 1.3870242780204585) < 1e-12);
    assert_true(fabs(dp_injection_draw(DP_JITTER_EXP, 7, 3, 11) - 0.64585014133745089) < 1e-12);
}

/* Whoever computes it: worker and mode are no part of it. Planted: the worker is mixed in. */
static void modes_and_workers_draw_alike(void **state)
{
    static const char *const modes[] = {"async", "ssp:4", "sync", "sync:1"};
    struct dp_cluster cluster = {
        .training = {.workers = 4, .seed = 3, .pace = "20ms", .jitter = DP_JITTER_EXP, .straggler = "2:10x"}};
    for (uint64_t n = 0; n < 100; n++)
        for (size_t m = 0; m < 4; m++)
            for (uint32_t w = 0; w < 4; w++) {
                struct dp_job job;
                (void)snprintf(cluster.training.consistency, sizeof cluster.training.consistency, "%s",
                               modes[m]);
                cluster.training.work = m == 0 && w % 2 ? DP_CLUSTER_LEASED : DP_CLUSTER_FIXED;
                struct dp_delays delays = delays_of(&job, &cluster, w);
                double wanted = 20e6 * dp_injection_draw(DP_JITTER_EXP, 3, 2, n) * (w == 2 ? 10 : 1);
                assert_true(fabs((double)dp_injection_takes_ns(&delays.injection, delays.seed, 2, n, 0) -
                                 wanted) <= 1);
            }
}

static void takes(const char *pace_text, const char *straggler, uint32_t worker, uint64_t computed_ns,
                  uint64_t ns)
{
    struct dp_cluster cluster = {.training = {.workers = 4}};
    struct dp_job job;
    (void)snprintf(cluster.training.pace, sizeof cluster.training.pace, "%s", pace_text);
    (void)snprintf(cluster.training.straggler, sizeof cluster.training.straggler, "%s", straggler);
    struct dp_delays delays = delays_of(&job, &cluster, worker);
    assert_true(dp_injection_takes_ns(&delays.injection, delays.seed, 0, 0, computed_ns) == ns);
}

/* Planted: the factor of the pace alone; the time longer, times the factor. */
static void a_straggler_takes_longer(void **state)
{
    takes("20ms", "3:10x", 0, 3 * MS, 20 * MS);
    takes("20ms", "3:10x", 3, 3 * MS, 200 * MS);
    takes("20ms", "3:10x", 3, 30 * MS, 300 * MS); /* its computing is slower than the pace */
    takes("20ms", "3:50ms", 3, 3 * MS, 70 * MS);
    takes("", "3:10x", 3, 3 * MS, 30 * MS);
    takes("", "3:50ms", 3, 3 * MS, 53 * MS);
    takes("", "3:50ms", 2, 3 * MS, 3 * MS);
}

static bool is_late(void *of)
{
    return world.now_ns >= 500 * MS;
}

/* It begins 7 ms after the computing. Planted: the time of the computing on top of the pace; no look at the stop; none at `ends`. */
static void the_wait_is_what_is_left(void **state)
{
    struct dp_cluster cluster = {.training = {.workers = 2, .pace = "20ms", .straggler = "1:2x"}};
    struct dp_job job;
    struct dp_delays delays = delays_of(&job, &cluster, 1);
    world.now_ns = 107 * MS;
    assert_true(dp_delays_wait(&delays, 0, 0, 100 * MS, true) == 33 * MS);
    assert_true(world.now_ns == 140 * MS && world.alive == world.sleeps && world.sleeps >= 3);
    delays = delays_of(&job, &cluster, 1); /* a thread beside the client's */
    world.now_ns = 107 * MS;
    assert_true(dp_delays_wait(&delays, 0, 0, 100 * MS, false) == 33 * MS);
    assert_true(world.alive == 0);
    delays = delays_of(&job, &cluster, 0); /* its computing took longer */
    world.now_ns = 130 * MS;
    assert_true(dp_delays_wait(&delays, 0, 0, 100 * MS, true) == 0);
    assert_true(world.sleeps == 0);
    cluster.training.straggler[0] = '\0';
    (void)snprintf(cluster.training.pace, sizeof cluster.training.pace, "60s");
    delays = delays_of(&job, &cluster, 1);
    world.stop_at_ns = 1000 * MS;
    assert_true(dp_delays_wait(&delays, 0, 0, 0, true) < 1010 * MS);
    assert_true(atomic_load(&world.stop) == 1);
    delays = delays_of(&job, &cluster, 1); /* nobody takes it any more */
    delays.ends = is_late;
    assert_true(dp_delays_wait(&delays, 0, 0, 0, true) == 500 * MS);
    assert_true(dp_delays_wait(&delays, 0, 0, 0, false) > 50000 * MS); /* another thread asks nobody */
    cluster.training.pace[0] = '\0';
    delays = delays_of(&job, &cluster, 1);
    assert_false(delays.is);
    assert_true(dp_delays_wait(&delays, 0, 0, 0, true) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_have_their_distribution), cmocka_unit_test(draws_are_of_seed_epoch_and_number),
        cmocka_unit_test(modes_and_workers_draw_alike),  cmocka_unit_test(a_straggler_takes_longer),
        cmocka_unit_test(the_wait_is_what_is_left),
    };
    return cmocka_run_group_tests_name("delays", tests, NULL, NULL);
}

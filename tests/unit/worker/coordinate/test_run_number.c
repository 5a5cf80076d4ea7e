/* Goal    All workers that start for a run find one number, each run has a number of its own, and a worker
 *         that is killed comes back to its run, also when the others have finished it.
 * Method  worker/coordinate/run_number.c over a world (world.h): four workers make three runs one after
 *         another, each as soon as it is through with the one before, in any order, and are killed at any step. */
#include "tests/lib/test.h"

#include "common/base/log.h"
#include "tests/unit/worker/coordinate/world.h"
#include "worker/coordinate/run_number.h"
#include "worker/telemetry/progress.h"

#include <stdio.h>
#include <string.h>

#define MS      UINT64_C(1000000)
#define WORKERS 4u
#define RUNS    3u
#define EPOCHS  5u
#define KILLS   6u

struct runs_scene {
    struct dp_cluster cluster;
    atomic_int never;
    uint64_t processes, kills[KILLS];
    uint32_t over[WORKERS];     /* the last run that it may have left */
    uint32_t trained[RUNS + 2]; /* bits, by worker */
    bool done[RUNS + 2];        /* worker 0 has recorded it */
};

/* One run; false: it was killed, or it failed. */
static bool make_run(struct world_seat *seat, struct dp_job *job, struct dp_progress *progress)
{
    struct runs_scene *scene = seat->context;
    struct dp_cluster numbered = scene->cluster;
    struct dp_error err = {0};
    uint32_t w = seat->number, run, over = scene->over[w];
    job->cluster = &scene->cluster;
    enum dp_status st = dp_run_number_find(job, false, &numbered.training, &err);
    if (seat->killed)
        return false;
    run = numbered.training.run;
    /* The others may have begun another since it was killed. */
    if (st != DP_OK || run < over || run == 0 || run > RUNS ||
        (run > over && run > 1 && !scene->done[run - 1]))
        world_fail(seat->world, "worker %u finds run %u after %u: %s", w, run, over, err.text);
    if (numbered.training.first_epoch != (run - 1) * EPOCHS)
        world_fail(seat->world, "run %u begins at epoch %u", run, numbered.training.first_epoch);
    /* As dp_sets_train counts: each run has other data. */
    numbered.training.earlier_examples += job->runs.digest == run ? 0 : job->runs.examples;
    if (numbered.training.earlier_examples != UINT64_C(50) * run * (run - 1))
        world_fail(seat->world, "run %u comes after %u examples", run,
                   (unsigned)numbered.training.earlier_examples);
    job->cluster = &numbered;
    dp_progress_init(progress, job, 0);
    dp_progress_enter(progress, "training");
    if (seat->killed || world_failure(seat->world))
        return false;
    scene->trained[run] |= 1u << w;
    while (w == 0 ? scene->trained[run] != (1u << WORKERS) - 1 : !scene->done[run])
        if (!world_step(seat, 1 + world_random(seat->world, 50)))
            return false;
    if (w == 0) {
        st = dp_run_number_done(job, EPOCHS, run, 100 * run, &err);
        if (st != DP_OK && !seat->killed)
            world_fail(seat->world, "run %u is not recorded: %s", run, err.text);
        if (seat->killed)
            return false;
        scene->done[run] = true;
    }
    scene->over[w] = run;
    dp_progress_enter(progress, "done");
    return !seat->killed;
}

static void process(struct world_seat *seat)
{
    struct runs_scene *scene = seat->context;
    struct dp_progress progress;
    struct dp_job job = {.worker = seat->number,
                         .stop = &scene->never,
                         .clock = world_clock(seat),
                         .shared = world_shared(),
                         .client = (struct dp_client *)seat,
                         .process = ++scene->processes};
    while (scene->over[seat->number] < RUNS && make_run(seat, &job, &progress))
        ;
}

static void strike(void *context, struct world *world, uint64_t step)
{
    const struct runs_scene *scene = context;
    for (size_t k = 0; k < KILLS; k++)
        if (scene->kills[k] == step)
            world_kill(world, (uint32_t)k % WORKERS, 1 + step % 400);
}

static void each_run_has_one_number(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        static struct runs_scene s;
        s = (struct runs_scene){.cluster.training = {.workers = WORKERS, .timeout_ms = 30000}};
        void *contexts[WORKERS] = {&s, &s, &s, &s};
        struct world *world = world_new(seed, WORKERS, process, contexts);
        for (size_t k = 0; k < KILLS; k++)
            s.kills[k] = world_random(world, 150);
        if (!world_run(world, 3600 * 1000 * MS, strike, &s) || world_failure(world))
            fail_msg("seed %llu: %s", (unsigned long long)seed,
                     world_failure(world) ? world_failure(world) : "they wait for ever");
        for (uint32_t w = 0; w < WORKERS; w++)
            assert_int_equal(s.over[w], RUNS);
        world_free(world);
    }
}

static struct runs_scene alone;
static struct dp_cluster_training found;

static void look(struct world_seat *seat)
{
    struct dp_error err = {0};
    struct dp_job job = {.cluster = &alone.cluster,
                         .stop = &alone.never,
                         .clock = world_clock(seat),
                         .shared = world_shared(),
                         .client = (struct dp_client *)seat};
    const char plan[] = "epochs 1\n\0\1\0\0\0\0\0\0\0"; /* one worker; with the last 0 not begun */
    bool won = true;
    for (uint32_t run = 1; run <= alone.over[0] && won; run++) {
        char name[32];
        (void)snprintf(name, sizeof name, "run/%u/plan", run);
        (void)job.shared->set(job.client, name, 0, plan, sizeof plan, 1000, &won, &err);
    }
    found = alone.cluster.training;
    if (dp_run_number_find(&job, false, &found, &err) != DP_OK)
        world_fail(seat->world, "%s", err.text);
}

static uint32_t looks(struct world *world, uint32_t given)
{
    alone.cluster.training.run = given;
    world_start(world, 0, 1);
    bool ended = world_run(world, UINT64_MAX, NULL, NULL);
    if (!ended || world_failure(world))
        fail_msg("given %u: %s", given, world_failure(world) ? world_failure(world) : "waits for ever");
    return found.run;
}

/* A register of an older build has runs that it does not count; a number that a file gives is used. */
static void numbers_that_were_given_are_passed_over(void **state)
{
    void *contexts[] = {NULL};
    (void)state;
    struct world *world = world_new(1, 1, look, contexts);
    world_idle(world, 0);
    alone.cluster.training.timeout_ms = 30000;
    alone.over[0] = 2; /* has them */
    assert_int_equal(looks(world, 0), 3);
    alone.over[0] = 0;
    assert_int_equal(looks(world, 7), 7);
    assert_int_equal(looks(world, 2), 2);
    assert_int_equal(looks(world, 0), 7); /* which is not done */
    world_free(world);
}

int main(void)
{
    dp_log_start("test", DP_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_run_has_one_number),
        cmocka_unit_test(numbers_that_were_given_are_passed_over),
    };
    return cmocka_run_group_tests_name("run_number", tests, NULL, NULL);
}

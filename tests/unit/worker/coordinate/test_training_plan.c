/* Goal    of workers that mean different trainings only one kind trains, in any order and whoever is killed; a plan that was given up
 *         binds nobody, and one by which something was pushed binds for ever, also when every process was killed.
 * Method  worker/coordinate/training_plan.c over a world (world.h): scripts of one process after another; then workers that mean different
 *         things at once, killed and started again, the server's notes lost. Which pushes there are is the test's. */
#include "tests/lib/test.h"

#include "common/base/log.h"
#include "tests/unit/worker/coordinate/world.h"
#include "worker/coordinate/training_plan.h"
#include "worker/telemetry/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS      UINT64_C(1000000)
#define WORKERS 4u

struct scene {
    struct dp_cluster cluster;
    atomic_int never;
    struct world *world;
    const char *text[WORKERS];  /* what each means */
    uint64_t processes, pushed; /* pushed: bits, by worker */
    const char *by;             /* what the pushes are of, also those that some shards lack */
    const char *ends
        [WORKERS]; /* the state in which its process ends before its first push ("begun": right before); NULL: it pushes */
    uint32_t epochs[WORKERS];   /* chosen, then those of a run that was begun */
    enum dp_status st[WORKERS]; /* of its last process that was not killed */
    struct dp_error err[WORKERS];
};

/* Whoever is killed in between has pushed to some shards only: the run has no push of it. */
static void push(struct world_seat *seat, struct scene *scene)
{
    const char *text = scene->text[seat->number];
    if (scene->by && strcmp(scene->by, text) != 0)
        world_fail(seat->world, "worker %u pushes by '%s', others by '%s'", seat->number, text, scene->by);
    scene->by = text;
    if (world_step(seat, 1 + world_random(seat->world, 100)))
        scene->pushed |= UINT64_C(1) << seat->number;
}

static void process(struct world_seat *seat)
{
    struct scene *scene = seat->context;
    uint32_t w = seat->number;
    bool begun = scene->pushed >> w & 1;
    uint32_t *epochs = &scene->epochs[w];
    struct dp_progress progress;
    struct dp_error err = {0};
    struct dp_job job = {.cluster = &scene->cluster,
                         .worker = w,
                         .stop = &scene->never,
                         .clock = world_clock(seat),
                         .shared = world_shared(),
                         .client = (struct dp_client *)seat,
                         .process = ++scene->processes};
    if (!scene->text[w])
        return;
    dp_progress_init(&progress, &job, 0);
    dp_progress_enter(&progress, "reading");
    (void)world_step(seat, 1 + world_random(seat->world, 500));
    enum dp_status st = dp_training_plan_epochs(&job, epochs, &err);
    if (st == DP_OK)
        st = dp_training_plan_join(&job, scene->text[w], begun, &err);
    if (!seat->killed) {
        scene->st[w] = st;
        scene->err[w] = err;
    }
    bool begins = !scene->ends[w] || strcmp(scene->ends[w], "begun") == 0;
    if (st == DP_OK && begins && world_step(seat, 1 + world_random(seat->world, 500))) {
        st = begun ? DP_OK : dp_training_plan_begin(&job, scene->text[w], &err);
        scene->st[w] = seat->killed ? scene->st[w] : st;
        if (st == DP_OK && !scene->ends[w])
            push(seat, scene);
    }
    dp_progress_enter(&progress, st != DP_OK ? "failed" : scene->ends[w] ? scene->ends[w] : "done");
}

static struct scene scene_of(uint64_t seed)
{
    struct scene scene = {.cluster.training = {.workers = WORKERS, .run = 1, .timeout_ms = 30000}};
    return scene;
}

static void open_world(struct scene *scene, uint64_t seed)
{
    void *contexts[WORKERS] = {scene, scene, scene, scene};
    scene->world = world_new(seed, WORKERS, process, contexts);
    for (uint32_t w = 0; w < WORKERS; w++)
        world_idle(scene->world, w);
}

/* One process of one worker, to its end. */
static enum dp_status plays(struct scene *scene, uint32_t worker, const char *text, const char *ends)
{
    scene->text[worker] = text;
    scene->ends[worker] = ends;
    world_start(scene->world, worker, 1);
    assert_true(world_run(scene->world, UINT64_MAX, NULL, NULL));
    assert_null(world_failure(scene->world));
    return scene->st[worker];
}

static void a_plan_binds_when_it_is_trained_by(void **state)
{
    static struct scene s;
    s = scene_of(0);
    open_world(&s, 3);
    /* Given up: by one that was stopped, and by one that every trace is gone of. */
    assert_int_equal(plays(&s, 0, "batch 1\n", "stopped"), DP_OK);
    assert_int_equal(plays(&s, 1, "batch 2\n", "training"), DP_OK);
    /* Killed, as far as anybody knows at work: until the server forgets it, or it comes back. */
    assert_int_equal(plays(&s, 0, "batch 1\n", "stopped"), DP_ARGUMENT);
    assert_non_null(strstr(s.err[0].text, "worker 1 trains run 1 with 'batch 2', this one with 'batch 1'"));
    assert_int_equal(plays(&s, 1, "batch 3\n", "stopped"), DP_OK);
    assert_int_equal(plays(&s, 1, "batch 2\n", "training"), DP_OK);
    world_lose_notes(s.world);
    /* By which something was pushed: for ever. */
    assert_int_equal(plays(&s, 0, "batch 1\n", NULL), DP_OK);
    assert_int_equal(plays(&s, 1, "batch 2\n", NULL), DP_ARGUMENT);
    world_lose_notes(s.world);
    assert_int_equal(plays(&s, 1, "batch 2\n", NULL), DP_ARGUMENT);
    assert_non_null(strstr(s.err[1].text, "worker 0 trains run 1"));
    assert_int_equal(plays(&s, 0, "batch 2\n", NULL), DP_EXISTS);
    assert_non_null(strstr(s.err[0].text, "run 1 was begun with 'batch 1', this is 'batch 2'"));
    assert_int_equal(plays(&s, 1, "batch 1\n", NULL), DP_OK);
    assert_int_equal(plays(&s, 0, "batch 1\n", NULL), DP_OK);
    world_free(s.world);
}

/* It may have pushed to some shards: nobody can tell. */
static void a_plan_that_was_begun_binds_for_ever(void **state)
{
    static struct scene s;
    s = scene_of(0);
    open_world(&s, 5);
    assert_int_equal(plays(&s, 0, "batch 1\n", "begun"), DP_OK);
    world_lose_notes(s.world);
    assert_int_equal(plays(&s, 1, "batch 2\n", NULL), DP_ARGUMENT);
    assert_int_equal(plays(&s, 0, "batch 2\n", NULL), DP_ARGUMENT);
    assert_non_null(strstr(s.err[0].text, "worker 0 trains run 1 with 'batch 1', this one with 'batch 2'"));
    assert_int_equal(plays(&s, 1, "batch 1\n", NULL), DP_OK);
    world_free(s.world);
}

/* Goal    a later build, which would choose another number, finishes the run with its own.
 * Planted the number of a plan that was never begun counts. */
static void a_run_that_was_begun_keeps_its_epochs(void **state)
{
    static const char text[] = "batch 1\nepochs 40\nseed 1\n";
    static struct scene s;
    s = scene_of(0);
    open_world(&s, 7);
    s.epochs[0] = s.epochs[1] = 16;
    assert_int_equal(plays(&s, 0, text, "stopped"), DP_OK);
    assert_int_equal(plays(&s, 1, text, "begun"), DP_OK);
    assert_int_equal(s.epochs[0], 16);
    assert_int_equal(s.epochs[1], 16);
    assert_int_equal(plays(&s, 0, text, NULL), DP_OK);
    assert_int_equal(s.epochs[0], 40);
    world_free(s.world);
}

struct storm {
    struct scene scene;
    uint64_t kills[6], loses[2];
};

static void strike(void *context, struct world *world, uint64_t step)
{
    const struct storm *storm = context;
    for (size_t k = 0; k < 6; k++)
        if (storm->kills[k] == step)
            world_kill(world, (uint32_t)k % WORKERS, 1 + step % 700);
    for (size_t k = 0; k < 2; k++)
        if (storm->loses[k] == step)
            world_lose_notes(world);
}

/* push() checks that nobody pushes by another plan. Notes are lost at any step. */
static void only_one_kind_trains(void **state)
{
    static const char *const texts[] = {"batch 1\n", "batch 2\n"};
    uint32_t refused = 0, trained = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        static struct storm storm;
        storm = (struct storm){.scene = scene_of(seed)};
        struct scene *s = &storm.scene;
        open_world(s, seed);
        for (uint32_t w = 0; w < WORKERS; w++) {
            s->text[w] = texts[world_random(s->world, 2)];
            world_start(s->world, w, 1 + world_random(s->world, 600));
        }
        for (size_t k = 0; k < 6; k++)
            storm.kills[k] = world_random(s->world, 60);
        for (size_t k = 0; k < 2; k++)
            storm.loses[k] = world_random(s->world, 60);
        if (!world_run(s->world, 3600 * 1000 * MS, strike, &storm) || world_failure(s->world))
            fail_msg("seed %llu: %s", (unsigned long long)seed,
                     world_failure(s->world) ? world_failure(s->world) : "they wait for ever");
        for (uint32_t w = 0; w < WORKERS; w++) {
            refused += s->st[w] == DP_ARGUMENT;
            trained += s->st[w] == DP_OK;
            assert_true(s->st[w] == DP_OK || s->st[w] == DP_ARGUMENT);
        }
        world_free(s->world);
    }
    assert_true(refused > 1000 && trained > 3000);
}

int main(void)
{
    dp_log_start("test", DP_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_binds_when_it_is_trained_by),
        cmocka_unit_test(a_plan_that_was_begun_binds_for_ever),
        cmocka_unit_test(a_run_that_was_begun_keeps_its_epochs),
        cmocka_unit_test(only_one_kind_trains),
    };
    return cmocka_run_group_tests_name("training_plan", tests, NULL, NULL);
}

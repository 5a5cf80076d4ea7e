/* Goal    what a worker that left has not trained; who is silent long enough to be let leave. (Leaving itself: tests/system/test_leaves.c.)
 * Method  a first server that tells the silences of a script, and a clock that goes from look to look. */
#include "tests/lib/test.h"

#include "common/base/log.h"
#include "worker/coordinate/membership.h"
#include "worker/coordinate/takeover.h"
#include "worker/schedule/shares.h"

#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static struct dp_rounds rounds_of(uint64_t batches, uint32_t worker, uint32_t workers, uint32_t every)
{
    struct dp_cluster_training training = {
        .workers = workers, .consistency = "sync", .push_every = every, .fetch_every = 1, .accumulate = 1};
    return dp_rounds_of(&training,
                        (struct dp_share){.batches = batches, .worker = worker, .workers = workers});
}

static void what_is_undone_is_counted_to_the_minibatch(void **state)
{
    struct dp_rounds r = rounds_of(90, 2, 3, 1); /* 30 of its own, in 30 steps */
    assert_int_equal(dp_takeover_undone(&r, 0, 2), 60);
    assert_int_equal(dp_takeover_undone(&r, 1, 2), 59);
    assert_int_equal(dp_takeover_undone(&r, 30, 2), 30);
    assert_int_equal(dp_takeover_undone(&r, 59, 2), 1);
    assert_int_equal(dp_takeover_undone(&r, 60, 2), 0);
    assert_int_equal(dp_takeover_undone(&r, 60, 1), 0);
    r = rounds_of(10, 2, 3, 1); /* 3 of its own, in 4 steps: the last one is empty */
    assert_int_equal(r.count, 4);
    assert_int_equal(dp_takeover_undone(&r, 3, 1), 0);
    assert_int_equal(dp_takeover_undone(&r, 4, 2), 3);
    assert_int_equal(dp_takeover_undone(&r, 6, 2), 1);
    r = rounds_of(21, 0, 2, 4); /* 11 of its own, in steps of 4, 4 and 3 */
    assert_int_equal(r.count, 3);
    assert_int_equal(dp_takeover_undone(&r, 1, 1), 7);
    assert_int_equal(dp_takeover_undone(&r, 2, 1), 3);
    assert_int_equal(dp_takeover_undone(&r, 3, 2), 11);
}

/* ---- looks */

#define MEMBERS    3u
#define TIMEOUT_MS 8000u
#define LOOK_MS    1000u

static struct {
    uint64_t now_ns, silent_ms[MEMBERS];
    uint64_t until, from, missed; /* of worker 2, in the register */
    uint64_t own_until;           /* of worker 0, there */
    uint32_t acted;               /* times that somebody stood in */
    enum dp_status opens;         /* a client to act over */
    uint64_t opened_ms;           /* and worker 2's silence then */
    uint32_t joined;              /* times that its place was taken */
    uint32_t told;                /* lines in the log */
    enum dp_status hands;         /* the view over to the shards */
} world;

void __wrap_dp_client_heartbeats(struct dp_client *client, uint32_t timeout_ms);
void __wrap_dp_client_heartbeats(struct dp_client *client, uint32_t timeout_ms)
{
    assert_int_equal(timeout_ms, TIMEOUT_MS);
}

enum dp_status __wrap_dp_client_silences(struct dp_client *client, uint64_t *silent_ms, uint32_t timeout_ms,
                                         struct dp_error *err);
enum dp_status __wrap_dp_client_silences(struct dp_client *client, uint64_t *silent_ms, uint32_t timeout_ms,
                                         struct dp_error *err)
{
    for (uint32_t w = 0; w < MEMBERS; w++)
        silent_ms[w] = world.silent_ms[w];
    return DP_OK;
}

enum dp_status __wrap_dp_client_register_get(struct dp_client *client, const char *name, uint64_t newer,
                                             uint32_t wait_ms, uint32_t timeout_ms,
                                             struct dp_register_value *out, struct dp_error *err);
static void give_view(struct dp_register_value *out)
{
    struct dp_member member[MEMBERS] = {
        {.incarnation = 1, .until = world.own_until},
        {.incarnation = 2, .until = UINT64_MAX},
        {.incarnation = 3, .until = world.until, .from = world.from, .missed = world.missed}};
    const struct dp_view view = {
        .number = 4, .run = 1, .mode = DP_SYNC, .members = MEMBERS, .member = member};
    *out = (struct dp_register_value){
        .version = 4, .bytes = malloc(dp_view_bytes(&view)), .size = dp_view_bytes(&view)};
    assert_non_null(out->bytes);
    dp_view_pack(&view, out->bytes);
}

enum dp_status __wrap_dp_client_register_get(struct dp_client *client, const char *name, uint64_t newer,
                                             uint32_t wait_ms, uint32_t timeout_ms,
                                             struct dp_register_value *out, struct dp_error *err)
{
    give_view(out);
    return DP_OK;
}

enum dp_status __wrap_dp_shared_get(struct dp_job *job, const char *what, uint64_t above, uint32_t wait_ms,
                                    struct dp_register_value *value, struct dp_error *err);
enum dp_status __wrap_dp_shared_get(struct dp_job *job, const char *what, uint64_t above, uint32_t wait_ms,
                                    struct dp_register_value *value, struct dp_error *err)
{
    assert_string_equal(what, "view");
    give_view(value);
    return DP_OK;
}

uint64_t __wrap_dp_dataset_batches(const struct dp_dataset *data);
uint64_t __wrap_dp_dataset_batches(const struct dp_dataset *data)
{
    return 90;
}

/* 3 in each but the last minibatch, worker 2's: 2. */
uint64_t __wrap_dp_dataset_examples(const struct dp_dataset *data);
uint64_t __wrap_dp_dataset_examples(const struct dp_dataset *data)
{
    return 269;
}

/* Worker 2 was away from step 29 on below 40; it made the others below `until`. */
enum dp_status __wrap_dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count,
                                    uint64_t *bits, struct dp_error *err);
enum dp_status __wrap_dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count,
                                    uint64_t *bits, struct dp_error *err)
{
    assert_int_equal(from % 3, 2);
    for (size_t i = 0; i < count; i++) {
        uint64_t step = (stream - dp_push_stream(1, 0)) * 30 + (from + i) / 3;
        bool made = step < 29 || (step >= 40 && step < world.until);
        bits[i / 64] |= (uint64_t)((from + i) % 3 == 2 && made) << i % 64;
    }
    return DP_OK;
}

enum dp_status __wrap_dp_job_act_for(const struct dp_job *job, uint32_t worker, struct dp_job *out,
                                     struct dp_error *err);
enum dp_status __wrap_dp_job_act_for(const struct dp_job *job, uint32_t worker, struct dp_job *out,
                                     struct dp_error *err)
{
    assert_int_equal(worker, 2);
    *out = *job;
    out->worker = worker;
    world.acted++;
    world.silent_ms[2] = world.opened_ms;
    return world.opens == DP_OK ? DP_OK : dp_fail(err, world.opens, "no servers here");
}

enum dp_status __wrap_dp_membership_join(struct dp_job *job, const struct dp_rounds *rounds, bool returns,
                                         struct dp_error *err);
enum dp_status __wrap_dp_membership_join(struct dp_job *job, const struct dp_rounds *rounds, bool returns,
                                         struct dp_error *err)
{
    assert_false(returns); /* it lets it leave */
    assert_int_equal(job->worker, 2);
    world.joined++;
    return dp_fail(err, DP_UNAVAILABLE, "no servers here");
}

void __wrap_dp_job_disconnect(struct dp_job *job);
void __wrap_dp_job_disconnect(struct dp_job *job) {}

enum dp_status __wrap_dp_membership_hand_over(struct dp_job *job, const struct dp_rounds *rounds,
                                              struct dp_error *err);
enum dp_status __wrap_dp_membership_hand_over(struct dp_job *job, const struct dp_rounds *rounds,
                                              struct dp_error *err)
{
    assert_int_equal(job->worker, 0);
    assert_int_equal(rounds->members, MEMBERS);
    assert_false(dp_job_is_gone(job, 2));
    return world.hands == DP_OK ? DP_OK : dp_fail(err, world.hands, "a shard is away");
}

void __wrap_dp_log(enum dp_log_level level, const char *format, ...);
void __wrap_dp_log(enum dp_log_level level, const char *format, ...)
{
    world.told++;
}

static uint64_t now_of(void *self)
{
    return world.now_ns;
}

struct scene {
    struct dp_cluster cluster;
    struct dp_job job; /* worker 0's */
    struct dp_takeover takeover;
};

static void scene_open(struct scene *scene)
{
    const struct dp_rounds rounds = rounds_of(90, 0, MEMBERS, 1);
    world.now_ns = MS;
    world.until = world.own_until = UINT64_MAX;
    world.from = world.missed = 0;
    world.acted = world.joined = 0;
    world.opens = DP_UNAVAILABLE;
    world.hands = DP_OK;
    world.opened_ms = 0;
    for (uint32_t w = 0; w < MEMBERS; w++)
        world.silent_ms[w] = 0;
    *scene = (struct scene){.cluster.training = {.run = 1,
                                                 .workers = MEMBERS,
                                                 .consistency = "sync",
                                                 .push_every = 1,
                                                 .fetch_every = 1,
                                                 .accumulate = 1,
                                                 .epochs = 5,
                                                 .batch = 3,
                                                 .worker_timeout = TIMEOUT_MS / 1000}};
    scene->job = (struct dp_job){.cluster = &scene->cluster, .clock = {now_of, NULL}};
    assert_int_equal(dp_takeover_open(&scene->takeover, &scene->job, NULL, &rounds, NULL), DP_OK);
}

/* After so long; silent_ms: worker 2's. */
static enum dp_status look(struct scene *scene, uint64_t after_ms, uint64_t silent_ms)
{
    struct dp_error err = {0};
    world.now_ns += after_ms * MS;
    world.silent_ms[2] = silent_ms;
    return dp_job_waits(&scene->job, &err);
}

static void who_was_suspended_with_all_others_is_heard_first(void **state)
{
    struct scene scene;
    scene_open(&scene);
    assert_int_equal(look(&scene, LOOK_MS, 500), DP_OK);
    world.silent_ms[1] = 600000;
    assert_int_equal(look(&scene, 600000, 600000), DP_OK); /* both are behind this one */
    assert_int_equal(look(&scene, LOOK_MS, 601000), DP_OK);
    world.silent_ms[1] = 10;
    assert_int_equal(look(&scene, LOOK_MS, 10), DP_OK);
    assert_int_equal(world.acted, 0);
    dp_takeover_close(&scene.takeover);
}

static void who_is_silent_at_three_looks_in_a_row_is_let_leave(void **state)
{
    struct scene scene;
    scene_open(&scene);
    assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
    assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + LOOK_MS), DP_OK);
    assert_int_equal(look(&scene, 1, TIMEOUT_MS + LOOK_MS + 1), DP_OK); /* no look: it is too soon */
    assert_int_equal(look(&scene, 600000, 600000), DP_OK); /* not in a row: a suspension is between */
    assert_int_equal(look(&scene, LOOK_MS, 601000), DP_OK);
    assert_int_equal(world.acted, 0);
    assert_int_equal(look(&scene, LOOK_MS, 602000), DP_OK);
    assert_int_equal(world.acted, 1);
    assert_int_equal(look(&scene, LOOK_MS, 603000),
                     DP_OK); /* an attempt that failed is followed by another */
    assert_int_equal(world.acted, 2);
    dp_takeover_close(&scene.takeover);
}

static void who_comes_back_while_a_client_is_opened_keeps_its_place(void **state)
{
    struct scene scene;
    for (uint32_t comes = 0; comes < 2; comes++) {
        scene_open(&scene);
        world.opens = DP_OK;
        world.opened_ms = comes ? TIMEOUT_MS : TIMEOUT_MS + 1;
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
        assert_int_equal(world.acted, 1);
        assert_int_equal(world.joined, !comes);
        assert_false(dp_job_is_gone(&scene.job, 2));
        dp_takeover_close(&scene.takeover);
    }
}

static void refused(uint64_t batches, uint32_t worker, uint32_t workers, uint32_t every, const char *why)
{
    struct dp_cluster_training training = {.workers = workers, .worker_timeout = 5};
    struct dp_rounds r = rounds_of(batches, worker, workers, every);
    struct dp_error err = {0};
    assert_int_equal(dp_takeover_check(&training, &r, &err), why ? DP_ARGUMENT : DP_OK);
    if (why && !strstr(err.text, why))
        fail_msg("'%s' lacks '%s'", err.text, why);
    training.worker_timeout = 0;
    assert_int_equal(dp_takeover_check(&training, &r, NULL), DP_OK);
}

/* Planted: only members are refused; a window of one more. */
static void what_it_cannot_keep_is_refused(void **state)
{
    refused(3, 0, 3, 1, NULL);
    for (uint32_t w = 0; w < 4; w++)
        refused(3, w, 4, 1, "4 workers are more than the 3 minibatches");
    refused(65536, 1, 4, 1, NULL);
    refused(65537, 1, 4, 1, "an epoch has 65540 pushes, more than 65536: ");
    refused(65537, 1, 4, 2, NULL);
}

static void who_has_left_is_gone_when_every_shard_knows_it(void **state)
{
    struct scene scene;
    scene_open(&scene);
    world.until = 31;
    world.hands = DP_TIMEOUT;
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
    assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_TIMEOUT);
    assert_false(dp_job_is_gone(&scene.job, 2));
    world.hands = DP_OK;
    assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
    assert_true(dp_job_is_gone(&scene.job, 2));
    assert_int_equal(world.acted, 0);
    dp_takeover_close(&scene.takeover);
}

/* They left before the last epoch, and nothing of them is undone. */
static void after_an_early_stop_the_epochs_that_were_trained_count(void **state)
{
    struct scene scene;
    for (uint32_t epochs = 2; epochs <= 3; epochs++) {
        struct dp_worker_stats stats = {0};
        scene_open(&scene);
        world.until = 60; /* two epochs */
        dp_takeover_ends(&scene.takeover, epochs);
        world.told = 0;
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
        assert_true(dp_job_is_gone(&scene.job, 2));
        assert_int_equal(world.told, epochs - 2);
        assert_int_equal(dp_takeover_say(&scene.takeover, 2, &stats, NULL), DP_OK);
        assert_int_equal(stats.left.undone, epochs == 2 ? 0 : 30);
        assert_true(stats.left.is == (epochs == 3));
        dp_takeover_close(&scene.takeover);
    }
}

static void leaves(struct scene *scene, uint64_t until)
{
    world.until = until;
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(look(scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
    assert_true(dp_job_is_gone(&scene->job, 2));
}

/* Planted: who is gone is not looked at; it is taken for silent at the look that finds it; a recheck that asks nobody. */
static void who_comes_back_is_waited_for_again(void **state)
{
    struct scene scene;
    for (uint32_t asked = 0; asked < 2; asked++) {
        scene_open(&scene);
        leaves(&scene, 31);
        assert_int_equal(dp_job_recheck_gone(&scene.job, NULL), DP_OK);
        assert_true(dp_job_is_gone(&scene.job, 2));
        world.until = UINT64_MAX;
        world.from = 40;
        world.missed = 9;
        world.told = 0;
        if (asked)
            assert_int_equal(dp_job_recheck_gone(&scene.job, NULL), DP_OK);
        else /* what is told of its silence may be older than its return */
            assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
        assert_false(dp_job_is_gone(&scene.job, 2));
        assert_int_equal(world.told, 1);
        assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
        assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
        assert_int_equal(world.acted, 0);
        assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK); /* silent again */
        assert_int_equal(world.acted, 1);
        dp_takeover_close(&scene.takeover);
    }
}

/* It came back and left again, all between two looks. */
static void who_left_anew_has_left_later(void **state)
{
    struct scene scene;
    scene_open(&scene);
    leaves(&scene, 31);
    world.until = 50;
    world.missed = 9;
    world.hands = DP_TIMEOUT;
    assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
    assert_false(dp_job_is_gone(&scene.job, 2)); /* shards have to hear of it, too */
    world.hands = DP_OK;
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(look(&scene, LOOK_MS, TIMEOUT_MS + 1), DP_OK);
    assert_true(dp_job_is_gone(&scene.job, 2));
    assert_int_equal(scene.takeover.gone[2].until, 50);
    assert_int_equal(scene.takeover.gone[2].missed, 9);
    dp_takeover_close(&scene.takeover);
}

/* It had been away, and left again: in the middle, at the end, or behind it. Planted: what it left is what is behind its end. */
static void what_it_missed_before_is_told(void **state)
{
    static const struct {
        uint64_t until, left, missed, missed_examples;
    } cases[] = {{100, 50 + 11, 0, 0}, {150, 0, 11, 10 * 3 + 2}, {153, 0, 11, 10 * 3 + 2}};
    struct scene scene;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_worker_stats stats = {0};
        struct dp_error err = {0};
        scene_open(&scene);
        world.missed = cases[i].until > 150 ? 11 + cases[i].until - 150 : 11;
        leaves(&scene, cases[i].until);
        assert_int_equal(dp_takeover_say(&scene.takeover, 2, &stats, &err), DP_OK);
        assert_true(stats.left.is == (cases[i].left > 0));
        assert_int_equal(stats.left.undone, cases[i].left);
        assert_int_equal(stats.missed, cases[i].missed);
        assert_int_equal(stats.missed_examples, cases[i].missed_examples);
        dp_takeover_close(&scene.takeover);
    }
}

/* At a barrier, where no shard would tell it. Planted: whenever it has left. */
static void who_stood_still_hears_that_it_was_let_leave(void **state)
{
    struct scene scene;
    scene_open(&scene);
    world.hands = DP_REPLACED;
    assert_int_equal(look(&scene, LOOK_MS, 0), DP_OK);
    world.own_until = 31;
    assert_int_equal(look(&scene, LOOK_MS, 0), DP_OK); /* it did not stand still */
    assert_int_equal(look(&scene, 3 * TIMEOUT_MS, 0), DP_REPLACED);
    dp_takeover_ends(&scene.takeover, 5);
    assert_int_equal(look(&scene, 3 * TIMEOUT_MS, 0), DP_OK);
    dp_takeover_close(&scene.takeover);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_undone_is_counted_to_the_minibatch),
        cmocka_unit_test(what_it_cannot_keep_is_refused),
        cmocka_unit_test(who_was_suspended_with_all_others_is_heard_first),
        cmocka_unit_test(who_is_silent_at_three_looks_in_a_row_is_let_leave),
        cmocka_unit_test(who_comes_back_while_a_client_is_opened_keeps_its_place),
        cmocka_unit_test(who_has_left_is_gone_when_every_shard_knows_it),
        cmocka_unit_test(after_an_early_stop_the_epochs_that_were_trained_count),
        cmocka_unit_test(who_comes_back_is_waited_for_again),
        cmocka_unit_test(who_left_anew_has_left_later),
        cmocka_unit_test(what_it_missed_before_is_told),
        cmocka_unit_test(who_stood_still_hears_that_it_was_let_leave),
    };
    return cmocka_run_group_tests_name("stand-in", tests, NULL, NULL);
}

/* Goal    a wait for other workers ends: by their notes, by what they say, or by silence; and is not ended by what an earlier
 *         process of one has said.
 * Method  worker/peers.c over a world (world.h) of two workers: one waits for the other's note, which does as its script says. */
#include "tests/lib/test.h"

#include "common/base/log.h"
#include "tests/unit/worker/step/world.h"
#include "worker/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS         UINT64_C(1000000)
#define TIMEOUT_MS 30000u

struct scene {
    struct dp_cluster cluster;
    atomic_int never;
    const char *before; /* state that worker 1 was in before both began; or NULL */
    const char *then;   /* that it tells after a while; or NULL */
    bool gives;         /* it puts its note, */
    bool sees;          /* when it has seen all that worker 0 keeps */
    uint64_t lost[2];   /* the steps at which the server loses all notes */
    enum dp_status st;
    struct dp_error err;
    uint64_t waited_ms;
};

static void open_job(struct world_seat *seat, struct dp_job *job, struct dp_progress *progress)
{
    struct scene *scene = seat->context;
    *job = (struct dp_job){.cluster = &scene->cluster,
                           .worker = seat->number,
                           .stop = &scene->never,
                           .clock = world_clock(seat),
                           .client = (struct dp_client *)seat};
    dp_progress_init(progress, job, 0);
}

static const char *const kept[] = {"ended", "check", "verdict"};

static void waits(struct world_seat *seat)
{
    struct scene *scene = seat->context;
    struct dp_job job;
    struct dp_progress progress;
    struct dp_note notes[2] = {{0}};
    open_job(seat, &job, &progress);
    uint64_t begun = world_now(seat->world);
    scene->st = dp_peers_begin(&job, &scene->err);
    if (scene->st == DP_OK)
        scene->st = dp_peers_keep(&job, "plan", "p", 1, &scene->err);
    for (size_t k = 0; scene->st == DP_OK && k < sizeof kept / sizeof kept[0]; k++)
        scene->st = dp_peers_keep(&job, kept[k], "k", 1, &scene->err);
    if (scene->st == DP_OK)
        scene->st = dp_peers_keep(&job, "trained", "0", 1, &scene->err);
    if (scene->st == DP_OK)
        scene->st = dp_peers_wait(&job, &progress, "trained", notes, &scene->err);
    scene->waited_ms = (world_now(seat->world) - begun) / MS;
    dp_peers_clear(notes, 2);
    dp_peers_forget(&job);
}

/* Within a minute. */
static bool sees_all(struct world_seat *seat, struct dp_job *job)
{
    for (int look = 0; look < 600; look++) {
        size_t there = 0;
        for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++) {
            struct dp_note note = {0};
            if (dp_peers_one(job, kept[k], 0, &note, NULL) != DP_OK)
                return false;
            there += note.bytes != NULL;
            dp_peers_clear(&note, 1);
        }
        if (there == sizeof kept / sizeof kept[0])
            return true;
        if (!world_step(seat, 100))
            return false;
    }
    return false;
}

static void plays(struct world_seat *seat)
{
    struct scene *scene = seat->context;
    struct dp_job job;
    struct dp_progress progress;
    struct dp_error err;
    open_job(seat, &job, &progress);
    if (!world_step(seat, 3000))
        return;
    if (scene->then) {
        dp_progress_enter(&progress, "reading");
        (void)world_step(seat, 3000);
        dp_progress_enter(&progress, scene->then);
    }
    (void)world_step(seat, 3000);
    if (scene->sees && !sees_all(seat, &job))
        return;
    if (scene->gives && dp_peers_put(&job, "trained", 1, "1", 1, &err) != DP_OK)
        world_fail(seat->world, "%s", err.text);
}

static void process(struct world_seat *seat)
{
    if (seat->number == 0)
        waits(seat);
    else
        plays(seat);
}

static void lose(void *context, struct world *world, uint64_t step)
{
    const struct scene *scene = context;
    if (step && (step == scene->lost[0] || step == scene->lost[1]))
        world_lose_notes(world);
}

static void play(struct scene *scene)
{
    void *contexts[2] = {scene, scene};
    scene->cluster.training = (struct dp_cluster_training){.workers = 2, .run = 1, .timeout_ms = TIMEOUT_MS};
    struct world *world = world_new(7, 2, process, contexts);
    if (scene->before) {
        char text[64];
        (void)snprintf(text, sizeof text, "{\"state\":\"%s\",\"epoch\":3}", scene->before);
        world_put(world, "run/1/progress/1", text, strlen(text));
    }
    assert_true(world_run(world, 3600 * 1000 * MS, lose, scene));
    assert_null(world_failure(world));
    world_free(world);
}

static void what_was_said_before_does_not_end_a_wait(void **state)
{
    (void)state;
    static const char *const states[] = {"stopped", "failed"};
    for (int i = 0; i < 2; i++) {
        static struct scene comes, stays_away, ends;
        comes = (struct scene){.before = states[i], .then = "training", .gives = true};
        play(&comes);
        assert_int_equal(comes.st, DP_OK);
        /* It is not started again: no longer than one that says nothing. */
        stays_away = (struct scene){.before = states[i]};
        play(&stays_away);
        assert_int_equal(stays_away.st, DP_TIMEOUT);
        assert_in_range(stays_away.waited_ms, TIMEOUT_MS, TIMEOUT_MS + 10000);
        assert_non_null(strstr(stays_away.err.text, states[i]));
        /* Nor does it hide what is said now. */
        ends = (struct scene){.before = states[i], .then = states[i]};
        play(&ends);
        assert_int_equal(ends.st, DP_UNAVAILABLE);
        assert_true(ends.waited_ms < TIMEOUT_MS);
    }
}

static void who_fails_meanwhile_ends_it_at_once(void **state)
{
    (void)state;
    static struct scene fails, silent;
    fails = (struct scene){.then = "failed"};
    play(&fails);
    assert_int_equal(fails.st, DP_UNAVAILABLE);
    assert_non_null(strstr(fails.err.text, "worker 1 has failed before it could give its part \"trained\""));
    assert_true(fails.waited_ms < TIMEOUT_MS);
    silent = (struct scene){0};
    play(&silent);
    assert_int_equal(silent.st, DP_TIMEOUT);
}

/* Also where it loses them again while they are being put. */
static void lost_notes_are_put_again(void **state)
{
    (void)state;
    static struct scene lost;
    for (uint64_t first = 4; first < 40; first++)
        for (uint64_t more = 0; more < 15; more++) {
            lost = (struct scene){
                .then = "training", .gives = true, .sees = true, .lost = {first, first + more}};
            play(&lost);
            if (lost.st != DP_OK)
                fail_msg("lost at steps %llu and %llu: %s", (unsigned long long)first,
                         (unsigned long long)(first + more), lost.err.text);
        }
}

int main(void)
{
    dp_log_start("test", DP_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_said_before_does_not_end_a_wait),
        cmocka_unit_test(who_fails_meanwhile_ends_it_at_once),
        cmocka_unit_test(lost_notes_are_put_again),
    };
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}

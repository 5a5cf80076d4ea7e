/* Goal    a wait for other workers ends: by their notes, by what they say, or by silence; and is not ended by what an earlier
 *         process of one has said.
 * Method  worker/coordinate/peers.c over a world (world.h) of two workers: one waits for the other's notes, which does as its script
 *         says. */
#include "tests/lib/test.h"

#include "common/base/log.h"
#include "tests/unit/worker/coordinate/world.h"
#include "worker/coordinate/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS         UINT64_C(1000000)
#define TIMEOUT_MS 30000u
#define MANY       1100u

struct scene {
    struct dp_cluster cluster;
    atomic_int never;
    const char *before; /* state that worker 1 was in before both began; or NULL */
    const char *then;   /* that it tells after a while; or NULL */
    uint64_t late_ms;   /* how much later each look at worker 0's clock is than the world says */
    uint64_t looks;
    struct dp_clock real; /* worker 0's, where it is late */
    bool gives;           /* it puts its note, */
    bool sees;            /* when it has seen all that worker 0 keeps */
    uint64_t leaves_ms;   /* worker 1 has left for its silence, then; 0: nobody does */
    struct dp_absence absence;
    bool made_up;     /* it handed nothing over */
    bool leased;      /* others do its work */
    bool in_steps;    /* they wait for each other */
    uint64_t lost[2]; /* the steps at which the server loses all notes */
    enum dp_status st;
    struct dp_error err;
    uint64_t waited_ms;
};

static bool is_gone(const void *of, uint32_t worker)
{
    const struct scene *scene = of;
    return worker == 1 && world_now(world_here()->world) >= scene->leaves_ms * MS;
}

static enum dp_status looks_after(void *of, struct dp_error *err)
{
    return DP_OK;
}

static void open_job(struct world_seat *seat, struct dp_job *job, struct dp_progress *progress)
{
    struct scene *scene = seat->context;
    *job = (struct dp_job){.cluster = &scene->cluster,
                           .worker = seat->number,
                           .stop = &scene->never,
                           .clock = world_clock(seat),
                           .shared = world_shared(),
                           .client = (struct dp_client *)seat};
    scene->absence = (struct dp_absence){.look = looks_after, .is_gone = is_gone, .of = scene};
    if (scene->leaves_ms)
        job->absence = &scene->absence;
    dp_progress_init(progress, job, 0);
}

static uint64_t late(void *self)
{
    struct scene *scene = self;
    return dp_clock_ns(&scene->real) + scene->late_ms * MS * ++scene->looks;
}

static const char part[] = "a part", test[] = "a test";

static void waits(struct world_seat *seat)
{
    struct scene *scene = seat->context;
    struct dp_job job;
    struct dp_progress progress;
    struct dp_peers peers = {0};
    struct dp_shared_note notes[2] = {{0}};
    open_job(seat, &job, &progress);
    if (scene->late_ms) {
        scene->real = job.clock;
        job.clock = (struct dp_clock){.now_ns = late, .self = scene};
    }
    uint64_t begun = world_now(seat->world);
    scene->st = dp_peers_open(&peers, &job, &progress, &scene->err);
    if (scene->st == DP_OK)
        scene->st = dp_peers_reach(&peers, DP_PEERS_ENDED, 3, NULL, 0, &scene->err);
    if (scene->st == DP_OK)
        scene->st = dp_peers_reach(&peers, DP_PEERS_PART, 3, part, sizeof part, &scene->err);
    if (scene->st == DP_OK)
        scene->st = dp_peers_reach(&peers, DP_PEERS_TEST, 3, test, sizeof test, &scene->err);
    if (scene->st == DP_OK)
        scene->st = dp_peers_reach(&peers, DP_PEERS_TRAINED, 3, "0", 1, &scene->err);
    if (scene->st == DP_OK)
        scene->st = dp_peers_collect(&peers, DP_PEERS_TRAINED, 3, notes, &scene->err);
    scene->made_up = (scene->leaves_ms || scene->leased) && !notes[1].bytes;
    if (scene->leased && dp_job_is_gone(&job, 1) != scene->made_up)
        world_fail(seat->world, "worker 1 is %s", scene->made_up ? "not absent" : "absent");
    if (scene->st == DP_OK && !scene->made_up && (notes[1].size != 1 || *(const char *)notes[1].bytes != '1'))
        world_fail(seat->world, "what worker 1 handed over has %zu bytes", notes[1].size);
    scene->waited_ms = (world_now(seat->world) - begun) / MS;
    dp_peers_clear(notes, 2);
    dp_peers_close(&peers);
}

/* Within a minute: all that worker 0's stage stands for can be had. */
static bool sees_all(struct world_seat *seat, struct dp_peers *peers)
{
    static const enum dp_peers_kind kinds[] = {DP_PEERS_PART, DP_PEERS_TEST};
    for (int look = 0; look < 600; look++) {
        uint32_t there = 0;
        bool all = false;
        if (dp_peers_look(peers, DP_PEERS_PART, 3, &all, NULL) != DP_OK)
            return false;
        for (size_t k = 0; k < 2; k++) {
            struct dp_shared_note notes[2] = {{0}};
            if (dp_peers_fetch(peers, kinds[k], 3, notes, &all, NULL) != DP_OK)
                return false;
            there += all && notes[0].size == sizeof part && notes[1].size == sizeof part;
            dp_peers_clear(notes, 2);
        }
        if (there == 2)
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
    struct dp_peers peers = {0};
    struct dp_error err = {0};
    open_job(seat, &job, &progress);
    enum dp_status st = dp_peers_open(&peers, &job, &progress, &err);
    if (!world_step(seat, 3000))
        goto done;
    if (scene->then) {
        dp_progress_enter(&progress, "reading");
        (void)world_step(seat, 3000);
        dp_progress_enter(&progress, scene->then);
    }
    (void)world_step(seat, 3000);
    if (st == DP_OK && scene->sees) {
        st = dp_peers_reach(&peers, DP_PEERS_PART, 3, part, sizeof part, &err);
        if (st == DP_OK)
            st = dp_peers_reach(&peers, DP_PEERS_TEST, 3, test, sizeof test, &err);
        if (st == DP_OK && !sees_all(seat, &peers))
            goto done;
    }
    if (st == DP_OK && scene->gives)
        st = dp_peers_reach(&peers, DP_PEERS_TRAINED, 3, "1", 1, &err);
    for (bool all = false;
         st == DP_OK && scene->gives && !world_has_ended(seat->world, 0) && world_step(seat, 500);)
        st = dp_peers_look(&peers, DP_PEERS_TRAINED, 3, &all, &err);
    if (st != DP_OK)
        world_fail(seat->world, "%s", err.text);
done:
    dp_peers_close(&peers);
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
    scene->cluster.training =
        (struct dp_cluster_training){.workers = 2,
                                     .run = 1,
                                     .timeout_ms = TIMEOUT_MS,
                                     .consistency = "async",
                                     .work = scene->leased ? DP_CLUSTER_LEASED : DP_CLUSTER_FIXED};
    if (scene->in_steps)
        (void)strcpy(scene->cluster.training.consistency, "ssp:2");
    struct world *world = world_new(7, 2, process, contexts);
    if (scene->before) {
        char text[64];
        (void)snprintf(text, sizeof text, "{\"state\":\"%s\",\"epoch\":3}", scene->before);
        world_put(world, "run/1/progress/1.", text, strlen(text));
    }
    assert_true(world_run(world, 3600 * 1000 * MS, lose, scene));
    assert_null(world_failure(world));
    world_free(world);
}

static void what_was_said_before_does_not_end_a_wait(void **state)
{
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
        assert_non_null(strstr(stays_away.err.text, "With --work leased others"));
        stays_away = (struct scene){.before = states[i], .in_steps = true};
        play(&stays_away);
        assert_non_null(
            strstr(stays_away.err.text, "With --worker-timeout (training.worker_timeout) the others"));
        /* Nor does it hide what is said now. */
        ends = (struct scene){.before = states[i], .then = states[i]};
        play(&ends);
        assert_int_equal(ends.st, DP_UNAVAILABLE);
        assert_true(ends.waited_ms < TIMEOUT_MS);
    }
}

/* 1, 10 to 19, 100 to 199, ...: the notes of all workers whose number begins with 1 are more than one answer holds. */
static void reads(struct world_seat *seat)
{
    struct scene *scene = seat->context;
    struct dp_job job;
    struct dp_progress progress;
    struct dp_peers peers = {0};
    scene->st = DP_OK;
    for (uint32_t w = MANY; scene->st == DP_OK && w-- > 0;) {
        open_job(seat, &job, &progress);
        job.worker = w;
        scene->st = dp_shared_put(&job, "progress", w, "{}", 2, &scene->err);
    }
    if (scene->st == DP_OK)
        scene->st = dp_peers_open(&peers, &job, &progress, &scene->err);
    dp_peers_close(&peers);
}

static void one_note_is_found_among_those_of_many_workers(void **state)
{
    static struct scene scene;
    void *contexts[1] = {&scene};
    scene.cluster.training =
        (struct dp_cluster_training){.workers = MANY, .run = 1, .timeout_ms = TIMEOUT_MS};
    struct world *world = world_new(7, 1, reads, contexts);
    assert_true(world_run(world, 3600 * 1000 * MS, NULL, NULL));
    if (scene.st != DP_OK)
        fail_msg("%s", scene.err.text);
    world_free(world);
}

static void who_fails_meanwhile_ends_it_at_once(void **state)
{
    static struct scene fails, silent;
    fails = (struct scene){.then = "failed"};
    play(&fails);
    assert_int_equal(fails.st, DP_UNAVAILABLE);
    assert_non_null(strstr(fails.err.text, "worker 1 failed before the end of the training: see"));
    assert_true(fails.waited_ms < TIMEOUT_MS);
    silent = (struct scene){0};
    play(&silent);
    assert_int_equal(silent.st, DP_TIMEOUT);
}

/* Its rounds are long, as with thousands of workers: that is no suspension. */
static void who_looks_late_each_time_still_misses_one(void **state)
{
    static struct scene slow;
    for (uint64_t ms = 500; ms <= 3000; ms += 500) {
        slow = (struct scene){.late_ms = ms};
        play(&slow);
        assert_int_equal(slow.st, DP_TIMEOUT);
    }
}

/* However it ended, and what it handed over before is taken. */
static void who_has_left_is_waited_for_no_more(void **state)
{
    static struct scene silent, fails, gives, late;
    silent = (struct scene){.leaves_ms = 20000};
    play(&silent);
    assert_true(silent.st == DP_OK && silent.made_up);
    assert_in_range(silent.waited_ms, 15000, 21000);
    fails = (struct scene){.then = "failed", .leaves_ms = 20000};
    play(&fails);
    assert_true(fails.st == DP_OK && fails.made_up);
    gives = (struct scene){.then = "training", .gives = true, .leaves_ms = 20000};
    play(&gives);
    assert_true(gives.st == DP_OK && !gives.made_up && gives.waited_ms < 15000);
    /* One that never leaves is not waited for without a limit. */
    late = (struct scene){.leaves_ms = UINT64_C(3600) * 24 * 1000};
    play(&late);
    assert_int_equal(late.st, DP_TIMEOUT);
}

/* Where others do its work, one that fails or gives no sign is absent; one that gives its part late is not. */
static void who_is_away_from_leased_work_is_not_waited_for(void **state)
{
    static struct scene silent, fails, gives;
    silent = (struct scene){.leased = true};
    play(&silent);
    assert_true(silent.st == DP_OK && silent.made_up);
    assert_in_range(silent.waited_ms, TIMEOUT_MS, TIMEOUT_MS + 5000);
    fails = (struct scene){.leased = true, .then = "failed"};
    play(&fails);
    assert_true(fails.st == DP_OK && fails.made_up && fails.waited_ms < TIMEOUT_MS);
    gives = (struct scene){.leased = true, .then = "training", .gives = true};
    play(&gives);
    assert_true(gives.st == DP_OK && !gives.made_up);
}

/* Also where it loses them again while they are being put. */
static void lost_notes_are_put_again(void **state)
{
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
        cmocka_unit_test(one_note_is_found_among_those_of_many_workers),
        cmocka_unit_test(who_fails_meanwhile_ends_it_at_once),
        cmocka_unit_test(who_looks_late_each_time_still_misses_one),
        cmocka_unit_test(lost_notes_are_put_again),
        cmocka_unit_test(who_has_left_is_waited_for_no_more),
        cmocka_unit_test(who_is_away_from_leased_work_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}

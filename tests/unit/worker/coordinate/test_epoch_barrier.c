/* Goal    whoever is killed or stands still, and whenever, the first server too: nobody waits for ever, all stop after the same epoch,
 *         which is that of an undisturbed training; each epoch is judged once, by weights that nobody was changing, and those that are
 *         kept are the best ones.
 * Method  worker/coordinate/epoch_barrier.c, decision.c, peers.c and telemetry/progress.c as they are, over a world (world.h) whose
 *         server has notes and a register; pushes and evaluations are made up: the loss of an epoch is in a list. A seed decides
 *         workers, list, rule, order, and who is killed or held up at which step. A killed worker is started again; beside one that is
 *         held up another process of it starts. What is set in the register is checked as it is set.
 *         DP_TEST_SEED=N runs one, DP_TEST_SEEDS=N so many. */
#include "tests/lib/test.h"

#include "common/base/log.h"
#include "tests/lib/timeouts.h"
#include "tests/unit/worker/coordinate/barrier_leaver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct life *life(void)
{
    return world_here()->own;
}

/* ms: in some runs half of the time hardly any. */
static uint64_t short_or(const struct run *run, uint64_t most)
{
    return 1 + world_random(run->world, run->hasty && world_random(run->world, 2) ? 20 : most);
}

/* ---- what a worker does at the barrier */

static enum dp_status part(void *context, enum dp_peers_kind kind, uint32_t worker, uint32_t epoch,
                           void **bytes, size_t *size, struct dp_error *err)
{
    const struct dp_epoch_barrier *b = context;
    struct run *run = life()->trainee->run;
    uint64_t span[2] = {run->pushed, 0};
    for (int i = 0; i < 3; i++) {
        uint64_t slow = b->peers->job->worker > 0 ? run->scan_ms : 0;
        if (!world_step(world_here(), slow ? slow : short_or(run, 900)))
            return dp_fail(err, DP_STOPPING, "killed");
        dp_progress_tick(b->peers->progress);
    }
    span[1] = run->pushed;
    *bytes = malloc(*size = sizeof span);
    if (!*bytes)
        return DP_NOMEM;
    memcpy(*bytes, span, sizeof span);
    return DP_OK;
}

static enum dp_status merge(void *context, enum dp_peers_kind kind, uint32_t epoch,
                            const struct dp_shared_note *parts, struct dp_figures *out, struct dp_error *err)
{
    const struct run *run = life()->trainee->run;
    uint64_t span[2];
    life()->mixed = false;
    life()->at = leaver_due(run, epoch);
    for (uint32_t w = 0; w < run->workers; w++) {
        if (parts[w].size != sizeof span)
            return dp_fail(err, DP_DATA, "a part has %zu bytes", parts[w].size);
        memcpy(span, parts[w].bytes, sizeof span);
        life()->mixed |= span[0] != life()->at || span[1] != life()->at;
    }
    const double long_text = 1.0 / 3;
    double loss = run->loss[epoch - 1];
    *out = (struct dp_figures){.examples = 1,
                               .loss = kind == DP_PEERS_TEST ? 2 * loss : loss,
                               .accuracy = long_text,
                               .auc = long_text,
                               .rmse = long_text,
                               .hr10 = long_text,
                               .ndcg10 = long_text};
    return DP_OK;
}

/* As shards do: rows that were pushed to since are refused. */
static enum dp_status keep(void *context, uint32_t epoch, struct dp_early_stop *state, struct dp_error *err)
{
    struct run *run = life()->trainee->run;
    if (!world_step(world_here(), short_or(run, 300)))
        return dp_fail(err, DP_STOPPING, "killed");
    if (run->pushed == leaver_due(run, epoch)) {
        run->kept[epoch] = true;
        state->kept = epoch;
    }
    return DP_OK;
}

/* ---- what is set, and fetched */

static void fetched(struct world_seat *seat, const char *name, const void *bytes, size_t size)
{
    struct run *run = ((struct trainee *)seat->context)->run;
    run->fetched += strstr(name, "/part/") != NULL;
}

static bool is_loss(const struct dp_tested *tested, double loss)
{
    return tested->known && tested->figures.loss == loss;
}

static void decided(struct world_seat *seat, const char *name, const void *bytes, size_t size)
{
    struct run *run = ((struct trainee *)seat->context)->run;
    struct dp_decision next;
    const struct dp_early_stop *s = &next.state, *before = &run->decided.state;
    if (dp_decision_init(&next, run->epochs, run->workers, NULL) != DP_OK ||
        dp_decision_unpack(bytes, size, &next, NULL) != DP_OK) {
        world_fail(run->world, "%s is no decision: %.*s", name, (int)size, (const char *)bytes);
        return;
    }
    if (s->epoch == before->epoch + 1 && (life()->mixed || life()->at != run->pushed))
        world_fail(run->world, "epoch %u is judged by weights that somebody was changing", s->epoch);
    else if (s->epoch != before->epoch && s->epoch != before->epoch + 1)
        world_fail(run->world, "epoch %u is judged behind epoch %u", s->epoch, before->epoch);
    else if (s->epoch == before->epoch && (s->why != before->why || s->best_epoch != before->best_epoch))
        world_fail(run->world, "epoch %u is judged a second time", s->epoch);
    else if (next.resting > s->epoch && run->pushed != leaver_due(run, next.resting))
        world_fail(run->world, "all rest after epoch %u, and have pushed %llu times", next.resting,
                   (unsigned long long)run->pushed);
    else if (s->epoch > before->epoch && s->kept != s->best_epoch)
        world_fail(run->world, "epoch %u is the best, the weights of epoch %u are kept", s->best_epoch,
                   s->kept);
    else if (s->kept > 0 && !run->kept[s->kept])
        world_fail(run->world, "the weights of epoch %u are not kept", s->kept);
    for (uint32_t e = run->epochs == LONG ? next.from : 1; e <= before->epoch; e++)
        if (!next.figures[e - 1].known || next.figures[e - 1].figures.loss != run->loss[e - 1])
            world_fail(run->world, "after epoch %u the figures of epoch %u are lost", s->epoch, e);
    if (run->tests && s->epoch > 0 && !is_loss(&next.test_last, 2 * run->loss[s->epoch - 1]))
        world_fail(run->world, "the test set's figures of epoch %u are lost", s->epoch);
    if (run->tests && s->kept > 0 && !is_loss(&next.test_kept, 2 * run->loss[s->kept - 1]))
        world_fail(run->world, "the test set's figures of epoch %u, which is kept, are lost", s->kept);
    dp_decision_clear(&run->decided);
    run->decided = next;
}

/* ---- a worker's process, in the order of train.c */

/* One that stood still sends pushes which the servers have: they count once. */
static enum dp_status epoch_of(struct dp_progress *progress, uint32_t e, struct dp_error *err)
{
    struct trainee *r = life()->trainee;
    progress->epoch = e + 1;
    progress->state = "training";
    for (uint32_t push = r->ended == e ? r->done : 0; push < r->pushes; push++) {
        dp_progress_tick(progress);
        if (!world_step(world_here(), short_or(r->run, r->run->push_ms)))
            return dp_fail(err, DP_STOPPING, "killed");
        if (r->ended != e || r->done != push)
            continue;
        r->run->pushed++;
        if (++r->done == r->pushes)
            r->ended++, r->done = 0;
    }
    return DP_OK;
}

static enum dp_status finish(struct dp_peers *peers, struct dp_error *err)
{
    const struct trainee *r = life()->trainee;
    struct dp_shared_note trained[WORKERS] = {{0}};
    enum dp_status st = dp_peers_reach(peers, DP_PEERS_TRAINED, r->stopped, "yes", 3, err);
    dp_progress_enter(peers->progress, "waiting");
    if (st == DP_OK && peers->job->worker != 0)
        st = dp_peers_wait_first(peers, err);
    else if (st == DP_OK)
        st = dp_peers_collect(peers, DP_PEERS_TRAINED, r->stopped, trained, err);
    dp_peers_clear(trained, WORKERS);
    return st;
}

static enum dp_status train(struct dp_job *job, struct dp_peers *peers, struct dp_epoch_barrier *b,
                            struct dp_error *err)
{
    struct trainee *r = life()->trainee;
    uint32_t stopped = 0;
    enum dp_status st = dp_peers_open(peers, job, peers->progress, err);
    dp_progress_enter(peers->progress, "reading");
    if (st == DP_OK && !world_step(world_here(), short_or(r->run, 2000)))
        return dp_fail(err, DP_STOPPING, "killed");
    uint32_t e = r->ended, begun = e + (r->done > 0);
    if (st == DP_OK && leaver_comes_back(r)) {
        leaver_come_back(r);
        e = r->ended;
    }
    bool away = r->run->back && job->worker == r->run->leaver;
    if (st == DP_OK)
        st = dp_epoch_barrier_open(b, r->run->epochs, away ? 0 : e, away ? 0 : begun, err);
    /* As dp_evaluation_begin. */
    if (st == DP_OK && away && b->decision.state.why != DP_EARLY_STOP_NO)
        stopped = b->decision.state.epoch;
    for (uint32_t k = away ? b->decision.state.epoch + 1 : e; st == DP_OK && !stopped && k > 0 && k <= e;
         k++) {
        st = dp_epoch_barrier_wait(b, k, err);
        stopped = st == DP_OK && dp_epoch_barrier_stops(b, k) ? k : 0;
    }
    while (st == DP_OK && e < r->run->epochs && !stopped) {
        st = epoch_of(peers->progress, e++, err);
        if (st == DP_OK)
            st = dp_epoch_barrier_wait(b, e, err);
        stopped = st == DP_OK && dp_epoch_barrier_stops(b, e) ? e : 0;
    }
    if (st != DP_OK)
        return st;
    r->stopped = stopped ? stopped : r->run->epochs;
    return finish(peers, err);
}

static void tell_alive(void *progress)
{
    dp_progress_tick(progress);
}

static void process(struct world_seat *seat)
{
    struct life mine = {.trainee = seat->context};
    struct run *run = mine.trainee->run;
    struct dp_error err = {0};
    struct dp_progress progress;
    struct dp_peers peers = {.progress = &progress};
    struct dp_epoch_barrier barrier = {
        .peers = &peers, .rule = run->rule, .ops = {part, merge, keep, run->tests}, .context = &barrier};
    const struct dp_absence absence = {leaver_look, leaver_is_gone, leaver_recheck, run};
    struct dp_job job = {.cluster = &run->cluster,
                         .worker = seat->number % WORKERS,
                         .stop = &run->never,
                         .clock = world_clock(seat),
                         .shared = world_shared(),
                         .client = (struct dp_client *)seat,
                         .alive = tell_alive,
                         .alive_of = &progress,
                         .absence = run->leaver ? &absence : NULL,
                         .process = ++run->processes};
    seat->own = &mine;
    if (run->left_ns > 0 && seat->number % WORKERS == run->leaver && run->brings == 0)
        return;
    dp_progress_init(&progress, &job, 0);
    enum dp_status st = train(&job, &peers, &barrier, &err);
    if (st == DP_OK)
        dp_progress_enter(&progress, "done");
    mine.trainee->over |= st == DP_OK && !seat->killed;
    if (st != DP_OK && !seat->killed &&
        !mine.trainee->over) /* an earlier one may come too late for others' notes */
        world_fail(run->world, "worker %u: %s", seat->number % WORKERS, err.text);
    dp_epoch_barrier_close(&barrier);
    dp_peers_close(&peers);
}

/* ---- one seed */

/* An earlier process stands still for long, and a new one begins beside it, in the other seat. */
static void hold(struct run *run, uint32_t worker)
{
    uint32_t held = world_runs(run->world, worker) ? worker : worker + WORKERS,
             other = held == worker ? worker + WORKERS : worker;
    if (!world_runs(run->world, held) || world_runs(run->world, other))
        return;
    world_hold(run->world, held, 1000 + world_random(run->world, 60000));
    world_start(run->world, other, short_or(run, 3000));
}

/* What an earlier process puts late lies over what is newer. */
static void rewind_notes(struct run *run, uint32_t worker)
{
    static const unsigned char stage[4 * DP_PEERS_KINDS] = {1};
    static const unsigned char old[4 + 16] = {1};
    char name[64];
    (void)snprintf(name, sizeof name, "run/1/stage/0/%u.", worker);
    if (world_random(run->world, 2)) /* it is put behind the part */
        world_put(run->world, name, stage, sizeof stage);
    (void)snprintf(name, sizeof name, "run/1/part/%u.", worker);
    world_put(run->world, name, old, sizeof old);
}

static void strike(void *context, struct world *world, uint64_t step)
{
    struct run *run = context;
    if (world_has_ended(world, 0) && world_has_ended(world, WORKERS)) /* the report is written */
        return;
    for (uint32_t b = 0; b < run->blows; b++) {
        const struct blow *blow = &run->blow[b];
        if (blow->step != step)
            continue;
        if (blow->kind == LOSES_NOTES)
            world_lose_notes(world);
        if (blow->kind == TAKES_AWAY)
            world_server_away(world, 1 + world_random(world, 12000));
        for (uint32_t s = 0; s < SEATS; s++) {
            if (!(blow->workers >> s % WORKERS & 1) || s % WORKERS >= run->workers)
                continue;
            if (blow->kind == KILLS || blow->kind == LOSES_NOTES)
                world_kill(world, s, short_or(run, 3000));
            else if (blow->kind == HOLDS && s < WORKERS)
                hold(run, s);
            else if (blow->kind == REWINDS && s < WORKERS && run->decided.state.epoch > 0)
                rewind_notes(run, s);
        }
    }
}

static struct run *begin_long(uint64_t seed, uint32_t epochs)
{
    struct run *run = calloc(1, sizeof *run);
    void *contexts[SEATS];
    assert_non_null(run);
    run->world = world_new(seed, 1, process, (void *[]){NULL}); /* for its random numbers */
    struct world *draws = run->world;
    run->workers = 1 + (uint32_t)world_random(draws, WORKERS);
    run->cluster.training = (struct dp_cluster_training){
        .workers = run->workers, .epochs = epochs, .run = 1, .timeout_ms = 30000, .consistency = "async"};
    run->hasty = world_random(draws, 2);
    run->push_ms = short_or(run, 600);
    run->rule.patience = (uint32_t)world_random(draws, 4);
    run->rule.has_goal = world_random(draws, 3) == 0;
    run->rule.goal.value = 2;
    run->epochs = epochs;
    run->tests = seed % 2;
    for (uint32_t e = 0; e < epochs; e++)
        run->loss[e] = 1 + (double)world_random(draws, 1000) / 100;
    for (uint32_t s = 0; s < SEATS; s++)
        contexts[s] = &run->trainee[s % WORKERS];
    for (uint32_t w = 0; w < run->workers; w++) {
        run->trainee[w] = (struct trainee){.run = run, .pushes = 1 + (uint32_t)world_random(draws, 5)};
        if (w > 0 && world_random(draws, 8) == 0)
            run->trainee[w].pushes = 0;
        run->each += run->trainee[w].pushes;
    }
    world_free(draws);
    run->world = world_new(seed, SEATS, process, contexts);
    for (uint32_t s = run->workers; s < SEATS; s++)
        world_idle(run->world, s);
    world_watch(run->world, fetched, decided);
    return run;
}

static struct run *begin(uint64_t seed)
{
    return begin_long(seed, EPOCHS);
}

static void end(struct run *run)
{
    dp_decision_clear(&run->decided);
    world_free(run->world);
    free(run);
}

/* Bursts, as whole machines go, and what falls into the work after one. */
static void draw_blows(struct run *run, uint64_t seed, uint64_t steps)
{
    struct world *draws = world_new(~seed, 1, process, (void *[]){NULL});
    uint64_t step = 0;
    run->blows = 1 + (uint32_t)world_random(draws, BLOWS_MAX);
    for (uint32_t b = 0; b < run->blows; b++) {
        step = b % 3 == 0 || world_random(draws, 2) ? world_random(draws, steps + steps / 4)
                                                    : step + world_random(draws, 60);
        run->blow[b] = (struct blow){.step = step,
                                     .workers = (uint32_t)world_random(draws, 1u << run->workers),
                                     .kind = (enum blow_kind)world_random(draws, BLOW_KINDS)};
        if (world_random(draws, 4) == 0)
            run->blow[b].workers = UINT32_MAX;
    }
    world_free(draws);
}

static uint32_t expected(const struct run *run)
{
    struct dp_early_stop state = {0};
    while (state.epoch < run->epochs && state.why == DP_EARLY_STOP_NO) {
        struct dp_figures figures = {.examples = 1, .loss = run->loss[state.epoch]};
        assert_int_equal(dp_early_stop_judge(&run->rule, &state, &figures, NULL), DP_OK);
    }
    return state.epoch;
}

static void check(struct run *run, uint64_t seed, bool all)
{
    const char *failure = world_failure(run->world);
    uint32_t want = expected(run);
    if (failure)
        fail_msg("seed %llu: %s", (unsigned long long)seed, failure);
    if (!all)
        fail_msg("seed %llu: they wait for ever: DP_TEST_SEED=%llu runs it again", (unsigned long long)seed,
                 (unsigned long long)seed);
    for (uint32_t w = 0; w < run->workers; w++) {
        const struct trainee *r = &run->trainee[w];
        bool left = run->left_ns > 0 && w == run->leaver;
        if (left && run->brings == 0)
            continue;
        if (r->stopped != want || (r->pushes && (left ? r->ended < want : r->ended != want)) || r->done)
            fail_msg("seed %llu: worker %u stops after epoch %u, %u is right", (unsigned long long)seed, w,
                     r->stopped, want);
    }
    assert_int_equal(run->decided.state.epoch, want);
}

static uint64_t run_seed(uint64_t seed, uint64_t steps)
{
    struct run *run = begin(seed);
    if (steps)
        draw_blows(run, seed, steps);
    check(run, seed, world_run(run->world, FOR_EVER, strike, run));
    steps = world_steps(run->world);
    end(run);
    return steps;
}

static void nobody_waits_and_all_stop_together(void **state)
{
    const char *one = getenv("DP_TEST_SEED"), *many = getenv("DP_TEST_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, last = one    ? first
                                                               : many ? strtoull(many, NULL, 10)
                                                                      : DP_SEEDS(600);
    for (uint64_t seed = first; seed <= last; seed++)
        (void)run_seed(seed, run_seed(seed, 0));
}

/* Megabytes each: while some evaluate, those who wait fetch none. */
static void parts_are_fetched_once(void **state)
{
    struct run *run = NULL;
    uint64_t seed = 0;
    do {
        if (run)
            end(run);
        run = begin(++seed);
    } while (run->workers < 2);
    run->rule = (struct dp_early_stop_rule){0};
    run->scan_ms = 20000;
    check(run, seed, world_run(run->world, FOR_EVER, NULL, NULL));
    assert_int_equal(run->fetched, EPOCHS * run->workers);
    end(run);
}

/* Who was to judge, and has given its part, never comes back: another one does. */
struct gone {
    struct run *run;
    uint32_t judges;
    bool done;
};

static void take_decider(void *context, struct world *world, uint64_t step)
{
    struct gone *gone = context;
    struct dp_decision d;
    size_t size = 0;
    const void *bytes = world_value(world, "run/1/verdict", &size, NULL);
    if (gone->done || !bytes || dp_decision_init(&d, gone->run->epochs, gone->run->workers, NULL) != DP_OK)
        return;
    bool rests = dp_decision_unpack(bytes, size, &d, NULL) == DP_OK && d.resting == d.state.epoch + 1;
    char name[64];
    (void)snprintf(name, sizeof name, "run/1/stage/0/%u.", d.decider);
    const unsigned char *stage = world_note(world, name, &size);
    if (rests && stage && stage[4 * DP_PEERS_PART] == d.resting && world_runs(world, d.decider)) {
        gone->done = true;
        gone->judges = d.decider;
        world_hold(world, d.decider, 200000); /* longer than anybody waits for it */
        world_start(world, d.decider + WORKERS, 45000);
    }
    dp_decision_clear(&d);
}

static void another_judges_in_place_of_one_that_is_gone(void **state)
{
    uint32_t done = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct run *run = begin(seed);
        struct gone gone = {.run = run};
        bool more = run->workers > 1;
        run->scan_ms = 2000;
        if (more)
            check(run, seed, world_run(run->world, FOR_EVER, take_decider, &gone));
        done += gone.done && run->decided.state.epoch > 1;
        end(run);
    }
    assert_true(done > 10);
}

/* Whenever it dies: before its part, behind it, or as the decider. Its part is made up for by whoever judges. */
static void who_has_left_is_not_waited_for(void **state)
{
    uint32_t left = 0;
    for (uint64_t seed = 1; seed <= DP_SEEDS(300); seed++) {
        struct run *run = begin(seed);
        run->leaver = 1 + (uint32_t)(seed % (WORKERS - 1));
        run->leaver_at = seed * 7 % 400;
        if (run->leaver < run->workers) {
            run->each -= run->trainee[run->leaver].pushes;
            run->trainee[run->leaver].pushes = 0;
            check(run, seed, world_run(run->world, FOR_EVER, leaver_take, run));
            left += run->left_ns > 0;
        }
        end(run);
    }
    assert_true(left > DP_SEEDS(300) / 4); /* about half of them */
}

/* From an epoch that nobody has begun: it is at the barriers before it, too, and waited for at those behind. Planted: it is not asked
 * whether who is gone came back; it is asked before all others are seen to have ended the epoch; it begins with the barrier of its epoch. */
static void who_comes_back_is_waited_for(void **state)
{
    uint32_t back = 0, early = 0;
    for (uint64_t seed = 1; seed <= DP_SEEDS(900); seed++) {
        struct run *run = begin(seed);
        run->leaver = 1 + (uint32_t)(seed % (WORKERS - 1));
        run->leaver_at = seed * 7 % 400;
        if (run->leaver < run->workers) {
            run->brings = 1 + (uint32_t)(seed % 3);
            run->each -= run->trainee[run->leaver].pushes;
            run->trainee[run->leaver].pushes = 0;
            check(run, seed, world_run(run->world, FOR_EVER, leaver_take, run));
            back += run->back;
            early += run->back && run->back_at < run->decided.state.epoch;
        }
        end(run);
    }
    assert_true(back > DP_SEEDS(900) / 4);
    assert_true(early > back / 4);
}

static uint32_t warned;

void __wrap_dp_log(enum dp_log_level level, const char *format, ...);
void __wrap_dp_log(enum dp_log_level level, const char *format, ...)
{
    warned += strstr(format, "no longer fit") != NULL;
}

/* Worker 0 is told once that the first figures have left the decision, whoever decided then. */
static void what_leaves_a_long_training_is_told(void **state)
{
    bool alone = false, others = false;
    for (uint64_t seed = 1; !alone || !others; seed++) {
        struct run *run = begin_long(seed, LONG);
        bool *seen = run->workers == 1 ? &alone : &others;
        if (!*seen) {
            run->rule = (struct dp_early_stop_rule){0};
            warned = 0;
            check(run, seed, world_run(run->world, UINT64_MAX, NULL, NULL));
            assert_true(run->decided.from > 1);
            assert_int_equal(warned, 1);
            *seen = true;
        }
        end(run);
    }
}

int main(void)
{
    dp_log_start("test", DP_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_and_all_stop_together),
        cmocka_unit_test(parts_are_fetched_once),
        cmocka_unit_test(another_judges_in_place_of_one_that_is_gone),
        cmocka_unit_test(who_has_left_is_not_waited_for),
        cmocka_unit_test(who_comes_back_is_waited_for),
        cmocka_unit_test(what_leaves_a_long_training_is_told),
    };
    return cmocka_run_group_tests_name("epoch_barrier", tests, NULL, NULL);
}

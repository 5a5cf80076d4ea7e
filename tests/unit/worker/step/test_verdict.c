/* Goal    whoever is killed, and whenever, the first server too: nobody waits for ever, all stop after the same epoch, what was
 *         judged are weights that nobody was changing, and a training whose figures were not lost ends where an undisturbed one does.
 * Method  worker/verdict.c, evaluate.c, peers.c and progress.c as they are, over a world of notes and turns (world.h); pushes,
 *         scans and figures are made up: the loss of an epoch is in a list. A seed decides workers, list, rule, order, and who is
 *         killed at which step. A killed worker is started again, knows what the servers keep (its pushes), and reads the notes.
 *         DP_TEST_SEED=N runs one, DP_TEST_SEEDS=N so many. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "tests/unit/worker/step/world.h"
#include "worker/peers.h"
#include "worker/remember.h"
#include "worker/scan.h"
#include "worker/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS        UINT64_C(1000000)
#define EPOCHS    7u
#define WORKERS   4u
#define KILLS_MAX 12u
#define FOR_EVER  (900 * 1000 * MS) /* of the world's time; an undisturbed run takes a minute */

struct blow {
    uint64_t step;
    uint32_t workers; /* bits: who is killed */
    bool server;      /* it loses its notes */
};

struct trainee {
    struct run *run;
    uint32_t pushes;      /* of an epoch: 0 for a worker without minibatches */
    uint32_t ended, done; /* as the servers keep it: epochs, and pushes of the next */
    uint32_t stopped;     /* the epoch that it stopped after last; 0: not yet */
    uint64_t from, to;    /* pushes of all before and behind its last scan */
    struct dp_stop state; /* at its end */
    struct dp_tested tested[EPOCHS];
};

struct run {
    struct dp_cluster cluster;
    struct world *world;
    atomic_int never;
    struct dp_stop_rule rule;
    double loss[EPOCHS];
    uint32_t workers, each; /* pushes of all in an epoch */
    uint32_t kept;          /* the last epoch whose figures were put */
    uint64_t pushed, push_ms;
    bool hasty;
    uint64_t scan_ms;   /* a third of one, by others than worker 0; 0: by chance */
    uint64_t old_parts; /* fetched whole when a later epoch's were wanted */
    uint32_t blows;
    struct blow blow[KILLS_MAX];
    struct trainee trainee[WORKERS];
};

/* ---- what is made up */

struct dp_metrics {
    uint64_t at; /* pushes of all: of every part the same */
    bool some;
};

/* ms: in some runs half of the time hardly any. */
static uint64_t short_or(const struct run *run, uint64_t most)
{
    return 1 + world_random(run->world, run->hasty && world_random(run->world, 2) ? 20 : most);
}

static struct trainee *me(void)
{
    return world_here()->context;
}

uint32_t __wrap_dp_dataset_lists(const struct dp_dataset *dataset);
uint32_t __wrap_dp_dataset_lists(const struct dp_dataset *dataset)
{
    (void)dataset;
    return 0;
}

const struct dp_rank_set *__wrap_dp_dataset_ranked(const struct dp_dataset *dataset);
const struct dp_rank_set *__wrap_dp_dataset_ranked(const struct dp_dataset *dataset)
{
    (void)dataset;
    return NULL;
}

enum dp_status __wrap_dp_scan(const struct dp_scan *scan, struct dp_error *err);
enum dp_status __wrap_dp_scan(const struct dp_scan *scan, struct dp_error *err)
{
    struct world_seat *seat = world_here();
    me()->from = me()->run->pushed;
    for (int i = 0; i < 3; i++) {
        uint64_t slow = seat->number > 0 ? me()->run->scan_ms : 0;
        if (!world_step(seat, slow ? slow : short_or(me()->run, 900)))
            return dp_fail(err, DP_STOPPING, "killed");
        dp_progress_tick(scan->progress);
    }
    me()->to = me()->run->pushed;
    return DP_OK;
}

enum dp_status __wrap_dp_metrics_new(enum dp_labels labels, uint32_t classes, uint32_t lists,
                                     struct dp_metrics **out, struct dp_error *err);
enum dp_status __wrap_dp_metrics_new(enum dp_labels labels, uint32_t classes, uint32_t lists,
                                     struct dp_metrics **out, struct dp_error *err)
{
    (void)labels, (void)classes, (void)lists, (void)err;
    *out = calloc(1, sizeof **out);
    return *out ? DP_OK : DP_NOMEM;
}

void __wrap_dp_metrics_free(struct dp_metrics **metrics);
void __wrap_dp_metrics_free(struct dp_metrics **metrics)
{
    free(*metrics);
    *metrics = NULL;
}

enum dp_status __wrap_dp_metrics_pack(const struct dp_metrics *metrics, void **bytes, size_t *size,
                                      struct dp_error *err);
enum dp_status __wrap_dp_metrics_pack(const struct dp_metrics *metrics, void **bytes, size_t *size,
                                      struct dp_error *err)
{
    uint64_t part[2] = {me()->from, me()->to};
    (void)metrics, (void)err;
    *bytes = malloc(*size = sizeof part);
    if (!*bytes)
        return DP_NOMEM;
    memcpy(*bytes, part, sizeof part);
    return DP_OK;
}

enum dp_status __wrap_dp_metrics_merge(struct dp_metrics *metrics, const void *bytes, size_t size,
                                       struct dp_error *err);
enum dp_status __wrap_dp_metrics_merge(struct dp_metrics *metrics, const void *bytes, size_t size,
                                       struct dp_error *err)
{
    uint64_t part[2] = {0, 1};
    (void)err;
    if (size == sizeof part)
        memcpy(part, bytes, sizeof part);
    if (part[0] != part[1] || (metrics->some && metrics->at != part[0]))
        world_fail(world_here()->world, "judged weights that somebody was changing");
    metrics->at = part[0];
    metrics->some = true;
    return DP_OK;
}

enum dp_status __wrap_dp_metrics_figures(const struct dp_metrics *metrics, struct dp_figures *out,
                                         struct dp_error *err);
enum dp_status __wrap_dp_metrics_figures(const struct dp_metrics *metrics, struct dp_figures *out,
                                         struct dp_error *err)
{
    const struct run *run = me()->run;
    const double none = (double)NAN;
    (void)err;
    if (metrics->at == 0 || metrics->at % run->each != 0 || metrics->at / run->each > EPOCHS) {
        world_fail(run->world, "judged weights of %llu pushes", (unsigned long long)metrics->at);
        return dp_fail(err, DP_DATA, "no epoch");
    }
    *out = (struct dp_figures){.examples = 1,
                               .loss = run->loss[metrics->at / run->each - 1],
                               .accuracy = none,
                               .auc = none,
                               .rmse = none,
                               .hr10 = none,
                               .ndcg10 = none};
    return DP_OK;
}

/* Every part of an epoch that is over is asked for in vain. A verdict whose figures are not kept would leave none in the report. */
static void watch(struct world_seat *seat, const char *name, const void *bytes, size_t size)
{
    struct trainee *trainee = seat->context;
    struct dp_stop said;
    uint32_t epoch = 0;
    if (strstr(name, "/verdict/") && dp_stop_unpack(bytes, size, &said, NULL) == DP_OK &&
        said.judged > trainee->run->kept)
        world_fail(seat->world, "epoch %u is judged, and its figures are not kept", said.judged);
    if (!strstr(name, "/check/") || size <= sizeof epoch)
        return;
    memcpy(&epoch, bytes, sizeof epoch);
    trainee->run->old_parts += epoch < trainee->ended;
}

/* ---- a worker's process, in the order of train.c */

static enum dp_status epoch_of(struct world_seat *seat, struct dp_progress *progress, uint32_t e,
                               struct dp_error *err)
{
    struct trainee *r = seat->context;
    progress->epoch = e + 1;
    progress->state = "training";
    while (r->ended == e && r->done < r->pushes) {
        dp_progress_tick(progress);
        if (!world_step(seat, short_or(r->run, r->run->push_ms)))
            return dp_fail(err, DP_STOPPING, "killed");
        r->run->pushed++;
        if (++r->done == r->pushes)
            r->ended++, r->done = 0;
    }
    return DP_OK;
}

static enum dp_status finish(struct dp_job *job, struct dp_progress *progress, struct dp_verdict *v,
                             struct dp_error *err)
{
    const struct trainee *r = world_here()->context;
    struct dp_note trained[WORKERS] = {{0}};
    enum dp_status st = dp_peers_keep(job, "trained", "yes", 3, err);
    dp_progress_enter(progress, "waiting");
    if (st == DP_OK)
        st = dp_peers_wait(job, progress, "trained", trained, err);
    dp_peers_clear(trained, job->cluster->training.workers);
    if (st == DP_OK)
        st = dp_verdict_finish(v, r->stopped, r->tested[r->stopped - 1].known, err);
    if (st == DP_OK && job->worker != 0)
        st = dp_peers_wait_first(job, progress, err);
    return st;
}

static enum dp_status train(struct world_seat *seat, struct dp_job *job, struct dp_progress *progress,
                            struct dp_verdict *v, struct dp_error *err)
{
    struct trainee *r = seat->context;
    struct dp_note before = {0};
    enum dp_status st = dp_peers_one(job, "progress", job->worker, &before, err);
    uint32_t begun = dp_peers_epoch(&before), e = r->ended, stopped = 0;
    dp_peers_clear(&before, 1);
    if (st == DP_OK)
        st = dp_peers_begin(job, err);
    dp_progress_enter(progress, "reading");
    if (st == DP_OK && !world_step(seat, short_or(r->run, 2000)))
        return dp_fail(err, DP_STOPPING, "killed");
    if (st == DP_OK)
        st = dp_peers_keep(job, "plan", "same", 4, err);
    uint32_t pushed = r->ended + (r->done > 0);
    if (st == DP_OK)
        st = dp_verdict_begin(v, e, pushed > begun ? pushed : begun, err);
    if (st == DP_OK && e > 0 && r->done == 0) {
        st = dp_verdict_epoch(v, e, err);
        stopped = dp_verdict_stops(v, e) ? e : 0;
    }
    for (; st == DP_OK && e < EPOCHS && !stopped; e++) {
        st = epoch_of(seat, progress, e, err);
        if (st == DP_OK)
            st = dp_verdict_epoch(v, e + 1, err);
        stopped = st == DP_OK && dp_verdict_stops(v, e + 1) ? e + 1 : 0;
    }
    if (st != DP_OK)
        return st;
    r->stopped = stopped ? stopped : EPOCHS;
    return finish(job, progress, v, err);
}

static void keep_figures(void *context, uint32_t epoch, const struct dp_figures *figures,
                         const struct dp_stop *state)
{
    struct trainee *r = world_here()->context;
    (void)state;
    r->tested[epoch - 1] = (struct dp_tested){.known = true, .figures = *figures};
    dp_remember_tested(context, r->tested, EPOCHS);
    if (!world_here()->killed && epoch > r->run->kept)
        r->run->kept = epoch;
}

static void process(struct world_seat *seat)
{
    struct trainee *r = seat->context;
    struct dp_error err = {0};
    struct dp_job job = {.cluster = &r->run->cluster,
                         .worker = seat->number,
                         .stop = &r->run->never,
                         .clock = world_clock(seat),
                         .client = (struct dp_client *)seat};
    struct dp_progress progress;
    struct dp_worker_figures figures;
    dp_progress_init(&progress, &job, 0);
    job.progress = &progress;
    memset(r->tested, 0, sizeof r->tested);
    if (dp_worker_figures_init(&figures, seat->number, EPOCHS, &err) != DP_OK)
        world_fail(seat->world, "%s", err.text);
    struct dp_remember remember = {0};
    const struct dp_position position = {0};
    dp_remember_get(&remember, &job,
                    &(struct dp_remembered){.position = &position, .figures = &figures, .tested = r->tested});
    struct dp_verdict verdict = {.job = &job,
                                 .progress = &progress,
                                 .data = (const struct dp_dataset *)seat, /* nobody looks into it */
                                 .rule = r->run->rule,
                                 .judged = keep_figures,
                                 .context = &job};
    dp_worker_figures_clear(&figures);
    enum dp_status st = train(seat, &job, &progress, &verdict, &err);
    if (st == DP_OK)
        dp_progress_enter(&progress, "done");
    else if (!seat->killed)
        world_fail(seat->world, "worker %u: %s", seat->number, err.text);
    r->state = verdict.state;
    dp_peers_forget(&job);
}

/* ---- one seed */

static void strike(void *context, struct world *world, uint64_t step)
{
    const struct run *run = context;
    if (world_has_ended(world, 0)) /* the report is written: `run` has ended too */
        return;
    for (uint32_t b = 0; b < run->blows; b++) {
        if (run->blow[b].step != step)
            continue;
        for (uint32_t w = 0; w < run->workers; w++)
            if (run->blow[b].workers >> w & 1)
                world_kill(world, w, short_or(run, 3000));
        if (run->blow[b].server)
            world_lose_notes(world);
    }
}

static void begin(struct run *run, uint64_t seed)
{
    void *contexts[WORKERS];
    run->world = world_new(seed, 1, process, (void *[]){NULL}); /* for its random numbers */
    struct world *draws = run->world;
    run->workers = 1 + (uint32_t)world_random(draws, WORKERS);
    run->cluster.training = (struct dp_cluster_training){
        .workers = run->workers, .epochs = EPOCHS, .run = 1, .timeout_ms = 30000};
    run->hasty = world_random(draws, 2);
    run->push_ms = short_or(run, 600);
    run->rule.patience = (uint32_t)world_random(draws, 4);
    run->rule.has_goal = world_random(draws, 3) == 0;
    run->rule.goal.value = 2;
    for (uint32_t e = 0; e < EPOCHS; e++)
        run->loss[e] = 1 + (double)world_random(draws, 1000) / 100;
    for (uint32_t w = 0; w < run->workers; w++) {
        contexts[w] = &run->trainee[w];
        run->trainee[w] = (struct trainee){.run = run, .pushes = 1 + (uint32_t)world_random(draws, 5)};
        if (w > 0 && world_random(draws, 8) == 0)
            run->trainee[w].pushes = 0;
        run->each += run->trainee[w].pushes;
    }
    world_free(draws);
    run->world = world_new(seed, run->workers, process, contexts);
    world_watch(run->world, watch);
}

/* Bursts, as whole machines go, and what falls into the work after one. */
static void draw_blows(struct run *run, uint64_t seed, uint64_t steps)
{
    struct world *draws = world_new(~seed, 1, process, (void *[]){NULL});
    uint64_t step = 0;
    run->blows = 1 + (uint32_t)world_random(draws, KILLS_MAX);
    for (uint32_t b = 0; b < run->blows; b++) {
        step = b % 3 == 0 || world_random(draws, 2) ? world_random(draws, steps + steps / 4)
                                                    : step + world_random(draws, 60);
        run->blow[b] = (struct blow){.step = step,
                                     .workers = (uint32_t)world_random(draws, 1u << run->workers),
                                     .server = world_random(draws, 2)};
        if (world_random(draws, 4) == 0)
            run->blow[b].workers = UINT32_MAX;
    }
    world_free(draws);
}

static uint32_t expected(const struct run *run)
{
    struct dp_stop state = {0};
    while (state.epoch < EPOCHS && state.why == DP_STOP_NO) {
        struct dp_figures figures = {.examples = 1, .loss = run->loss[state.epoch]};
        assert_int_equal(dp_stop_judge(&run->rule, &state, state.epoch + 1, &figures, NULL), DP_OK);
    }
    return state.epoch;
}

static void check(struct run *run, uint64_t seed, bool all)
{
    const char *failure = world_failure(run->world);
    const struct dp_stop *state = &run->trainee[0].state;
    uint32_t stop = run->trainee[0].stopped, want = expected(run);
    if (failure)
        fail_msg("seed %llu: %s", (unsigned long long)seed, failure);
    if (!all)
        fail_msg("seed %llu: they wait for ever: DP_TEST_SEED=%llu runs it again", (unsigned long long)seed,
                 (unsigned long long)seed);
    for (uint32_t w = 0; w < run->workers; w++) {
        const struct trainee *r = &run->trainee[w];
        if (r->stopped != stop || (r->pushes && (r->ended != stop || r->done)))
            fail_msg("seed %llu: worker %u stops after epoch %u, worker 0 after %u", (unsigned long long)seed,
                     w, r->stopped, stop);
    }
    if (!run->trainee[0].tested[stop - 1].known)
        fail_msg("seed %llu: worker 0 does not know the figures at the end", (unsigned long long)seed);
    if (state->lost ? stop < want : stop != want)
        fail_msg("seed %llu: it ends after epoch %u, %u is right (lost: %u)", (unsigned long long)seed, stop,
                 want, state->lost);
}

/* The steps it took; whether figures were lost into *lost. */
static uint64_t run_seed(uint64_t seed, uint64_t steps, bool *lost)
{
    struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    begin(run, seed);
    if (steps)
        draw_blows(run, seed, steps);
    bool all = world_run(run->world, FOR_EVER, strike, run);
    check(run, seed, all);
    steps = world_steps(run->world);
    *lost = run->trainee[0].state.lost > 0;
    world_free(run->world);
    free(run);
    return steps;
}

static void nobody_waits_and_all_stop_together(void **state)
{
    (void)state;
    const char *one = getenv("DP_TEST_SEED"), *many = getenv("DP_TEST_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, last = one    ? first
                                                               : many ? strtoull(many, NULL, 10)
                                                                      : 600;
    unsigned losses = 0;
    for (uint64_t seed = first; seed <= last; seed++) {
        bool lost;
        uint64_t steps = run_seed(seed, 0, &lost);
        assert_false(lost);
        (void)run_seed(seed, steps, &lost);
        losses += lost;
    }
    print_message("seeds %llu to %llu; in %u all who knew the best figures were killed\n",
                  (unsigned long long)first, (unsigned long long)last, losses);
    assert_true(one || losses > 0);
}

/* While others evaluate, worker 0 looks for their parts every 100 ms; those of the epoch before would be megabytes each time. */
static void parts_that_nobody_wants_are_not_fetched(void **state)
{
    (void)state;
    struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    uint64_t seed = 0;
    do {
        if (run->world)
            world_free(run->world);
        *run = (struct run){0};
        begin(run, ++seed);
    } while (run->workers < 2);
    run->rule = (struct dp_stop_rule){0};
    run->scan_ms = 20000; /* three times: 600 looks */
    check(run, seed, world_run(run->world, FOR_EVER, NULL, NULL));
    assert_in_range(run->old_parts, 0, 30 * EPOCHS * run->workers);
    world_free(run->world);
    free(run);
}

/* Of an earlier process of worker 0 that stood still: its notes of the first epoch come over those of the last one, the moment these are
 * there. */
struct late {
    struct run *run;
    uint32_t last, verdicts, ends; /* how often */
};

static bool of_last(const struct late *late, const char *name, size_t before)
{
    struct dp_stop said;
    size_t size = 0;
    const unsigned char *bytes = world_note(late->run->world, name, &size);
    return bytes && size > before && dp_stop_unpack(bytes + before, size - before, &said, NULL) == DP_OK &&
           said.epoch == late->last;
}

static void put_late(void *context, struct world *world, uint64_t step)
{
    struct late *late = context;
    const struct dp_stop first = {.epoch = 1};
    unsigned char note[4 + DP_STOP_BYTES] = {1};
    (void)step;
    dp_stop_pack(&first, note + 4);
    if (late->verdicts > 0 && of_last(late, "run/1/verdict/0", 0)) {
        late->verdicts--;
        world_put(world, "run/1/verdict/0", note + 4, DP_STOP_BYTES);
    }
    if (late->ends > 0 && of_last(late, "run/1/ended/0", 4)) {
        late->ends--;
        world_put(world, "run/1/ended/0", note, sizeof note);
    }
}

/* Planted: put_newest does nothing; wait_verdict looks at the verdict alone. */
static void older_notes_put_late_keep_nobody_waiting(void **state)
{
    (void)state;
    static const struct late kinds[] = {
        {.verdicts = 1}, {.verdicts = 1, .ends = 1}, {.verdicts = 100000}, {.verdicts = 20, .ends = 20}};
    uint32_t done = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct run *run = calloc(1, sizeof *run);
        assert_non_null(run);
        begin(run, seed);
        struct late late = kinds[seed % (sizeof kinds / sizeof kinds[0])];
        late.run = run;
        late.last = expected(run);
        if (run->workers > 1 && late.last > 1) {
            check(run, seed, world_run(run->world, FOR_EVER, put_late, &late));
            done++;
        }
        world_free(run->world);
        free(run);
    }
    assert_true(done > 100);
}

/* The same, where the older note is older in one of its two numbers only: how many epochs its worker has ended, and the last
 * epoch whose verdict it tells. */
struct half_late {
    struct run *run;
    uint32_t last;     /* epoch */
    uint32_t verdicts; /* kept away from everybody, so often */
    uint32_t ends[2];  /* of worker 0, an older verdict; of worker 1, an older end; how often */
};

static bool ended_note(const struct half_late *late, uint32_t worker, uint32_t *ended, uint32_t *judged)
{
    char name[32];
    size_t size = 0;
    struct dp_stop said;
    (void)snprintf(name, sizeof name, "run/1/ended/%u", worker);
    const unsigned char *bytes = world_note(late->run->world, name, &size);
    if (!bytes || size != 4 + DP_STOP_BYTES || dp_stop_unpack(bytes + 4, DP_STOP_BYTES, &said, NULL) != DP_OK)
        return false;
    *ended = dp_load_u32le(bytes);
    *judged = said.epoch;
    return true;
}

static void put_ended(struct world *world, uint32_t worker, uint32_t ended, uint32_t judged)
{
    char name[32];
    const struct dp_stop before = {.epoch = judged};
    unsigned char note[4 + DP_STOP_BYTES];
    (void)snprintf(name, sizeof name, "run/1/ended/%u", worker);
    dp_store_u32le(note, ended);
    dp_stop_pack(&before, note + 4);
    world_put(world, name, note, sizeof note);
}

static void put_half_late(void *context, struct world *world, uint64_t step)
{
    struct half_late *late = context;
    const struct dp_stop first = {.epoch = 1};
    unsigned char verdict[DP_STOP_BYTES];
    const struct late whole = {.run = late->run, .last = late->last};
    uint32_t ended = 0, judged = 0;
    (void)step;
    if (late->verdicts > 0 && of_last(&whole, "run/1/verdict/0", 0)) {
        late->verdicts--;
        dp_stop_pack(&first, verdict);
        world_put(world, "run/1/verdict/0", verdict, sizeof verdict);
    }
    if (late->ends[0] > 0 && ended_note(late, 0, &ended, &judged) && ended == late->last &&
        judged == late->last) {
        late->ends[0]--;
        put_ended(world, 0, ended, judged - 1);
    }
    if (late->ends[1] > 0 && ended_note(late, 1, &ended, &judged) && ended == late->last &&
        judged == late->last - 1) {
        late->ends[1]--;
        put_ended(world, 1, ended - 1, judged);
    }
}

/* Planted: ended_before wants both numbers to be older. */
static void notes_older_by_half_keep_nobody_waiting(void **state)
{
    (void)state;
    static const struct half_late kinds[] = {
        {.verdicts = 100000, .ends = {1, 0}}, {.ends = {0, 1}}, {.verdicts = 100000, .ends = {5, 5}}};
    uint32_t done = 0;
    for (uint64_t seed = 1; seed <= 90; seed++) {
        struct run *run = calloc(1, sizeof *run);
        assert_non_null(run);
        begin(run, seed);
        struct half_late late = kinds[seed % (sizeof kinds / sizeof kinds[0])];
        late.run = run;
        late.last = expected(run);
        if (run->workers > 1 && late.last > 1) {
            check(run, seed, world_run(run->world, FOR_EVER, put_half_late, &late));
            done += late.ends[0] == 0 && late.ends[1] == 0;
        }
        world_free(run->world);
        free(run);
    }
    assert_true(done > 30);
}

/* When all have trained, and worker 0 knows the figures of the last epoch: it is killed, the first server loses its notes, and others
 * are killed too, who then come back behind that epoch. */
struct last_blow {
    struct run *run;
    uint32_t workers; /* bits */
    bool done;
};

static void strike_last(void *context, struct world *world, uint64_t step)
{
    struct last_blow *blow = context;
    size_t size;
    (void)step;
    if (blow->done || !world_note(world, "run/1/trained/0", &size) || world_has_ended(world, 0))
        return;
    blow->done = true;
    for (uint32_t w = 0; w < blow->run->workers; w++)
        if (blow->workers >> w & 1)
            world_kill(world, w, 1000);
    world_lose_notes(world);
}

/* Planted: dp_verdict_finish gives no part; it does not judge again. */
static void the_last_figures_are_found_again(void **state)
{
    (void)state;
    uint32_t done = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct run *run = calloc(1, sizeof *run);
        assert_non_null(run);
        begin(run, seed);
        struct last_blow blow = {.run = run, .workers = seed % 2 ? 1 : 3};
        check(run, seed, world_run(run->world, FOR_EVER, strike_last, &blow));
        done += blow.done;
        world_free(run->world);
        free(run);
    }
    assert_true(done > 30);
}

int main(void)
{
    dp_log_start("test", DP_LOG_ERROR);
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_waits_and_all_stop_together),
                                       cmocka_unit_test(parts_that_nobody_wants_are_not_fetched),
                                       cmocka_unit_test(older_notes_put_late_keep_nobody_waiting),
                                       cmocka_unit_test(notes_older_by_half_keep_nobody_waiting),
                                       cmocka_unit_test(the_last_figures_are_found_again)};
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}

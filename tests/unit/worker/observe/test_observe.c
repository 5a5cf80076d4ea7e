/* Goal    each sample has the rows that were pulled for it, and beside them what the slowest shard had applied when they were there, over
 *         restarts of servers.
 * Method  a client of two shards that count differently and restart, played by a script; a clock that the observer's rests and its
 *         pulls move. The file of samples is read back. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of what the linker puts in place of others */
#include "common/client/keys_inner.h"
#include "common/env/clock.h"
#include "common/wire/reply.h"
#include "tests/unit/worker/context/graph_fixture.h"
#include "worker/context/job.h"
#include "worker/observe/observe.h"
#include "worker/observe/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS          UINT64_C(1000000)
#define BEGIN_MS    1000u
#define PULL_MS     10u
#define EVERY_MS    100u
#define STOPS_MS    1560u
#define SAMPLES_MAX 64u

/* What happens to a shard: at a time, or (at_ms 0) while the pull of this number is answered. */
struct event {
    uint64_t at_ms, pull;
    uint32_t shard;
    bool restarts; /* its counters begin at 0 */
    uint64_t pushes, examples;
};

struct played_shard {
    uint64_t born_ms, pushes, examples;
};

static struct {
    uint64_t now_ns;
    const struct event *event, *end;
    struct played_shard shard[2];
    atomic_int stop;
    uint64_t pulls;
    struct dp_pull_part part[DP_GRAPH_PARAMETERS_MAX]; /* of the pull under way */
    uint32_t parts;
    bool no_tables; /* until a rest */
} world;

static uint64_t now_of(void *self)
{
    return world.now_ns;
}

static void happens(const struct event *event)
{
    struct played_shard *shard = &world.shard[event->shard];
    if (event->restarts)
        *shard = (struct played_shard){.born_ms = event->at_ms ? event->at_ms : world.now_ns / MS};
    shard->pushes += event->pushes;
    shard->examples += event->examples;
}

static void pass(uint64_t ns)
{
    world.now_ns += ns;
    for (; world.event < world.end && world.event->pull == 0 && world.event->at_ms * MS <= world.now_ns;
         world.event++)
        happens(world.event);
    if (world.now_ns >= STOPS_MS * MS)
        atomic_store(&world.stop, 15);
}

/* ---- what the observer calls */

enum dp_status __wrap_dp_job_open(const struct dp_cluster *cluster, uint32_t worker, const char *name,
                                  const atomic_int *stop, struct dp_job *out, struct dp_error *err)
{
    assert_true(worker == 0 && strcmp(name, "observer") == 0);
    *out = (struct dp_job){.cluster = cluster, .stop = stop, .clock = {now_of, NULL}, .shards = 2};
    out->model.graph = fixture_graph();
    return DP_OK;
}

void __wrap_dp_job_close(struct dp_job *job)
{
    dp_graph_free(&job->model.graph);
}

enum dp_status __wrap_dp_job_tables(struct dp_job *job, bool must_exist, struct dp_error *err)
{
    assert_true(must_exist);
    if (world.no_tables)
        return dp_fail(err, DP_NOT_FOUND, "no table yet");
    for (uintptr_t t = 0; t < FIX_PARAMETERS; t++)
        job->table[t] = (struct dp_client_table *)(t + 1); /* never looked into */
    return DP_OK;
}

enum dp_status __wrap_dp_client_status(struct dp_client *client, uint32_t shard, uint32_t timeout_ms,
                                       struct dp_status_report **out, struct dp_error *err)
{
    static struct dp_counter counter[4];
    static struct dp_status_report report = {.counters = 4, .counter = counter};
    const struct played_shard *of = &world.shard[shard];
    counter[0] = (struct dp_counter){"pushes_repeated", 1000};
    counter[1] = (struct dp_counter){"pushes", of->pushes};
    counter[2] = (struct dp_counter){"examples", of->examples};
    counter[3] = (struct dp_counter){"up_ms", world.now_ns / MS - of->born_ms};
    *out = &report;
    return DP_OK;
}

void __wrap_dp_client_status_free(struct dp_status_report **report)
{
    *report = NULL;
}

enum dp_status __wrap_dp_client_pull(struct dp_client *client, const struct dp_pull_part *parts,
                                     uint32_t count, struct dp_pulled_at *pulled_at, uint32_t timeout_ms,
                                     struct dp_ticket *out, struct dp_error *err)
{
    assert_true(!pulled_at && count > 0 && world.parts == 0);
    memcpy(world.part, parts, count * sizeof *parts);
    world.parts = count;
    out->id = ++world.pulls;
    return DP_OK;
}

/* Row by row the number of the pull, the table's and the key. */
static float value_of(uint64_t pull, size_t table, uint64_t key)
{
    return (float)(pull * 100 + table * 10 + key);
}

enum dp_status __wrap_dp_job_wait(struct dp_job *job, struct dp_ticket *ticket, bool looks,
                                  struct dp_outcome *outcome, struct dp_error *err)
{
    assert_true(ticket->id == world.pulls && world.parts > 0);
    for (uint32_t p = 0; p < world.parts; p++) {
        const struct dp_pull_part *part = &world.part[p];
        size_t table = (size_t)(uintptr_t)part->table - 1, dim = table == FIX_THIN ? 1 : 3;
        for (size_t k = 0; k < part->keys->distinct; k++)
            for (size_t c = 0; c < dim; c++)
                part->weights[k * dim + c] = value_of(world.pulls, table, part->keys->mixed[k]);
    }
    world.parts = 0;
    pass(PULL_MS * MS);
    for (; world.event < world.end && world.event->pull == world.pulls; world.event++)
        happens(world.event);
    return DP_OK;
}

void __wrap_dp_client_progress(struct dp_client *client) {}

int __wrap_nanosleep(const struct timespec *rest, struct timespec *left)
{
    assert_true(rest->tv_sec == 0);
    world.no_tables = false;
    pass((uint64_t)rest->tv_nsec);
    return 0;
}

/* ---- the course */

struct taken {
    uint64_t count;
    struct dp_sample sample[SAMPLES_MAX];
    uint64_t pull[SAMPLES_MAX]; /* that its rows are of */
};

static uint64_t thin_keys[] = {2, 5}, wide_keys[] = {0, 5, 9}, dense_keys[] = {0, 1};
#define FLOATS (2u + 9 + 6)

static void take(const char *path, const struct dp_sample_keys *keys, struct taken *out)
{
    struct dp_samples_reader *reader;
    struct dp_error err = {0};
    if (dp_samples_reader_open(path, &reader, &err) != DP_OK)
        fail_msg("%s", err.text);
    out->count = dp_samples_reader_count(reader);
    assert_true(out->count <= SAMPLES_MAX);
    for (uint64_t i = 0; i < out->count; i++) {
        float rows[FLOATS], *row = rows;
        assert_int_equal(dp_samples_reader_read(reader, i, &out->sample[i], rows, &err), DP_OK);
        out->pull[i] = (uint64_t)rows[0] / 100;
        for (uint32_t t = 0; t < FIX_PARAMETERS; t++)
            for (uint64_t k = 0; k < keys->table[t].count; k++)
                for (uint32_t c = 0; c < keys->table[t].dim; c++)
                    assert_true(*row++ == value_of(out->pull[i], t, keys->table[t].keys[k]));
    }
    dp_samples_reader_close(&reader);
}

struct played {
    const struct event *event;
    size_t events;
    bool no_tables;
    uint64_t each; /* examples between samples by examples; 0: none */
    const char *consistency;
};

static struct taken observe(const struct played *played)
{
    static struct dp_cluster cluster = {.training.timeout_ms = 10000};
    (void)snprintf(cluster.training.consistency, sizeof cluster.training.consistency, "%s",
                   played->consistency ? played->consistency : "async");
    const struct dp_sample_keys keys = {
        .each = played->each,
        .tables = FIX_PARAMETERS,
        .table = {{.name = "thin", .dim = 1, .count = 2, .keys = thin_keys},
                  {.name = "wide", .dim = 3, .count = 3, .keys = wide_keys},
                  {.name = "dense", .dim = 3, .count = 2, .keys = dense_keys}}};
    char dir[64], samples[80], wanted[80];
    const char *above = getenv("TMPDIR");
    (void)snprintf(dir, sizeof dir, "%.40s/dp_observe_XXXXXX", above ? above : "/tmp");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(samples, sizeof samples, "%s/samples", dir);
    (void)snprintf(wanted, sizeof wanted, "%s/keys", dir);
    memset(&world, 0, sizeof world);
    world.now_ns = BEGIN_MS * MS;
    world.event = played->event;
    world.end = played->event + played->events;
    world.no_tables = played->no_tables;
    struct dp_error err = {0};
    struct taken taken;
    const struct dp_observe_options options = {samples, wanted, EVERY_MS};
    assert_int_equal(dp_sample_keys_write(&keys, wanted, &err), DP_OK);
    if (dp_observe(&cluster, &world.stop, &options, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_ptr_equal(world.event, world.end); /* all has happened */
    take(samples, &keys, &taken);
    assert_true(unlink(samples) == 0 && unlink(wanted) == 0 && rmdir(dir) == 0);
    return taken;
}

struct wanted {
    uint64_t ms, pull, pushes, examples;
};

static void are(const struct taken *taken, const struct wanted *wanted, size_t count, uint64_t began_ms)
{
    assert_int_equal(taken->count, count);
    for (size_t i = 0; i < count; i++) {
        const struct dp_sample *s = &taken->sample[i];
        bool begun = wanted[i].ms >= began_ms;
        if (s->monotonic_ns != wanted[i].ms * MS || taken->pull[i] != wanted[i].pull ||
            s->pushes != wanted[i].pushes || s->examples != wanted[i].examples)
            fail_msg("sample %zu, of pull %u at %u ms: %u pushes, %u examples", i, (unsigned)taken->pull[i],
                     (unsigned)(s->monotonic_ns / MS), (unsigned)s->pushes, (unsigned)s->examples);
        assert_int_equal(s->began_ns, begun ? began_ms * MS : 0);
        assert_true(s->wall_ns > 0);
    }
}

/* The first push is seen when the slower shard has one. The first sample is from before, and the last one is taken after the signal.
 * Planted: the counts of the faster shard; those from before the pull; those of the last shard; no sample after the signal. */
static void counts_are_the_slowest_shards_behind_the_pull(void **state)
{
    static const struct event events[] = {
        {.at_ms = 1015, .shard = 0, .pushes = 2, .examples = 64},
        {.at_ms = 1031, .shard = 1, .pushes = 1, .examples = 32},
        {.at_ms = 1100, .shard = 0, .pushes = 3, .examples = 90},  /* 5, 154 */
        {.at_ms = 1100, .shard = 1, .pushes = 2, .examples = 70},  /* 3, 102 */
        {.pull = 2, .shard = 0, .pushes = 1, .examples = 30},      /* 6, 184 */
        {.pull = 2, .shard = 1, .pushes = 1, .examples = 10},      /* 4, 112 */
        {.at_ms = 1200, .shard = 1, .pushes = 4, .examples = 188}, /* 8, 300: now this one is ahead */
        {.at_ms = 1201, .shard = 0, .pushes = 1, .examples = 16},  /* 7, 200 */
        {.at_ms = 1555, .shard = 1, .pushes = 1, .examples = 10},
        {.pull = 7, .shard = 0, .pushes = 1, .examples = 5}, /* behind the signal */
    };
    static const struct wanted wanted[] = {{1010, 1, 0, 0},   {1160, 2, 4, 112}, {1260, 3, 7, 200},
                                           {1360, 4, 7, 200}, {1460, 5, 7, 200}, {1560, 6, 7, 200},
                                           {1570, 7, 8, 205}};
    struct taken taken = observe(&(struct played){.event = events, .events = sizeof events / sizeof *events});
    are(&taken, wanted, sizeof wanted / sizeof *wanted, 1050);
}

/* Counting goes on from what was last seen of a shard: one whose counters are lower; one whose counters are higher already, and only its
 * uptime tells; one whose uptime is longer, and only its counters tell. Rows that are of both sides of a restart are not kept. Planted: what was before the restart is lost, of pushes, of
 * examples; a restart is told by pushes alone; the sample in which it was is kept; each shard's earlier counts are the last one's. */
static void counting_goes_on_over_restarts(void **state)
{
    static const struct event events[] = {
        {.at_ms = 1005, .shard = 0, .pushes = 7, .examples = 300},
        {.at_ms = 1005, .shard = 1, .pushes = 8, .examples = 200},
        {.at_ms = 1150, .shard = 1, .restarts = true},
        {.at_ms = 1160, .shard = 1, .pushes = 2, .examples = 50},  /* 10, 250 */
        {.at_ms = 1161, .shard = 0, .pushes = 5, .examples = 200}, /* 12, 500 */
        {.at_ms = 1250, .shard = 1, .pushes = 3, .examples = 30},  /* 13, 280 */
        {.pull = 4, .shard = 0, .restarts = true},                 /* within the sample */
        {.pull = 5, .shard = 0, .pushes = 1, .examples = 20},      /* 13, 520 */
        {.at_ms = 1350, .shard = 1, .restarts = true},
        {.at_ms = 1360, .shard = 1, .pushes = 9, .examples = 400}, /* 22, 680; above the 5, 80 of before */
        {.at_ms = 1361, .shard = 0, .restarts = true}, /* up for longer than when it was seen last */
        {.at_ms = 1425, .shard = 0, .pushes = 4, .examples = 90}, /* 17, 610 */
    };
    static const struct wanted wanted[] = {{1010, 1, 7, 200},  {1120, 2, 7, 200},  {1220, 3, 10, 250},
                                           {1330, 5, 13, 280}, {1420, 6, 13, 520}, {1520, 7, 17, 610},
                                           {1580, 8, 17, 610}};
    struct taken taken = observe(&(struct played){.event = events, .events = sizeof events / sizeof *events});
    are(&taken, wanted, sizeof wanted / sizeof *wanted, 1010);
}

/* Tables that are made later are waited for; a training without a push has its first and its last sample. */
static void a_training_may_begin_late(void **state)
{
    static const struct wanted wanted[] = {{1030, 1, 0, 0}, {1580, 2, 0, 0}};
    struct taken taken = observe(&(struct played){.no_tables = true});
    are(&taken, wanted, 2, UINT64_MAX);
}

/* ---- by examples */

#define PUSH 32u
#define EACH 96u /* three pushes */

/* A push on both shards every period_ms, `count` of them, from 1015 ms on. */
static struct taken observe_pushes(uint64_t period_ms, size_t count, const char *consistency)
{
    static struct event events[96];
    assert_true(2 * count <= sizeof events / sizeof *events);
    for (size_t i = 0; i < 2 * count; i++)
        events[i] =
            (struct event){.at_ms = 1015 + i / 2 * period_ms, .shard = i % 2, .pushes = 1, .examples = PUSH};
    const struct played played = {
        .event = events, .events = 2 * count, .each = EACH, .consistency = consistency};
    return observe(&played);
}

/* The samples by examples between the first and the last one: at 96, 192, ... `late`: at most so much above. Those by time are there,
 * too. */
static void are_at_multiples(const struct taken *taken, uint64_t most, uint64_t late)
{
    uint64_t n = 0, by_time = 0;
    assert_true(taken->sample[0].by == DP_SAMPLE_BY_EXAMPLES && taken->sample[0].examples == 0);
    assert_true(taken->sample[taken->count - 1].by == DP_SAMPLE_BY_EXAMPLES);
    for (uint64_t i = 1; i + 1 < taken->count; i++) {
        const struct dp_sample *s = &taken->sample[i];
        by_time += s->by == DP_SAMPLE_BY_TIME;
        if (s->by == DP_SAMPLE_BY_TIME)
            continue;
        n++;
        if (s->examples < n * EACH || s->examples > n * EACH + late)
            fail_msg("sample %u by examples is of %u", (unsigned)n, (unsigned)s->examples);
    }
    assert_int_equal(n, most / EACH);
    assert_int_equal(by_time, 5);
}

/* Planted: samples by examples at a fraction of the time; marked as those by time; the next one due an interval behind the last. */
static void slow_trainings_have_no_more_samples_by_examples(void **state)
{
    struct taken taken = observe_pushes(100, 5, "async");
    are_at_multiples(&taken, 5 * PUSH, 0);
    taken = observe_pushes(20, 27, "async");
    are_at_multiples(&taken, 27 * PUSH, PUSH); /* a push comes while they are pulled */
}

/* Planted: it is not pulled again. */
static void synchronous_steps_are_sampled_between_two(void **state)
{
    struct taken taken = observe_pushes(15, 37, "sync");
    for (uint64_t i = 1; i + 1 < taken.count; i++) {
        const struct dp_sample *s = &taken.sample[i];
        if (s->by == DP_SAMPLE_BY_EXAMPLES) /* no push between its pull's beginning and its count */
            assert_true((s->monotonic_ns / MS - 1015) / 15 == (s->monotonic_ns / MS - PULL_MS - 1015) / 15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_the_slowest_shards_behind_the_pull),
        cmocka_unit_test(counting_goes_on_over_restarts),
        cmocka_unit_test(a_training_may_begin_late),
        cmocka_unit_test(slow_trainings_have_no_more_samples_by_examples),
        cmocka_unit_test(synchronous_steps_are_sampled_between_two),
    };
    return cmocka_run_group_tests_name("observe", tests, NULL, NULL);
}

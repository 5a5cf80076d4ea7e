/* open -> fill -> (a turn of each mode, each a run of its own) * repeats -> summary
 *     a turn: each client, in a thread: join -> (pull step t -> push step t) * steps -> leave
 * Why       The same requests in each mode, so that only the rule differs; in turns, so that the ratio is that of this
 *           machine at this hour. A turn has a number of steps and no end by the clock: in sync all clients must come to
 *           the same step. The first turn, which is not shown, says how many steps fill a slice. */
#include "tests/bench/program/bench_modes.h"

#include "common/model/row.h"
#include "common/model/stream.h"
#include "deploy/bench/bench_rows.h"
#include "deploy/bench/bench_server.h"
#include "deploy/bench/bench_show.h"
#include "deploy/cli/options.h"
#include "tests/bench/program/bench_jitter.h"
#include "tests/bench/program/bench_turns.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SEED          UINT64_C(20240301)
#define SETS          512u
#define WORKERS_MAX   64u
#define STEPS_FIRST   20u
#define STEPS_MAX     1000000u
#define OPEN_MS       10000u
#define ROW_OVERHEAD  107u /* index, at its emptiest, and 64 */
#define CACHE_BYTES   ((uint64_t)1 << 45)
#define JOURNAL_BYTES ((uint64_t)4 << 30)
#define RATE          1e-6f
#define TIMER_MINUTES 600u
#define OVER_50MS     5u /* of dp_bench_turn_bounds */

static const struct dp_option flags[] = {
    {"--workers", "N", NULL, "clients at a time, each in a thread, 1 .. 64; default 4"},
    {"--dim", "N", NULL, "width of rows; default 16"},
    {"--rows", "N", NULL,
     "rows of the table, as many as fit into half of the free memory at most; default 1000000"},
    {"--keys", "N", NULL, "keys per request, uniform; default 10000"},
    {"--slice", "MS", NULL, "about how long a turn of a mode takes; default 1000"},
    {"--repeats", "N", NULL, "turns of each mode, 1 .. 99; default 5"},
    {"--slack", "S", NULL, "S of ssp:S; default 2"},
    {"--shards", "N", NULL, "shards (threads) of the server, 1 .. 8; default 1"},
    {"--durability", "WHICH", NULL,
     "what an acknowledged push survives: machine, process or none (async and ssp only: sync needs a "
     "journal); default machine"},
    {"--json", NULL, NULL, "one line of JSON per mode instead of the table"},
};
#define FLAGS (sizeof flags / sizeof flags[0])

static const struct dp_command command = {
    .program = "downpour-bench",
    .name = "modes",
    .usage = "[FLAGS]",
    .summary =
        "Several clients pull and push steps (Adam) at one server process on this machine in the modes "
        "async, "
        "ssp, sync and (several clients) sync:1, in turns.\n"
        "Shows, for each mode, the rows pushed per second and not dropped, the ratio to async, and how long "
        "after "
        "the last\n"
        "acknowledged push that a step waits for the clients had the rows of the next one. Also how long the "
        "server's\n"
        "turns took: those over 50 ms, and the bound (1, 2, 5, 10, .. 500 ms) that at most one in 10,000 "
        "exceeds.",
    .options = flags,
    .count = FLAGS,
};

enum { MODES = 4 };

static const struct {
    enum dp_consistency mode;
    uint32_t backups; /* of sync */
} modes[MODES] = {{DP_ASYNC, 0}, {DP_SSP, 0}, {DP_SYNC, 0}, {DP_SYNC, 1}};

struct modes_run {
    const char *values[FLAGS];
    uint64_t rows, keys;
    uint32_t workers, dim, slice_ms, repeats, slack;
    bool json;
    struct dp_bench_server_options options;
    struct dp_local *local;
    struct dp_bench_server server;
    struct dp_bench_keys drawn;
    uint32_t next_run; /* number of the next turn's run */
    uint32_t steps;
    struct dp_bench_figure rate[MODES], ratio[MODES], after_p50[MODES], after_p99[MODES];
    struct dp_bench_turns turns[MODES]; /* of the server, while the mode had its turns */
    double timer_p9999_ms;              /* how late a thread that only sleeps woke meanwhile */
};

/* One client. */
struct modes_worker {
    const struct modes_run *run;
    uint32_t rank, number; /* number: of the run */
    enum dp_consistency mode;
    uint32_t slack;
    struct dp_client *client; /* open between turns too */
    struct dp_client_table *table;
    float *weights, *gradients;
    uint64_t *pulled_ns, *pushed_ns; /* [steps]: when step t's pull, and push, was answered; 0: never */
    uint64_t rows, began_ns, ended_ns;
    pthread_t thread;
    struct dp_error err;
};

static const char *flag(const struct modes_run *run, const char *name)
{
    return dp_options_value(&command, run->values, name);
}

static enum dp_status number(const struct modes_run *run, const char *name, uint64_t min, uint64_t max,
                             uint64_t preset, uint64_t *out, struct dp_error *err)
{
    return dp_options_u64(&command, run->values, name, min, max, preset, out, err);
}

static enum dp_status settle(struct modes_run *run, struct dp_error *err)
{
    static const char *const durabilities[] = {"machine", "process", "none"};
    uint64_t workers = 0, dim = 0, slice = 0, repeats = 0, slack = 0, shards = 0;
    const char *durability = flag(run, "--durability");
    uint32_t d = 0;
    run->json = flag(run, "--json") != NULL;
    while (durability && d < 3 && strcmp(durability, durabilities[d]) != 0)
        d++;
    if (d == 3)
        return dp_fail(err, DP_ARGUMENT, "flag '--durability' is '%s': expected machine, process or none",
                       durability);
    enum dp_status st = number(run, "--workers", 1, WORKERS_MAX, 4, &workers, err);
    if (st == DP_OK)
        st = number(run, "--dim", 1, 4096, 16, &dim, err);
    if (st == DP_OK)
        st = number(run, "--rows", 1, (uint64_t)1 << 31, 1000000, &run->rows, err);
    if (st == DP_OK)
        st = number(run, "--keys", 1, 100000, 10000, &run->keys, err);
    if (st == DP_OK)
        st = number(run, "--slice", 1, 600000, 1000, &slice, err);
    if (st == DP_OK)
        st = number(run, "--repeats", 1, DP_BENCH_REPEATS_MAX, 5, &repeats, err);
    if (st == DP_OK)
        st = number(run, "--slack", 0, 1000000, 2, &slack, err);
    if (st == DP_OK)
        st = number(run, "--shards", 1, DP_BENCH_SHARDS_MAX, 1, &shards, err);
    run->workers = (uint32_t)workers;
    run->dim = (uint32_t)dim;
    run->slice_ms = (uint32_t)slice;
    run->repeats = (uint32_t)repeats;
    run->slack = (uint32_t)slack;
    run->options = (struct dp_bench_server_options){.dim = run->dim,
                                                    .shards = (uint32_t)shards,
                                                    .durability = (enum dp_cluster_durability)d,
                                                    .cache_bytes = CACHE_BYTES,
                                                    .journal_bytes = JOURNAL_BYTES};
    return st;
}

static enum dp_status open_all(struct modes_run *run, struct dp_error *err)
{
    const struct dp_table_spec spec = {.dim = run->dim, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
    const struct dp_pin pin = dp_pin_choose(DP_PIN_NONE);
    uint64_t most = dp_bench_memory() / 2 / (dp_row_bytes(&spec) + ROW_OVERHEAD);
    run->rows = most == 0 || run->rows < most ? run->rows : most;
    enum dp_status st = dp_local_open(&run->local, err);
    if (st == DP_OK)
        st = dp_bench_server_open(&run->server, run->local, 0, &run->options, &pin, err);
    if (st == DP_OK)
        st = dp_bench_server_fill(&run->server, run->rows, err);
    if (st == DP_OK)
        st = dp_bench_keys_new(run->rows, (size_t)run->keys, SETS, 0, SEED, &run->drawn, err);
    return st;
}

/* Without a journal there is no sync; one client has no backup. */
static uint32_t modes_of(const struct modes_run *run)
{
    if (run->options.durability == DP_CLUSTER_NONE)
        return MODES - 2;
    return run->workers > 1 ? MODES : MODES - 1;
}

/* ---- one client */

/* *open: the step that is open, with backups; 0: others. */
static enum dp_status do_pull(struct modes_worker *w, uint64_t step, const struct dp_keys *keys,
                              uint64_t *open)
{
    struct dp_outcome outcome = {0};
    const struct dp_pull_part part = {.table = w->table, .keys = keys, .weights = w->weights};
    struct dp_ticket ticket;
    enum dp_status st =
        dp_mode_of(w->mode)->waits
            ? dp_client_pull_step(w->client, step, &part, 1, NULL, DP_BENCH_WAIT_MS, &ticket, &w->err)
            : dp_client_pull(w->client, &part, 1, NULL, DP_BENCH_WAIT_MS, &ticket, &w->err);
    if (st == DP_OK)
        st = dp_client_wait(w->client, &ticket, DP_BENCH_WAIT_MS, &outcome, &w->err);
    *open = outcome.open;
    return st;
}

/* keys: NULL: without rows. Counts those that no shard dropped. */
static enum dp_status do_push(struct modes_worker *w, uint64_t step, const struct dp_keys *keys)
{
    struct dp_outcome outcome = {0};
    const struct dp_push_part part = {.table = w->table, .keys = keys, .gradients = w->gradients};
    const struct dp_push_options options = {.rate = RATE,
                                            .stream = dp_stream_of_run(w->number, 0),
                                            .number = w->rank + (uint64_t)w->run->workers * step,
                                            .in_step = dp_mode_of(w->mode)->waits,
                                            .step = step,
                                            .examples = keys != NULL};
    struct dp_ticket ticket;
    enum dp_status st =
        dp_client_push(w->client, &options, &part, keys != NULL, DP_BENCH_WAIT_MS, &ticket, &w->err);
    if (st == DP_OK)
        st = dp_client_wait(w->client, &ticket, DP_BENCH_WAIT_MS, &outcome, &w->err);
    if (st == DP_OK && keys && outcome.dropped == 0)
        w->rows += dp_keys_distinct(keys);
    return st;
}

static void *work(void *context)
{
    struct modes_worker *w = context;
    const struct modes_run *run = w->run;
    const struct dp_join join = {
        .run = w->number, .rank = w->rank, .members = run->workers, .mode = w->mode, .slack = w->slack};
    enum dp_status st =
        dp_mode_of(w->mode)->waits ? dp_client_join(w->client, &join, DP_BENCH_WAIT_MS, &w->err) : DP_OK;
    w->rows = 0;
    w->began_ns = dp_bench_now_ns();
    for (uint64_t step = 0, open = 0; st == DP_OK && step < run->steps;) {
        const struct dp_keys *keys = run->drawn.keys[(step * run->workers + w->rank) % SETS];
        st = do_pull(w, step, keys, &open);
        if (st == DP_OK && open > step) { /* closed without this one, which goes on at the open one */
            while (st == DP_OK && step < open)
                st = do_push(w, step++, NULL);
            continue;
        }
        w->pulled_ns[step] = dp_bench_now_ns();
        if (st == DP_OK)
            st = do_push(w, step, keys);
        w->pushed_ns[step++] = dp_bench_now_ns();
    }
    w->ended_ns = dp_bench_now_ns();
    if (st == DP_OK && dp_mode_of(w->mode)->waits)
        st = dp_client_leave(w->client, run->steps, DP_BENCH_WAIT_MS, &w->err);
    w->err.status = st;
    return NULL;
}

static enum dp_status worker_open(struct modes_run *run, struct modes_worker *w, struct dp_error *err)
{
    char name[32];
    size_t values = run->drawn.rows_max * run->dim;
    (void)snprintf(name, sizeof name, "bench %" PRIu32, w->rank);
    w->weights = malloc(values * sizeof *w->weights);
    w->gradients = malloc(values * sizeof *w->gradients);
    if (!w->weights || !w->gradients)
        return dp_fail(err, DP_NOMEM, "no memory for the rows of a client");
    for (size_t i = 0; i < values; i++)
        w->gradients[i] = 0.01f * (float)(i % 13) - 0.06f;
    enum dp_status st = dp_servers_client(run->server.cluster, name, OPEN_MS, &w->client, err);
    const struct dp_table_spec spec = dp_bench_server_table(&run->server);
    return st == DP_OK ? dp_client_table(w->client, &spec, OPEN_MS, &w->table, err) : st;
}

static void worker_close(struct modes_worker *w)
{
    dp_client_close(&w->client);
    free(w->weights);
    free(w->gradients);
    free(w->pulled_ns);
    free(w->pushed_ns);
    *w = (struct modes_worker){0};
}

/* ---- one turn */

static enum dp_status make_times(const struct modes_run *run, struct modes_worker *w, struct dp_error *err)
{
    free(w->pulled_ns);
    free(w->pushed_ns);
    w->pulled_ns = calloc(run->steps, sizeof *w->pulled_ns);
    w->pushed_ns = calloc(run->steps, sizeof *w->pushed_ns);
    return w->pulled_ns && w->pushed_ns
               ? DP_OK
               : dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " times", run->steps);
}

/* When the last push that a step waits for was acknowledged: with backups, of the first so many. UINT64_MAX: there were fewer. */
static uint64_t complete_ns(const struct modes_run *run, const struct modes_worker *workers, uint32_t step,
                            uint32_t backups)
{
    uint64_t ns[WORKERS_MAX];
    uint32_t count = 0;
    for (uint32_t w = 0; w < run->workers; w++) {
        uint64_t at = workers[w].pushed_ns[step];
        uint32_t i = at ? count++ : 0;
        for (; at && i > 0 && ns[i - 1] > at; i--)
            ns[i] = ns[i - 1];
        if (at)
            ns[i] = at;
    }
    return count >= run->workers - backups ? ns[run->workers - backups - 1] : UINT64_MAX;
}

/* From then until a client had its rows of the next step. */
static enum dp_status add_after(struct modes_run *run, const struct modes_worker *workers, uint32_t mode,
                                struct dp_error *err)
{
    size_t n = 0;
    uint64_t *ns = calloc((size_t)run->steps * run->workers, sizeof *ns);
    if (!ns)
        return dp_fail(err, DP_NOMEM, "no memory for times");
    for (uint32_t t = 0; t + 1 < run->steps; t++) {
        uint64_t last = complete_ns(run, workers, t, modes[mode].backups);
        for (uint32_t w = 0; w < run->workers; w++)
            if (workers[w].pulled_ns[t + 1] > last)
                ns[n++] = workers[w].pulled_ns[t + 1] - last;
    }
    dp_bench_add(&run->after_p50[mode], dp_bench_quantile(ns, n, 0.5) / 1e3);
    dp_bench_add(&run->after_p99[mode], dp_bench_quantile(ns, n, 0.99) / 1e3);
    free(ns);
    return DP_OK;
}

static enum dp_status start_threads(struct modes_run *run, struct modes_worker *workers, uint32_t *started,
                                    struct dp_error *err)
{
    sigset_t all, before;
    enum dp_status st = DP_OK;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (*started = 0; st == DP_OK && *started < run->workers; *started += st == DP_OK)
        if (pthread_create(&workers[*started].thread, NULL, work, &workers[*started]))
            st = dp_fail(err, DP_NOMEM, "cannot start a thread for a client");
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

static uint32_t slack_of(const struct modes_run *run, uint32_t mode)
{
    return dp_mode_of(modes[mode].mode)->slack == DP_SLACK_AHEAD ? run->slack : modes[mode].backups;
}

/* *rate: rows pushed and not dropped per second, from the first client's first pull to the last one's last push. */
static enum dp_status turn(struct modes_run *run, struct modes_worker *workers, uint32_t mode, double *rate,
                           struct dp_error *err)
{
    uint64_t began = UINT64_MAX, ended = 0, rows = 0;
    uint32_t started = 0;
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < run->workers; w++) {
        workers[w].mode = modes[mode].mode;
        workers[w].slack = slack_of(run, mode);
        workers[w].number = run->next_run;
        st = make_times(run, &workers[w], err);
    }
    run->next_run++;
    if (st == DP_OK)
        st = start_threads(run, workers, &started, err);
    for (uint32_t w = 0; w < started; w++) { /* where one fails, the others' waits pass their deadlines */
        (void)pthread_join(workers[w].thread, NULL);
        if (st == DP_OK && workers[w].err.status != DP_OK) {
            st = workers[w].err.status;
            *err = workers[w].err;
        }
        began = workers[w].began_ns < began ? workers[w].began_ns : began;
        ended = workers[w].ended_ns > ended ? workers[w].ended_ns : ended;
        rows += workers[w].rows;
    }
    *rate = ended > began ? (double)rows * 1e9 / (double)(ended - began) : 0;
    return st == DP_OK ? dp_bench_server_look(&run->server, err) : st;
}

static enum dp_status choose_steps(struct modes_run *run, struct modes_worker *workers, struct dp_error *err)
{
    double rate = 0, steps;
    run->steps = STEPS_FIRST;
    enum dp_status st = turn(run, workers, 0, &rate, err);
    steps = rate / run->drawn.rows_mean / run->workers * run->slice_ms / 1e3;
    run->steps = steps < 2 ? 2 : steps > STEPS_MAX ? STEPS_MAX : (uint32_t)steps;
    return st;
}

static enum dp_status read_turns(struct modes_run *run, struct dp_bench_turns *out, struct dp_error *err)
{
    struct dp_status_report *report = NULL;
    enum dp_status st = dp_bench_server_counters(&run->server, &report, err);
    if (st != DP_OK)
        return st;
    *out = dp_bench_turns_read(report);
    dp_client_status_free(&report);
    return DP_OK;
}

static enum dp_status counted_turn(struct modes_run *run, struct modes_worker *workers, uint32_t mode,
                                   double *rate, struct dp_error *err)
{
    struct dp_bench_turns before, after;
    enum dp_status st = read_turns(run, &before, err);
    if (st == DP_OK)
        st = turn(run, workers, mode, rate, err);
    if (st == DP_OK)
        st = read_turns(run, &after, err);
    if (st == DP_OK)
        dp_bench_turns_add_between(&run->turns[mode], &before, &after);
    return st;
}

static enum dp_status measure(struct modes_run *run, struct modes_worker *workers, struct dp_error *err)
{
    const struct dp_pin pin = dp_pin_choose(DP_PIN_NONE);
    struct dp_jitter *timer = NULL;
    uint64_t *late;
    enum dp_status st = choose_steps(run, workers, err);
    if (st == DP_OK)
        st = dp_jitter_start(TIMER_MINUTES, &pin, &timer, err);
    for (uint32_t i = 0; st == DP_OK && i < run->repeats; i++) {
        double async = 0, rate = 0;
        for (uint32_t m = 0; st == DP_OK && m < modes_of(run); m++) {
            st = counted_turn(run, workers, m, &rate, err);
            async = m == 0 ? rate : async;
            dp_bench_add(&run->rate[m], rate);
            dp_bench_add(&run->ratio[m], rate / async);
            if (st == DP_OK)
                st = add_after(run, workers, m, err);
        }
    }
    if (st == DP_OK) {
        size_t n = dp_jitter_stop(timer, &late);
        run->timer_p9999_ms = dp_bench_quantile(late, n, 0.9999) / 1e6;
    }
    dp_jitter_free(&timer);
    return st;
}

static void show(const struct modes_run *run)
{
    char name[DP_MODE_TEXT_BYTES];
    if (!run->json)
        printf("%" PRIu32 " clients, %" PRIu64 " rows of width %" PRIu32 ", %" PRIu64
               " keys a request, %" PRIu32 " shards, durability %s, %" PRIu32 " steps a turn, %" PRIu32
               " turns of each mode\n%-8s %10s %8s %8s %8s %8s %8s   %s\n",
               run->workers, run->rows, run->dim, run->keys, run->options.shards,
               dp_cluster_durability_name(run->options.durability), run->steps, run->repeats, "mode",
               "M rows/s", "/async", "spread", "turns", "> 50 ms", "p99.99",
               "next rows after the last push of a step: p50, p99 in us");
    for (uint32_t m = 0; m < modes_of(run); m++) {
        dp_mode_text(modes[m].mode, slack_of(run, m), name);
        double rate = dp_bench_median(&run->rate[m]), ratio = dp_bench_median(&run->ratio[m]);
        double p50 = dp_bench_median(&run->after_p50[m]), p99 = dp_bench_median(&run->after_p99[m]);
        if (run->json)
            printf("{\"measure\":\"modes\",\"mode\":\"%s\",\"workers\":%" PRIu32 ",\"dim\":%" PRIu32
                   ",\"keys\":%" PRIu64
                   ",\"rows_per_s\":%.0f,\"of_async\":%.3f,\"spread\":%.3f,\"next_p50_us\":%.0f,"
                   "\"next_p99_us\":%.0f,\"turns\":%" PRIu64 ",\"turns_over_50ms\":%" PRIu64
                   ",\"turn_p9999_under_ms\":%" PRIu32 ",\"timer_p9999_ms\":%.2f}\n",
                   name, run->workers, run->dim, run->keys, rate, ratio, dp_bench_spread(&run->rate[m]), p50,
                   p99, run->turns[m].turns, run->turns[m].over[OVER_50MS],
                   dp_bench_turns_p9999_ms(&run->turns[m]), run->timer_p9999_ms);
        else
            printf("%-8s %10.2f %8.2f %7.0f%% %8" PRIu64 " %8" PRIu64 " %5" PRIu32 " ms   %.0f, %.0f\n", name,
                   rate / 1e6, ratio, 100 * dp_bench_spread(&run->rate[m]), run->turns[m].turns,
                   run->turns[m].over[OVER_50MS], dp_bench_turns_p9999_ms(&run->turns[m]), p50, p99);
    }
    if (!run->json)
        printf("a timer alone woke up to %.2f ms late (p99.99)\n", run->timer_p9999_ms);
}

static int finish(struct modes_run *run, enum dp_status st, const struct dp_error *err)
{
    int code = st == DP_OK ? 0 : 2;
    if (run->local && dp_local_failed(run->local)) {
        dp_local_explain(run->local, stderr);
        code = 2;
    } else if (run->local && dp_local_signal(run->local)) {
        code = 128 + dp_local_signal(run->local);
    } else if (st != DP_OK) {
        fprintf(stderr, "downpour-bench: %s\n", err->text);
    }
    if (run->server.local)
        dp_bench_server_close(&run->server);
    if (run->drawn.keys)
        dp_bench_keys_clear(&run->drawn);
    dp_local_close(&run->local);
    return fflush(stdout) == 0 ? code : 2;
}

int dp_bench_modes(int argc, char *const *argv)
{
    struct modes_run run = {.next_run = 1};
    struct modes_worker workers[WORKERS_MAX] = {{0}};
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = dp_options_parse(&command, argc, argv, run.values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st == DP_OK)
        st = settle(&run, &err);
    if (st == DP_OK)
        st = open_all(&run, &err);
    for (uint32_t w = 0; st == DP_OK && w < run.workers; w++) {
        workers[w] = (struct modes_worker){.run = &run, .rank = w};
        st = worker_open(&run, &workers[w], &err);
    }
    if (st == DP_OK)
        st = measure(&run, workers, &err);
    if (st == DP_OK)
        show(&run);
    for (uint32_t w = 0; w < WORKERS_MAX; w++)
        worker_close(&workers[w]);
    return finish(&run, st, &err);
}

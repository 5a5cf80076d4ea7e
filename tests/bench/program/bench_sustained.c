/* open -> fill -> (written back) -> peak, with nothing to be written back -> minutes, in intervals -> summary
  * Why       The peak is measured in the same run, so that the ratio is that of this machine at this hour. */
#include "tests/bench/program/bench_sustained.h"

#include "common/model/row.h"
#include "deploy/bench/bench_rows.h"
#include "deploy/bench/bench_server.h"
#include "deploy/bench/bench_show.h"
#include "deploy/cli/options.h"
#include "tests/bench/program/bench_jitter.h"
#include "tests/bench/program/bench_turns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEED          UINT64_C(20240301)
#define SETS          512u
#define ZIPF          1.05
#define PEAK_SLICES   7u
#define PEAK_SLICE_MS 300u
#define ROW_OVERHEAD  107u /* index, at its emptiest, and 64 */
#define CACHE_BYTES   ((uint64_t)1 << 45)

static const struct dp_option flags[] = {
    {"--minutes", "M", NULL, "duration; default 1"},
    {"--every", "S", NULL, "seconds per interval; default 10"},
    {"--dim", "N", NULL, "width of rows; default 16"},
    {"--rows", "N", NULL,
     "rows of the table, as many as fit into half of the free memory at most; default 10000000"},
    {"--keys", "N", NULL, "keys per request; default 10000"},
    {"--draw", "KIND", NULL, "distribution of the keys: zipf (exponent 1.05) or uniform; default zipf"},
    {"--in-flight", "N", NULL, "unanswered requests at a time, 1 .. 16; default 4"},
    {"--journal-bytes", "N", NULL, "bytes for the journal; default 4294967296"},
    {"--durability", "WHICH", NULL,
     "what an acknowledged push survives: machine, process or none; default machine"},
    {"--cache", "P", NULL, "size of the server's cache, in percent of the rows; default 100"},
    {"--pin", "KIND", NULL, "as in 'downpour bench'; default shard"},
    {"--json", NULL, NULL, "one line of JSON per interval instead of text"},
};
#define FLAGS (sizeof flags / sizeof flags[0])

static const struct dp_command command = {
    .program = "downpour-bench",
    .name = "sustained",
    .usage = "[FLAGS]",
    .summary =
        "Pushes (Adam) for minutes to one server process with one shard on this machine, while rows are "
        "written back and journal\n"
        "segments are recycled. Shows, for each interval, the throughput, the rows written back, the bytes "
        "that "
        "RocksDB still has to\n"
        "compact, and how long the shard's turns took; for comparison, the peak of the same run (the median "
        "of "
        "7 slices of 0.3 s\n"
        "without write-back) and the wake-up delays of a thread that only sleeps.",
    .options = flags,
    .count = FLAGS,
};

#define OVER_10MS 3u /* of dp_bench_turn_bounds */
#define OVER_50MS 5u

struct figures {
    struct dp_bench_turns turns;
    uint64_t turn_ns_max, written, cycles, l0_files, debt, postponed;
};

struct sustained_run {
    const char *values[FLAGS];
    uint64_t minutes, every, rows, keys, cache;
    uint32_t dim, in_flight;
    bool zipf, json;
    struct dp_bench_server_options options;
    struct dp_pin pin;
    struct dp_local *local;
    struct dp_bench_server server;
    struct dp_bench_keys drawn;
    struct dp_bench_rows work;
    struct dp_jitter *jitter;
    uint64_t number; /* of the next request */
    double peak;
};

static const char *flag(const struct sustained_run *run, const char *name)
{
    return dp_options_value(&command, run->values, name);
}

static enum dp_status number(const struct sustained_run *run, const char *name, uint64_t min, uint64_t max,
                             uint64_t preset, uint64_t *out, struct dp_error *err)
{
    return dp_options_u64(&command, run->values, name, min, max, preset, out, err);
}

static enum dp_status word(const struct sustained_run *run, const char *name, const char *const *words,
                           uint32_t *out, struct dp_error *err)
{
    const char *given = flag(run, name);
    *out = 0;
    for (uint32_t i = 0; given && words[i]; i++)
        if (strcmp(given, words[i]) == 0) {
            *out = i;
            return DP_OK;
        }
    return given ? dp_fail(err, DP_ARGUMENT, "flag '%s' is '%s': see --help for what it takes", name, given)
                 : DP_OK;
}

static enum dp_status settle(struct sustained_run *run, struct dp_error *err)
{
    static const char *const draws[] = {"zipf", "uniform", NULL},
                             *const pins[] = {"shard", "process", "none", NULL},
                             *const durabilities[] = {"machine", "process", "none", NULL};
    static const enum dp_pin_kind pin_kinds[] = {DP_PIN_SHARD, DP_PIN_PROCESS, DP_PIN_NONE};
    uint64_t dim = 0, in_flight = 0;
    uint32_t draw = 0, pin = 0, durability = 0;
    run->json = flag(run, "--json") != NULL;
    enum dp_status st = number(run, "--minutes", 1, 24 * 60, 1, &run->minutes, err);
    if (st == DP_OK)
        st = number(run, "--every", 1, 3600, 10, &run->every, err);
    if (st == DP_OK)
        st = number(run, "--dim", 1, 4096, 16, &dim, err);
    if (st == DP_OK)
        st = number(run, "--rows", 1, (uint64_t)1 << 31, 10000000, &run->rows, err);
    if (st == DP_OK)
        st = number(run, "--keys", 1, 100000, 10000, &run->keys, err);
    if (st == DP_OK)
        st = number(run, "--in-flight", 1, DP_BENCH_IN_FLIGHT_MAX, 4, &in_flight, err);
    if (st == DP_OK)
        st = number(run, "--journal-bytes", (uint64_t)1 << 20, (uint64_t)1 << 40, (uint64_t)4 << 30,
                    &run->options.journal_bytes, err);
    if (st == DP_OK)
        st = number(run, "--cache", 1, 100, 100, &run->cache, err);
    if (st == DP_OK)
        st = word(run, "--draw", draws, &draw, err);
    if (st == DP_OK)
        st = word(run, "--pin", pins, &pin, err);
    if (st == DP_OK)
        st = word(run, "--durability", durabilities, &durability, err);
    run->options.shards = 1;
    run->dim = run->options.dim = (uint32_t)dim;
    run->in_flight = (uint32_t)in_flight;
    run->zipf = draw == 0;
    run->options.durability = (enum dp_cluster_durability)durability;
    run->pin = dp_pin_choose(pin_kinds[pin]);
    return st;
}

static uint64_t row_bytes(const struct sustained_run *run)
{
    struct dp_table_spec spec = {.dim = run->dim, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
    return dp_row_bytes(&spec) + ROW_OVERHEAD;
}

static enum dp_status open_all(struct sustained_run *run, struct dp_error *err)
{
    uint64_t most = dp_bench_memory() / 2 / row_bytes(run) * 100 / run->cache;
    run->rows = most == 0 || run->rows < most ? run->rows : most;
    run->options.cache_bytes =
        run->cache == 100 ? CACHE_BYTES
                          : run->rows * (row_bytes(run) - 64) / 100 * run->cache + ((uint64_t)4 << 20);
    enum dp_status st = dp_local_open(&run->local, err);
    if (st == DP_OK)
        st = dp_bench_server_open(&run->server, run->local, 0, &run->options, &run->pin, err);
    if (st == DP_OK)
        st = dp_bench_server_fill(&run->server, run->rows, err);
    if (st == DP_OK)
        st = dp_bench_keys_new(run->rows, (size_t)run->keys, SETS, run->zipf ? ZIPF : 0, SEED, &run->drawn,
                               err);
    if (st == DP_OK)
        st = dp_bench_rows_new(&run->drawn, run->dim, run->in_flight, &run->work, err);
    if (st == DP_OK)
        dp_bench_rows_set(&run->work, run->server.client[0], run->server.table[0], true, false);
    return st;
}

static enum dp_status take_figures(struct sustained_run *run, struct figures *out, struct dp_error *err)
{
    struct dp_status_report *report = NULL;
    enum dp_status st = dp_bench_server_counters(&run->server, &report, err);
    if (st != DP_OK)
        return st;
    out->turns = dp_bench_turns_read(report);
    out->turn_ns_max = dp_bench_counter(report, "turn_ns_max");
    out->written = dp_bench_counter(report, "rows_written_back");
    out->cycles = dp_bench_counter(report, "write_back_cycles");
    out->postponed = dp_bench_counter(report, "requests_postponed");
    out->l0_files = dp_bench_counter(report, "store_l0_files");
    out->debt = dp_bench_counter(report, "store_compaction_debt_bytes");
    dp_client_status_free(&report);
    return DP_OK;
}

static enum dp_status slice(struct sustained_run *run, uint32_t ms, double *rate, struct dp_error *err)
{
    struct dp_load load = dp_bench_rows_load(&run->work);
    enum dp_status st = dp_bench_load_run(&load, run->in_flight, ms, &run->number, rate, err);
    return st == DP_OK ? dp_bench_server_look(&run->server, err) : st;
}

static enum dp_status measure_peak(struct sustained_run *run, struct dp_error *err)
{
    struct dp_bench_figure figure = {0};
    double rate = 0;
    enum dp_status st = dp_bench_server_settle(&run->server, err);
    for (uint32_t i = 0; i <= PEAK_SLICES && st == DP_OK; i++) {
        st = slice(run, PEAK_SLICE_MS, &rate, err);
        if (i > 0) /* the first warms up */
            dp_bench_add(&figure, rate);
    }
    run->peak = dp_bench_median(&figure);
    return st;
}

static void show_interval(const struct sustained_run *run, double seconds, double rate, double took,
                          const struct figures *a, const struct figures *b)
{
    double written = (double)(b->written - a->written) / took;
    struct dp_bench_turns between = {0};
    dp_bench_turns_add_between(&between, &a->turns, &b->turns);
    if (run->json)
        printf("{\"measure\":\"sustained\",\"seconds\":%.0f,\"rows_per_s\":%.0f,\"of_peak\":%.3f,"
               "\"written_back_per_s\":%.0f,\"cycles\":%" PRIu64 ",\"l0_files\":%" PRIu64
               ",\"compaction_debt\":%" PRIu64 ",\"postponed\":%" PRIu64 ",\"turns\":%" PRIu64
               ",\"over_10ms\":%" PRIu64 ",\"over_50ms\":%" PRIu64 "}\n",
               seconds, rate, rate / run->peak, written, b->cycles - a->cycles, b->l0_files, b->debt,
               b->postponed - a->postponed, between.turns, between.over[OVER_10MS], between.over[OVER_50MS]);
    else
        printf("%7.0f %8.2f %7.2f %10.2f %7" PRIu64 " %5" PRIu64 " %9.0f %9" PRIu64 " %9" PRIu64 " %7" PRIu64
               " %7" PRIu64 "\n",
               seconds, rate / 1e6, rate / run->peak, written / 1e6, b->cycles - a->cycles, b->l0_files,
               (double)b->debt / 1e6, b->postponed - a->postponed, between.turns, between.over[OVER_10MS],
               between.over[OVER_50MS]);
    (void)fflush(stdout);
}

static void show_end(struct sustained_run *run, const struct dp_bench_figure *rates, double mean,
                     const struct figures *a, const struct figures *b)
{
    uint64_t *late;
    size_t n = dp_jitter_stop(run->jitter, &late);
    double best = 0, median = dp_bench_median(rates);
    struct dp_bench_turns between = {0};
    dp_bench_turns_add_between(&between, &a->turns, &b->turns);
    for (uint32_t i = 0; i < rates->n; i++)
        best = rates->value[i] > best ? rates->value[i] : best;
    double late9999 = dp_bench_quantile(late, n, 0.9999) / 1e6, latest = n ? (double)late[n - 1] / 1e6 : 0;
    if (run->json)
        printf("{\"measure\":\"sustained_end\",\"draw\":\"%s\",\"dim\":%" PRIu32 ",\"rows\":%" PRIu64
               ",\"peak_rows_per_s\":%.0f,\"rows_per_s\":%.0f,\"of_peak\":%.3f,\"interval_median_of_peak\":%."
               "3f,\"interval_median_of_best\":%.3f,"
               "\"turns\":%" PRIu64 ",\"turn_p9999_under_ms\":%" PRIu32
               ",\"turn_max_ms\":%.2f,\"timer_p9999_ms\":%.2f,"
               "\"timer_max_ms\":%.2f,\"rows_written_back\":%" PRIu64 ",\"fill_written_back_per_s\":%.0f}\n",
               run->zipf ? "zipf" : "uniform", run->dim, run->rows, run->peak, mean, mean / run->peak,
               median / run->peak, median / best, between.turns, dp_bench_turns_p9999_ms(&between),
               (double)b->turn_ns_max / 1e6, late9999, latest, b->written - a->written,
               run->server.written_back_per_s);
    else
        printf("mean %.2f M rows/s, %.2f of the peak of %.2f (median interval %.2f, and %.2f of the best "
               "interval); p99.99 of %" PRIu64 " turns within %" PRIu32
               " ms (0: over 500), longest %.2f ms; a timer alone: p99.99 %.2f ms late, "
               "at most %.2f; %.1f M rows written back\n",
               mean / 1e6, mean / run->peak, run->peak / 1e6, median / run->peak, median / best,
               between.turns, dp_bench_turns_p9999_ms(&between), (double)b->turn_ns_max / 1e6, late9999,
               latest, (double)(b->written - a->written) / 1e6);
}

static enum dp_status sustain(struct sustained_run *run, struct dp_error *err)
{
    struct dp_bench_figure rates = {0};
    struct figures first = {0}, before = {0}, after = {0};
    enum dp_status st = dp_jitter_start((uint32_t)run->minutes + 1, &run->pin, &run->jitter, err);
    if (st == DP_OK)
        st = take_figures(run, &first, err);
    after = before = first;
    uint64_t began = dp_bench_now_ns(), now = began;
    double rows = 0;
    while (st == DP_OK && now - began < run->minutes * UINT64_C(60000000000)) {
        double rate = 0;
        uint64_t start = now;
        before = after;
        st = slice(run, (uint32_t)run->every * 1000u, &rate, err);
        if (st == DP_OK)
            st = take_figures(run, &after, err);
        now = dp_bench_now_ns();
        double took = (double)(now - start) / 1e9;
        rows += rate * took;
        dp_bench_add(&rates, rate);
        if (st == DP_OK)
            show_interval(run, (double)(now - began) / 1e9, rate, took, &before, &after);
    }
    if (st == DP_OK)
        show_end(run, &rates, rows / ((double)(now - began) / 1e9), &first, &after);
    return st;
}

static void show_head(const struct sustained_run *run)
{
    if (run->json)
        return;
    printf("%" PRIu64 " rows of width %" PRIu32 ", %s keys, %" PRIu64 " drawn a request, %" PRIu32
           " under way, durability %s, cache of %" PRIu64 "%% of the rows, journal of %" PRIu64
           " bytes\nthe filled rows were written back at %.2f M rows/s (0: before they were looked at); peak "
           "with nothing to "
           "be written back: %.2f M rows/s\n"
           "%7s %8s %7s %10s %7s %5s %9s %9s %9s %7s %7s\n",
           run->rows, run->dim, run->zipf ? "Zipf 1.05" : "uniform", run->keys, run->in_flight,
           dp_cluster_durability_name(run->options.durability), run->cache, run->options.journal_bytes,
           run->server.written_back_per_s / 1e6, run->peak / 1e6, "seconds", "M rows/s", "of peak",
           "M back/s", "cycles", "L0", "debt MB", "postponed", "turns", ">10 ms", ">50 ms");
}

static int finish(struct sustained_run *run, enum dp_status st, const struct dp_error *err)
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
    dp_jitter_free(&run->jitter);
    if (run->server.local)
        dp_bench_server_close(&run->server);
    dp_bench_rows_clear(&run->work);
    if (run->drawn.keys)
        dp_bench_keys_clear(&run->drawn);
    dp_local_close(&run->local);
    return fflush(stdout) == 0 ? code : 2;
}

int dp_bench_sustained(int argc, char *const *argv)
{
    struct sustained_run run = {0};
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = dp_options_parse(&command, argc, argv, run.values, &help, &err);
    if (st == DP_OK && help) {
        dp_options_help(&command, true, stdout);
        return fflush(stdout) == 0 ? 0 : 2;
    }
    if (st == DP_OK)
        st = settle(&run, &err);
    if (st == DP_OK)
        st = open_all(&run, &err);
    if (st == DP_OK)
        st = measure_peak(&run, &err);
    if (st == DP_OK) {
        show_head(&run);
        st = sustain(&run, &err);
    }
    return finish(&run, st, &err);
}

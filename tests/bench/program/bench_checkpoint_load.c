/* start clients -> (without, a checkpoint) * rounds -> without -> stop -> summary
 * Why       Without and with alternate, so that a ratio is that of this machine at this hour. The clients never pause. */
#include "tests/bench/program/bench_checkpoint_inner.h"
#include "tests/bench/program/bench_clients.h"
#include "tests/bench/program/bench_jitter.h"
#include "tests/bench/program/bench_turns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEED       UINT64_C(20240301)
#define ZIPF       1.05
#define WARM_MS    2000u
#define LATEST_MIN 60u /* a checkpoint takes less */

struct checkpoint_figures {
    struct dp_bench_turns turns;
    uint64_t turn_ns_max, delays, postponed, cut_ns_max;
};

/* All phases of one kind: without, or with a checkpoint. */
struct checkpoint_phases {
    double rate; /* of the last one */
    struct checkpoint_figures sum;
    uint64_t *late; /* of the timer alone */
    size_t lates;
};

struct checkpoint_load {
    struct checkpoint_run *run;
    const char *draw;
    struct dp_bench_keys keys;
    struct dp_bench_clients *clients;
    struct checkpoint_phases without, with;
    struct dp_bench_figure ratio, without_rate, with_rate, cut_ms, took_ms;
};

static enum dp_status look(struct checkpoint_load *load, struct checkpoint_figures *out, struct dp_error *err)
{
    struct dp_status_report *report = NULL;
    enum dp_status st = dp_bench_server_counters(&load->run->server, &report, err);
    if (st != DP_OK)
        return st;
    out->turns = dp_bench_turns_read(report);
    out->turn_ns_max = dp_bench_counter(report, "turn_ns_max");
    out->delays = dp_bench_counter(report, "checkpoint_delays");
    out->postponed = dp_bench_counter(report, "requests_postponed");
    out->cut_ns_max = dp_bench_counter(report, "checkpoint_cut_ns_max");
    dp_client_status_free(&report);
    return DP_OK;
}

/* The longest turn of all is known; that of a phase is known only where it was the longest so far. */
static void add(struct checkpoint_phases *phases, const struct checkpoint_figures *a,
                const struct checkpoint_figures *b)
{
    dp_bench_turns_add_between(&phases->sum.turns, &a->turns, &b->turns);
    phases->sum.delays += b->delays - a->delays;
    phases->sum.postponed += b->postponed - a->postponed;
    phases->sum.cut_ns_max = b->cut_ns_max;
    if (b->turn_ns_max > a->turn_ns_max)
        phases->sum.turn_ns_max = b->turn_ns_max;
}

static enum dp_status take_late(struct checkpoint_phases *phases, struct dp_jitter *jitter,
                                struct dp_error *err)
{
    uint64_t *late, *more;
    size_t n = dp_jitter_stop(jitter, &late);
    more = realloc(phases->late, (phases->lates + n + 1) * sizeof *more);
    if (!more)
        return dp_fail(err, DP_NOMEM, "no memory for times");
    phases->late = more;
    memcpy(more + phases->lates, late, n * sizeof *late);
    phases->lates += n;
    return DP_OK;
}

static void pause_for(struct checkpoint_run *run, uint64_t ms)
{
    uint64_t until = dp_bench_now_ns() + ms * 1000000u;
    for (uint64_t now = dp_bench_now_ns(); now < until; now = dp_bench_now_ns()) {
        dp_local_wait(run->local, (uint32_t)((until - now) / 1000000u + 1));
        if (dp_local_signal(run->local) || dp_local_failed(run->local))
            return;
    }
}

/* made: NULL: without a checkpoint. */
static enum dp_status phase(struct checkpoint_load *load, struct checkpoint_phases *phases,
                            struct dp_checkpoint_made *made, struct dp_error *err)
{
    struct checkpoint_run *run = load->run;
    struct checkpoint_figures a = {0}, b = {0};
    struct dp_jitter *jitter = NULL;
    enum dp_status st = look(load, &a, err);
    if (st == DP_OK)
        st = dp_jitter_start(LATEST_MIN, &run->pin, &jitter, err);
    uint64_t rows = dp_bench_clients_rows(load->clients), began = dp_bench_now_ns();
    if (st == DP_OK && made)
        st = dp_bench_checkpoint_make(run, made, err);
    else if (st == DP_OK)
        pause_for(run, run->seconds * 1000);
    double s = (double)(dp_bench_now_ns() - began) / 1e9;
    phases->rate = (double)(dp_bench_clients_rows(load->clients) - rows) / s;
    if (st == DP_OK)
        st = look(load, &b, err);
    if (st == DP_OK)
        add(phases, &a, &b);
    if (st == DP_OK)
        st = take_late(phases, jitter, err);
    dp_jitter_free(&jitter);
    return st == DP_OK ? dp_bench_server_look(&run->server, err) : st;
}

static void show_one(const struct checkpoint_load *load, const struct dp_checkpoint_made *made, double ratio)
{
    if (load->run->json)
        printf("{\"measure\":\"checkpoint\",\"draw\":\"%s\",\"bytes\":%" PRIu64 ",\"bytes_new\":%" PRIu64
               ",\"took_ms\":%" PRIu64 ",\"prepare_ms\":%" PRIu64 ",\"cut_ms\":%" PRIu64
               ",\"wait_ms\":%" PRIu64 ",\"copy_ms\":%" PRIu64 ",\"rows_per_s\":%.0f,\"of_without\":%.3f}\n",
               load->draw, made->bytes, made->bytes_new, made->took_ms, made->prepare_ms, made->cut_ms,
               made->wait_ms, made->copy_ms, load->with.rate, ratio);
    else
        printf("%-8s checkpoint of %.2f GB, %.2f new: %.1f s (write-back %.1f, cut %.2f, pushes under way "
               "%.2f, copy %.1f), "
               "%.2f M rows/s pushed meanwhile, %.2f of without\n",
               load->draw, (double)made->bytes / 1e9, (double)made->bytes_new / 1e9,
               (double)made->took_ms / 1e3, (double)made->prepare_ms / 1e3, (double)made->cut_ms / 1e3,
               (double)made->wait_ms / 1e3, (double)made->copy_ms / 1e3, load->with.rate / 1e6, ratio);
    (void)fflush(stdout);
}

/* The smallest bound that no turn exceeds; 0: none. */
static uint32_t longest_ms(const struct dp_bench_turns *turns)
{
    for (size_t i = 0; i < DP_BENCH_TURN_BOUNDS; i++)
        if (turns->over[i] == 0)
            return dp_bench_turn_bounds[i];
    return 0;
}

static void show_turns(const struct checkpoint_load *load, const char *when, struct checkpoint_phases *phases,
                       double rate)
{
    const struct checkpoint_figures *sum = &phases->sum;
    double p9999 = dp_bench_quantile(phases->late, phases->lates, 0.9999) / 1e6;
    double most = phases->lates ? (double)phases->late[phases->lates - 1] / 1e6 : 0;
    uint32_t under = longest_ms(&sum->turns);
    double longest = (double)sum->turn_ns_max / 1e6;
    if (load->run->json)
        printf("{\"measure\":\"checkpoint_turns\",\"draw\":\"%s\",\"when\":\"%s\",\"rows_per_s\":%.0f,"
               "\"turns\":%" PRIu64 ",\"turn_p9999_under_ms\":%" PRIu32 ",\"turn_max_under_ms\":%" PRIu32
               ",\"turn_max_ms\":%.2f,\"timer_p9999_ms\":%.2f,\"timer_max_ms\":%.2f,\"postponed\":%" PRIu64
               ",\"checkpoint_delays\":%" PRIu64 "}\n",
               load->draw, when, rate, sum->turns.turns, dp_bench_turns_p9999_ms(&sum->turns), under, longest,
               p9999, most, sum->postponed, sum->delays);
    else
        printf("%-8s %-7s: %.2f M rows/s; p99.99 of %" PRIu64 " turns within %" PRIu32
               " ms, all within %" PRIu32 " (0: over 500)%s%.0f%s; a timer alone: p99.99 %.2f ms late, at "
               "most %.2f; %" PRIu64 " requests postponed, %" PRIu64 " of them for a checkpoint\n",
               load->draw, when, rate / 1e6, sum->turns.turns, dp_bench_turns_p9999_ms(&sum->turns), under,
               longest > 0 ? ", the longest " : ", the longest below ", longest > 0 ? longest : (double)under,
               " ms", p9999, most, sum->postponed, sum->delays);
}

static void show_end(struct checkpoint_load *load)
{
    double ratio = dp_bench_median(&load->ratio), cut = 0;
    for (uint32_t i = 0; i < load->cut_ms.n; i++)
        cut = load->cut_ms.value[i] > cut ? load->cut_ms.value[i] : cut;
    show_turns(load, "without", &load->without, dp_bench_median(&load->without_rate));
    show_turns(load, "with", &load->with, dp_bench_median(&load->with_rate));
    if (load->run->json)
        printf("{\"measure\":\"checkpoint_end\",\"draw\":\"%s\",\"rounds\":%" PRIu32
               ",\"of_without\":%.3f,\"cut_max_ms\":%.0f,\"cut_turn_max_ms\":%.2f}\n",
               load->draw, load->ratio.n, ratio, cut, (double)load->with.sum.cut_ns_max / 1e6);
    else
        printf("%-8s pushes beside a checkpoint: %.2f of without (median of %" PRIu32
               "); the longest cut %.2f s, of which %.2f ms of a turn at most\n",
               load->draw, ratio, load->ratio.n, cut / 1e3, (double)load->with.sum.cut_ns_max / 1e6);
    (void)fflush(stdout);
}

static enum dp_status measure(struct checkpoint_load *load, struct dp_error *err)
{
    enum dp_status st = phase(load, &load->without, NULL, err);
    for (uint32_t i = 0; st == DP_OK && i < load->run->rounds; i++) {
        struct dp_checkpoint_made made;
        double before = load->without.rate;
        st = phase(load, &load->with, &made, err);
        if (st == DP_OK)
            st = phase(load, &load->without, NULL, err);
        double without = (before + load->without.rate) / 2, ratio = load->with.rate / without;
        if (st != DP_OK)
            return st;
        dp_bench_add(&load->ratio, ratio);
        dp_bench_add(&load->without_rate, without);
        dp_bench_add(&load->with_rate, load->with.rate);
        dp_bench_add(&load->cut_ms, (double)made.cut_ms);
        show_one(load, &made, ratio);
    }
    return st;
}

enum dp_status dp_bench_checkpoint_load(struct checkpoint_run *run, bool zipf, struct dp_error *err)
{
    struct dp_error why;
    struct checkpoint_load *load = calloc(1, sizeof *load);
    if (!load)
        return dp_fail(err, DP_NOMEM, "no memory for a bench");
    load->run = run;
    load->draw = zipf ? "zipf" : "uniform";
    enum dp_status st = dp_bench_keys_new(run->rows, (size_t)run->keys, (uint32_t)run->sets, zipf ? ZIPF : 0,
                                          SEED, &load->keys, err);
    if (st == DP_OK)
        st = dp_bench_clients_start(&run->server, &load->keys, run->clients, run->in_flight, &load->clients,
                                    err);
    if (st == DP_OK) {
        pause_for(run, WARM_MS);
        st = measure(load, err);
    }
    enum dp_status stopped = dp_bench_clients_stop(&load->clients, &why);
    if (st == DP_OK && stopped != DP_OK) {
        *err = why;
        st = stopped;
    }
    if (st == DP_OK)
        show_end(load);
    if (load->keys.keys)
        dp_bench_keys_clear(&load->keys);
    free(load->without.late);
    free(load->with.late);
    free(load);
    return st;
}

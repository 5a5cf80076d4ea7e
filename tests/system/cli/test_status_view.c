/* What `downpour status` makes of answers: lines of at most 100 columns, rates, states, JSON; from answers made by hand. */
#include "deploy/run/status_view.h"
#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNTERS 9u

static const char *const names[COUNTERS] = {
    "pull_rows", "push_rows",     "journal_kept_bytes", "store_file_bytes", "store_disk_free_bytes",
    "up_ms",     "staleness_sum", "staleness_pushes",   "pulls_held_now"};

struct scene {
    struct dp_cluster cluster;
    struct dp_cluster_server server[3];
    struct dp_queries asks;
    struct dp_ask shard[4];
    struct dp_table_status table[2];
    struct dp_counter counter[4][COUNTERS];
    struct dp_histogram histogram[2][4]; /* of shards 0 and 1 */
    struct dp_queries_note note[3];
    char text[3][256];
};

static void set_note(struct scene *s, uint32_t i, const char *name, const char *text)
{
    (void)snprintf(s->note[i].name, sizeof s->note[i].name, "%s", name);
    (void)snprintf(s->text[i], sizeof s->text[i], "%s", text);
    s->note[i].text = s->text[i];
    s->note[i].bytes = strlen(text);
    s->asks.notes = i + 1;
}

static void answer(struct scene *s, uint32_t shard, const uint64_t values[COUNTERS])
{
    s->shard[shard].state = DP_ASK_ANSWERED;
    s->shard[shard].report = (struct dp_status_report){.shard = shard,
                                                       .shards = 4,
                                                       .tables = 2,
                                                       .table = s->table,
                                                       .counters = COUNTERS,
                                                       .counter = s->counter[shard]};
    for (uint32_t i = 0; i < COUNTERS; i++) {
        (void)snprintf(s->counter[shard][i].name, sizeof s->counter[shard][i].name, "%s", names[i]);
        s->counter[shard][i].value = values[i];
    }
}

/* Server 0 has two shards and serves; server 1 recovers; server 2 is down. */
static struct scene *scene(void)
{
    static const uint64_t first[COUNTERS] = {40000, 20000, 3000000, 1000, 500000000000, 10000, 30, 10, 0},
                          second[COUNTERS] = {60000, 20000, 4000000, 1500, 500000000000, 10000, 30, 20, 0};
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    for (uint32_t i = 0; i < 3; i++) {
        (void)snprintf(s->server[i].host, sizeof s->server[i].host, "10.0.0.%u", i + 1);
        s->server[i].port = 5700;
        s->server[i].shards = i == 0 ? 2 : 1;
    }
    s->cluster.server_count = 3;
    s->cluster.server = s->server;
    s->table[0].rows = 1000;
    s->table[1].rows = 234;
    s->asks = (struct dp_queries){
        .shards = 4, .shard = s->shard, .tried_ms = 2000, .notes_known = true, .note = s->note};
    answer(s, 0, first);
    answer(s, 1, second);
    s->shard[2].state = DP_ASK_REFUSED;
    s->shard[2].status = DP_AGAIN;
    (void)snprintf(s->shard[2].reason, sizeof s->shard[2].reason,
                   "shard 2 is recovering: 12 of 346 MB of its journal replayed");
    return s;
}

static struct dp_status_view gather(const struct scene *s, uint64_t at_ms,
                                    const struct dp_status_view *earlier)
{
    struct dp_status_view view;
    struct dp_error err;
    assert_int_equal(dp_status_view_gather(&s->cluster, &s->asks, at_ms, earlier, &view, &err), DP_OK);
    return view;
}

static char *print(const struct dp_status_view *view)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    dp_status_view_print(view, to);
    assert_int_equal(fclose(to), 0);
    for (const char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        if ((size_t)(end - line) > DP_STATUS_COLUMNS)
            fail_msg("%d columns: %.*s", (int)(end - line), (int)(end - line), line);
    }
    return text;
}

static void states_and_figures_are_those_of_all_shards(void **state)
{
    struct scene *s = scene();
    struct dp_status_view view = gather(s, 5000, NULL);
    assert_int_equal(view.servers, 3);
    assert_int_equal(view.server[0].state, DP_STATUS_SERVING);
    assert_int_equal(view.server[1].state, DP_STATUS_NOT_SERVING);
    assert_int_equal(view.server[2].state, DP_STATUS_DOWN);
    assert_false(dp_status_view_all_serve(&view));
    assert_int_equal(view.server[0].rows, 2468);
    assert_int_equal(view.server[0].journal_bytes, 7000000);
    assert_true(view.server[0].staleness == 2.0);
    assert_true(view.server[0].pulled_per_s == 10000 && view.server[0].pushed_per_s == 4000); /* in 10 s */
    char *text = print(&view);
    assert_non_null(strstr(text, "     0  serving      2  2.47 k   10.0 k   4.00 k      2 7.00 MB 2.50 kB"));
    assert_non_null(
        strstr(text, "     1  not serving: shard 2 is recovering: 12 of 346 MB of its journal replayed\n"));
    assert_non_null(strstr(text, "     2  down: no answer in 2.0 s from tcp://10.0.0.3:5701\n"));
    assert_non_null(strstr(text, "No worker of this run has reported since server 0 was started."));
    free(text);
    dp_status_view_clear(&view);
    s->asks.notes_known = false;
    view = gather(s, 5000, NULL);
    text = print(&view);
    assert_non_null(strstr(text, "Workers: unknown"));
    free(text);
    dp_status_view_clear(&view);
    free(s);
}

static void held_pulls_are_told(void **state)
{
    struct scene *s = scene();
    struct dp_status_view view = gather(s, 0, NULL);
    char *text = print(&view);
    assert_null(strstr(text, "held"));
    free(text);
    dp_status_view_clear(&view);
    s->counter[0][8].value = 2;
    s->counter[1][8].value = 3;
    view = gather(s, 0, NULL);
    text = print(&view);
    assert_non_null(strstr(text, "\n        5 pulls are blocked until other workers have come as far\n"));
    free(text);
    text = dp_status_view_json(&view, NULL);
    assert_non_null(strstr(text, "\"pulls_held\":5"));
    assert_non_null(strstr(text, "\"cluster\":\"0x00000000000000"));
    free(text);
    dp_status_view_clear(&view);
    free(s);
}

/* Planted: the state stays "training". A line is no longer than others, and a note is anybody's text. */
static void whom_a_worker_waits_for_is_told(void **state)
{
    struct scene *s = scene();
    set_note(s, 0, "run/1/progress/0.",
             "{\"state\":\"training\",\"epoch\":2,\"epochs\":5,\"examples_per_s\":7.0,\"awaited\":\"step 323 "
             "waits "
             "for worker 1, which has finished 321 steps and\\u0007was last heard 12.0 s ago\"}");
    struct dp_status_view view = gather(s, 0, NULL);
    char *text = print(&view);
    assert_non_null(strstr(text, "     0  waiting "));
    assert_non_null(
        strstr(text, "\n        step 323 waits for worker 1, which has finished 321 steps and?was"));
    free(text);
    text = dp_status_view_json(&view, NULL);
    assert_non_null(strstr(text, "\"awaited\":\"step 323 waits for worker 1"));
    free(text);
    dp_status_view_clear(&view);
    free(s);
}

static void tell_at(struct scene *s, uint32_t worker, const char *state, double ago_s)
{
    char name[32], text[128];
    (void)snprintf(name, sizeof name, "run/1/progress/%u.", worker);
    (void)snprintf(text, sizeof text, "{\"state\":\"%s\",\"epoch\":2,\"epochs\":5}", state);
    set_note(s, worker, name, text);
    s->asks.note[worker].age_ms = (uint64_t)(ago_s * 1000);
}

/* It was suspended or killed, and its note stays. Planted: whoever reads or is done is silent, too. */
static void who_says_nothing_for_long_is_silent(void **state)
{
    struct scene *s = scene();
    tell_at(s, 0, "training", 2);
    tell_at(s, 1, "training", 75);
    tell_at(s, 2, "reading", 75);
    struct dp_status_view view = gather(s, 0, NULL);
    char *text = print(&view);
    assert_non_null(strstr(text, "     0  training "));
    assert_non_null(strstr(text, "     1  silent "));
    assert_non_null(strstr(text, "\n        last heard 75 s ago: training\n"));
    assert_non_null(strstr(text, "     2  reading "));
    free(text);
    assert_true(view.worker[0].silent_s == 0 && view.worker[1].silent_s >= 75 &&
                view.worker[2].silent_s == 0);
    dp_status_view_clear(&view);
    free(s);
}

/* Between two looks; a server that was started again meanwhile counts anew. */
static void rates_are_of_the_interval(void **state)
{
    struct scene *s = scene();
    struct dp_status_view before = gather(s, 5000, NULL);
    s->counter[0][0].value += 3000;
    s->counter[1][1].value += 500;
    s->counter[0][5].value += 500;
    struct dp_status_view view = gather(s, 5500, &before);
    assert_true(view.server[0].pulled_per_s == 6000 && view.server[0].pushed_per_s == 1000);
    dp_status_view_clear(&view);
    s->counter[0][0].value = s->counter[1][0].value = 100;
    s->counter[0][5].value = s->counter[1][5].value = 200;
    view = gather(s, 5500, &before);
    assert_true(view.server[0].pulled_per_s == 1000);
    dp_status_view_clear(&view);
    dp_status_view_clear(&before);
    free(s);
}

static void set_histograms(struct scene *s, uint32_t shard)
{
    struct dp_histogram *h = s->histogram[shard];
    dp_histogram_init_numbers(&h[0], "staleness");
    dp_histogram_init_numbers(&h[1], "clock_gap");
    dp_histogram_init_shares(&h[2], "changed");
    h[3] = (struct dp_histogram){.name = "later", .buckets = 2, .upper = {-1e300, INFINITY}};
    s->shard[shard].report.histograms = 4;
    s->shard[shard].report.histogram = h;
}

/* Of all shards, or of the interval; what another version measures is shown, too. */
static void pushes_are_measured(void **state)
{
    struct scene *s = scene();
    set_histograms(s, 0);
    set_histograms(s, 1);
    struct dp_status_view before = gather(s, 5000, NULL);
    char *text = print(&before);
    assert_null(strstr(text, "p50"));
    free(text);
    s->histogram[0][0].count[0] = 60; /* 0, 4 to 7, 2^15 and more */
    s->histogram[1][0].count[3] = 39;
    s->histogram[1][0].count[16] = 1;
    s->histogram[0][2].count[1] = 1;
    s->histogram[1][3].count[0] = 5;
    struct dp_status_view view = gather(s, 6000, NULL);
    text = print(&view);
    assert_non_null(strstr(text, "\nStaleness in pushes: p50 0, p99 4 to 7 (100 pushes)\n"
                                 "Changed rows of a push: p50 0 to 1%, p99 0 to 1% (1 pushes)\n"
                                 "later: p50 up to -1e+300, p99 up to -1e+300 (5 pushes)\n"));
    assert_null(strstr(text, "Clock gap"));
    free(text);
    text = dp_status_view_json(&view, NULL);
    assert_non_null(strstr(text, "\"histograms\":[{\"name\":\"staleness\",\"upper\":[0.0,1.0,3.0,7.0,"));
    assert_non_null(strstr(text, "32767.0,null],\"counts\":[60,0,0,39,"));
    free(text);
    text = dp_status_view_json(&view, &s->asks);
    assert_non_null(strstr(text, "\"counts\":[0,0,0,39,")); /* shard 1's own */
    free(text);
    s->histogram[0][0].count[16] = 3;
    struct dp_status_view later = gather(s, 7000, &view);
    text = print(&later);
    assert_non_null(strstr(text, "\nStaleness in pushes: p50 32768 or more, p99 32768 or more (3 pushes)\n"));
    assert_null(strstr(text, "Changed"));
    free(text);
    s->histogram[0][0].count[0] = 1; /* shard 0 was started again */
    dp_status_view_clear(&later);
    later = gather(s, 8000, &view);
    text = print(&later);
    assert_non_null(strstr(text, "(44 pushes)"));
    free(text);
    dp_status_view_clear(&before);
    dp_status_view_clear(&view);
    dp_status_view_clear(&later);
    free(s);
}

static void workers_are_lines_in_their_order(void **state)
{
    struct scene *s = scene();
    set_note(s, 0, "run/1/progress/10.",
             "{\"state\":\"training\",\"first_epoch\":5,\"epoch\":2,\"epochs\":10,\"examples\":430,"
             "\"examples_total\":1000,"
             "\"examples_per_s\":10.0,\"loss\":0.25,\"staleness_mean\":1.5,\"dropped\":48}");
    set_note(s, 1, "run/1/progress/2.",
             "{\"state\":\"waiting\\u001b[2J, and a state longer than anybody's\"}");
    set_note(s, 2, "run/1/progress/3.", "no JSON at all");
    struct dp_status_view view = gather(s, 0, NULL);
    assert_int_equal(view.workers, 2);
    assert_string_equal(view.worker[0].name, "2");
    char *text = print(&view);
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text,
                           "    10  training        7/15   43%   0:00:57         10   1.50       0.25\n"
                           "        48 of its examples came too late for their step and were dropped\n"));
    free(text);
    dp_status_view_clear(&view);
    free(s);
}

static void long_reasons_are_wrapped(void **state)
{
    struct scene *s = scene();
    memset(s->shard[2].reason, 'x', DP_REASON_MAX);
    for (uint32_t i = 7; i < DP_REASON_MAX; i += 8)
        s->shard[2].reason[i] = ' ';
    memcpy(s->shard[2].reason + DP_REASON_MAX - 8, " the end", 8);
    struct dp_status_view view = gather(s, 0, NULL);
    char *text = print(&view);
    assert_non_null(strstr(text, "the end\n"));
    free(text);
    dp_status_view_clear(&view);
    free(s);
}

static void json_has_the_same(void **state)
{
    struct scene *s = scene();
    struct dp_status_view view = gather(s, 0, NULL);
    char *text = dp_status_view_json(&view, NULL), *all = dp_status_view_json(&view, &s->asks);
    assert_non_null(text);
    assert_non_null(all);
    assert_non_null(strstr(text, "\"all_serve\":false"));
    assert_non_null(strstr(text, "\"server\":0,\"state\":\"serving\""));
    assert_non_null(strstr(text, "\"server\":2,\"state\":\"down\",\"why\":\"no answer"));
    assert_non_null(strstr(text, "\"rows_pulled_per_s\":10000.0"));
    assert_non_null(strstr(text, "\"staleness\":null")); /* of one that does not serve */
    assert_null(strstr(text, "store_file_bytes"));
    assert_non_null(strstr(all, "\"store_file_bytes\":1500"));
    free(text);
    free(all);
    dp_status_view_clear(&view);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_and_figures_are_those_of_all_shards),
        cmocka_unit_test(held_pulls_are_told),
        cmocka_unit_test(whom_a_worker_waits_for_is_told),
        cmocka_unit_test(who_says_nothing_for_long_is_silent),
        cmocka_unit_test(rates_are_of_the_interval),
        cmocka_unit_test(pushes_are_measured),
        cmocka_unit_test(workers_are_lines_in_their_order),
        cmocka_unit_test(long_reasons_are_wrapped),
        cmocka_unit_test(json_has_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

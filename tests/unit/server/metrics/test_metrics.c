/* Metrics: each counter has one series a shard, by Prometheus's conventions; a shard that is away has none;
 * notes are anybody's bytes; health and readiness. */
#include "tests/unit/server/metrics/metrics_bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bed bed;

static void has(const char *text, const char *line)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    if (!strstr(text, whole))
        fail_msg("no line '%s' in:\n%s", line, text);
}

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void each_shard_has_its_own_series(void **state)
{
    char *text;
    bed_start(&bed);
    assert_int_equal(bed_get(&bed, "/metrics", &text), 200);
    has(text,
        "downpour_server_info{cluster=\"a \\\"test\\\"\",server=\"1\",version=\"" DOWNPOUR_VERSION "\"} 1");
    has(text, "downpour_server_ready 0");
    has(text, "downpour_shard_serving{shard=\"4\"} 1");
    has(text, "downpour_shard_serving{shard=\"5\"} 0");
    has(text, "downpour_shard_recovery_done_bytes{shard=\"5\"} 3");
    has(text, "downpour_shard_recovery_bytes{shard=\"5\"} 9");
    has(text, "downpour_shard_start_time_seconds{shard=\"6\"} 1700000002");
    has(text, "# TYPE downpour_shard_pushes_total counter");
    has(text, "downpour_shard_pushes_total{shard=\"4\"} 1000");
    has(text, "downpour_shard_pushes_total{shard=\"6\"} 1000");
    has(text, "downpour_shard_pulls_held_seconds_total{shard=\"4\"} 1");
    has(text, "downpour_shard_turn_max_seconds{shard=\"4\"} 1e-06");
    has(text, "downpour_shard_refusals_total{shard=\"4\",cause=\"disk\"} 7");
    has(text, "downpour_shard_refusals_total{shard=\"4\",cause=\"invalid\"} 5");
    has(text, "downpour_shard_push_staleness_bucket{shard=\"4\",le=\"0\"} 1");
    has(text, "downpour_shard_push_staleness_bucket{shard=\"4\",le=\"1\"} 3");
    has(text, "downpour_shard_push_staleness_bucket{shard=\"4\",le=\"+Inf\"} 4");
    has(text, "downpour_shard_push_staleness_sum{shard=\"4\"} 100000.5");
    has(text, "downpour_shard_push_staleness_count{shard=\"4\"} 4");
    has(text, "downpour_shard_push_changed_rows_ratio_bucket{shard=\"6\",le=\"0.5\"} 3");
    /* One that is away has no number that could fall, or be added as 0. */
    assert_int_equal(count(text, "{shard=\"5\""), 3);
    free(text);
    bed_stop(&bed);
}

/* Names and types follow the conventions, for counters to come, too. */
static void every_counter_is_a_family(void **state)
{
    char *text, *rest, *line;
    uint32_t families = 0, totals = 0;
    bed_start(&bed);
    assert_int_equal(bed_get(&bed, "/metrics", &text), 200);
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[128], type[16];
        if (sscanf(line, "# TYPE %127s %15s", name, type) != 2)
            continue;
        families++;
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789"), strlen(name));
        size_t length = strlen(name);
        bool total = length > 6 && strcmp(name + length - 6, "_total") == 0;
        assert_int_equal(total, strcmp(type, "counter") == 0);
        assert_null(strstr(name, "_ms"));
        assert_null(strstr(name, "_ns"));
        totals += total && strncmp(name, "downpour_shard_", 15) == 0;
    }
    uint32_t counters = bed.shard[0].observed.counters, rising = 0;
#define COUNT(name, kind, help) rising += DP_COUNTER_##kind == DP_COUNTER_TOTAL;
    DP_COUNTER_MAP(COUNT)
    DP_STORE_COUNTER_MAP(COUNT)
#undef COUNT
    assert_int_equal(totals, rising + 1);          /* refusals */
    assert_int_equal(families, counters + 3 + 10); /* histograms; refusals, states, server, process */
    free(text);
    bed_stop(&bed);
}

static void notes_of_workers_are_series(void **state)
{
    char *text;
    bed_start(&bed);
    bed.note_age_ns = UINT64_C(1500000000);
    bed_note(&bed, "run/2/progress/10.",
             "{\"state\":\"training\",\"epoch\":2,\"epochs\":5,\"step\":17,\"examples\":120,\"examples_"
             "total\":900,"
             "\"examples_per_s\":12.5,\"loss\":0.25,\"spent_s\":{\"read\":1.5,\"bad name\":3,\"x\":\"y\"},"
             "\"awaited\":\"<b>worker 3</b>\",\"awaited_reason\":\"STEP\",\"awaited_worker\":3}");
    bed_note(&bed, "run/2/progress/9.",
             "{\"state\":\"\\\"}\\n evil\",\"loss\":\"text\",\"awaited_reason\":\"a b\"}");
    /* None of these is a worker's note. */
    bed_note(&bed, "run/2/progress/09.", "{\"state\":\"training\"}");
    bed_note(&bed, "run/02/progress/9.", "{\"state\":\"training\"}");
    bed_note(&bed, "run/4294967296/progress/9.", "{\"state\":\"training\"}");
    bed_note(&bed, "run/2/progress/9.x", "{\"state\":\"training\"}");
    bed_note(&bed, "run/2/progress/8.", "{\"state\":1}");
    bed_note(&bed, "run/2/progress/7.", "[[[[");
    bed_note(&bed, "run/2/progress/6.", "\xff\xfe{}");
    assert_int_equal(bed_get(&bed, "/metrics", &text), 200);
    has(text, "downpour_worker_state{run=\"2\",worker=\"10\",state=\"training\"} 1");
    has(text, "downpour_worker_state{run=\"2\",worker=\"9\",state=\"other\"} 1");
    has(text, "downpour_worker_silent_seconds{run=\"2\",worker=\"9\"} 1.5");
    has(text, "downpour_worker_step{run=\"2\",worker=\"10\"} 17");
    has(text, "downpour_worker_loss{run=\"2\",worker=\"10\"} 0.25");
    has(text, "downpour_worker_examples_total{run=\"2\",worker=\"10\"} 120");
    has(text, "downpour_worker_examples_per_second{run=\"2\",worker=\"10\"} 12.5");
    has(text, "downpour_worker_phase_seconds_total{run=\"2\",worker=\"10\",phase=\"read\"} 1.5");
    has(text, "downpour_worker_waiting{run=\"2\",worker=\"10\",reason=\"step\",for=\"3\"} 1");
    assert_int_equal(count(text, "downpour_worker_state{"), 2);
    assert_int_equal(count(text, "downpour_worker_loss{"), 1);
    assert_int_equal(count(text, "downpour_worker_phase_seconds_total{"), 1);
    assert_int_equal(count(text, "downpour_worker_waiting{"), 1);
    assert_null(strstr(text, "evil"));
    free(text);
    assert_int_equal(bed_get(&bed, "/", &text), 200);
    assert_non_null(strstr(text, "&lt;b&gt;worker 3"));
    assert_null(strstr(text, "<b>"));
    assert_non_null(strstr(text, "&lt;3 of 9&gt;"));
    free(text);
    /* A run that ended a while ago. */
    bed.note_age_ns = DP_BOARD_IDLE_NS + 1;
    assert_int_equal(bed_get(&bed, "/metrics", &text), 200);
    assert_null(strstr(text, "downpour_worker_"));
    free(text);
    bed_stop(&bed);
}

/* A family of the text: "downpour_shard_pushes_total", or a histogram of "..._bucket". */
static bool is_exported(const char *text, const char *name, size_t length)
{
    static const char *const parts[] = {"", "_bucket", "_sum", "_count"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char line[256];
        size_t part = strlen(parts[i]);
        if (length <= part || strncmp(name + length - part, parts[i], part) != 0)
            continue;
        (void)snprintf(line, sizeof line, "\n# TYPE %.*s ", (int)(length - part), name);
        if (strstr(text, line))
            return true;
    }
    return false;
}

/* Rules and dashboard name no series that servers do not have. */
static void dashboards_name_what_is_exported(void **state)
{
    static const char *const files[] = {"deploy/dashboards/downpour.rules.yml",
                                        "deploy/dashboards/downpour.test.yml",
                                        "deploy/dashboards/grafana.json", "deploy/docs/operations.md"};
    char *text, *file = malloc(1 << 20);
    assert_non_null(file);
    bed_start(&bed);
    bed_note(&bed, "run/2/progress/10.", "{\"state\":\"training\"}");
    assert_int_equal(bed_get(&bed, "/metrics", &text), 200);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        FILE *from = fopen(files[i], "r");
        assert_non_null(from);
        file[fread(file, 1, (1 << 20) - 1, from)] = '\0';
        assert_int_equal(fclose(from), 0);
        uint32_t named = 0;
        for (const char *p = file; (p = strstr(p, "downpour_")); p++) {
            size_t length = strspn(p, "abcdefghijklmnopqrstuvwxyz_0123456789");
            if (p[length] == '*' || p[length] == '(')
                continue;
            named++;
            if (!is_exported(text, p, length))
                fail_msg("%s names %.*s", files[i], (int)length, p);
        }
        assert_true(named > 4);
    }
    free(text);
    free(file);
    bed_stop(&bed);
}

static void health_is_the_control_threads_and_readiness_the_shards(void **state)
{
    char *text;
    bed_start(&bed);
    assert_int_equal(bed_get(&bed, "/healthz", &text), 200);
    assert_string_equal(text, "ok\n");
    free(text);
    assert_int_equal(bed_get(&bed, "/readyz", &text), 503);
    assert_string_equal(text, "shard 5 is recovering: <3 of 9>\n");
    free(text);
    bed.shard[1] = bed.shard[0];
    bed.control_idle_ms = 31000;
    assert_int_equal(bed_get(&bed, "/readyz", &text), 200);
    assert_string_equal(text, "ready\n");
    free(text);
    assert_int_equal(bed_get(&bed, "/healthz", &text), 503);
    assert_string_equal(text, "the control thread of server 1 has not answered for 31 s\n");
    free(text);
    bed_stop(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_shard_has_its_own_series),
        cmocka_unit_test(every_counter_is_a_family),
        cmocka_unit_test(notes_of_workers_are_series),
        cmocka_unit_test(dashboards_name_what_is_exported),
        cmocka_unit_test(health_is_the_control_threads_and_readiness_the_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

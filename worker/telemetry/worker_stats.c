#include "worker/telemetry/worker_stats.h"

#include "common/base/json.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum dp_status dp_worker_stats_init(struct dp_worker_stats *stats, uint32_t worker, uint32_t epochs,
                                    struct dp_error *err)
{
    *stats = (struct dp_worker_stats){.worker = worker, .epochs = epochs};
    stats->epoch = calloc(epochs ? epochs : 1, sizeof *stats->epoch);
    return stats->epoch ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the stats of %u epochs", epochs);
}

void dp_worker_stats_clear(struct dp_worker_stats *stats)
{
    free(stats->epoch);
    *stats = (struct dp_worker_stats){0};
}

uint64_t dp_worker_stats_examples(const struct dp_worker_stats *stats)
{
    uint64_t n = stats->found_examples + stats->dropped.passed;
    for (uint32_t e = 0; e < stats->epochs; e++)
        n += stats->epoch[e].examples;
    return n;
}

uint64_t dp_worker_stats_applied_examples(const struct dp_worker_stats *stats)
{
    uint64_t n = dp_worker_stats_examples(stats);
    uint64_t lost = stats->repeated_examples + stats->dropped.examples;
    return n > lost ? n - lost : 0;
}

uint64_t dp_worker_stats_new_examples(const struct dp_worker_stats *stats)
{
    uint64_t n = dp_worker_stats_applied_examples(stats);
    return n > stats->found_examples ? n - stats->found_examples : 0;
}

double dp_worker_stats_seconds(const struct dp_worker_stats *stats)
{
    double seconds = 0;
    for (uint32_t e = 0; e < stats->epochs; e++)
        seconds += stats->epoch[e].seconds;
    return seconds;
}

/* ---- the note */

/* Its numbers. */
static const struct {
    const char *key;
    size_t at;
} numbers[] = {
#define STAT(key, field)                                                                                     \
    {                                                                                                        \
        key, offsetof(struct dp_worker_stats, field)                                                         \
    }
    STAT("pushes", pushes),
    STAT("found_examples", found_examples),
    STAT("repeated_examples", repeated_examples),
    STAT("dropped_pushes", dropped.pushes),
    STAT("dropped_partly", dropped.partly),
    STAT("dropped_examples", dropped.examples),
    STAT("passed_examples", dropped.passed),
    STAT("missed_steps", missed),
    STAT("missed_examples", missed_examples),
    STAT("measured_pushes", staleness.pushes),
    STAT("repeated", staleness.repeated),
    STAT("measured", staleness.measured),
    STAT("sum", staleness.sum),
    STAT("max", staleness.max),
    STAT("own_sum", staleness.own_sum),
    STAT("own_max", staleness.own_max),
    STAT("gaps", staleness.gaps),
    STAT("gap_sum", staleness.gap_sum),
    STAT("gap_max", staleness.gap_max),
    STAT("rows", staleness.rows),
    STAT("changed_rows", staleness.changed_rows),
    STAT("divided", staleness.divided),
#undef STAT
};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

static json_t *counts_of(const uint64_t *counts, uint32_t count)
{
    json_t *out = json_array();
    for (uint32_t b = 0; b < count; b++)
        (void)json_array_append_new(out, dp_json_u64(counts[b]));
    return out;
}

/* [bucket, count, bucket, count, ...] of those that are not empty. */
static json_t *fine_of(const struct dp_staleness *staleness)
{
    json_t *out = json_array();
    for (uint32_t b = 0; b < DP_STALENESS_FINE; b++) {
        if (staleness->fine[b] == 0)
            continue;
        (void)json_array_append_new(out, dp_json_u64(b));
        (void)json_array_append_new(out, dp_json_u64(staleness->fine[b]));
    }
    return out;
}

enum dp_status dp_worker_stats_pack(const struct dp_worker_stats *stats, char **text, struct dp_error *err)
{
    const struct dp_staleness *s = &stats->staleness;
    json_t *epochs = json_array(), *spent = json_array();
    uint32_t used = stats->epochs;
    int bad = 0;
    while (used > 0 && stats->epoch[used - 1].examples == 0)
        used--;
    for (uint32_t e = 0; e < used; e++) {
        const struct dp_epoch_stats *epoch = &stats->epoch[e];
        bad |=
            json_array_append_new(epochs, json_pack("[f,I,f,f]", epoch->loss_sum, (json_int_t)epoch->examples,
                                                    epoch->begun, epoch->seconds));
    }
    for (int i = 0; i < DP_PHASE_KINDS; i++)
        bad |= json_array_append_new(spent, json_real(stats->times.seconds[i]));
    json_t *root = json_pack("{s:I, s:I, s:o, s:o, s:o, s:f, s:o, s:s, s:o}", "worker",
                             (json_int_t)stats->worker, "ended", (json_int_t)stats->ended, "fine", fine_of(s),
                             "gap_counts", counts_of(s->gap.count, s->gap.buckets), "changed_counts",
                             counts_of(s->changed.count, s->changed.buckets), "divisor_sum", s->divisor_sum,
                             "spent", spent, "device", stats->device, "epochs", epochs);
    for (size_t i = 0; i < NUMBERS; i++)
        dp_json_set_u64(root, numbers[i].key, *(const uint64_t *)((const char *)stats + numbers[i].at));
    *text = root && !bad ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return *text ? DP_OK : dp_fail(err, DP_INTERNAL, "cannot format a worker's stats as JSON");
}

static bool read_u64(const json_t *value, uint64_t *out)
{
    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

/* None: nothing was counted. */
static bool read_counts(const json_t *counts, struct dp_histogram *out)
{
    size_t size = json_array_size(counts);
    bool good = json_is_array(counts) && (size == 0 || size == out->buckets);
    for (uint32_t b = 0; good && b < size; b++)
        good = read_u64(json_array_get(counts, b), &out->count[b]);
    return good;
}

static bool read_fine(const json_t *fine, struct dp_staleness *out)
{
    size_t size = json_array_size(fine);
    bool good = json_is_array(fine) && size % 2 == 0;
    for (size_t i = 0; good && i < size; i += 2) {
        uint64_t bucket;
        good = read_u64(json_array_get(fine, i), &bucket) && bucket < DP_STALENESS_FINE &&
               read_u64(json_array_get(fine, i + 1), &out->fine[bucket]);
    }
    return good;
}

static bool read_epochs(json_t *array, struct dp_worker_stats *out)
{
    bool good = json_is_array(array) && json_array_size(array) <= out->epochs;
    for (uint32_t e = 0; good && e < json_array_size(array); e++) {
        struct dp_epoch_stats *epoch = &out->epoch[e];
        json_int_t examples = 0;
        good = json_unpack(json_array_get(array, e), "[f,I,f,f!]", &epoch->loss_sum, &examples, &epoch->begun,
                           &epoch->seconds) == 0;
        epoch->examples = (uint64_t)examples;
    }
    return good;
}

static bool read_spent(const json_t *array, struct dp_step_times *out)
{
    bool good = json_is_array(array) && json_array_size(array) == DP_PHASE_KINDS;
    for (size_t i = 0; good && i < DP_PHASE_KINDS; i++) {
        const json_t *seconds = json_array_get(array, i);
        out->seconds[i] = json_real_value(seconds);
        good = json_is_real(seconds);
    }
    return good;
}

static bool read_stats(json_t *root, struct dp_worker_stats *out)
{
    struct dp_staleness *s = &out->staleness;
    json_int_t worker = 0, ended = 0;
    const char *device = "";
    json_t *fine, *gaps, *changed, *spent, *epochs;
    if (json_unpack(root, "{s:I, s:I, s:o, s:o, s:o, s:f, s:o, s:s, s:o}", "worker", &worker, "ended", &ended,
                    "fine", &fine, "gap_counts", &gaps, "changed_counts", &changed, "divisor_sum",
                    &s->divisor_sum, "spent", &spent, "device", &device, "epochs", &epochs) != 0)
        return false;
    bool good = worker >= 0 && worker <= UINT32_MAX && ended >= 0 && ended <= out->epochs;
    for (size_t i = 0; good && i < NUMBERS; i++)
        good = read_u64(json_object_get(root, numbers[i].key), (uint64_t *)((char *)out + numbers[i].at));
    out->worker = (uint32_t)worker;
    out->ended = (uint32_t)ended;
    (void)snprintf(out->device, sizeof out->device, "%s", device);
    dp_staleness_begin(s);
    return good && read_fine(fine, s) && read_counts(gaps, &s->gap) && read_counts(changed, &s->changed) &&
           read_spent(spent, &out->times) && read_epochs(epochs, out);
}

enum dp_status dp_worker_stats_unpack(const char *text, size_t size, uint32_t epochs,
                                      struct dp_worker_stats *out, struct dp_error *err)
{
    enum dp_status st = dp_worker_stats_init(out, 0, epochs, err);
    if (st != DP_OK)
        return st;
    json_error_t where;
    json_t *root = json_loadb(text, size, 0, &where);
    if (!root || !read_stats(root, out)) {
        dp_worker_stats_clear(out);
        st = dp_fail(err, DP_DATA,
                     "a note does not hold a worker's stats of %u epochs: do all workers "
                     "read the same cluster file?",
                     epochs);
    }
    json_decref(root);
    return st;
}

#include "worker/telemetry/worker_stats.h"

#include "common/base/json.h"

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

static json_t *counts_of(const struct dp_histogram *histogram)
{
    json_t *counts = json_array();
    for (uint32_t b = 0; b < histogram->buckets; b++)
        (void)json_array_append_new(counts, dp_json_u64(histogram->count[b]));
    return counts;
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
    json_t *epochs = json_array(), *histogram = json_array(), *spent = json_array(), *root = json_object();
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
    for (uint32_t i = 0; i < DP_STALENESS_BUCKETS; i++)
        bad |= json_array_append_new(histogram, dp_json_u64(s->histogram[i]));
    bad |= json_object_set_new(root, "worker", dp_json_u64(stats->worker));
    bad |= json_object_set_new(root, "ended", dp_json_u64(stats->ended));
    bad |= json_object_set_new(root, "pushes", dp_json_u64(stats->pushes));
    bad |= json_object_set_new(root, "found_examples", dp_json_u64(stats->found_examples));
    bad |= json_object_set_new(root, "repeated_examples", dp_json_u64(stats->repeated_examples));
    bad |= json_object_set_new(root, "dropped_pushes", dp_json_u64(stats->dropped.pushes));
    bad |= json_object_set_new(root, "dropped_partly", dp_json_u64(stats->dropped.partly));
    bad |= json_object_set_new(root, "dropped_examples", dp_json_u64(stats->dropped.examples));
    bad |= json_object_set_new(root, "passed_examples", dp_json_u64(stats->dropped.passed));
    bad |= json_object_set_new(root, "missed_steps", dp_json_u64(stats->missed));
    bad |= json_object_set_new(root, "missed_examples", dp_json_u64(stats->missed_examples));
    bad |= json_object_set_new(root, "measured_pushes", dp_json_u64(s->pushes));
    bad |= json_object_set_new(root, "repeated", dp_json_u64(s->repeated));
    bad |= json_object_set_new(root, "measured", dp_json_u64(s->measured));
    bad |= json_object_set_new(root, "sum", dp_json_u64(s->sum));
    bad |= json_object_set_new(root, "max", dp_json_u64(s->max));
    bad |= json_object_set_new(root, "histogram", histogram);
    bad |= json_object_set_new(root, "fine", fine_of(s));
    bad |= json_object_set_new(root, "own_sum", dp_json_u64(s->own_sum));
    bad |= json_object_set_new(root, "own_max", dp_json_u64(s->own_max));
    bad |= json_object_set_new(root, "gaps", dp_json_u64(s->gaps));
    bad |= json_object_set_new(root, "gap_sum", dp_json_u64(s->gap_sum));
    bad |= json_object_set_new(root, "gap_max", dp_json_u64(s->gap_max));
    bad |= json_object_set_new(root, "gap_counts", counts_of(&s->gap));
    bad |= json_object_set_new(root, "rows", dp_json_u64(s->rows));
    bad |= json_object_set_new(root, "changed_rows", dp_json_u64(s->changed_rows));
    bad |= json_object_set_new(root, "changed_counts", counts_of(&s->changed));
    bad |= json_object_set_new(root, "divided", dp_json_u64(s->divided));
    bad |= json_object_set_new(root, "divisor_sum", json_real(s->divisor_sum));
    for (int i = 0; i < DP_PHASE_KINDS; i++)
        bad |= json_array_append_new(spent, json_real(stats->times.seconds[i]));
    bad |= json_object_set_new(root, "spent", spent);
    bad |= json_object_set_new(root, "device", json_string(stats->device));
    bad |= json_object_set_new(root, "epochs", epochs);
    *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return *text ? DP_OK : dp_fail(err, DP_INTERNAL, "cannot format a worker's stats as JSON");
}

static bool read_u64(const json_t *object, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* What an earlier version did not count yet: a run that it began is finished by this one. */
static bool read_later_u64(const json_t *object, const char *key, uint64_t *out)
{
    *out = 0;
    return !json_object_get(object, key) || read_u64(object, key, out);
}

static bool read_dropped(const json_t *root, struct dp_dropped *out)
{
    return read_later_u64(root, "dropped_pushes", &out->pushes) &&
           read_later_u64(root, "dropped_partly", &out->partly) &&
           read_later_u64(root, "dropped_examples", &out->examples) &&
           read_later_u64(root, "passed_examples", &out->passed);
}

/* None: nothing was counted, or an earlier version did not. */
static bool read_counts(const json_t *counts, struct dp_histogram *out)
{
    size_t size = json_array_size(counts);
    if (counts && (!json_is_array(counts) || (size > 0 && size != out->buckets)))
        return false;
    for (uint32_t b = 0; b < size; b++) {
        const json_t *count = json_array_get(counts, b);
        if (!json_is_integer(count) || json_integer_value(count) < 0)
            return false;
        out->count[b] = (uint64_t)json_integer_value(count);
    }
    return true;
}

/* As read_counts. */
static bool read_fine(const json_t *fine, struct dp_staleness *out)
{
    size_t size = json_array_size(fine);
    if (fine && (!json_is_array(fine) || size % 2 != 0))
        return false;
    for (size_t i = 0; i < size; i += 2) {
        const json_t *bucket = json_array_get(fine, i), *count = json_array_get(fine, i + 1);
        if (!json_is_integer(bucket) || json_integer_value(bucket) < 0 ||
            json_integer_value(bucket) >= DP_STALENESS_FINE || !json_is_integer(count) ||
            json_integer_value(count) < 0)
            return false;
        out->fine[json_integer_value(bucket)] = (uint64_t)json_integer_value(count);
    }
    return true;
}

static bool read_measures(const json_t *root, struct dp_staleness *out)
{
    const json_t *divisors = json_object_get(root, "divisor_sum");
    dp_staleness_begin(out);
    out->divisor_sum = json_is_real(divisors) ? json_real_value(divisors) : 0;
    return read_later_u64(root, "rows", &out->rows) &&
           read_later_u64(root, "changed_rows", &out->changed_rows) &&
           read_later_u64(root, "own_sum", &out->own_sum) && read_later_u64(root, "own_max", &out->own_max) &&
           read_fine(json_object_get(root, "fine"), out) && read_later_u64(root, "divided", &out->divided) &&
           read_counts(json_object_get(root, "gap_counts"), &out->gap) &&
           read_counts(json_object_get(root, "changed_counts"), &out->changed);
}

static bool read_epochs(const json_t *array, struct dp_worker_stats *out)
{
    if (!json_is_array(array) || json_array_size(array) > out->epochs)
        return false;
    for (uint32_t e = 0; e < json_array_size(array); e++) {
        const json_t *row = json_array_get(array, e);
        const json_t *loss = json_array_get(row, 0), *examples = json_array_get(row, 1),
                     *begun = json_array_get(row, 2), *seconds = json_array_get(row, 3);
        if (!json_is_real(loss) || !json_is_integer(examples) || !json_is_real(begun) ||
            !json_is_real(seconds))
            return false;
        out->epoch[e] = (struct dp_epoch_stats){.loss_sum = json_real_value(loss),
                                                .examples = (uint64_t)json_integer_value(examples),
                                                .begun = json_real_value(begun),
                                                .seconds = json_real_value(seconds)};
    }
    return true;
}

static bool read_spent(const json_t *array, struct dp_step_times *out)
{
    size_t at = 0, size = json_array_size(array);
    /* Earlier versions had no delays, and those before them no wait for others. */
    bool has_delays = size == DP_PHASE_KINDS, has_rule = has_delays || size == DP_PHASE_KINDS - 1;
    *out = (struct dp_step_times){0};
    if (!json_is_array(array) || (!has_rule && size != DP_PHASE_KINDS - 2))
        return false;
    for (int i = 0; i < DP_PHASE_KINDS; i++) {
        if ((i == DP_PHASE_WAITING_RULE && !has_rule) || (i == DP_PHASE_INJECTED && !has_delays))
            continue;
        const json_t *seconds = json_array_get(array, at++);
        if (!json_is_real(seconds))
            return false;
        out->seconds[i] = json_real_value(seconds);
    }
    return true;
}

static bool read_stats(const json_t *root, struct dp_worker_stats *out)
{
    struct dp_staleness *s = &out->staleness;
    uint64_t worker, ended;
    if (!read_u64(root, "worker", &worker) || worker > UINT32_MAX || !read_u64(root, "ended", &ended) ||
        ended > out->epochs || !read_u64(root, "pushes", &out->pushes) ||
        !read_u64(root, "found_examples", &out->found_examples) ||
        !read_u64(root, "repeated_examples", &out->repeated_examples) || !read_dropped(root, &out->dropped) ||
        !read_later_u64(root, "missed_steps", &out->missed) ||
        !read_later_u64(root, "missed_examples", &out->missed_examples) ||
        !read_u64(root, "measured_pushes", &s->pushes) || !read_u64(root, "repeated", &s->repeated) ||
        !read_u64(root, "measured", &s->measured) || !read_u64(root, "sum", &s->sum) ||
        !read_u64(root, "max", &s->max) || !read_later_u64(root, "gaps", &s->gaps) ||
        !read_later_u64(root, "gap_sum", &s->gap_sum) || !read_later_u64(root, "gap_max", &s->gap_max))
        return false;
    out->worker = (uint32_t)worker;
    out->ended = (uint32_t)ended;
    const json_t *histogram = json_object_get(root, "histogram");
    if (!json_is_array(histogram) || json_array_size(histogram) != DP_STALENESS_BUCKETS)
        return false;
    for (uint32_t i = 0; i < DP_STALENESS_BUCKETS; i++)
        s->histogram[i] = (uint64_t)json_integer_value(json_array_get(histogram, i));
    const json_t *device = json_object_get(root, "device");
    if (!json_is_string(device))
        return false;
    (void)snprintf(out->device, sizeof out->device, "%s", json_string_value(device));
    return read_measures(root, s) && read_spent(json_object_get(root, "spent"), &out->times) &&
           read_epochs(json_object_get(root, "epochs"), out);
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

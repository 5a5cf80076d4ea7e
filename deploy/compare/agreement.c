#include "deploy/compare/agreement.h"

#include "common/base/text.h"
#include "deploy/compare/compare_words.h"
#include "deploy/pages/training.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 160u

struct agreement {
    FILE *to;
    json_t *differs; /* "workers: 4 here, 8 there": the modes that it is of, or "" for all */
    size_t agree, differ, unknown;
};

/* ---- what differs */

/* "0.5", "none", "1 2", "momentum 0.5, kind sgd", "accuracy 0.95 (automatic)". */
static void put_value(FILE *to, const json_t *value);

static void put_target(FILE *to, const json_t *target)
{
    put_value(to, json_object_get(target, "metric"));
    fputc(' ', to);
    put_value(to, json_object_get(target, "value"));
    if (json_object_get(target, "chosen")) {
        fputs(" (", to);
        put_value(to, json_object_get(target, "chosen"));
        fputc(')', to);
    }
}

static void put_members(FILE *to, const json_t *value)
{
    const char *key, *before = "";
    json_t *one;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)value, i, one)
    {
        fputs(before, to);
        put_value(to, one);
        before = " ";
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, one)
    {
        fprintf(to, "%s%.60s ", before, key);
        put_value(to, one);
        before = ", ";
    }
}

static void put_value(FILE *to, const json_t *value)
{
    if (!value || json_is_null(value))
        fputs("none", to);
    else if (json_is_string(value))
        fputs(json_string_value(value)[0] ? json_string_value(value) : "none", to);
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", to);
    else if (json_is_integer(value))
        fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        fprintf(to, "%.4g", json_real_value(value));
    else if (json_object_get(value, "metric"))
        put_target(to, value);
    else
        put_members(to, value);
}

static bool is_same(const json_t *here, const json_t *there)
{
    return here == there || json_equal(here, there) ||
           (json_is_number(here) && json_is_number(there) &&
            json_number_value(here) == json_number_value(there));
}

/* "workers: 4 here, 8 there"; the caller frees it. NULL: no memory. */
static char *line_of(const char *name, const json_t *here, const json_t *there)
{
    char *line = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&line, &size);
    if (!to)
        return NULL;
    fprintf(to, "%s: ", name);
    put_value(to, here);
    fputs(" here, ", to);
    put_value(to, there);
    fputs(" there", to);
    if (fclose(to) == 0) {
        dp_text_clean(line);
        return line;
    }
    free(line);
    return NULL;
}

/* within: the mode that the value is of; "": of all. A line that stands for all is not repeated for a mode. */
static void compare_value(struct agreement *a, const char *within, const char *name, const json_t *here,
                          const json_t *there)
{
    char *line = is_same(here, there) ? NULL : line_of(name, here, there);
    const char *had = line ? json_string_value(json_object_get(a->differs, line)) : NULL;
    if (line && !had)
        (void)json_object_set_new(a->differs, line, json_string(within));
    else if (line && had[0] && within[0])
        (void)json_object_set_new(a->differs, line, json_sprintf("%s, %s", had, within));
    free(line);
}

static void put_differences(struct agreement *a)
{
    const char *line;
    json_t *within;
    json_object_foreach(a->differs, line, within)
    {
        const char *modes = json_string_value(within);
        fprintf(a->to, "  %s%s%s\n", modes, modes[0] ? " " : "", line);
    }
}

static bool is_left_out(const char *key)
{
    static const char *const keys[] = {"seed", "run", "grid"}; /* of one run; results */
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Each key of either. */
static void compare_objects(struct agreement *a, const char *within, const json_t *here, const json_t *there)
{
    json_t *all = json_copy((json_t *)(uintptr_t)here), *value;
    const char *key;
    (void)json_object_update_missing(all, (json_t *)(uintptr_t)there);
    json_object_foreach(all, key, value) if (!is_left_out(key))
        compare_value(a, within, key, json_object_get(here, key), json_object_get(there, key));
    json_decref(all);
}

/* Settings, digests of data by flag (where the files lie does not matter), version, build and machine. */
static json_t *facts_of(const json_t *root)
{
    static const char *const parts[] = {"build", "machine"};
    json_t *out = json_copy((json_t *)(uintptr_t)dp_comparison_settings(root)), *one;
    const char *key;
    char name[NAME_BYTES];
    size_t i;
    json_array_foreach(json_object_get(root, "files"), i, one)
    {
        (void)json_object_del(out, "train"); /* names */
        (void)json_object_del(out, "score");
        (void)snprintf(name, sizeof name, "BLAKE2b of %.60s", dp_training_text(one, "flag"));
        (void)json_object_set(out, name, json_object_get(one, "blake2b"));
    }
    (void)json_object_set(out, "version", json_object_get(root, "version"));
    for (size_t p = 0; p < 2; p++)
        json_object_foreach(json_object_get(root, parts[p]), key, one)
        {
            (void)snprintf(name, sizeof name, "%s %.60s", parts[p], key);
            (void)json_object_set(out, name, one);
        }
    return out;
}

static const json_t *run_settings(const json_t *root, size_t mode)
{
    size_t first = 0;
    const json_t *run = dp_comparison_next_trained(root, mode, &first);
    return json_object_get(json_object_get(run, "report"), "settings");
}

/* The number of a mode there; SIZE_MAX: it has none of that name. */
static size_t find_mode(const json_t *root, const char *name)
{
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        if (strcmp(dp_comparison_mode(root, m), name) == 0)
            return m;
    return SIZE_MAX;
}

static void compare_modes(struct agreement *a, const json_t *here, const json_t *there)
{
    for (size_t m = 0; m < dp_comparison_modes(here); m++) {
        const char *name = dp_comparison_mode(here, m);
        size_t other = find_mode(there, name);
        if (other == SIZE_MAX)
            compare_value(a, "", "mode", json_object_get(dp_comparison_mode_object(here, m), "name"), NULL);
        else if (run_settings(here, m) && run_settings(there, other))
            compare_objects(a, name, run_settings(here, m), run_settings(there, other));
    }
    for (size_t m = 0; m < dp_comparison_modes(there); m++)
        if (find_mode(here, dp_comparison_mode(there, m)) == SIZE_MAX)
            compare_value(a, "", "mode", NULL, json_object_get(dp_comparison_mode_object(there, m), "name"));
}

static void compare_all(struct agreement *a, const json_t *here, const json_t *there)
{
    json_t *own = facts_of(here), *its = facts_of(there);
    compare_objects(a, "", own, its);
    compare_modes(a, here, there);
    json_decref(own);
    json_decref(its);
}

/* ---- results */

static bool holds(const struct dp_interval *interval, double value)
{
    return value >= interval->low && value <= interval->high;
}

static const char *add_verdict(struct agreement *a, bool agrees)
{
    a->agree += agrees;
    a->differ += !agrees;
    return agrees ? "agrees" : "DIFFERS";
}

static void compare_result(struct agreement *a, const char *mode, const char *name,
                           enum dp_comparison_quantity quantity, const struct dp_interval *here,
                           const struct dp_interval *there)
{
    char own[DP_COMPARE_INTERVAL_BYTES], other[DP_COMPARE_INTERVAL_BYTES];
    const char *verdict = "not known";
    if (here->n == 0 && there->n == 0)
        return;
    if (here->n < 2 || there->n < 2)
        a->unknown++;
    else
        verdict = add_verdict(a, holds(here, there->mean) && holds(there, here->mean));
    fprintf(a->to, "  %-9s  %s, %s: %s here, ", verdict, mode, name,
            dp_compare_interval_text(here, dp_compare_digits(quantity, here->mean), own));
    fprintf(a->to, "%s there\n",
            dp_compare_interval_text(there, dp_compare_digits(quantity, there->mean), other));
}

static const json_t *target_of(const json_t *root)
{
    return json_object_get(dp_comparison_settings(root), "target");
}

static bool has_one_target(const json_t *here, const json_t *there)
{
    const json_t *own = target_of(here), *its = target_of(there);
    return json_equal(json_object_get(own, "metric"), json_object_get(its, "metric")) &&
           is_same(json_object_get(own, "value"), json_object_get(its, "value"));
}

static bool is_automatic(const json_t *target)
{
    const char *chosen = json_string_value(json_object_get(target, "chosen"));
    return chosen && strcmp(chosen, "automatic") == 0;
}

/* `here`, or a copy of it with the target of `there` where both were chosen afterwards for one metric. The caller drops it. */
static json_t *with_target(const json_t *here, const json_t *there)
{
    const json_t *own = target_of(here), *its = target_of(there);
    json_t *out = json_copy((json_t *)(uintptr_t)here);
    if (is_automatic(own) && is_automatic(its) && !has_one_target(here, there) &&
        json_equal(json_object_get(own, "metric"), json_object_get(its, "metric"))) {
        json_t *settings = json_copy((json_t *)(uintptr_t)dp_comparison_settings(here));
        (void)json_object_set(settings, "target", (json_t *)(uintptr_t)its);
        (void)json_object_set_new(out, "settings", settings);
    }
    return out;
}

static void put_targets(const struct agreement *a, const json_t *here, const json_t *judged,
                        const json_t *there)
{
    if (!has_one_target(judged, there))
        fputs("  not known  times and examples to the target: the targets differ: give both comparisons one "
              "--target\n",
              a->to);
    else if (!has_one_target(here, there)) {
        fputs("  The targets were chosen automatically and differ. Times and examples of both are to that of "
              "the other report: ",
              a->to);
        put_target(a->to, target_of(there));
        fputs(".\n", a->to);
    }
}

static bool is_of_target(enum dp_comparison_quantity quantity)
{
    return quantity == DP_QUANTITY_SECONDS_TO || quantity == DP_QUANTITY_EXAMPLES_TO;
}

/* Of both that have no run which diverged, nothing is said. */
static void compare_endings(struct agreement *a, const char *mode, const size_t here[2],
                            const size_t there[2])
{
    if (here[0] + there[0] > 0)
        fprintf(a->to, "  %-9s  %s, diverged: %zu of %zu runs here, %zu of %zu there\n",
                add_verdict(a, (here[0] > 0) == (there[0] > 0)), mode, here[0], here[1], there[0], there[1]);
}

/* Runs that diverged, of those that diverged or ended well. */
static void count_endings(const json_t *root, size_t mode, size_t out[2])
{
    out[0] = dp_ending_count(root, mode, DP_COMPARISON_DIVERGED);
    out[1] = out[0] + dp_ending_count(root, mode, DP_COMPARISON_GOOD);
}

static void compare_results(struct agreement *a, const json_t *here, const json_t *there)
{
    char at_end[96];
    (void)snprintf(at_end, sizeof at_end, "%.60s at the end",
                   dp_compare_metric_name(dp_comparison_metric(here)));
    const char *const names[DP_QUANTITIES] = {[DP_QUANTITY_METRIC] = at_end,
                                              [DP_QUANTITY_LOSS] = "loss at the end",
                                              [DP_QUANTITY_SECONDS_TO] = "seconds to the target",
                                              [DP_QUANTITY_EXAMPLES_TO] = "examples to the target",
                                              [DP_QUANTITY_EXAMPLES_S] = "applied examples/s"};
    bool one_metric = strcmp(dp_comparison_metric(here), dp_comparison_metric(there)) == 0;
    json_t *judged = with_target(here, there);
    bool one_target = has_one_target(judged, there);
    put_targets(a, here, judged, there);
    for (size_t m = 0; m < dp_comparison_modes(here); m++) {
        size_t other = find_mode(there, dp_comparison_mode(here, m)), own_ends[2], its_ends[2];
        if (other == SIZE_MAX)
            continue;
        count_endings(here, m, own_ends);
        count_endings(there, other, its_ends);
        compare_endings(a, dp_comparison_mode(here, m), own_ends, its_ends);
        for (int q = 0; q < DP_QUANTITIES; q++) {
            enum dp_comparison_quantity quantity = (enum dp_comparison_quantity)q;
            if (!names[q] || (quantity == DP_QUANTITY_METRIC && !one_metric) ||
                (is_of_target(quantity) && !one_target))
                continue;
            struct dp_interval own = dp_statistics_mode(judged, m, quantity),
                               its = dp_statistics_mode(there, other, quantity);
            compare_result(a, dp_comparison_mode(here, m), names[q], quantity, &own, &its);
        }
    }
    json_decref(judged);
}

void dp_agreement_put(FILE *to, const json_t *here, const json_t *there)
{
    char *settings = NULL, *results = NULL;
    size_t settings_size = 0, results_size = 0;
    struct agreement a = {.to = open_memstream(&settings, &settings_size), .differs = json_object()};
    if (a.to) {
        compare_all(&a, here, there);
        put_differences(&a);
        (void)fclose(a.to);
    }
    a.to = open_memstream(&results, &results_size);
    if (a.to) {
        compare_results(&a, here, there);
        (void)fclose(a.to);
    }
    size_t known = a.agree + a.differ;
    fprintf(to, "%zu of %zu results agree: each mean is in the other's 95%% interval.", a.agree, known);
    if (a.unknown > 0)
        fprintf(to, " Of %zu it is not known: they take two values on both sides.", a.unknown);
    fprintf(to, "\n%s", results ? results : "");
    fprintf(to,
            json_object_size(a.differs) > 0 ? "Differences in settings, data, build and machine:\n%s"
                                            : "Settings, data, build and machine are the same.\n%s",
            settings ? settings : "");
    json_decref(a.differs);
    free(settings);
    free(results);
}

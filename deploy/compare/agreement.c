#include "deploy/compare/agreement.h"

#include "common/base/text.h"
#include "deploy/compare/compare_words.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 160u

struct agreement {
    FILE *to;
    size_t settings, agree, differ, unknown; /* settings: that differ */
};

/* ---- what differs */

static const char *text_of(const json_t *value, char **out)
{
    *out = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
    const char *text = json_is_string(value) ? json_string_value(value) : *out;
    return text ? text : "none";
}

static void put_text(FILE *to, const char *text)
{
    char *clean = strdup(text);
    if (clean)
        dp_text_clean(clean);
    fputs(clean ? clean : "", to);
    free(clean);
}

static void compare_value(struct agreement *a, const char *name, const json_t *here, const json_t *there)
{
    char *own, *other;
    if (here == there || json_equal(here, there) ||
        (json_is_number(here) && json_is_number(there) &&
         json_number_value(here) == json_number_value(there)))
        return;
    const char *own_text = text_of(here, &own), *other_text = text_of(there, &other);
    fputs("  ", a->to);
    put_text(a->to, name);
    fputs(": ", a->to);
    put_text(a->to, own_text);
    fputs(" here, ", a->to);
    put_text(a->to, other_text);
    fputs(" there\n", a->to);
    a->settings++;
    free(own);
    free(other);
}

static bool is_left_out(const char *key)
{
    static const char *const keys[] = {"seed", "run", "grid"}; /* of one run; results */
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Each key of either. within: what the objects are of. */
static void compare_objects(struct agreement *a, const char *within, const json_t *here, const json_t *there)
{
    char name[NAME_BYTES];
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)here, key, value)
    {
        (void)snprintf(name, sizeof name, "%s%s%.60s", within, within[0] ? " " : "", key);
        if (!is_left_out(key))
            compare_value(a, name, value, json_object_get(there, key));
    }
    json_object_foreach((json_t *)(uintptr_t)there, key, value)
    {
        (void)snprintf(name, sizeof name, "%s%s%.60s", within, within[0] ? " " : "", key);
        if (!is_left_out(key) && !json_object_get(here, key))
            compare_value(a, name, NULL, value);
    }
}

/* Digests by flag: where the files lie does not matter. */
static json_t *digests_of(const json_t *root)
{
    const json_t *files = json_object_get(root, "files");
    json_t *out = json_object();
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *one = json_array_get(files, i);
        const char *flag = json_string_value(json_object_get(one, "flag"));
        if (flag && json_object_get(one, "blake2b"))
            (void)json_object_set(out, flag, json_object_get(one, "blake2b"));
    }
    return out;
}

static json_t *settings_of(const json_t *root)
{
    static const char *const files[] = {"train", "score"}; /* names: their digests are compared */
    json_t *out = json_copy(json_object_get(root, "settings"));
    for (size_t i = 0; json_array_size(json_object_get(root, "files")) > 0 && i < 2; i++)
        (void)json_object_del(out, files[i]);
    return out;
}

static const json_t *run_settings(const json_t *root, size_t mode)
{
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        if (dp_comparison_is_good(run))
            return json_object_get(json_object_get(run, "report"), "settings");
    }
    return NULL;
}

/* The number of a mode there; SIZE_MAX: it has none of that name. */
static size_t find_mode(const json_t *root, const char *name)
{
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        if (strcmp(dp_comparison_mode(root, m), name) == 0)
            return m;
    return SIZE_MAX;
}

static const json_t *name_of(const json_t *root, size_t mode)
{
    return json_object_get(json_array_get(json_object_get(root, "modes"), mode), "name");
}

static void compare_modes(struct agreement *a, const json_t *here, const json_t *there)
{
    for (size_t m = 0; m < dp_comparison_modes(here); m++) {
        const char *name = dp_comparison_mode(here, m);
        size_t other = find_mode(there, name);
        if (other == SIZE_MAX)
            compare_value(a, "mode", name_of(here, m), NULL);
        else if (run_settings(here, m) && run_settings(there, other))
            compare_objects(a, name, run_settings(here, m), run_settings(there, other));
    }
    for (size_t m = 0; m < dp_comparison_modes(there); m++)
        if (find_mode(here, dp_comparison_mode(there, m)) == SIZE_MAX)
            compare_value(a, "mode", NULL, name_of(there, m));
}

static void compare_all(struct agreement *a, const json_t *here, const json_t *there)
{
    json_t *own = settings_of(here), *other = settings_of(there);
    compare_objects(a, "", own, other);
    json_decref(own);
    json_decref(other);
    compare_modes(a, here, there);
    own = digests_of(here);
    other = digests_of(there);
    compare_objects(a, "BLAKE2b of", own, other);
    json_decref(own);
    json_decref(other);
    compare_value(a, "version", json_object_get(here, "version"), json_object_get(there, "version"));
    compare_objects(a, "build", json_object_get(here, "build"), json_object_get(there, "build"));
    compare_objects(a, "machine", json_object_get(here, "machine"), json_object_get(there, "machine"));
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
    return json_object_get(json_object_get(json_object_get(root, "settings"), "target"), "value");
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
    bool one_target = json_equal(target_of(here), target_of(there));
    if (!one_target)
        fputs("  not known  times and examples to the target: the targets differ\n", a->to);
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
            struct dp_interval own = dp_statistics_mode(here, m, quantity),
                               its = dp_statistics_mode(there, other, quantity);
            compare_result(a, dp_comparison_mode(here, m), names[q], quantity, &own, &its);
        }
    }
}

void dp_agreement_put(FILE *to, const json_t *here, const json_t *there)
{
    char *settings = NULL, *results = NULL;
    size_t settings_size = 0, results_size = 0;
    struct agreement a = {.to = open_memstream(&settings, &settings_size)};
    if (a.to) {
        compare_all(&a, here, there);
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
            a.settings ? "What differs in settings, data, build and machine:\n%s"
                       : "Settings, data, build and machine are the same.\n%s",
            settings ? settings : "");
    free(settings);
    free(results);
}

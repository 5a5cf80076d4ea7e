#include "deploy/compare/compare_earlier.h"

#include "deploy/run/run_provenance.h"

#include <stdlib.h>
#include <string.h>

/* "" where there is none. */
static const char *text_of(const json_t *from, const char *key)
{
    const char *text = json_string_value(json_object_get(from, key));
    return text ? text : "";
}

/* ---- its command */

static enum dp_status no_command(const struct dp_compare_earlier *earlier, struct dp_error *err)
{
    return dp_fail(err, DP_DATA, "'%.300s' lacks the comparison's command: start it again, with --overwrite",
                   earlier->comparison.path);
}

static enum dp_status take_command(struct dp_compare_earlier *earlier, struct dp_error *err)
{
    const json_t *root = earlier->comparison.root, *words = json_object_get(root, "command");
    const char *directory = text_of(root, "directory");
    size_t count = json_array_size(words);
    if (count < 2 || directory[0] != '/' || strlen(directory) > DP_PATH_MAX)
        return no_command(earlier, err);
    (void)snprintf(earlier->directory, sizeof earlier->directory, "%s", directory);
    earlier->argv = calloc(count, sizeof *earlier->argv);
    if (!earlier->argv)
        return dp_fail(err, DP_NOMEM, "no memory for a command");
    for (size_t i = 2; i < count;) { /* downpour compare ... */
        const char *word = json_string_value(json_array_get(words, i));
        if (!word)
            return no_command(earlier, err);
        size_t skipped = dp_origin_words_of_directory(word);
        if (skipped == 0)
            earlier->argv[earlier->argc++] = (char *)(uintptr_t)word; /* nobody writes to it */
        i += skipped ? skipped : 1;
    }
    return DP_OK;
}

/* ---- whether it can be gone on with */

static bool is_of(const json_t *machine, const json_t *here)
{
    return json_equal(json_object_get(machine, "processor"), json_object_get(here, "processor")) &&
           json_equal(json_object_get(machine, "cores"), json_object_get(here, "cores"));
}

static enum dp_status check_origin(const struct dp_compare_earlier *earlier, struct dp_error *err)
{
    const json_t *root = earlier->comparison.root;
    json_t *here = dp_origin_of_command("compare", 0, NULL);
    bool is_same = is_of(json_object_get(root, "machine"), json_object_get(here, "machine")) &&
                   json_equal(json_object_get(root, "version"), json_object_get(here, "version"));
    json_decref(here);
    return is_same ? DP_OK
                   : dp_fail(err, DP_EXISTS,
                             "'%.300s' was started on another machine, or by another version, and times are "
                             "compared: start it again, with --overwrite",
                             earlier->comparison.path);
}

static enum dp_status check_rest(const struct dp_compare_earlier *earlier, struct dp_error *err)
{
    const json_t *root = earlier->comparison.root;
    bool is_whole = json_is_true(json_object_get(root, "finished"));
    for (size_t i = 0; is_whole && i < dp_comparison_runs(root); i++)
        is_whole = dp_comparison_is_good(dp_comparison_run(root, i));
    return is_whole
               ? dp_fail(err, DP_EXISTS,
                         "the comparison in '%.300s' is finished: 'downpour report' makes its page again",
                         earlier->comparison.directory)
               : DP_OK;
}

enum dp_status dp_compare_earlier_read(const char *dir, struct dp_compare_earlier *out, struct dp_error *err)
{
    enum dp_status st = dp_comparison_read(dir, &out->comparison, err);
    if (st == DP_OK)
        st = check_rest(out, err);
    if (st == DP_OK)
        st = check_origin(out, err);
    if (st == DP_OK)
        st = take_command(out, err);
    if (st != DP_OK)
        dp_compare_earlier_clear(out);
    return st;
}

enum dp_status dp_compare_earlier_like(const char *name, struct dp_compare_earlier *out, struct dp_error *err)
{
    enum dp_status st = dp_comparison_read_report(name, &out->comparison, err);
    if (st == DP_OK)
        st = take_command(out, err);
    if (st != DP_OK)
        dp_compare_earlier_clear(out);
    return st;
}

void dp_compare_earlier_clear(struct dp_compare_earlier *earlier)
{
    dp_comparison_clear(&earlier->comparison);
    free(earlier->argv);
    *earlier = (struct dp_compare_earlier){0};
}

/* ---- what is kept */

void dp_compare_earlier_hand_over(const struct dp_compare_earlier *earlier, struct dp_compare_record *record)
{
    static const char *const origin[] = {"began", "command", "directory"}, *const settings[] = {
                                                                               "metric", "higher_is_better",
                                                                               "grid_metric"};
    const json_t *root = earlier->comparison.root, *from = json_object_get(root, "settings");
    json_t *to = json_object_get(record->root, "settings"), *value;
    if (!root)
        return;
    for (size_t i = 0; i < sizeof origin / sizeof origin[0]; i++) {
        value = json_object_get(root, origin[i]);
        if (value)
            (void)json_object_set(record->root, origin[i], value);
    }
    double seconds = json_number_value(json_object_get(root, "seconds"));
    record->earlier_s = seconds > 0 ? seconds : 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        value = json_object_get(from, settings[i]);
        if (value && !json_is_null(value))
            (void)json_object_set(to, settings[i], value);
    }
}

json_t *dp_compare_earlier_run(const struct dp_compare_earlier *earlier, const char *mode, uint64_t seed)
{
    const json_t *root = earlier->comparison.root;
    for (size_t i = 0; root && i < dp_comparison_runs(root); i++) {
        const json_t *run = dp_comparison_run(root, i);
        if (dp_comparison_is_good(run) && strcmp(text_of(run, "mode"), mode) == 0 &&
            (uint64_t)json_integer_value(json_object_get(run, "seed")) == seed)
            return json_deep_copy(run);
    }
    return NULL;
}

static const json_t *grid_of(const json_t *root, const char *mode)
{
    for (size_t m = 0; root && m < dp_comparison_modes(root); m++)
        if (strcmp(dp_comparison_mode(root, m), mode) == 0)
            return json_object_get(json_array_get(json_object_get(root, "modes"), m), "grid");
    return NULL;
}

json_t *dp_compare_earlier_try(const struct dp_compare_earlier *earlier, const char *mode, double rate,
                               uint64_t seed)
{
    const json_t *grid = grid_of(earlier->comparison.root, mode);
    for (size_t i = 0; i < json_array_size(grid); i++) {
        const json_t *one = json_array_get(grid, i);
        if (json_number_value(json_object_get(one, "rate")) == rate &&
            (uint64_t)json_integer_value(json_object_get(one, "seed")) == seed &&
            text_of(one, "error")[0] == '\0')
            return json_deep_copy(one);
    }
    return NULL;
}

#include "deploy/compare/compare_earlier.h"

#include "deploy/pages/page.h"
#include "deploy/pages/summary.h"
#include "deploy/run/run_provenance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- its command */

/* Its flags, but for those of its directory. */
static enum dp_status read_flags(const struct dp_compare_earlier *earlier,
                                 const char *values[DP_COMPARE_FLAGS_MAX], struct dp_error *err)
{
    const json_t *root = earlier->comparison.root, *words = json_object_get(root, "command");
    size_t count = json_array_size(words);
    bool is_there = count >= 2 && dp_training_text(root, "directory")[0] == '/', ignored;
    int argc = 0;
    char **argv = calloc(count + 1, sizeof *argv);
    if (!argv)
        return dp_fail(err, DP_NOMEM, "no memory for a command");
    for (size_t i = 2; is_there && i < count;) { /* downpour compare ... */
        const char *word = json_string_value(json_array_get(words, i));
        size_t skipped = word ? dp_origin_words_of_directory(word) : 0;
        is_there = word != NULL;
        if (skipped == 0)
            argv[argc++] = (char *)(uintptr_t)word; /* never written to */
        i += skipped ? skipped : 1;
    }
    enum dp_status st =
        is_there ? dp_options_parse(dp_compare_command(), argc, argv, values, &ignored, err)
                 : dp_fail(err, DP_DATA,
                           "'%.300s' lacks the comparison's command: start it again, with --overwrite",
                           earlier->comparison.path);
    free(argv);
    return st;
}

void dp_compare_earlier_clear(struct dp_compare_earlier *earlier)
{
    dp_comparison_clear(&earlier->comparison);
    *earlier = (struct dp_compare_earlier){0};
}

/* ---- --resume */

static enum dp_status check_origin(const struct dp_compare_earlier *earlier, struct dp_error *err)
{
    const json_t *root = earlier->comparison.root;
    json_t *here = dp_origin_of_command("compare", 0, NULL);
    const json_t *machine = json_object_get(root, "machine"), *its = json_object_get(here, "machine");
    bool is_same = json_equal(json_object_get(machine, "processor"), json_object_get(its, "processor")) &&
                   json_equal(json_object_get(machine, "cores"), json_object_get(its, "cores")) &&
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

static enum dp_status check_alone(const struct dp_compare_plan *plan, struct dp_error *err)
{
    const struct dp_command *command = dp_compare_command();
    for (size_t i = 0; i < command->count; i++) {
        const char *name = command->options[i].name;
        if (name && plan->values[i] && strcmp(name, "--dir") != 0 && strcmp(name, "--resume") != 0)
            return dp_fail(
                err, DP_ARGUMENT,
                "%s: --resume takes the flags with which the comparison was started: give no flag but --dir",
                name);
    }
    return DP_OK;
}

enum dp_status dp_compare_earlier_resume(struct dp_compare_plan *plan, struct dp_compare_earlier *out,
                                         struct dp_error *err)
{
    const struct dp_command *command = dp_compare_command();
    const char *dir = dp_compare_plan_flag(plan, "--dir");
    enum dp_status st = check_alone(plan, err);
    if (st == DP_OK)
        st = dp_comparison_read(dir ? dir : DP_COMPARE_DIR, &out->comparison, err);
    if (st == DP_OK)
        st = check_rest(out, err);
    if (st == DP_OK)
        st = check_origin(out, err);
    memset(plan->values, 0, sizeof plan->values);
    if (st == DP_OK)
        st = read_flags(out, plan->values, err);
    const char *from = dp_training_text(out->comparison.root, "directory");
    if (st == DP_OK && chdir(from) != 0)
        st = dp_fail(err, DP_IO, "cannot go to '%.300s', where the comparison was begun: %s", from,
                     strerror(errno));
    for (size_t i = 0; i < command->count; i++)
        if (command->options[i].name && strcmp(command->options[i].name, "--dir") == 0)
            plan->values[i] = out->comparison.directory;
    out->resumes = st == DP_OK;
    return st;
}

/* ---- --like */

/* A flag that is given here has its value from here. A file that the report names must be here. */
static enum dp_status take_values(const struct dp_compare_earlier *like, struct dp_compare_plan *plan,
                                  struct dp_error *err)
{
    const char *values[DP_COMPARE_FLAGS_MAX] = {NULL}, *given[DP_COMPARE_FILES];
    enum dp_status st = read_flags(like, values, err);
    for (size_t i = 0; i < DP_COMPARE_FILES; i++)
        given[i] = dp_compare_plan_flag(plan, dp_compare_files[i]);
    for (size_t i = 0; st == DP_OK && i < dp_compare_command()->count; i++)
        plan->values[i] = plan->values[i] ? plan->values[i] : values[i];
    for (size_t i = 0; st == DP_OK && i < DP_COMPARE_FILES; i++) {
        const char *flag = dp_compare_files[i], *path = dp_compare_plan_flag(plan, flag);
        if (!given[i] && path && access(path, R_OK) != 0)
            st = dp_fail(err, DP_NOT_FOUND,
                         "cannot read '%.300s', %s of the report: %s: give its present place with %s", path,
                         flag, strerror(errno), flag);
    }
    return st;
}

static void make_words(const struct dp_compare_plan *plan, struct dp_compare_earlier *like)
{
    const struct dp_command *command = dp_compare_command();
    for (size_t i = 0; i < command->count; i++) {
        const struct dp_option *option = &command->options[i];
        if (!option->name || !plan->values[i] || strcmp(option->name, "--like") == 0)
            continue;
        like->words[like->count++] = (char *)(uintptr_t)option->name; /* never written to */
        if (option->argument)
            like->words[like->count++] = (char *)(uintptr_t)plan->values[i];
    }
}

/* A file of the same flag has another digest in the report. */
static enum dp_status check_files(const struct dp_compare_earlier *like, const struct dp_compare_plan *plan,
                                  struct dp_error *err)
{
    json_t *files = NULL, *one, *other;
    size_t i, k;
    enum dp_status st = dp_compare_record_files(plan, &files, err);
    json_array_foreach(files, i, one)
        json_array_foreach(json_object_get(like->comparison.root, "files"), k, other)
    {
        const char *flag = dp_training_text(one, "flag"), *here = dp_training_text(one, "blake2b"),
                   *there = dp_training_text(other, "blake2b");
        if (st == DP_OK && strcmp(flag, dp_training_text(other, "flag")) == 0 && there[0] &&
            strcmp(here, there) != 0)
            st = dp_fail(err, DP_ARGUMENT,
                         "%s: '%.200s' has other bytes than the report's file: BLAKE2b %s, not %.32s", flag,
                         dp_training_text(one, "path"), here, there);
    }
    json_decref(files);
    return st;
}

enum dp_status dp_compare_earlier_like(const char *name, struct dp_compare_plan *plan,
                                       struct dp_compare_earlier *out, struct dp_error *err)
{
    enum dp_status st = dp_comparison_read_report(name, &out->comparison, err);
    if (st == DP_OK)
        st = take_values(out, plan, err);
    if (st == DP_OK)
        st = check_files(out, plan, err);
    if (st != DP_OK)
        return st;
    make_words(plan, out);
    char *origin = dp_page_text(dp_summary_put_origin, out->comparison.root);
    fprintf(stderr, "As in %s: %s\n", out->comparison.path, origin ? origin : "");
    free(origin);
    return DP_OK;
}

/* ---- what is kept */

static void take(json_t *to, const json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    if (value && !json_is_null(value))
        (void)json_object_set(to, key, value);
}

void dp_compare_earlier_hand_over(const struct dp_compare_earlier *earlier, struct dp_compare_record *record)
{
    static const char *const origin[] = {"began", "command", "directory"}, *const settings[] = {
                                                                               "metric", "higher_is_better",
                                                                               "grid_metric"};
    const json_t *root = earlier->comparison.root;
    if (!earlier->resumes)
        return;
    for (size_t i = 0; i < 3; i++) {
        take(record->root, root, origin[i]);
        take(json_object_get(record->root, "settings"), dp_comparison_settings(root), settings[i]);
    }
    record->earlier_s = fmax(json_number_value(json_object_get(root, "seconds")), 0);
}

json_t *dp_compare_earlier_run(const struct dp_compare_earlier *earlier, const char *mode, uint64_t seed)
{
    const json_t *root = earlier->comparison.root;
    for (size_t i = 0; earlier->resumes && i < dp_comparison_runs(root); i++) {
        const json_t *run = dp_comparison_run(root, i);
        if (dp_comparison_is_good(run) && strcmp(dp_training_text(run, "mode"), mode) == 0 &&
            (uint64_t)json_integer_value(json_object_get(run, "seed")) == seed)
            return json_deep_copy(run);
    }
    return NULL;
}

json_t *dp_compare_earlier_try(const struct dp_compare_earlier *earlier, const char *mode, double rate,
                               uint64_t seed)
{
    const json_t *root = earlier->comparison.root;
    size_t m = 0, modes = earlier->resumes ? dp_comparison_modes(root) : 0;
    while (m < modes && strcmp(dp_comparison_mode(root, m), mode) != 0)
        m++;
    const json_t *grid = m < modes ? json_object_get(dp_comparison_mode_object(root, m), "grid") : NULL;
    for (size_t i = 0; i < json_array_size(grid); i++) {
        const json_t *one = json_array_get(grid, i);
        if (json_number_value(json_object_get(one, "rate")) == rate &&
            (uint64_t)json_integer_value(json_object_get(one, "seed")) == seed &&
            dp_training_text(one, "error")[0] == '\0')
            return json_deep_copy(one);
    }
    return NULL;
}

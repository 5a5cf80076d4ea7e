#include "deploy/compare/compare_like.h"

#include "deploy/compare/data_files.h"
#include "deploy/pages/page.h"
#include "deploy/pages/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file that the report names, and that is not given here. */
static enum dp_status check_place(const char *flag, const char *path, struct dp_error *err)
{
    static const char *const files[] = {"--train", "--train-labels", "--test", "--test-labels",
                                        "--test-negatives"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (path && flag && strcmp(flag, files[i]) == 0 && access(path, R_OK) != 0)
            return dp_fail(
                err, DP_NOT_FOUND,
                "cannot read '%.300s', %s of the report: %s: give %s FILE, which says where it is now", path,
                flag, strerror(errno), flag);
    return DP_OK;
}

/* A flag that is given here has its value from here. */
static enum dp_status take_values(const struct dp_compare_like *like, struct dp_compare_plan *plan,
                                  struct dp_error *err)
{
    const struct dp_command *command = dp_compare_command();
    const char *values[DP_COMPARE_FLAGS_MAX] = {NULL};
    bool ignored;
    enum dp_status st =
        dp_options_parse(command, like->report.argc, like->report.argv, values, &ignored, err);
    for (size_t i = 0; st == DP_OK && i < command->count; i++)
        if (!plan->values[i]) {
            plan->values[i] = values[i];
            st = check_place(command->options[i].name, values[i], err);
        }
    return st;
}

static void make_words(const struct dp_compare_plan *plan, struct dp_compare_like *like)
{
    const struct dp_command *command = dp_compare_command();
    for (size_t i = 0; i < command->count; i++) {
        const struct dp_option *option = &command->options[i];
        if (!option->name || !plan->values[i] || strcmp(option->name, "--like") == 0)
            continue;
        like->words[like->count++] = (char *)(uintptr_t)option->name; /* nobody writes to them */
        if (option->argument)
            like->words[like->count++] = (char *)(uintptr_t)plan->values[i];
    }
}

static enum dp_status check_files(const struct dp_compare_like *like, const struct dp_compare_plan *plan,
                                  struct dp_error *err)
{
    json_t *files = NULL;
    enum dp_status st = dp_data_files(plan, &files, err);
    if (st == DP_OK)
        st = dp_data_files_check(files, json_object_get(like->report.comparison.root, "files"), err);
    json_decref(files);
    return st;
}

enum dp_status dp_compare_like_take(const char *name, struct dp_compare_plan *plan,
                                    struct dp_compare_like *out, struct dp_error *err)
{
    enum dp_status st = dp_compare_earlier_like(name, &out->report, err);
    if (st == DP_OK)
        st = take_values(out, plan, err);
    if (st == DP_OK)
        st = check_files(out, plan, err);
    if (st != DP_OK)
        return st;
    make_words(plan, out);
    char *origin = dp_page_text(dp_summary_put_origin, out->report.comparison.root);
    fprintf(stderr, "As in %s: %s\n", out->report.comparison.path, origin ? origin : "");
    free(origin);
    return DP_OK;
}

void dp_compare_like_clear(struct dp_compare_like *like)
{
    dp_compare_earlier_clear(&like->report);
}

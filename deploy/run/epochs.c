#include "deploy/run/epochs.h"

#include "deploy/run/epoch_choice.h"

#include <string.h>
#include <unistd.h>

void dp_epochs_init(struct dp_epochs *epochs, const char *report, bool resumes, FILE *file)
{
    *epochs = (struct dp_epochs){.report = report, .table.file = file};
    json_t *root = resumes ? json_load_file(report, 0, NULL) : NULL;
    epochs->shown = (uint32_t)json_array_size(json_object_get(root, "epochs"));
    epochs->first = epochs->shown;
    epochs->noted = resumes;
    epochs->lines_max = isatty(fileno(file)) == 1 ? DP_EPOCH_LINES_MAX : 0;
    json_decref(root);
    if (stat(report, &epochs->seen) != 0)
        memset(&epochs->seen, 0, sizeof epochs->seen);
    epochs->before = epochs->seen;
}

void dp_epochs_restored(struct dp_epochs *epochs, uint32_t whole)
{
    epochs->shown = epochs->first = whole;
}

/* Each report is a new file, which takes the place of the one before. */
static bool is_other(const struct dp_epochs *epochs, const struct stat *than, struct stat *now)
{
    return epochs->report && stat(epochs->report, now) == 0 &&
           (now->st_dev != than->st_dev || now->st_ino != than->st_ino || now->st_size != than->st_size ||
            now->st_mtim.tv_sec != than->st_mtim.tv_sec || now->st_mtim.tv_nsec != than->st_mtim.tv_nsec);
}

bool dp_epochs_written(const struct dp_epochs *epochs)
{
    struct stat now;
    return is_other(epochs, &epochs->before, &now);
}

static void show_notes(struct dp_epochs *epochs, const json_t *root, struct dp_cli_line *line)
{
    const json_t *notes = json_object_get(root, "advice");
    const json_t *lines = json_object_get(root, "understood");
    if (!root || epochs->noted)
        return;
    epochs->noted = true;
    if (json_array_size(notes) + json_array_size(lines) > 0)
        dp_cli_line_clear(line);
    for (size_t i = 0; i < json_array_size(lines) && line->file && !line->quiet; i++)
        (void)fprintf(line->file, "%s\n", json_string_value(json_array_get(lines, i)));
    if (json_is_true(json_object_get(root, "finished"))) /* they are the summary's */
        return;
    for (size_t i = 0; i < json_array_size(notes) && line->file && !line->quiet; i++)
        (void)fprintf(line->file, "downpour: %s\n", json_string_value(json_array_get(notes, i)));
}

/* By the number of epochs that the training is to have: whether it ends before is not known yet. */
static bool is_chosen(const struct dp_epochs *epochs, const json_t *root, size_t i)
{
    json_int_t of = json_integer_value(json_object_get(json_object_get(root, "settings"), "epochs"));
    size_t count = of > 0 && (size_t)of > i ? (size_t)of : i + 1;
    return epochs->lines_max == 0 || dp_epoch_chosen(i, count, epochs->lines_max);
}

static void show(struct dp_epochs *epochs, const json_t *all, size_t i)
{
    dp_epoch_table_add(&epochs->table, json_array_get(all, i));
    epochs->lines++;
    epochs->last = (uint32_t)i + 1;
}

bool dp_epochs_end(struct dp_epochs *epochs)
{
    json_t *root = epochs->lines_max ? json_load_file(epochs->report, 0, NULL) : NULL;
    const json_t *all = json_object_get(root, "epochs");
    size_t count = json_array_size(all), best = dp_epoch_best(all);
    bool cut = count >= epochs->first && epochs->lines < count - epochs->first;
    FILE *file = epochs->table.file;
    if (cut && epochs->last < count)
        show(epochs, all, count - 1);
    if (cut && best + 1 < count && !is_chosen(epochs, root, best)) {
        (void)fprintf(file, "the best one:\n");
        show(epochs, all, best);
    }
    if (cut)
        (void)fprintf(file, "(%u of %zu epochs; all are in %s)\n", (unsigned)epochs->lines, count,
                      epochs->report);
    json_decref(root);
    return cut;
}

void dp_epochs_look(struct dp_epochs *epochs, struct dp_cli_line *line)
{
    struct stat now;
    if (!is_other(epochs, &epochs->seen, &now))
        return;
    epochs->seen = now;
    json_t *root = json_load_file(epochs->report, 0, NULL);
    const json_t *all = json_object_get(root, "epochs");
    show_notes(epochs, root, line);
    if (epochs->shown < json_array_size(all))
        dp_cli_line_clear(line);
    for (; epochs->shown < json_array_size(all); epochs->shown++)
        if (is_chosen(epochs, root, epochs->shown))
            show(epochs, all, epochs->shown);
    (void)fflush(epochs->table.file);
    json_decref(root);
}

#include "deploy/pages/page_maker.h"

#include "common/env/atomic_file.h"
#include "common/env/directory.h"
#include "deploy/cli/path.h"
#include "deploy/pages/figure.h"
#include "deploy/pages/page.h"
#include "deploy/pages/summary.h"
#include "deploy/run/run_provenance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_WHOLE 8u /* buckets whose names have both their ends */

static enum dp_status page_path(const struct dp_page_source *source, const char *out,
                                char path[DP_PATH_MAX + 1], struct dp_error *err)
{
    if (out && strlen(out) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "--out: the name is too long");
    if (!out && snprintf(path, DP_PATH_MAX + 1, "%s/report.html", source->directory) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "the path of the page would be too long: name a shorter one with --out");
    if (out)
        (void)snprintf(path, DP_PATH_MAX + 1, "%s", strcmp(out, "-") == 0 ? "/dev/stdout" : out);
    return out && dp_path_same(path, source->report)
               ? dp_fail(err, DP_ARGUMENT, "--out: '%s' is the report itself: name another file", out)
               : DP_OK;
}

enum dp_status dp_page_make(const struct dp_page_source *source, const char *out, struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    char path[DP_PATH_MAX + 1];
    enum dp_status st = page_path(source, out, path, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    bool to_file = file.temp != NULL;
    struct dp_page_maker maker = {.to = file.stream,
                                  .directory = source->files && !out ? source->directory : NULL};
    source->write(&maker, source->context);
    if (maker.files != DP_OK) {
        dp_atomic_file_drop(&file);
        *err = maker.files_why;
        return maker.files;
    }
    st = dp_atomic_file_commit(&file, err);
    if (st == DP_OK && to_file)
        printf("Page:      %s\n", path);
    return st;
}

/* ---- parts of a page */

bool dp_page_maker_file(struct dp_page_maker *maker, const char *name,
                        void (*put)(FILE *to, const void *context), const void *context)
{
    char path[DP_PATH_MAX + 128];
    struct dp_atomic_file file = {0};
    if (!maker->directory || maker->files != DP_OK)
        return false;
    (void)snprintf(path, sizeof path, "%s/%s", maker->directory, name);
    maker->files = dp_atomic_file_open(path, &file, &maker->files_why);
    if (maker->files != DP_OK)
        return false;
    put(file.stream, context);
    maker->files = dp_atomic_file_commit(&file, &maker->files_why);
    return maker->files == DP_OK;
}

static bool make_figures(struct dp_page_maker *maker)
{
    char path[DP_PATH_MAX + 16];
    if (!maker->directory || maker->files != DP_OK)
        return false;
    (void)snprintf(path, sizeof path, "%s/figures", maker->directory);
    maker->files = dp_directory_make(path, &maker->files_why);
    return maker->files == DP_OK;
}

void dp_page_maker_draw(struct dp_page_maker *maker, const struct dp_plot *plot)
{
    char name[DP_FIGURE_NAME_BYTES], link[sizeof name + 16];
    (void)snprintf(link, sizeof link, "figures/%s", dp_figure_file(plot->caption, name));
    bool linked = make_figures(maker) && dp_page_maker_file(maker, link, dp_figure_put_file, plot);
    dp_figure_put(maker->to, plot, linked ? link : NULL);
}

void dp_page_maker_text(struct dp_page_maker *maker, const char *kind,
                        void (*put)(FILE *to, const void *context), const void *context)
{
    char *text = dp_page_text(put, context);
    if (text && text[0])
        dp_page_paragraph(maker->to, kind, text);
    free(text);
}

/* ---- plots that pages of trainings and of comparisons have in common */

const char *dp_page_caption(const char *metric, const char *over, char out[96])
{
    bool small = metric[0] >= 'a' && metric[0] <= 'z';
    (void)snprintf(out, 96, "%c%.60s %s", small ? metric[0] - 'a' + 'A' : metric[0], metric + 1, over);
    return out;
}

void dp_page_plot_lines(struct dp_page_maker *maker, struct dp_plot *plot, const char *label)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%.64s%s", label, dp_plot_is_log(plot) ? " (log scale)" : "");
    plot->y_label = text;
    dp_page_maker_draw(maker, plot);
    plot->y_label = NULL;
}

/* ---- shares of time */

void dp_page_plot_shares(struct dp_page_maker *maker, const struct dp_page_shares *shares, const char *at,
                         const char *of, bool ordered)
{
    static const enum dp_colour colours[DP_SHARES] = {
        [DP_SHARE_COMPUTE] = DP_COLOUR_BLUE, [DP_SHARE_DEVICE] = DP_COLOUR_SKY,
        [DP_SHARE_READ] = DP_COLOUR_YELLOW,  [DP_SHARE_REQUESTS] = DP_COLOUR_GREEN,
        [DP_SHARE_PULL] = DP_COLOUR_ORANGE,  [DP_SHARE_PUSH] = DP_COLOUR_VERMILLION,
        [DP_SHARE_RULE] = DP_COLOUR_PURPLE,  [DP_SHARE_INJECTED] = DP_COLOUR_INK,
        [DP_SHARE_OTHER] = DP_COLOUR_GREY};
    double percent[DP_SHARES][DP_PAGE_BARS_MAX] = {{0}}, most[DP_SHARES] = {0};
    struct dp_plot_series series[DP_SHARES];
    size_t count = 0;
    for (size_t b = 0; b < shares->count; b++) {
        double sum = 0;
        for (int k = 0; k < DP_SHARES; k++)
            sum += shares->seconds[b][k];
        for (int k = 0; k < DP_SHARES; k++) {
            percent[k][b] = 100 * shares->seconds[b][k] / sum;
            most[k] = fmax(most[k], percent[k][b]);
        }
    }
    for (int k = 0; k < DP_SHARES; k++)
        if (most[k] >= 0.05)
            series[count++] =
                (struct dp_plot_series){.name = dp_training_share_name((enum dp_training_share)k),
                                        .colour = colours[k],
                                        .points = shares->count,
                                        .y = percent[k]};
    const struct dp_plot plot = {.kind = DP_PLOT_STACKED,
                                 .caption = "Shares of the workers' time",
                                 .x_label = at,
                                 .y_label = of,
                                 .ordered = ordered,
                                 .category = shares->name,
                                 .series = series,
                                 .count = count};
    if (shares->count > 0 && count > 0)
        dp_page_maker_draw(maker, &plot);
}

/* ---- distributions */

bool dp_page_distribution(const json_t *staleness, enum dp_page_distribution which,
                          struct dp_training_histogram *out)
{
    if (which == DP_PAGE_STALENESS)
        return dp_training_staleness(staleness, out);
    const json_t *gap = json_object_get(json_object_get(staleness, "clock_gap"), "histogram");
    bool changed = which == DP_PAGE_CHANGED;
    return dp_training_histogram(changed ? json_object_get(staleness, "changed_histogram") : gap, changed,
                                 out);
}

void dp_page_plot_distribution(struct dp_page_maker *maker, enum dp_page_distribution which,
                               const struct dp_training_histogram *labels,
                               const struct dp_plot_series *series, size_t count)
{
    static const char *const captions[DP_PAGE_DISTRIBUTIONS] = {
        "Staleness of a push", "Clock gap of a push", "Rows of a push that had changed since its pull"};
    static const char *const at[DP_PAGE_DISTRIBUTIONS] = {
        "pushes between pull and push", "steps ahead of the slowest worker", "share of its rows, %"};
    const char *category[DP_TRAINING_BUCKETS_MAX];
    char from[DP_TRAINING_BUCKETS_MAX][48];
    bool whole = count < 2 && labels->count <= LABELS_WHOLE;
    for (size_t b = 0; b < labels->count; b++) {
        /* "4–7"; of many buckets "4+": from 4 on, up to the next. */
        size_t digits = strspn(labels->label[b], "0123456789.");
        (void)snprintf(from[b], sizeof from[b], "%.*s%s", (int)digits, labels->label[b],
                       labels->label[b][digits] ? "+" : "");
        category[b] = whole ? labels->label[b] : from[b];
    }
    const struct dp_plot plot = {.kind = DP_PLOT_BARS,
                                 .caption = captions[which],
                                 .x_label = at[which],
                                 .y_label = "% of the pushes",
                                 .ordered = true,
                                 .category = category,
                                 .series = series,
                                 .count = count};
    if (count > 0)
        dp_page_maker_draw(maker, &plot);
}

/* ---- settings */

/* What a key is called; units where its name has none. */
static void name_of(const char *key, char out[64])
{
    static const char *const names[][2] = {{"batch", "minibatch, examples"},
                                           {"rate", "learning rate"},
                                           {"rate_end", "learning rate at the end"},
                                           {"timeout_ms", "timeout, ms"},
                                           {"worker_timeout", "worker timeout, s"},
                                           {"sample_every_s", "time between samples, s"},
                                           {"pushes_max", "pushes in flight, at most"},
                                           {"batch_by_size", "minibatch chosen by the data's size"},
                                           {"epochs_by_size", "epochs chosen by the data's size"},
                                           {"bf16_values", "bf16 on the network"},
                                           {"blas_threads", "BLAS threads"},
                                           {"blake2b", "BLAKE2b-128"}};
    (void)snprintf(out, 64, "%.63s", key);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][0], key) == 0) {
            (void)snprintf(out, 64, "%s", names[i][1]);
            return;
        }
    for (char *c = out; *c; c++)
        *c = *c == '_' ? ' ' : *c;
}

/* An array as its values, with commas; nothing of an object. */
static void put_value(FILE *to, const void *context)
{
    const json_t *value = context;
    if (json_is_string(value))
        fputs(json_string_value(value), to);
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", to);
    else if (json_is_integer(value))
        fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        fprintf(to, "%.10g", json_real_value(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        fputs(i ? ", " : "", to);
        put_value(to, json_array_get(value, i));
    }
}

static void put_row(const char *name, const json_t *value, FILE *to)
{
    char *text = dp_page_text(put_value, value);
    if (text && text[0])
        dp_page_row_of(to, "tv", name, text);
    free(text);
}

void dp_page_maker_setting_of(struct dp_page_maker *maker, const char *key, const json_t *const *object,
                              size_t count)
{
    char name[64];
    name_of(key, name);
    dp_page_row(maker->to);
    dp_page_text_cell(maker->to, name);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object[i], key);
        char *text = json_is_object(value) ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(7))
                                           : dp_page_text(put_value, value);
        dp_page_text_cell(maker->to, text && text[0] ? text : "-");
        free(text);
    }
    dp_page_row_end(maker->to);
}

static void put_rows(const char *within, const json_t *object, unsigned deep, FILE *to)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        char name[64], all[200];
        name_of(key, name);
        (void)snprintf(all, sizeof all, "%.130s%s%s", within, within[0] ? " " : "", name);
        if (json_is_object(value) && deep > 0)
            put_rows(all, value, deep - 1, to);
        else
            put_row(all, value, to);
    }
}

void dp_page_maker_settings(struct dp_page_maker *maker, const json_t *object)
{
    put_rows("", object, 2, maker->to);
}

/* ---- how it is made again */

static void put_build(struct dp_page_maker *maker, const json_t *build)
{
    static const char *const keys[][2] = {
        {"commit", "commit"}, {"build type", "type"}, {"compiler", "compiler"}};
    const char *before = "", *name;
    json_t *version;
    if (!json_is_object(build))
        return;
    dp_page_table_begin(maker->to, 2, "build", "value", NULL);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = dp_training_text(build, keys[i][1]);
        dp_page_row_of(maker->to, "tv", keys[i][0], value[0] ? value : "not known");
    }
    fputs("\n<tr><td class=\"t\">libraries</td><td class=\"v\">", maker->to);
    json_object_foreach(json_object_get(build, "libraries"), name, version)
    {
        fputs(before, maker->to);
        dp_page_escape(maker->to, name);
        fputc(' ', maker->to);
        dp_page_escape(maker->to, json_string_value(version) ? json_string_value(version) : "");
        before = ", ";
    }
    fputs("</td></tr>", maker->to);
    dp_page_table_end(maker->to);
}

static void put_files(struct dp_page_maker *maker, const json_t *files)
{
    FILE *to = maker->to;
    if (json_array_size(files) == 0)
        return;
    dp_page_table_begin(to, 2, "file of", "path", "bytes", "BLAKE2b-128", NULL);
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *one = json_array_get(files, i);
        dp_page_row_of(to, "tvnt", dp_training_text(one, "flag"), dp_training_text(one, "path"),
                       dp_training_number(one, "bytes", NULL), dp_training_text(one, "blake2b"));
    }
    dp_page_table_end(to);
}

void dp_page_maker_again(struct dp_page_maker *maker, const json_t *origin, const char *directory)
{
    char *command = dp_origin_again(origin, directory);
    dp_page_section(maker->to, "How to make it again");
    if (command)
        dp_page_command(maker->to, command);
    else
        dp_page_paragraph(maker->to, NULL,
                          "The directory does not keep the command: it is of an older version, or the "
                          "processes were started manually. The settings are below.");
    free(command);
    dp_page_maker_text(maker, NULL, dp_summary_put_origin, origin);
    dp_page_columns_begin(maker->to);
    put_files(maker, json_object_get(origin, "files"));
    put_build(maker, json_object_get(origin, "build"));
    dp_page_figures_end(maker->to);
}

void dp_page_maker_end(struct dp_page_maker *maker)
{
    dp_page_end(maker->to, "Made by downpour report, version " DOWNPOUR_VERSION);
}

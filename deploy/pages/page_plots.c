#include "deploy/pages/page_plots.h"

#include <math.h>
#include <string.h>

#define LABELS_WHOLE 8u /* buckets whose names have both their ends */

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
    switch (which) {
    case DP_PAGE_STALENESS:
        return dp_training_staleness(staleness, out);
    case DP_PAGE_CLOCK_GAP:
        return dp_training_histogram(json_object_get(json_object_get(staleness, "clock_gap"), "histogram"),
                                     false, out);
    case DP_PAGE_CHANGED:
        return dp_training_histogram(json_object_get(staleness, "changed_histogram"), true, out);
    case DP_PAGE_DISTRIBUTIONS:
        break;
    }
    return false;
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

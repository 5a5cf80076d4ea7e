/* Plot: a drawing as SVG: lines (with bands), bars, stacked bars, forests (dots with intervals).
 * Promise   A value that is not finite leaves a gap: the line is not joined across it, also where only some
 *           of many points are drawn. Colour, dash, mark and hatch come from the series (colour.h), so that
 *           one has the same in all plots of a page. There is no legend: figure.h has it. No text is markup.
 *           There is no identifier, style or script, and no reference except to the page's hatches.
 * Memory    All lent.
 * Failure   None of its own: the stream keeps a failed write. */
#ifndef DP_PAGES_PLOT_H
#define DP_PAGES_PLOT_H

#include "deploy/pages/colour.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define DP_PLOT_WIDE 520.0 /* units of a drawing */
#define DP_PLOT_HIGH 300.0

struct dp_plot_series {
    const char *name;
    enum dp_colour colour;
    size_t points;
    const double *x; /* of lines and forests; of bars NULL: point i is of category i */
    const double *y; /* of a forest NULL: series n is row n, with its name */
    /* An interval around each point, or NULL: of lines a band, of bars an error bar, of a forest (there of x) a line. */
    const double *low, *high;
};

enum dp_plot_kind { DP_PLOT_LINES, DP_PLOT_BARS, DP_PLOT_STACKED, DP_PLOT_FOREST };

struct dp_plot {
    enum dp_plot_kind kind;
    const char *caption, *x_label, *y_label;
    bool x_whole, x_from_0, y_from_0; /* x has whole numbers only; an axis begins at 0 */
    bool x_log, y_log;                /* a logarithmic scale is wanted: where all is positive */
    bool ordered;                     /* of bars: numbers that ascend, so that not each needs its name */
    const char *const *category;      /* of bars */
    const struct dp_plot_series *series;
    size_t count;
    /* A line across: of lines at this y, such as a target; of a forest at this x, where there is no difference. level_name NULL: none. */
    double level;
    const char *level_name;
};

/* Of a series; of more, evenly chosen ones are drawn, the first and the last among them. */
#define DP_PLOT_POINTS_MAX 400u
/* A series of more points has about so many marks; else each point has one. */
#define DP_PLOT_MARKS       8u
#define DP_PLOT_MARKED_EACH 40u

/* Whether y of lines goes on a logarithmic scale: all is positive, and the largest is 30 times the least, or y_log. */
bool dp_plot_is_log(const struct dp_plot *plot);
/* The content of an element <svg> of DP_PLOT_WIDE by DP_PLOT_HIGH units. */
void dp_plot_draw(FILE *to, const struct dp_plot *plot, const struct dp_palette *palette);

#endif

/* Plot: what is to be drawn, as gnuplot's commands: lines (with bands), bars, stacked bars.
 * Promise   Texts are quoted so that gnuplot takes nothing in them for a command. A value that is not finite leaves a gap.
 *           Colours come from the series, so that one has the same in all plots of a page. There is no legend: the page has it.
 * Memory    All lent. */
#ifndef DP_COMPARE_PLOT_H
#define DP_COMPARE_PLOT_H

#include "deploy/compare/colour.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct dp_plot_series {
    const char *name;
    enum dp_colour colour;
    size_t points;
    const double *x; /* of lines; else NULL: point i is of category i */
    const double *y;
    const double *low, *high; /* of lines: a band around them, such as the spread over seeds; or NULL */
};

enum dp_plot_kind { DP_PLOT_LINES, DP_PLOT_BARS, DP_PLOT_STACKED };

struct dp_plot {
    enum dp_plot_kind kind;
    const char *caption, *x_label, *y_label;
    bool x_whole, x_from_0, y_from_0; /* x has whole numbers only; an axis begins at 0 */
    bool ordered;                     /* of bars: numbers that ascend, so that not each needs its name */
    const char *const *category;      /* of bars */
    const struct dp_plot_series *series;
    size_t count;
};

#define DP_PLOT_POINTS_MAX                                                                                   \
    400u /* of a series; of more, evenly chosen ones are drawn, the first and the last among them */

/* Whether y goes on a logarithmic scale: all positive, and the largest 30 times the least. */
bool dp_plot_is_log(const struct dp_plot *plot);
/* 'text', its quotes doubled; control characters become '?'. */
void dp_plot_quote(FILE *to, const char *text);
void dp_plot_script(const struct dp_plot *plot, FILE *to);

#endif

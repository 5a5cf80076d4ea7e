/* Plot axes: texts, ranges and tics of a plot (plot.h), as gnuplot's commands. */
#ifndef DP_PAGES_PLOT_AXES_H
#define DP_PAGES_PLOT_AXES_H

#include "deploy/pages/plot.h"

/* 'text', its quotes doubled; control characters become '?'. */
void dp_plot_quote(FILE *to, const char *text);
/* The same of a label of a tic, which gnuplot takes for a format. */
void dp_plot_quote_tic(FILE *to, const char *text);

struct dp_plot_range {
    double low, high; /* low > high: nothing is finite */
};

struct dp_plot_range dp_plot_range_x(const struct dp_plot *plot);
/* Of lines. On a logarithmic scale it begins at half of the least value: a band may reach 0. */
struct dp_plot_range dp_plot_range_y(const struct dp_plot *plot);
/* 1, 2 or 5 times a power of ten: so that there are at most so many tics. */
double dp_plot_step(double range, double most);

void dp_plot_axes_lines(const struct dp_plot *plot, FILE *to);
void dp_plot_axes_bars(const struct dp_plot *plot, FILE *to);
void dp_plot_axes_forest(const struct dp_plot *plot, FILE *to);

#endif

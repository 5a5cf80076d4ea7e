/* Compare plots: the plots of a comparison: a mode has the same colour in all of them.
 * Failure   The first plot that cannot be drawn ends plotting (page.h): no_plots, and why. */
#ifndef DP_COMPARE_COMPARE_PLOTS_H
#define DP_COMPARE_COMPARE_PLOTS_H

#include "deploy/compare/comparison.h"

#include <stdio.h>

struct dp_compare_plots {
    FILE *to;
    const json_t *root;
    uint32_t timeout_ms; /* of each plot */
    bool no_plots;
    struct dp_error why;
};

/* A key of samples ("loss") over "seconds" or "examples": the mean of a mode's runs, and from the least to the greatest of them. */
void dp_compare_plot_course(struct dp_compare_plots *plots, const char *key, const char *over);
void dp_compare_plot_throughput(struct dp_compare_plots *plots);
/* gap: the clock gap; else staleness. */
void dp_compare_plot_staleness(struct dp_compare_plots *plots, bool gap);
void dp_compare_plot_shares(struct dp_compare_plots *plots);
/* Whether any run has such a distribution. */
bool dp_compare_has_staleness(const json_t *root, bool gap);

#endif

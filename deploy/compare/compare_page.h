/* Compare page: a comparison as a page (page_maker.h): the findings, plots, tables, the promise of each
 * mode, the command that makes it again, and settings. Next to it: figures/, curves.csv (each sample),
 * runs.csv (each run). */
#ifndef DP_COMPARE_COMPARE_PAGE_H
#define DP_COMPARE_COMPARE_PAGE_H

#include "deploy/compare/claims.h"
#include "deploy/pages/page_maker.h"

/* Of the comparison in `dir`, as dp_comparison_read and dp_page_make. */
enum dp_status dp_compare_make_page(const char *dir, const char *out, struct dp_error *err);

/* Its content. */
struct dp_compare_page {
    const char *directory; /* of the comparison */
    struct dp_claims claims;
};
void dp_compare_page_write(struct dp_page_maker *maker, const void *page);

/* ---- its plots (compare_plots.c). A mode has the same colour, dash and mark in all of them (colour.h).
 * Promise   Bands and error bars are the 95% intervals over the seeds that tables and sentences have (statistics.h), at each point; lines of
 *           forests are the intervals of claims (claims.h). Between two samples a run's line is straight; after its last sample its weights stay. */

/* A key of samples ("loss") over "seconds" or "examples": the mean of a mode's runs and its interval, and the target where it is one of this
 * key. Accuracies above 0.9 are drawn as 1 - accuracy, on a logarithmic scale. */
void dp_compare_plot_course(struct dp_page_maker *maker, const json_t *root, const char *key,
                            const char *over);
/* Seconds to each loss on the way; where the lines of two modes cross, which is first depends on the target. */
void dp_compare_plot_to_loss(struct dp_page_maker *maker, const json_t *root);
/* Differences from the first mode as forests: the metric at the end, and times to the target as ratios. */
void dp_compare_plot_differences(struct dp_page_maker *maker, const struct dp_claims *claims);
/* The metric of each rate that was tried (--lr-grid), by mode. */
void dp_compare_plot_rates(struct dp_page_maker *maker, const json_t *root);
void dp_compare_plot_throughput(struct dp_page_maker *maker, const json_t *root);
/* gap: the clock gap; else staleness. */
void dp_compare_plot_staleness(struct dp_page_maker *maker, const json_t *root, bool gap);
void dp_compare_plot_shares(struct dp_page_maker *maker, const json_t *root);

#endif

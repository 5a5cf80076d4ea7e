/* Page plots: the plots that pages of trainings and of comparisons have in common.
 * Memory    All lent. */
#ifndef DP_PAGES_PAGE_PLOTS_H
#define DP_PAGES_PAGE_PLOTS_H

#include "deploy/pages/page_maker.h"
#include "deploy/pages/training.h"

/* "Accuracy over time" */
const char *dp_page_caption(const char *metric, const char *over, char out[96]);
/* Lines, with "(log scale)" in the label of their axis where it has one. label: of y. */
void dp_page_plot_lines(struct dp_page_maker *maker, struct dp_plot *plot, const char *label);

#define DP_PAGE_BARS_MAX 13u
/* Where the time of workers or modes went, in seconds, as shares of each. at: what a bar is of. */
struct dp_page_shares {
    size_t count; /* up to DP_PAGE_BARS_MAX */
    const char *name[DP_PAGE_BARS_MAX];
    double seconds[DP_PAGE_BARS_MAX][DP_SHARES];
};
void dp_page_plot_shares(struct dp_page_maker *maker, const struct dp_page_shares *shares, const char *at,
                         const char *of, bool ordered);

/* Which of the distributions of a push. */
enum dp_page_distribution { DP_PAGE_STALENESS, DP_PAGE_CLOCK_GAP, DP_PAGE_CHANGED, DP_PAGE_DISTRIBUTIONS };
/* Of a report's "staleness"; false: it has none. */
bool dp_page_distribution(const json_t *staleness, enum dp_page_distribution which,
                          struct dp_training_histogram *out);
/* series: % of the pushes by bucket; labels: as many buckets as they have points. */
void dp_page_plot_distribution(struct dp_page_maker *maker, enum dp_page_distribution which,
                               const struct dp_training_histogram *labels,
                               const struct dp_plot_series *series, size_t count);
/* What they are, for people. */
#define DP_PAGE_STALENESS_NOTE                                                                               \
    "Staleness is how many pushes the servers applied between a worker's pull and its push. The clock gap "  \
    "is how many steps a worker was ahead of the slowest one."

#endif

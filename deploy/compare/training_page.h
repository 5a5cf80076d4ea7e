/* Training page: one training as a page (page.h): what was found, plots and their numbers, settings, and how it is made again.
 * Where gnuplot is missing or fails, the page has the tables, open, and says so.
 * Failure   None of its own (page.h). */
#ifndef DP_COMPARE_TRAINING_PAGE_H
#define DP_COMPARE_TRAINING_PAGE_H

#include "deploy/compare/training.h"

#include <stdio.h>

struct dp_training_page {
    FILE *to;
    const char *version; /* of this program */
    uint32_t timeout_ms; /* of each plot */
    bool no_plots;       /* from the first plot on that could not be drawn */
    struct dp_error why; /* and why */
    const struct dp_training *training;
};

void dp_training_page_write(struct dp_training_page *page);

#endif

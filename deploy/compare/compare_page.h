/* Compare page: a comparison as a page (page.h): what was found, plots, tables, what each mode promises, settings, and how it is made
 * again. Where gnuplot is missing or fails, the page has its tables alone, and says so. */
#ifndef DP_COMPARE_COMPARE_PAGE_H
#define DP_COMPARE_COMPARE_PAGE_H

#include "deploy/compare/compare_plots.h"

struct dp_compare_page {
    struct dp_compare_plots plots;
    const char *version; /* of this program */
    const struct dp_comparison *comparison;
};

void dp_compare_page_write(struct dp_compare_page *page);
/* Reads the report in `dir`, counts its statistics anew, and writes the page, as an atomic file. out: NULL: DIR/report.html; "-":
 * standard output. Says on standard error if there are no plots, and on standard output where the page is. */
DP_MUST_USE
enum dp_status dp_compare_make_page(const char *dir, const char *out, struct dp_error *err);

#endif

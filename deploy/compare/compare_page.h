/* Compare page: a comparison as a page (page_maker.h): the findings, plots, tables, the promise of each
 * mode, the command that makes it again, and settings. Next to it: figures/, curves.csv (each sample),
 * runs.csv (each run). */
#ifndef DP_COMPARE_COMPARE_PAGE_H
#define DP_COMPARE_COMPARE_PAGE_H

#include "deploy/compare/claims.h"
#include "deploy/pages/page_maker.h"

/* Of the comparison in `dir`, as dp_comparison_read and dp_page_make. */
DP_MUST_USE
enum dp_status dp_compare_make_page(const char *dir, const char *out, struct dp_error *err);

/* Its content. */
struct dp_compare_page {
    const char *directory; /* of the comparison */
    struct dp_claims claims;
};
void dp_compare_page_write(struct dp_page_maker *maker, const void *page);

#endif

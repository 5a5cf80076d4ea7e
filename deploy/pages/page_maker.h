/* Page maker: the steps of making any page: of a training (training.h) or a comparison
 * (compare_page.h).
 *     report -> content, by the verbs of page.h and those below -> an atomic file;  figures and tables as files next to it
 * Promise   A page is replaced when all of the new one is written.
 * Failure   DP_ARGUMENT: --out is the report itself, or too long. DP_IO, DP_FULL naming the file. */
#ifndef DP_PAGES_PAGE_MAKER_H
#define DP_PAGES_PAGE_MAKER_H

#include "common/base/status.h"
#include "deploy/pages/plot.h"
#include "deploy/pages/training.h"

#include <jansson.h>
#include <stdio.h>

struct dp_page_maker {
    FILE *to;
    const char *directory; /* in which figures and tables are files, too; NULL: nowhere */
    enum dp_status files;  /* of the first file that could not be written */
    struct dp_error files_why;
};

struct dp_page_source {
    const char *directory, *report; /* the page goes to the one, and must not replace the other */
    bool files;                     /* figures and tables as files, in that directory */
    void (*write)(struct dp_page_maker *maker, const void *context);
    const void *context;
};

/* out: NULL: report.html in the source's directory; "-": standard output; else a file. In these two cases there are no other files, and
 * no links to them. Says on standard output where the page is. */
enum dp_status dp_page_make(const struct dp_page_source *source, const char *out, struct dp_error *err);

/* With its legend; the file is figures/CAPTION.svg. */
void dp_page_maker_draw(struct dp_page_maker *maker, const struct dp_plot *plot);
/* A paragraph of what `put` writes, if it is any text. */
void dp_page_maker_text(struct dp_page_maker *maker, const char *kind,
                        void (*put)(FILE *to, const void *context), const void *context);
/* A file of the directory; false: none is written, or it could not be. */
bool dp_page_maker_file(struct dp_page_maker *maker, const char *name,
                        void (*put)(FILE *to, const void *context), const void *context);
/* Rows of a table with two columns: the settings of an object, and of those in it, with names for people. */
void dp_page_maker_settings(struct dp_page_maker *maker, const json_t *object);
/* One row of `count` columns: a setting in several objects, which each are one of modes' runs. */
void dp_page_maker_setting_of(struct dp_page_maker *maker, const char *key, const json_t *const *object,
                              size_t count);
/* How its training or comparison is made again, in a new directory: the command, which runs as printed in any directory; build, machine,
 * files of data. origin: deploy/run/run_provenance.h; a comparison's has "files", too. NULL: none is kept. directory: of
 * the run. */
void dp_page_maker_again(struct dp_page_maker *maker, const json_t *origin, const char *directory);
void dp_page_maker_end(struct dp_page_maker *maker);

/* ---- plots that pages of trainings and of comparisons have in common */

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

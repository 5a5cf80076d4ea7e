/* Page maker: the steps of making any page: of a training (training_page.h) or a comparison
 * (compare_page.h).
 *     report -> content, by the verbs of page.h and those below -> an atomic file;  figures and tables as files next to it
 * Promise   A page is replaced when all of the new one is written.
 * Failure   DP_ARGUMENT: --out is the report itself, or too long. DP_IO, DP_FULL naming the file. */
#ifndef DP_PAGES_PAGE_MAKER_H
#define DP_PAGES_PAGE_MAKER_H

#include "common/base/status.h"
#include "deploy/pages/plot.h"

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
DP_MUST_USE
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

#endif

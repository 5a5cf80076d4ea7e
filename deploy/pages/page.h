/* Page: a self-contained HTML page, written as it is made: no network, no script, no font of elsewhere.
 *     begin -> (title, section, paragraph, table, figure)* -> end
 * Promise   The verbs below escape all text: & < > " ' become references; control characters, and bytes
 *           that are not UTF-8, become '?'. So a page shows names, paths and commands of users literally.
 *           One column at 400 pixels, two plots in a row at 1,400; light and dark as the reader has it.
 * Failure   None of its own: committing the file reports a failed write. */
#ifndef DP_PAGES_PAGE_H
#define DP_PAGES_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What `put` writes, malloc'd; NULL: no memory. */
char *dp_page_text(void (*put)(FILE *to, const void *context), const void *context);
void dp_page_escape(FILE *to, const char *text);
/* To a file next to the page, whose name is relative to it. what: shown. */
void dp_page_link(FILE *to, const char *link, const char *what);

void dp_page_begin(FILE *to, const char *title);
/* with: what made it. */
void dp_page_end(FILE *to, const char *with);
void dp_page_section(FILE *to, const char *heading);
void dp_page_paragraph(FILE *to, const char *kind,
                       const char *text); /* kind: a class of the page's, or NULL */
/* Of text that wraps anywhere, in the letters of a terminal. */
void dp_page_command(FILE *to, const char *text);

/* begin -> (row, cell..., row_end)* -> end. A table that is wider than the page is moved sideways, not cut. */
void dp_page_table_begin(FILE *to, size_t texts, ...)
    __attribute__((sentinel)); /* headings, NULL; the first `texts` columns are texts */
void dp_page_table_of(FILE *to, const char *const *headings, size_t count, size_t texts);
void dp_page_row(FILE *to);
void dp_page_row_end(FILE *to);
void dp_page_text_cell(FILE *to, const char *text);
void dp_page_long_cell(FILE *to, const char *text); /* it wraps anywhere, such as a path */
/* Right-aligned. digits: behind the point; -1: a whole number, its thousands apart. Not finite: "-". */
void dp_page_number_cell(FILE *to, double value, int digits);
/* A row of cells, one for each letter: t a text, v a long one, n a whole number, a digit a number (double) with so many digits. */
void dp_page_row_of(FILE *to, const char *cells, ...);
void dp_page_table_end(FILE *to);

/* What is folded away unless `open`. */
void dp_page_fold_begin(FILE *to, const char *what, bool open);
void dp_page_fold_end(FILE *to);

/* begin -> figure (figure.h)... -> end: two in a row where there is room. */
void dp_page_figures_begin(FILE *to);
void dp_page_columns_begin(FILE *to); /* of tables, which begin at one height; ended by figures_end */
void dp_page_figures_end(FILE *to);

/* As number cells show it. */
#define DP_PAGE_NUMBER_BYTES 48
const char *dp_page_number(double value, int digits, char out[DP_PAGE_NUMBER_BYTES]);

#endif

/* Figure: a plot with its legend, in a page and as a file of its own.
 * Promise   A legend shows a series as the plot does: colour, dash and mark, or hatch. A file is SVG for
 *           papers: on white, with its legend, and without features that some programs lack (CSS, variables,
 *           references but to its own hatches).
 * Failure   None of its own: the stream keeps a failed write. */
#ifndef DP_PAGES_FIGURE_H
#define DP_PAGES_FIGURE_H

#include "deploy/pages/plot.h"

#define DP_FIGURE_NAME_BYTES 80u

/* Within dp_page_figures_begin and _end. link: its file, relative to the page, or NULL. */
void dp_figure_put(FILE *to, const struct dp_plot *plot, const char *link);
void dp_figure_put_file(FILE *to, const void *plot); /* struct dp_plot */
/* By its caption: "accuracy-over-time.svg". Returns out. */
const char *dp_figure_file(const char *caption, char out[DP_FIGURE_NAME_BYTES]);

#endif

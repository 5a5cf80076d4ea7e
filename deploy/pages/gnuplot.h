/* gnuplot: a child process that draws one plot as SVG. Its commands are a temp file that it reads as
 * standard input, so nothing passes through a shell, and nothing has to be written while it runs.
 * Promise   It ends, or is killed, within timeout_ms. Its output has gone through dp_svg_take.
 * Thread    One at a time; it waits for its own child only.
 * Failure   DP_NOT_FOUND: there is no gnuplot. DP_TIMEOUT. DP_DATA: it failed, with its first words, or
 *           wrote no SVG. */
#ifndef DP_PAGES_GNUPLOT_H
#define DP_PAGES_GNUPLOT_H

#include "common/base/status.h"
#include "deploy/pages/plot.h"

#include <stdint.h>

/* *out: malloc'd. */
DP_MUST_USE
enum dp_status dp_gnuplot_draw(const struct dp_plot *plot, uint32_t timeout_ms, char **out,
                               struct dp_error *err);

#endif

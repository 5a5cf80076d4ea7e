/* SVG: a drawing of gnuplot's made fit for a page.
 * Promise   Only elements and attributes that draw are taken over: no script, style, identifier or
 *           declaration of a namespace, and no reference but to the page's hatches. Parts in the colours
 *           below follow the page, in light and dark. The drawing scales (viewBox).
 * Failure   DP_DATA: it is no SVG, or elements are not closed. DP_NOMEM. */
#ifndef DP_PAGES_SVG_H
#define DP_PAGES_SVG_H

#include "common/base/status.h"
#include "deploy/pages/colour.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define DP_SVG_INK  "#010101" /* text and axes: the colour of the page's text */
#define DP_SVG_GRID "#020202" /* fainter */

/* label: what the drawing shows, for readers who cannot see it. hatched: areas have the hatches of their colours, too.
 * *out: malloc'd, with a 0 at its end. */
DP_MUST_USE
enum dp_status dp_svg_take(const char *text, size_t size, const char *label, bool hatched, char **out,
                           struct dp_error *err);

/* A mark at a point of a drawing; colour: as SVG has it. */
void dp_svg_put_mark(FILE *to, enum dp_mark mark, double x, double y, const char *colour);
/* <defs> of the hatches, which areas refer to as url(#hN). */
void dp_svg_put_hatches(FILE *to);

#endif

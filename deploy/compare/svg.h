/* SVG: a drawing of gnuplot's made fit to stand in a page.
 * Promise   Only elements and attributes that draw are taken over: no reference, script, style, identifier or declaration of a namespace. What
 *           gnuplot draws in the colours below follows the page, in light and dark. The drawing scales (viewBox).
 * Failure   DP_DATA: it is no SVG, or elements are not closed. DP_NOMEM. */
#ifndef DP_COMPARE_SVG_H
#define DP_COMPARE_SVG_H

#include "common/base/status.h"

#include <stddef.h>

#define DP_SVG_INK  "#010101" /* text and axes: the colour of the page's text */
#define DP_SVG_GRID "#020202" /* fainter */

/* label: what the drawing shows, for those who do not see it. *out: malloc'd, with a 0 behind it. */
DP_MUST_USE
enum dp_status dp_svg_take(const char *text, size_t size, const char *label, char **out,
                           struct dp_error *err);

#endif

/* Markup: text and links as HTML and SVG have them.
 * Promise   No text is markup: & < > " ' are written as references; control characters, and bytes that are not UTF-8, as '?'. */
#ifndef DP_PAGES_MARKUP_H
#define DP_PAGES_MARKUP_H

#include <stdio.h>

void dp_markup_escape(FILE *to, const char *text);
/* To a file next to the page, whose name is relative to it. what: shown. */
void dp_markup_link(FILE *to, const char *link, const char *what);

#endif

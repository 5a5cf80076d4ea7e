/* Text: bytes of a file or a vendor made fit for a terminal, a log and JSON.
 * Thread    Any. */
#ifndef DP_BASE_TEXT_H
#define DP_BASE_TEXT_H

/* In place: control characters, and bytes that are no UTF-8, become '?'. */
void dp_text_clean(char *text);

#endif

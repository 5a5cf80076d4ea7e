/* Text: bytes of a file or a vendor made fit for a terminal, a log and JSON; numbers for people.
 * Thread    Any. */
#ifndef DP_BASE_TEXT_H
#define DP_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at `at` (RFC 3629: shortest form, no surrogates). 0: there is none before
 * `end`, or it is a control character. */
size_t dp_text_character(const char *at, const char *end);
/* The first byte that is no UTF-8, `end`: there is none. Control characters are UTF-8. */
const char *dp_text_not_utf8(const char *at, const char *end);

/* In place: control characters, and bytes that are no UTF-8, become '?'. */
void dp_text_clean(char *text);
/* In place: removes the first bytes of a character that was cut off at the end. */
void dp_text_mend_end(char *text);
/* "1,234,567"; returns out. */
const char *dp_text_grouped(uint64_t value, char out[32]);

#endif

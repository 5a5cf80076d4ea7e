/* Lines: cuts blocks of bytes into the lines of a text, or the records of a CSV file.
 *     new -> feed, feed, ... -> finish -> free
 * Promise   Blocks may be cut anywhere. Lines end in LF or CR LF, which the last may lack. With `quotes` (RFC
 *           4180) a line end between double quotes is part of the record. A record has the number of its
 *           first line, from 1.
 * Thread    One at a time.
 * Memory    The longest line that a block's edge cuts; a line of over DP_LINES_MAX bytes is refused. A quoted
 *           field of over DP_LINES_QUOTED_MAX bytes is refused, so an unclosed quote costs no more than that.
 *           A line is lent to `visit` for that call only, without its end.
 * Failure   The status of `visit`, with "name:line" before its text; DP_DATA, with the line, for an unclosed
 *           quote, a NUL byte or a line that is too long; DP_NOMEM. After a failure only free may follow. */
#ifndef DP_READ_LINES_H
#define DP_READ_LINES_H

#include "worker/read/unpack.h"

#include <stdbool.h>
#include <stdint.h>

#define DP_LINES_QUOTED_MAX (1u << 20)
#define DP_LINES_MAX        (UINT64_C(256) << 20)

struct dp_lines_sink {
    enum dp_status (*visit)(void *self, const char *at, const char *end, uint64_t line, struct dp_error *err);
    void *self;
};

struct dp_lines;

enum dp_status dp_lines_new(const char *name, bool quotes, struct dp_lines_sink sink, struct dp_lines **out,
                            struct dp_error *err);
void dp_lines_free(struct dp_lines **lines); /* accepts NULL inside, leaves NULL */
enum dp_status dp_lines_feed(struct dp_lines *lines, const void *bytes, size_t len, struct dp_error *err);
enum dp_status dp_lines_finish(struct dp_lines *lines, struct dp_error *err);

/* Visits all lines of a file. */
enum dp_status dp_lines_of(struct dp_unpack *unpack, bool quotes, struct dp_lines_sink sink,
                           struct dp_error *err);

/* The text, cut to 40 bytes of complete characters (and "..."); a tab is "\t", another control character is
 * '?'. */
void dp_lines_show(const char *at, const char *end, char out[44]);
/* "expected WHAT, found 'TEXT'", the text as dp_lines_show has it. */
enum dp_status dp_lines_unexpected(const char *what, const char *at, const char *end, struct dp_error *err);

#endif

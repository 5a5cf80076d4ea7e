/* CSV record: one record of a CSV file (RFC 4180) as cells. Private to this room.
 *     {0} -> split, split, ... -> clear
 * Promise   Quotes around a cell, and blanks around these, are removed. Two quotes inside it stand for one.
 * Thread    One at a time.
 * Memory    Cells lie in the line or, where quotes were taken out, in the record's own text: both only until
 *           the next split.
 * Failure   DP_DATA: quotes that do not enclose a complete cell, or are not closed (the caller adds the line
 *           number); DP_NOMEM. */
#ifndef DP_READ_CSV_RECORD_H
#define DP_READ_CSV_RECORD_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct dp_cell {
    const char *at, *end;
};

struct dp_csv_record {
    struct dp_cell *cells;
    size_t count, max;
    char *text;
    size_t text_max;
    bool plain_quotes; /* a quote inside a cell that does not begin with one is text, as in files with tabs */
};

/* A text as messages have it: as dp_lines_show has it. */
struct dp_shown {
    char text[44];
};

/* separator: a character; ':' is "::", and ' ' any blanks and tabs. */
enum dp_status dp_csv_record_split(struct dp_csv_record *record, char separator, const char *at,
                                   const char *end, struct dp_error *err);
/* What parts the cells of a header: of comma, semicolon and tab the one that it has most of outside of quotes; comma if it has none. */
char dp_csv_record_separator(const char *at, const char *end);
void dp_csv_record_clear(struct dp_csv_record *record);

/* Without blanks and tabs around it. */
struct dp_cell dp_cell_trim(struct dp_cell cell);
struct dp_cell dp_cell_of(const char *text);
bool dp_cell_is(struct dp_cell cell, const char *text);
/* Nothing, or what R, Python and SQL write for it (NA, NaN, null): no number is there, which says nothing of the others. */
bool dp_cell_is_missing(struct dp_cell cell);
struct dp_shown dp_cell_show(struct dp_cell cell);

#endif

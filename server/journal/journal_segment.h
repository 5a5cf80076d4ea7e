/* Journal segment: one file of the journal: its name, how it is made, and how it is recycled under another
 * number.
 * Promise   A segment from make() is durable in name and size, and nothing was written into it yet.
 * Thread    One at a time. */
#ifndef DP_JOURNAL_JOURNAL_SEGMENT_H
#define DP_JOURNAL_JOURNAL_SEGMENT_H

#include "common/env/disk.h"

#include <stdbool.h>

#define DP_JOURNAL_NAME_BYTES 32

struct dp_journal_segment {
    struct dp_file *file; /* NULL: none */
    uint64_t number, bytes;
    uint64_t first_lsn, last_lsn; /* last: first - 1 while it has no record */
    bool page_synced;             /* its first page survives a loss of power */
    bool dirty;                   /* written since its last sync */
};

void dp_journal_segment_name(char to[DP_JOURNAL_NAME_BYTES], uint64_t number);
/* Returns false if this is not a segment's name. */
bool dp_journal_segment_number(const char *name, uint64_t *number);

/* Makes a segment from `old` (open; consumed, and its file renamed), or a new file if `old` has none. */
enum dp_status dp_journal_segment_make(const struct dp_disk *disk, struct dp_journal_segment *old,
                                       uint64_t number, uint64_t bytes, struct dp_journal_segment *out,
                                       struct dp_error *err);
void dp_journal_segment_close(const struct dp_disk *disk, struct dp_journal_segment *segment);

#endif

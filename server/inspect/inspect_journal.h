/* Inspect journal: a shard's journal, looked at without changing a byte of it.
 * Promise   It finds the same as an opening, by the same code (journal_replay.h): the records to replay,
 *           the begin of the torn tail, or a refusal. Files are opened for reading only, and not locked.
 *           A running server writes and renames, so the answer may then be wrong. The caller asks
 *           dp_store_view_in_use() and warns.
 * Thread    One.
 * Memory    Pointers are valid only during the call.
 * Failure   An opening's refusals (DP_CORRUPT, DP_UNSUPPORTED, DP_IO), after the segments were visited. */
#ifndef DP_INSPECT_INSPECT_JOURNAL_H
#define DP_INSPECT_INSPECT_JOURNAL_H

#include "server/journal/journal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dp_inspect_segment_state {
    DP_INSPECT_SEGMENT_SPARE,    /* no record in it counts */
    DP_INSPECT_SEGMENT_RELEASED, /* all its records are in the stored rows */
    DP_INSPECT_SEGMENT_KEPT,     /* in the chain that an opening reads */
    DP_INSPECT_SEGMENT_CUT_OFF,  /* has durable records, but damage before it ends the chain */
};
const char *dp_inspect_segment_state_name(enum dp_inspect_segment_state state);

struct dp_inspect_segment {
    const char *file; /* "journal-0000000000000001" */
    enum dp_inspect_segment_state state;
    uint64_t bytes, incarnation;
    uint64_t first_lsn, last_lsn; /* last: first - 1 when it has no record */
    uint64_t used_bytes; /* up to the end of its last record; of a released one that was not read: 0 */
};

struct dp_inspect_journal {
    bool present;         /* there is a directory of it */
    uint64_t incarnation; /* highest seen */
    uint64_t durable_lsn; /* highest lsn that was said to be durable */
    uint64_t last_lsn;
    uint64_t replay_records, replay_bytes;
    struct dp_journal_cut cut; /* what the next opening cuts */
    /* --verify */
    uint64_t checked_records, checked_bytes;
};

struct dp_inspect_journal_options {
    const char *directory;
    uint64_t replay_after, incarnation; /* as journal.h's */
    uint64_t released;
    bool must_be_there, clean;
    /* Each may be NULL. */
    void (*segment)(void *context, const struct dp_inspect_segment *segment);
    /* A record that an opening would replay. */
    enum dp_status (*record)(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err);
    /* With it, every record of every file is read and checked, also of those that are needed no more, and each
     * damaged one is reported; what lies above durable_lsn is the torn tail, and no damage. */
    void (*damaged)(void *context, const struct dp_error *what);
    void *context;
};

enum dp_status dp_inspect_journal(const struct dp_inspect_journal_options *options,
                                  struct dp_inspect_journal *out, struct dp_error *err);

#endif

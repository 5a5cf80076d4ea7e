/* Journal replay: what an opening finds in the journal's files.
 *     look (all is read and checked, nothing is changed) -> harden -> replay
 * Promise   look refuses (DP_CORRUPT) when a record that was durable, or that replay_after wants, is missing or
 *           damaged, and names file, offset and lsn. harden makes every record that replay will give durable.
 * Thread    The one that opens. */
#ifndef DP_STORE_JOURNAL_REPLAY_H
#define DP_STORE_JOURNAL_REPLAY_H

#include "server/store/journal.h"
#include "server/store/journal_record.h"
#include "server/store/journal_segment.h"

struct dp_journal_found_file {
    struct dp_journal_segment segment;
    struct dp_journal_page page; /* whole, of this file or of the one that it was; else zeros */
    bool valid;                  /* page fits this file; else it is unused, damaged or released */
    bool released;               /* of an opening that is over: nothing in it counts */
    bool needed;                 /* has records above replay_after */
    uint64_t end;                /* of the records in it */
    uint64_t end_lsn;            /* of the last one that counts */
};

struct dp_journal_found {
    struct dp_journal_cut cut;           /* behind the chain */
    struct dp_journal_found_file *files; /* ascending number */
    size_t count, room;
    size_t start, stop;   /* the chain: valid files of [start, stop) */
    uint64_t last_lsn;    /* at least replay_after */
    uint64_t chain_lsn;   /* last lsn of the chain; 0: no chain */
    uint64_t claimed;     /* highest synced lsn that was seen anywhere */
    uint64_t incarnation; /* highest seen */
    uint64_t secret;      /* of the newest page that has one */
    uint64_t released;    /* the options' */
    uint64_t replayed_records, replayed_bytes;
};

DP_MUST_USE
enum dp_status dp_journal_look(const struct dp_journal_options *options, struct dp_journal_found *found,
                               struct dp_error *err);
DP_MUST_USE
enum dp_status dp_journal_harden(const struct dp_journal_options *options, struct dp_journal_found *found,
                                 struct dp_error *err);
DP_MUST_USE
enum dp_status dp_journal_replay(const struct dp_journal_options *options, struct dp_journal_found *found,
                                 struct dp_error *err);
/* Closes the files that are still there. */
void dp_journal_found_clear(const struct dp_journal_options *options, struct dp_journal_found *found);

#endif

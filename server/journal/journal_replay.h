/* Journal replay: finds, checks and replays the records of the journal's files.
 *     look (reads and checks everything, changes nothing) -> harden -> replay
 * Promise   look fails (DP_CORRUPT, naming file, offset and lsn) if a record that was durable, or that
 *           follows replay_after, is missing or damaged. harden makes every record that replay will pass on
 *           durable.
 * Thread    The thread that opens the journal. */
#ifndef DP_JOURNAL_JOURNAL_REPLAY_H
#define DP_JOURNAL_JOURNAL_REPLAY_H

#include "server/journal/journal.h"
#include "server/journal/journal_record.h"
#include "server/journal/journal_segment.h"

struct dp_journal_found_file {
    struct dp_journal_segment segment;
    struct dp_journal_page page; /* intact, of this file or of its former use; else zeros */
    bool valid;                  /* the page fits this file; else the file is unused, damaged or released */
    bool released;               /* of an opening that is over: nothing in it counts */
    bool needed;                 /* has records above replay_after */
    uint64_t end;                /* where its records end */
    uint64_t end_lsn;            /* of its last record that counts */
};

struct dp_journal_found {
    struct dp_journal_cut cut;           /* what follows the chain */
    struct dp_journal_found_file *files; /* ascending number */
    size_t count;
    size_t start, stop;            /* the chain: the valid files in [start, stop) */
    uint64_t last_lsn;             /* at least replay_after */
    uint64_t chain_lsn;            /* last lsn of the chain; 0: no chain */
    uint64_t claimed;              /* highest synced lsn seen anywhere */
    uint64_t incarnation;          /* highest one seen */
    uint64_t secret;               /* of the newest page that has one */
    bool is_live;                  /* from the options: read while its writer runs */
    uint64_t released, read_until; /* from the options */
    uint64_t replayed_records, replayed_bytes;
};

enum dp_status dp_journal_look(const struct dp_journal_options *options, struct dp_journal_found *found,
                               struct dp_error *err);
enum dp_status dp_journal_harden(const struct dp_journal_options *options, struct dp_journal_found *found,
                                 struct dp_error *err);
enum dp_status dp_journal_replay(const struct dp_journal_options *options, struct dp_journal_found *found,
                                 struct dp_error *err);
/* Closes the files that are still open. */
void dp_journal_found_clear(const struct dp_journal_options *options, struct dp_journal_found *found);

#endif

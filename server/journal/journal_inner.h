/* Journal inner: the open journal, shared by the journal's files. Two threads use it: the shard's (journal.c)
 * and the commit thread (journal_thread.c; without one, dp_journal_commit() does its work).
 * Files     Each calls only files before it: stage, commit, claim, thread, journal.
 * Holds     synced <= durable <= last; segments ascend in number and lsn; the last one is written to.
 * Bytes     Appended bytes go to the stage (journal_stage.h) and from there to the file. The commit thread
 *           writes them; in mode process the shard does at commit, unless the commit thread is writing. The
 *           lock is never held over a disk operation, nor over the copy of a large record. */
#ifndef DP_JOURNAL_JOURNAL_INNER_H
#define DP_JOURNAL_JOURNAL_INNER_H

#include "server/journal/journal.h"
#include "server/journal/journal_record.h"
#include "server/journal/journal_segment.h"
#include "server/journal/journal_stage.h"

#include <pthread.h>
#include <stdatomic.h>

struct dp_journal {
    struct dp_journal_options options;
    const struct dp_disk *disk;
    uint64_t segment_bytes, first_bytes, budget_bytes, incarnation, secret;

    pthread_mutex_t lock;                /* guards all from here to `thread` */
    pthread_cond_t wanted;               /* wakes the commit thread */
    pthread_cond_t written;              /* chunks left the stage, or it was poisoned */
    struct dp_journal_segment *segments; /* those whose records are kept */
    size_t count, capacity;
    struct dp_journal_segment *spares; /* released, not reused yet */
    size_t spare_count;
    struct dp_journal_segment next; /* file NULL: not made yet */
    uint64_t want_bytes; /* size of the segment that a large record needs; 0: the next one will do */
    uint64_t number_last;
    uint64_t keep_from;
    struct dp_journal_stage stage;
    bool want_round, want_segment, stop;
    bool starved;           /* an append waits for a segment */
    bool over;              /* an append waits until the kept segments are within the budget */
    struct dp_error making; /* why the last attempt to make a segment failed: DP_FULL, else DP_OK */
    struct dp_error why;    /* why the journal is poisoned */
    uint64_t claimed;       /* lsn of this opening's last synced claim */
    /* last lsn that the commit thread saw; unchanged for idle_ms: the journal is idle */
    uint64_t watched;
    uint64_t syncs;

    pthread_t thread;
    bool thread_runs, lock_made, wanted_made, written_made;
    atomic_int poison; /* enum dp_status */
    _Atomic uint64_t durable, synced;
    uint64_t last; /* written by the shard, under lock */
    struct dp_journal_figures opened;
};

/* journal_stage.c: used by all files. The lock must be held for kept_bytes, the size of the kept segments. */
uint64_t dp_journal_kept_bytes(const struct dp_journal *journal);
void dp_journal_wake(const struct dp_journal *journal);
void dp_journal_poison(struct dp_journal *journal, const struct dp_error *why);
void dp_journal_page_of(const struct dp_journal *journal, const struct dp_journal_segment *segment,
                        uint64_t synced_lsn, uint8_t to[DP_JOURNAL_PAGE]);
/* The header of a pad or an end, after the last record. */
void dp_journal_mark_of(const struct dp_journal *journal, enum dp_journal_kind kind, uint64_t payload,
                        uint8_t to[DP_JOURNAL_HEADER]);

/* journal_commit.c: round writes and syncs all that was appended; prepare makes the next segment if there is
 * none. Called by the commit thread, or by the caller if there is no such thread. */
void dp_journal_round(struct dp_journal *journal);
void dp_journal_prepare(struct dp_journal *journal);
/* Mode machine: the segment's writes bypass the page cache if the file system allows it. */
void dp_journal_go_direct(const struct dp_journal *journal, const struct dp_journal_segment *segment);

/* journal_claim.c. can_claim: whether an idle journal has something to claim and a place for the claim. Lock
 * held. */
bool dp_journal_can_claim(const struct dp_journal *journal);
void dp_journal_claim_end(struct dp_journal *journal);
/* Continues in the next segment, which must exist; its page precedes the first record in it. Lock held. */
void dp_journal_roll(struct dp_journal *journal, uint8_t page[DP_JOURNAL_PAGE]);

/* journal_thread.c */
enum dp_status dp_journal_thread_start(struct dp_journal *journal, struct dp_error *err);
void dp_journal_thread_stop(struct dp_journal *journal);

#endif

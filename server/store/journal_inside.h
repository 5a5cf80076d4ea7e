/* What the journal's files share: the open journal. Two threads: the shard's (journal.c) and the commit thread
 * (journal_commit.c; without one its work is done inside dp_journal_commit()).
 * Holds     synced <= durable <= last;  segments ascend in number and lsn, the last one is written to.
 * Bytes     What is appended goes to the stage (journal_stage.h) and from there to the file: by the commit thread; in mode
 *           process by the shard, at commit, unless the commit thread is writing. The lock is never held over a disk
 *           operation, nor over the copy of a large record. */
#ifndef DP_STORE_JOURNAL_INSIDE_H
#define DP_STORE_JOURNAL_INSIDE_H

#include "server/store/journal.h"
#include "server/store/journal_record.h"
#include "server/store/journal_segment.h"
#include "server/store/journal_stage.h"

#include <pthread.h>
#include <stdatomic.h>

struct dp_journal {
    struct dp_journal_options options;
    const struct dp_disk *disk;
    uint64_t segment_bytes, first_bytes, budget_bytes, incarnation, secret;

    pthread_mutex_t lock;                /* from here to `thread` */
    pthread_cond_t wanted;               /* the commit thread waits for it */
    pthread_cond_t written;              /* chunks left the stage, or it was poisoned */
    struct dp_journal_segment *segments; /* kept */
    size_t count, room;
    struct dp_journal_segment *spares; /* released, not used again yet */
    size_t spare_count;
    struct dp_journal_segment next; /* file NULL: not made yet */
    uint64_t
        want_bytes; /* of a segment for a record that is larger than the next one has room for; 0: none */
    uint64_t number_last;
    uint64_t keep_from;
    struct dp_journal_stage stage;
    bool want_round, want_segment, stop;
    bool starved;           /* an append waits for a segment */
    bool over;              /* an append waits until no more than the budget is kept */
    struct dp_error making; /* why no segment could be made: DP_FULL, else DP_OK */
    struct dp_error why;    /* of the poison */
    uint64_t claimed;       /* lsn that the last claim of this opening names; the claim is synced */
    uint64_t watched; /* last lsn that the commit thread saw when it looked whether the journal is idle */
    uint64_t syncs;

    pthread_t thread;
    bool thread_runs, lock_made, wanted_made, written_made;
    atomic_int poison; /* enum dp_status */
    _Atomic uint64_t durable, synced;
    uint64_t last;           /* written by the shard, under lock */
    uint64_t appended_bytes; /* the shard's */
    struct dp_journal_figures opened;
};

/* journal_claim.c, but for roll. */
void dp_journal_page_of(const struct dp_journal *journal, const struct dp_journal_segment *segment,
                        uint64_t synced_lsn, uint8_t to[DP_JOURNAL_PAGE]);
/* The header of a pad or an end, behind the last record. */
void dp_journal_mark_of(const struct dp_journal *journal, enum dp_journal_kind kind, uint64_t payload,
                        uint8_t to[DP_JOURNAL_HEADER]);
/* Whether an idle journal has something to claim and a place for it. Lock held. */
bool dp_journal_can_claim(const struct dp_journal *journal);
void dp_journal_claim_end(struct dp_journal *journal);
/* Goes on in the next segment, which is there; its page goes in front of what is put first. Lock held. */
void dp_journal_roll(struct dp_journal *journal, uint8_t page[DP_JOURNAL_PAGE]);

/* Of the segments that are kept; lock held. */
uint64_t dp_journal_kept_bytes(const struct dp_journal *journal);
void dp_journal_wake(const struct dp_journal *journal);
void dp_journal_poison(struct dp_journal *journal, const struct dp_error *why);

/* Mode machine: the segment's writes go past the system's cache, where that can be had. */
void dp_journal_go_direct(const struct dp_journal *journal, const struct dp_journal_segment *segment);

/* journal_commit.c: all that is appended is written and synced; then the next segment is made if there is none.
 * The commit thread's, or the caller's when there is no thread. */
void dp_journal_round(struct dp_journal *journal);
void dp_journal_prepare(struct dp_journal *journal);
DP_MUST_USE
enum dp_status dp_journal_thread_start(struct dp_journal *journal, struct dp_error *err);
void dp_journal_thread_stop(struct dp_journal *journal);

#endif

/* What the journal's files share: the open journal. Two threads: the shard's (journal.c) and the commit thread
 * (journal_commit.c; without one its work is done inside dp_journal_commit()).
 * Holds     synced <= durable <= last;  segments ascend in number and lsn, the last one is written to.
 * Bytes     Records are gathered in `stage` or, when large, written at once behind what is staged. A buffer is
 *           written by whoever swapped it out (`hand`: the shard, `taken`: the commit thread), so that the lock
 *           is never held over a disk operation. Each write starts and ends at a page: no page is written twice,
 *           none is read in order to be written. */
#ifndef DP_STORE_JOURNAL_INSIDE_H
#define DP_STORE_JOURNAL_INSIDE_H

#include "server/store/journal.h"
#include "server/store/journal_record.h"
#include "server/store/journal_segment.h"

#include <pthread.h>
#include <stdatomic.h>

#define DP_JOURNAL_STAGE_BYTES (256u * 1024u)
#define DP_JOURNAL_STAGED_MAX  (32u * 1024u) /* a larger record is written straight from its pieces */

struct dp_journal {
    struct dp_journal_options options;
    const struct dp_disk *disk;
    uint64_t segment_bytes, segments_max, incarnation;

    pthread_mutex_t lock; /* from here to `thread` */
    pthread_cond_t wanted;
    struct dp_journal_segment *segments; /* kept */
    size_t count, room;
    struct dp_journal_segment *spares; /* released, not used again yet */
    size_t spare_count;
    struct dp_journal_segment next; /* file NULL: not made yet */
    uint64_t number_last;
    uint64_t keep_from;
    uint8_t *stage, *hand, *taken;
    size_t staged;        /* bytes in stage */
    uint64_t stage_at;    /* where they go in the last segment; a whole page */
    uint64_t stage_first; /* lsn of the first record in it; 0: none */
    uint64_t hand_first;  /* lsn of the first record that the shard is writing; 0: none */
    uint64_t taken_first; /* the same of the commit thread */
    bool want_round, want_segment, stop;
    bool starved;           /* an append waits for a segment */
    bool over;              /* an append waits until no more than the budget is kept */
    struct dp_error making; /* why no segment could be made: DP_FULL, else DP_OK */
    struct dp_error why;    /* of the poison */
    uint64_t syncs;

    pthread_t thread;
    bool thread_runs, lock_made, wanted_made;
    atomic_int poison; /* enum dp_status */
    _Atomic uint64_t durable, synced;
    uint64_t last;           /* written by the shard, under lock */
    uint64_t appended_bytes; /* the shard's */
    struct dp_journal_figures opened;
};

/* Fills what is staged up to a whole page; lock held. */
void dp_journal_pad(struct dp_journal *journal);
/* lsn up to which everything was written; lock held. */
uint64_t dp_journal_written(const struct dp_journal *journal);
void dp_journal_poison(struct dp_journal *journal, const struct dp_error *why);

/* journal_commit.c: all that is appended is written and synced; then the next segment is made if there is none.
 * The commit thread's, or the caller's when there is no thread. */
void dp_journal_round(struct dp_journal *journal);
void dp_journal_prepare(struct dp_journal *journal);
DP_MUST_USE
enum dp_status dp_journal_thread_start(struct dp_journal *journal, struct dp_error *err);
void dp_journal_thread_stop(struct dp_journal *journal);

#endif

/* Journal: the order in which one shard accepted pushes, kept on disk.
 *     append, append, ...  ->  apply  ->  durable  ->  reply
 * Promise   A record is replayed, in append order, once dp_journal_durable() has reached its lsn. Without
 * that it may be lost, never reordered, never torn. lsns ascend by 1 without a gap. Each opening starts a new
 * segment with a new incarnation number, which is mixed into every record's CRC: replay wants (incarnation,
 * lsn) without a gap, so that a stale record behind a torn tail is never taken for new. Records carry the
 * durable lsn of their time: damage at or below the highest one seen is DP_CORRUPT (named: file, offset, lsn)
 * and refused; damage beyond it is the torn tail and is cut. Segments  of segment_bytes, reserved ahead,
 * recycled by rename once every record in them is below what dp_journal_release() names. The file format is
 * in README.md of this room. Thread    append, durable, release: the shard's. One commit thread inside syncs
 * (one sync for all that waits) and calls wake(context). With options.commit_thread false there is none:
 * dp_journal_commit() does one round (simulator). Memory    append copies the record; replay lends it for the
 * callback only. Failure   After a failed write or sync the handle is poisoned: every later call gives that
 * status: close, reopen, replay. (A failed fsync may have dropped pages; trying again would lie.) */
#ifndef DP_STORE_JOURNAL_H
#define DP_STORE_JOURNAL_H

#include "common/env/disk.h"

#include <stdbool.h>

enum dp_durability {
    DP_DURABILITY_MACHINE, /* fdatasync before durable: survives loss of power */
    DP_DURABILITY_PROCESS, /* written before durable: survives the death of the process */
};

struct dp_journal_options {
    struct dp_disk *disk; /* the caller's, outlives the journal; one journal a directory */
    enum dp_durability durability;
    uint64_t segment_bytes; /* 0: 256 MiB; at least 64 KiB; a record must fit into one */
    uint64_t
        budget_bytes; /* of all segments; append gives DP_AGAIN when no segment below it is free. 0: 4 GiB */
    bool commit_thread;
    void (*wake)(
        void *context); /* from the commit thread, after durable advanced or the journal was poisoned */
    void *wake_context;
    /* Records above `replay_after` are replayed at open, in order, before it returns. Not DP_OK ends the
     * opening. */
    uint64_t replay_after;
    enum dp_status (*replay)(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err);
    void *replay_context;
};

struct dp_journal;

struct dp_journal_piece {
    const void *data;
    size_t bytes;
};

DP_MUST_USE
enum dp_status dp_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                               struct dp_error *err);
/* Commits what was appended, then closes. Accepts NULL inside, leaves NULL. */
void dp_journal_close(struct dp_journal **journal);

/* One record of several pieces; its lsn is the last one + 1 (after open: the last replayed, or replay_after,
 * + 1). DP_AGAIN: the budget is used up until release; nothing was appended. */
DP_MUST_USE
enum dp_status dp_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                 uint32_t count, uint64_t *lsn, struct dp_error *err);
/* Asks the commit thread for a round; what is under way goes on. Called once a turn, after its appends. */
void dp_journal_commit(struct dp_journal *journal);
/* lsn up to which everything is durable; *status: DP_OK or why the journal is poisoned (err then says it). */
uint64_t dp_journal_durable(struct dp_journal *journal, enum dp_status *status, struct dp_error *err);
uint64_t dp_journal_last(const struct dp_journal *journal); /* lsn of the last append */
/* Records below `keep_from` are needed no more: their segments may be recycled. */
void dp_journal_release(struct dp_journal *journal, uint64_t keep_from);

struct dp_journal_figures {
    uint64_t segments, bytes_budget, bytes_used; /* used: in segments that are kept */
    uint64_t first_lsn, last_lsn, durable_lsn, incarnation;
    uint64_t syncs, appended_bytes;
    uint64_t replayed_records, replayed_bytes, cut_bytes; /* at open */
};
void dp_journal_figures(struct dp_journal *journal, struct dp_journal_figures *out);

#endif

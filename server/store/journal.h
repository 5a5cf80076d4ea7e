/* Journal: the order in which one shard accepted pushes, kept on disk.
 *     append, append, ...  ->  apply  ->  durable  ->  reply
 * Promise   A record is replayed, in append order, once dp_journal_durable() has reached its lsn. Without that
 *           it may be lost, never reordered, never torn. lsns ascend by 1 without a gap.
 *           Each opening starts a new segment with a new incarnation number, which is mixed into every
 *           record's CRC: replay wants (incarnation, lsn) without a gap, so that a stale record behind a torn
 *           tail is never taken for new. Records carry the synced lsn of their time: damage at or below the
 *           highest one seen is DP_CORRUPT (named: file, offset, lsn) and refused before anything is replayed;
 *           damage beyond it is the torn tail and is cut. An idle journal says so of its last record too. What is replayed is durable before it is.
 * Segments  of first_bytes, each twice as large as the one before it, up to segment_bytes; reserved ahead, recycled by rename once every record in them is below what
 *           dp_journal_release() names. The file format is in README.md of this room.
 * Thread    append, durable, synced, last, commit, sync, release, figures: the shard's. One commit thread inside
 *           writes and syncs (one sync for all that waits) and makes segments. None of the shard's calls waits (mode
 *           process writes to the page cache). It calls wake(context). With options.commit_thread false there is none: dp_journal_commit() does one
 *           round (simulator).
 * Memory    append copies the record; replay lends it for the callback only.
 * Failure   After a failed write or sync the handle is poisoned: every later call gives that status: close,
 *           reopen, replay. (A failed fsync may have dropped pages; trying again would lie.) */
#ifndef DP_STORE_JOURNAL_H
#define DP_STORE_JOURNAL_H

#include "common/env/disk.h"

#include <stdbool.h>

enum dp_durability {
    DP_DURABILITY_MACHINE, /* fdatasync before durable: survives loss of power */
    DP_DURABILITY_PROCESS, /* written before durable: survives the death of the process */
};

enum dp_journal_phase { DP_JOURNAL_CHECKING, DP_JOURNAL_REPLAYING };

struct dp_journal_options {
    struct dp_disk *disk; /* the caller's, outlives the journal; one journal a directory */
    enum dp_durability durability;
    uint64_t segment_bytes; /* 0: 256 MiB; 64 KiB to 256 MiB, whole pages of 4 KiB; a record fits into one */
    uint64_t
        first_bytes; /* of an opening's own, where it makes one; 0: 1 MiB; segment_bytes at most, 64 KiB at least */
    uint64_t budget_bytes; /* of all segments, at least 3 of segment_bytes; 0: 4 GiB */
    bool commit_thread;
    uint32_t
        idle_ms; /* nothing was appended for so long: the commit thread claims (dp_journal_claim); 0: 100 */
    /* 64 random bits for a journal that has none yet: what a client sends, and so lies in a segment, can then not pass for a
     * header of ours. 0: a journal without (tests). */
    uint64_t secret;
    /* From the commit thread: durable or synced advanced, the journal was poisoned, or, after an append that gave
     * DP_AGAIN or DP_FULL, there is room again. */
    void (*wake)(void *context);
    void *wake_context;
    /* Records above `replay_after` are replayed at open, in order, before it returns. Not DP_OK ends the
     * opening. */
    uint64_t replay_after;
    /* Greatest incarnation that the caller knows to have been (0: none); this one's will be above it. must_be_there:
     * files of it, or of a later one, must be found, else DP_CORRUPT: they were removed, or are an older copy. */
    uint64_t incarnation;
    bool must_be_there;
    /* Openings up to this one are over: the store has all that they journaled, and says so durably. Nothing in their segments counts,
     * neither records nor claims, and an opening removes them. 0: none. */
    uint64_t released;
    /* The store was closed cleanly: a record above replay_after of a later opening is DP_CORRUPT, since the store must be an older
     * copy than its journal. */
    bool clean;
    enum dp_status (*replay)(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err);
    void *replay_context;
    /* While it opens, every few MB: bytes of files read in this phase, of how many. Not DP_OK ends the opening with
     * that status. May be NULL. */
    enum dp_status (*progress)(void *context, enum dp_journal_phase phase, uint64_t done_bytes,
                               uint64_t all_bytes, struct dp_error *err);
    void *progress_context;
    /* Whether the disk would still have what others need, with so many bytes less; else DP_FULL. Asked, by the commit thread too,
     * before a segment is made that is none of an old one, but for an opening's own. NULL: it always has. */
    enum dp_status (*room)(void *context, uint64_t bytes, struct dp_error *err);
    void *room_context;
};

struct dp_journal;

#define DP_JOURNAL_PIECES_MAX 136u
#define DP_JOURNAL_BEHIND     DP_TIMEOUT /* what append says where the disk is behind, and nothing else does */

struct dp_journal_piece {
    const void *data;
    size_t bytes;
};

/* DP_CORRUPT: damaged below what was durable, or records after replay_after are missing; nothing was replayed.
 * DP_UNSUPPORTED: written by another version. DP_FULL, DP_IO: the disk; try again. */
DP_MUST_USE
enum dp_status dp_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                               struct dp_error *err);
/* Commits what was appended, marks the end as clean, then closes. Accepts NULL inside, leaves NULL. */
void dp_journal_close(struct dp_journal **journal);
/* Closes, and removes every segment. Only when the store has all that was appended and says durably that this opening is over: the next
 * one's `released` must be at least its incarnation. A crash within leaves segments that the next opening removes, and so does a failure.
 * Accepts NULL inside, leaves NULL. */
DP_MUST_USE
enum dp_status dp_journal_end(struct dp_journal **journal, struct dp_error *err);

/* One record of several pieces; its lsn is the last one + 1 (after open: the last replayed, or replay_after,
 * + 1). DP_AGAIN: the budget is used up until release, or the next segment is not made yet; DP_JOURNAL_BEHIND: the disk is
 * behind, to be tried again when durable advances (the call does not wait for it);
 * DP_FULL: it cannot be made, the disk is full (tried again by itself); DP_ARGUMENT: too large for a segment. Nothing was appended then,
 * and appending may go on later. */
DP_MUST_USE
enum dp_status dp_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                 uint32_t count, uint64_t *lsn, struct dp_error *err);
/* Asks the commit thread for a round; what is under way goes on. Called once a turn, after its appends. In mode
 * process durable has reached the last append when it returns, and there is no wake for that; but where the commit thread
 * is writing some of it, durable gets there, and wakes, when that is written. */
void dp_journal_commit(struct dp_journal *journal);
/* Mode process: asks for a round that syncs, before rows are written back (rule 2). Mode machine: as commit. */
void dp_journal_sync(struct dp_journal *journal);
/* What the commit thread does by itself once a journal is idle; without one, the caller's. All that was appended is synced,
 * in mode process too, and one page says so: damage to any of it is refused from then on, not taken for a torn tail. Nothing
 * if that was said already. In a segment that is full the page of the next one says it, if that is made. */
void dp_journal_claim(struct dp_journal *journal);
/* lsn up to which everything is durable in the mode's sense; *status: DP_OK or why the journal is poisoned (err
 * then says it). */
uint64_t dp_journal_durable(struct dp_journal *journal, enum dp_status *status, struct dp_error *err);
/* lsn up to which everything survives a loss of power, in both modes: no row above it may go to RocksDB. */
uint64_t dp_journal_synced(const struct dp_journal *journal);
uint64_t dp_journal_last(const struct dp_journal *journal); /* lsn of the last append */
/* Records below `keep_from` are needed no more: their segments may be recycled, once they are synced. The next
 * opening's replay_after must be at least keep_from - 1. */
void dp_journal_release(struct dp_journal *journal, uint64_t keep_from);

/* What lies behind the last record that counts, and is cut. */
enum dp_journal_rest {
    DP_JOURNAL_REST_NONE,    /* nothing, or what a recycled segment held before */
    DP_JOURNAL_REST_UNKNOWN, /* bytes that no header explains: of a write that was under way, or held before */
    DP_JOURNAL_REST_RECORDS, /* of records of the opening that ended there: torn, or damaged and not claimed */
};
struct dp_journal_cut {
    enum dp_journal_rest rest;
    uint64_t number;        /* of the segment */
    uint64_t offset, bytes; /* from the first to the last of them, 64 at a time */
    uint64_t lsn;           /* of the first record that does not count */
};
/* "12 bytes in journal-..., offset ...: ..."; empty for REST_NONE. For logs. */
#define DP_JOURNAL_CUT_TEXT 320
void dp_journal_cut_text(const struct dp_journal_cut *cut, char text[DP_JOURNAL_CUT_TEXT]);

struct dp_journal_figures {
    uint64_t segments, bytes_budget, bytes_used; /* used: of the segments whose records are kept */
    uint64_t bytes_kept; /* from the first segment that is not released to where the next record goes */
    uint64_t first_lsn, last_lsn, durable_lsn, synced_lsn, incarnation; /* first: that is kept */
    uint64_t claimed_lsn; /* damage up to here would be refused by the next opening */
    uint64_t syncs, appended_bytes;
    uint64_t replayed_records, replayed_bytes; /* at open */
    struct dp_journal_cut cut;                 /* at open */
};
void dp_journal_figures(struct dp_journal *journal, struct dp_journal_figures *out);

/* Replays, as an opening would, and changes nothing: for who must not write. What is replayed may be beyond what a loss of power
 * would leave: nothing of it may be stored. *out: last_lsn (at least replay_after), incarnation, and what is told of an
 * opening; 0 else. Failures as of open. */
DP_MUST_USE
enum dp_status dp_journal_read(const struct dp_journal_options *options, struct dp_journal_figures *out,
                               struct dp_error *err);

#endif

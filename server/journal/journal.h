/* Journal: the order in which one shard accepted pushes, kept on disk.
 *     append, append, ...  ->  apply  ->  durable  ->  reply
 * Promise   A record whose lsn dp_journal_durable() has reached will be replayed, in append order. Before
 *           that it may be lost, but never reordered or torn. lsns ascend by 1 without a gap.
 *           Each opening starts a new segment with a new incarnation number, which is mixed into every
 *           record's CRC. Replay requires (incarnation, lsn) without a gap, so a stale record after a torn
 *           tail is never taken for a new one. Each record carries the synced lsn of its time. Damage at or
 *           below the highest one seen is refused before anything is replayed (DP_CORRUPT, naming file,
 *           offset and lsn); damage beyond it is the torn tail and is cut. An idle journal claims its last
 *           record in the same way. Records are durable before they are replayed.
 * Segments  The first one has first_bytes, and each is twice as large as the one before, up to
 *           segment_bytes. They are reserved ahead of need, and recycled by rename once every record in them
 *           is below the lsn of dp_journal_release(). The file format is in this room's README.md.
 * Thread    The shard's thread calls append, durable, synced, last, commit, sync, release and figures; none
 *           of them waits (mode process writes to the page cache). One commit thread inside writes, syncs
 *           (once for all waiting records), makes segments and calls wake(context). With
 *           options.commit_thread false there is no such thread: dp_journal_commit() does one round (for the
 *           simulator).
 * Memory    append copies the record. A replayed record is borrowed for the callback.
 * Failure   A failed write or sync poisons the handle: every later call returns that status. Close, reopen
 *           and replay. (A failed fsync may have dropped pages, so a later success would prove nothing.) */
#ifndef DP_JOURNAL_JOURNAL_H
#define DP_JOURNAL_JOURNAL_H

#include "common/env/disk.h"

#include <stdbool.h>

enum dp_durability {
    DP_DURABILITY_MACHINE, /* fdatasync before durable: survives loss of power */
    DP_DURABILITY_PROCESS, /* written before durable: survives the death of the process */
};

enum dp_journal_phase { DP_JOURNAL_CHECKING, DP_JOURNAL_REPLAYING };

struct dp_journal_options {
    struct dp_disk *disk; /* the caller's; must outlive the journal. One journal per directory. */
    enum dp_durability durability;
    /* Largest segment: 64 KiB to 256 MiB, a multiple of 4 KiB; a record must fit into one. 0: 256 MiB. */
    uint64_t segment_bytes;
    uint64_t first_bytes;  /* an opening's own segment: 64 KiB to segment_bytes; 0: 1 MiB */
    uint64_t budget_bytes; /* all segments together, at least 3 times segment_bytes; 0: 4 GiB */
    bool commit_thread;
    /* after so long without an append the commit thread claims (dp_journal_claim); 0: 100 */
    uint32_t idle_ms;
    /* 64 random bits, used if the journal has no secret yet: bytes that a client sent, which lie in a
     * segment, then cannot pass for one of our headers. 0: no secret (tests). */
    uint64_t secret;
    /* Called by the commit thread: durable or synced advanced, the journal was poisoned, or an append that
     * failed with DP_AGAIN or DP_FULL may succeed now. */
    void (*wake)(void *context);
    void *wake_context;
    /* open replays the records above `replay_after`, in order, before it returns. A status other than DP_OK
     * from the callback ends the opening. */
    uint64_t replay_after;
    /* The greatest incarnation that the caller knows of (0: none); this opening's will be above it.
     * must_be_there: files of that incarnation or a later one must exist, else DP_CORRUPT: they were removed,
     * or are an older copy. */
    uint64_t incarnation;
    bool must_be_there;
    /* dp_journal_read only: reads records up to the lsn read_until while the journal's writer runs. The caller knows that they
     * were durable and that nothing above replay_after is released until then; if one of them is missing all the same, that is
     * DP_CORRUPT. Later records are not looked at. */
    bool beside_writer;
    uint64_t read_until;
    /* Openings up to this one are over: the store has durably recorded that it has all that they journaled.
     * Nothing in their segments counts, neither records nor claims, and an opening removes them. 0: none. */
    uint64_t released;
    /* The store was closed cleanly. A record above replay_after of a later opening is then DP_CORRUPT, since
     * the store must be an older copy than its journal. */
    bool clean;
    enum dp_status (*replay)(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err);
    void *replay_context;
    /* Called during open every few MB: how many bytes of files this phase has read, of how many. A status
     * other than DP_OK ends the opening with it. May be NULL. */
    enum dp_status (*progress)(void *context, enum dp_journal_phase phase, uint64_t done_bytes,
                               uint64_t all_bytes, struct dp_error *err);
    void *progress_context;
    /* DP_OK if the disk, with so many bytes less, would still have what others need; else DP_FULL. Asked,
     * also by the commit thread, before a segment is made that does not reuse an old file, except an
     * opening's own. NULL: never asked. */
    enum dp_status (*room)(void *context, uint64_t bytes, struct dp_error *err);
    void *room_context;
};

struct dp_journal;

struct dp_journal_piece {
    const void *data;
    size_t bytes;
};

/* DP_CORRUPT: a record that was durable is damaged, or records after replay_after are missing; nothing was
 * replayed. DP_UNSUPPORTED: another format version. DP_FULL, DP_IO: the disk is full or failed; the caller
 * may retry. */
enum dp_status dp_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                               struct dp_error *err);
/* Commits all that was appended, records a clean end, and closes. Accepts NULL inside, leaves NULL. */
void dp_journal_close(struct dp_journal **journal);
/* Closes and removes every segment. Call it only when the store has all that was appended and has durably
 * recorded that this opening is over: the next opening's `released` must be at least this incarnation. After
 * a crash or a failure, the next opening removes the segments that are left. Accepts NULL inside, leaves
 * NULL. */
enum dp_status dp_journal_end(struct dp_journal **journal, struct dp_error *err);

/* Appends one record made of several pieces. Its lsn is the last one + 1 (after open: the last replayed one,
 * or replay_after, + 1). Never waits. A failure appends nothing, and the caller may append again later:
 *     DP_AGAIN      the budget is used up until release, or the next segment is not ready yet
 *     DP_BEHIND     the disk is behind: retry when durable advances
 *     DP_FULL       the disk has no space for a segment (the journal retries by itself)
 *     DP_ARGUMENT   the record is too large for a segment */
enum dp_status dp_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                 uint32_t count, uint64_t *lsn, struct dp_error *err);
/* Asks the commit thread for a round; a round under way goes on. Called once a turn, after its appends. In
 * mode process, durable has reached the last append when this returns, and wake is not called for it; but if
 * the commit thread is writing some of it, durable advances, with a wake, when that is written. */
void dp_journal_commit(struct dp_journal *journal);
/* Mode process: asks for a round that syncs, before rows are written back (rule 2). Mode machine: the same as
 * commit. */
void dp_journal_sync(struct dp_journal *journal);
/* Syncs all that was appended, in mode process too, and writes one page that claims it: from then on damage
 * to any of it is refused instead of being taken for a torn tail. Does nothing if all is claimed already. In
 * a full segment the next one's page makes the claim, once that segment is made. The commit thread claims by
 * itself when the journal is idle; without that thread the caller must. */
void dp_journal_claim(struct dp_journal *journal);
/* The lsn up to which everything is durable in the sense of the mode. *status: DP_OK, or why the journal is
 * poisoned (with the text in err). */
uint64_t dp_journal_durable(struct dp_journal *journal, enum dp_status *status, struct dp_error *err);
/* The lsn up to which everything survives a loss of power, in both modes: no newer row may go to RocksDB. */
uint64_t dp_journal_synced(const struct dp_journal *journal);
uint64_t dp_journal_last(const struct dp_journal *journal); /* lsn of the last append */
/* Records below `keep_from` are no longer needed: their segments may be recycled once they are synced. The
 * next opening's replay_after must be at least keep_from - 1. */
void dp_journal_release(struct dp_journal *journal, uint64_t keep_from);

/* What an opening finds after the last record that counts, and cuts. */
enum dp_journal_rest {
    DP_JOURNAL_REST_NONE,    /* nothing, or the former content of a recycled segment */
    DP_JOURNAL_REST_UNKNOWN, /* bytes that no header explains: an interrupted write, or former content */
    DP_JOURNAL_REST_RECORDS, /* records of the opening that ended there: torn, or damaged and unclaimed */
};
struct dp_journal_cut {
    enum dp_journal_rest rest;
    uint64_t number;        /* the segment's */
    uint64_t offset, bytes; /* where they begin, and how many, in units of 64 */
    uint64_t lsn;           /* of the first record that does not count */
};
/* Describes the cut for the log; empty for REST_NONE. */
#define DP_JOURNAL_CUT_TEXT 320
void dp_journal_cut_text(const struct dp_journal_cut *cut, char text[DP_JOURNAL_CUT_TEXT]);

struct dp_journal_figures {
    uint64_t segments, bytes_budget, bytes_used; /* used: by segments whose records are kept */
    uint64_t bytes_kept; /* from the first segment that is not released to the place of the next record */
    uint64_t first_lsn, last_lsn, synced_lsn, incarnation; /* first: the first one kept */
    uint64_t claimed_lsn; /* the next opening would refuse damage up to here */
    uint64_t syncs;
    uint64_t replayed_records, replayed_bytes; /* at open */
    struct dp_journal_cut cut;                 /* at open */
};
void dp_journal_figures(struct dp_journal *journal, struct dp_journal_figures *out);

/* Replays like an opening and changes nothing, for a caller that must not write. The replayed records may not
 * be durable, so nothing made of them may be stored. *out has last_lsn (at least replay_after), incarnation
 * and the figures of an opening; the others are 0. Fails like open. */
enum dp_status dp_journal_read(const struct dp_journal_options *options, struct dp_journal_figures *out,
                               struct dp_error *err);

#endif

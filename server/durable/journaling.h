/* Journaling: appends a shard's records to its journal, and keeps track of what is durable.
 *     append -> (the caller applies) -> commit, at the end of a turn -> ... -> turn: durable, synced
 * Promise   The store has a mark of this opening of the journal before the first append. So the next opening
 *           refuses a missing journal or an older copy instead of taking it for an empty one.
 *           Without a journal (durability none) every push counts as durable at once.
 * Holds     durable <= lsn; synced <= lsn.
 * Thread    The shard's.
 * Failure   lost() is called when the journal failed for good. From then on appending fails, and
 *           dp_journaling_lost gives the reason. */
#ifndef DP_DURABLE_JOURNALING_H
#define DP_DURABLE_JOURNALING_H

#include "common/wire/request.h"
#include "server/cache/cached_tables.h"
#include "server/cache/io_jobs.h"
#include "server/cache/shard_base.h"
#include "server/journal/record.h"

/* Only journaling.c changes the fields; other files may read journal, lsn, durable, synced and failed. */
struct dp_journaling {
    struct dp_shard_base *base;
    struct dp_io_jobs *jobs;
    void (*lost)(void *context);
    void *context;
    struct dp_journal *journal; /* NULL: durability none, or during replay */
    bool replays;               /* pushes that are applied are in the journal already */
    uint64_t lsn;               /* of the last push appended; continues after a restart */
    uint64_t durable;           /* pushes up to this lsn are durable; without a journal, all */
    uint64_t synced;   /* pushes up to this lsn survive a loss of power: rows and marks wait for it */
    bool progressed;   /* durable has grown since dp_journaling_take_progress */
    uint64_t view_lsn; /* of the last view appended; 0: none since the opening */
    bool pushed;       /* since the last write-back cycle began, first at since_ns */
    uint64_t since_ns;
    struct dp_error failed;
    struct dp_error stuck; /* why write-back frees no space; DP_OK: it may */
    bool wanted;           /* the journal is full: write-back is to begin a cycle */
    bool recycles;         /* segments were released: the next commit recycles them */
    uint64_t incarnation;  /* of the journal, as the store knew it at the opening */
    uint64_t released;     /* openings of the journal up to this one are over: the store has their pushes */
    struct dp_error no_segment; /* the disk had no space for a segment at the last append; else DP_OK */
    uint64_t no_segment_ns;     /* when */
    uint64_t warned_ns;         /* when that was logged; 0: it was not */
    uint64_t behind_ns;         /* since when pushes wait for a disk without progress; 0: none wait */
    bool holds;                 /* nothing above `held` is released */
    uint64_t held, put_off;     /* put_off: the release that waits for that; 0: none */
};

/* At the opening, before replay: rows and marks in the store have all pushes up to `lsn`. */
void dp_journaling_start(struct dp_journaling *journaling, uint64_t lsn);
/* Replay applied the record of this lsn. */
void dp_journaling_replayed(struct dp_journaling *journaling, uint64_t lsn);

enum dp_appended {
    DP_APPENDED,       /* under journaling->lsn */
    DP_APPEND_NO_ROOM, /* no space until rows are written back, which this asks for, or the disk has more */
    DP_APPEND_BEHIND,  /* the disk is behind: park the push */
    DP_APPEND_REFUSED,
};
/* The record of a push that is neither refused nor dropped: all but dims. (Clearing those would make each push slower.) */
void dp_journaling_describe(struct dp_record *record, enum dp_record_kind kind,
                            const struct dp_request *push);
/* push: the record's stream, number and sections (record.h). If it is not appended, err has the reason. */
DP_MUST_USE
enum dp_appended dp_journaling_append(struct dp_journaling *journaling, const struct dp_record *record,
                                      const struct dp_request *push, struct dp_error *err);
/* Returns true to park the push until the disk catches up; false when it made no progress for BEHIND_NS
 * (refuse it). */
bool dp_journaling_may_wait(struct dp_journaling *journaling);
/* Updates durable and synced. */
void dp_journaling_turn(struct dp_journaling *journaling);
/* Whether the disk has made progress since the last call. */
bool dp_journaling_take_progress(struct dp_journaling *journaling);
/* Call it at the end of a turn. */
void dp_journaling_commit(struct dp_journaling *journaling);
/* Whether the disk lately had no space for another segment: pushes hear so, and come again. */
bool dp_journaling_lacks_segment(const struct dp_journaling *journaling);
/* Asks for a sync up to this lsn, since rows or marks wait for it; in mode process nothing else would. */
void dp_journaling_sync(struct dp_journaling *journaling, uint64_t lsn);
/* The store has all pushes up to this lsn: the next commit recycles their segments. */
void dp_journaling_release(struct dp_journaling *journaling, uint64_t lsn);
/* For a checkpoint: what is above lsn stays in the journal, whatever is released, until the hold ends. There is none yet, and nothing
 * above lsn was released. */
void dp_journaling_hold(struct dp_journaling *journaling, uint64_t lsn);
void dp_journaling_end_hold(struct dp_journaling *journaling); /* does the release that was put off */
/* Whether a hold keeps so much that the journal will soon be full. */
bool dp_journaling_hold_fills(const struct dp_journaling *journaling);
/* A write-back cycle begins. */
void dp_journaling_begin_cycle(struct dp_journaling *journaling);
/* Why rows cannot be written back: DP_AGAIN: now; another status: ever; DP_OK: they can. A full journal gives this
 * reason. */
void dp_journaling_set_stuck(struct dp_journaling *journaling, const struct dp_error *why);

/* Whether the journal failed while pushes are not durable: they cannot be answered, and err has the reason (DP_AGAIN). */
bool dp_journaling_lost(const struct dp_journaling *journaling, struct dp_error *err);
/* Whether half of the journal's budget holds pushes that are not in the store. This includes replayed
 * records, and the padding of small commits and of segments. Not while a hold keeps what the store has: a cycle would not help. */
bool dp_journaling_fills(const struct dp_journaling *journaling);
/* The number of this opening; 0: no journal. */
uint64_t dp_journaling_opening(const struct dp_journaling *journaling);
/* Updates the counters. stored_lsn: all up to it is in the store. */
void dp_journaling_count(struct dp_journaling *journaling, uint64_t stored_lsn);

/* For a clean store whose marks do not release its journal yet: a build that kept its journals closed it, or
 * an opening ended before its first push. The rows have all of the journal, so this releases it, durably,
 * before the journal is touched: after a crash only the marks can tell a journal that is not needed from one
 * that was lost. Waits. */
enum dp_status dp_journaling_release_old(struct dp_journaling *journaling, struct dp_error *err);
/* Takes ownership of the open and replayed journal. Releases it up to stored_lsn, since a crash may have come
 * between a cycle's marks and the release, and a full journal would otherwise stay full. Puts the mark that
 * tells the next opening which opening of the journal must exist. */
enum dp_status dp_journaling_open(struct dp_journaling *journaling, struct dp_journal **journal,
                                  uint64_t stored_lsn, struct dp_error *err);
/* Removes the journal's segments, once the store has everything and has recorded that. After a crash or a
 * failure the next opening removes those that are left. */
enum dp_status dp_journaling_end(struct dp_journaling *journaling, struct dp_error *err);
void dp_journaling_clear(struct dp_journaling *journaling);

#endif

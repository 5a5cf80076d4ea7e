/* What the files of the shard share. Nothing outside this folder includes it. */
#ifndef DP_SHARD_SHARD_INNER_H
#define DP_SHARD_SHARD_INNER_H

#include "common/model/optimizer.h"
#include "server/shard/counters.h"
#include "server/shard/held.h"
#include "server/shard/push_ids.h"
#include "server/shard/row_cache.h"
#include "server/shard/sessions.h"
#include "server/shard/shard.h"

#define DP_SHARD_TABLES_MAX    DP_STATUS_TABLES_MAX
#define DP_SHARD_WINDOW        64u /* requests of one session that wait at most */
#define DP_SHARD_REQUESTS_MAX  1024u
#define DP_SHARD_WAITING_MAX   ((uint64_t)2 << 30) /* bytes of all waiting requests; one alone may be larger */
#define DP_SHARD_TURN_MAX      256u                /* requests done in one turn */
#define DP_SHARD_TURN_BYTES    ((uint64_t)64 << 20) /* gathered in one turn by its pulls */
#define DP_SHARD_TAKEN_ROWS    8192u                /* of reads that are done, in one turn */
#define DP_SHARD_TAKEN_BYTES   ((uint64_t)4 << 20)  /* and so much of them at most */
#define DP_STREAM_BLOCK        1024u                /* streams reserved at once, durably */
#define DP_SHARD_REQUEST_SHARE 2u /* one request's rows may take one part in so many of the cache */
#define DP_SHARD_READS_PATIENT 2u /* reads of one request, before it is urgent */

struct dp_shard_table {
    uint32_t id;
    bool durable; /* its mark is in the store */
    struct dp_table_spec spec;
    struct dp_optimizer *optimizer;
    struct dp_row_cache *cache;
    uint64_t stored;  /* rows in the store */
    uint64_t fresh;   /* rows pushed first since opening: not in the store */
    uint64_t creator; /* session that made it, so that its resend hears the same answer */
    /* Rows that the store has and the cache has not: 0 means that a key unknown to the cache has no row anywhere. While
     * `counted` is false `stored` is not known, so `away` is only what came and went since opening, from 0 on (it may
     * wrap below 0): whoever learns the number adds it to both. */
    uint64_t away;
    bool counted;
    uint32_t reserved; /* rows that the reads under way may bring: they have their room */
    bool hungry;       /* room was wanted here: rows are evicted ahead */
    uint64_t marked;   /* rows that its mark told when this opening began */
};

/* A job at the store, and what it is for. */
enum dp_shard_job_kind {
    DP_JOB_MISSES,
    DP_JOB_TABLE,
    DP_JOB_STREAMS,
    DP_JOB_ROWS,
    DP_JOB_MARKS,
    DP_JOB_JOURNAL,
    DP_JOB_RELEASED,
    DP_JOB_REPLAY,
    DP_JOB_COUNT,
    DP_JOB_SNAPSHOT
};

struct dp_shard_job {
    struct dp_store_job store;
    enum dp_shard_job_kind kind;
    uint32_t table;                    /* id: TABLE, ROWS */
    uint32_t partition, partition_end; /* from which its rows are, the end exclusive: ROWS */
    uint64_t session, request;         /* who waits: MISSES, TABLE; the answer is dropped when it is gone */
    size_t bytes;                      /* of its memory: MISSES */
    uint32_t taken;                    /* rows that are in the cache by now, of a read that is done: MISSES */
    struct dp_shard_job *next;         /* while it is to be submitted again, or taken in */
    void *memory;                      /* one block behind all the arrays */
};

/* A write-back cycle (write_back.c). */
enum dp_cycle { DP_CYCLE_IDLE, DP_CYCLE_ROWS, DP_CYCLE_MARKS };

struct dp_write_back {
    enum dp_cycle cycle;
    uint64_t rows_lsn;          /* when the cycle is done every row's pushes up to it are in the store */
    uint64_t marked_lsn;        /* rows_lsn of the last cycle that is done */
    uint64_t stored_lsn;        /* the same, of the last one that ended with marks */
    uint64_t since_ns;          /* of the first push since the cycle began */
    bool pushed;                /* there was one */
    uint32_t table, partition;  /* id; the next to be taken */
    uint32_t under_way;         /* portions, or marks, at the store */
    bool wanted;                /* the journal is full */
    bool pressed;               /* the cache wants rows to be clean */
    uint64_t merging;           /* files to be merged before the cycle that is due begins; 0: none */
    uint64_t merging_ns;        /* since when they have not become fewer */
    bool merging_told;          /* that they do not */
    struct dp_shard_job *again; /* the disk was full: what to submit again, oldest first */
    struct dp_error full;       /* and what it said; OK: it is not */
    uint64_t again_ns;          /* and when */
    bool is_last, last_done;    /* the cycle began when nothing could change any more; it is done */
    struct dp_shard_job *ready; /* waits for the journal to be durable past its rows or marks */
    uint64_t ready_lsn;
    struct dp_error failed; /* of a portion or of marks: nothing is written back any more */
};

/* Room in the cache (room.c). */
struct dp_room {
    struct dp_session *first, *last; /* whose first request waits for room, oldest first */
    uint64_t reads_bytes;            /* memory of the reads under way */
    /* What the one at the head of them lacked when it was tried, and who it is; another or NULL: it is to be tried. */
    const struct dp_waiting *need_of;
    uint32_t sections;
    struct dp_shard_table *tables[DP_SECTIONS_MAX];
    uint32_t rows[DP_SECTIONS_MAX], entries[DP_SECTIONS_MAX];
    uint64_t bytes;
    uint64_t walked; /* slots the hand has passed for it since something changed */
    uint64_t laps;   /* so many are to be passed before it is stuck */
    bool shrunk;     /* a table shrinks for it since then, or could not */
    bool waits;      /* it was tried when the hand had found too little, and waits for a change */
    const struct dp_waiting
        *urgent;  /* its rows were evicted while others were read: now nobody else reads or evicts */
    bool changed; /* rows became clean, or room came: it is worth trying again */
    bool tight;   /* since the last turn: what is used is touched */
};

/* Snapshots (snapshots.c): the order under way, and what the store was reverted to. */
enum dp_snapshot_stage {
    DP_SNAPSHOT_NONE,
    DP_SNAPSHOT_ROWS, /* rows are written back */
    DP_SNAPSHOT_DUE,  /* the store has them: it is to be asked for the copy */
    DP_SNAPSHOT_COPY  /* it makes it */
};

#define DP_SNAPSHOT_ASKERS_MAX 16u
#define DP_SHARD_REVERTED      "reverted"

struct dp_snapshot_asker {
    struct dp_peer peer;
    uint64_t id, session, since_ns;
};

struct dp_snapshots {
    enum dp_snapshot_stage stage;
    struct dp_store_snapshot taken, keeps; /* of the order */
    struct dp_snapshot_asker asker[DP_SNAPSHOT_ASKERS_MAX];
    uint32_t askers;
    struct dp_store_snapshot reverts; /* run > 0: it drains in order to be reverted */
    struct dp_store_snapshot reverted;
    uint64_t reverted_lsn;
};

struct dp_shard {
    struct dp_shard_options options;
    struct dp_range range;
    struct dp_counters counters;
    struct dp_sessions *sessions;
    struct dp_push_ids *ids;
    struct dp_shard_table *table[DP_SHARD_TABLES_MAX]; /* ascending by id */
    uint32_t tables;
    uint64_t lsn;     /* of the last push journaled; goes on after a restart */
    uint64_t applied; /* pushes applied: what staleness is counted in */
    uint64_t next_stream,
        streams_reserved; /* given below next, durable below reserved; the shard with mixed key 0 */
    uint64_t reserving;   /* until this, by a job under way; 0: none is */

    struct dp_session *run_first, *run_last;
    uint32_t waiting; /* requests */
    uint64_t waiting_bytes;
    uint64_t turn_bytes; /* gathered in this turn */
    uint32_t jobs;       /* at the store, or not taken in yet */
    struct dp_shard_job *read_first,
        *read_last;                 /* reads that are done and not taken in in full, oldest first */
    struct dp_waiting *hello_first; /* hellos that wait for streams to be reserved */

    uint32_t *rows; /* scratch: row numbers of the request at hand */
    size_t rows_room;
    float *scratch; /* one row of gradients, DP_TABLE_DIM_MAX */

    bool draining;
    uint64_t opened_ns;
    struct dp_write_back write_back;
    struct dp_snapshots snapshots;
    struct dp_room room;

    struct dp_journal *journal; /* NULL: durability none */
    uint64_t durable;           /* lsn up to which pushes are durable; without a journal the last one */
    uint64_t synced;            /* lsn up to which pushes survive loss of power: rows and marks wait for it */
    struct dp_error journal_failed;
    uint64_t
        incarnation; /* of the journal, as the store knows it; below this opening's nothing is answered */
    bool incarnation_put;
    uint64_t released; /* openings of the journal up to here are not needed: the store has what they took */
    bool released_put; /* the job that says so was completed */
    struct dp_error unreleased;       /* and why it failed */
    struct dp_error incarnation_full; /* why the store could not take it: DP_FULL, tried again; else OK */
    struct dp_shard_job *incarnation_again; /* while it is to be submitted again */
    uint64_t incarnation_again_ns;
    bool no_segment;        /* its disk had no room for another: told */
    uint64_t no_segment_ns; /* when, last; 0: never */
    uint64_t on_disk;       /* lsn up to which the journal is durable, whatever may be answered */
    struct dp_session *disk_first,
        *disk_last;     /* whose first request waits for the journal's disk, oldest first */
    uint64_t behind_ns; /* since when the disk has taken nothing that they wait for; 0: nobody does */
    struct dp_held held;
    struct dp_held_positions *positions; /* oldest first */
    struct dp_recovery *recovery;        /* while the journal is replayed (recovery.c) */
    struct dp_shard_job *counting;       /* the store counts its rows; else NULL */
    bool count_failed;
    bool damage_told; /* at damage_ns, last */
    uint64_t damage_ns;
};

/* What became of a request. */
enum dp_done {
    DP_DONE,       /* answered */
    DP_DONE_WAIT,  /* parked: the store was asked, or it waits for room, or for the journal's disk */
    DP_DONE_LATER, /* answered AGAIN or TIMEOUT: it and what its session sent behind it must come again */
};

/* Answers (turn.c). */
void dp_shard_answer(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_reply *reply,
                     struct dp_frame *frames, uint32_t frame_count);
void dp_shard_refuse(struct dp_shard *shard, const struct dp_peer *peer, const struct dp_request *request,
                     uint64_t sequence, const struct dp_error *err);
enum dp_done dp_shard_refuse_waiting(struct dp_shard *shard, const struct dp_waiting *waiting,
                                     const struct dp_error *err);
void dp_shard_make_runnable(struct dp_shard *shard, struct dp_session *session);

/* Tables (tables.c). */
struct dp_shard_table *dp_shard_find_table(const struct dp_shard *shard, uint32_t id);
enum dp_done dp_shard_create_table(struct dp_shard *shard, struct dp_waiting *waiting);
void dp_shard_table_stored(struct dp_shard *shard, struct dp_shard_job *job);
enum dp_status dp_shard_load_tables(struct dp_shard *shard, struct dp_error *err);
void dp_shard_free_tables(struct dp_shard *shard);
/* A job with the marks of a cycle: lsn, push ids, every table that is durable, and, where it is not 0, the opening of the journal up to
 * which none is needed any more. NULL: out of memory. */
struct dp_shard_job *dp_shard_marks_job(const struct dp_shard *shard, uint64_t rows_lsn, uint64_t released);
/* DP_AGAIN: the store is busy, the job stays the caller's. */
enum dp_status dp_shard_try_submit(struct dp_shard *shard, struct dp_shard_job *job);
uint64_t dp_shard_dirty_rows(const struct dp_shard *shard);
void dp_shard_status(struct dp_shard *shard, const struct dp_waiting *waiting);
uint64_t dp_shard_cache_bytes(const struct dp_shard *shard);

/* Pull, push, and what both need (pull.c, push.c, misses.c). */
enum dp_done dp_shard_pull(struct dp_shard *shard, struct dp_waiting *waiting);
enum dp_done dp_shard_push(struct dp_shard *shard, struct dp_waiting *waiting);
enum dp_done dp_shard_refuse_push(struct dp_shard *shard, const struct dp_waiting *waiting,
                                  const struct dp_error *err);
/* Every section's table, its keys within the shard's range; no table twice. */
enum dp_status dp_shard_check_sections(const struct dp_shard *shard, const struct dp_request *request,
                                       struct dp_shard_table **tables, struct dp_error *err);
/* The rows of every (checked) section: shard->rows, section after section. DP_OK: no key needs reading, and a push's new
 * rows have room. DP_AGAIN with *err untouched: rows are being read, or it waits for room: park the request. Else
 * refused, why in err. */
enum dp_status dp_shard_find_rows(struct dp_shard *shard, struct dp_waiting *waiting,
                                  struct dp_shard_table **tables, struct dp_error *err);
/* The request behind one that waits; may be NULL. What it lacks is read, if there is room and nobody waits for that. Once. */
void dp_shard_read_ahead(struct dp_shard *shard, struct dp_waiting *waiting);
/* A read that is done is taken in in turns, a portion each. */
void dp_shard_misses_read(struct dp_shard *shard, struct dp_shard_job *job);
void dp_shard_reads_turn(struct dp_shard *shard);
void dp_shard_reads_clear(struct dp_shard *shard);
/* A key that the cache does not know may have a row in the store. */
static inline bool dp_shard_must_ask(const struct dp_shard_table *table)
{
    return !table->counted || table->away > 0;
}

/* Room (room.c). Row numbers and states of keys found before a call are not valid after it: find them again.
 * Room for `rows` more rows of this table, by evicting rows that are clean. DP_OK. DP_AGAIN: no clean row is left now; a
 * write-back cycle was asked for (dp_shard_write_back_turn, and its jobs), after which to try again. DP_FULL: they can never
 * have room. It may take long: for replay. */
enum dp_status dp_shard_make_room(struct dp_shard *shard, struct dp_shard_table *table, uint32_t rows,
                                  struct dp_error *err);
/* The same for rows[i] more rows of shard->table[i], of all tables at once. */
enum dp_status dp_shard_make_room_for_all(struct dp_shard *shard, const uint64_t *rows, struct dp_error *err);

/* What a request wants room for: rows of its sections' tables, and bytes beside. */
struct dp_room_need {
    const struct dp_request *request; /* its keys do not leave for it; NULL: replay's */
    uint32_t sections;
    struct dp_shard_table **tables;
    const uint32_t *rows, *entries; /* entries: of those, whose keys are not in the index */
    uint64_t bytes;
};
/* DP_OK: it is there, nothing was evicted. DP_EXISTS: it was made, and row numbers changed. DP_AGAIN, *err untouched: park it for room. Else
 * why not, in err. */
enum dp_status dp_shard_room_for(struct dp_shard *shard, struct dp_waiting *waiting,
                                 const struct dp_room_need *need, struct dp_error *err);
/* For a read that nobody waits for yet: false where there is none, or others wait. Row numbers change. */
DP_MUST_USE
bool dp_shard_room_ahead(struct dp_shard *shard, const struct dp_room_need *need);
uint64_t dp_shard_taken(const struct dp_shard *shard); /* of the budget */
/* Rows are evicted, or soon will be. */
bool dp_shard_is_tight(const struct dp_shard *shard);
uint64_t dp_shard_dirty_bytes(const struct dp_shard *shard);
void dp_shard_park_for_room(struct dp_shard *shard, struct dp_session *session);
void dp_shard_unpark(struct dp_shard *shard, struct dp_session *session); /* it waits for room no more */
void dp_shard_room_turn(struct dp_shard *shard);
bool dp_shard_room_goes_on(const struct dp_shard *shard);

/* Jobs (misses.c). memory: freed with the job. */
struct dp_shard_job *dp_shard_job_new(enum dp_shard_job_kind kind, void *memory);
enum dp_status dp_shard_submit(struct dp_shard *shard, struct dp_shard_job *job);
void dp_shard_job_free(struct dp_shard_job *job);

/* All that the store completed goes where it belongs (turn.c). */
void dp_shard_take_completed(struct dp_shard *shard);

/* Write-back (write_back.c). */
void dp_shard_write_back_turn(struct dp_shard *shard);
bool dp_shard_write_back_goes_on(const struct dp_shard *shard); /* without further input */
/* From the opening on, for read_only: no cycle begins, and dp_shard_not_writing says why. */
void dp_shard_write_nothing(struct dp_shard *shard);
/* True: the job is kept. */
bool dp_shard_written_back(struct dp_shard *shard, struct dp_shard_job *job);
/* Why rows cannot be written back now (failed for good, disk full, journal lost); NULL: they can. */
const struct dp_error *dp_shard_not_writing(const struct dp_shard *shard);
void dp_shard_write_back_clear(struct dp_shard *shard);

/* Recovery (recovery.c): the journal is opened, what it has beyond the store is replayed. While it is replayed
 * shard->journal is NULL and shard->recovery is not; shard->synced is the last lsn applied. */
enum dp_status dp_shard_open_journal(struct dp_shard *shard, struct dp_error *err);
void dp_shard_recovery_read(struct dp_shard *shard, struct dp_shard_job *job);
void dp_shard_counted(struct dp_shard *shard, struct dp_shard_job *job);
void dp_shard_stop_counting(struct dp_shard *shard); /* who stops does not wait for it */

/* DP_CORRUPT (damage.c): a row is written back only when the journal is synced past it, so one that is ahead of the last push
 * shows that the journal's end was lost. Taken all the same, it would not take new pushes, which get the lost ones' lsns. */
enum dp_status dp_shard_row_ahead(const struct dp_shard_table *table, uint64_t mixed, uint64_t row_lsn,
                                  uint64_t last, struct dp_error *err);
/* The store found damage (damage.c): counted, and told, once a second at most. */
void dp_shard_damaged(struct dp_shard *shard, const struct dp_error *err);

/* Journal (journaling.c): append a push (with its rows, or only its number when it is refused), learn what became
 * durable. */
/* DP_AGAIN: the journal has no room until rows are written back. DP_JOURNAL_BEHIND: its disk is: park it. */
enum dp_status dp_shard_journal_push(struct dp_shard *shard, const struct dp_request *push,
                                     struct dp_shard_table **tables, enum dp_status refused,
                                     struct dp_error *err);
/* Pushes wait for a disk that is behind in the order in which they came: only the first tries. */
/* The push may try now; else it is to be parked. */
bool dp_shard_journal_is_next(const struct dp_shard *shard, const struct dp_waiting *waiting);
/* It is to be parked until the disk has taken more; false: it has taken nothing for too long, refuse it. */
bool dp_shard_journal_waits(struct dp_shard *shard);
/* Those whose deadline has passed are done next, wherever they stand: they hear AGAIN, and why. */
void dp_shard_journal_end_late(struct dp_shard *shard);
void dp_shard_park_for_disk(struct dp_shard *shard, struct dp_session *session);
void dp_shard_unpark_for_disk(struct dp_shard *shard,
                              struct dp_session *session); /* it waits for the disk no more */
void dp_shard_hold_answer(struct dp_shard *shard, const struct dp_waiting *waiting, uint64_t staleness,
                          bool repeated);
/* True: the job is kept. */
void dp_shard_journal_count(struct dp_shard *shard); /* for status */
bool dp_shard_journal_put(struct dp_shard *shard, struct dp_shard_job *job);
/* A refusal that used up a number, too: after a crash it must still be used up. */
void dp_shard_hold_refusal(struct dp_shard *shard, const struct dp_waiting *waiting,
                           const struct dp_error *err);
/* The journal failed, or the disk has no room for its mark, before all that was pushed was durable: nothing can be held,
 * why in err (DP_AGAIN). */
bool dp_shard_journal_lost(const struct dp_shard *shard, struct dp_error *err);
void dp_shard_journal_turn(struct dp_shard *shard);   /* at the start of a turn */
void dp_shard_journal_commit(struct dp_shard *shard); /* at its end */
/* What write-back made ready waits for a sync, which in mode process nobody else asks for. */
void dp_shard_journal_sync_ready(struct dp_shard *shard);

/* Applying (apply.c): the row changes of a push, for push.c and for replay. */
enum dp_status dp_shard_make_rows(struct dp_shard *shard, const struct dp_section *section,
                                  struct dp_shard_table *table, uint32_t *rows, struct dp_error *err);
/* Rows whose lsn is not below `lsn` are left as they are. */
void dp_shard_apply(struct dp_shard *shard, const struct dp_section *section, struct dp_shard_table *table,
                    const uint32_t *rows, float rate, uint64_t lsn);

/* Positions (positions.c): an answer held until the journal is durable past what it tells. */
void dp_shard_positions(struct dp_shard *shard, const struct dp_waiting *waiting);
void dp_shard_positions_turn(struct dp_shard *shard);
void dp_shard_positions_clear(struct dp_shard *shard);

/* Snapshots (snapshots.c). */
void dp_shard_snapshot(struct dp_shard *shard, const struct dp_waiting *waiting);
void dp_shard_snapshot_turn(struct dp_shard *shard); /* behind write-back's */
void dp_shard_snapshot_taken(struct dp_shard *shard, struct dp_shard_job *job);
bool dp_shard_snapshot_wants_cycle(const struct dp_shard *shard);
enum dp_status dp_shard_load_reverted(struct dp_shard *shard, struct dp_error *err);
/* Nothing was pushed since it was: what the tables' marks count is not what is there. */
bool dp_shard_is_reverted(const struct dp_shard *shard);
/* Fails with DP_STOPPING: why a shard that drains takes no request. */
enum dp_status dp_shard_stopping(const struct dp_shard *shard, struct dp_error *err);

/* Admission (admission.c). DP_OK: pushes may name this stream. DP_AGAIN: soon. DP_INVALID: it was given to nobody. */
enum dp_status dp_shard_admit(const struct dp_shard *shard, uint64_t stream, struct dp_error *err);
/* Fails with DP_TOO_OLD; the answer's field says from where on streams are taken. */
enum dp_status dp_shard_too_old(const struct dp_shard *shard, uint64_t stream, struct dp_error *err);
uint64_t dp_shard_wall_s(const struct dp_shard *shard);
/* Tells the push ids what can have been given out by now (dp_push_ids_set_due). */
void dp_shard_set_due(struct dp_shard *shard);
/* Whether a client gets a stream above `floor`, which it says that a shard refuses. DP_AGAIN: soon. DP_INVALID: none refuses
 * that. */
enum dp_status dp_shard_check_above(const struct dp_shard *shard, uint64_t floor, struct dp_error *err);

/* Hello, status (turn.c). Takes the request over. */
void dp_shard_unsequenced(struct dp_shard *shard, struct dp_waiting *waiting);
void dp_shard_streams_reserved(struct dp_shard *shard, const struct dp_shard_job *job);

#endif

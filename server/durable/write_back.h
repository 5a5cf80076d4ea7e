/* Write-back: writes dirty rows to the store in the background, in cycles; a drain ends with one.
 *     begin (dirty rows become due) -> due rows, table by table, partition by partition, each portion sorted
 *     -> marks (push ids, tables, rows_lsn) -> release the journal up to rows_lsn              (always in
 *     this order)
 * Promise   No row and no mark goes to the store before the journal is synced past it. When a cycle is done,
 *           the store has every push up to the cycle's rows_lsn.
 * Floor     rows_lsn stays below the lsns of kept pushes (step_buffer.h), since replay needs them.
 *           Nevertheless all rows that had changed when the cycle began are written.
 * Holds     stored_lsn <= marked_lsn <= rows_lsn <= journaling->lsn; under_way <= 8.
 * Thread    The shard's. A turn copies one portion, so no request waits for a cycle.
 * Failure   A job that a full disk refused is kept and submitted again each second. Any other failure ends
 *           write-back. dp_write_back_refuses reports both. */
#ifndef DP_DURABLE_WRITE_BACK_H
#define DP_DURABLE_WRITE_BACK_H

#include "server/cache/cache_budget.h"
#include "server/cache/io_jobs.h"
#include "server/durable/journaling.h"
#include "server/ids/push_ids.h"
#include "server/steps/step_buffer.h"
#include "server/steps/steps.h"

enum dp_cycle { DP_CYCLE_IDLE, DP_CYCLE_ROWS, DP_CYCLE_MARKS };

/* Only write_back.c changes the fields; other files may read cycle, stored_lsn, marked_lsn, failed and
 * last_done. */
struct dp_write_back {
    struct dp_shard_base *base;
    struct dp_cached_tables *tables;
    struct dp_io_jobs *jobs;
    struct dp_cache_budget *budget;
    struct dp_journaling *journaling;
    struct dp_push_ids *ids;
    struct dp_steps *steps;
    struct dp_step_buffer *kept;
    enum dp_cycle cycle;
    bool quiet;                /* nothing can change any more: the next cycle is the last */
    uint64_t rows_lsn;         /* when the cycle is done, the store has every push up to it */
    uint64_t marked_lsn;       /* rows_lsn of the last cycle that is done */
    uint64_t stored_lsn;       /* rows_lsn of the last cycle that ended with marks */
    uint64_t began_lsn;        /* the last push when the cycle began */
    uint64_t written_lsn;      /* began_lsn of the last cycle that is done: the store has the rows of then */
    uint32_t table, partition; /* the table's id; the next partition */
    uint32_t under_way;        /* portions, or marks, at the store */
    bool wanted;               /* by a checkpoint */
    uint64_t merging;          /* files to be merged before the due cycle begins; 0: none */
    uint64_t merging_ns;       /* since when their number has not fallen */
    bool merging_told;         /* that was logged */
    struct dp_io_job *again;   /* jobs that a full disk refused, oldest first */
    struct dp_error full;      /* the disk's error; DP_OK: it is not full */
    uint64_t again_ns;         /* when to submit them again */
    bool is_last, last_done;   /* the cycle began when nothing could change any more; it is done */
    struct dp_io_job *ready;   /* waits until the journal is synced past its rows or marks */
    uint64_t ready_lsn;
    struct dp_error failed; /* a portion or marks failed: write-back has ended */
};

/* At the opening: the store has all pushes up to `lsn`. */
void dp_write_back_start(struct dp_write_back *write_back, uint64_t lsn);
/* For a read-only store, at the opening: no cycle ever begins, and dp_write_back_refuses says why. */
void dp_write_back_refuse_all(struct dp_write_back *write_back);
void dp_write_back_set_quiet(struct dp_write_back *write_back, bool quiet);

void dp_write_back_turn(struct dp_write_back *write_back);
/* whether the next turn has work without input */
bool dp_write_back_goes_on(const struct dp_write_back *write_back);
/* Asks for a cycle now, if marks can have a greater lsn than they do. */
void dp_write_back_wish(struct dp_write_back *write_back);
/* Whether the store has the rows and marks of all up to `lsn`, as far as marks can have it. */
bool dp_write_back_is_past(const struct dp_write_back *write_back, uint64_t lsn);
/* Whether the store has the rows of now, and the greatest marks that it can have. */
bool dp_write_back_has_all(const struct dp_write_back *write_back);
/* Why rows cannot be written back now (failed for good, disk full, journal lost); NULL: they can be. */
const struct dp_error *dp_write_back_refuses(const struct dp_write_back *write_back);
/* Whether rows are on their way to the store. */
bool dp_write_back_is_busy(const struct dp_write_back *write_back);
void dp_write_back_clear(struct dp_write_back *write_back);

#endif

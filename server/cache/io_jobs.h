/* A shard's jobs at its store: each returns to its submitter.
 *     new -> submit -> (the store) -> take: done(context, job), which takes it over -> free
 * Holds     under_way: submitted jobs that have not returned.
 * Thread    The shard's. Memory: a job is its submitter's until submit gave DP_OK, and from done() on. */
#ifndef DP_CACHE_IO_JOBS_H
#define DP_CACHE_IO_JOBS_H

#include "server/store/store.h"

struct dp_io_job {
    struct dp_store_job store;
    void (*done)(void *context, struct dp_io_job *job);
    void *context;
    uint32_t table;                    /* id: of rows or a mark that are written */
    uint32_t partition, partition_end; /* from which its rows are, the end exclusive */
    uint64_t session, request;         /* that waits; the answer is dropped when it ended */
    size_t bytes;                      /* of its memory, as a read is charged */
    uint32_t taken;                    /* rows that are in the cache by now, of a read that is done */
    struct dp_io_job *next;            /* in a list of its submitter */
    void *memory;                      /* one block that holds all the arrays */
};

/* memory: freed with the job, here if there is none. NULL: out of memory. */
struct dp_io_job *dp_io_job_new(void (*done)(void *context, struct dp_io_job *job), void *context,
                                void *memory);
void dp_io_job_free(struct dp_io_job *job); /* accepts NULL */

/* The arrays of a job that reads or writes rows, in one block. */
struct dp_io_rows {
    struct dp_io_job *job;
    struct dp_store_key *keys;
    void **rows;
    uint32_t *row_bytes;
    char *next; /* memory of the next row */
};
/* A row takes this much in addition to its own bytes. */
#define DP_IO_ROW_BYTES (sizeof(struct dp_store_key) + sizeof(void *) + sizeof(uint32_t) + sizeof(bool))

/* With room for `most` rows of `bytes` bytes together, and none yet. NULL: out of memory. */
struct dp_io_job *dp_io_rows_new(enum dp_store_job_kind kind, uint32_t most, size_t bytes,
                                 void (*done)(void *context, struct dp_io_job *job), void *context,
                                 struct dp_io_rows *out);
/* Adds a row; returns its memory. */
static inline char *dp_io_rows_add(struct dp_io_rows *to, struct dp_store_key key, uint32_t row_bytes)
{
    uint32_t at = to->job->store.count++;
    char *row = to->next;
    to->keys[at] = key;
    to->rows[at] = row;
    to->row_bytes[at] = row_bytes;
    to->next += row_bytes;
    return row;
}

struct dp_io_jobs {
    struct dp_store *store;
    uint32_t under_way;
};

/* DP_AGAIN: the store is busy, the job stays the caller's. */
enum dp_status dp_io_jobs_submit(struct dp_io_jobs *jobs, struct dp_io_job *job);
/* The same, but a job that the store does not take is freed. */
enum dp_status dp_io_jobs_submit_or_free(struct dp_io_jobs *jobs, struct dp_io_job *job);
/* One job with one mark, put under `key` (not copied). DP_NOMEM, or what submit gives. */
enum dp_status dp_io_jobs_put(struct dp_io_jobs *jobs, const char *key, const void *bytes, size_t size,
                              void (*done)(void *context, struct dp_io_job *job), void *context);
enum dp_status dp_io_jobs_put_number(struct dp_io_jobs *jobs, const char *key, uint64_t number,
                                     void (*done)(void *context, struct dp_io_job *job), void *context);
/* All that the store completed goes to its submitters. */
void dp_io_jobs_take(struct dp_io_jobs *jobs);
/* The same, when the store has completed one, or none is under way: at an opening only. */
void dp_io_jobs_wait(struct dp_io_jobs *jobs);
/* At the end: frees completed jobs without a call. Asserts that no job is at the store any more. */
void dp_io_jobs_clear(struct dp_io_jobs *jobs);

#endif

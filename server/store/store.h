/* Store: keeps one shard's rows and marks. It is asynchronous: the shard submits a job and gets it back
 * completed later.
 *     submit(read | write | marks)  ...  completed() -> the job, with its status
 * Seam      There are two implementations: one on RocksDB (rocks_store.h), and a fake for tests
 *           (tests/lib/fake_store.h) that completes jobs in the order a test asks for. The shard sees no
 *           thread: it submits, goes on, and asks for completed jobs at each turn.
 * Promise   A marks job is durable when completed with DP_OK, and so is every write completed before it. A
 *           write completed with DP_OK is in the store. A crash before the next completed marks job may
 *           undo the complete write. Writes become visible in the order of submission. Reads see every
 *           write that completed before they were submitted.
 * Memory    A job and all it points to belong to the store from submit to completed.
 * Thread    The shard's thread calls all functions, except where another rule is given.
 * Failure   The job's status and error have the cause: IO (disk), CORRUPT (checksum, width), FULL (no
 *           space). A write or marks job that is FULL changed nothing; submitted again, it succeeds once
 *           there is space. If a write or marks job fails in another way, all later ones fail too. */
#ifndef DP_STORE_STORE_H
#define DP_STORE_STORE_H

#include "common/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dp_store_key {
    uint32_t table;
    uint64_t mixed;
};

/* A mark: a small named value that must survive with the rows (tables, counters). */
struct dp_store_mark {
    const void *key, *value;
    size_t key_bytes, value_bytes;
};

/* Its value, a text, names the last checkpoint that has the store's rows (DIR/checkpoint-N). A store that is refused names it. */
#define DP_STORE_MARK_CHECKPOINT "checkpoint"

/* Prefix of the store's own marks: no job may put them (asserted), no visit shows them. */
#define DP_STORE_MARKS_OWN "store/"

static inline bool dp_store_mark_is_own(const struct dp_store_mark *mark)
{
    return mark->key_bytes >= sizeof DP_STORE_MARKS_OWN - 1 &&
           memcmp(mark->key, DP_STORE_MARKS_OWN, sizeof DP_STORE_MARKS_OWN - 1) == 0;
}

/* Of each mark, or row, that is visited; lent for the call, the row of any alignment. Another status than DP_OK ends the visit. */
typedef enum dp_status dp_store_visit_mark(void *context, const struct dp_store_mark *mark,
                                           struct dp_error *err);
typedef enum dp_status dp_store_visit_row(void *context, struct dp_store_key key, const void *row,
                                          size_t row_bytes, struct dp_error *err);

enum dp_store_job_kind {
    DP_STORE_READ,  /* keys ascending by (table, mixed) -> row[i] filled, found[i] */
    DP_STORE_WRITE, /* keys strictly ascending by (table, mixed), row[i] */
    DP_STORE_MARKS, /* put, atomically, durable when completed */
    /* keys[i].table ascending -> counts[i]: the rows of that table when the job was submitted */
    DP_STORE_COUNT,
    /* Makes `link_name`: a hard-linked copy of the store, of its own directory, as all writes and marks submitted before
     * have left it, with none submitted after it; durable when completed. No link outlives an opening. A failure leaves the
     * store unchanged and fails no later job. */
    DP_STORE_LINK,
    DP_STORE_UNLINK, /* removes it, as far as it is there; a failure is as that of a LINK */
};

/* With this each link's name begins; it has no '/'. */
#define DP_STORE_LINK_PREFIX "cut-"
#define DP_STORE_LINK_BYTES  64u

/* Whether jobs of this kind are done in the order of their submission. */
static inline bool dp_store_kind_is_ordered(enum dp_store_job_kind kind)
{
    return kind == DP_STORE_WRITE || kind == DP_STORE_MARKS || kind == DP_STORE_LINK ||
           kind == DP_STORE_UNLINK;
}

/* Whether a failure of such a job, other than FULL, fails all later ones. */
static inline bool dp_store_kind_poisons(enum dp_store_job_kind kind)
{
    return kind == DP_STORE_WRITE || kind == DP_STORE_MARKS;
}

struct dp_store_job {
    enum dp_store_job_kind kind;
    void *owner; /* for the submitter; the store leaves it alone */
    uint32_t count;
    const struct dp_store_key *keys; /* [count]: READ, WRITE, COUNT */
    void *const *rows;               /* [count]: READ: filled; WRITE: read */
    /* [count]: READ, WRITE; a stored row of another length is CORRUPT */
    const uint32_t *row_bytes;
    bool *found;                         /* [count]: READ */
    const struct dp_store_mark *marks;   /* [count]: MARKS */
    uint64_t *counts;                    /* [count]: COUNT; a row of a table not named is CORRUPT */
    char link_name[DP_STORE_LINK_BYTES]; /* LINK, UNLINK */
    /* COUNT: a count gives way to all reads and may take long. Once the submitter sets this, the job
     * completes soon, with STOPPING. */
    atomic_bool cancelled;

    enum dp_status status; /* set when completed */
    struct dp_error error;
    struct dp_store_job *next; /* for the store, until the job is completed */
};

/* Statistics of the store, at most a second old. */
struct dp_store_stats {
    uint64_t l0_files, compaction_debt_bytes; /* files and bytes not yet merged into the levels below */
    uint64_t file_bytes, block_cache_bytes, reader_bytes; /* reader: indexes and filters of open files */
    uint64_t rows_about;                                  /* an estimate of the row count; 0: unknown */
    uint64_t disk_free_bytes;                             /* free space on the store's disk */
};

struct dp_store {
    /* DP_AGAIN: too many jobs are under way; the caller keeps the job. */
    enum dp_status (*submit)(void *self, struct dp_store_job *job);
    struct dp_store_job *(*completed)(void *self); /* NULL: none */
    /* Blocks until completed() would return a job, or no job is under way, but for a second at most: the
     * caller checks and waits again. For use at opening only: a turn never waits. */
    void (*wait)(void *self);
    /* Visits the marks whose key starts with prefix, in key order. For use at opening only, while no job is
     * under way. */
    enum dp_status (*visit_marks)(void *self, const void *prefix, size_t prefix_bytes,
                                  dp_store_visit_mark *visit, void *context, struct dp_error *err);
    /* Visits all rows in key order. For use at opening only, while no job is under way. */
    enum dp_status (*visit_rows)(void *self, dp_store_visit_row *visit, void *context, struct dp_error *err);
    void (*stats)(void *self, struct dp_store_stats *out); /* any thread */
    /* DP_OK if the store could still take its writes with so many bytes less of free disk space, else
     * DP_FULL. Any thread. NULL: the store cannot tell. */
    enum dp_status (*room)(void *self, uint64_t bytes, struct dp_error *err);
    /* All jobs must have completed. */
    void (*close)(void *self);
    void *self;
};

/* Does one job and waits for it. No other may be under way. */
static inline enum dp_status dp_store_do(const struct dp_store *store, struct dp_store_job *job,
                                         struct dp_error *err)
{
    struct dp_store_job *done;
    DP_ASSERT(store->submit(store->self, job) == DP_OK);
    while (!(done = store->completed(store->self)))
        store->wait(store->self);
    DP_ASSERT(done == job);
    if (job->status != DP_OK)
        *err = job->error;
    return job->status;
}

#endif

/* Store: where one shard's rows and marks rest, asynchronous: a job goes in, and comes back completed
 * later.
 *     submit(read | write | marks)  ...  completed() -> the job, with its status
 * Seam: the RocksDB form (rocks_store.h), and the fake of the tests (tests/lib/fake_store.h), which
 * completes in the order that a test wants. The shard sees no thread: it submits, goes on, and asks for
 * what is completed at each turn.
 * Promise   A write that completed DP_OK is in the store in full or, after a crash before a later marks job
 *           with DP_OK, perhaps not: marks jobs are durable when completed, and so is every write completed
 *           before them. Writes become visible in the order of submission. Reads see every write completed
 *           before they were submitted.
 * Memory    A job and all it points to belong to the store from submit to completed.
 * Thread    All functions: the shard's.
 * Failure   In the job's status and error: IO (disk), CORRUPT (checksum, width), FULL (no space). A write or
 *           marks job that is FULL left nothing behind: submitted again, it succeeds when there is room. A
 *           store that failed one in another way fails all later ones. */
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

/* Marks whose key starts so are the store's own: no job may put them (asserted), no visit shows them. */
#define DP_STORE_MARKS_OWN "store/"

static inline bool dp_store_mark_is_own(const struct dp_store_mark *mark)
{
    return mark->key_bytes >= sizeof DP_STORE_MARKS_OWN - 1 &&
           memcmp(mark->key, DP_STORE_MARKS_OWN, sizeof DP_STORE_MARKS_OWN - 1) == 0;
}

/* The rows and marks of one moment: those after an epoch of a run. Both from 1. */
struct dp_store_snapshot {
    uint32_t run, epoch;
};

#define DP_STORE_SNAPSHOTS_MAX 4u

enum dp_store_job_kind {
    DP_STORE_READ,  /* keys ascending by (table, mixed) -> row[i] filled, found[i] */
    DP_STORE_WRITE, /* keys strictly ascending by (table, mixed), row[i] */
    DP_STORE_MARKS, /* put, atomically, durable when completed */
    DP_STORE_COUNT, /* keys[i].table ascending -> counts[i]: the rows of that table when it was submitted */
    /* What the writes and marks that completed before have made of the store is kept as `snapshot`, durable when completed;
     * one that is there stays as it is. All others but `keeps` are removed. snapshot.run 0: none is taken. A failure
     * leaves the store, and what snapshots there were, as they were, and fails no later job. */
    DP_STORE_SNAPSHOT,
};

struct dp_store_job {
    enum dp_store_job_kind kind;
    void *owner; /* the submitter's */
    uint32_t count;
    const struct dp_store_key *keys;          /* [count]: READ, WRITE, COUNT */
    void *const *rows;                        /* [count]: READ: filled; WRITE: read */
    const uint32_t *row_bytes;                /* [count]: a stored row of another length is CORRUPT */
    bool *found;                              /* [count]: READ */
    const struct dp_store_mark *marks;        /* [count]: MARKS */
    uint64_t *counts;                         /* [count]: COUNT; a row of a table not named is CORRUPT */
    struct dp_store_snapshot snapshot, keeps; /* SNAPSHOT; keeps.run 0: none */
    /* COUNT: it may take long, behind all reads; set by the submitter, it completes soon, with STOPPING. */
    atomic_bool cancelled;

    enum dp_status status; /* when completed */
    struct dp_error error;
    struct dp_store_job *next; /* the store's, while it has the job */
};

/* What the store knows of itself, a second old at most. */
struct dp_store_figures {
    uint64_t l0_files, compaction_debt_bytes; /* rows that wait to be merged into the levels below */
    uint64_t file_bytes, block_cache_bytes, reader_bytes; /* reader: indexes and filters of open files */
    uint64_t rows_about;                                  /* an estimate; 0: none */
    uint64_t disk_free_bytes;                             /* on the disk that it lies on */
};

struct dp_store {
    /* DP_AGAIN: too many jobs under way; the job stays the caller's. */
    enum dp_status (*submit)(void *self, struct dp_store_job *job);
    struct dp_store_job *(*completed)(void *self); /* NULL: none */
    /* Returns when completed() would give a job, or none is under way, or after a second at most: the caller
     * looks, and waits again. At opening only: a turn never waits. */
    void (*wait)(void *self);
    /* Visits the marks whose key starts with prefix, in key order, while nothing else goes on: at opening
     * only. */
    enum dp_status (*visit_marks)(void *self, const void *prefix, size_t prefix_bytes,
                                  enum dp_status (*visit)(void *context, const struct dp_store_mark *mark,
                                                          struct dp_error *err),
                                  void *context, struct dp_error *err);
    /* Visits all rows in key order, while nothing else goes on: at opening only. The row, at any alignment,
     * is lent for the call. What visit gives, unless DP_OK, ends it and is given. */
    enum dp_status (*visit_rows)(void *self,
                                 enum dp_status (*visit)(void *context, struct dp_store_key key,
                                                         const void *row, size_t row_bytes,
                                                         struct dp_error *err),
                                 void *context, struct dp_error *err);
    void (*figures)(void *self, struct dp_store_figures *out); /* any thread */
    /* Whether, with so many bytes less on its disk, it could still take what is written to it; else DP_FULL. Any thread.
     * NULL: it does not know. */
    enum dp_status (*room)(void *self, uint64_t bytes, struct dp_error *err);
    /* Whether the store has this snapshot. */
    bool (*holds)(void *self, struct dp_store_snapshot snapshot);
    /* All jobs must have completed. */
    void (*close)(void *self);
    void *self;
};

#endif

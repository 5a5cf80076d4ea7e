/* Copier: copies one shard's part of a checkpoint into the checkpoint's directory, while the shard's thread
 * runs.
 *     submit(job)  ...  completed() -> the job, with its status and the shard's part of the manifest
 * Seam      One copier is bound to one shard. The real one (copier_thread.h) has one thread for all shards of a
 *           server; tests/lib/fake_copier.h completes jobs when a test wants.
 * Job       Reads the link (the hard-linked copy of the shard's store, dp_copy_link_name, in the shard's
 *           directory) and the journal's records after + 1 .. until, while the shard runs. The shard must
 *           keep both: it does not release the journal past `after` before has_tail, or the job's end, and
 *           does not remove the link before the job's end. The tail is copied first.
 * Promise   DP_OK: every file of the part is in the directory, durable, and was read back with the checksum that
 *           the manifest names. Otherwise no manifest names the files that were written, and the next
 *           checkpoint removes them.
 * Memory    A job and all it points to belong to the copier from submit to completed. manifest is on the heap,
 *           the caller's.
 * Thread    The shard's thread calls all functions. done_bytes, all_bytes, has_tail: any thread.
 * Failure   The job's status and error: FULL (no room in the directory), IO, CORRUPT (a file reads back
 *           differently, or the journal lacks a record that it must have), STOPPING (cancelled), ARGUMENT (the
 *           directory is not there, or lies inside a store's directory), NOMEM. */
#ifndef DP_CHECKPOINT_COPIER_H
#define DP_CHECKPOINT_COPIER_H

#include "common/base/status.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DP_COPY_DIRECTORY_BYTES 1024u
#define DP_COPY_LINK_BYTES      40u

/* A push's id. */
struct dp_copy_push {
    uint64_t stream, number;
};

struct dp_copy_pushes {
    struct dp_copy_push *push; /* ascending by (stream, number) */
    uint32_t count;
};

struct dp_copy_job {
    void *owner; /* for the submitter; the copier leaves it alone */
    uint64_t order;
    uint32_t cut;                            /* counts the cuts of an order, from 1 */
    char directory[DP_COPY_DIRECTORY_BYTES]; /* the checkpoints' directory, DIR */
    uint32_t shard, shards;
    uint64_t store;               /* id of the shard's store */
    uint64_t lsn, after, until;   /* L, A, M: A <= L <= M, all durable */
    bool has_sync;                /* the run is synchronous: run and step count */
    uint32_t run;                 /* the run that the cut is of */
    uint64_t step;                /* t*: of the run, steps below it are in the checkpoint */
    struct dp_copy_push *missing; /* ascending by (stream, number), each once; heap, freed with the job */
    uint32_t missing_count;
    bool full;           /* writes every file, also those that an earlier checkpoint has */
    bool link;           /* links the store's files into the pool where the file system can */
    uint64_t rate_bytes; /* a second, read from the link and the journal; 0: no limit */

    atomic_bool cancelled;                  /* set by cancel */
    atomic_bool has_tail;                   /* set by the copier: it reads the journal no more */
    _Atomic uint64_t done_bytes, all_bytes; /* all: grows while the job finds out what there is */

    enum dp_status status; /* set when completed */
    struct dp_error error;
    char *manifest;           /* the shard's part: a JSON object (manifest.h) */
    struct dp_copy_job *next; /* for the copier, until the job is completed */
};

struct dp_copier {
    /* Always takes the job. */
    void (*submit)(void *self, struct dp_copy_job *job);
    struct dp_copy_job *(*completed)(void *self); /* NULL: none. Woken for (copier_thread.h) */
    /* The job completes soon, with STOPPING unless it had ended. */
    void (*cancel)(void *self, struct dp_copy_job *job);
    void *self;
};

/* The link's name in the shard's directory: what the shard's LINK job makes and the copier reads. */
static inline void dp_copy_link_name(uint64_t order, uint32_t cut, char name[DP_COPY_LINK_BYTES])
{
    (void)snprintf(name, DP_COPY_LINK_BYTES, "cut-%016" PRIx64 "-%" PRIu32, order, cut);
}

/* NULL: out of memory. free also frees missing and manifest; accepts NULL inside, leaves NULL. */
struct dp_copy_job *dp_copy_job_new(void);
void dp_copy_job_free(struct dp_copy_job **job);

#endif

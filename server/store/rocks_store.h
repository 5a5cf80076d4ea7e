/* Rocks store: implements store.h on RocksDB. Each shard has one directory with a database of rows and a
 * file of marks (marks_file.h). The key of a row is table u32 | mixed u64, both big endian; the value is
 * the row record. Rows are written only by ingesting sorted SST files. Only this room sees rocksdb/c.h.
 * Promise   See store.h. The marks record the cluster and range of a directory: opening it as another one is
 *           refused by name (DP_GENERATION, DP_EXISTS). They also record the generation and history of its
 *           rows, which each opening returns (options.id). A directory in use is refused
 *           (DP_IN_USE). A store that was not closed cleanly may lack pushes. It is opened only if it had a
 *           journal and has one again (options.journaled); *recovers then says that the journal must be
 *           replayed. Otherwise it is refused with what to do (DP_UNCLEAN). With options.read_only the same
 *           stores are refused, and the directory is not changed.
 * Thread    Inside, one thread writes (none with read_only) and a few read. Each calls wake(context) after
 *           completing a job, possibly at the same time as others, and never after close. Reads do not wait
 *           for writes and complete in any order; writes and marks complete in the order of submission. */
#ifndef DP_STORE_ROCKS_STORE_H
#define DP_STORE_ROCKS_STORE_H

#include "common/model/range.h"
#include "server/store/store.h"
#include "server/store/store_id.h"

#define DP_ROCKS_READERS_MAX 16u

struct dp_rocks_store_options {
    const char *directory; /* created if missing, with its parents */
    uint64_t cluster;
    /* Of a new store, unless the gate puts others; 0, 0: the first. An existing store has its own. */
    uint64_t generation, history;
    struct dp_range range;
    bool journaled; /* a journal next to the store keeps what is not written back yet */
    /* Nothing in the directory is written, created or renamed. Other readers may have it open, but no server
     * that writes. Writes, marks and mark_clean are not allowed. A store that was never opened is
     * DP_NOT_FOUND. */
    bool read_only;
    /* May be NULL; set if the open succeeds. true: the store was not closed cleanly, replay the journal.
     * false: it is new or clean, so no journal holds anything that it lacks. */
    bool *recovers;
    void (*wake)(void *context); /* NULL: jobs are waited for (store.h, wait) */
    void *wake_context;
    /* A full disk is a failure as any other (DP_IO), and no write is tried again. */
    bool full_fails;
    bool writes_first; /* somebody waits for what is written: the writing thread has no low priority */
    /* number of reader threads, at most DP_ROCKS_READERS_MAX (else DP_INVALID); 0: 2 threads */
    uint32_t readers;
    const struct dp_store_gate *gate; /* NULL: any store is admitted; one without an id gets a random one */
    struct dp_store_id *id;           /* may be NULL; set if the open succeeds */
};

enum dp_status dp_rocks_store_open(const struct dp_rocks_store_options *options, struct dp_store *out,
                                   struct dp_error *err);
/* Registers an open store with the gate of its options, and then records durably that it is open, and with a
 * journal or without. Call it before the first push is accepted, and after recovery: an opening that ends
 * before has changed nothing that a copy from before it lacks, and that copy is still admitted. Not with
 * read_only. Jobs may be under way. */
enum dp_status dp_rocks_store_begin(struct dp_store *store, const struct dp_rocks_store_options *options,
                                    struct dp_error *err);
/* Records durably that everything is written; only then is the next close a clean one. All jobs must have
 * completed. */
enum dp_status dp_rocks_store_mark_clean(struct dp_store *store, struct dp_error *err);
/* No job is under way. */
bool dp_rocks_store_is_idle(const struct dp_store *store);
/* full_fails: whether a full disk was the failure; *err: the cause, with DP_FULL. While no job is under way. */
bool dp_rocks_store_was_full(const struct dp_store *store, struct dp_error *err);

#endif

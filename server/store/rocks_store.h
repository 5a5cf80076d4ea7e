/* Rocks store: store.h on RocksDB. One database directory a shard, two column families: rows (key: table
 * u32 | mixed u64, both big endian; value: the row record) and marks. Rows get in as sorted SST files that
 * are ingested, and in no other way. The only room that sees rocksdb/c.h.
 * Promise   See store.h. Which cluster, generation and range a directory belongs to stands in its marks:
 *           opening it as another is refused (DP_GENERATION, DP_EXISTS), by name. A directory in use is
 *           refused (DP_IO). A directory that was not closed cleanly holds less than was pushed. It is opened
 *           only if a journal lay beside it and will again (options.journaled): *recovers then says that the
 *           journal must be replayed. Else it is refused (DP_UNCLEAN), with what to do.
 *           With options.read_only the same is refused, and what is opened is left as it was.
 * Thread    Inside, one thread writes (none with read_only) and a few read; wake(context) is called from each of them, at the same
 *           time too, when a job was completed, and not after close. Reads do not wait for writes, nor do
 *           they complete in any order; writes and marks complete in order of submission. */
#ifndef DP_STORE_ROCKS_STORE_H
#define DP_STORE_ROCKS_STORE_H

#include "common/model/range.h"
#include "server/store/store.h"

#define DP_ROCKS_READERS_MAX 16u

struct dp_rocks_store_options {
    const char *directory; /* made when absent, parents too */
    uint64_t cluster, generation;
    struct dp_range range;
    bool journaled; /* a journal beside the store keeps what is not written back yet */
    /* Nothing in the directory is written, made or renamed, and other readers may have it open; servers that write, not. No write
     * and no marks may be submitted, and there is no mark_clean. A store that was never opened is DP_NOT_FOUND. */
    bool read_only;
    bool *recovers; /* may be NULL; set when the open gives DP_OK. true: not closed cleanly, replay the
                     * journal; false: new or clean, so that no journal holds anything that is not here */
    void (*wake)(void *context);
    void *wake_context;
    uint32_t readers; /* threads that read; 0: 2; at most DP_ROCKS_READERS_MAX, else DP_INVALID */
};

DP_MUST_USE
enum dp_status dp_rocks_store_open(const struct dp_rocks_store_options *options, struct dp_store *out,
                                   struct dp_error *err);
/* A store that is closed, and was marked clean, gets the rows of one of its snapshots; its marks stay, and `mark` is put. DP_OK: it is
 * decided, and the next opening finds them so. DP_NOT_FOUND: it has no such snapshot. A failure changes nothing. */
DP_MUST_USE
enum dp_status dp_rocks_store_revert(const char *directory, struct dp_store_snapshot snapshot,
                                     const struct dp_store_mark *mark, struct dp_error *err);
/* Says durably that everything is written. Only after it is a close a clean one. All jobs must have
 * completed. */
DP_MUST_USE
enum dp_status dp_rocks_store_mark_clean(struct dp_store *store, struct dp_error *err);

#endif

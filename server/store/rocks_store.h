/* Rocks store: store.h on RocksDB. One database directory a shard, two column families: rows (key: table
 * u32 | mixed u64, both big endian; value: the row record) and marks. Rows get in as sorted SST files that
 * are ingested, and in no other way. The only room that sees rocksdb/c.h.
 * Promise   See store.h. Which cluster, generation and range a directory belongs to stands in its marks:
 *           opening it as another is refused (DP_GENERATION, DP_EXISTS), by name. A directory in use is
 *           refused (DP_IO). Until the journal comes, what was pushed since the last clean close lives in
 *           memory only: a directory that was not closed cleanly is refused (DP_UNCLEAN), with what to do.
 * Thread    One thread inside does the disk's work; wake(context) is called from it when a job was
 *           completed. */
#ifndef DP_STORE_ROCKS_STORE_H
#define DP_STORE_ROCKS_STORE_H

#include "common/model/range.h"
#include "server/store/store.h"

struct dp_rocks_store_options {
    const char *directory; /* made when absent, parents too */
    uint64_t cluster, generation;
    struct dp_range range;
    void (*wake)(void *context);
    void *wake_context;
};

DP_MUST_USE
enum dp_status dp_rocks_store_open(const struct dp_rocks_store_options *options, struct dp_store *out,
                                   struct dp_error *err);
/* Says durably that everything is written. Only after it is a close a clean one. All jobs must have
 * completed. */
DP_MUST_USE
enum dp_status dp_rocks_store_mark_clean(struct dp_store *store, struct dp_error *err);

#endif

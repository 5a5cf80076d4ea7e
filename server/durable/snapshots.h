/* Snapshots: keeps the rows of the end of an epoch beside the store, and reverts to them.
 *     take:    order -> a write-back cycle that no push overtook -> the store copies itself -> ended()
 *     revert:  order -> drain, as for a stop -> (the shard's thread: close the store, revert it, open it)
 * Orders    An order may be repeated, also to a new process: the store has the shard's snapshots and what it
 *           reverted to (the mark "reverted": run u32, epoch u32, lsn at that time u64).
 * Holds     A revert frees no push number: it restores the rows and keeps the current marks. Since the
 *           tables' marks then have wrong row counts, the store counts the rows again.
 * Thread    The shard's. */
#ifndef DP_DURABLE_SNAPSHOTS_H
#define DP_DURABLE_SNAPSHOTS_H

#include "server/durable/write_back.h"

#define DP_SNAPSHOT_MARK       "reverted"
#define DP_SNAPSHOT_MARK_BYTES 16u

enum dp_snapshot_stage {
    DP_SNAPSHOT_NONE,
    DP_SNAPSHOT_ROWS, /* rows are being written back */
    DP_SNAPSHOT_DUE,  /* the store has the rows: order the copy */
    DP_SNAPSHOT_COPY  /* the store is making the copy */
};

/* Only snapshots.c changes the fields; other files may read stage, taken, reverts and reverted. */
struct dp_snapshots {
    struct dp_shard_base *base;
    struct dp_io_jobs *jobs;
    struct dp_write_back *write_back;
    /* the order is done; err: DP_OK, or why it failed */
    void (*ended)(void *context, const struct dp_error *err);
    void *context;
    enum dp_snapshot_stage stage;
    struct dp_store_snapshot taken, keeps; /* of the order */
    struct dp_store_snapshot reverts;      /* run > 0: the shard drains in order to revert to it */
    struct dp_store_snapshot reverted;
    uint64_t reverted_lsn;
    uint64_t rows_max; /* most rows that were to be written back for the order, for the progress */
};

DP_MUST_USE
enum dp_status dp_snapshots_load(struct dp_snapshots *snapshots, struct dp_error *err);
/* Whether nothing was pushed since a revert: the row counts of the tables' marks are then wrong. */
bool dp_snapshots_is_reverted(const struct dp_snapshots *snapshots);
/* The progress of the order under way, for the reply to a client. */
struct dp_wait dp_snapshots_progress(struct dp_snapshots *snapshots);
bool dp_snapshots_holds(const struct dp_snapshots *snapshots, struct dp_store_snapshot named);
/* Orders a snapshot, and the removal of all others except `keeps`. named.run 0: takes none. DP_AGAIN: another
 * order is under way. */
DP_MUST_USE
enum dp_status dp_snapshots_take(struct dp_snapshots *snapshots, struct dp_store_snapshot named,
                                 struct dp_store_snapshot keeps, struct dp_error *err);
/* From now on the shard drains in order to revert. */
void dp_snapshots_revert(struct dp_snapshots *snapshots, struct dp_store_snapshot named);
/* Call it after write-back's turn. stopping: an order that is not at the store yet ends with this error;
 * NULL: it goes on. */
void dp_snapshots_turn(struct dp_snapshots *snapshots, const struct dp_error *stopping);
/* The mark points into value. */
struct dp_store_mark dp_snapshots_mark(const struct dp_snapshots *snapshots,
                                       char value[DP_SNAPSHOT_MARK_BYTES]);
/* Fails with DP_STOPPING and says why a draining shard takes no requests. */
enum dp_status dp_snapshots_stopping(const struct dp_snapshots *snapshots, struct dp_error *err);

#endif

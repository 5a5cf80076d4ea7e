/* Course of a checkpoint: the orders to the shards, one after the other, and the checkpoint's directory (server/checkpoint).
 *     lock, directory -> begin -> prepared -> register, cut, register -> union -> finish -> copied -> manifest -> end
 * Promise   Training goes on. Nothing counts before the manifest is in place; whatever fails before is abandoned: shards let go of
 *           what they hold, and the directory is removed. If this process is killed, shards let go by themselves after 60 s.
 * Thread    One.
 * Failure   Names the shard, the cause and what to do. DP_IN_USE: another checkpoint is being made there, or of this cluster.
 *           DP_STOPPING: `stopped` said so. DP_FULL: a disk is full, the directory's or a server's. */
#ifndef DP_CHECKPOINT_COURSE_H
#define DP_CHECKPOINT_COURSE_H

#include "common/client/downpour.h"
#include "common/config/cluster.h"

struct dp_course_progress {
    const char *what; /* "copying" */
    uint64_t done_bytes, all_bytes;
};

struct dp_course_options {
    struct dp_client *client; /* of all the cluster's shards */
    const struct dp_cluster *cluster;
    const char *file;      /* its file */
    const char *directory; /* DIR, absolute */
    bool full;
    /* 0, or: the cut is to be the end of this epoch, from 1, and nothing that was pushed later; files are links where the
     * file system can */
    uint32_t best_run, best_epoch;
    uint64_t rate;    /* bytes a second of a server; 0: no limit */
    uint32_t wait_ms; /* for pushes that a shard lacks */
    bool (*stopped)(void *context);
    void (*show)(void *context,
                 const struct dp_course_progress *progress); /* several times a second; may be NULL */
    void *context;
};

struct dp_course_result {
    uint32_t number;
    uint64_t bytes, bytes_new;
    uint32_t run, epoch; /* run 0: none */
    uint32_t partial;    /* pushes of clients that only some shards have */
    uint64_t took_ms;
    /* until rows were written back; the order of the cut to the last answer; until no shard lacked a push; until all was copied */
    uint64_t prepare_ms, cut_ms, wait_ms, copy_ms;
};

DP_MUST_USE
enum dp_status dp_course_run(const struct dp_course_options *options, struct dp_course_result *out,
                             struct dp_error *err);

#endif

/* Checkpoint: the orders of a checkpoint to a shard, and how far the shard is (proto/README.md,
 * "Checkpoints"). Numbers go on the wire.
 * Memory    An ask lends its missing pushes from its message. */
#ifndef DP_WIRE_CHECKPOINT_H
#define DP_WIRE_CHECKPOINT_H

#include "common/wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

#define DP_CHECKPOINT_DIRECTORY_MAX 1023u      /* bytes of the directory's name */
#define DP_CHECKPOINT_MISSING_MAX   (1u << 20) /* pushes that one shard lacks */
#define DP_CHECKPOINT_CUTS_MAX      1024u      /* of one order */
#define DP_CHECKPOINT_WAIT_MS_MAX   3600000u   /* begin: a larger value counts as that */

enum dp_checkpoint_action {
    DP_CHECKPOINT_BEGIN = 0,
    DP_CHECKPOINT_CUT = 1,
    DP_CHECKPOINT_FINISH = 2,
    DP_CHECKPOINT_LOOK = 3,
    DP_CHECKPOINT_END = 4,
    DP_CHECKPOINT_ABANDON = 5 /* 6 was used */
};

enum dp_checkpoint_stage {
    DP_CHECKPOINT_NONE = 0, /* no order is under way */
    DP_CHECKPOINT_PREPARING =
        1, /* changed rows are written back, so that little is left to copy from the journal */
    DP_CHECKPOINT_PREPARED = 2,
    DP_CHECKPOINT_CUTTING = 3, /* the link is made, and the cut becomes durable */
    DP_CHECKPOINT_IS_CUT = 4,
    DP_CHECKPOINT_WAITING = 5, /* for pushes that other shards have */
    DP_CHECKPOINT_COPYING = 6,
    DP_CHECKPOINT_COPIED = 7,
    DP_CHECKPOINT_ABANDONED = 8 /* the shard gave the order up: why */
};

struct dp_checkpoint_ask {
    enum dp_checkpoint_action action;
    uint64_t order;                                  /* not 0 */
    char directory[DP_CHECKPOINT_DIRECTORY_MAX + 1]; /* begin: absolute */
    uint32_t cut;    /* cut: which one, 1 .. DP_CHECKPOINT_CUTS_MAX; finish: of which */
    uint64_t step;   /* finish: of a synchronous run, steps below it are in */
    bool full;       /* begin: every file is copied again */
    bool link;       /* begin: files are hard links to those of the store where the file system can */
    uint64_t rate;   /* begin: bytes a second; 0: no limit */
    uint32_t number; /* end: of the checkpoint that was made; 0: none was */
    /* begin, to the first server: the run's cluster file, absolute, or empty; how long to wait for pushes that only some
     * shards have; afterwards all before the last `keep` are removed, 0: none; the epoch, from 1, whose end is to be the
     * cut, run 0: none */
    char file[DP_CHECKPOINT_DIRECTORY_MAX + 1];
    uint32_t wait_ms, keep, run, epoch;
    uint32_t missing; /* finish: up to DP_CHECKPOINT_MISSING_MAX */
    const void
        *pushes; /* finish: {stream u64, number u64}[missing], ascending, little endian, any alignment */
};

/* Frames behind it: dp_checkpoint_frames. */
struct dp_checkpoint_state {
    enum dp_checkpoint_stage stage;
    uint64_t order;      /* 0: none is known */
    uint32_t cut;        /* of what follows; 0: none yet */
    uint64_t lsn, after; /* of the cut: the journal's last record; up to where the link surely has all */
    uint32_t mode, run;  /* enum dp_consistency, and the run that it is of; 0: none */
    uint64_t open;       /* in sync: the open step at the cut */
    uint64_t done_bytes, all_bytes;
    uint32_t lacking; /* waiting: missing pushes that are not here yet, and the first of them */
    uint64_t lack_stream, lack_number;
    char why[DP_REASON_MAX + 1]; /* abandoned */
    uint32_t why_status;         /* number of an enum dp_status; 0: an earlier server, which says none */
};

/* A checkpoint that the first server made: the frame of COPIED, as u64s in this order. */
struct dp_checkpoint_made {
    uint64_t number, bytes, bytes_new;
    uint64_t run, epoch; /* where the training stood, epoch from 0; run 0: nowhere */
    uint64_t partial;    /* pushes of clients that only some shards have */
    uint64_t took_ms;
    /* until rows were written back; the order of the cut to the last answer; until no shard lacked a push; until all was copied */
    uint64_t prepare_ms, cut_ms, wait_ms, copy_ms;
    uint64_t pruned, pruned_bytes; /* earlier ones that were removed because a disk was full */
};

/* is_cut: push ids (server/ids/push_ids.h), steps (steps_mark.h; empty: no run); copied: the shard's part of the
 * manifest, JSON. */
static inline uint32_t dp_checkpoint_frames(enum dp_checkpoint_stage stage)
{
    return stage == DP_CHECKPOINT_IS_CUT ? 2 : stage == DP_CHECKPOINT_COPIED ? 1 : 0;
}

#endif

/* Tail: the part of a shard's checkpoint after its rows: the later records of the journal, as a journal of
 * their own.
 *     records after + 1 .. lsn    as they are, under their lsns; VOID in place of those that must not be in
 *                                 the checkpoint
 *     records lsn + 1 .. until    only what the checkpoint lacks, under the next lsns
 * Which     With has_sync, a push that is kept for a step of `run` from `step` on must not be in it (VOID).
 *           After lsn the checkpoint lacks the pushes in `missing` and, in a synchronous run, the kept
 *           pushes and closes of steps below `step`. Views after lsn are left out: the checkpoint's
 *           register does not have them, and its file `steps` has the members.
 * Why       Rows of the link may be ahead of `after`, and redo compares their lsns. So no record up to lsn
 *           may get another lsn. After lsn no row of the link is newer, so those records may have any
 *           ascending lsns. Segments are recycled in place: they are copied as records, never linked.
 * Promise   DP_OK: the directory holds a journal that replays exactly these records after `after`, durable,
 *           closed, read back; every push of `missing` is in it. Its incarnation is above all that the
 *           source has.
 * Thread    Any, while the shard writes the source. The shard must not release records above `after` before
 *           the end.
 * Failure   DP_CORRUPT: a record is missing, damaged, or cannot be in such a cut; a push of `missing` is not there. DP_FULL, DP_IO,
 *           DP_NOMEM, DP_STOPPING. The directory is then for its owner to remove. */
#ifndef DP_CHECKPOINT_TAIL_H
#define DP_CHECKPOINT_TAIL_H

#include "common/env/disk.h"
#include "server/checkpoint/copier.h"
#include "server/checkpoint/manifest_data.h"
#include "server/checkpoint/pace.h"

/* Over disks: the simulator has others. */
struct dp_tail_journal {
    struct dp_disk *from;          /* of the shard's journal; is only read */
    struct dp_disk *to;            /* empty */
    const struct dp_copy_job *job; /* lsn, after, until; has_sync, run, step; missing */
    uint64_t segment_bytes; /* the tail's largest segment; 0: 256 MiB. Every record must fit into one */
    uint64_t secret;        /* journal.h */
    struct dp_pace *pace;   /* may be NULL */
    /* Called for each of its files; NULL: it is not. */
    enum dp_status (*file)(void *context, const char *name, struct dp_error *err);
    void *context;
};

/* Fills *out, but for its files. */
enum dp_status dp_tail_write(const struct dp_tail_journal *options, struct dp_manifest_tail *out,
                             struct dp_error *err);

struct dp_tail_options {
    const char *from, *to;         /* the shard's journal; a directory that is made, empty */
    const struct dp_copy_job *job; /* as above */
    uint64_t segment_bytes;
    struct dp_pace *pace;
};

/* With its files. *out is {0} after a failure. */
enum dp_status dp_tail_copy(const struct dp_tail_options *options, struct dp_manifest_tail *out,
                            struct dp_error *err);

#endif

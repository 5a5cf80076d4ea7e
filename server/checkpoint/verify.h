/* Verify: whether a checkpoint is what its manifest says: every file there, of its size and checksum, and no other.
 * Promise   Nothing is changed. Each damaged, missing or surplus file is reported by its path. DP_OK means
 *           that there was none. With `checksums` every byte is read, and each tail is read as an opening
 *           of it would; without, sizes and names are looked at.
 * Thread    Any, one at a time.
 * Failure   DP_CORRUPT: something is damaged (err: the first, and how many). DP_UNSUPPORTED: a manifest of another format.
 *           DP_NOT_FOUND: there is no such checkpoint. Also what `progress` returned. */
#ifndef DP_CHECKPOINT_VERIFY_H
#define DP_CHECKPOINT_VERIFY_H

#include "server/checkpoint/pace.h"
#include "server/checkpoint/paths.h"

struct dp_verify_options {
    const char *directory; /* DIR */
    uint32_t number;
    bool checksums;
    struct dp_pace *pace;                                        /* progress and cancelling; may be NULL */
    void (*damaged)(void *context, const struct dp_error *what); /* may be NULL */
    void *context;
};

struct dp_verify {
    uint64_t files, bytes; /* looked at */
    uint64_t damages;
};

enum dp_status dp_checkpoint_verify(const struct dp_verify_options *options, struct dp_verify *out,
                                    struct dp_error *err);

#endif

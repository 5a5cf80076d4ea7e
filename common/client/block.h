/* Block: heap bytes that outstanding requests and messages on the wire share, counted.
 * Promise   Freed when the last holder lets go. Filled by its maker before it is shared, constant after.
 * Thread    keep, drop and the frames' release: any (ZeroMQ's I/O thread lets go of frames).          */
#ifndef DP_CLIENT_BLOCK_H
#define DP_CLIENT_BLOCK_H

#include "common/wire/message.h"

struct dp_block;

/* One holder: the caller. Not zero-filled; 64-byte aligned. NULL: out of memory. */
struct dp_block *dp_block_new(size_t size);
unsigned char *dp_block_bytes(struct dp_block *block);
struct dp_block *dp_block_keep(struct dp_block *block);
void dp_block_drop(struct dp_block **block); /* accepts NULL inside, leaves NULL */
/* A frame over a part of the block, a holder of its own. */
struct dp_frame dp_block_frame(struct dp_block *block, size_t offset, size_t size);

#endif

#include "common/client/block.h"

#include "common/base/status.h"

#include <stdatomic.h>
#include <stdlib.h>

#define BLOCK_HEAD 64u /* keeps the bytes on a cache line of their own, away from the count */

struct dp_block {
    atomic_uint holders;
    size_t size;
};

struct dp_block *dp_block_new(size_t size)
{
    if (size > SIZE_MAX - 2 * BLOCK_HEAD)
        return NULL;
    struct dp_block *block = aligned_alloc(BLOCK_HEAD, (size + 2 * BLOCK_HEAD - 1) / BLOCK_HEAD * BLOCK_HEAD);
    if (!block)
        return NULL;
    atomic_init(&block->holders, 1);
    block->size = size;
    return block;
}

unsigned char *dp_block_bytes(struct dp_block *block)
{
    return (unsigned char *)block + BLOCK_HEAD;
}

struct dp_block *dp_block_keep(struct dp_block *block)
{
    atomic_fetch_add_explicit(&block->holders, 1, memory_order_relaxed);
    return block;
}

void dp_block_drop(struct dp_block **block)
{
    struct dp_block *b = *block;
    *block = NULL;
    if (!b)
        return;
    /* Release and acquire: the last holder has seen the last use by every other one. */
    if (atomic_fetch_sub_explicit(&b->holders, 1, memory_order_acq_rel) == 1)
        free(b);
}

static void release_frame(void *data, void *owner)
{
    (void)data;
    struct dp_block *block = owner;
    dp_block_drop(&block);
}

struct dp_frame dp_block_frame(struct dp_block *block, size_t offset, size_t size)
{
    DP_ASSERT(offset <= block->size && size <= block->size - offset);
    return (struct dp_frame){.data = dp_block_bytes(block) + offset,
                             .size = size,
                             .release = release_frame,
                             .owner = dp_block_keep(block)};
}

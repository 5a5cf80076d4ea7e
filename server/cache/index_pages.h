/* Index pages: memory for the index of a row cache, in blocks of a power of two of bytes.
 * Why       Blocks of 32 KB and more lie on 2 MB pages, several on one, so that a search misses no more than
 *           the slot. On 4 KB pages each search walks the page tables too, twice on a virtual machine.
 * Thread    The shard's. Memory: a page is given back with its last block.
 * Failure   NULL; what was there stays. */
#ifndef DP_CACHE_INDEX_PAGES_H
#define DP_CACHE_INDEX_PAGES_H

#include <stddef.h>
#include <stdint.h>

struct dp_index_pages {
    struct dp_index_page {
        char *at;
        uint64_t taken; /* a bit for each 64th of it */
    } * page;
    size_t count, room;
};

void *dp_index_pages_take(struct dp_index_pages *pages, size_t bytes);
/* NULL: nothing. */
void dp_index_pages_give(struct dp_index_pages *pages, void *block, size_t bytes);
/* All blocks are given back. */
void dp_index_pages_clear(struct dp_index_pages *pages);

#endif

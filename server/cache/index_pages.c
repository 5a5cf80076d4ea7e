#include "server/cache/index_pages.h"

#include "common/base/memory.h"
#include "common/base/status.h"

#define PAGE  ((size_t)2 << 20)
#define PARTS 64u
#define PART  (PAGE / PARTS)

/* The bits of a block that begins at part 0. */
static uint64_t bits_of(size_t bytes)
{
    return UINT64_MAX >> (PARTS - bytes / PART);
}

/* Where a block may begin: a multiple of its size that is free. PARTS: nowhere. */
static uint32_t find_place(uint64_t taken, size_t bytes)
{
    for (uint32_t at = 0; at < PARTS; at += (uint32_t)(bytes / PART))
        if ((taken >> at & bits_of(bytes)) == 0)
            return at;
    return PARTS;
}

/* In the first page that has room, so that the others may empty. */
void *dp_index_pages_take(struct dp_index_pages *pages, size_t bytes)
{
    DP_ASSERT((bytes & (bytes - 1)) == 0);
    if (bytes < PART)
        return malloc(bytes);
    if (bytes >= PAGE)
        return dp_pages_alloc(bytes);
    for (size_t i = 0; i < pages->count; i++) {
        struct dp_index_page *page = &pages->page[i];
        uint32_t place = find_place(page->taken, bytes);
        if (place < PARTS) {
            page->taken |= bits_of(bytes) << place;
            return page->at + place * PART;
        }
    }
    char *at = dp_array_reserve(&pages->page, pages->count, &pages->room, sizeof pages->page[0])
                   ? dp_pages_alloc(PAGE)
                   : NULL;
    if (at)
        pages->page[pages->count++] = (struct dp_index_page){.at = at, .taken = bits_of(bytes)};
    return at;
}

void dp_index_pages_give(struct dp_index_pages *pages, void *block, size_t bytes)
{
    size_t i = 0;
    if (!block)
        return;
    if (bytes < PART) {
        free(block);
        return;
    }
    if (bytes >= PAGE) {
        dp_pages_free(block, bytes);
        return;
    }
    while (i < pages->count && (uintptr_t)block - (uintptr_t)pages->page[i].at >= PAGE)
        i++;
    DP_ASSERT(i < pages->count);
    struct dp_index_page *page = &pages->page[i];
    uint64_t bits = bits_of(bytes) << (size_t)((char *)block - page->at) / PART;
    DP_ASSERT((page->taken & bits) == bits);
    page->taken &= ~bits;
    if (page->taken == 0) {
        dp_pages_free(page->at, PAGE);
        *page = pages->page[--pages->count];
    }
}

void dp_index_pages_clear(struct dp_index_pages *pages)
{
    DP_ASSERT(pages->count == 0);
    free(pages->page);
    *pages = (struct dp_index_pages){0};
}

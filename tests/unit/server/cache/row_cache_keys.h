/* Row cache keys: keys of the kinds that a request may bring, and a whole cycle of dirty rows. */
#ifndef DP_TESTS_UNIT_SERVER_CACHE_ROW_CACHE_KEYS_H
#define DP_TESTS_UNIT_SERVER_CACHE_ROW_CACHE_KEYS_H

#include "tests/lib/test.h"

#include "server/cache/row_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 20000u
#define SALT 0x9d3c5b17aa01f6e5u

static const struct dp_range whole = {0, UINT64_MAX};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

/* The kinds of keys that a request may bring: those of honest clients are like the first. */
static uint64_t key_of(uint32_t kind, uint64_t i)
{
    switch (kind) {
    case 0:
        return (i + 1) * 0x9e3779b97f4a7c15u;
    case 1:
        return i; /* the low bits only */
    case 2:
        return i << 44; /* the high bits only */
    default:
        return i << 24;
    }
}

/* A whole cycle: what was dirty is given once, and is clean then. In pieces, to see that a piece ends where it should. */
static uint64_t take_all(struct dp_row_cache *cache, uint32_t most,
                         void (*visit)(void *context, uint64_t mixed, uint32_t row), void *context)
{
    uint64_t taken = 0;
    dp_row_cache_begin_cycle(cache);
    for (uint32_t p = 0; p < DP_ROW_PARTITIONS; p++)
        for (uint32_t n = most; n == most;) {
            n = dp_row_cache_take_due(cache, p, most, visit, context);
            assert_true(n <= most);
            taken += n;
        }
    return taken;
}

#endif

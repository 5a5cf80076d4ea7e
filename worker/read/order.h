/* Order: a permutation of 0 .. n-1 chosen by (seed, epoch), with random access to its elements.
 * Promise   For each (seed, epoch) dp_order_at is a bijection on [0, n), the same on every machine.
 * Thread    Constant after init.
 * Source    A balanced Feistel network over the least even number of bits that holds n. It is applied until
 *           the value is below n (cycle walking: Black and Rogaway, "Ciphers with Arbitrary Finite
 *           Domains", 2002). The domain is under 4n, so this takes fewer than 4 steps on average. It is a
 *           shuffle, not a cipher. */
#ifndef DP_READ_ORDER_H
#define DP_READ_ORDER_H

#include <stdint.h>

#define DP_ORDER_ROUNDS 8

struct dp_order {
    uint64_t n;
    uint32_t half_bits;
    uint64_t keys[DP_ORDER_ROUNDS];
};

/* 0 < n < 2^63. */
void dp_order_init(struct dp_order *order, uint64_t n, uint64_t seed, uint32_t epoch);
/* at < n. */
uint64_t dp_order_at(const struct dp_order *order, uint64_t at);
/* Replaces each at[i] < n by dp_order_at(order, at[i]). Computes several in parallel, since a single one
 * mostly waits. */
void dp_order_each(const struct dp_order *order, uint64_t *at, uint32_t count);

#endif

/* Order: a permutation of 0 .. n-1 chosen by (seed, epoch), any element of which is computed by itself.
 * Promise   For each (seed, epoch) dp_order_at is a bijection on [0, n); equal on every machine.
 * Thread    Constant after init.
 * Source    A balanced Feistel network over the least even number of bits that holds n, walked until the
 *           value falls inside (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002: cycle
 *           walking); the domain is under 4n, so the walk has fewer than 4 steps on average. It shuffles; it
 *           is no cipher. */
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
/* Each at[i] < n becomes dp_order_at(order, at[i]). Several are computed side by side, as one alone mostly waits. */
void dp_order_each(const struct dp_order *order, uint64_t *at, uint32_t count);

#endif

#include "worker/read/order.h"

#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/model/mix.h"

#define LANES 16

void dp_order_init(struct dp_order *order, uint64_t n, uint64_t seed, uint32_t epoch)
{
    DP_ASSERT(n > 0 && n < (uint64_t)1 << 63);
    order->n = n;
    order->half_bits = 1;
    while (order->half_bits < 32 && ((n - 1) >> (2 * order->half_bits)) != 0)
        order->half_bits++;
    /* Mixed twice, so that seed 1 in epoch 0 and seed 0 in epoch 1 have nothing in common. */
    uint64_t state = dp_mix(dp_mix(seed + DP_HASH_GOLDEN) + ((uint64_t)epoch + 1) * DP_HASH_GOLDEN);
    for (int i = 0; i < DP_ORDER_ROUNDS; i++)
        order->keys[i] = dp_mix(state += DP_HASH_GOLDEN);
}

static uint64_t network(const struct dp_order *order, uint64_t value)
{
    uint32_t bits = order->half_bits;
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t left = value >> bits, right = value & mask;
    for (int i = 0; i < DP_ORDER_ROUNDS; i++) {
        uint64_t next = left ^ (dp_mix(right + order->keys[i]) >> (64 - bits));
        left = right;
        right = next;
    }
    return left << bits | right;
}

uint64_t dp_order_at(const struct dp_order *order, uint64_t at)
{
    DP_ASSERT(at < order->n);
    /* The network is a bijection of the larger domain: from a value inside, its cycle comes back inside. */
    do
        at = network(order, at);
    while (at >= order->n);
    return at;
}

/* Computes all lanes round by round: a round waits for the one before, but lanes do not wait for each
 * other. */
static void networks(const struct dp_order *order, uint64_t value[LANES])
{
    uint32_t bits = order->half_bits;
    uint64_t mask = ((uint64_t)1 << bits) - 1, left[LANES], right[LANES];
    for (int l = 0; l < LANES; l++) {
        left[l] = value[l] >> bits;
        right[l] = value[l] & mask;
    }
    for (int i = 0; i < DP_ORDER_ROUNDS; i++)
        for (int l = 0; l < LANES; l++) {
            uint64_t next = left[l] ^ (dp_mix(right[l] + order->keys[i]) >> (64 - bits));
            left[l] = right[l];
            right[l] = next;
        }
    for (int l = 0; l < LANES; l++)
        value[l] = left[l] << bits | right[l];
}

void dp_order_each(const struct dp_order *order, uint64_t *at, uint32_t count)
{
    uint64_t value[LANES] = {0};
    uint32_t place[LANES] = {0}, next = 0, live = 0;
    while (next < count || live > 0) {
        for (; live < LANES && next < count; live++, next++) {
            DP_ASSERT(at[next] < order->n);
            value[live] = at[next];
            place[live] = next;
        }
        networks(order, value); /* the results of lanes that are not live are ignored */
        for (uint32_t l = 0; l < live;) {
            if (value[l] >= order->n) {
                l++; /* outside: walks on */
                continue;
            }
            at[place[l]] = value[l];
            live--;
            value[l] = value[live];
            place[l] = place[live];
        }
    }
}

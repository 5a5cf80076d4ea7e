/* Lease: which push numbers of an epoch a process is to train, as the first server hands them out
 * (proto/README.md, "Leases"). Numbers go on the wire. */
#ifndef DP_WIRE_LEASE_H
#define DP_WIRE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#define DP_LEASE_TOTAL_MAX (1u << 24) /* numbers of an epoch */
#define DP_LEASE_RANKS_MAX 4096u
#define DP_LEASE_WANT_MAX  64u   /* numbers in one answer */
#define DP_LEASE_HELD_MAX  2048u /* numbers that a process holds; as many are reported done at once */

enum dp_lease_state {
    DP_LEASE_GIVEN = 0, /* the answer has numbers */
    DP_LEASE_WAIT = 1,  /* all that is left is under way elsewhere, or here: ask again after wait_ms */
    DP_LEASE_OVER = 2,  /* every number of the epoch is done */
    DP_LEASE_TELL = 3   /* the first server does not know what is done: ask the shards, and tell it */
};

struct dp_lease_ask {
    uint64_t total; /* numbers of the epoch: 0 .. total - 1; at most DP_LEASE_TOTAL_MAX */
    uint32_t rank;  /* below DP_LEASE_RANKS_MAX: another process of the same rank takes this one's place */
    uint32_t want;  /* numbers that it takes at most, up to DP_LEASE_WANT_MAX; 0: it only reports */
    uint32_t held, done;
    bool tells; /* `bits` is given */
    const void
        *numbers; /* u64[held + done], little endian, any alignment: held, then done since the last answer */
    const void *bits; /* u64[(total + 63) / 64], likewise: bit n: every shard has number n */
};

#endif

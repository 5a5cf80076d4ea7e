#include "common/net/send_quota.h"

#include "common/base/hash.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024u
/* In `unsent`: the table knows the quota. Whoever takes the number to 0 frees it: so the number counts its
 * references, too. */
#define HELD (UINT64_C(1) << 63)

struct dp_send_quota {
    struct dp_send_quota *next; /* of its bucket */
    struct dp_send_quota *all;  /* what it has unsent is in there, too; NULL: it is that one */
    struct dp_peer peer;
    uint64_t used; /* turn of its last use */
    _Atomic uint64_t unsent;
};

struct dp_send_quotas {
    uint64_t turn;
    uint32_t count;
    struct dp_send_quota *all; /* of all peers together */
    struct dp_send_quota *bucket[BUCKETS];
};

static struct dp_send_quota *quota_new(struct dp_send_quota *all)
{
    struct dp_send_quota *quota = calloc(1, sizeof *quota);
    if (!quota)
        return NULL;
    quota->all = all;
    atomic_init(&quota->unsent, HELD);
    return quota;
}

static void release(struct dp_send_quota *quota, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub_explicit(&quota->unsent, bytes, memory_order_acq_rel);
    DP_ASSERT((before & ~HELD) >= (bytes & ~HELD));
    if (before == bytes)
        free(quota);
}

struct dp_send_quotas *dp_send_quotas_new(void)
{
    struct dp_send_quotas *quotas = calloc(1, sizeof *quotas);
    if (quotas)
        quotas->all = quota_new(NULL);
    if (quotas && !quotas->all) {
        free(quotas);
        return NULL;
    }
    return quotas;
}

void dp_send_quotas_free(struct dp_send_quotas **quotas)
{
    if (!*quotas)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        struct dp_send_quota *quota = (*quotas)->bucket[i];
        while (quota) {
            struct dp_send_quota *next = quota->next;
            release(quota, HELD);
            quota = next;
        }
    }
    release((*quotas)->all, HELD);
    free(*quotas);
    *quotas = NULL;
}

static struct dp_send_quota **bucket_of(struct dp_send_quotas *quotas, const struct dp_peer *peer)
{
    return &quotas->bucket[dp_hash_bytes(DP_HASH_BEGIN, peer->id, peer->size) % BUCKETS];
}

/* Takes the least recently used quota without unsent bytes out of its bucket. Each is looked at: this
 * happens once a connection at most, and only past DP_SEND_QUOTAS_MAX connections. */
static struct dp_send_quota *take_idle(struct dp_send_quotas *quotas)
{
    struct dp_send_quota **oldest = NULL;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct dp_send_quota **at = &quotas->bucket[i]; *at; at = &(*at)->next) {
            if ((!oldest || (*at)->used < (*oldest)->used) && dp_send_quota_unsent(*at) == 0)
                oldest = at;
        }
    }
    struct dp_send_quota *quota = oldest ? *oldest : NULL;
    if (oldest)
        *oldest = quota->next;
    return quota;
}

struct dp_send_quota *dp_send_quotas_find(struct dp_send_quotas *quotas, const struct dp_peer *peer)
{
    struct dp_send_quota **bucket = bucket_of(quotas, peer), *quota = *bucket;
    while (quota && (quota->peer.size != peer->size || memcmp(quota->peer.id, peer->id, peer->size) != 0))
        quota = quota->next;
    if (!quota) {
        if (quotas->count < DP_SEND_QUOTAS_MAX) {
            quota = quota_new(quotas->all);
            if (!quota)
                return NULL;
            quotas->count++;
        } else {
            quota = take_idle(quotas);
            if (!quota)
                return NULL;
        }
        quota->next = *bucket;
        *bucket = quota;
    }
    quota->peer = *peer;
    quota->used = ++quotas->turn;
    return quota;
}

uint64_t dp_send_quota_unsent(struct dp_send_quota *quota)
{
    return atomic_load_explicit(&quota->unsent, memory_order_relaxed) & ~HELD;
}

uint64_t dp_send_quotas_unsent(const struct dp_send_quotas *quotas)
{
    return dp_send_quota_unsent(quotas->all);
}

uint64_t dp_send_quotas_most(struct dp_send_quotas *quotas, struct dp_peer *out)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct dp_send_quota *at = quotas->bucket[i]; at; at = at->next)
            if (dp_send_quota_unsent(at) > most) {
                most = dp_send_quota_unsent(at);
                *out = at->peer;
            }
    return most;
}

void dp_send_quota_give(struct dp_send_quota *quota, uint64_t bytes)
{
    DP_ASSERT(bytes > 0);
    (void)atomic_fetch_add_explicit(&quota->unsent, bytes, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&quota->all->unsent, bytes, memory_order_relaxed);
}

void dp_send_quota_back(struct dp_send_quota *quota, uint64_t bytes)
{
    struct dp_send_quota *all = quota->all;
    release(quota, bytes);
    release(all, bytes); /* last: while it has these bytes it is there */
}

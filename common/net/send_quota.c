#include "common/net/send_quota.h"

#include "common/base/hash.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BUCKETS 1024u
/* In `unsent`: the table knows the quota. Whoever takes the number to 0 frees it: so the number counts its
 * references, too. */
#define HELD (UINT64_C(1) << 63)

/* All peers together. */
struct totals {
    int fd;              /* an eventfd */
    atomic_bool awaited; /* the next bytes that come back are to be signalled there */
    _Atomic uint64_t unsent;
    _Atomic uint64_t references; /* of the table, of each quota, of each call of back */
};

struct dp_send_quota {
    struct dp_send_quota *next; /* of its bucket */
    struct totals *totals;
    struct dp_peer peer;
    uint64_t used; /* turn of its last use */
    _Atomic uint64_t unsent;
};

struct dp_send_quotas {
    uint64_t turn;
    uint32_t count;
    struct totals *totals;
    struct dp_send_quota *bucket[BUCKETS];
};

static struct totals *totals_new(void)
{
    struct totals *totals = calloc(1, sizeof *totals);
    if (!totals)
        return NULL;
    atomic_init(&totals->references, 1);
    totals->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (totals->fd < 0) {
        free(totals);
        return NULL;
    }
    return totals;
}

static void totals_drop(struct totals *totals)
{
    if (atomic_fetch_sub(&totals->references, 1) > 1)
        return;
    (void)close(totals->fd);
    free(totals);
}

static struct dp_send_quota *quota_new(struct totals *totals)
{
    struct dp_send_quota *quota = calloc(1, sizeof *quota);
    if (!quota)
        return NULL;
    atomic_fetch_add(&totals->references, 1);
    quota->totals = totals;
    atomic_init(&quota->unsent, HELD);
    return quota;
}

static void release(struct dp_send_quota *quota, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub_explicit(&quota->unsent, bytes, memory_order_acq_rel);
    DP_ASSERT((before & ~HELD) >= (bytes & ~HELD));
    if (before != bytes)
        return;
    totals_drop(quota->totals);
    free(quota);
}

struct dp_send_quotas *dp_send_quotas_new(void)
{
    struct dp_send_quotas *quotas = calloc(1, sizeof *quotas);
    if (quotas)
        quotas->totals = totals_new();
    if (quotas && !quotas->totals) {
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
    totals_drop((*quotas)->totals);
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
            quota = quota_new(quotas->totals);
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
    return atomic_load_explicit(&quotas->totals->unsent, memory_order_relaxed);
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

int dp_send_quotas_fd(const struct dp_send_quotas *quotas)
{
    return quotas->totals->fd;
}

void dp_send_quotas_await(struct dp_send_quotas *quotas)
{
    atomic_store(&quotas->totals->awaited, true);
    /* With the one in `back`: either the look that follows sees the bytes that came back, or `back` sees this. */
    atomic_thread_fence(memory_order_seq_cst);
}

void dp_send_quota_give(struct dp_send_quota *quota, uint64_t bytes)
{
    DP_ASSERT(bytes > 0);
    (void)atomic_fetch_add_explicit(&quota->unsent, bytes, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&quota->totals->unsent, bytes, memory_order_relaxed);
}

void dp_send_quota_back(struct dp_send_quota *quota, uint64_t bytes)
{
    struct totals *totals = quota->totals;
    (void)atomic_fetch_add(&totals->references, 1); /* the quota's may go with its last bytes */
    release(quota, bytes);
    (void)atomic_fetch_sub(&totals->unsent, bytes);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&totals->awaited) && atomic_exchange(&totals->awaited, false))
        (void)!eventfd_write(totals->fd, 1); /* fails where it is full of signals already */
    totals_drop(totals);
}

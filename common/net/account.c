#include "common/net/account.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024u
/* In `unsent`: the table knows the account. Whoever takes the number to 0 frees it: so the number counts its
 * references, too. */
#define HELD (UINT64_C(1) << 63)

struct dp_account {
    struct dp_account *next; /* of its bucket */
    struct dp_account *all;  /* what it has unsent is in there, too; NULL: it is that one */
    struct dp_peer peer;
    uint64_t used; /* turn of its last use */
    _Atomic uint64_t unsent;
};

struct dp_accounts {
    uint64_t turn;
    uint32_t count;
    struct dp_account *all; /* of all peers together */
    struct dp_account *bucket[BUCKETS];
};

static struct dp_account *account_new(struct dp_account *all)
{
    struct dp_account *account = calloc(1, sizeof *account);
    if (!account)
        return NULL;
    account->all = all;
    atomic_init(&account->unsent, HELD);
    return account;
}

static void release(struct dp_account *account, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub_explicit(&account->unsent, bytes, memory_order_acq_rel);
    DP_ASSERT((before & ~HELD) >= (bytes & ~HELD));
    if (before == bytes)
        free(account);
}

struct dp_accounts *dp_accounts_new(void)
{
    struct dp_accounts *accounts = calloc(1, sizeof *accounts);
    if (accounts)
        accounts->all = account_new(NULL);
    if (accounts && !accounts->all) {
        free(accounts);
        return NULL;
    }
    return accounts;
}

void dp_accounts_free(struct dp_accounts **accounts)
{
    if (!*accounts)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        struct dp_account *account = (*accounts)->bucket[i];
        while (account) {
            struct dp_account *next = account->next;
            release(account, HELD);
            account = next;
        }
    }
    release((*accounts)->all, HELD);
    free(*accounts);
    *accounts = NULL;
}

/* ZeroMQ numbers its peers one after the other, so their last bytes spread by themselves. */
static struct dp_account **bucket_of(struct dp_accounts *accounts, const struct dp_peer *peer)
{
    uint32_t hash = 0;
    for (uint32_t i = 0; i < peer->size; i++)
        hash = hash << 8 ^ hash >> 24 ^ peer->id[i];
    return &accounts->bucket[hash % BUCKETS];
}

/* Takes the least recently used account without unsent bytes out of its bucket. Each is looked at: this
 * happens once a connection at most, and only past DP_ACCOUNTS_MAX connections. */
static struct dp_account *take_idle(struct dp_accounts *accounts)
{
    struct dp_account **oldest = NULL;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct dp_account **at = &accounts->bucket[i]; *at; at = &(*at)->next) {
            if ((!oldest || (*at)->used < (*oldest)->used) && dp_account_unsent(*at) == 0)
                oldest = at;
        }
    }
    struct dp_account *account = oldest ? *oldest : NULL;
    if (oldest)
        *oldest = account->next;
    return account;
}

struct dp_account *dp_accounts_find(struct dp_accounts *accounts, const struct dp_peer *peer)
{
    struct dp_account **bucket = bucket_of(accounts, peer), *account = *bucket;
    while (account &&
           (account->peer.size != peer->size || memcmp(account->peer.id, peer->id, peer->size) != 0))
        account = account->next;
    if (!account) {
        if (accounts->count < DP_ACCOUNTS_MAX) {
            account = account_new(accounts->all);
            if (!account)
                return NULL;
            accounts->count++;
        } else {
            account = take_idle(accounts);
            if (!account)
                return NULL;
        }
        account->next = *bucket;
        *bucket = account;
    }
    account->peer = *peer;
    account->used = ++accounts->turn;
    return account;
}

uint64_t dp_account_unsent(struct dp_account *account)
{
    return atomic_load_explicit(&account->unsent, memory_order_relaxed) & ~HELD;
}

uint64_t dp_accounts_unsent(const struct dp_accounts *accounts)
{
    return dp_account_unsent(accounts->all);
}

uint64_t dp_accounts_most(struct dp_accounts *accounts, struct dp_peer *out)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct dp_account *at = accounts->bucket[i]; at; at = at->next)
            if (dp_account_unsent(at) > most) {
                most = dp_account_unsent(at);
                *out = at->peer;
            }
    return most;
}

void dp_account_give(struct dp_account *account, uint64_t bytes)
{
    DP_ASSERT(bytes > 0);
    (void)atomic_fetch_add_explicit(&account->unsent, bytes, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&account->all->unsent, bytes, memory_order_relaxed);
}

void dp_account_back(struct dp_account *account, uint64_t bytes)
{
    struct dp_account *all = account->all;
    release(account, bytes);
    release(all, bytes); /* last: while it has these bytes it is there */
}

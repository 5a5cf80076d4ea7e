/* Link, from inside: shared by its two files. link: putting and sending; link_replies: incoming replies. */
#ifndef DP_CLIENT_LINK_INNER_H
#define DP_CLIENT_LINK_INNER_H

#include "common/client/link.h"

#define DP_LINK_MS_NS             UINT64_C(1000000)
#define DP_LINK_FIRST_PAUSE_SHARE 64u

static inline uint64_t dp_link_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t dp_link_sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t dp_link_first_pause(const struct dp_link *link)
{
    return dp_link_later(link->session->retry_ns / DP_LINK_FIRST_PAUSE_SHARE, DP_LINK_MS_NS);
}

/* Until the next answer. */
static inline void dp_link_forget_reason(struct dp_link *link)
{
    link->reason[0] = '\0';
    link->wait = (struct dp_wait){0};
}

/* The first that waits for its answer, sent or not. Requests that the shard holds are passed over: its number is used up, and its
 * answer comes when others have come as far, whatever follows it. */
static inline struct dp_shard_request *dp_link_oldest(const struct dp_link *link)
{
    struct dp_shard_request *p = link->first;
    while (p && p->held)
        p = p->next;
    return p;
}

#endif

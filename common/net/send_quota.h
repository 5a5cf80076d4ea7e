/* Send quota: counts the bytes given to ZeroMQ for one peer that it has not released yet. Private to the
 * room.
 *     find -> (unsent < limit?) -> give, once a frame -> back, when ZeroMQ releases the frame
 *     find -> no -> await -> still no? -> wait for the eventfd
 * Promise   At most DP_SEND_QUOTAS_MAX peers have a quota. Once all are taken, a new peer gets the least
 *           recently used one of a peer with nothing unsent.
 * Thread    The listener's; back: any (ZeroMQ's I/O threads). No lock: a quota is one atomic number.
 * Memory    A quota lives until its last frame is released, even after its table is freed. */
#ifndef DP_NET_SEND_QUOTA_H
#define DP_NET_SEND_QUOTA_H

#include "common/model/stream.h"
#include "common/wire/message.h"

#define DP_SEND_QUOTAS_MAX (2 * DP_WORKERS_MAX) /* of a run, and those that replace them */

struct dp_send_quotas;
struct dp_send_quota;

struct dp_send_quotas *dp_send_quotas_new(void);          /* NULL: out of memory */
void dp_send_quotas_free(struct dp_send_quotas **quotas); /* accepts NULL inside, leaves NULL */
/* Returns the peer's quota, a new one if it has none. NULL: out of memory, or all quotas have unsent
 * bytes. */
struct dp_send_quota *dp_send_quotas_find(struct dp_send_quotas *quotas, const struct dp_peer *peer);
uint64_t dp_send_quota_unsent(struct dp_send_quota *quota);
uint64_t dp_send_quotas_unsent(const struct dp_send_quotas *quotas); /* of all peers together */
/* Finds the peer with the most unsent bytes and returns their number; 0: no peer has any. */
uint64_t dp_send_quotas_most(struct dp_send_quotas *quotas, struct dp_peer *out);
/* An eventfd: readable once bytes have come back after dp_send_quotas_await. The caller reads it. */
int dp_send_quotas_fd(const struct dp_send_quotas *quotas);
/* Asks for one signal, when the next bytes come back. Look at the counts after this call, not before: bytes that came back
 * earlier are not signalled. */
void dp_send_quotas_await(struct dp_send_quotas *quotas);
void dp_send_quota_give(struct dp_send_quota *quota, uint64_t bytes); /* above 0 */
void dp_send_quota_back(struct dp_send_quota *quota, uint64_t bytes);

#endif

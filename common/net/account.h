/* Account: the bytes given to ZeroMQ for one peer that it has not released yet. Of this room only.
 *     find -> (unsent < limit?) -> give, one a frame -> back, when ZeroMQ lets go of the frame
 * Promise   At most DP_ACCOUNTS_MAX peers have one. The account of a peer with nothing unsent is given to a
 *           new one once all are taken: the least recently used first.
 * Thread    The listener's; back: any (ZeroMQ's I/O threads). No lock: one atomic number an account.
 * Memory    An account outlives its table until the last frame is back.                                   */
#ifndef DP_NET_ACCOUNT_H
#define DP_NET_ACCOUNT_H

#include "common/wire/message.h"

#define DP_ACCOUNTS_MAX 4096u

struct dp_accounts;
struct dp_account;

struct dp_accounts *dp_accounts_new(void);            /* NULL: out of memory */
void dp_accounts_free(struct dp_accounts **accounts); /* accepts NULL inside, leaves NULL */
/* The peer's account, opened if it has none. NULL: out of memory, or all are taken by peers that have unsent
 * bytes. */
struct dp_account *dp_accounts_find(struct dp_accounts *accounts, const struct dp_peer *peer);
uint64_t dp_account_unsent(struct dp_account *account);
uint64_t dp_accounts_unsent(const struct dp_accounts *accounts); /* of all peers together */
/* The peer with most unsent, and how much; none has any: 0. */
uint64_t dp_accounts_most(struct dp_accounts *accounts, struct dp_peer *out);
void dp_account_give(struct dp_account *account, uint64_t bytes); /* above 0 */
void dp_account_back(struct dp_account *account, uint64_t bytes);

#endif

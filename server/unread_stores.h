/* Unread stores: the message while the register's value "stores" cannot be read (older builds accepted any
 * bytes): the cause and the remedy.
 * Thread    put: the thread that opens the shard. says: any thread.
 * Memory    The caller's struct: init, clear. */
#ifndef DP_SERVER_UNREAD_STORES_H
#define DP_SERVER_UNREAD_STORES_H

#include "common/base/status.h"

#include <pthread.h>
#include <stdbool.h>

struct dp_unread_stores { /* of one shard that opens */
    uint32_t shard;
    pthread_mutex_t lock;
    struct dp_error why; /* under the lock; DP_OK: the value can be read */
};

void dp_unread_stores_init(struct dp_unread_stores *unread, uint32_t shard);
void dp_unread_stores_clear(struct dp_unread_stores *unread);
/* why: NULL where the value can be read. The first time it is logged. */
void dp_unread_stores_put(struct dp_unread_stores *unread, const struct dp_error *why);
/* Sets *err to DP_AGAIN with the cause and the remedy. False: the value can be read, and *err stays. */
bool dp_unread_stores_says(struct dp_unread_stores *unread, struct dp_error *err);
/* Of a server that serves, and goes on: logged, and again after 10 minutes. *said_ns: the caller's, 0 at first. */
void dp_unread_stores_warn(const struct dp_error *why, uint64_t now_ns, uint64_t *said_ns);

#endif

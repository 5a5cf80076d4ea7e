/* Register store: a server's request, over a client, that registers the store of one of its shards. For servers;
 * not part of the public API.
 * Thread    The client's.
 * Failure   As of dp_client_register_set. DP_INVALID: the value is malformed, or changes another shard's place. */
#ifndef DP_CLIENT_REGISTER_STORE_H
#define DP_CLIENT_REGISTER_STORE_H

#include "common/client/downpour.h"

/* name, bytes: the register's value of all stores (server/control/stores.h). shard: counted from 0. */
enum dp_status dp_client_register_store(struct dp_client *client, uint32_t shard, const char *name,
                                        uint64_t expected, const void *bytes, size_t size,
                                        uint32_t timeout_ms, bool *won, struct dp_register_value *now,
                                        struct dp_error *err);

#endif

/* Addresses: where a client's servers are, as the first server's register has it (common/wire/address.h).
 *     no address, or a connection that ended, or silence -> register_get, answered when there is a newer
 *     one -> the links of that server move there and send again
 * Why       A server may come back elsewhere with its store: another port, another machine.
 * Promise   One request for each server at a time, which waits at the first server. It never waits itself. An
 *           address that cannot be read is as good as none: it is asked for again.
 * Failure   A first server that is another cluster's refuses the links that no server has welcomed.
 * Thread    The client's. */
#ifndef DP_CLIENT_ADDRESSES_H
#define DP_CLIENT_ADDRESSES_H

#include "common/client/client_inner.h"

/* From now on, whenever replies were taken in. DP_NOMEM. */
enum dp_status dp_client_addresses_begin(struct dp_client *client, uint32_t servers, struct dp_error *err);

#endif

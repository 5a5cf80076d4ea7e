/* Discard: stores that were not closed cleanly and have no journal, removed at the user's request
 * (--discard).
 *     a store of this cluster, open without a journal -> renamed aside -> removed; what is there then is no store
 * Promise   No other store is touched. A store stays if it is clean, has a journal, is in use, belongs to
 *           another cluster or cannot be read. Its opening then names the reason. After a kill in between,
 *           the same call continues.
 * Thread    Any, before the shards open. */
#ifndef DP_SERVER_DISCARD_H
#define DP_SERVER_DISCARD_H

#include "server/layout.h"

/* directory: the server's. */
enum dp_status dp_discard(const char *directory, const struct dp_layout *layout, uint64_t cluster,
                          struct dp_error *err);

#endif

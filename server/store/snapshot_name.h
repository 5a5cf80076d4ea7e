/* Snapshot name: the name of a snapshot's directory, in the store's directory and in a link of it: snapshot-RUN-EPOCH.
 * Thread    Any: plain functions. */
#ifndef DP_STORE_SNAPSHOT_NAME_H
#define DP_STORE_SNAPSHOT_NAME_H

#include "server/store/store.h"

#define DP_SNAPSHOT_NAME_BYTES 64u

void dp_store_snapshot_name(struct dp_store_snapshot snapshot, char out[DP_SNAPSHOT_NAME_BYTES]);
/* false: it is no such name. Accepts exactly the form that the function above writes. */
bool dp_store_snapshot_name_parse(const char *name, struct dp_store_snapshot *out);

/* The same with another word than "snapshot". Private to the room. */
void dp_store_snapshot_name_with(const char *word, struct dp_store_snapshot snapshot,
                                 char out[DP_SNAPSHOT_NAME_BYTES]);
bool dp_store_snapshot_name_parse_with(const char *word, const char *name, struct dp_store_snapshot *out);

#endif

/* Copy run: what a copier does for one job (copier.h), on the thread that calls it.
 *     check the places -> tail -> the link's files into the pool -> tables of the link's marks -> the shard's part of the manifest
 * Places    The shard's directory has the link (dp_copy_link_name) and `journal`. DIR/making-<order> must be there: the command
 *           made it, so a server that does not see it has another directory of that name (it is not shared, or not mounted).
 * Thread    One at a time for a store. */
#ifndef DP_CHECKPOINT_COPY_RUN_H
#define DP_CHECKPOINT_COPY_RUN_H

#include "server/checkpoint/copier.h"
#include "server/checkpoint/manifest_data.h"

struct dp_copy_place {
    const char *directory; /* the shard's: its store, with the link and the journal in it */
    /* The tables that the link's marks tell of; NULL: read from the link's RocksDB. */
    enum dp_status (*tables)(void *context, const char *link, struct dp_manifest_tables *out,
                             struct dp_error *err);
    void *context;
};

/* Sets the job's status, error and manifest. */
void dp_copy_run(struct dp_copy_job *job, const struct dp_copy_place *place);

#endif

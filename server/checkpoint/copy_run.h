/* Copy run: one job of a copier (copier.h), on the thread that calls it.
 *     check the places -> tail -> the link's files into the pool -> tables of the link's marks -> the shard's part of the manifest
 * Places    The shard's directory has the link (dp_copy_link_name) and `journal`. DIR/making-<order> must be there: the command
 *           made it, so a server that does not see it has another directory of that name (it is not shared, or not mounted).
 * Parts     A job has two parts: the tail, for which the shard's journal is kept, and the files. Tails of
 *           the server's other shards can come first, and `between` the files. So no journal fills up while
 *           another shard's files are copied.
 * Thread    One at a time for a store.
 * Memory    begin makes a run, which end or drop frees. The job and the place are lent until then. */
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
    void (*between)(void *context); /* called often while end copies files; NULL: nothing */
    void *between_context;
};

struct dp_copy_run;

/* Up to the tail. NULL: it failed, and the job's status and error say why. */
struct dp_copy_run *dp_copy_run_begin(struct dp_copy_job *job, const struct dp_copy_place *place);
/* The rest; sets the job's status, error and manifest, and leaves NULL. */
void dp_copy_run_end(struct dp_copy_run **run);
/* Instead of end: the job was cancelled, and its status and error are set. */
void dp_copy_run_drop(struct dp_copy_run **run);

#endif

/* Beginning: what a server does that finds no store in its directory, and how the first server shows that a
 * cluster was begun.
 *     settle (before anything is opened): a store is there, a checkpoint is restored, a new cluster begins,
 *     or: refused
 *     prove (register open, nothing answered yet): register value "cluster", then the proof (proof.h)
 *     compare (the other servers, when they first see the register): their cluster file and directory are
 *     those of the first
 *     stores  checkpoint.to                         result
 *     some                                          resumed; missing ones are refused (identity.h)
 *     none    a checkpoint of this cluster          restored (restore/auto_restore.h); if it accepts that
 *                                                   stores are missing, a new one if others have theirs
 *     none    a proof, no checkpoint                refused; with is_new: a new cluster
 *     none    neither                               a new cluster
 *     none    missing, or not in the cluster file   refused; with is_new: a new cluster
 * Order     register made -> its mark -> proof -> pushes are answered. So a register without a proof is a
 *           cluster that was begun, and a proof without any store is a cluster that was lost.
 * Thread    settle: main's. prove: control's, while it starts. compare: any.
 * Failure   DP_GENERATION, DP_NOT_FOUND: refused, with the directory and the remedy. */
#ifndef DP_SERVER_BEGINNING_H
#define DP_SERVER_BEGINNING_H

#include "common/client/downpour.h"
#include "common/config/cluster.h"
#include "server/control/register.h"

struct dp_beginning {
    const struct dp_cluster *cluster;
    uint32_t server;
    bool is_new;  /* --new */
    bool accepts; /* --replace-store, --discard: stores may be missing */
};

enum dp_status dp_beginning_settle(const struct dp_beginning *b, struct dp_error *err);
enum dp_status dp_beginning_prove(const struct dp_beginning *b, struct dp_control_register *values,
                                  struct dp_error *err);
/* DP_AGAIN and the like: the first server did not answer. */
enum dp_status dp_beginning_compare(const struct dp_beginning *b, struct dp_client *client,
                                    struct dp_error *err);

#endif

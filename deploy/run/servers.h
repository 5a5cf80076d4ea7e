/* Servers: the server processes of a local cluster, from start to the first answer of each.
 * Failure   DP_STOPPING: a signal asked to stop, or a child ended (dp_local_failed says which). DP_TIMEOUT
 *           naming the server that did not answer. */
#ifndef DP_RUN_SERVERS_H
#define DP_RUN_SERVERS_H

#include "common/client/downpour.h"
#include "deploy/run/folder.h"
#include "deploy/supervise/local.h"

/* The command knows whether stores are to be there, and checks it. */
#define DP_SERVERS_NEW "--new"
/* conf: the cluster file they read. log: "server" makes log/server-0.log, ... flag: one more for each of
 * them; NULL: DP_SERVERS_NEW. */
enum dp_status dp_servers_start(struct dp_local *local, const struct dp_folder *folder,
                                const struct dp_cluster *cluster, const char *conf, const char *log,
                                const char *flag, struct dp_error *err);
/* A client to all of them once they answer: timeout_ms until every port is open, and 10 times that until all that is
 * replayed is replayed (told every 10 s). */
enum dp_status dp_servers_await(struct dp_local *local, const struct dp_cluster *cluster, uint32_t timeout_ms,
                                struct dp_client **out, struct dp_error *err);
/* A client to the servers of a cluster file, which may run anywhere. */
enum dp_status dp_servers_client(const struct dp_cluster *cluster, const char *name, uint32_t timeout_ms,
                                 struct dp_client **out, struct dp_error *err);

#endif

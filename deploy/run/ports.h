/* Ports: free TCP ports of this machine for the servers of a local cluster.
 * Promise   Each server gets a control port and the next ones for its shards, free a moment ago and apart
 *           from all others. Not reserved: another program may take one; the server then says so.
 * Why       They lie below 32768, where Linux starts to hand out ports to outgoing connections: one of
 *           those could take a port between here and the server's own bind. */
#ifndef DP_RUN_PORTS_H
#define DP_RUN_PORTS_H

#include "common/config/cluster.h"

/* Sets server[].port. first: 0 to search, else the control port of server 0, the others follow. DP_IO: a port
 * is in use, or none are free. */
enum dp_status dp_ports_choose(struct dp_cluster *cluster, uint32_t first, struct dp_error *err);

#endif

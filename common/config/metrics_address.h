/* Metrics address: where a server answers HTTP, as the cluster file has it: "127.0.0.1:9600", "[::1]:9600",
 * ":9600" or "9600" (loopback). Port 0: the kernel chooses one.
 * Thread    Any: plain functions. */
#ifndef DP_CONFIG_METRICS_ADDRESS_H
#define DP_CONFIG_METRICS_ADDRESS_H

#include "common/config/cluster.h"

struct dp_metrics_address {
    char host[DP_METRICS_TEXT_MAX + 1]; /* a numeric IPv4 or IPv6 address, without brackets */
    uint16_t port;
    uint16_t more; /* so many next ports may be taken where this one is in use */
};

/* `what` names the setting in messages. DP_ARGUMENT: it has none of these forms. */
enum dp_status dp_metrics_address_parse(const char *text, const char *what, struct dp_metrics_address *out,
                                        struct dp_error *err);
/* That of one server, of a cluster with `metrics`. Servers with the same host take the next ports, in the
 * order of the file. Hosts of servers that are only counted are not known: all have the same port, and
 * where others of their host have it, one of the next. DP_ARGUMENT: there is no such port. */
enum dp_status dp_metrics_address_of(const struct dp_cluster *cluster, uint32_t server,
                                     struct dp_metrics_address *out, struct dp_error *err);

#endif

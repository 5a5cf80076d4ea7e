/* Exporter: one thread of a server that answers HTTP.
 *     /metrics  Prometheus's text format: this server's shards; on the first server the workers' notes, too
 *     /healthz  200 while the control thread comes round, whatever the shards do
 *     /readyz   200 while all shards of this server serve
 *     /         a page for people
 * Promise   It touches no shard, and no shard or worker waits for it. See http.h for clients.
 * Thread    The server's main thread calls start and stop. One thread inside uses the source.
 * Memory    The source is borrowed until stop. */
#ifndef DP_METRICS_EXPORTER_H
#define DP_METRICS_EXPORTER_H

#include "common/config/metrics_address.h"
#include "server/metrics/source.h"

struct dp_exporter;

/* The address is bound when it returns. DP_IO: it cannot be, and why. */
enum dp_status dp_exporter_start(const struct dp_metrics_address *address,
                                 const struct dp_exporter_source *source, struct dp_exporter **out,
                                 struct dp_error *err);
void dp_exporter_stop(struct dp_exporter **metrics); /* accepts NULL inside */
/* "http://127.0.0.1:9600" */
const char *dp_exporter_url(const struct dp_exporter *metrics);

#endif

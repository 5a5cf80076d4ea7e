/* MultiGet: a pull's missed rows, read bare: what RocksDB alone allows.
 *     start -> loads -> stop
 * Promise   Over a server's own store, opened read-only beside it: each request is sorted, batched MultiGets of some of the
 *           real request's keys, with the server's settings, by as many threads as the server reads with, in the place
 *           where the server's are. The rows are looked at, not copied; nothing is cached, parked, evicted or answered.
 * Thread    One, and the reading ones inside.                                                              */
#ifndef DP_CLI_BENCH_MULTIGET_H
#define DP_CLI_BENCH_MULTIGET_H

#include "deploy/cli/bench_load.h"
#include "deploy/cli/bench_pin.h"
#include "deploy/cli/bench_rows.h"

struct dp_bench_multiget;

/* directory: a shard's. What the store holds at this moment is what is read. */
DP_MUST_USE
enum dp_status dp_bench_multiget_start(const char *directory, const char *table, const struct dp_pin *pin,
                                       struct dp_bench_multiget **out, struct dp_error *err);
void dp_bench_multiget_stop(struct dp_bench_multiget **multiget); /* accepts NULL inside */
/* A share (0 .. 1) of each request's keys, spread over them. Until the next call of this. */
struct dp_load dp_bench_multiget_load(struct dp_bench_multiget *multiget, const struct dp_bench_keys *keys,
                                      double share);

#endif

/* MultiGet: a pull's missed rows, read bare: what RocksDB alone allows.
 *     start -> loads -> stop
 * Promise   Over a server's own store, opened read-only beside it: each request is sorted, batched MultiGets of some of the
 *           real request's keys, with the server's settings, by as many threads as the server reads with, in the place
 *           where the server's are. The rows are looked at, not copied; nothing is cached, parked, evicted or answered.
 * Thread    One, and the reading ones inside.                                                              */
#ifndef DP_TESTS_BENCH_PROGRAM_MULTIGET_H
#define DP_TESTS_BENCH_PROGRAM_MULTIGET_H

#include "deploy/bench/bench_store.h"

extern const struct dp_bench_store dp_multiget;

#endif

/* Bench clients: several clients of a server, each in a thread, that keep pushes in flight until they are told to stop.
 *     start -> (rows, several times) -> stop
 * Promise   Between start and stop there is no pause: what is measured beside it runs under full load.
 * Thread    One each; start, rows and stop are called by one other.
 * Failure   A client that fails stops; stop returns the first failure. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_CLIENTS_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_CLIENTS_H

#include "deploy/bench/bench_rows.h"
#include "deploy/bench/bench_server.h"

#define DP_BENCH_CLIENTS_MAX 16u

struct dp_bench_clients;

/* keys: lent until stop. in_flight: of each client. */
enum dp_status dp_bench_clients_start(struct dp_bench_server *server, const struct dp_bench_keys *keys,
                                      uint32_t clients, uint32_t in_flight, struct dp_bench_clients **out,
                                      struct dp_error *err);
/* Rows of all pushes that were answered so far. */
uint64_t dp_bench_clients_rows(const struct dp_bench_clients *clients);
/* Waits for what is in flight, and frees it; accepts NULL inside, leaves NULL. */
enum dp_status dp_bench_clients_stop(struct dp_bench_clients **clients, struct dp_error *err);

#endif

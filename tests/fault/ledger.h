/* Ledger: what the clients of the recording push, so that rows say which pushes they have: push n of a client adds 1 to
 * its first row and to others drawn from (client, n), SGD at rate 1, exact in f32.
 * Promise   Rows of a client equal the sum of its pushes 0 .. m - 1, for an m that its first row tells; ids are a function of
 *           (client, n), so that any program can send a push again.
 * Thread    Any: nothing is kept. */
#ifndef DP_TESTS_FAULT_LEDGER_H
#define DP_TESTS_FAULT_LEDGER_H

#include "common/client/downpour.h"
#include "common/config/cluster.h"

#define DP_LEDGER_CLIENTS 2u
#define DP_LEDGER_ROWS    16000u /* of one client */
#define DP_LEDGER_KEYS    200u   /* of one push */
#define DP_LEDGER_DIM     16u
#define DP_LEDGER_WAIT_MS 30000u

/* A client of the cluster's first server and its one table. */
enum dp_status dp_ledger_open(const struct dp_cluster *cluster, uint32_t number, uint32_t wait_ms,
                              struct dp_client **client, struct dp_client_table **table,
                              struct dp_error *err);
/* Sends push n of that client. */
enum dp_status dp_ledger_push(struct dp_client *client, struct dp_client_table *table, uint32_t number,
                              uint64_t n, struct dp_ticket *out, struct dp_error *err);
/* Pulls all rows of a client and finds m; DP_CORRUPT: they are no sum of its first pushes, or m is not in [acked, sent]. */
enum dp_status dp_ledger_check(struct dp_client *client, struct dp_client_table *table, uint32_t number,
                               uint64_t acked, uint64_t sent, uint64_t *m, struct dp_error *err);

/* With a client of its own: checks the rows, sends the last pushes again under their ids, and checks that the rows then hold all that
 * was sent, each once. (What is known already must be in the rows. A push that the client had to send twice does not say so; if it was
 * counted twice, the rows do.) */
enum dp_status dp_ledger_settle(const struct dp_cluster *cluster, uint32_t number, uint64_t acked,
                                uint64_t sent, struct dp_error *err);

#endif

/* Chaos: servers, and clients of the ledger, killed, paused and cut off at random moments, and started again.
 *     open -> (storm -> settle -> compare the ledger)* -> close
 * What happens: kill -9 of one server, of all of them, of a client; of a server that has just been started (it replays,
 * or makes its tables); SIGTERM and kill -9 while it drains; SIGSTOP and, later, SIGCONT of either; where there is a
 * proxy, connections held up, cut, reset, half open, and replies lost. Who was killed starts again soon; a server with
 * any of the cluster files given.
 * Promise   All is drawn from the seed, which is printed (DP_TEST_SEED gives it again): what, to whom and when. What
 *           the processes do meanwhile is theirs.
 * Thread    The test's own: the checks here are CMocka's.
 * Failure   A process that ends by itself fails the test with what it said.                               */
#ifndef DP_TESTS_SYSTEM_CHAOS_H
#define DP_TESTS_SYSTEM_CHAOS_H

#include "tests/lib/proxy.h"
#include "tests/system/ledger.h"
#include "tests/system/place.h"

#define DP_CHAOS_SERVERS_MAX 4u
#define DP_CHAOS_CLIENTS_MAX 8u

struct dp_chaos_options {
    const char *const
        *conf; /* cluster files that differ in what a restart may change; a NULL at the end; lent: read
                                at each start */
    uint32_t servers, shards /* of each */, clients, port;
    bool same;         /* a client that comes back goes on with its stream and numbers */
    bool proxied;      /* clients connect through a proxy */
    uint32_t every_ms; /* between two events, on average */
};
struct dp_chaos_sums {
    uint64_t kills, servers, both, starting, draining, clients, pauses, spoiled;
};

struct dp_chaos;
#define DP_CHAOS_CLUSTER 77u /* id of the cluster, for `top` of cluster files */
struct dp_chaos *dp_chaos_open(struct dp_place *place, const struct dp_chaos_options *options);
/* Until so many more kills. */
void dp_chaos_storm(struct dp_chaos *chaos, uint32_t kills);
/* All servers are ready; clients have ended, each push answered. */
void dp_chaos_settle(struct dp_chaos *chaos);
/* Settles, and wants each row to be what the ledger says; after a clean restart of all servers again. */
void dp_chaos_compare(struct dp_chaos *chaos, struct dp_ledger_sums *sums);
const struct dp_chaos_sums *dp_chaos_sums(const struct dp_chaos *chaos);
void dp_chaos_close(struct dp_chaos **chaos);

/* Of tests that choose their events themselves. The proxy; a look at all:
 * whoever is due is started, what the proxy has is moved; kill -9, and a new start soon; until clients recorded so many
 * pushes more. */
struct dp_proxy *dp_chaos_proxy(struct dp_chaos *chaos);
void dp_chaos_tick(struct dp_chaos *chaos);
void dp_chaos_kill(struct dp_chaos *chaos, uint32_t server);
void dp_chaos_go_on(struct dp_chaos *chaos, uint32_t pushes);

#endif

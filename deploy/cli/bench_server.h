/* Bench server: one real server of one shard, its table filled, and clients to it.
 *     open -> fill -> (clients' requests) -> close
 * Promise   A directory, a cluster file and ports of its own. close kills the server (its rows are of no use
 *           to anybody) and removes the directory.
 * Failure   DP_STOPPING: a signal, or the server ended (dp_local_failed tells).                           */
#ifndef DP_CLI_BENCH_SERVER_H
#define DP_CLI_BENCH_SERVER_H

#include "deploy/cli/bench_pin.h"
#include "deploy/cli/servers.h"

struct dp_bench_server {
    struct dp_local *local; /* lent */
    struct dp_folder folder;
    struct dp_cluster *cluster;
    struct dp_client *client[2]; /* values as f32, as bf16 */
    struct dp_client_table *table[2];
    uint64_t resident; /* bytes of the server before it had rows */
    long pid;
    uint32_t dim;
};

/* Started and pinned; this thread is where clients are afterwards. other: a child that is not the server. */
DP_MUST_USE
enum dp_status dp_bench_server_open(struct dp_bench_server *server, struct dp_local *local, long other,
                                    uint32_t dim, uint64_t cache_bytes, const struct dp_pin *pin,
                                    struct dp_error *err);
void dp_bench_server_close(struct dp_bench_server *server);
/* One push of each key 0 .. rows-1. */
DP_MUST_USE
enum dp_status dp_bench_server_fill(struct dp_bench_server *server, uint64_t rows, struct dp_error *err);
/* Bytes of memory that it holds now; 0: not known. */
uint64_t dp_bench_server_resident(const struct dp_bench_server *server);
DP_MUST_USE
enum dp_status dp_bench_server_look(const struct dp_bench_server *server, struct dp_error *err);

/* Memory that this machine could give, in bytes; 0: not known. */
uint64_t dp_bench_memory(void);

#endif

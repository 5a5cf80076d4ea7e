/* Bench server: one real server, its table filled, and clients to it.
 *     open -> fill -> (clients' requests, revive) -> close
 * Promise   A directory, a cluster file and ports of its own: several may be open at once. close kills them (their rows
 *           are of no use to anybody) and removes the directory.
 * Failure   DP_STOPPING: a signal, or the server ended (dp_local_failed tells).                           */
#ifndef DP_CLI_BENCH_SERVER_H
#define DP_CLI_BENCH_SERVER_H

#include "common/wire/reply.h"
#include "deploy/cli/bench_pin.h"
#include "deploy/cli/servers.h"

#define DP_BENCH_TABLE      "bench"
#define DP_BENCH_SHARDS_MAX 8u

struct dp_bench_server_options {
    uint32_t dim, shards;
    enum dp_cluster_durability durability;
    bool ipc;
    uint64_t cache_bytes, journal_bytes;
};

struct dp_bench_server {
    struct dp_bench_server_options options;
    struct dp_local *local; /* lent */
    struct dp_folder folder;
    struct dp_cluster *cluster;
    struct dp_client *client[2]; /* values as f32, as bf16 */
    struct dp_client_table *table[2];
    uint64_t resident;         /* bytes of the server before it had rows */
    double written_back_per_s; /* rows, of the last settling; 0: none were written then */
    long pid, child;           /* child: of this process, and not the server */
    struct dp_pin pin;
};

/* Started and pinned; this thread is where clients are afterwards. other: a child that is not the server. */
DP_MUST_USE
enum dp_status dp_bench_server_open(struct dp_bench_server *server, struct dp_local *local, long other,
                                    const struct dp_bench_server_options *options, const struct dp_pin *pin,
                                    struct dp_error *err);
/* kill -9, and the same again over the same store. *ns: from the start of the process until it answers the hello of a
 * client and knows the table. */
DP_MUST_USE
enum dp_status dp_bench_server_revive(struct dp_bench_server *server, uint64_t *ns, struct dp_error *err);
/* Sums over its shards. */
DP_MUST_USE
enum dp_status dp_bench_server_counters(struct dp_bench_server *server, struct dp_status_report **out,
                                        struct dp_error *err);
/* A counter by its name; 0: there is none of that name. */
uint64_t dp_bench_counter(const struct dp_status_report *report, const char *name);
/* Until nothing is left to be written back and RocksDB merges nothing, but 180 s at most. */
DP_MUST_USE
enum dp_status dp_bench_server_settle(struct dp_bench_server *server, struct dp_error *err);
/* Kills all servers of `local`. */
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

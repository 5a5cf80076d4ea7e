/* Bench server: a real server with a filled table, and clients of it.
 *     open -> fill -> (clients' requests, revive) -> close
 * Promise   It has a directory, a cluster file and ports of its own: several may be open at once. close kills
 *           them (their rows are not needed) and removes the directory.
 * Failure   DP_STOPPING: a signal came, or the server ended (dp_local_failed says which). */
#ifndef DP_BENCH_BENCH_SERVER_H
#define DP_BENCH_BENCH_SERVER_H

#include "common/wire/reply.h"
#include "deploy/bench/bench_pin.h"
#include "deploy/run/servers.h"

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
    double written_back_per_s; /* rows, during the last settle; 0: none were written */
    long pid, child;           /* child: a child of this process that is not the server */
    struct dp_pin pin;
};

/* Starts and pins the server, and moves this thread to the clients' processor. other: a child that is not the
 * server. */
enum dp_status dp_bench_server_open(struct dp_bench_server *server, struct dp_local *local, long other,
                                    const struct dp_bench_server_options *options, const struct dp_pin *pin,
                                    struct dp_error *err);
/* Its table, for further clients. */
struct dp_table_spec dp_bench_server_table(const struct dp_bench_server *server);
/* kill -9, and a restart on the same store. *ns: from the start of the process until it answers a client's
 * hello and knows the table. */
enum dp_status dp_bench_server_revive(struct dp_bench_server *server, uint64_t *ns, struct dp_error *err);
/* Sums over its shards; of counters of a maximum (..._max) the greatest. */
enum dp_status dp_bench_server_counters(struct dp_bench_server *server, struct dp_status_report **out,
                                        struct dp_error *err);
/* The value of a counter, or 0 if there is none with this name. */
uint64_t dp_bench_counter(const struct dp_status_report *report, const char *name);
/* Waits until write-back and RocksDB's compaction are done, for at most 180 s. */
enum dp_status dp_bench_server_settle(struct dp_bench_server *server, struct dp_error *err);
/* Kills all servers of `local`. */
void dp_bench_server_close(struct dp_bench_server *server);
/* Pushes each key 0 .. rows-1 once. */
enum dp_status dp_bench_server_fill(struct dp_bench_server *server, uint64_t rows, struct dp_error *err);
/* Its resident memory in bytes; 0: not known. */
uint64_t dp_bench_server_resident(const struct dp_bench_server *server);
enum dp_status dp_bench_server_look(const struct dp_bench_server *server, struct dp_error *err);

/* The available memory of this machine in bytes; 0: not known. */
uint64_t dp_bench_memory(void);

#endif

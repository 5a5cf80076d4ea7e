/* Bench CPU: processor time by thread, of this process and of a server, between two samples.
 * Why       On a shared machine throughput varies; the processor time for a row varies far less, and shows
 *           which thread is the bottleneck.
 * Memory    None besides the struct. All times are 0 if /proc does not have them. */
#ifndef DP_BENCH_BENCH_CPU_H
#define DP_BENCH_BENCH_CPU_H

#include <stdint.h>

enum dp_bench_cpu_part {
    DP_BENCH_CPU_SHARD,   /* the server's serving threads */
    DP_BENCH_CPU_SOCKETS, /* its ZeroMQ threads */
    DP_BENCH_CPU_JOURNAL,
    DP_BENCH_CPU_STORE, /* readers, writer, compaction */
    DP_BENCH_CPU_OTHER,
    DP_BENCH_CPU_CLIENT,         /* this process without its ZeroMQ threads */
    DP_BENCH_CPU_CLIENT_SOCKETS, /* the ZeroMQ threads of this process */
    DP_BENCH_CPU_PARTS
};

struct dp_bench_cpu {
    uint64_t ns[DP_BENCH_CPU_PARTS];
};

extern const char *const dp_bench_cpu_names[DP_BENCH_CPU_PARTS];

void dp_bench_cpu_look(long server, struct dp_bench_cpu *out);
/* Adds the time between two samples. */
void dp_bench_cpu_add(struct dp_bench_cpu *sum, const struct dp_bench_cpu *before,
                      const struct dp_bench_cpu *after);

#endif

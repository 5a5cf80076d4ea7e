/* Bench CPU: processor time by thread, of this process and of a server, between two looks.
 * Why       Throughput on a shared machine drifts; the time that a thread worked for a row drifts far less, and
 *           says which thread is the one that the others wait for.
 * Memory    None beside the struct. Where /proc does not tell, all is 0.                                  */
#ifndef DP_CLI_BENCH_CPU_H
#define DP_CLI_BENCH_CPU_H

#include <stdint.h>

enum dp_cpu_part {
    DP_CPU_SHARD,   /* the server's serving threads */
    DP_CPU_SOCKETS, /* its ZeroMQ threads */
    DP_CPU_JOURNAL,
    DP_CPU_STORE, /* readers, writer, compaction */
    DP_CPU_OTHER,
    DP_CPU_CLIENT,         /* this process but for */
    DP_CPU_CLIENT_SOCKETS, /* its ZeroMQ threads */
    DP_CPU_PARTS
};

struct dp_cpu {
    uint64_t ns[DP_CPU_PARTS];
};

extern const char *const dp_cpu_names[DP_CPU_PARTS];

void dp_cpu_look(long server, struct dp_cpu *out);
/* Adds what passed between two looks. */
void dp_cpu_add(struct dp_cpu *sum, const struct dp_cpu *before, const struct dp_cpu *after);

#endif

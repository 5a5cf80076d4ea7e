#include "deploy/bench/bench_cpu.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const dp_bench_cpu_names[DP_BENCH_CPU_PARTS] = {"shard", "sockets", "journal",       "store",
                                                            "other", "client",  "client_sockets"};

static enum dp_bench_cpu_part part_of(const char *name)
{
    static const struct {
        const char *begins;
        enum dp_bench_cpu_part part;
    } parts[] = {{"shard", DP_BENCH_CPU_SHARD},
                 {"ZMQ", DP_BENCH_CPU_SOCKETS},
                 {"journal", DP_BENCH_CPU_JOURNAL},
                 {"store", DP_BENCH_CPU_STORE},
                 {"rocksdb", DP_BENCH_CPU_STORE}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strncmp(name, parts[i].begins, strlen(parts[i].begins)) == 0)
            return parts[i].part;
    return DP_BENCH_CPU_OTHER;
}

/* The first line of a file of a thread. */
static void first_line(long pid, const char *thread, const char *file, char *out, size_t size)
{
    char path[320];
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%s/%s", pid, thread, file);
    FILE *in = fopen(path, "re");
    out[0] = '\0';
    if (in && !fgets(out, (int)size, in))
        out[0] = '\0';
    if (in)
        (void)fclose(in);
}

static void add_process(long pid, bool client, struct dp_bench_cpu *out)
{
    char path[64], name[64], times[128];
    (void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *threads = opendir(path);
    for (const struct dirent *one = threads ? readdir(threads) : NULL; one; one = readdir(threads)) {
        uint64_t ns = 0;
        if (one->d_name[0] == '.')
            continue;
        first_line(pid, one->d_name, "comm", name, sizeof name);
        first_line(pid, one->d_name, "schedstat", times, sizeof times);
        if (sscanf(times, "%" SCNu64, &ns) != 1)
            continue;
        enum dp_bench_cpu_part part = part_of(name);
        if (client)
            part = part == DP_BENCH_CPU_SOCKETS ? DP_BENCH_CPU_CLIENT_SOCKETS : DP_BENCH_CPU_CLIENT;
        out->ns[part] += ns;
    }
    if (threads)
        (void)closedir(threads);
}

void dp_bench_cpu_look(long server, struct dp_bench_cpu *out)
{
    *out = (struct dp_bench_cpu){0};
    if (server > 0)
        add_process(server, false, out);
    add_process((long)getpid(), true, out);
}

void dp_bench_cpu_add(struct dp_bench_cpu *sum, const struct dp_bench_cpu *before,
                      const struct dp_bench_cpu *after)
{
    for (int i = 0; i < DP_BENCH_CPU_PARTS; i++)
        sum->ns[i] += after->ns[i] > before->ns[i] ? after->ns[i] - before->ns[i] : 0;
}

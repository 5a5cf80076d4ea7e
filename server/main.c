/* downpour-server: one server of a cluster.
 *     read the cluster file -> a thread for each shard, one for control -> wait for SIGTERM -> drain,
 *     write back, exit 0
 * Exit      0: closed cleanly. 2: it could not start, or could not write its rows back; why is on stderr. */
#define _GNU_SOURCE
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/config/cluster.h"
#include "server/control/control.h"
#include "server/shard_thread.h"

#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct server {
    struct dp_cluster *cluster;
    const struct dp_cluster_server *self;
    uint32_t number;
    uint64_t boot, salt;
    struct dp_net *net;
    uint32_t started;
    struct dp_shard_thread *shard[DP_SHARDS_MAX];
    struct dp_control *control;
};

static const char usage[] = "usage: downpour-server --cluster FILE --server N\n"
                            "  --cluster FILE  the cluster file that all servers and workers read\n"
                            "  --server N      which of its servers this is, counted from 0\n"
                            "  --help          this text\n"
                            "SIGTERM: finish what is under way, write the rows back, exit.\n";

static enum dp_status read_flags(int argc, char **argv, struct server *server, bool *help,
                                 struct dp_error *err)
{
    static const struct option flags[] = {{"cluster", required_argument, NULL, 'c'},
                                          {"server", required_argument, NULL, 's'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *path = NULL, *number = NULL;
    uint64_t n = 0;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        if (c == 'c')
            path = optarg;
        else if (c == 's')
            number = optarg;
        else if (c == 'h')
            *help = true;
        else
            return dp_fail(err, DP_ARGUMENT, "flag '%s' is unknown or lacks its value; see --help",
                           argv[optind - 1]);
    }
    if (*help)
        return DP_OK;
    if (optind < argc)
        return dp_fail(err, DP_ARGUMENT, "'%s' is not a flag; see --help", argv[optind]);
    if (!path || !number)
        return dp_fail(err, DP_ARGUMENT, "--cluster and --server are both needed; see --help");
    enum dp_status st = dp_cluster_read(path, &server->cluster, err);
    if (st == DP_OK)
        st = dp_parse_u64(number, 0, server->cluster->server_count - 1, "--server", &n, err);
    if (st == DP_OK) {
        server->number = (uint32_t)n;
        server->self = &server->cluster->server[n];
    }
    return st;
}

/* The server's counters: its shards' added up, but the longest turn. */
static uint32_t sum_counters(void *context, struct dp_counter counters[DP_COUNTERS_MAX])
{
    const struct server *server = context;
    uint32_t n = 0;
    for (uint32_t i = 0; i < server->started; i++) {
        struct dp_counter one[DP_COUNTERS_MAX];
        n = dp_shard_thread_counters(server->shard[i], i == 0 ? counters : one);
        for (uint32_t c = 0; c < n && i > 0; c++) {
            bool is_max = strcmp(one[c].name, "turn_ns_max") == 0;
            uint64_t sum = counters[c].value + one[c].value;
            uint64_t max = counters[c].value > one[c].value ? counters[c].value : one[c].value;
            counters[c].value = is_max ? max : sum;
        }
    }
    return n;
}

static enum dp_status start_shards(struct server *server, struct dp_error *err)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < server->number; i++)
        first += server->cluster->server[i].shards;
    for (; server->started < server->self->shards; server->started++) {
        char endpoint[DP_HOST_MAX + 32], directory[DP_PATH_MAX + 32];
        uint32_t index = first + server->started;
        dp_cluster_shard_endpoint(server->cluster, index, endpoint, sizeof endpoint);
        (void)snprintf(directory, sizeof directory, "%s/shard-%04" PRIu32, server->self->store, index);
        struct dp_shard_thread_options options = {
            .net = server->net,
            .endpoint = endpoint,
            .directory = directory,
            .index = index,
            .shards = dp_cluster_shards(server->cluster),
            .cluster = server->cluster->id,
            .generation = server->cluster->generation,
            .boot = server->boot,
            .salt = server->salt,
            .cache_bytes = server->cluster->cache_bytes,
            .journal = {.journaled = server->cluster->durability != DP_CLUSTER_NONE,
                        .synced = server->cluster->durability == DP_CLUSTER_MACHINE,
                        .budget_bytes = server->cluster->journal_bytes}};
        enum dp_status st = dp_shard_thread_start(&options, &server->shard[server->started], err);
        if (st != DP_OK)
            return st;
        dp_log(DP_LOG_INFO, "shard %" PRIu32 " of %" PRIu32 " serves at %s, store %s", index, options.shards,
               endpoint, directory);
    }
    return DP_OK;
}

static enum dp_status start_control(struct server *server, struct dp_error *err)
{
    char endpoint[DP_HOST_MAX + 32];
    dp_cluster_control_endpoint(server->cluster, server->number, endpoint, sizeof endpoint);
    struct dp_control_options options = {.net = server->net,
                                         .endpoint = endpoint,
                                         .cluster = server->cluster->id,
                                         .generation = server->cluster->generation,
                                         .boot = server->boot,
                                         .counters = sum_counters,
                                         .context = server};
    return dp_control_start(&options, &server->control, err);
}

/* All shards drain at once; the first failure is told. */
static enum dp_status stop(struct server *server, struct dp_error *err)
{
    enum dp_status first = DP_OK;
    /* Control reads the shards' counters: it goes first, a shard frees itself as soon as it has drained. */
    dp_control_stop(&server->control);
    for (uint32_t i = 0; i < server->started; i++)
        dp_shard_thread_drain(server->shard[i]);
    for (uint32_t i = 0; i < server->started; i++) {
        struct dp_error one = {0};
        enum dp_status st = dp_shard_thread_join(&server->shard[i], &one);
        if (st != DP_OK)
            dp_log(DP_LOG_ERROR, "%s", one.text);
        if (st != DP_OK && first == DP_OK) {
            first = st;
            *err = one;
        }
    }
    dp_net_close(&server->net);
    return first;
}

static enum dp_status serve(struct server *server, struct dp_error *err)
{
    sigset_t signals;
    int received = 0;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    /* Before any thread: all of them inherit it, and only this one is told. */
    DP_ASSERT(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    DP_ASSERT(getrandom(&server->boot, sizeof server->boot, 0) == (ssize_t)sizeof server->boot);
    DP_ASSERT(getrandom(&server->salt, sizeof server->salt, 0) == (ssize_t)sizeof server->salt);
    enum dp_status st = dp_net_open(1, &server->net, err);
    if (st == DP_OK)
        st = start_shards(server, err);
    if (st == DP_OK)
        st = start_control(server, err);
    if (st == DP_OK) {
        dp_log(DP_LOG_INFO, "ready: %" PRIu32 " shards of cluster '%s', generation %" PRIu64, server->started,
               server->cluster->name, server->cluster->generation);
        DP_ASSERT(sigwait(&signals, &received) == 0);
        dp_log(DP_LOG_INFO, "%s: closing", received == SIGTERM ? "SIGTERM" : "SIGINT");
    }
    struct dp_error closing = {0};
    enum dp_status closed = stop(server, st == DP_OK ? err : &closing);
    if (st == DP_OK && closed == DP_OK)
        dp_log(DP_LOG_INFO, "closed cleanly");
    return st == DP_OK ? closed : st;
}

int main(int argc, char **argv)
{
    struct server server = {0};
    struct dp_error err = {0};
    bool help = false;
    dp_log_start("server", DP_LOG_INFO);
    /* Answers of a few hundred KB come and go all the time: kept in the heap, not mapped and unmapped each
     * time. */
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    enum dp_status st = read_flags(argc, argv, &server, &help, &err);
    if (st == DP_OK && help)
        (void)fputs(usage, stdout);
    else if (st == DP_OK) {
        char who[32];
        (void)snprintf(who, sizeof who, "server %" PRIu32, server.number);
        dp_log_start(who, DP_LOG_INFO);
        st = serve(&server, &err);
    }
    if (st != DP_OK)
        dp_log(DP_LOG_ERROR, "%s", err.text);
    dp_cluster_free(&server.cluster);
    return st == DP_OK ? 0 : 2;
}

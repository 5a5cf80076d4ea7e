#include "deploy/run/servers.h"

#include "common/base/deadline.h"
#include "common/config/cluster_client.h"
#include "common/env/awake.h"
#include "common/env/installed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_MS      20u
#define HANDSHAKE_MS 1000u /* one try, once the ports are open */
#define RECOVERING   10u   /* times the timeout: what is replayed takes its time, and is told */
#define TELL_MS      10000u
#define TELL_FULL_MS 60000u /* a full disk is told at once, and again now and then */

enum dp_status dp_servers_start(struct dp_local *local, const struct dp_folder *folder,
                                const struct dp_cluster *cluster, const char *conf, const char *log,
                                const char *flag, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], path[DP_PATH_MAX + 1], number[16], name[32];
    enum dp_status st = dp_installed_program("downpour-server", program, sizeof program, err);
    for (uint32_t i = 0; st == DP_OK && i < cluster->server_count; i++) {
        (void)snprintf(number, sizeof number, "%" PRIu32, i);
        (void)snprintf(name, sizeof name, "server %" PRIu32, i);
        const char *const argv[] = {
            program, "--cluster", conf, "--server", number, flag ? flag : DP_SERVERS_NEW, NULL};
        st = dp_folder_path(folder, path, err, "log/%s-%" PRIu32 ".log", log, i);
        if (st == DP_OK) /* it holds the directory's lock for as long as it may write to its store */
            st = dp_local_start(local, DP_LOCAL_SERVER, name, argv, path, folder->lock, err);
    }
    return st;
}

enum dp_status dp_servers_client(const struct dp_cluster *cluster, const char *name, uint32_t timeout_ms,
                                 struct dp_client **out, struct dp_error *err)
{
    const struct dp_client_options options = {.name = name, .open_timeout_ms = timeout_ms};
    return dp_cluster_client(cluster, &options, out, err);
}

static bool accepts(const char *host, uint32_t port)
{
    bool path = strncmp(host, "ipc://", 6) == 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (path)
        (void)snprintf(local.sun_path, sizeof local.sun_path, "%.101s-%" PRIu32, host + 6, port);
    int fd = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool yes =
        fd >= 0 && connect(fd, path ? (const struct sockaddr *)&local : (const struct sockaddr *)&address,
                           path ? sizeof local : sizeof address) == 0;
    if (fd >= 0)
        (void)close(fd);
    return yes;
}

/* The first of all ports of this machine's servers that nobody listens at; 0: none is left. */
static uint32_t closed_port(const struct dp_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->server_count; i++)
        for (uint32_t k = 0; k <= cluster->server[i].shards; k++)
            if (!accepts(cluster->server[i].host, cluster->server[i].port + k))
                return cluster->server[i].port + k;
    return 0;
}

/* A full disk waits for a person: for the timeout, and no longer. *full_ms: since when it is full; 0: it is not. */
static bool is_over(const struct dp_error *why, uint32_t timeout_ms, uint64_t now, uint64_t started_ms,
                    uint64_t *full_ms)
{
    /* Each new try of a server opens its store and asks the first server before it lacks room again. */
    if (why->wait.reason == DP_WAIT_DISK)
        *full_ms = *full_ms ? *full_ms : now;
    else if (why->wait.reason == DP_WAIT_RECOVERING)
        *full_ms = 0;
    return *full_ms ? now - *full_ms >= timeout_ms : now - started_ms >= (uint64_t)RECOVERING * timeout_ms;
}

/* Until all shards have welcomed a client: a server that replays its journal answers, but not yet that. */
static enum dp_status open_client(struct dp_local *local, const struct dp_cluster *cluster,
                                  uint32_t timeout_ms, struct dp_client **out, struct dp_error *err)
{
    const struct dp_clock real = dp_clock_real();
    /* A suspension (Ctrl-Z, to make room for instance) counts as two tries at most. */
    struct dp_awake clock = dp_awake_over(&real, 2 * HANDSHAKE_MS * UINT64_C(1000000));
    uint64_t started = clock.now_ns / 1000000, tell = started + TELL_MS, full = 0, told_full = 0;
    struct dp_error lacks = {0};
    for (;;) {
        enum dp_status st = dp_servers_client(cluster, "downpour command", HANDSHAKE_MS, out, err);
        dp_local_wait(local, 0);
        uint64_t now = dp_awake_ns(&clock) / 1000000;
        if (st == DP_OK)
            return st;
        if (dp_local_signal(local) || dp_local_failed(local))
            return dp_fail(err, DP_STOPPING, "stopped while the servers were starting");
        if (err->wait.reason == DP_WAIT_DISK)
            lacks = *err;
        bool over = is_over(err, timeout_ms, now, started, &full);
        if (st == DP_UNAVAILABLE && over && full)
            *err = lacks;
        if (st == DP_UNAVAILABLE && over && full)
            return dp_wrap(err, st, "no room on a disk for %" PRIu32 " s (--timeout)", timeout_ms / 1000);
        if (st != DP_UNAVAILABLE || over)
            return dp_wrap(err, st, "the servers were started, but do not answer (see their logs)");
        if (full && !told_full)
            tell = now;
        told_full = full;
        if (now >= tell) {
            tell = now + (full ? TELL_FULL_MS : TELL_MS);
            (void)fprintf(stderr, "downpour: waiting for the servers: %s\n", err ? err->text : "");
        }
    }
}

/* First until every port is open, looking often and at signals and children too. */
enum dp_status dp_servers_await(struct dp_local *local, const struct dp_cluster *cluster, uint32_t timeout_ms,
                                struct dp_client **out, struct dp_error *err)
{
    uint64_t deadline = dp_now_ms() + timeout_ms;
    uint32_t closed;
    while ((closed = closed_port(cluster)) != 0) {
        if (dp_now_ms() >= deadline)
            return dp_fail(err, DP_TIMEOUT,
                           "the servers were started, but none listens at 127.0.0.1:%" PRIu32
                           " after %" PRIu32 " ms: see their logs",
                           closed, timeout_ms);
        dp_local_wait(local, LOOK_MS);
        if (dp_local_signal(local) || dp_local_failed(local))
            return dp_fail(err, DP_STOPPING, "stopped while the servers were starting");
    }
    return open_client(local, cluster, timeout_ms, out, err);
}

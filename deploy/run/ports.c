#include "deploy/run/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SEARCH_FROM 10000u
#define SEARCH_TO   32000u
#define TRIES       500

/* 0, or why the port cannot be taken. */
static int try_port(uint32_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int yes = 1, failed = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    /* As the servers' sockets do: a port whose last connections are being forgotten is free. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0)
        failed = errno;
    (void)close(fd);
    return failed;
}

static uint32_t ports_of_all(const struct dp_cluster *cluster)
{
    return dp_cluster_shards(cluster) + cluster->server_count;
}

static void assign(struct dp_cluster *cluster, uint32_t first)
{
    for (uint32_t i = 0; i < cluster->server_count; i++) {
        cluster->server[i].port = first;
        first += 1 + cluster->server[i].shards;
    }
}

enum dp_status dp_ports_choose(struct dp_cluster *cluster, uint32_t first, struct dp_error *err)
{
    uint32_t count = ports_of_all(cluster);
    if (first) {
        if (first > 65535 || count > 65536 - first)
            return dp_fail(err, DP_ARGUMENT,
                           "--port %" PRIu32 ": the servers need %" PRIu32 " ports, up to %" PRIu32
                           ", over 65535",
                           first, count, first + count - 1);
        for (uint32_t port = first; port < first + count; port++) {
            int why = try_port(port);
            if (why)
                return dp_fail(err, DP_IO,
                               "--port %" PRIu32 ": port %" PRIu32
                               " cannot be used: %s; choose another port, or omit --port",
                               first, port, strerror(why));
        }
        assign(cluster, first);
        return DP_OK;
    }
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t random = (uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 20;
    uint32_t room = SEARCH_TO - SEARCH_FROM;
    if (count >= room)
        return dp_fail(err, DP_ARGUMENT, "%" PRIu32 " ports are more than one machine has: use fewer shards",
                       count);
    for (int i = 0; i < TRIES; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t at = SEARCH_FROM + (uint32_t)(random >> 33) % (room - count), n = 0;
        while (n < count && try_port(at + n) == 0)
            n++;
        if (n == count) {
            assign(cluster, at);
            return DP_OK;
        }
    }
    return dp_fail(err, DP_IO, "found no %" PRIu32 " consecutive free ports between %u and %u: give --port",
                   count, SEARCH_FROM, SEARCH_TO);
}

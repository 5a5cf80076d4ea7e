#define _GNU_SOURCE
#include "tests/lib/proxy.h"

#include "common/base/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LANES_MAX       16u
#define CONNECTIONS_MAX 256u
#define BUFFER_BYTES    65536u

struct flow {  /* one direction */
    bool lost; /* passes nothing any more */
    uint32_t at, len;
    char bytes[BUFFER_BYTES];
};

struct connection {
    uint32_t lane;
    int fd[2];           /* the client's; the port's, -1 once orphaned */
    struct flow flow[2]; /* read from fd[side], written to fd[!side] */
};

struct lane {
    int listener;
    uint32_t to_port;
    enum dp_proxy_way way[2];
    uint64_t lost[2];
};

struct dp_proxy {
    uint32_t lanes, connections;
    struct lane lane[LANES_MAX];
    struct connection *connection[CONNECTIONS_MAX];
};

struct dp_proxy *dp_proxy_open(void)
{
    struct dp_proxy *proxy = calloc(1, sizeof *proxy);
    DP_ASSERT(proxy);
    return proxy;
}

static struct sockaddr_in here(uint32_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

uint32_t dp_proxy_lane(struct dp_proxy *proxy, uint32_t to_port)
{
    struct sockaddr_in address = here(0);
    socklen_t size = sizeof address;
    DP_ASSERT(proxy->lanes < LANES_MAX);
    struct lane *lane = &proxy->lane[proxy->lanes++];
    lane->to_port = to_port;
    lane->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    DP_ASSERT(lane->listener >= 0 &&
              bind(lane->listener, (const struct sockaddr *)&address, sizeof address) == 0 &&
              listen(lane->listener, 64) == 0 &&
              getsockname(lane->listener, (struct sockaddr *)&address, &size) == 0);
    return ntohs(address.sin_port);
}

uint32_t dp_proxy_lanes(const struct dp_proxy *proxy)
{
    return proxy->lanes;
}

static void close_end(int *fd, bool reset)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    if (*fd < 0)
        return;
    if (reset)
        (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(*fd);
    *fd = -1;
}

/* The last one takes its place. */
static void end(struct dp_proxy *proxy, uint32_t i, bool reset)
{
    close_end(&proxy->connection[i]->fd[0], reset);
    close_end(&proxy->connection[i]->fd[1], reset);
    free(proxy->connection[i]);
    proxy->connection[i] = proxy->connection[--proxy->connections];
}

void dp_proxy_close(struct dp_proxy **proxy)
{
    struct dp_proxy *p = *proxy;
    *proxy = NULL;
    if (!p)
        return;
    while (p->connections > 0)
        end(p, p->connections - 1, true);
    for (uint32_t i = 0; i < p->lanes; i++)
        close_end(&p->lane[i].listener, false);
    free(p);
}

void dp_proxy_cut(struct dp_proxy *proxy, uint32_t lane, bool reset)
{
    for (uint32_t i = proxy->connections; i-- > 0;)
        if (proxy->connection[i]->lane == lane)
            end(proxy, i, reset);
}

void dp_proxy_set(struct dp_proxy *proxy, uint32_t lane, enum dp_proxy_side side, enum dp_proxy_way way)
{
    proxy->lane[lane].way[side] = way;
    for (uint32_t i = proxy->connections; i-- > 0 && way != DP_PROXY_LOSE;)
        if (proxy->connection[i]->lane == lane && proxy->connection[i]->flow[side].lost)
            end(proxy, i, true);
}

void dp_proxy_orphan(struct dp_proxy *proxy, uint32_t lane)
{
    for (uint32_t i = 0; i < proxy->connections; i++) {
        struct connection *c = proxy->connection[i];
        if (c->lane != lane)
            continue;
        close_end(&c->fd[DP_PROXY_REPLIES], true);
        c->flow[DP_PROXY_REQUESTS].lost = c->flow[DP_PROXY_REPLIES].lost = true;
    }
}

uint64_t dp_proxy_lost(const struct dp_proxy *proxy, uint32_t lane, enum dp_proxy_side side)
{
    return proxy->lane[lane].lost[side];
}

/* Blocks for no time worth mentioning: the port is of this machine. */
static void welcome(struct dp_proxy *proxy, uint32_t lane)
{
    struct sockaddr_in address = here(proxy->lane[lane].to_port);
    int yes = 1, client = accept4(proxy->lane[lane].listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    DP_ASSERT(server >= 0);
    if (proxy->connections == CONNECTIONS_MAX ||
        connect(server, (const struct sockaddr *)&address, sizeof address) != 0) {
        close_end(&client, false);
        close_end(&server, false);
        return;
    }
    struct connection *c = calloc(1, sizeof *c);
    DP_ASSERT(c);
    c->lane = lane;
    c->fd[DP_PROXY_REQUESTS] = client;
    c->fd[DP_PROXY_REPLIES] = server;
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    proxy->connection[proxy->connections++] = c;
}

/* False: the end is over. */
static bool take(struct dp_proxy *proxy, struct connection *c, int side)
{
    struct lane *lane = &proxy->lane[c->lane];
    struct flow *flow = &c->flow[side];
    ssize_t got = recv(c->fd[side], flow->bytes, sizeof flow->bytes, MSG_DONTWAIT);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    flow->lost = flow->lost || lane->way[side] == DP_PROXY_LOSE;
    if (flow->lost) {
        lane->lost[side] += (uint64_t)got;
        return true;
    }
    flow->at = 0;
    flow->len = (uint32_t)got;
    return true;
}

static bool give(struct connection *c, int side)
{
    struct flow *flow = &c->flow[side];
    ssize_t gone = send(c->fd[!side], flow->bytes + flow->at, flow->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (gone < 0)
        return errno == EAGAIN || errno == EINTR;
    flow->at += (uint32_t)gone;
    flow->len -= (uint32_t)gone;
    return true;
}

static short events_of(const struct dp_proxy *proxy, const struct connection *c, int side)
{
    const struct flow *in = &c->flow[side], *out = &c->flow[!side];
    bool reads = in->lost || (in->len == 0 && proxy->lane[c->lane].way[side] != DP_PROXY_HOLD);
    bool writes = !out->lost && out->len > 0;
    return (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

/* False: it is over. */
static bool move(struct dp_proxy *proxy, struct connection *c, const struct pollfd poll[2])
{
    for (int side = 0; side < 2; side++) {
        short events = poll[side].revents;
        if (c->fd[side] < 0)
            continue;
        if ((events & POLLOUT) && !give(c, !side))
            return false;
        if ((events & POLLIN) && !take(proxy, c, side))
            return false;
        if ((events & (POLLERR | POLLNVAL)) || ((events & POLLHUP) && !(events & POLLIN)))
            return false;
    }
    return true;
}

void dp_proxy_turn(struct dp_proxy *proxy, int timeout_ms)
{
    struct pollfd poll_fd[LANES_MAX + 2 * CONNECTIONS_MAX];
    nfds_t n = 0;
    uint32_t connections = proxy->connections;
    for (uint32_t i = 0; i < proxy->lanes; i++)
        poll_fd[n++] = (struct pollfd){.fd = proxy->lane[i].listener, .events = POLLIN};
    for (uint32_t i = 0; i < connections; i++)
        for (int side = 0; side < 2; side++)
            poll_fd[n++] = (struct pollfd){.fd = proxy->connection[i]->fd[side],
                                           .events = events_of(proxy, proxy->connection[i], side)};
    if (poll(poll_fd, n, timeout_ms) <= 0)
        return;
    for (uint32_t i = connections; i-- > 0;)
        if (!move(proxy, proxy->connection[i], &poll_fd[proxy->lanes + 2 * i]))
            end(proxy, i, false);
    for (uint32_t i = 0; i < proxy->lanes; i++)
        if (poll_fd[i].revents & POLLIN)
            welcome(proxy, i);
}

#include "common/net/net.h"

#include "common/base/blocking.h"
#include "common/net/parts.h"
#include "common/net/socket.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <zmq.h>

#define LOOKUP_NS UINT64_C(1000000000) /* between two lookups of a name */
#define LOOK_MS   20u                  /* between two looks at a lookup */

struct dp_connection {
    void *socket;
    void *monitor; /* reports the end of a connection */
    int monitor_fd;
    int fd; /* of the established connection, ZeroMQ's own; -1: none is known */
    bool has_events;
    char endpoint[320]; /* "": not known yet */
    char current[320];  /* the endpoint with an address, connected to; "": not yet */
    struct dp_names *all;
    /* A host that is a name: */
    struct dp_names *names; /* NULL: it is an address */
    char host[256];
    bool asks, lost;   /* a lookup runs; another one is due */
    uint64_t lookups;  /* ended when it was asked */
    uint64_t asked_ns; /* the last time */
    uint32_t turn;     /* of the addresses */
    char trouble[384]; /* why the name has no address */
};

/* Before it connects: an end that comes earlier would be missed. */
static enum dp_status monitor(struct dp_connection *connection, struct dp_net *net, const char *endpoint,
                              struct dp_error *err)
{
    size_t size = sizeof connection->monitor_fd;
    enum dp_status st = dp_socket_monitor(
        net, connection->socket, ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED,
        false, endpoint, &connection->monitor, err);
    if (st == DP_OK && zmq_getsockopt(connection->monitor, ZMQ_FD, &connection->monitor_fd, &size) != 0)
        st = dp_socket_failed(errno, "watching", endpoint, err);
    connection->has_events =
        true; /* its descriptor says only what is new: it is looked at once before the first wait */
    return st;
}

/* ---- names: looked up again after each lost connection, each failed one takes the next address */

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void ask(struct dp_connection *connection)
{
    struct dp_name_found found;
    dp_names_look(connection->names, connection->host, &found);
    connection->lookups = found.lookups;
    connection->asked_ns = now_ns();
    connection->asks = true;
    connection->lost = false;
    dp_names_ask(connection->names, connection->host);
}

static void take(struct dp_connection *connection, const struct dp_name_found *found)
{
    char endpoint[sizeof connection->current];
    connection->trouble[0] = '\0';
    if (found->error) {
        (void)snprintf(
            connection->trouble, sizeof connection->trouble,
            "the name '%s' cannot be resolved (%s): correct it in the cluster file, in /etc/hosts or at "
            "the name server",
            connection->host, dp_names_reason(found->error));
        connection->lost = true;
        return;
    }
    dp_names_endpoint(connection->endpoint, found->address[connection->turn % found->count], endpoint,
                      sizeof endpoint);
    if (strcmp(endpoint, connection->current) == 0)
        return;
    if (connection->current[0])
        (void)zmq_disconnect(connection->socket, connection->current);
    bool connects = dp_socket_attach(connection->socket, zmq_connect, endpoint) == 0;
    memcpy(connection->current, connects ? endpoint : "", connects ? sizeof endpoint : 1);
    connection->lost = !connects;
}

/* Returns whether to look again soon: a lookup runs, or has just ended and a kept message can leave. */
static bool follow(struct dp_connection *connection)
{
    struct dp_name_found found;
    if (!connection->names)
        return false;
    if (connection->asks) {
        dp_names_look(connection->names, connection->host, &found);
        connection->asks = found.lookups == connection->lookups;
        if (!connection->asks)
            take(connection, &found);
        return true;
    }
    if (connection->lost && now_ns() - connection->asked_ns >= LOOKUP_NS)
        ask(connection);
    return connection->asks || connection->lost;
}

const char *dp_connection_trouble(const struct dp_connection *connection)
{
    return connection->trouble[0] ? connection->trouble : NULL;
}

static enum dp_status connect_to(struct dp_connection *connection, const char *endpoint, struct dp_error *err)
{
    size_t size = strlen(endpoint) + 1;
    if (size > sizeof connection->endpoint)
        return dp_socket_failed(ENAMETOOLONG, "connecting to", endpoint, err);
    bool named = dp_names_is_one(endpoint, connection->host, sizeof connection->host);
    connection->names = named ? connection->all : NULL;
    memcpy(connection->endpoint, endpoint, size);
    if (named) {
        ask(connection);
        return DP_OK;
    }
    int number = dp_socket_attach(connection->socket, zmq_connect, endpoint);
    if (number != 0)
        return dp_socket_failed(number, "connecting to", endpoint, err);
    memcpy(connection->current, endpoint, size);
    return DP_OK;
}

enum dp_status dp_connection_move(struct dp_connection *connection, const char *endpoint,
                                  struct dp_error *err)
{
    if (strcmp(endpoint, connection->endpoint) == 0)
        return DP_OK;
    if (!dp_socket_is_endpoint(endpoint, false))
        return dp_socket_failed(EINVAL, "endpoint", endpoint, err);
    if (connection->current[0]) /* with what waits to be sent there: the caller sends it again */
        (void)zmq_disconnect(connection->socket, connection->current);
    connection->current[0] = connection->trouble[0] = '\0';
    connection->asks = connection->lost = false;
    connection->turn = 0;
    return connect_to(connection, endpoint, err);
}

enum dp_status dp_connection_open(struct dp_net *net, const char *endpoint, struct dp_connection **out,
                                  struct dp_error *err)
{
    *out = NULL;
    struct dp_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return dp_fail(err, DP_NOMEM, "out of memory for a connection to '%s'", endpoint);
    connection->fd = -1;
    enum dp_status st = dp_socket_new(net, ZMQ_DEALER, endpoint, &connection->socket, err);
    if (st == DP_OK)
        st = monitor(connection, net, endpoint, err);
    connection->all = net->names;
    if (st == DP_OK && endpoint[0])
        st = connect_to(connection, endpoint, err);
    if (st != DP_OK)
        dp_connection_close(&connection);
    *out = connection;
    return st;
}

void dp_connection_close(struct dp_connection **connection)
{
    if (!*connection)
        return;
    if ((*connection)->monitor) {
        (void)zmq_socket_monitor((*connection)->socket, NULL, 0);
        (void)zmq_close((*connection)->monitor);
    }
    if ((*connection)->socket)
        (void)zmq_close((*connection)->socket);
    free(*connection);
    *connection = NULL;
}

enum dp_status dp_connection_send(struct dp_connection *connection, struct dp_message **message,
                                  struct dp_error *err)
{
    int events = 0;
    size_t size = sizeof events;
    /* Asked first: once parts are made of the frames, they cannot be given back. */
    if (zmq_getsockopt(connection->socket, ZMQ_EVENTS, &events, &size) != 0 || !(events & ZMQ_POLLOUT))
        return dp_fail(err, DP_AGAIN, "queue to the server is full");
    /* Lost after all: as any message may be; the resend repairs it. */
    (void)!dp_parts_send(connection->socket, NULL, NULL, message);
    return DP_OK;
}

bool dp_connection_receive(struct dp_connection *connection, struct dp_message **out)
{
    struct dp_parts_taken taken = {.fd = -1};
    /* One that breaks a limit is lost, as any message may be. */
    return dp_parts_receive(connection->socket, out, &taken) == DP_OK;
}

/* An event is a frame with its number and a value, and a frame with the address. */
static uint16_t event_of(const unsigned char *frame, int size)
{
    uint16_t event = 0;
    if (size == 6)
        memcpy(&event, frame, sizeof event);
    return event;
}

static int fd_of(const unsigned char *frame)
{
    uint32_t value;
    memcpy(&value, frame + 2, sizeof value);
    return (int)value;
}

bool dp_connection_broke(struct dp_connection *connection)
{
    unsigned char frame[64];
    bool broke = false;
    int size;
    if (!connection->has_events)
        return false;
    connection->has_events = false;
    while ((size = zmq_recv(connection->monitor, frame, sizeof frame, ZMQ_DONTWAIT)) >= 0 || errno == EINTR) {
        uint16_t event = event_of(frame, size);
        broke |= event == ZMQ_EVENT_DISCONNECTED;
        connection->lost |= event == ZMQ_EVENT_DISCONNECTED || event == ZMQ_EVENT_CONNECT_RETRIED;
        if (event == ZMQ_EVENT_CONNECTED || event == ZMQ_EVENT_DISCONNECTED)
            connection->fd = event == ZMQ_EVENT_CONNECTED ? fd_of(frame) : -1;
        connection->turn += event == ZMQ_EVENT_CONNECT_RETRIED;
    }
    return broke;
}

/* ZeroMQ may have closed the descriptor, and another connection may have it: then the count is that one's. */
uint64_t dp_connection_carried(const struct dp_connection *connection)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    if (connection->fd < 0 || getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        bytes < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
        return 0;
    return info.tcpi_bytes_acked + info.tcpi_bytes_received;
}

void dp_connections_wait(struct dp_connection *const *connections, uint32_t n, uint32_t timeout_ms)
{
    zmq_pollitem_t few[64], *items = few;
    for (uint32_t i = 0; i < n; i++)
        timeout_ms = follow(connections[i]) && timeout_ms > LOOK_MS ? LOOK_MS : timeout_ms;
    dp_blocking();
    if (n > 32)
        items = malloc(2 * n * sizeof *items);
    if (!items) { /* no memory: wait for the first ones only; the caller comes back */
        items = few;
        n = 32;
    }
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (zmq_pollitem_t){.socket = connections[i]->socket, .events = ZMQ_POLLIN};
        items[n + i] = (zmq_pollitem_t){.fd = connections[i]->monitor_fd, .events = ZMQ_POLLIN};
    }
    (void)zmq_poll(items, 2 * (int)n, (long)timeout_ms);
    for (uint32_t i = 0; i < n; i++)
        connections[i]->has_events |= items[n + i].revents != 0;
    if (items != few)
        free(items);
}

#include "common/net/net.h"

#include "common/base/blocking.h"
#include "common/net/parts.h"
#include "common/net/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

struct dp_connection {
    void *socket;
    void *monitor; /* reports the end of a connection */
    int monitor_fd;
    bool has_events;
};

/* Before it connects: an end that comes earlier would be missed. */
static enum dp_status monitor(struct dp_connection *connection, struct dp_net *net, const char *endpoint,
                              struct dp_error *err)
{
    size_t size = sizeof connection->monitor_fd;
    enum dp_status st = dp_socket_monitor(net, connection->socket, ZMQ_EVENT_DISCONNECTED, false, endpoint,
                                          &connection->monitor, err);
    if (st == DP_OK && zmq_getsockopt(connection->monitor, ZMQ_FD, &connection->monitor_fd, &size) != 0)
        st = dp_socket_failed(errno, "watching", endpoint, err);
    connection->has_events =
        true; /* its descriptor says only what is new: it is looked at once before the first wait */
    return st;
}

enum dp_status dp_connection_open(struct dp_net *net, const char *endpoint, struct dp_connection **out,
                                  struct dp_error *err)
{
    *out = NULL;
    struct dp_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return dp_fail(err, DP_NOMEM, "out of memory for a connection to '%s'", endpoint);
    enum dp_status st = dp_socket_new(net, ZMQ_DEALER, endpoint, &connection->socket, err);
    if (st == DP_OK)
        st = monitor(connection, net, endpoint, err);
    if (st == DP_OK && zmq_connect(connection->socket, endpoint) != 0)
        st = dp_socket_failed(errno, "connecting to", endpoint, err);
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
static bool is_disconnected(const unsigned char *frame, int size)
{
    uint16_t event = 0;
    if (size >= 6)
        memcpy(&event, frame, sizeof event);
    return event == ZMQ_EVENT_DISCONNECTED;
}

bool dp_connection_broke(struct dp_connection *connection)
{
    unsigned char frame[64];
    bool broke = false;
    int size;
    if (!connection->has_events)
        return false;
    connection->has_events = false;
    while ((size = zmq_recv(connection->monitor, frame, sizeof frame, ZMQ_DONTWAIT)) >= 0 || errno == EINTR)
        broke |= is_disconnected(frame, size);
    return broke;
}

void dp_connections_wait(struct dp_connection *const *connections, uint32_t n, uint32_t timeout_ms)
{
    zmq_pollitem_t few[64], *items = few;
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

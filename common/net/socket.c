#include "common/net/socket.h"
#include "common/base/blocking.h"
#include "common/base/parse.h"
#include "common/wire/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

/* Messages that wait in one peer's queue, each way. Bounds the memory that a peer which does not read, or a
 * shard which does not keep up, can take; more than a client's window with its resends. */
#define QUEUE_LEN_MAX 128

/* A connection ends when the peer's kernel has acknowledged nothing for so long. TCP itself would double its
 * pauses up to minutes, and after a cut that has healed go on only when the next one is over. An idle
 * connection has probes to acknowledge (keepalive), not ZMTP's pings: libzmq 4.3.4 aborts where a ping meets
 * a socket that closes ("!_io_error"). */
#define UNACKNOWLEDGED_MS 3000

struct option {
    int name, value;
};

static const struct option common[] = {
    {ZMQ_LINGER, DP_LINGER_MS},   {ZMQ_SNDHWM, QUEUE_LEN_MAX}, {ZMQ_RCVHWM, QUEUE_LEN_MAX},
    {ZMQ_SNDBUF, 4 << 20},        {ZMQ_RCVBUF, 4 << 20},       {ZMQ_HANDSHAKE_IVL, 10000},
    {ZMQ_CONNECT_TIMEOUT, 2000},  {ZMQ_RECONNECT_IVL, 50},     {ZMQ_RECONNECT_IVL_MAX, 500},
    {ZMQ_BACKLOG, 512},           {ZMQ_TCP_KEEPALIVE, 1},      {ZMQ_TCP_KEEPALIVE_IDLE, 1},
    {ZMQ_TCP_KEEPALIVE_INTVL, 1}, {ZMQ_TCP_KEEPALIVE_CNT, 3},  {ZMQ_TCP_MAXRT, UNACKNOWLEDGED_MS},
};

static int set_options(void *socket, int type)
{
    int64_t frame_max = DP_FRAME_BYTES_MAX;
    int one = 1, failed = 0;
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        failed |= zmq_setsockopt(socket, common[i].name, &common[i].value, sizeof common[i].value);
    failed |= zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max);
    /* Without it ZeroMQ drops what cannot be delivered without a word. */
    if (type == ZMQ_ROUTER)
        failed |= zmq_setsockopt(socket, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
    return failed;
}

/* ZeroMQ takes ports modulo 65,536: a typing error would listen somewhere. */
bool dp_socket_is_endpoint(const char *endpoint, bool any)
{
    if (strncmp(endpoint, "ipc://", 6) == 0)
        return endpoint[6] != '\0';
    const char *port = strrchr(endpoint, ':');
    uint64_t number = 0;
    if (strncmp(endpoint, "tcp://", 6) != 0 || port < endpoint + 6)
        return false;
    return (any && strcmp(port, ":*") == 0) ||
           dp_parse_u64(port + 1, 1, 65535, "port", &number, NULL) == DP_OK;
}

enum dp_status dp_socket_new(struct dp_net *net, int type, const char *endpoint, void **out,
                             struct dp_error *err)
{
    *out = NULL;
    if (!dp_socket_is_endpoint(endpoint, type == ZMQ_ROUTER) && (type == ZMQ_ROUTER || endpoint[0]))
        return dp_socket_failed(EINVAL, "endpoint", endpoint, err);
    void *socket = zmq_socket(net->context, type);
    if (!socket)
        return dp_socket_failed(errno, "opening a socket for", endpoint, err);
    if (set_options(socket, type) != 0) {
        enum dp_status st = dp_socket_failed(errno, "setting up a socket for", endpoint, err);
        (void)zmq_close(socket);
        return st;
    }
    *out = socket;
    return DP_OK;
}

int dp_socket_attach(void *socket, int (*how)(void *socket, const char *endpoint), const char *endpoint)
{
    int six = strchr(endpoint, '[') != NULL;
    return zmq_setsockopt(socket, ZMQ_IPV6, &six, sizeof six) == 0 && how(socket, endpoint) == 0 ? 0 : errno;
}

enum dp_status dp_socket_failed(int number, const char *verb, const char *endpoint, struct dp_error *err)
{
    const char *advice = "";
    switch (number) {
    case EINVAL:
    case EPROTONOSUPPORT:
        return dp_fail(err, DP_ARGUMENT, "%s '%s': malformed, expected tcp://HOST:PORT or ipc:///PATH", verb,
                       endpoint);
    case EADDRINUSE:
        advice = ": another server there? Stop it or choose another port";
        break;
    case EADDRNOTAVAIL:
    case ENODEV:
        advice = ": no such address on this machine; give one of its names or addresses, or 0.0.0.0 for all";
        break;
    case EACCES:
        advice = ": choose a port above 1023, or a path in a directory that is writable";
        break;
    case ENAMETOOLONG:
        advice = ": choose a shorter path";
        break;
    case EMFILE:
        advice = ": close other programs or raise 'ulimit -n'";
        break;
    default:
        break;
    }
    return dp_fail(err, DP_IO, "%s '%s': %s%s", verb, endpoint, zmq_strerror(number), advice);
}

enum dp_status dp_socket_monitor(struct dp_net *net, void *socket, int events, bool bounded,
                                 const char *endpoint, void **out, struct dp_error *err)
{
    char address[64];
    int most = bounded ? 1000 : 0; /* here, and as many in ZeroMQ's end */
    (void)snprintf(address, sizeof address, "inproc://monitor-%" PRIu32, atomic_fetch_add(&net->monitors, 1));
    *out = NULL;
    if (zmq_socket_monitor(socket, address, events) != 0)
        return dp_socket_failed(errno, "watching", endpoint, err);
    void *monitor = zmq_socket(net->context, ZMQ_PAIR);
    if (monitor && zmq_setsockopt(monitor, ZMQ_RCVHWM, &most, sizeof most) == 0 &&
        zmq_connect(monitor, address) == 0) {
        *out = monitor;
        return DP_OK;
    }
    enum dp_status st = dp_socket_failed(errno, "watching", endpoint, err);
    (void)zmq_socket_monitor(socket, NULL, 0);
    if (monitor)
        (void)zmq_close(monitor);
    return st;
}

void dp_socket_wait(void *socket, int wake_fd, int read_fd, uint32_t timeout_ms)
{
    zmq_pollitem_t items[3] = {{.socket = socket, .events = ZMQ_POLLIN}};
    int n = 1;
    if (wake_fd >= 0)
        items[n++] = (zmq_pollitem_t){.fd = wake_fd, .events = ZMQ_POLLIN};
    if (read_fd >= 0)
        items[n++] = (zmq_pollitem_t){.fd = read_fd, .events = ZMQ_POLLIN};
    dp_blocking();
    /* An error (a signal, say) ends the wait; the caller looks at the socket anyway. */
    (void)zmq_poll(items, n, (long)timeout_ms);
}

/* Socket: a ZeroMQ socket with this program's settings, and its errors in words. Of this room only. */
#ifndef DP_NET_SOCKET_H
#define DP_NET_SOCKET_H

#include "common/net/names.h"
#include "common/net/net.h"

struct dp_net {
    void *context;
    struct dp_names *names;
    _Atomic bool warned;       /* of a name that other machines cannot use */
    _Atomic uint32_t monitors; /* so far: their numbers */
};

#define DP_LINGER_MS 1000

/* any: port * is allowed. */
bool dp_socket_is_endpoint(const char *endpoint, bool any);
/* type: ZMQ_ROUTER or ZMQ_DEALER, whose endpoint may be "". The endpoint's form is checked here. */
enum dp_status dp_socket_new(struct dp_net *net, int type, const char *endpoint, void **out,
                             struct dp_error *err);
/* zmq_bind or zmq_connect. Its errno; 0: done. */
int dp_socket_attach(void *socket, int (*how)(void *socket, const char *endpoint), const char *endpoint);
/* The error that zmq_bind or zmq_connect (`verb`: "listening on", "connecting to") left in `number`. */
enum dp_status dp_socket_failed(int number, const char *verb, const char *endpoint, struct dp_error *err);
/* Opens the socket's monitor: a PAIR with the events of this mask. bounded: once it has 2,000 events, ZeroMQ's I/O thread waits,
 * and with it all connections and the socket's close. So a bounded one needs a thread that always reads it. */
enum dp_status dp_socket_monitor(struct dp_net *net, void *socket, int events, bool bounded,
                                 const char *endpoint, void **out, struct dp_error *err);
/* Waits until the socket or one of the descriptors (-1: none) is readable, or until the timeout. */
void dp_socket_wait(void *socket, int wake_fd, int read_fd, uint32_t timeout_ms);

#endif

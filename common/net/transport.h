/* Transport: how the client library reaches servers, as a struct of functions: net's connections in a
 * program, the simulator's network in a test. Server numbers are indices of the endpoints given at open.
 * Promise   As net.h: nothing blocks but wait; a message may be lost, never torn.                         */
#ifndef DP_NET_TRANSPORT_H
#define DP_NET_TRANSPORT_H

#include "common/net/net.h"

struct dp_transport {
    /* DP_AGAIN: queue full, the message stays the caller's. */
    enum dp_status (*send)(void *self, uint32_t server, struct dp_message **message, struct dp_error *err);
    /* Any server's next message; false: none waits. */
    bool (*receive)(void *self, uint32_t *server, struct dp_message **message);
    /* A server whose connection has ended since the last call, so that what was under way may be lost; false: none. NULL: the transport cannot
     * say. Ask it after receive: what came before the end is to be taken first. */
    bool (*broke)(void *self, uint32_t *server);
    /* The server is at another endpoint from now on; what was sent to it may be lost. May be NULL. */
    enum dp_status (*move)(void *self, uint32_t server, const char *endpoint, struct dp_error *err);
    /* Bytes that have arrived on the server's connection, at either end; 0: not known. May be NULL. */
    uint64_t (*carried)(void *self, uint32_t server);
    void (*wait)(void *self, uint32_t timeout_ms);
    /* Why the server cannot be reached, for people; NULL: not known. May be NULL. */
    const char *(*trouble)(void *self, uint32_t server);
    void (*close)(void *self);
    void *self;
};

/* The sockets' form: a context of its own and one connection an endpoint; "": not known yet (move). */
enum dp_status dp_transport_open(const char *const *endpoints, uint32_t n, struct dp_transport *out,
                                 struct dp_error *err);

#endif

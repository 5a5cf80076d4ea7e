#include "common/net/transport.h"

#include "common/env/limits.h"

#include <stdlib.h>

struct sockets {
    struct dp_net *net;
    uint32_t n, next; /* next: where the search for a message goes on, so that no server is starved */
    struct dp_connection *connection[];
};

static enum dp_status sockets_send(void *self, uint32_t server, struct dp_message **message,
                                   struct dp_error *err)
{
    struct sockets *sockets = self;
    DP_ASSERT(server < sockets->n);
    return dp_connection_send(sockets->connection[server], message, err);
}

static bool sockets_receive(void *self, uint32_t *server, struct dp_message **message)
{
    struct sockets *sockets = self;
    for (uint32_t tried = 0; tried < sockets->n; tried++) {
        *server = sockets->next;
        sockets->next = (sockets->next + 1) % sockets->n;
        if (dp_connection_receive(sockets->connection[*server], message))
            return true;
    }
    return false;
}

static bool sockets_broke(void *self, uint32_t *server)
{
    struct sockets *sockets = self;
    for (*server = 0; *server < sockets->n; (*server)++)
        if (dp_connection_broke(sockets->connection[*server]))
            return true;
    return false;
}

static enum dp_status sockets_move(void *self, uint32_t server, const char *endpoint, struct dp_error *err)
{
    struct sockets *sockets = self;
    DP_ASSERT(server < sockets->n);
    return dp_connection_move(sockets->connection[server], endpoint, err);
}

static uint64_t sockets_carried(void *self, uint32_t server)
{
    const struct sockets *sockets = self;
    DP_ASSERT(server < sockets->n);
    return dp_connection_carried(sockets->connection[server]);
}

static void sockets_wait(void *self, uint32_t timeout_ms)
{
    struct sockets *sockets = self;
    dp_connections_wait(sockets->connection, sockets->n, timeout_ms);
}

static const char *sockets_trouble(void *self, uint32_t server)
{
    const struct sockets *sockets = self;
    DP_ASSERT(server < sockets->n);
    return dp_connection_trouble(sockets->connection[server]);
}

static void sockets_close(void *self)
{
    struct sockets *sockets = self;
    for (uint32_t i = 0; i < sockets->n; i++)
        dp_connection_close(&sockets->connection[i]);
    dp_net_close(&sockets->net);
    free(sockets);
}

enum dp_status dp_transport_open(const char *const *endpoints, uint32_t n, struct dp_transport *out,
                                 struct dp_error *err)
{
    *out = (struct dp_transport){0};
    struct sockets *sockets = calloc(1, sizeof *sockets + n * sizeof sockets->connection[0]);
    if (!sockets)
        return dp_fail(err, DP_NOMEM, "out of memory for %u connections", n);
    /* libzmq aborts where it can open no more, or start no thread. A connection takes 4: its own, and an eventfd of its socket and of
     * each end of its monitor. The rest is libzmq's own and the program's. */
    const struct dp_limits_need need = {
        .files = 20 + 4 * (uint64_t)n, .threads = 3, .memory_bytes = (uint64_t)32 << 20};
    enum dp_status st = dp_limits_check("a client", &need, err);
    if (st == DP_OK)
        st = dp_net_open(1, &sockets->net, err);
    for (; sockets->n < n && st == DP_OK; sockets->n += st == DP_OK)
        st = dp_connection_open(sockets->net, endpoints[sockets->n], &sockets->connection[sockets->n], err);
    if (st != DP_OK) {
        sockets_close(sockets);
        return st;
    }
    *out = (struct dp_transport){.send = sockets_send,
                                 .receive = sockets_receive,
                                 .broke = sockets_broke,
                                 .move = sockets_move,
                                 .carried = sockets_carried,
                                 .wait = sockets_wait,
                                 .trouble = sockets_trouble,
                                 .close = sockets_close,
                                 .self = sockets};
    return DP_OK;
}

#include "common/base/log.h"
#include "common/net/guard.h"
#include "common/net/net.h"
#include "common/net/parts.h"
#include "common/net/send_quota.h"
#include "common/net/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

/* Messages refused by one call of receive, so that a peer that sends nothing else does not hold the shard. */
#define REFUSED_A_CALL 16
#define RESOLVE_MS     10000u

struct dp_listener {
    void *socket;
    struct dp_send_quotas *quotas;
    struct dp_guard *guard;
    uint64_t unsent_max; /* of all peers */
    bool awaits_reading; /* would_send said no: the next wait ends when a peer has read something */
    uint64_t refused, undeliverable;
    char endpoint[256];
};

/* ZeroMQ removes a socket file that it finds and binds again: a second server would take the first one's
 * clients without a word. A file without a listener was left by a killed server. */
static bool ipc_in_use(const char *endpoint)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strncmp(endpoint, "ipc:///", 7) != 0 || strlen(endpoint + 6) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, endpoint + 6, strlen(endpoint + 6));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return false;
    /* Not blocking: a listener whose queue of new connections is full answers EAGAIN, and is there. */
    int flags = fcntl(fd, F_GETFL);
    (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    bool in_use = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
    (void)close(fd);
    return in_use;
}

/* The first bound address gives the port of *. Returns ZeroMQ's errno; 0: done. */
static int bind_one(struct dp_listener *listener, const char *endpoint)
{
    bool first = !listener->endpoint[0];
    size_t size = sizeof listener->endpoint;
    int number = dp_socket_attach(listener->socket, zmq_bind, endpoint);
    if (number == 0 && first &&
        zmq_getsockopt(listener->socket, ZMQ_LAST_ENDPOINT, listener->endpoint, &size) != 0)
        number = errno;
    return number;
}

static enum dp_status resolve(struct dp_net *net, const char *endpoint, const char *host,
                              struct dp_name_found *out, struct dp_error *err)
{
    dp_names_ask(net->names, host);
    if (!dp_names_wait(net->names, host, RESOLVE_MS, out))
        return dp_fail(
            err, DP_TIMEOUT,
            "listening on '%s': no name server answered for '%s' in %u ms: see /etc/resolv.conf, or "
            "give an IP address",
            endpoint, host, RESOLVE_MS);
    if (out->error)
        return dp_fail(err, DP_IO,
                       "listening on '%s': the name '%s' cannot be resolved (%s): add it to /etc/hosts or to "
                       "the name server, or give an IP address",
                       endpoint, host, dp_names_reason(out->error));
    return DP_OK;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "[::1]") == 0;
}

/* On all addresses of the name that are of this machine. */
static enum dp_status bind_name(struct dp_listener *listener, struct dp_net *net, const char *endpoint,
                                const char *host, struct dp_error *err)
{
    struct dp_name_found found;
    char one[320];
    bool within = true;
    enum dp_status st = resolve(net, endpoint, host, &found, err);
    for (uint32_t i = 0; i < found.count && st == DP_OK; i++) {
        dp_names_endpoint(listener->endpoint[0] ? listener->endpoint : endpoint, found.address[i], one,
                          sizeof one);
        int number = bind_one(listener, one);
        if (number == 0)
            within &= is_loopback(found.address[i]);
        else if (number != EADDRNOTAVAIL && number != ENODEV && number != EAFNOSUPPORT)
            st = dp_socket_failed(number, "listening on", one, err);
    }
    if (st == DP_OK && !listener->endpoint[0])
        st =
            dp_fail(err, DP_IO,
                    "listening on '%s': the name '%s' is %s, which is no address of this machine: start this "
                    "server there, or correct the name",
                    endpoint, host, found.address[0]);
    if (st == DP_OK && within && strcmp(host, "localhost") != 0 && !atomic_exchange(&net->warned, true))
        dp_log(DP_LOG_WARN,
               "listening on '%s': on this machine the name is %s, which other machines cannot reach: see "
               "/etc/hosts, or give an IP address",
               endpoint, found.address[0]);
    return st;
}

enum dp_status dp_listener_open(struct dp_net *net, const char *endpoint, struct dp_listener **out,
                                struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *out = NULL;
    struct dp_listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return dp_fail(err, DP_NOMEM, "out of memory for the listener '%s'", endpoint);
    listener->unsent_max = DP_ALL_UNSENT_MAX;
    listener->quotas = dp_send_quotas_new();
    if (!listener->quotas) {
        st = dp_fail(err, DP_NOMEM, "out of memory for the listener '%s'", endpoint);
        goto done;
    }
    st = dp_socket_new(net, ZMQ_ROUTER, endpoint, &listener->socket, err);
    if (st != DP_OK)
        goto done;
    if (ipc_in_use(endpoint)) {
        st = dp_socket_failed(EADDRINUSE, "listening on", endpoint, err);
        goto done;
    }
    st = dp_guard_open(net, listener->socket, endpoint, &listener->guard, err);
    if (st != DP_OK)
        goto done;
    char host[256];
    if (dp_names_is_one(endpoint, host, sizeof host)) {
        st = bind_name(listener, net, endpoint, host, err);
    } else {
        int number = bind_one(listener, endpoint);
        st = number == 0 ? DP_OK : dp_socket_failed(number, "listening on", endpoint, err);
    }
done:
    if (st != DP_OK)
        dp_listener_close(&listener);
    *out = listener;
    return st;
}

void dp_listener_close(struct dp_listener **listener)
{
    if (!*listener)
        return;
    /* ZeroMQ leaves its socket file. Removed while it is still listened on: afterwards the path could be
     * another server's already. */
    if (strncmp((*listener)->endpoint, "ipc:///", 7) == 0)
        (void)unlink((*listener)->endpoint + 6);
    dp_guard_close(&(*listener)->guard, (*listener)->socket);
    if ((*listener)->socket)
        (void)zmq_close((*listener)->socket);
    dp_send_quotas_free(&(*listener)->quotas);
    free(*listener);
    *listener = NULL;
}

void dp_listener_limit(struct dp_listener *listener, const struct dp_listener_limits *limits)
{
    listener->unsent_max = limits->unsent_bytes;
    dp_guard_limit(listener->guard, limits->waiting_bytes, limits->all_waiting_bytes, limits->stall_ms);
}

const char *dp_listener_endpoint(const struct dp_listener *listener)
{
    return listener->endpoint;
}

/* Ids that this socket gave are 0 and 4 bytes; those that peers choose never begin with 0. One that chose its
 * own could keep out another with the same. */
static bool take_peer(zmq_msg_t *id, struct dp_peer *from)
{
    const unsigned char *bytes = zmq_msg_data(id);
    if (zmq_msg_size(id) != 5 || bytes[0] != 0)
        return false;
    from->size = 5;
    memcpy(from->id, bytes, 5);
    return true;
}

bool dp_listener_receive(struct dp_listener *listener, struct dp_peer *from, struct dp_message **out)
{
    *out = NULL;
    for (int refused = 0; refused < REFUSED_A_CALL; refused++) {
        zmq_msg_t id;
        (void)zmq_msg_init(&id);
        if (zmq_msg_recv(&id, listener->socket, ZMQ_DONTWAIT) < 0) {
            (void)zmq_msg_close(&id);
            return false;
        }
        bool more = zmq_msg_more(&id) != 0;
        bool known = take_peer(&id, from);
        struct dp_parts_taken taken = {.fd = -1};
        (void)zmq_msg_close(&id);
        bool good = known && more && dp_parts_receive(listener->socket, out, &taken) == DP_OK;
        if (!known && more)
            dp_parts_drain(listener->socket, &taken);
        dp_guard_taken(listener->guard, taken.fd, taken.wire_bytes);
        from->link = (uint32_t)(taken.fd + 1);
        if (good)
            return true;
        listener->refused++;
    }
    return false;
}

/* To a peer with nothing unsent the oldest of its resends always gets through, unless peers that read nothing hold twice of what
 * all may. Then the one that holds most loses its connection, so that peers that read are served. */
static bool may_send(struct dp_listener *listener, uint64_t unsent, uint64_t bytes)
{
    struct dp_peer holder;
    uint64_t all = dp_send_quotas_unsent(listener->quotas), most = listener->unsent_max;
    if (unsent > 0)
        return unsent + bytes <= DP_PEER_UNSENT_MAX && all + bytes <= most;
    if (all < 2 * most)
        return true;
    if (!dp_guard_is_asked(listener->guard) && dp_send_quotas_most(listener->quotas, &holder) > 0)
        dp_guard_ask(listener->guard, (int)holder.link - 1);
    return false;
}

/* Whether the message may go, and whose quota bears its bytes. Small frames are taken for sent at once: the queue's
 * length bounds them. */
static bool bearer(struct dp_listener *listener, const struct dp_peer *to, const struct dp_message *message,
                   struct dp_send_quota **out)
{
    size_t bytes = dp_parts_counted(message);
    *out = NULL;
    if (bytes == 0)
        return true;
    *out = dp_send_quotas_find(listener->quotas, to);
    if (!*out)
        return false;
    return may_send(listener, dp_send_quota_unsent(*out), bytes);
}

static bool would_send(struct dp_listener *listener, const struct dp_peer *to, uint64_t bytes)
{
    struct dp_send_quota *quota = dp_send_quotas_find(listener->quotas, to);
    return quota && may_send(listener, dp_send_quota_unsent(quota), bytes);
}

bool dp_listener_would_send(struct dp_listener *listener, const struct dp_peer *to, uint64_t bytes)
{
    if (would_send(listener, to, bytes))
        return true;
    dp_send_quotas_await(listener->quotas);
    listener->awaits_reading = true;
    return would_send(listener, to, bytes);
}

void dp_listener_send(struct dp_listener *listener, const struct dp_peer *to, struct dp_message **message)
{
    struct dp_send_quota *quota = NULL;
    if (!bearer(listener, to, *message, &quota)) {
        dp_message_free(message);
        listener->undeliverable++;
    } else if (dp_parts_send(listener->socket, to, quota, message) != DP_OK) {
        listener->undeliverable++;
    }
}

void dp_listener_wait(struct dp_listener *listener, int wake_fd, uint32_t timeout_ms)
{
    int read_fd = listener->awaits_reading ? dp_send_quotas_fd(listener->quotas) : -1;
    dp_socket_wait(listener->socket, wake_fd, read_fd, timeout_ms);
    if (read_fd < 0)
        return;
    eventfd_t signals;
    (void)!eventfd_read(read_fd, &signals); /* nothing there: it was a message, or the time */
    listener->awaits_reading = false;
}

void dp_listener_drops(const struct dp_listener *listener, uint64_t *refused, uint64_t *undeliverable)
{
    *refused = listener->refused + dp_guard_dropped(listener->guard);
    *undeliverable = listener->undeliverable;
}

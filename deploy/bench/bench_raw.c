#include "deploy/bench/bench_raw.h"

#include "common/net/net.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEADER_BYTES 48u
#define LOOK_MS      200u
#define START_MS     10000
#define END_MS       5000u

struct pool { /* buffers, one after another */
    unsigned char *bytes;
    size_t each;
    uint32_t buffers;
};

struct dp_raw {
    pid_t peer;
    int control; /* closed: the peer ends */
    char endpoint[256];
    struct pool pool;
    struct dp_net *net;
    struct dp_connection *connection;
    const struct dp_raw_shape *shapes;
    uint32_t count;
};

/* ---- the peer */

static void keep(void *data, void *owner)
{
    (void)data;
    (void)owner;
}

static struct dp_frame lent(void *bytes, size_t size)
{
    return (struct dp_frame){.data = bytes, .size = size, .release = keep};
}

static unsigned char *buffer(const struct pool *pool, uint64_t n)
{
    return pool->bytes + n % pool->buffers * pool->each;
}

/* False: it would be dropped now, because the client has to read earlier answers first. */
static bool answer(struct dp_listener *listener, const struct dp_peer *to, const struct dp_message *request,
                   const struct pool *pool)
{
    uint64_t header[HEADER_BYTES / 8]; /* size of the answer, number of the request */
    if (request->frame[0].size != HEADER_BYTES)
        return true;
    memcpy(header, request->frame[0].data, sizeof header);
    if (header[0] <= pool->each && !dp_listener_would_send(listener, to, header[0]))
        return false;
    struct dp_message *reply = header[0] <= pool->each ? dp_message_new(2) : NULL;
    if (!reply)
        return true;
    dp_message_add(reply, (struct dp_frame){.data = header, .size = sizeof header});
    if (header[0] > 0)
        dp_message_add(reply, lent(buffer(pool, header[1]), header[0]));
    dp_listener_send(listener, to, &reply);
    return true;
}

static bool is_over(int control)
{
    struct pollfd fd = {.fd = control, .events = POLLIN};
    return poll(&fd, 1, 0) != 0;
}

static void serve(struct dp_listener *listener, int control, const struct pool *pool)
{
    struct dp_peer from;
    struct dp_message *request = NULL;
    do {
        while ((request || dp_listener_receive(listener, &from, &request)) &&
               answer(listener, &from, request, pool))
            dp_message_free(&request);
        dp_listener_wait(listener, control, LOOK_MS);
    } while (!is_over(control));
    dp_message_free(&request);
}

/* The complete life of the forked process; gives its exit code. Only the endpoint goes to `tell`. */
static int be_peer(int tell, int control, const char *endpoint_wanted, const struct pool *pool,
                   const struct dp_pin *pin)
{
    struct dp_net *net = NULL;
    struct dp_listener *listener = NULL;
    struct dp_error err = {0};
    enum dp_status st = dp_net_open(1, &net, &err);
    if (st == DP_OK)
        st = dp_listener_open(net, endpoint_wanted, &listener, &err);
    dp_pin_serving(pin); /* ZeroMQ's thread stays where the process was started */
    if (st == DP_OK) {
        const char *endpoint = dp_listener_endpoint(listener);
        size_t size = strlen(endpoint);
        if (write(tell, endpoint, size) == (ssize_t)size && close(tell) == 0)
            serve(listener, control, pool);
    }
    dp_listener_close(&listener);
    dp_net_close(&net);
    free(pool->bytes);
    return st == DP_OK ? 0 : 1;
}

/* ---- this end */

static enum dp_status hear_endpoint(struct dp_raw *raw, int from, struct dp_error *err)
{
    size_t got = 0;
    for (;;) {
        struct pollfd fd = {.fd = from, .events = POLLIN};
        if (poll(&fd, 1, START_MS) != 1)
            return dp_fail(err, DP_TIMEOUT, "the peer for raw sockets did not start in %d ms", START_MS);
        ssize_t n = read(from, raw->endpoint + got, sizeof raw->endpoint - 1 - got);
        if (n < 0)
            return dp_fail(err, DP_IO, "the peer for raw sockets: %s", strerror(errno));
        if (n == 0)
            break;
        got += (size_t)n;
    }
    if (got == 0)
        return dp_fail(err, DP_IO, "the peer for raw sockets could not open its socket");
    return DP_OK;
}

enum dp_status dp_raw_start(const char *at, size_t bytes_max, uint32_t buffers, const struct dp_pin *pin,
                            struct dp_raw **out, struct dp_error *err)
{
    int tell[2] = {-1, -1}, control[2] = {-1, -1};
    enum dp_status st = DP_OK;
    struct dp_raw *raw = calloc(1, sizeof *raw);
    *out = NULL;
    if (raw) {
        raw->control = -1;
        raw->pool =
            (struct pool){.bytes = malloc(buffers * bytes_max), .each = bytes_max, .buffers = buffers};
    }
    if (!raw || !raw->pool.bytes || pipe(tell) != 0 || pipe(control) != 0) {
        st = dp_fail(err, DP_NOMEM, "no memory or pipes for raw sockets");
        goto done;
    }
    memset(raw->pool.bytes, 1, buffers * bytes_max);
    pid_t parent = getpid();
    raw->peer = fork();
    if (raw->peer == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(control[1]);
        (void)close(tell[0]);
        struct pool pool = raw->pool;
        free(raw);
        _exit(getppid() == parent ? be_peer(tell[1], control[0], at, &pool, pin) : 1);
    }
    if (raw->peer < 0) {
        raw->peer = 0;
        st = dp_fail(err, DP_NOMEM, "cannot start a peer for raw sockets: %s", strerror(errno));
        goto done;
    }
    raw->control = control[1];
    control[1] = -1;
    (void)close(tell[1]); /* else its end would never be seen */
    tell[1] = -1;
    st = hear_endpoint(raw, tell[0], err);
done:
    for (int i = 0; i < 2; i++) {
        if (tell[i] >= 0)
            (void)close(tell[i]);
        if (control[i] >= 0)
            (void)close(control[i]);
    }
    if (st != DP_OK)
        dp_raw_stop(&raw);
    *out = raw;
    return st;
}

long dp_raw_peer(const struct dp_raw *raw)
{
    return (long)raw->peer;
}

enum dp_status dp_raw_connect(struct dp_raw *raw, struct dp_error *err)
{
    enum dp_status st = dp_net_open(1, &raw->net, err);
    return st == DP_OK ? dp_connection_open(raw->net, raw->endpoint, &raw->connection, err) : st;
}

static void end_peer(struct dp_raw *raw)
{
    uint64_t until = dp_bench_now_ns() + END_MS * UINT64_C(1000000);
    while (dp_bench_now_ns() < until) {
        if (waitpid(raw->peer, NULL, WNOHANG) != 0)
            return;
        (void)poll(NULL, 0, 5);
    }
    (void)kill(raw->peer, SIGKILL);
    (void)waitpid(raw->peer, NULL, 0);
}

void dp_raw_stop(struct dp_raw **raw)
{
    struct dp_raw *r = *raw;
    *raw = NULL;
    if (!r)
        return;
    dp_connection_close(&r->connection);
    dp_net_close(&r->net);
    if (r->control >= 0)
        (void)close(r->control);
    if (r->peer > 0)
        end_peer(r);
    free(r->pool.bytes);
    free(r);
}

static enum dp_status issue(void *self, uint32_t slot, uint64_t n, struct dp_error *err)
{
    struct dp_raw *raw = self;
    const struct dp_raw_shape *shape = &raw->shapes[n % raw->count];
    uint64_t header[HEADER_BYTES / 8] = {shape->reply_bytes, n};
    unsigned char *bytes = buffer(&raw->pool, n);
    struct dp_message *message = dp_message_new(3);
    (void)slot;
    if (!message)
        return dp_fail(err, DP_NOMEM, "raw: no memory for a message");
    dp_message_add(message, (struct dp_frame){.data = header, .size = sizeof header});
    dp_message_add(message, lent(bytes, shape->keys_bytes));
    if (shape->values_bytes > 0)
        dp_message_add(message, lent(bytes + shape->keys_bytes, shape->values_bytes));
    enum dp_status st = dp_connection_send(raw->connection, &message, err);
    dp_message_free(&message);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "raw");
}

static enum dp_status finish(void *self, uint32_t slot, struct dp_error *err)
{
    struct dp_raw *raw = self;
    struct dp_message *message = NULL;
    uint64_t until = 0;
    (void)slot;
    while (!dp_connection_receive(raw->connection, &message)) {
        uint64_t now = dp_bench_now_ns();
        if (until == 0)
            until = now + DP_BENCH_WAIT_MS * UINT64_C(1000000);
        if (now >= until)
            return dp_fail(err, DP_TIMEOUT, "raw: no answer from the peer at %s in %u ms", raw->endpoint,
                           DP_BENCH_WAIT_MS);
        dp_connections_wait(&raw->connection, 1, LOOK_MS);
    }
    dp_message_free(&message);
    return DP_OK;
}

static uint64_t rows(const void *self, uint64_t n)
{
    const struct dp_raw *raw = self;
    return raw->shapes[n % raw->count].rows;
}

struct dp_load dp_raw_load(struct dp_raw *raw, const struct dp_raw_shape *shapes, uint32_t count)
{
    raw->shapes = shapes;
    raw->count = count;
    return (struct dp_load){.issue = issue, .finish = finish, .rows = rows, .self = raw};
}

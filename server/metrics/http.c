#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "server/metrics/http.h"

#include "common/env/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG   128
#define WAIT_MS   1000u
#define PATHS_MAX 8u
/* Above so many the oldest is closed. The others are for those that come before it has gone. */
#define EVICT_ABOVE (DP_HTTP_CONNECTIONS / 2)

struct connection {
    int fd; /* -1: none */
    uint64_t since_ms;
    bool closing;
};

struct cached {
    struct MHD_Response *response; /* NULL: none */
    unsigned status;
    uint64_t until_ms;
};

struct dp_http {
    struct dp_http_options options;
    struct MHD_Daemon *daemon;
    int poll_fd; /* the daemon's */
    struct dp_clock clock;
    struct connection connection[DP_HTTP_CONNECTIONS];
    struct cached cached[PATHS_MAX];
    char url[80];
};

static uint64_t now_ms(const struct dp_http *http)
{
    return dp_clock_ns(&http->clock) / 1000000u;
}

/* ---- connections */

/* Its end is seen in the next turn. */
static void end_connection(struct connection *connection)
{
    (void)shutdown(connection->fd, SHUT_RDWR);
    connection->closing = true;
}

static void evict(struct dp_http *http)
{
    struct connection *oldest = NULL;
    uint32_t open = 0;
    for (uint32_t i = 0; i < DP_HTTP_CONNECTIONS; i++) {
        struct connection *c = &http->connection[i];
        if (c->fd < 0 || c->closing)
            continue;
        open++;
        oldest = !oldest || c->since_ms < oldest->since_ms ? c : oldest;
    }
    if (open > EVICT_ABOVE)
        end_connection(oldest);
}

static void see_connection(void *context, struct MHD_Connection *of, void **place,
                           enum MHD_ConnectionNotificationCode what)
{
    struct dp_http *http = context;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(of, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*place)
            ((struct connection *)*place)->fd = -1;
        *place = NULL;
        return;
    }
    for (uint32_t i = 0; info && i < DP_HTTP_CONNECTIONS; i++) {
        if (http->connection[i].fd >= 0)
            continue;
        http->connection[i] = (struct connection){.fd = info->connect_fd, .since_ms = now_ms(http)};
        *place = &http->connection[i];
        break;
    }
    evict(http);
}

static void end_old(struct dp_http *http)
{
    uint64_t now = now_ms(http);
    for (uint32_t i = 0; i < DP_HTTP_CONNECTIONS; i++) {
        struct connection *c = &http->connection[i];
        if (c->fd >= 0 && !c->closing && now - c->since_ms > DP_HTTP_AGE_MS)
            end_connection(c);
    }
}

/* ---- answers */

static struct MHD_Response *response_of(struct dp_http_answer *answer)
{
    static const char none[] = "out of memory\n";
    struct MHD_Response *response =
        answer->body ? MHD_create_response_from_buffer(answer->size, answer->body, MHD_RESPMEM_MUST_FREE)
                     : MHD_create_response_from_buffer(sizeof none - 1, (void *)(uintptr_t)none,
                                                       MHD_RESPMEM_PERSISTENT);
    if (!response) {
        free(answer->body);
        return NULL;
    }
    if (!answer->body)
        answer->status = MHD_HTTP_SERVICE_UNAVAILABLE;
    (void)MHD_add_response_header(response, "Content-Type", answer->body ? answer->type : "text/plain");
    (void)MHD_add_response_header(response, "Connection", "close");
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "Content-Security-Policy",
                                  "default-src 'none'; style-src 'unsafe-inline'");
    return response;
}

static void drop(struct cached *cached)
{
    if (cached->response)
        MHD_destroy_response(cached->response); /* when the last client has it */
    *cached = (struct cached){0};
}

static struct cached *answer_of(struct dp_http *http, uint32_t path)
{
    struct cached *cached = &http->cached[path];
    struct dp_http_answer answer = {.status = MHD_HTTP_OK, .type = "text/plain"};
    if (cached->response && now_ms(http) < cached->until_ms)
        return cached;
    drop(cached);
    http->options.answer(http->options.context, path, &answer);
    cached->response = response_of(&answer);
    cached->status = answer.status;
    cached->until_ms = now_ms(http) + answer.fresh_ms;
    return cached;
}

static enum MHD_Result refuse(struct MHD_Connection *to, unsigned status, const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, "Content-Type", "text/plain");
    (void)MHD_add_response_header(response, "Connection", "close");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(to, status, response);
    MHD_destroy_response(response);
    return result;
}

/* At the first call the header is there; an answer then closes the connection without reading a body. */
static enum MHD_Result take_request(void *context, struct MHD_Connection *from, const char *path,
                                    const char *method, const char *version, const char *data, size_t *size,
                                    void **request)
{
    struct dp_http *http = context;
    (void)version, (void)data, (void)size, (void)request;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(from, MHD_HTTP_METHOD_NOT_ALLOWED, "this server answers GET and HEAD\n");
    for (uint32_t i = 0; http->options.path[i]; i++)
        if (strcmp(path, http->options.path[i]) == 0) {
            struct cached *answer = answer_of(http, i);
            return answer->response ? MHD_queue_response(from, answer->status, answer->response) : MHD_NO;
        }
    return refuse(from, MHD_HTTP_NOT_FOUND, "there are /, /metrics, /healthz and /readyz\n");
}

/* ---- open and close */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t address_of(const struct dp_metrics_address *from, union address *out)
{
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, from->host, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(from->port);
        return sizeof out->v4;
    }
    DP_ASSERT(inet_pton(AF_INET6, from->host, &out->v6.sin6_addr) == 1);
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons(from->port);
    return sizeof out->v6;
}

/* *fd < 0, errno: it cannot listen there. */
static void listen_once(union address *address, socklen_t *size, int *fd)
{
    int yes = 1;
    *fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(*fd, &address->any, *size) == 0 && listen(*fd, BACKLOG) == 0 &&
        getsockname(*fd, &address->any, size) == 0)
        return;
    int why = errno;
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = why;
}

static enum dp_status listen_at(struct dp_http *http, int *fd, struct dp_error *err)
{
    struct dp_metrics_address at = *http->options.address;
    const bool v6 = strchr(at.host, ':') != NULL;
    union address address;
    socklen_t size = address_of(&at, &address);
    listen_once(&address, &size, fd);
    while (*fd < 0 && errno == EADDRINUSE && at.more > 0) {
        at.more--;
        at.port++;
        size = address_of(&at, &address);
        listen_once(&address, &size, fd);
    }
    if (*fd < 0)
        return dp_fail(
            err, DP_IO,
            "metrics cannot be served at %s%s%s:%u: %s; choose another address or port ('metrics'), or "
            "leave it out",
            v6 ? "[" : "", at.host, v6 ? "]" : "", at.port, strerror(errno));
    (void)snprintf(http->url, sizeof http->url, "http://%s%s%s:%u", v6 ? "[" : "", at.host, v6 ? "]" : "",
                   ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port));
    return DP_OK;
}

static enum dp_status start_daemon(struct dp_http *http, int fd, struct dp_error *err)
{
    http->daemon =
        MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, take_request, http, MHD_OPTION_LISTEN_SOCKET, fd,
                         MHD_OPTION_CONNECTION_LIMIT, DP_HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)DP_HTTP_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, DP_HTTP_AGE_MS / 1000,
                         MHD_OPTION_NOTIFY_CONNECTION, see_connection, http, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info)
        return dp_fail(err, DP_IO, "metrics cannot be served at %s: libmicrohttpd cannot start", http->url);
    http->poll_fd = info->epoll_fd;
    return DP_OK;
}

enum dp_status dp_http_open(const struct dp_http_options *options, struct dp_http **out, struct dp_error *err)
{
    struct dp_http *http = calloc(1, sizeof *http);
    int fd = -1;
    if (!http)
        return dp_fail(err, DP_NOMEM, "no memory to serve metrics");
    http->options = *options;
    http->clock = dp_clock_real();
    for (uint32_t i = 0; i < DP_HTTP_CONNECTIONS; i++)
        http->connection[i].fd = -1;
    for (uint32_t i = 0; options->path[i]; i++)
        DP_ASSERT(i < PATHS_MAX);
    enum dp_status st = listen_at(http, &fd, err);
    if (st == DP_OK)
        st = start_daemon(http, fd, err);
    if (st != DP_OK) {
        if (fd >= 0)
            (void)close(fd);
        free(http);
        return st;
    }
    *out = http;
    return DP_OK;
}

void dp_http_close(struct dp_http **http)
{
    if (!*http)
        return;
    MHD_stop_daemon((*http)->daemon); /* closes the socket, too */
    for (uint32_t i = 0; i < PATHS_MAX; i++)
        drop(&(*http)->cached[i]);
    free(*http);
    *http = NULL;
}

const char *dp_http_url(const struct dp_http *http)
{
    return http->url;
}

void dp_http_turn(struct dp_http *http, int wake_fd)
{
    uint64_t count;
    MHD_UNSIGNED_LONG_LONG wait_ms = WAIT_MS;
    struct pollfd fds[2] = {{.fd = http->poll_fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
    if (MHD_get_timeout(http->daemon, &wait_ms) != MHD_YES || wait_ms > WAIT_MS)
        wait_ms = WAIT_MS;
    (void)poll(fds, 2, (int)wait_ms);
    if (fds[1].revents && read(wake_fd, &count, sizeof count) < 0)
        return; /* another turn comes */
    (void)MHD_run(http->daemon);
    end_old(http);
}

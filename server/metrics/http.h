/* HTTP: a small server for GET and HEAD; the only place that sees libmicrohttpd.
 *     open -> (wait -> answer ...) -> close
 * Promise   No bytes of a client end it, block it or make it grow. DP_HTTP_CONNECTIONS are open at once, each
 *           for one request of DP_HTTP_MEMORY bytes and for DP_HTTP_AGE_MS. Above half of them the oldest is
 *           closed, so clients that are slow, or many, keep no other out.
 *           Other methods get 405, a request's body is not read, and no answer waits for a client.
 * Thread    One thread uses a server, from open to close; `answer` is called on it.
 * Failure   DP_IO: the address cannot be had, with the cause. */
#ifndef DP_METRICS_HTTP_H
#define DP_METRICS_HTTP_H

#include "common/config/metrics_address.h"

#define DP_HTTP_CONNECTIONS 64u
#define DP_HTTP_MEMORY      16384u
#define DP_HTTP_AGE_MS      10000u

struct dp_http;

/* Of one path. The body is heap memory, which the callee takes over; NULL: no memory (503). */
struct dp_http_answer {
    unsigned status; /* 200, 503; 404 */
    const char *type;
    char *body;
    size_t size;
    uint32_t fresh_ms; /* the same answer serves this path again for so long */
};

struct dp_http_options {
    const struct dp_metrics_address *address;
    const char *const *path; /* ends with NULL; others are answered 404 */
    void (*answer)(void *context, uint32_t path, struct dp_http_answer *out);
    void *context;
};

enum dp_status dp_http_open(const struct dp_http_options *options, struct dp_http **out,
                            struct dp_error *err);
void dp_http_close(struct dp_http **http); /* accepts NULL inside */
/* "http://127.0.0.1:9600", with the port that it got. */
const char *dp_http_url(const struct dp_http *http);
/* Answers what has come, or waits for that, for wake_fd (an eventfd, which it reads) or a second. */
void dp_http_turn(struct dp_http *http, int wake_fd);

#endif

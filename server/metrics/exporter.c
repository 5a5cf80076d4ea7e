#define _GNU_SOURCE /* pthread_setname_np */
#include "server/metrics/exporter.h"

#include "common/base/log.h"
#include "server/metrics/documents.h"
#include "server/metrics/http.h"
#include "server/metrics/page.h"
#include "server/metrics/series.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FRESH_MS 100u /* scrapes more often get the last text again, whatever its size */

struct dp_exporter {
    struct dp_exporter_source source;
    struct dp_http *http;
    pthread_t thread;
    int wake_fd;
    atomic_bool stop;
};

static const struct {
    const char *type;
    struct dp_document (*answer)(const struct dp_exporter_source *source);
} answers[] = {
    {DP_SERIES_TYPE, dp_document_metrics},
    {"text/plain; charset=utf-8", dp_document_health},
    {"text/plain; charset=utf-8", dp_document_ready},
    {"text/html; charset=utf-8", dp_document_page},
};
static const char *const paths[] = {"/metrics", "/healthz", "/readyz", "/", NULL};

static void answer(void *context, uint32_t path, struct dp_http_answer *out)
{
    const struct dp_exporter *metrics = context;
    struct dp_document made = answers[path].answer(&metrics->source);
    *out = (struct dp_http_answer){.status = made.status,
                                   .type = answers[path].type,
                                   .body = made.body,
                                   .size = made.size,
                                   .fresh_ms = FRESH_MS};
}

static void *serve(void *arg)
{
    struct dp_exporter *metrics = arg;
    sigset_t pipe; /* a client that has left */
    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    DP_ASSERT(pthread_sigmask(SIG_BLOCK, &pipe, NULL) == 0);
    (void)pthread_setname_np(pthread_self(), "metrics");
    while (!atomic_load(&metrics->stop))
        dp_http_turn(metrics->http, metrics->wake_fd);
    return NULL;
}

static void metrics_free(struct dp_exporter **metrics)
{
    dp_http_close(&(*metrics)->http);
    if ((*metrics)->wake_fd >= 0)
        (void)close((*metrics)->wake_fd);
    free(*metrics);
    *metrics = NULL;
}

enum dp_status dp_exporter_start(const struct dp_metrics_address *address,
                                 const struct dp_exporter_source *source, struct dp_exporter **out,
                                 struct dp_error *err)
{
    struct dp_exporter *metrics = calloc(1, sizeof *metrics);
    if (!metrics)
        return dp_fail(err, DP_NOMEM, "no memory to serve metrics");
    const struct dp_http_options options = {
        .address = address, .path = paths, .answer = answer, .context = metrics};
    metrics->source = *source;
    metrics->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum dp_status st = metrics->wake_fd < 0
                            ? dp_fail(err, DP_IO, "cannot create the metrics thread's eventfd")
                            : dp_http_open(&options, &metrics->http, err);
    if (st == DP_OK && pthread_create(&metrics->thread, NULL, serve, metrics) != 0)
        st = dp_fail(err, DP_NOMEM, "cannot start the metrics thread");
    if (st != DP_OK) {
        metrics_free(&metrics);
        return st;
    }
    *out = metrics;
    return DP_OK;
}

void dp_exporter_stop(struct dp_exporter **metrics)
{
    uint64_t one = 1;
    if (!*metrics)
        return;
    atomic_store(&(*metrics)->stop, true);
    DP_ASSERT(write((*metrics)->wake_fd, &one, sizeof one) == sizeof one);
    DP_ASSERT(pthread_join((*metrics)->thread, NULL) == 0);
    metrics_free(metrics);
}

const char *dp_exporter_url(const struct dp_exporter *metrics)
{
    return dp_http_url(metrics->http);
}

#include "server/control/control.h"

#include "common/base/log.h"
#include "common/env/clock.h"
#include "server/control/board.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAIT_MS 1000u
/* A board's worth of notes each way, several times over: what peers send that is not taken yet, and answers that they do not read. */
#define WAITING_MAX ((uint64_t)4 * DP_BOARD_BYTES_MAX)
#define RECEIVE_MAX 64u /* messages before it looks whether it is to stop: a flood must not keep it */

struct dp_control {
    struct dp_control_options options;
    struct dp_listener *listener;
    struct dp_board *board;
    struct dp_clock clock;
    pthread_t thread;
    int wake_fd;
    atomic_bool stop;
    /* The handshake of start. */
    pthread_mutex_t lock;
    pthread_cond_t started_changed;
    bool started;
    enum dp_status started_status;
    struct dp_error started_error;
};

static void answer(struct dp_control *control, const struct dp_peer *to, const struct dp_request *request,
                   struct dp_reply *reply, struct dp_frame *frames, uint32_t frame_count)
{
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    reply->id = request->id;
    reply->session = request->session;
    reply->cluster = control->options.cluster;
    reply->generation = control->options.generation;
    if (dp_reply_encode(reply, frames, frame_count, &message, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "control: an answer was dropped: %s", err.text);
    else
        dp_listener_send(control->listener, to, &message);
}

static enum dp_status get_notes(struct dp_control *control, const struct dp_peer *to,
                                const struct dp_request *request, struct dp_error *err)
{
    const struct dp_note *note;
    uint32_t n = dp_board_find(control->board, request->name, &note);
    if (n >= DP_NOTES_MAX)
        return dp_fail(err, DP_INVALID,
                       "%" PRIu32 " notes start with '%s', an answer holds %u: ask for fewer", n,
                       request->name, DP_NOTES_MAX - 1);
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += note[i].size;
    if (bytes > 0 && !dp_listener_would_send(control->listener, to, bytes))
        return dp_fail(err, DP_AGAIN, "the answers that peers have not read yet are too many");
    struct dp_frame frames[DP_NOTES_MAX];
    char(*names)[DP_NOTE_NAME_MAX + 1] = calloc(n + 1, sizeof *names);
    if (!names)
        return dp_fail(err, DP_NOMEM, "names of %" PRIu32 " notes", n);
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s", note[i].name);
        frames[i] = dp_frame_copy(note[i].bytes, note[i].size);
        if (!frames[i].data) {
            while (i > 0)
                dp_frame_release(&frames[--i]);
            free(names);
            return dp_fail(err, DP_NOMEM, "%" PRIu32 " notes", n);
        }
    }
    struct dp_reply reply = {.kind = DP_REPLY_NOTES, .notes = n, .note = names};
    answer(control, to, request, &reply, frames, n);
    free(names);
    return DP_OK;
}

static void say_status(struct dp_control *control, const struct dp_peer *to, const struct dp_request *request)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    struct dp_reply reply = {.kind = DP_REPLY_STATUS};
    reply.report.counters = control->options.counters(control->options.context, counters);
    reply.report.counter = counters;
    answer(control, to, request, &reply, NULL, 0);
}

static enum dp_status check_cluster(const struct dp_control *control, const struct dp_request *request,
                                    struct dp_error *err)
{
    if (request->cluster == control->options.cluster && request->generation == control->options.generation)
        return DP_OK;
    return dp_fail(err, DP_GENERATION,
                   "this server belongs to cluster %016" PRIx64 " at generation %" PRIu64
                   ", the request names %016" PRIx64 " at %" PRIu64 ": the two read different cluster files",
                   control->options.cluster, control->options.generation, request->cluster,
                   request->generation);
}

static enum dp_status do_request(struct dp_control *control, const struct dp_peer *from,
                                 const struct dp_request *request, struct dp_error *err)
{
    enum dp_status st = check_cluster(control, request, err);
    if (st != DP_OK)
        return st;
    struct dp_reply reply = {.kind = DP_REPLY_WELCOME, .boot = control->options.boot, .window = 1};
    switch (request->kind) {
    case DP_REQUEST_HELLO:
        answer(control, from, request, &reply, NULL, 0);
        return DP_OK;
    case DP_REQUEST_STATUS:
        say_status(control, from, request);
        return DP_OK;
    case DP_REQUEST_NOTES_GET:
        return get_notes(control, from, request, err);
    case DP_REQUEST_NOTE_PUT:
        st = dp_board_put(control->board, dp_clock_ns(&control->clock), request->name, request->note,
                          request->note_bytes, err);
        reply.kind = DP_REPLY_NONE;
        if (st == DP_OK)
            answer(control, from, request, &reply, NULL, 0);
        return st;
    default:
        return dp_fail(err, DP_UNSUPPORTED, "this is a control socket: rows are behind the shards' sockets");
    }
}

static void do_message(struct dp_control *control, const struct dp_peer *from,
                       const struct dp_message *message)
{
    struct dp_request *request = calloc(1, sizeof *request);
    struct dp_error err = {0};
    if (!request)
        return; /* the client asks again */
    enum dp_status st = dp_request_decode(message, request, &err);
    if (st == DP_OK)
        st = do_request(control, from, request, &err);
    if (st != DP_OK && request->id != 0) {
        struct dp_reply reply = {.kind = DP_REPLY_NONE, .status = dp_status_answered(st)};
        (void)snprintf(reply.reason, sizeof reply.reason, "%s", err.text);
        answer(control, from, request, &reply, NULL, 0);
    }
    free(request);
}

static void say_started(struct dp_control *control, enum dp_status st, const struct dp_error *err)
{
    DP_ASSERT(pthread_mutex_lock(&control->lock) == 0);
    control->started = true;
    control->started_status = st;
    control->started_error = *err;
    DP_ASSERT(pthread_cond_signal(&control->started_changed) == 0);
    DP_ASSERT(pthread_mutex_unlock(&control->lock) == 0);
}

static void *serve(void *arg)
{
    struct dp_control *control = arg;
    struct dp_error err = {0};
    enum dp_status st =
        dp_listener_open(control->options.net, control->options.endpoint, &control->listener, &err);
    const struct dp_listener_limits limits = {.unsent_bytes = WAITING_MAX,
                                              .waiting_bytes = WAITING_MAX,
                                              .all_waiting_bytes = 2 * WAITING_MAX,
                                              .stall_ms = DP_STALL_MS};
    if (st == DP_OK)
        dp_listener_limit(control->listener, &limits);
    say_started(control, st, &err);
    while (st == DP_OK && !atomic_load(&control->stop)) {
        struct dp_peer from;
        struct dp_message *message = NULL;
        uint32_t n = 0;
        while (n++ < RECEIVE_MAX && dp_listener_receive(control->listener, &from, &message) == DP_OK) {
            do_message(control, &from, message);
            dp_message_free(&message);
        }
        if (n <= RECEIVE_MAX)
            dp_listener_wait(control->listener, control->wake_fd, WAIT_MS);
    }
    dp_listener_close(&control->listener);
    return NULL;
}

static void control_free(struct dp_control **control)
{
    dp_board_free(&(*control)->board);
    if ((*control)->wake_fd >= 0)
        (void)close((*control)->wake_fd);
    (void)pthread_cond_destroy(&(*control)->started_changed);
    (void)pthread_mutex_destroy(&(*control)->lock);
    free(*control);
    *control = NULL;
}

enum dp_status dp_control_start(const struct dp_control_options *options, struct dp_control **out,
                                struct dp_error *err)
{
    struct dp_control *control = calloc(1, sizeof *control);
    if (!control)
        return dp_fail(err, DP_NOMEM, "control thread");
    control->options = *options;
    control->clock = dp_clock_real();
    DP_ASSERT(pthread_mutex_init(&control->lock, NULL) == 0 &&
              pthread_cond_init(&control->started_changed, NULL) == 0);
    control->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum dp_status st = control->wake_fd < 0 ? dp_fail(err, DP_IO, "eventfd of the control thread") : DP_OK;
    if (st == DP_OK)
        st = dp_board_new(&control->board, err);
    if (st == DP_OK && pthread_create(&control->thread, NULL, serve, control) != 0)
        st = dp_fail(err, DP_NOMEM, "starting the control thread");
    if (st != DP_OK) {
        control_free(&control);
        return st;
    }
    DP_ASSERT(pthread_mutex_lock(&control->lock) == 0);
    while (!control->started) /* binding a socket does not wait for anybody */
        DP_ASSERT(pthread_cond_wait(&control->started_changed, &control->lock) == 0);
    DP_ASSERT(pthread_mutex_unlock(&control->lock) == 0);
    *out = control;
    if (control->started_status != DP_OK) {
        st = control->started_status;
        *err = control->started_error;
        dp_control_stop(out);
    }
    return st;
}

void dp_control_stop(struct dp_control **control)
{
    if (!*control)
        return;
    atomic_store(&(*control)->stop, true);
    uint64_t one = 1;
    DP_ASSERT(write((*control)->wake_fd, &one, sizeof one) == sizeof one);
    DP_ASSERT(pthread_join((*control)->thread, NULL) == 0);
    control_free(control);
}

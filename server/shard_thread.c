#define _GNU_SOURCE /* pthread_setname_np */
#include "server/shard_thread.h"

#include "common/base/deadline.h"
#include "common/base/log.h"
#include "server/shard_parts.h"
#include "server/store/rocks_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS     1000u
#define ROOM_MS     1000u /* before an opening that met a full disk is tried again; doubles up to ROOM_MAX_MS */
#define ROOM_MAX_MS 8000u
#define RECEIVE_MAX 64u /* messages taken in before a turn: bounds what a turn holds */

struct dp_shard_thread {
    struct dp_shard_thread_options options;
    char endpoint[512], directory[1280];
    struct dp_shard_parts parts;
    struct dp_listener *listener;
    pthread_t thread;
    int wake_fd;
    atomic_bool drain;
    atomic_bool parts_done; /* the opening has ended */
    atomic_int state;       /* enum dp_shard_thread_state */
    uint64_t opened_s;      /* since 1970; set before it serves */
    /* The handshake of start, and the end. */
    pthread_mutex_t lock;
    pthread_cond_t started_changed;
    bool started;
    enum dp_status started_status; /* under the lock, as what follows */
    struct dp_error lacks;         /* FULL: the opening waits for room, and this is what is missing */
    pthread_cond_t stop_changed;   /* parts.progress.stop was set */
    enum dp_status status;         /* the thread's, until it has ended */
    struct dp_error error;
};

static void wake(void *context)
{
    const struct dp_shard_thread *thread = context;
    uint64_t one = 1;
    if (write(thread->wake_fd, &one, sizeof one) < 0)
        return; /* the counter is full: it is awake */
}

static void send_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct dp_shard_thread *thread = context;
    dp_listener_send(thread->listener, to, message);
}

static bool may_reply(void *context, const struct dp_peer *to, uint64_t bytes)
{
    struct dp_shard_thread *thread = context;
    return dp_listener_would_send(thread->listener, to, bytes);
}

/* The socket is bound, or not. */
static void say_started(struct dp_shard_thread *thread, enum dp_status st)
{
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    thread->started = true;
    thread->started_status = st;
    DP_ASSERT(pthread_cond_signal(&thread->started_changed) == 0);
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
}

static void say_opened(struct dp_shard_thread *thread, enum dp_status st)
{
    thread->opened_s = (uint64_t)time(NULL);
    atomic_store(&thread->state, st == DP_OK ? DP_SHARD_THREAD_SERVES : DP_SHARD_THREAD_FAILED);
    thread->options.opened(thread->options.opened_context);
}

/* ---- opening: on a thread of its own, while this one answers */

static void stop_opening(struct dp_shard_thread *thread)
{
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    atomic_store(&thread->parts.progress.stop, true);
    DP_ASSERT(pthread_cond_signal(&thread->stop_changed) == 0);
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
}

/* Says what is missing until it is tried again. False: it is to stop. */
static bool wait_for_room(struct dp_shard_thread *thread, const struct dp_error *why, uint32_t pause_ms)
{
    struct timespec until = dp_deadline_in_ms(pause_ms);
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    if (thread->lacks.status == DP_OK)
        dp_log(DP_LOG_ERROR, "shard %" PRIu32 " cannot open: %s; retrying at least every %u s",
               thread->options.index, why->text, ROOM_MAX_MS / 1000);
    thread->lacks = *why;
    atomic_store(&thread->parts.progress.phase, DP_SHARD_OPENING);
    int waited = 0;
    while (!atomic_load(&thread->parts.progress.stop) && waited == 0)
        waited = pthread_cond_timedwait(&thread->stop_changed, &thread->lock, &until);
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
    return !atomic_load(&thread->parts.progress.stop);
}

/* A full disk ends no server: a server that a supervisor started again after a kill would otherwise fail the
 * clients that wait for it. Each try starts from the beginning, as a new start would. */
static void *open_parts(void *arg)
{
    struct dp_shard_thread *thread = arg;
    struct dp_shard_parts_options options = {.thread = &thread->options,
                                             .directory = thread->directory,
                                             .wake = wake,
                                             .reply = send_reply,
                                             .may_reply = may_reply,
                                             .context = thread};
    uint32_t pause_ms = ROOM_MS;
    while ((thread->status = dp_shard_parts_open(&thread->parts, &options, &thread->error)) == DP_FULL) {
        dp_shard_parts_close(&thread->parts);
        if (!wait_for_room(thread, &thread->error, pause_ms)) {
            thread->status = dp_wrap(&thread->error, DP_STOPPING, "stopped while waiting for disk space");
            break;
        }
        pause_ms = pause_ms < ROOM_MAX_MS ? 2 * pause_ms : ROOM_MAX_MS;
    }
    atomic_store(&thread->parts_done, true);
    wake(thread);
    return NULL;
}

static void refuse(struct dp_shard_thread *thread, const struct dp_peer *to, const struct dp_message *message)
{
    struct dp_request *request = calloc(1, sizeof *request);
    struct dp_error err = {0};
    if (!request)
        return; /* the client asks again */
    /* It is validated once there are tables. */
    bool answerable = dp_request_decode(message, request, &err) == DP_OK || request->id != 0;
    if (answerable) {
        struct dp_reply reply = {.kind = DP_REPLY_NONE,
                                 .id = request->id,
                                 .session = request->session,
                                 .cluster = thread->options.cluster,
                                 .status = DP_AGAIN};
        struct dp_message *answer = NULL;
        dp_shard_thread_say(thread, &err);
        (void)snprintf(reply.reason, sizeof reply.reason, "%s", err.text);
        reply.wait = err.wait;
        if (dp_reply_encode(&reply, NULL, 0, &answer, &err) == DP_OK)
            dp_listener_send(thread->listener, to, &answer);
    }
    free(request);
}

static void wait_for_input(struct dp_shard_thread *thread, uint32_t wait_ms)
{
    uint64_t count;
    dp_listener_wait(thread->listener, thread->wake_fd, wait_ms < WAIT_MS ? wait_ms : WAIT_MS);
    if (read(thread->wake_fd, &count, sizeof count) < 0)
        return; /* nothing there: it was a message, or the time */
}

static void refuse_until_opened(struct dp_shard_thread *thread)
{
    while (!atomic_load(&thread->parts_done)) {
        struct dp_peer from;
        struct dp_message *message = NULL;
        if (atomic_load(&thread->drain))
            stop_opening(thread);
        if (dp_listener_receive(thread->listener, &from, &message)) {
            refuse(thread, &from, message);
            dp_message_free(&message);
        } else {
            wait_for_input(thread, WAIT_MS);
        }
    }
}

static enum dp_status start_opening(struct dp_shard_thread *thread, pthread_t *opening)
{
    atomic_store(&thread->parts_done, false);
    return pthread_create(opening, NULL, open_parts, thread) == 0
               ? DP_OK
               : dp_fail(&thread->error, DP_NOMEM, "starting the thread that opens shard %" PRIu32,
                         thread->options.index);
}

static enum dp_status end_opening(struct dp_shard_thread *thread, pthread_t opening)
{
    refuse_until_opened(thread);
    DP_ASSERT(pthread_join(opening, NULL) == 0);
    return thread->status;
}

/* The socket first: a second server on this port must not touch the store. */
static enum dp_status open_all(struct dp_shard_thread *thread)
{
    pthread_t opening;
    enum dp_status st =
        dp_listener_open(thread->options.net, thread->endpoint, &thread->listener, &thread->error);
    if (st == DP_OK) /* a port that the kernel chose */
        (void)snprintf(thread->endpoint, sizeof thread->endpoint, "%s",
                       dp_listener_endpoint(thread->listener));
    if (st == DP_OK)
        st = start_opening(thread, &opening);
    say_started(thread, st);
    return st == DP_OK ? end_opening(thread, opening) : st;
}

/* ---- serving */

static void receive_some(struct dp_shard_thread *thread, bool *more)
{
    struct dp_peer from;
    struct dp_message *message = NULL;
    uint32_t n = 0;
    while (n < RECEIVE_MAX && dp_listener_receive(thread->listener, &from, &message)) {
        dp_shard_receive(thread->parts.shard, &from, &message);
        n++;
    }
    *more = n == RECEIVE_MAX;
}

/* Serves until it is asked to drain, and has drained. */
static enum dp_status turn_until_drained(struct dp_shard_thread *thread, struct dp_error *err)
{
    enum dp_status st = DP_AGAIN;
    bool draining = false;
    while (st == DP_AGAIN) {
        bool more_messages, more_work;
        if (!draining && atomic_load(&thread->drain)) {
            draining = true;
            dp_shard_drain(thread->parts.shard);
        }
        receive_some(thread, &more_messages);
        more_work = dp_shard_turn(thread->parts.shard);
        if (draining)
            st = dp_shard_drained(thread->parts.shard, err);
        if (st == DP_AGAIN && !more_messages && !more_work)
            wait_for_input(thread, dp_shard_rest_ms(thread->parts.shard));
    }
    return st;
}

/* The journal last, on purpose: a crash above leaves one that the store does not need. */
static enum dp_status end_cleanly(struct dp_shard_thread *thread)
{
    struct dp_error left = {0};
    if (dp_shard_keeps_journal(thread->parts.shard)) {
        dp_log(
            DP_LOG_INFO,
            "shard %" PRIu32
            " stopped within a synchronous step: its journal keeps the pushes, and the next start replays it",
            thread->options.index);
        return DP_OK;
    }
    enum dp_status st = dp_rocks_store_mark_clean(&thread->parts.store, &thread->error);
    if (st == DP_OK && dp_shard_end_journal(thread->parts.shard, &left) != DP_OK)
        dp_log(DP_LOG_WARN,
               "%s: the journal's segments could not be removed, though the store has all their pushes; the "
               "next start removes them",
               left.text);
    return st;
}

/* No thread reads its counters from here on. */
static void close_parts(struct dp_shard_thread *thread)
{
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    if (dp_shard_thread_state(thread) == DP_SHARD_THREAD_SERVES)
        atomic_store(&thread->state, DP_SHARD_THREAD_OPENS);
    thread->lacks = (struct dp_error){0};
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
    dp_shard_parts_close(&thread->parts);
}

static void *serve(void *arg)
{
    struct dp_shard_thread *thread = arg;
    enum dp_status st = open_all(thread);
    /* For top and taskset; only now: the threads that were made in there would inherit it. */
    char name[16];
    (void)snprintf(name, sizeof name, "shard %" PRIu32, thread->options.index % 1000000);
    (void)pthread_setname_np(pthread_self(), name);
    if (thread->started_status == DP_OK)
        say_opened(thread, st);
    if (st == DP_OK)
        st = turn_until_drained(thread, &thread->error);
    /* The shard first: what it holds is in the store by now, or is named in the error. */
    if (st == DP_OK && !thread->options.read_only)
        st = end_cleanly(thread);
    close_parts(thread);
    dp_listener_close(&thread->listener);
    thread->status = st; /* read after the join */
    return NULL;
}

static void thread_free(struct dp_shard_thread **thread)
{
    if ((*thread)->wake_fd >= 0)
        (void)close((*thread)->wake_fd);
    (void)pthread_cond_destroy(&(*thread)->stop_changed);
    (void)pthread_cond_destroy(&(*thread)->started_changed);
    (void)pthread_mutex_destroy(&(*thread)->lock);
    free(*thread);
    *thread = NULL;
}

enum dp_status dp_shard_thread_start(const struct dp_shard_thread_options *options,
                                     struct dp_shard_thread **out, struct dp_error *err)
{
    struct dp_shard_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return dp_fail(err, DP_NOMEM, "thread of shard %" PRIu32, options->index);
    thread->options = *options;
    (void)snprintf(thread->endpoint, sizeof thread->endpoint, "%s", options->endpoint);
    (void)snprintf(thread->directory, sizeof thread->directory, "%s", options->directory);
    pthread_condattr_t monotonic;
    DP_ASSERT(pthread_condattr_init(&monotonic) == 0 &&
              pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    DP_ASSERT(pthread_mutex_init(&thread->lock, NULL) == 0 &&
              pthread_cond_init(&thread->started_changed, NULL) == 0 &&
              pthread_cond_init(&thread->stop_changed, &monotonic) == 0);
    DP_ASSERT(pthread_condattr_destroy(&monotonic) == 0);
    atomic_store(&thread->state, DP_SHARD_THREAD_OPENS);
    thread->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->wake_fd < 0 || pthread_create(&thread->thread, NULL, serve, thread) != 0) {
        thread_free(&thread);
        return dp_fail(err, DP_NOMEM, "starting the thread of shard %" PRIu32, options->index);
    }
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    while (!thread->started)
        DP_ASSERT(pthread_cond_wait(&thread->started_changed, &thread->lock) == 0);
    enum dp_status st = thread->started_status;
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
    if (st != DP_OK)
        return dp_shard_thread_join(&thread, err);
    *out = thread;
    return DP_OK;
}

const char *dp_shard_thread_endpoint(const struct dp_shard_thread *thread)
{
    return thread->endpoint;
}

void dp_shard_thread_drain(struct dp_shard_thread *thread)
{
    atomic_store(&thread->drain, true);
    wake(thread);
}

enum dp_status dp_shard_thread_join(struct dp_shard_thread **thread, struct dp_error *err)
{
    DP_ASSERT(pthread_join((*thread)->thread, NULL) == 0);
    enum dp_status st = (*thread)->status;
    if (st != DP_OK)
        *err = (*thread)->error;
    thread_free(thread);
    return st;
}

enum dp_shard_thread_state dp_shard_thread_state(const struct dp_shard_thread *thread)
{
    return (enum dp_shard_thread_state)atomic_load(&thread->state);
}

void dp_shard_thread_say(struct dp_shard_thread *thread, struct dp_error *text)
{
    bool replays = atomic_load(&thread->parts.progress.phase) != DP_SHARD_OPENING;
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    struct dp_error lacks = thread->lacks;
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
    if (lacks.status == DP_OK || replays)
        dp_shard_parts_say(&thread->parts, &thread->options, text);
    else
        (void)dp_fail_wait(text, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_DISK},
                           "shard %" PRIu32 " waits for room: %s", thread->options.index, lacks.text);
}

uint32_t dp_shard_thread_counters(struct dp_shard_thread *thread, struct dp_counter counters[DP_COUNTERS_MAX])
{
    uint32_t n = 0;
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    if (dp_shard_thread_state(thread) == DP_SHARD_THREAD_SERVES)
        n = dp_shard_counters(thread->parts.shard, counters);
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
    return n;
}

uint64_t dp_shard_thread_observe(struct dp_shard_thread *thread, struct dp_shard_observed *out)
{
    uint64_t since_s = 0;
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    if (dp_shard_thread_state(thread) == DP_SHARD_THREAD_SERVES) {
        dp_shard_observe(thread->parts.shard, out);
        since_s = thread->opened_s;
    }
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
    return since_s;
}

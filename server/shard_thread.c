#define _GNU_SOURCE /* pthread_setname_np */
#include "server/shard_thread.h"

#include "common/base/log.h"
#include "server/shard/shard.h"
#include "server/store/rocks_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS     1000u
#define RECEIVE_MAX 64u /* messages taken in before a turn: bounds what a turn holds */

struct dp_shard_thread {
    struct dp_shard_thread_options options;
    char endpoint[512], directory[1280];
    struct dp_store store;
    struct dp_disk disk; /* the journal's */
    struct dp_shard *shard;
    struct dp_listener *listener;
    pthread_t thread;
    int wake_fd;
    atomic_bool drain;
    /* The handshake of start, and the end. */
    pthread_mutex_t lock;
    pthread_cond_t started_changed;
    bool started;
    enum dp_status started_status; /* under the lock */
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

/* Other shards and live clients may know streams of a store that was thrown away: wall-clock seconds, shifted, are
 * above all that it gave (a million a second). */
static uint64_t first_stream(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec << 20;
}

/* A journal has room for many segments, so that some can be free while others wait for rows to be written back. */
static uint64_t segment_bytes(uint64_t budget_bytes)
{
    uint64_t bytes = budget_bytes / 8;
    bytes -= bytes % 4096; /* whole pages, whatever the budget */
    return bytes < (256u << 20) ? bytes : 256u << 20;
}

static void say_recovered(const struct dp_shard_thread *thread, uint64_t took_ns)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    uint64_t pushes = 0, rows = 0;
    uint32_t n = dp_shard_counters(thread->shard, counters);
    for (uint32_t i = 0; i < n; i++) {
        pushes = strcmp(counters[i].name, "pushes_replayed") == 0 ? counters[i].value : pushes;
        rows = strcmp(counters[i].name, "rows_read") == 0 ? counters[i].value : rows;
    }
    dp_log(DP_LOG_INFO,
           "shard %" PRIu32 " was not closed cleanly: recovered %" PRIu64 " rows of the store and %" PRIu64
           " pushes of the journal in %.3f s",
           thread->options.index, rows, pushes, (double)took_ns / 1e9);
}

static enum dp_status open_all(struct dp_shard_thread *thread, struct dp_error *err)
{
    const struct dp_shard_thread_options *o = &thread->options;
    /* The socket first: a second server on this port must not touch the store. */
    bool recovers = false;
    enum dp_status st = dp_listener_open(o->net, thread->endpoint, &thread->listener, err);
    if (st != DP_OK)
        return st;
    struct dp_rocks_store_options store = {.directory = thread->directory,
                                           .cluster = o->cluster,
                                           .generation = o->generation,
                                           .range = dp_range_of_shard(o->index, o->shards),
                                           .journaled = o->journal.journaled,
                                           .recovers = &recovers,
                                           .wake = wake,
                                           .wake_context = thread};
    st = dp_rocks_store_open(&store, &thread->store, err);
    if (st != DP_OK)
        return st;
    if (o->journal.journaled) {
        char directory[sizeof thread->directory + 16];
        (void)snprintf(directory, sizeof directory, "%s/journal", thread->directory);
        st = dp_disk_open(directory, &thread->disk, err);
        if (st != DP_OK)
            return st;
    }
    struct dp_shard_options shard = {
        .index = o->index,
        .shards = o->shards,
        .cluster = o->cluster,
        .generation = o->generation,
        .boot = o->boot,
        .first_stream = first_stream(),
        .cache_bytes = o->cache_bytes,
        .salt = o->salt,
        .store = &thread->store,
        .journaled = o->journal.journaled,
        .recovers = recovers,
        .journal = {.disk = &thread->disk,
                    .durability = o->journal.synced ? DP_DURABILITY_MACHINE : DP_DURABILITY_PROCESS,
                    .budget_bytes = o->journal.budget_bytes,
                    .segment_bytes = segment_bytes(o->journal.budget_bytes),
                    .commit_thread = true,
                    .wake = wake,
                    .wake_context = thread},
        .clock = dp_clock_real(),
        .reply = send_reply,
        .reply_context = thread};
    uint64_t began_ns = dp_clock_ns(&shard.clock);
    st = dp_shard_open(&shard, &thread->shard, err);
    if (st != DP_OK && !recovers) {
        /* Nothing was changed: what was clean stays clean. */
        struct dp_error ignored;
        if (dp_rocks_store_mark_clean(&thread->store, &ignored) != DP_OK)
            return dp_wrap(err, st, "and the store could not be marked clean again");
    }
    if (st == DP_OK && recovers)
        say_recovered(thread, dp_clock_ns(&shard.clock) - began_ns);
    return st;
}

static void say_started(struct dp_shard_thread *thread, enum dp_status st)
{
    DP_ASSERT(pthread_mutex_lock(&thread->lock) == 0);
    thread->started = true;
    thread->started_status = st;
    DP_ASSERT(pthread_cond_signal(&thread->started_changed) == 0);
    DP_ASSERT(pthread_mutex_unlock(&thread->lock) == 0);
}

static void receive_some(struct dp_shard_thread *thread, bool *more)
{
    struct dp_peer from;
    struct dp_message *message = NULL;
    uint32_t n = 0;
    while (n < RECEIVE_MAX && dp_listener_receive(thread->listener, &from, &message) == DP_OK) {
        dp_shard_receive(thread->shard, &from, &message);
        n++;
    }
    *more = n == RECEIVE_MAX;
}

/* Serves until it was told to drain and has drained. */
static enum dp_status turn_until_drained(struct dp_shard_thread *thread, struct dp_error *err)
{
    enum dp_status st = DP_AGAIN;
    bool draining = false;
    while (st == DP_AGAIN) {
        bool more_messages, more_work;
        if (!draining && atomic_load(&thread->drain)) {
            draining = true;
            dp_shard_drain(thread->shard);
        }
        receive_some(thread, &more_messages);
        more_work = dp_shard_turn(thread->shard);
        if (draining)
            st = dp_shard_drained(thread->shard, err);
        if (st == DP_AGAIN && !more_messages && !more_work) {
            dp_listener_wait(thread->listener, thread->wake_fd, WAIT_MS);
            uint64_t count;
            if (read(thread->wake_fd, &count, sizeof count) < 0)
                count = 0; /* nothing there: it was a message, or the time */
        }
    }
    return st;
}

static void *serve(void *arg)
{
    struct dp_shard_thread *thread = arg;
    enum dp_status st = open_all(thread, &thread->error);
    /* For top and taskset; only now: the threads that were made in there would inherit it. */
    char name[16];
    (void)snprintf(name, sizeof name, "shard %" PRIu32, thread->options.index % 1000000);
    (void)pthread_setname_np(pthread_self(), name);
    bool serving = st == DP_OK;
    say_started(thread, st);
    if (serving) {
        st = turn_until_drained(thread, &thread->error);
        /* The shard first: what it holds is in the store by now, or is named in the error. */
        if (st == DP_OK)
            st = dp_rocks_store_mark_clean(&thread->store, &thread->error);
    }
    dp_shard_close(&thread->shard);
    if (thread->store.close)
        thread->store.close(thread->store.self);
    if (thread->disk.self)
        dp_disk_close(&thread->disk);
    dp_listener_close(&thread->listener);
    thread->status = st; /* read after the join */
    return NULL;
}

static void thread_free(struct dp_shard_thread **thread)
{
    if ((*thread)->wake_fd >= 0)
        (void)close((*thread)->wake_fd);
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
    DP_ASSERT(pthread_mutex_init(&thread->lock, NULL) == 0 &&
              pthread_cond_init(&thread->started_changed, NULL) == 0);
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

uint32_t dp_shard_thread_counters(const struct dp_shard_thread *thread,
                                  struct dp_counter counters[DP_COUNTERS_MAX])
{
    return dp_shard_counters(thread->shard, counters);
}

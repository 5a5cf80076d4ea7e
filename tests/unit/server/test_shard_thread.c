/* A shard's thread while its shard opens: it answers, and it stops.
 * Method    The opening of the store waits at its gate (store_id.h) until the test lets it through.
 *           Requests go over a real socket, opened anew for each thread: what is sent to one that has gone is lost. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "tests/lib/test.h"

#include "common/base/deadline.h"
#include "common/env/directory.h"
#include "common/model/stream.h"
#include "common/wire/request.h"
#include "common/wire/view.h"
#include "server/shard_parts.h"
#include "server/shard_thread.h"
#include "server/store/rocks_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 60000u

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut, full, asked;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static enum dp_status admit(void *context, const struct dp_store_id *found, bool is_new,
                            struct dp_store_id *put, struct dp_error *err)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.asked = true;
    (void)pthread_cond_broadcast(&gate.changed);
    while (gate.shut)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    bool full = gate.full;
    (void)pthread_mutex_unlock(&gate.lock);
    return full ? dp_fail(err, DP_FULL, "its disk has 7 KiB left") : DP_OK;
}

static enum dp_status entered(void *context, const struct dp_store_id *id, struct dp_error *err)
{
    return DP_OK;
}

static const struct dp_store_gate store_gate = {.admit = admit, .entered = entered};

static void set_gate(bool shut)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.shut = shut;
    gate.asked = gate.asked && !shut;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static void await_asked(void)
{
    (void)pthread_mutex_lock(&gate.lock);
    while (!gate.asked)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
}

static void set_full(bool full)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.full = full;
    (void)pthread_mutex_unlock(&gate.lock);
}

struct scene {
    char directory[200], endpoint[300];
    struct dp_net *net;
    struct dp_shard_thread *thread;
    struct dp_connection *connection;
    uint64_t next_id;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t opened;
};

static void note_opened(void *context)
{
    struct scene *s = context;
    (void)pthread_mutex_lock(&s->lock);
    s->opened++;
    (void)pthread_cond_signal(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

static void await_opened(struct scene *s)
{
    struct timespec until = dp_deadline_in_ms(WAIT_MS);
    int late = 0;
    (void)pthread_mutex_lock(&s->lock);
    while (s->opened == 0 && late == 0)
        late = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    s->opened = 0;
    (void)pthread_mutex_unlock(&s->lock);
    assert_int_equal(late, 0);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct dp_error err;
    pthread_condattr_t monotonic;
    const char *above = getenv("TMPDIR");
    if (!s)
        return -1;
    (void)snprintf(s->directory, sizeof s->directory, "%.150s/dp_thread_XXXXXX", above ? above : "/tmp");
    if (!mkdtemp(s->directory) || dp_net_open(1, &s->net, &err) != DP_OK)
        return -1;
    (void)snprintf(s->endpoint, sizeof s->endpoint, "ipc://%s/socket", s->directory);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    *state = s;
    return 0;
}

static void start(struct scene *s)
{
    struct dp_error err;
    char store[260];
    (void)snprintf(store, sizeof store, "%s/store", s->directory);
    struct dp_shard_thread_options options = {
        .net = s->net,
        .endpoint = s->endpoint,
        .directory = store,
        .index = 0,
        .shards = 1,
        .cluster = 7,
        .boot = 9,
        .cache_bytes = 64u << 20,
        .journal = {.journaled = true, .synced = true, .budget_bytes = 16u << 20},
        .salt = 3,
        .gate = &store_gate,
        .opened = note_opened,
        .opened_context = s};
    if (dp_shard_thread_start(&options, &s->thread, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_connection_close(&s->connection);
    assert_int_equal(dp_connection_open(s->net, s->endpoint, &s->connection, &err), DP_OK);
}

static enum dp_status stop(struct scene *s)
{
    struct dp_error err = {0};
    dp_shard_thread_drain(s->thread);
    return dp_shard_thread_join(&s->thread, &err);
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    set_gate(false);
    set_full(false);
    if (s->thread)
        (void)stop(s); /* its test has failed */
    dp_connection_close(&s->connection);
    dp_net_close(&s->net);
    assert_int_equal(dp_directory_remove(s->directory, true, 0, NULL), DP_OK);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
    return 0;
}

/* The store is there, closed cleanly; whoever opens it waits. */
static void stand_in_the_way(struct scene *s)
{
    start(s);
    await_opened(s);
    assert_int_equal(stop(s), DP_OK);
    set_gate(true);
}

static void send_request(struct scene *s, struct dp_request *request, struct dp_frame *frame)
{
    struct dp_error err;
    struct dp_message *message = NULL;
    request->id = ++s->next_id;
    request->cluster = 7;
    request->generation = 1;
    request->session = 5;
    assert_int_equal(dp_request_encode(request, frame, frame ? 1 : 0, &message, &err), DP_OK);
    assert_int_equal(dp_connection_send(s->connection, &message, &err), DP_OK);
}

/* The next reply, which is to the last request. */
static struct dp_reply take_reply(struct scene *s)
{
    struct dp_error err;
    struct dp_message *answer = NULL;
    struct dp_reply reply = {0};
    for (uint32_t waits = 0; !dp_connection_receive(s->connection, &answer); waits++) {
        assert_true(waits < 60);
        dp_connections_wait(&s->connection, 1, 1000);
    }
    assert_int_equal(dp_reply_decode(answer, &reply, &err), DP_OK);
    dp_message_free(&answer);
    assert_int_equal(reply.id, s->next_id);
    dp_reply_clear(&reply);
    return reply;
}

static struct dp_reply ask(struct scene *s, enum dp_request_kind kind)
{
    struct dp_request *request = calloc(1, sizeof *request);
    assert_non_null(request);
    *request = (struct dp_request){.kind = kind, .next_sequence = 1, .timeout_ms = 1000, .client = "test"};
    send_request(s, request, NULL);
    free(request);
    return take_reply(s);
}

static void a_shard_that_opens_says_so(void **state)
{
    struct scene *s = *state;
    static const enum dp_request_kind kinds[] = {DP_REQUEST_HELLO, DP_REQUEST_STATUS};
    struct dp_counter counters[DP_COUNTERS_MAX];
    stand_in_the_way(s);
    start(s);
    await_asked();
    for (uint32_t i = 0; i < 2; i++) {
        struct dp_reply reply = ask(s, kinds[i]);
        assert_int_equal(reply.status, DP_AGAIN);
        assert_int_equal(reply.cluster, 7);
        assert_int_equal(reply.session, 5);
        assert_string_equal(reply.reason,
                            "shard 0 waits for the first server, which is asked whether this is its store");
        assert_int_equal(reply.wait.reason, DP_WAIT_REGISTER);
    }
    assert_int_equal(dp_shard_thread_state(s->thread), DP_SHARD_THREAD_OPENS);
    assert_int_equal(dp_shard_thread_counters(s->thread, counters), 0);
    set_gate(false);
    await_opened(s);
    assert_int_equal(dp_shard_thread_state(s->thread), DP_SHARD_THREAD_SERVES);
    assert_true(dp_shard_thread_counters(s->thread, counters) > 0);
    assert_int_equal(ask(s, DP_REQUEST_HELLO).status, DP_OK);
    assert_int_equal(stop(s), DP_OK);
}

static void a_shard_that_opens_is_stopped(void **state)
{
    struct scene *s = *state;
    stand_in_the_way(s);
    start(s);
    assert_int_equal(ask(s, DP_REQUEST_HELLO).status, DP_AGAIN);
    dp_shard_thread_drain(s->thread);
    /* Answered by the turn that saw the drain, or by a later one. */
    assert_int_equal(ask(s, DP_REQUEST_HELLO).status, DP_AGAIN);
    set_gate(false);
    await_opened(s);
    assert_int_equal(dp_shard_thread_state(s->thread), DP_SHARD_THREAD_FAILED);
    assert_int_equal(stop(s), DP_STOPPING);
    start(s); /* what was clean is clean */
    await_opened(s);
    assert_int_equal(ask(s, DP_REQUEST_HELLO).status, DP_OK);
    assert_int_equal(stop(s), DP_OK);
}

/* A file in the journal's way: told by join; the store, which was clean, is clean again. */
static void a_shard_that_cannot_open_tells_why(void **state)
{
    struct scene *s = *state;
    struct dp_error err = {0};
    char journal[300], aside[300];
    (void)snprintf(journal, sizeof journal, "%s/store/journal", s->directory);
    (void)snprintf(aside, sizeof aside, "%s/aside", s->directory);
    start(s);
    await_opened(s);
    assert_int_equal(stop(s), DP_OK);
    assert_int_equal(rename(journal, aside), 0);
    FILE *file = fopen(journal, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    start(s);
    await_opened(s);
    assert_int_equal(dp_shard_thread_state(s->thread), DP_SHARD_THREAD_FAILED);
    assert_int_equal(dp_shard_thread_join(&s->thread, &err), DP_IO);
    assert_non_null(strstr(err.text, journal));
    assert_int_equal(unlink(journal), 0);
    start(s); /* without the old journal: a store that is clean needs none */
    await_opened(s);
    assert_int_equal(ask(s, DP_REQUEST_HELLO).status, DP_OK);
    assert_int_equal(stop(s), DP_OK);
}

/* Until the server says that it waits for room. */
static void await_want(struct scene *s)
{
    struct timespec until = dp_deadline_in_ms(WAIT_MS), now;
    struct dp_reply reply;
    do {
        reply = ask(s, DP_REQUEST_HELLO);
        assert_int_equal(reply.status, DP_AGAIN);
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec <= until.tv_sec);
    } while (strcmp(reply.reason, "shard 0 waits for room: its disk has 7 KiB left") != 0);
    assert_int_equal(reply.wait.reason, DP_WAIT_DISK);
}

/* A disk that is full at the opening: it is tried again, who asks hears what is missing, and a stop ends the wait. */
static void a_shard_that_lacks_room_opens_when_there_is_some(void **state)
{
    struct scene *s = *state;
    set_full(true);
    start(s);
    await_want(s);
    assert_int_equal(dp_shard_thread_state(s->thread), DP_SHARD_THREAD_OPENS);
    assert_int_equal(stop(s), DP_STOPPING);
    s->opened = 0;
    start(s);
    await_want(s);
    set_full(false);
    await_opened(s);
    assert_int_equal(ask(s, DP_REQUEST_HELLO).status, DP_OK);
    assert_int_equal(stop(s), DP_OK);
}

/* Until its record is durable the shard says AGAIN. */
static void put_view(struct scene *s, const struct dp_view *view, struct dp_request *request)
{
    struct dp_reply reply = {.status = DP_AGAIN};
    request->kind = DP_REQUEST_VIEW_PUT;
    request->timeout_ms = 600000;
    while (reply.status == DP_AGAIN) {
        struct dp_frame frame = dp_frame_new(dp_view_bytes(view));
        dp_view_pack(view, frame.data);
        send_request(s, request, &frame);
        reply = take_reply(s);
    }
    assert_int_equal(reply.kind, DP_REPLY_VIEW);
}

/* Its thread wakes for that alone: nothing else comes, and it would sleep for a second. */
static void who_is_held_hears_so_while_nothing_else_comes(void **state)
{
    struct scene *s = *state;
    struct dp_member members[2] = {{.incarnation = 1, .until = UINT64_MAX}, {.until = UINT64_MAX}};
    const struct dp_view view = {.run = 1, .number = 1, .mode = DP_SSP, .members = 2, .member = members};
    struct dp_request *request = calloc(1, sizeof *request);
    struct timespec start_at, now;
    assert_non_null(request);
    start(s);
    await_opened(s);
    assert_int_equal(ask(s, DP_REQUEST_HELLO).status, DP_OK);
    put_view(s, &view, request);
    request->kind = DP_REQUEST_PULL;
    request->sequence = 1;
    request->member = (struct dp_membership){.given = true, .run = 1, .view = 1, .incarnation = 1, .step = 1};
    send_request(s, request, NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &start_at);
    for (uint32_t heard = 0; heard < 7; heard++) {
        const struct dp_reply reply = take_reply(s);
        assert_true(reply.status == DP_HELD && reply.wait.reason == DP_WAIT_STEP);
    }
    /* 1.5 s; 6 s if it slept as long as it may. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    assert_true(now.tv_sec - start_at.tv_sec <= 4);
    free(request);
    assert_int_equal(stop(s), DP_OK);
}

static bool says_that_it_waits(void *context, struct dp_error *err)
{
    return *(const bool *)context && dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_REGISTER},
                                                  "waits for a word") != DP_OK;
}

static void progress_is_told(void **state)
{
    struct dp_shard_parts parts = {0};
    struct dp_error err;
    bool waits = true;
    const struct dp_store_gate of_store = {.says = says_that_it_waits, .context = &waits};
    const struct dp_shard_thread_options options = {.index = 3, .gate = &of_store}, no_gate = {.index = 3};
    atomic_store(&parts.progress.phase, DP_SHARD_REPLAYING);
    atomic_store(&parts.progress.done_bytes, 12000000);
    atomic_store(&parts.progress.all_bytes, 345600000);
    dp_shard_parts_say(&parts, &options, &err);
    assert_int_equal(err.status, DP_AGAIN);
    assert_string_equal(err.text, "shard 3 is recovering: 12 of 346 MB of its journal replayed");
    assert_true(err.wait.reason == DP_WAIT_RECOVERING && err.wait.subject == 2);
    assert_true(err.wait.done == 12000000 && err.wait.total == 345600000);
    atomic_store(&parts.progress.phase, DP_SHARD_CHECKING);
    dp_shard_parts_say(&parts, &options, &err);
    assert_string_equal(err.text, "shard 3 is recovering: 12 of 346 MB of its journal checked");
    assert_true(err.wait.reason == DP_WAIT_RECOVERING && err.wait.subject == 1);
    /* What the gate says, and while it says nothing that the first server is asked. */
    atomic_store(&parts.progress.phase, DP_SHARD_ASKING);
    dp_shard_parts_say(&parts, &options, &err);
    assert_string_equal(err.text, "waits for a word");
    waits = false;
    dp_shard_parts_say(&parts, &options, &err);
    assert_non_null(strstr(err.text, "shard 3 waits for the first server"));
    dp_shard_parts_say(&parts, &no_gate, &err);
    assert_non_null(strstr(err.text, "shard 3 waits for the first server"));
    assert_int_equal(err.wait.reason, DP_WAIT_REGISTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_shard_that_opens_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shard_that_opens_is_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shard_that_cannot_open_tells_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shard_that_lacks_room_opens_when_there_is_some, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_held_hears_so_while_nothing_else_comes, set_up, tear_down),
        cmocka_unit_test(progress_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

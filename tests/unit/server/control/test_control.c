/* Control: what it answers, over real sockets; how it starts and stops. */
#include "tests/lib/test.h"

#include "common/env/clock.h"
#include "server/control/control.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLUSTER    5u
#define GENERATION 2u
#define WAIT_MS    10000u

struct bed {
    struct dp_net *net;
    struct dp_control *control;
    struct dp_connection *connection;
    char endpoint[64];
    atomic_uint asked;
    uint64_t next_id;
    struct dp_reply reply; /* the last, cleared at the next */
    struct dp_message *message;
};

static uint32_t count(void *context, struct dp_counter counters[DP_COUNTERS_MAX])
{
    struct bed *bed = context;
    atomic_fetch_add(&bed->asked, 1);
    counters[0] = (struct dp_counter){"pulls", 41};
    counters[1] = (struct dp_counter){"pushes", 42};
    return 2;
}

static enum dp_status start_control(struct bed *bed, struct dp_control **out, struct dp_error *err)
{
    struct dp_control_options options = {.net = bed->net,
                                         .endpoint = bed->endpoint,
                                         .cluster = CLUSTER,
                                         .generation = GENERATION,
                                         .boot = 77,
                                         .counters = count,
                                         .context = bed};
    return dp_control_start(&options, out, err);
}

static int open_bed(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    struct dp_error err = {0};
    assert_non_null(bed);
    (void)snprintf(bed->endpoint, sizeof bed->endpoint, "ipc:///tmp/dp-control-%d", (int)getpid());
    bed->next_id = 1;
    assert_int_equal(dp_net_open(1, &bed->net, &err), DP_OK);
    if (start_control(bed, &bed->control, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(dp_connection_open(bed->net, bed->endpoint, &bed->connection, &err), DP_OK);
    *state = bed;
    return 0;
}

static void clear(struct bed *bed)
{
    dp_reply_clear(&bed->reply);
    dp_message_free(&bed->message);
}

static int close_bed(void **state)
{
    struct bed *bed = *state;
    clear(bed);
    dp_control_stop(&bed->control);
    assert_null(bed->control);
    dp_control_stop(&bed->control);
    dp_connection_close(&bed->connection);
    dp_net_close(&bed->net);
    free(bed);
    return 0;
}

static void send_message(struct bed *bed, struct dp_message **message)
{
    struct dp_error err = {0};
    struct dp_clock clock = dp_clock_real();
    uint64_t end = dp_clock_ns(&clock) + (uint64_t)WAIT_MS * 1000000u;
    while (dp_connection_send(bed->connection, message, &err) == DP_AGAIN)
        assert_true(dp_clock_ns(&clock) < end);
}

static uint64_t send_request(struct bed *bed, struct dp_request *request, struct dp_frame *frames, uint32_t n)
{
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    request->id = bed->next_id++;
    request->session = 3;
    request->cluster = request->cluster ? request->cluster : CLUSTER;
    request->generation = request->generation ? request->generation : GENERATION;
    request->timeout_ms = 1000;
    if (dp_request_encode(request, frames, n, &message, &err) != DP_OK)
        fail_msg("%s", err.text);
    send_message(bed, &message);
    return request->id;
}

static const struct dp_reply *ask(struct bed *bed, struct dp_request request, struct dp_frame *frames,
                                  uint32_t n)
{
    struct dp_error err = {0};
    uint64_t id = send_request(bed, &request, frames, n);
    clear(bed);
    struct dp_clock clock = dp_clock_real();
    uint64_t end = dp_clock_ns(&clock) + (uint64_t)WAIT_MS * 1000000u;
    while (dp_connection_receive(bed->connection, &bed->message) != DP_OK) {
        assert_true(dp_clock_ns(&clock) < end);
        dp_connections_wait(&bed->connection, 1, 100);
    }
    assert_int_equal(dp_reply_decode(bed->message, &bed->reply, &err), DP_OK);
    assert_int_equal(bed->reply.id, id);
    assert_int_equal(bed->reply.session, 3);
    assert_int_equal(bed->reply.cluster, CLUSTER);
    assert_int_equal(bed->reply.generation, GENERATION);
    return &bed->reply;
}

static enum dp_status put(struct bed *bed, const char *name, const char *text)
{
    struct dp_request request = {.kind = DP_REQUEST_NOTE_PUT};
    struct dp_frame frame = dp_frame_copy(text, strlen(text));
    (void)snprintf(request.name, sizeof request.name, "%s", name);
    return ask(bed, request, &frame, 1)->status;
}

static const struct dp_reply *get(struct bed *bed, const char *prefix)
{
    struct dp_request request = {.kind = DP_REQUEST_NOTES_GET};
    (void)snprintf(request.name, sizeof request.name, "%s", prefix);
    return ask(bed, request, NULL, 0);
}

static void hello_and_status(void **state)
{
    struct bed *bed = *state;
    struct dp_request hello = {.kind = DP_REQUEST_HELLO, .client = "test", .next_sequence = 1};
    const struct dp_reply *reply = ask(bed, hello, NULL, 0);
    assert_int_equal(reply->kind, DP_REPLY_WELCOME);
    assert_int_equal(reply->boot, 77);
    reply = ask(bed, (struct dp_request){.kind = DP_REQUEST_STATUS}, NULL, 0);
    assert_int_equal(reply->kind, DP_REPLY_STATUS);
    assert_int_equal(reply->report.counters, 2);
    assert_string_equal(reply->report.counter[1].name, "pushes");
    assert_int_equal(reply->report.counter[1].value, 42);
    assert_int_equal(atomic_load(&bed->asked), 1);
}

static void notes_come_back_by_prefix(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(get(bed, "")->notes, 0);
    assert_int_equal(put(bed, "p/1", "one"), DP_OK);
    assert_int_equal(put(bed, "p/2", "two"), DP_OK);
    assert_int_equal(put(bed, "q", "other"), DP_OK);
    assert_int_equal(put(bed, "p/1", "first"), DP_OK);
    const struct dp_reply *reply = get(bed, "p/");
    assert_int_equal(reply->kind, DP_REPLY_NOTES);
    assert_int_equal(reply->notes, 2);
    assert_string_equal(reply->note[0], "p/1");
    assert_string_equal(reply->note[1], "p/2");
    assert_int_equal(bed->message->frame[1].size, 5);
    assert_memory_equal(bed->message->frame[1].data, "first", 5);
    assert_memory_equal(bed->message->frame[2].data, "two", 3);
}

static void too_many_notes_for_an_answer_are_refused(void **state)
{
    struct bed *bed = *state;
    char name[32];
    for (uint32_t i = 0; i < DP_NOTES_MAX; i++) {
        (void)snprintf(name, sizeof name, "n/%03u", i);
        assert_int_equal(put(bed, name, "x"), DP_OK);
        if (i + 2 == DP_NOTES_MAX)
            assert_int_equal(get(bed, "n/")->notes, DP_NOTES_MAX - 1);
    }
    assert_int_equal(get(bed, "n/")->status, DP_INVALID);
    assert_non_null(strstr(bed->reply.reason, "n/"));
    assert_int_equal(get(bed, "n/00")->notes, 10);
}

/* Together within the bound of the board, so within an answer; beyond that the put hears AGAIN, with the cause. */
static void a_full_board_is_told_with_its_cause(void **state)
{
    enum { NOTES = 8, SIZE = 8 << 20 };
    struct bed *bed = *state;
    for (uint32_t i = 0; i < NOTES; i++) {
        struct dp_request request = {.kind = DP_REQUEST_NOTE_PUT};
        struct dp_frame frame = dp_frame_new(SIZE);
        assert_non_null(frame.data);
        memset(frame.data, 0, SIZE);
        (void)snprintf(request.name, sizeof request.name, "large/%u", i);
        assert_int_equal(ask(bed, request, &frame, 1)->status, i + 1 < NOTES ? DP_OK : DP_AGAIN);
    }
    assert_non_null(strstr(bed->reply.reason, "note 'large/7'"));
    assert_int_equal(get(bed, "large/")->notes, NOTES - 1);
    assert_int_equal(bed->message->frame[1].size, SIZE);
}

static void strangers_and_wrong_requests_are_refused(void **state)
{
    struct bed *bed = *state;
    struct dp_request request = {.kind = DP_REQUEST_STATUS, .cluster = 6};
    assert_int_equal(ask(bed, request, NULL, 0)->status, DP_GENERATION);
    request = (struct dp_request){.kind = DP_REQUEST_NOTES_GET, .generation = 9};
    assert_int_equal(ask(bed, request, NULL, 0)->status, DP_GENERATION);
    assert_int_equal(atomic_load(&bed->asked), 0);
    uint64_t key = 1;
    request = (struct dp_request){
        .kind = DP_REQUEST_PULL, .sequence = 1, .sections = 1, .section = {{.table = 1, .rows = 1}}};
    struct dp_frame frame = dp_frame_copy(&key, 8);
    assert_int_equal(ask(bed, request, &frame, 1)->status, DP_UNSUPPORTED);
    /* A header that can be read, a body that cannot: answered. */
    request = (struct dp_request){.kind = DP_REQUEST_NOTE_PUT, .name = "n\x01"};
    frame = dp_frame_copy("x", 1);
    assert_int_equal(ask(bed, request, &frame, 1)->status, DP_INVALID);
    assert_int_equal(get(bed, "")->notes, 0);
}

static void rubbish_is_passed_over(void **state)
{
    struct bed *bed = *state;
    uint32_t seed = 1;
    for (uint32_t i = 0; i < 2000; i++) {
        struct dp_message *message = dp_message_new(4);
        assert_non_null(message);
        for (uint32_t f = 0; f <= i % 4; f++) {
            struct dp_frame frame = dp_frame_new(i % 61);
            for (size_t b = 0; b < frame.size; b++)
                ((unsigned char *)frame.data)[b] =
                    (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
            dp_message_add(message, frame);
        }
        send_message(bed, &message);
    }
    assert_int_equal(put(bed, "n", "x"), DP_OK); /* the next answer is this one's */
    assert_int_equal(get(bed, "")->notes, 1);
}

static void an_endpoint_in_use_is_named(void **state)
{
    struct bed *bed = *state;
    struct dp_control *second = NULL;
    struct dp_error err = {0};
    assert_int_equal(start_control(bed, &second, &err), DP_IO);
    assert_null(second);
    assert_non_null(strstr(err.text, bed->endpoint));
    assert_int_equal(put(bed, "n", "x"), DP_OK); /* the first goes on */
}

/* With requests still coming in as fast as they can be sent: stop does not wait for them to end. */
static void stop_ends_in_time(void **state)
{
    struct bed *bed = *state;
    struct dp_clock clock = dp_clock_real();
    assert_int_equal(put(bed, "n", "x"), DP_OK);
    uint64_t start = dp_clock_ns(&clock);
    dp_control_stop(&bed->control); /* idle: woken, not timed out */
    assert_true(dp_clock_ns(&clock) - start < 500u * 1000000u);
    struct dp_error err = {0};
    assert_int_equal(start_control(bed, &bed->control, &err), DP_OK);
    /* Anew: what is sent into a connection that has not noticed yet is lost, as any message may be. */
    dp_connection_close(&bed->connection);
    assert_int_equal(dp_connection_open(bed->net, bed->endpoint, &bed->connection, &err), DP_OK);
    assert_int_equal(get(bed, "")->notes, 0); /* notes end with the control thread */
    for (uint32_t i = 0; i < 900; i++) {
        struct dp_request status = {.kind = DP_REQUEST_STATUS};
        (void)send_request(bed, &status, NULL, 0);
    }
    start = dp_clock_ns(&clock);
    dp_control_stop(&bed->control);
    assert_true(dp_clock_ns(&clock) - start < 2000u * 1000000u);
}

int main(void)
{
#define IN_BED(test) cmocka_unit_test_setup_teardown(test, open_bed, close_bed)
    const struct CMUnitTest tests[] = {
        IN_BED(hello_and_status),
        IN_BED(notes_come_back_by_prefix),
        IN_BED(too_many_notes_for_an_answer_are_refused),
        IN_BED(a_full_board_is_told_with_its_cause),
        IN_BED(strangers_and_wrong_requests_are_refused),
        IN_BED(rubbish_is_passed_over),
        IN_BED(an_endpoint_in_use_is_named),
        IN_BED(stop_ends_in_time),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}

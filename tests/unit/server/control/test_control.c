/* Control: what it answers, over real sockets; how it starts and stops. */
#include "tests/lib/test.h"

#include "common/client/downpour.h"
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
    char directory[64]; /* the register's; empty: another server than the first */
    bool read_only;
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
                                         .context = bed,
                                         .register_directory = bed->directory[0] ? bed->directory : NULL,
                                         .first_server = "tcp://first:1",
                                         .read_only = bed->read_only};
    return dp_control_start(&options, out, err);
}

static int open_bed(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    struct dp_error err = {0};
    assert_non_null(bed);
    (void)snprintf(bed->endpoint, sizeof bed->endpoint, "ipc:///tmp/dp-control-%d", (int)getpid());
    (void)snprintf(bed->directory, sizeof bed->directory, "/tmp/dp-control-XXXXXX");
    assert_non_null(mkdtemp(bed->directory));
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
    char path[96];
    (void)snprintf(path, sizeof path, "%s/register", bed->directory);
    (void)unlink(path);
    (void)rmdir(bed->directory);
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

static const struct dp_reply *receive_answer(struct bed *bed, uint64_t id)
{
    struct dp_error err = {0};
    clear(bed);
    struct dp_clock clock = dp_clock_real();
    uint64_t end = dp_clock_ns(&clock) + (uint64_t)WAIT_MS * 1000000u;
    while (!dp_connection_receive(bed->connection, &bed->message)) {
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

static const struct dp_reply *ask(struct bed *bed, struct dp_request request, struct dp_frame *frames,
                                  uint32_t n)
{
    return receive_answer(bed, send_request(bed, &request, frames, n));
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

static void notes_that_an_answer_lacks_follow_its_last(void **state)
{
    struct bed *bed = *state;
    struct dp_request rest = {.kind = DP_REQUEST_NOTES_GET, .name = "n/"};
    char name[32];
    for (uint32_t i = 0; i < DP_NOTES_MAX + 9; i++) {
        (void)snprintf(name, sizeof name, "n/%03u", i);
        assert_int_equal(put(bed, name, "x"), DP_OK);
    }
    assert_int_equal(get(bed, "n/")->notes, DP_NOTES_MAX - 1);
    (void)snprintf(rest.after, sizeof rest.after, "n/%03u", DP_NOTES_MAX - 2);
    assert_int_equal(ask(bed, rest, NULL, 0)->notes, 10);
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
    request = (struct dp_request){.kind = DP_REQUEST_NOTES_GET, .generation = GENERATION, .history = 1};
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

static void beats_are_answered_by_the_first_server_alone(void **state)
{
    struct bed *bed = *state;
    struct dp_request request = {.kind = DP_REQUEST_HEARTBEAT,
                                 .heartbeat = {.run = 1, .rank = 0, .members = 3}};
    const struct dp_reply *reply = ask(bed, request, NULL, 0);
    assert_true(reply->kind == DP_REPLY_SILENCES && bed->message->frame[1].size == 3 * 8);
    dp_control_stop(&bed->control);
    struct dp_error err = {0};
    char directory[sizeof bed->directory];
    memcpy(directory, bed->directory, sizeof directory);
    bed->directory[0] = '\0';
    assert_int_equal(start_control(bed, &bed->control, &err), DP_OK);
    memcpy(bed->directory, directory, sizeof directory);
    dp_connection_close(&bed->connection);
    assert_int_equal(dp_connection_open(bed->net, bed->endpoint, &bed->connection, &err), DP_OK);
    assert_int_equal(ask(bed, request, NULL, 0)->status, DP_UNSUPPORTED);
    assert_non_null(strstr(bed->reply.reason, "tcp://first:1"));
}

/* ---- the register ---- */

static const struct dp_reply *set_value(struct bed *bed, uint64_t expected, uint64_t nonce, const char *text)
{
    struct dp_request request = {
        .kind = DP_REQUEST_REGISTER_SET, .name = "test", .version = expected, .nonce = nonce};
    struct dp_frame frame = dp_frame_copy(text, strlen(text));
    return ask(bed, request, &frame, 1);
}

static struct dp_request wait_for(uint64_t above, uint32_t wait_ms)
{
    return (struct dp_request){
        .kind = DP_REQUEST_REGISTER_GET, .name = "test", .version = above, .wait_ms = wait_ms};
}

static uint64_t register_id(struct bed *bed)
{
    struct dp_request hello = {.kind = DP_REQUEST_HELLO, .client = "test", .next_sequence = 1};
    return ask(bed, hello, NULL, 0)->register_id;
}

static void restart(struct bed *bed)
{
    struct dp_error err = {0};
    dp_control_stop(&bed->control);
    assert_int_equal(start_control(bed, &bed->control, &err), DP_OK);
    dp_connection_close(&bed->connection);
    assert_int_equal(dp_connection_open(bed->net, bed->endpoint, &bed->connection, &err), DP_OK);
}

static void the_register_survives_a_restart(void **state)
{
    struct bed *bed = *state;
    uint64_t id = register_id(bed);
    assert_int_not_equal(id, 0);
    const struct dp_reply *reply = ask(bed, wait_for(0, 0), NULL, 0);
    assert_true(reply->kind == DP_REPLY_REGISTER && reply->version == 0 && reply->register_id == id);
    reply = set_value(bed, 0, 7, "one");
    assert_true(reply->won && reply->version == 1);
    restart(bed);
    assert_true(register_id(bed) == id);
    reply = ask(bed, wait_for(0, 0), NULL, 0);
    assert_true(reply->version == 1 && reply->register_id == id);
    assert_memory_equal(bed->message->frame[1].data, "one", 3);
    reply = set_value(bed, 0, 7, "one"); /* the answer was lost */
    assert_true(reply->won && reply->version == 1);
    reply = set_value(bed, 0, 8, "two");
    assert_true(!reply->won && reply->version == 1);
    assert_memory_equal(bed->message->frame[1].data, "one", 3);
}

/* It wakes by the clock, and by a set, without anything else that comes in. */
static void a_get_waits_for_its_value_or_its_time(void **state)
{
    struct bed *bed = *state;
    struct dp_clock clock = dp_clock_real();
    uint64_t start = dp_clock_ns(&clock);
    const struct dp_reply *reply = ask(bed, wait_for(0, 300), NULL, 0);
    assert_true(reply->kind == DP_REPLY_REGISTER && reply->version == 0);
    assert_true(dp_clock_ns(&clock) - start >= 300u * 1000000u);
    struct dp_request request = wait_for(0, 60000);
    uint64_t waiting = send_request(bed, &request, NULL, 0);
    struct dp_request set = {.kind = DP_REQUEST_REGISTER_SET, .name = "test", .nonce = 7};
    struct dp_frame frame = dp_frame_copy("one", 3);
    uint64_t setting = send_request(bed, &set, &frame, 1);
    assert_true(receive_answer(bed, setting)->won);
    reply = receive_answer(bed, waiting);
    assert_true(reply->kind == DP_REPLY_REGISTER && reply->version == 1 && !reply->won);
    assert_memory_equal(bed->message->frame[1].data, "one", 3);
}

static void others_than_the_first_name_the_first(void **state)
{
    struct bed *bed = *state;
    char directory[sizeof bed->directory];
    memcpy(directory, bed->directory, sizeof directory);
    bed->directory[0] = '\0';
    restart(bed);
    assert_int_equal(register_id(bed), 0);
    assert_int_equal(ask(bed, wait_for(0, 0), NULL, 0)->status, DP_UNSUPPORTED);
    assert_non_null(strstr(bed->reply.reason, "tcp://first:1"));
    assert_int_equal(set_value(bed, 0, 7, "one")->status, DP_UNSUPPORTED);
    memcpy(bed->directory, directory, sizeof directory);
    restart(bed);
    assert_int_not_equal(register_id(bed), 0);
}

static void a_read_only_register_answers_and_takes_nothing(void **state)
{
    struct bed *bed = *state;
    uint64_t id = register_id(bed);
    assert_true(set_value(bed, 0, 7, "one")->won);
    bed->read_only = true;
    restart(bed);
    assert_true(register_id(bed) == id);
    assert_true(ask(bed, wait_for(0, 0), NULL, 0)->version == 1);
    assert_int_equal(set_value(bed, 1, 8, "two")->status, DP_UNSUPPORTED);
    assert_non_null(strstr(bed->reply.reason, "read-only"));
    assert_true(ask(bed, wait_for(0, 0), NULL, 0)->version == 1);
}

/* On another port, so that its socket does not keep it away. */
static void one_process_has_the_register(void **state)
{
    struct bed *bed = *state;
    struct dp_control *other = NULL;
    struct dp_error err = {0};
    char endpoint[sizeof bed->endpoint];
    memcpy(endpoint, bed->endpoint, sizeof endpoint);
    (void)snprintf(bed->endpoint, sizeof bed->endpoint, "ipc:///tmp/dp-control-%d-b", (int)getpid());
    enum dp_status st = start_control(bed, &other, &err);
    dp_control_stop(&other);
    assert_int_equal(st, DP_IN_USE);
    assert_non_null(strstr(err.text, bed->directory));
    assert_non_null(strstr(err.text, "another server is using it"));
    bed->read_only = true; /* changes nothing, and may be there */
    assert_int_equal(start_control(bed, &other, &err), DP_OK);
    dp_control_stop(&other);
    bed->read_only = false;
    memcpy(bed->endpoint, endpoint, sizeof endpoint);
    restart(bed);
}

static void a_damaged_register_is_refused_at_start(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    char path[96];
    assert_true(set_value(bed, 0, 7, "one")->won);
    dp_control_stop(&bed->control);
    (void)snprintf(path, sizeof path, "%s/register", bed->directory);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_equal(fputc('x', file), 'x');
    assert_int_equal(fclose(file), 0);
    assert_int_equal(start_control(bed, &bed->control, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, bed->directory));
    assert_non_null(strstr(err.text, "'register' is damaged"));
    assert_non_null(strstr(err.text, "--replace-store"));
    assert_null(bed->control);
}

/* By the client library; whose numbers they are is test_leases'. */
static void bad_lease_requests_are_refused(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    struct dp_client *client = NULL;
    struct dp_leased got;
    char *directory = bed->directory;
    const struct dp_client_options options = {.name = "test",
                                              .cluster = CLUSTER,
                                              .generation = GENERATION,
                                              .control = bed->endpoint,
                                              .retry_ms = 100};
    const struct dp_lease bad[] = {{.run = 0, .total = 8},
                                   {.run = 1, .total = 0},
                                   {.run = 1, .total = DP_LEASE_TOTAL_MAX + 1},
                                   {.run = 1, .total = 8, .rank = DP_LEASE_RANKS_MAX},
                                   {.run = 1, .total = 8, .want = DP_LEASE_WANT_MAX + 1},
                                   {.run = 1, .total = 8, .held_count = DP_LEASE_HELD_MAX + 1}},
                          ask_for[] = {{.run = 1, .total = 8}, {.run = 1, .total = 9}};
    if (dp_client_open(&options, &client, &err) != DP_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dp_client_lease(client, &bad[i], WAIT_MS, &got, &err), DP_ARGUMENT);
    assert_int_equal(dp_client_lease(client, &ask_for[0], WAIT_MS, &got, &err), DP_OK);
    assert_int_equal(got.state, DP_LEASE_TELL);
    assert_int_equal(dp_client_lease(client, &ask_for[1], WAIT_MS, &got, &err), DP_INVALID);
    assert_non_null(strstr(err.text, "8 push numbers, not 9"));
    char first = directory[0];
    directory[0] = '\0'; /* another server than the first */
    restart(bed);
    directory[0] = first;
    assert_int_equal(dp_client_lease(client, &ask_for[0], WAIT_MS, &got, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "tcp://first:1"));
    dp_client_close(&client);
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
        IN_BED(notes_that_an_answer_lacks_follow_its_last),
        IN_BED(a_full_board_is_told_with_its_cause),
        IN_BED(strangers_and_wrong_requests_are_refused),
        IN_BED(rubbish_is_passed_over),
        IN_BED(an_endpoint_in_use_is_named),
        IN_BED(beats_are_answered_by_the_first_server_alone),
        IN_BED(stop_ends_in_time),
        IN_BED(the_register_survives_a_restart),
        IN_BED(a_get_waits_for_its_value_or_its_time),
        IN_BED(others_than_the_first_name_the_first),
        IN_BED(a_read_only_register_answers_and_takes_nothing),
        IN_BED(one_process_has_the_register),
        IN_BED(bad_lease_requests_are_refused),
        IN_BED(a_damaged_register_is_refused_at_start),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}

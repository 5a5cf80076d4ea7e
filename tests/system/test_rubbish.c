/* What strangers send to a live cluster's ports: it is refused, counted and answered where there is something
 * to answer, and the training goes on. Each test throws one kind of rubbish, then the same training still
 * pushes, a further one ends well, and the servers close cleanly. DP_LONG=1: 1 GB of it instead of 64 MB. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include "common/wire/reply.h"
#include "common/wire/request.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <zmq.h>

#define CLUSTER_ID 4711u
#define PORTS      4u /* control, shard, control, shard */

struct live {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf;
    struct dp_process *server[2], *worker;
    uint64_t random;
};

static uint64_t draw(struct live *live)
{
    live->random = live->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return live->random >> 16;
}

static void draw_bytes(struct live *live, unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)draw(live);
}

static int setup(void **state)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live || dp_place_setup((void **)&live->place) != 0)
        return -1;
    *state = live;
    live->random = 20120105; /* the same rubbish each time */
    live->cluster = (struct dp_place_cluster){.servers = 2, .epochs = 1000000, .top = "id = 4711;"};
    live->conf = dp_place_conf(live->place, &live->cluster);
    for (uint32_t i = 0; i < 2; i++)
        live->server[i] = dp_place_server(live->place, live->conf, i);
    live->worker = dp_place_worker(live->place, live->conf, 0);
    dp_place_awaits(live->worker, "epoch 2 of");
    return 0;
}

static int teardown(void **state)
{
    struct live *live = *state;
    int failed = dp_place_teardown((void **)&live->place);
    free(live);
    return failed;
}

/* The training that was under way goes on, a further one ends well, and all is closed cleanly. */
static void all_is_well(struct live *live)
{
    struct dp_place *place = live->place;
    double pushes = dp_place_counter(place, live->conf, "pushes"), now = pushes;
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    while (now < pushes + 20 && dp_process_now_ms() < deadline)
        now = dp_place_counter(place, live->conf, "pushes");
    assert_true(now >= pushes + 20);
    assert_int_equal(dp_process_wait(live->worker, 0), DP_PROCESS_RUNS);
    dp_process_signal(live->worker, SIGTERM);
    dp_place_ended(live->worker, 143);
    live->cluster.run = 2;
    live->cluster.epochs = 1;
    dp_place_ended(dp_place_worker(place, dp_place_conf(place, &live->cluster), 0), 0);
    double loss = dp_place_number(place, dp_place_path(place, "c.json"), "final.test.loss");
    assert_true(isfinite(loss) && loss < 1);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(live->server[i]);
}

/* --- bytes over TCP */

static int connect_to(const struct live *live, uint32_t offset)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)(live->cluster.port + offset))};
    const struct timeval patience = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* What the peer takes before it hangs up. */
static size_t throw_bytes(int fd, const unsigned char *bytes, size_t size)
{
    size_t sent = 0;
    for (ssize_t n; sent < size && (n = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL)) > 0;)
        sent += (size_t)n;
    return sent;
}

static void random_bytes(void **state)
{
    struct live *live = *state;
    unsigned char bytes[4096];
    for (uint32_t i = 0; i < 100; i++) {
        int fd = connect_to(live, i % PORTS);
        draw_bytes(live, bytes, sizeof bytes);
        (void)throw_bytes(fd, bytes, 1 + draw(live) % sizeof bytes);
        (void)close(fd);
    }
    all_is_well(live);
}

static void much_rubbish(void **state)
{
    struct live *live = *state;
    size_t whole = (size_t)(getenv("DP_LONG") ? 1024 : 64) << 20, room = 1 << 20;
    unsigned char *bytes = malloc(room);
    assert_non_null(bytes);
    draw_bytes(live, bytes, room);
    /* To be counted as sent even where it hangs up at once. */
    for (size_t thrown = 0, i = 0; thrown < whole; i++) {
        int fd = connect_to(live, (uint32_t)(i % PORTS));
        size_t sent = throw_bytes(fd, bytes, room);
        thrown += sent < 65536 ? 65536 : sent;
        (void)close(fd);
    }
    free(bytes);
    all_is_well(live);
}

/* ZMTP 3.0: signature, version, mechanism NULL, no server. */
static const unsigned char greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};

static void half_open_connections(void **state)
{
    enum { OPEN = 120 };
    struct live *live = *state;
    int fd[OPEN];
    for (uint32_t i = 0; i < OPEN; i++) {
        fd[i] = connect_to(live, i % PORTS);
        (void)throw_bytes(fd[i], greeting, i / PORTS % (sizeof greeting + 1));
    }
    all_is_well(live);
    for (uint32_t i = 0; i < OPEN; i++)
        (void)close(fd[i]);
}

static void greetings_and_garbage(void **state)
{
    /* READY with a Socket-Type, and the flags of a long frame of 2^62 bytes. */
    static const unsigned char ready[] = "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x06"
                                         "DEALER";
    static const unsigned char huge[] = {0x02, 0x40, 0, 0, 0, 0, 0, 0, 0};
    struct live *live = *state;
    unsigned char bytes[2048];
    for (uint32_t i = 0; i < 60; i++) {
        int fd = connect_to(live, i % PORTS);
        (void)throw_bytes(fd, greeting, sizeof greeting);
        if (i % 3 > 0)
            (void)throw_bytes(fd, ready, sizeof ready - 1);
        if (i % 3 == 2)
            (void)throw_bytes(fd, huge, sizeof huge);
        draw_bytes(live, bytes, sizeof bytes);
        (void)throw_bytes(fd, bytes, sizeof bytes);
        (void)close(fd);
    }
    all_is_well(live);
}

/* --- messages over ZeroMQ */

struct stranger {
    void *context, *socket;
};

static struct stranger stranger_open(const struct live *live, uint32_t offset, const char *id)
{
    struct stranger stranger = {.context = zmq_ctx_new()};
    int linger = 2000, patience = (int)(DP_SOON_MS * DP_PATIENCE);
    char endpoint[64];
    stranger.socket = zmq_socket(stranger.context, ZMQ_DEALER);
    assert_non_null(stranger.socket);
    (void)zmq_setsockopt(stranger.socket, ZMQ_LINGER, &linger, sizeof linger);
    (void)zmq_setsockopt(stranger.socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
    (void)zmq_setsockopt(stranger.socket, ZMQ_SNDTIMEO, &patience, sizeof patience);
    if (id)
        (void)zmq_setsockopt(stranger.socket, ZMQ_ROUTING_ID, id, strlen(id));
    (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", (unsigned)(live->cluster.port + offset));
    assert_int_equal(zmq_connect(stranger.socket, endpoint), 0);
    return stranger;
}

static void stranger_close(struct stranger *stranger)
{
    assert_int_equal(zmq_close(stranger->socket), 0);
    assert_int_equal(zmq_ctx_term(stranger->context), 0);
}

static void say(struct stranger *stranger, const void *bytes, size_t size, bool more)
{
    assert_int_equal(zmq_send(stranger->socket, bytes, size, more ? ZMQ_SNDMORE : 0), (int)size);
}

static void random_frames(void **state)
{
    struct live *live = *state;
    static unsigned char bytes[65536];
    double before = dp_place_counter(live->place, live->conf, "requests_unreadable");
    for (uint32_t port = 0; port < PORTS; port++) {
        struct stranger stranger = stranger_open(live, port, NULL);
        for (uint32_t i = 0; i < 100; i++) {
            for (uint64_t more = draw(live) % 8;; more--) {
                size_t size = draw(live) % (i % 10 == 0 ? sizeof bytes : 64);
                draw_bytes(live, bytes, size);
                say(&stranger, bytes, size, more > 0);
                if (more == 0)
                    break;
            }
        }
        say(&stranger, bytes, 0, false); /* an empty message */
        for (int i = 0; i < 500; i++)    /* more frames than any message has */
            say(&stranger, bytes, 1, i < 499);
        stranger_close(&stranger);
        stranger = stranger_open(live, port, "worker-0"); /* an id of its own */
        say(&stranger, bytes, 100, false);
        stranger_close(&stranger);
    }
    /* Random bytes are rarely a header. */
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    double now = before;
    while (now < before + 150 && dp_process_now_ms() < deadline)
        now = dp_place_counter(live->place, live->conf, "requests_unreadable");
    assert_true(now >= before + 150);
    all_is_well(live);
}

static void large_messages(void **state)
{
    struct live *live = *state;
    /* In the long form over what a message may have: it is drained as it comes. */
    size_t room = (size_t)(getenv("DP_LONG") ? 16 : 1) << 20;
    unsigned char *bytes = calloc(1, room);
    assert_non_null(bytes);
    for (uint32_t port = 0; port < PORTS; port++) {
        struct stranger stranger = stranger_open(live, port, NULL);
        for (int i = 0; i < 64; i++)
            say(&stranger, bytes, room, i < 63);
        stranger_close(&stranger);
    }
    free(bytes);
    all_is_well(live);
}

/* --- requests, well-formed but for one thing */

static struct dp_request request_of(enum dp_request_kind kind, uint64_t sequence)
{
    struct dp_request request = {.kind = kind,
                                 .id = 100 + sequence,
                                 .cluster = CLUSTER_ID,
                                 .generation = 1,
                                 .session = 99,
                                 .sequence = sequence,
                                 .timeout_ms = 10000};
    return request;
}

/* One section of the table "stranger", width 2. */
static struct dp_request rows_of(enum dp_request_kind kind, uint64_t sequence, uint32_t rows)
{
    struct dp_request request = request_of(kind, sequence);
    request.stream = 99;
    request.number = sequence;
    request.rate = 1;
    request.sections = 1;
    request.section[0] = (struct dp_section){.table = dp_table_id("stranger"), .rows = rows};
    return request;
}

struct bytes {
    const void *data;
    size_t size;
};

/* Frames of other sizes than the header says, too: they are added behind it. `version`: 0 leaves it right. */
static enum dp_status ask(struct stranger *stranger, const struct dp_request *request,
                          const struct bytes *arrays, uint32_t count, unsigned char version,
                          struct dp_reply *reply, float *values, size_t value_bytes)
{
    struct dp_error err = {0};
    struct dp_message *message = NULL, *answer = dp_message_new(8);
    struct dp_frame empty[2] = {{0}};
    uint32_t arrays_known = request->kind == DP_REQUEST_PUSH ? 2 : request->kind == DP_REQUEST_PULL ? 1 : 0;
    if (dp_request_encode(request, empty, arrays_known, &message, &err) != DP_OK)
        fail_msg("%s", err.text);
    unsigned char *header = message->frame[0].data;
    assert_int_equal(header[0], 0x08); /* field 1, protocol */
    if (version)
        header[1] = version;
    say(stranger, header, message->frame[0].size, count > 0);
    for (uint32_t i = 0; i < count; i++)
        say(stranger, arrays[i].data, arrays[i].size, i + 1 < count);
    dp_message_free(&message);
    int more = 1;
    while (more) {
        zmq_msg_t part;
        size_t size = sizeof more;
        (void)zmq_msg_init(&part);
        if (zmq_msg_recv(&part, stranger->socket, 0) < 0)
            fail_msg("no answer: %s", zmq_strerror(zmq_errno()));
        dp_message_add(answer, dp_frame_copy(zmq_msg_data(&part), zmq_msg_size(&part)));
        (void)zmq_msg_close(&part);
        assert_int_equal(zmq_getsockopt(stranger->socket, ZMQ_RCVMORE, &more, &size), 0);
    }
    if (dp_reply_decode(answer, reply, &err) != DP_OK)
        fail_msg("%s", err.text);
    if (values && reply->status == DP_OK) {
        assert_int_equal(answer->frames, 2);
        assert_int_equal(answer->frame[1].size, value_bytes);
        memcpy(values, answer->frame[1].data, value_bytes);
    }
    dp_message_free(&answer);
    enum dp_status st = reply->status;
    dp_reply_clear(reply);
    return st;
}

static void hello_and_table(struct stranger *stranger, struct dp_reply *reply)
{
    struct dp_request request = request_of(DP_REQUEST_HELLO, 0);
    (void)snprintf(request.client, sizeof request.client, "stranger");
    request.next_sequence = 1;
    assert_int_equal(ask(stranger, &request, NULL, 0, 0, reply, NULL, 0), DP_OK);
    request = request_of(DP_REQUEST_CREATE_TABLE, 1);
    request.spec = (struct dp_table_spec){.name = "stranger", .dim = 2};
    request.spec.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    assert_int_equal(ask(stranger, &request, NULL, 0, 0, reply, NULL, 0), DP_OK);
}

/* Another version, generation, cluster: these are no part of the session. */
static void ask_as_another(struct stranger *stranger)
{
    struct dp_reply reply;
    struct dp_request request = request_of(DP_REQUEST_STATUS, 0);
    assert_int_equal(ask(stranger, &request, NULL, 0, DP_PROTOCOL_VERSION + 1, &reply, NULL, 0), DP_VERSION);
    request.generation = 2;
    assert_int_equal(ask(stranger, &request, NULL, 0, 0, &reply, NULL, 0), DP_GENERATION);
    request.generation = 1;
    request.cluster = 1;
    assert_int_equal(ask(stranger, &request, NULL, 0, 0, &reply, NULL, 0), DP_GENERATION);
}

static void requests_with_one_fault(void **state)
{
    struct live *live = *state;
    struct stranger stranger = stranger_open(live, 1, NULL); /* the first shard: the lower half of the keys */
    struct dp_reply reply;
    const uint64_t keys[2] = {5, 6}, descending[2] = {6, 5}, equal[2] = {5, 5},
                   others[2] = {5, UINT64_C(1) << 63};
    const float good[4] = {1, 2, 3, 4}, nan[4] = {1, 2, NAN, 4}, infinite[4] = {1, 2, 3, -INFINITY};
    float before[4] = {0}, after[4] = {9, 9, 9, 9};
    const struct bytes pull[] = {{keys, sizeof keys}}, push[] = {{keys, sizeof keys}, {good, sizeof good}};
    uint64_t n = 2;
    double refused = dp_place_counter(live->place, live->conf, "requests_refused");
    hello_and_table(&stranger, &reply);
    struct dp_request request = rows_of(DP_REQUEST_PUSH, n++, 2);
    assert_int_equal(ask(&stranger, &request, push, 2, 0, &reply, NULL, 0), DP_OK);
    request = rows_of(DP_REQUEST_PULL, n++, 2);
    assert_int_equal(ask(&stranger, &request, pull, 1, 0, &reply, before, sizeof before), DP_OK);
    for (int i = 0; i < 4; i++)
        assert_true(before[i] == -good[i]);

    const struct {
        struct bytes keys, values;
        enum dp_status status;
        const char *reason;
    } faults[] = {
        {{descending, 16}, {good, 16}, DP_INVALID, "ascending"},
        {{equal, 16}, {good, 16}, DP_INVALID, "ascending"},
        {{keys, 15}, {good, 16}, DP_INVALID, "keys frame"},
        {{keys, 8}, {good, 16}, DP_INVALID, "keys frame"},
        {{keys, 0}, {good, 16}, DP_INVALID, "keys frame"},
        {{keys, 16}, {good, 15}, DP_INVALID, "values frame"},
        {{keys, 16}, {good, 8}, DP_INVALID, "stranger"},
        {{keys, 16}, {good, 0}, DP_INVALID, "values frame"},
        {{others, 16}, {good, 16}, DP_INVALID, "key"},
        {{keys, 16}, {nan, 16}, DP_NOT_FINITE, "stranger"},
        {{keys, 16}, {infinite, 16}, DP_NOT_FINITE, "stranger"},
    };
    size_t count = sizeof faults / sizeof faults[0];
    for (size_t i = 0; i < count; i++) {
        const struct bytes arrays[] = {faults[i].keys, faults[i].values};
        request = rows_of(DP_REQUEST_PUSH, n++, 2);
        enum dp_status st = ask(&stranger, &request, arrays, 2, 0, &reply, NULL, 0);
        if (st != faults[i].status || !strstr(reply.reason, faults[i].reason))
            fail_msg("fault %zu: %s, '%s'", i, dp_status_name((int)st), reply.reason);
    }
    /* A frame missing, one too many, a table that nobody made, a value type that is none. */
    request = rows_of(DP_REQUEST_PUSH, n++, 2);
    assert_int_equal(ask(&stranger, &request, push, 1, 0, &reply, NULL, 0), DP_INVALID);
    request = rows_of(DP_REQUEST_PULL, n++, 2);
    assert_int_equal(ask(&stranger, &request, push, 2, 0, &reply, NULL, 0), DP_INVALID);
    request = rows_of(DP_REQUEST_PULL, n++, 2);
    request.section[0].table ^= 1;
    assert_int_equal(ask(&stranger, &request, pull, 1, 0, &reply, NULL, 0), DP_NOT_FOUND);
    ask_as_another(&stranger);
    /* The rows have kept their values, and the session goes on. */
    request = rows_of(DP_REQUEST_PULL, n++, 2);
    assert_int_equal(ask(&stranger, &request, pull, 1, 0, &reply, after, sizeof after), DP_OK);
    assert_memory_equal(before, after, sizeof before);
    stranger_close(&stranger);
    assert_true(dp_place_counter(live->place, live->conf, "pushes_not_finite") == 2);
    assert_true(dp_place_counter(live->place, live->conf, "requests_refused") ==
                refused + (double)count + 3 + 3);
    all_is_well(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(much_rubbish, setup, teardown),
        cmocka_unit_test_setup_teardown(half_open_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(greetings_and_garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(random_frames, setup, teardown),
        cmocka_unit_test_setup_teardown(large_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_with_one_fault, setup, teardown),
    };
    return cmocka_run_group_tests_name("rubbish", tests, NULL, NULL);
}

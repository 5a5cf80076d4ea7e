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

#define PORTS 4u /* control, shard, control, shard */

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
    dp_place_ended(live->worker, 3);
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

struct bytes {
    const void *data;
    size_t size;
};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(much_rubbish, setup, teardown),
        cmocka_unit_test_setup_teardown(half_open_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(greetings_and_garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(random_frames, setup, teardown),
        cmocka_unit_test_setup_teardown(large_messages, setup, teardown),
    };
    return cmocka_run_group_tests_name("rubbish", tests, NULL, NULL);
}

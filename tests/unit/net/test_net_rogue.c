/* Net: peers that keep no rule, and messages that nobody takes. */
#include "tests/unit/net/pair.h"

#include "common/net/socket.h"
#include "tests/lib/zmtp.h"

#include <poll.h>

/* A plain TCP connection to the listener. */
static int raw_connect(const char *endpoint)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = 10};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)atoi(strrchr(endpoint, ':') + 1));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void rubbish_ends_its_own_connection_only(void **state)
{
    struct pair pair = pair_open(ANY_PORT);
    assert_reaches(&pair, 1);
    int fd = raw_connect(pair.endpoint);
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 16; i++) { /* 1 MB; the first byte is not a greeting's */
        uint64_t bytes[8192];
        for (size_t k = 0; k < 8192; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            bytes[k] = random;
        }
        if (i == 0)
            memcpy(bytes, "POST / HTTP/1.1", 15);
        if (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) < 0)
            break;
    }
    assert_reaches(&pair, 4);
    (void)close(fd);

    /* What does not begin with a greeting is ZMTP 1.0: an id (here none), then messages. They arrive like
     * others, and are refused by whoever decodes them. */
    struct dp_message *message = NULL;
    struct dp_peer from;
    fd = raw_connect(pair.endpoint);
    assert_true(send(fd, "\1\0\4\0old", 7, MSG_NOSIGNAL) == 7);
    assert_int_equal(receive_at(pair.listener, &from, &message, 10000), DP_OK);
    assert_true(message->frame[0].size == 3 && memcmp(message->frame[0].data, "old", 3) == 0);
    dp_message_free(&message);
    (void)close(fd);
    assert_reaches(&pair, 6);

    /* A good peer; then a frame that claims 1 GB: over the limit. */
    static const unsigned char huge[] = "\x02\0\0\0\0\x40\0\0\0rubbish";
    fd = dp_zmtp_connect((uint32_t)atoi(strrchr(pair.endpoint, ':') + 1), 0);
    assert_true(fd >= 0 && dp_zmtp_send(fd, false, "hi", 2));
    assert_int_equal(receive_at(pair.listener, &from, &message, 10000), DP_OK);
    assert_true(message->frame[0].size == 2 && memcmp(message->frame[0].data, "hi", 2) == 0);
    dp_message_free(&message);
    assert_true(send(fd, huge, sizeof huge - 1, MSG_NOSIGNAL) > 0);
    assert_true(dp_zmtp_hangs_up(fd));
    (void)close(fd);
    assert_reaches(&pair, 9);
    pair_close(&pair);
}

/* A peer of ZeroMQ's own, that keeps no rule of ours. id: its own routing id, or NULL. */
static void *rogue_new(void *context, const char *endpoint, const char *id)
{
    void *socket = zmq_socket(context, ZMQ_DEALER);
    int linger = 0;
    (void)zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    if (id)
        assert_int_equal(zmq_setsockopt(socket, ZMQ_ROUTING_ID, id, strlen(id)), 0);
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    return socket;
}

/* Receives until `refused` messages were; none may be given. */
static void assert_refuses(struct pair *pair, uint64_t expected)
{
    uint64_t refused = 0, undeliverable = 0, end = now_ms() + 10000;
    while (refused < expected && now_ms() < end) {
        struct dp_message *message = NULL;
        struct dp_peer from;
        assert_false(dp_listener_receive(pair->listener, &from, &message));
        dp_listener_drops(pair->listener, &refused, &undeliverable);
        if (refused < expected)
            dp_listener_wait(pair->listener, -1, 10);
    }
    assert_int_equal(refused, expected);
}

static void peers_with_ids_of_their_own_are_refused(void **state)
{
    struct pair pair = pair_open(ANY_PORT);
    void *context = zmq_ctx_new();
    char longest[256];
    memset(longest, 'i', 255);
    longest[255] = '\0';
    void *rogues[] = {rogue_new(context, pair.endpoint, longest), rogue_new(context, pair.endpoint, "fives")};
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(zmq_send(rogues[i], "a", 1, ZMQ_SNDMORE), 1);
        assert_int_equal(zmq_send(rogues[i], "b", 1, 0), 1);
        assert_refuses(&pair, i + 1);
    }
    assert_reaches(&pair, 3);
    (void)zmq_close(rogues[0]);
    (void)zmq_close(rogues[1]);
    (void)zmq_ctx_term(context);
    pair_close(&pair);
}

static void messages_over_the_limits_are_drained(void **state)
{
    struct pair pair = pair_open(ANY_PORT);
    void *context = zmq_ctx_new();
    void *rogue = rogue_new(context, pair.endpoint, NULL);
    struct dp_message *message = NULL;
    struct dp_peer from;
    for (int extra = 0; extra < 2; extra++) { /* the limit, and one more */
        for (uint32_t i = 1; i < DP_FRAMES_MAX; i++)
            assert_int_equal(zmq_send(rogue, "x", 1, ZMQ_SNDMORE), 1);
        if (extra)
            assert_int_equal(zmq_send(rogue, "x", 1, ZMQ_SNDMORE), 1);
        assert_int_equal(zmq_send(rogue, "x", 1, 0), 1);
        if (extra) {
            assert_refuses(&pair, 1);
        } else {
            assert_int_equal(receive_at(pair.listener, &from, &message, 10000), DP_OK);
            assert_int_equal(message->frames, DP_FRAMES_MAX);
            dp_message_free(&message);
        }
    }
    assert_int_equal(zmq_send(rogue, "after", 5, 0), 5);
    assert_int_equal(receive_at(pair.listener, &from, &message, 10000), DP_OK);
    assert_int_equal(message->frames, 1);
    assert_int_equal(message->frame[0].size, 5);
    dp_message_free(&message);
    (void)zmq_close(rogue);
    (void)zmq_ctx_term(context);
    pair_close(&pair);
}

static void release_nothing(void *data, void *owner) {}

/* The same 200 MiB three times in one message: each frame is allowed, the sum is not. */
static void the_sum_of_frames_is_limited(void **state)
{
    struct pair pair = pair_open(ANY_PORT);
    size_t size = (size_t)200 << 20;
    char *block = calloc(1, size);
    struct dp_message *message = dp_message_new(3);
    struct dp_error err = {0};
    assert_non_null(block);
    for (int i = 0; i < 3; i++)
        dp_message_add(message, (struct dp_frame){block, size, release_nothing, NULL});
    assert_int_equal(dp_connection_send(pair.connection, &message, &err), DP_OK);
    assert_refuses(&pair, 1);
    assert_reaches(&pair, 5);
    pair_close(&pair);
    free(block);
}

static void what_cannot_be_delivered_is_counted_and_freed(void **state)
{
    struct pair pair = pair_open(ANY_PORT);
    struct dp_peer nobody = {.size = 5, .id = {0, 1, 2, 3, 4}}, from;
    uint64_t refused = 0, undeliverable = 0;
    struct dp_error err = {0};
    struct dp_message *message = numbered(4);
    assert_reaches(&pair, 1);
    atomic_store(&live_frames, (int)message->frames);
    dp_listener_send(pair.listener, &nobody, &message);
    assert_null(message);
    dp_listener_drops(pair.listener, &refused, &undeliverable);
    assert_int_equal(undeliverable, 1);
    assert_int_equal(atomic_load(&live_frames), 0);

    /* A peer that does not read: its queue fills up, and the rest is dropped instead of kept. */
    send_number(pair.connection, 0);
    assert_int_equal(receive_at(pair.listener, &from, &message, 10000), DP_OK);
    dp_message_free(&message);
    for (int i = 0; i < 2000 && undeliverable == 1; i++) {
        message = dp_message_new(1);
        dp_message_add(message, dp_frame_new((size_t)256 << 10));
        memset(message->frame[0].data, 0, message->frame[0].size);
        dp_listener_send(pair.listener, &from, &message);
        dp_listener_drops(pair.listener, &refused, &undeliverable);
    }
    assert_true(undeliverable > 1);
    pair_close(&pair);

    /* A client whose server is not there keeps what its queue does not take. */
    assert_int_equal(dp_net_open(1, &pair.net, &err), DP_OK);
    assert_int_equal(dp_connection_open(pair.net, "tcp://127.0.0.1:1", &pair.connection, &err), DP_OK);
    enum dp_status st = DP_OK;
    for (int i = 0; i < 1000 && st == DP_OK; i++) {
        message = numbered(1);
        st = dp_connection_send(pair.connection, &message, &err);
    }
    assert_int_equal(st, DP_AGAIN);
    assert_numbered(message, 1);
    dp_message_free(&message);
    pair_close(&pair);
}

/* ---- peers that do not read ---- */

static _Atomic uint64_t live_bytes;

static void release_large(void *data, void *owner)
{
    atomic_fetch_sub(&live_bytes, (uint64_t)(uintptr_t)owner);
}

/* Of `block`; small frames around it, as in a reply. */
static void send_large(struct dp_listener *listener, const struct dp_peer *to, void *block, size_t size)
{
    struct dp_message *message = dp_message_new(2);
    assert_non_null(message);
    dp_message_add(message, dp_frame_copy("head", 4));
    dp_message_add(message, (struct dp_frame){block, size, release_large, (void *)(uintptr_t)size});
    atomic_fetch_add(&live_bytes, size);
    dp_listener_send(listener, to, &message);
    assert_null(message);
}

static uint64_t undeliverable_of(const struct dp_listener *listener)
{
    uint64_t refused = 0, undeliverable = 0;
    dp_listener_drops(listener, &refused, &undeliverable);
    return undeliverable;
}

/* Reads `count` messages of "head" and `size` bytes; how many came in time. */
static uint64_t read_large(void *rogue, size_t size, uint64_t count)
{
    zmq_pollitem_t item = {.socket = rogue, .events = ZMQ_POLLIN};
    uint64_t n = 0;
    while (n < count && zmq_poll(&item, 1, 20000) > 0) {
        zmq_msg_t part;
        (void)zmq_msg_init(&part);
        assert_int_equal(zmq_msg_recv(&part, rogue, 0), 4);
        assert_int_equal(zmq_msg_recv(&part, rogue, 0), size);
        (void)zmq_msg_close(&part);
        n++;
    }
    return n;
}

/* ZeroMQ tells a socket in its own calls that a peer has gone: as a server does, it is asked meanwhile. */
static void assert_all_released(struct dp_listener *listener)
{
    for (uint64_t end = now_ms() + 10000; atomic_load(&live_bytes) > 0 && now_ms() < end;)
        dp_listener_wait(listener, -1, 1);
    assert_int_equal(atomic_load(&live_bytes), 0);
}

/* A peer with small buffers that has asked. */
static void *deaf_new(void *context, struct pair *pair, struct dp_peer *out)
{
    void *rogue = zmq_socket(context, ZMQ_DEALER);
    struct dp_message *message = NULL;
    int one = 1, small = 64 << 10;
    (void)zmq_setsockopt(rogue, ZMQ_RCVHWM, &one, sizeof one);
    (void)zmq_setsockopt(rogue, ZMQ_RCVBUF, &small, sizeof small);
    assert_int_equal(zmq_connect(rogue, pair->endpoint), 0);
    assert_int_equal(zmq_send(rogue, "pull", 4, 0), 4);
    assert_int_equal(receive_at(pair->listener, out, &message, 10000), DP_OK);
    dp_message_free(&message);
    return rogue;
}

/* A peer that asks and does not read: its queue would take 128 messages. */
static void a_peer_that_does_not_read_takes_bounded_memory(void **state)
{
    enum { ASKED = 40, MIB = 1 << 20, SIZE = 20 * MIB };
    struct pair pair = pair_open(ANY_PORT);
    struct dp_message *message = NULL;
    struct dp_peer deaf;
    int never = 0;
    char *block = calloc(1, (size_t)200 * MIB);
    void *context = zmq_ctx_new(), *rogue = deaf_new(context, &pair, &deaf);
    assert_non_null(block);
    atomic_store(&live_bytes, 0);

    /* Nothing unsent: it goes, whatever its size; then nothing large does, but others are served. */
    send_large(pair.listener, &deaf, block, (size_t)200 * MIB);
    assert_int_equal(undeliverable_of(pair.listener), 0);
    assert_int_equal(read_large(rogue, (size_t)200 * MIB, 1), 1);
    assert_all_released(pair.listener);
    for (int i = 0; i < ASKED; i++) {
        send_large(pair.listener, &deaf, block, SIZE);
        assert_true(atomic_load(&live_bytes) <= DP_PEER_UNSENT_MAX);
    }
    uint64_t dropped = undeliverable_of(pair.listener);
    assert_true(dropped >= 20 && dropped <= ASKED - 128 / 20);
    struct dp_peer from;
    for (uint64_t n = 0; n < 20; n++) {
        assert_reaches(&pair, n);
        send_number(pair.connection, n);
        assert_int_equal(receive_at(pair.listener, &from, &message, 10000), DP_OK);
        dp_listener_send(pair.listener, &from, &message);
        assert_int_equal(receive_answer(pair.connection, &message, 10000), DP_OK);
        assert_numbered(message, n);
        dp_message_free(&message);
    }
    assert_int_equal(undeliverable_of(pair.listener), dropped);

    /* It reads again: what was kept arrives, and it is served as before. */
    assert_int_equal(read_large(rogue, SIZE, ASKED - dropped), ASKED - dropped);
    assert_all_released(pair.listener);
    send_large(pair.listener, &deaf, block, SIZE);
    assert_int_equal(undeliverable_of(pair.listener), dropped);
    assert_int_equal(read_large(rogue, SIZE, 1), 1);

    /* It goes with its bytes unsent: they come back. So do those of one that is left when the listener goes. */
    for (int i = 0; i < 6; i++)
        send_large(pair.listener, &deaf, block, SIZE);
    assert_true(atomic_load(&live_bytes) > 0);
    (void)zmq_setsockopt(rogue, ZMQ_LINGER, &never, sizeof never);
    (void)zmq_close(rogue);
    assert_all_released(pair.listener);
    for (int i = 0; i < 6; i++)
        send_large(pair.listener, &from, block, SIZE);
    assert_true(atomic_load(&live_bytes) > 0);
    dp_listener_close(&pair.listener);
    pair_close(&pair);
    assert_int_equal(atomic_load(&live_bytes), 0);
    (void)zmq_ctx_term(context);
    free(block);
}

enum { READ = 12 };

static void *read_later(void *rogue)
{
    return (void *)(uintptr_t)read_large(rogue, (size_t)20 << 20, READ);
}

/* Who has an answer for a peer that has left too much unread waits, and is woken when the peer reads. */
static void a_wait_ends_when_a_peer_has_read(void **state)
{
    enum { MIB = 1 << 20, SIZE = 20 * MIB };
    struct pair pair = pair_open(ANY_PORT);
    struct dp_peer slow;
    pthread_t reader;
    void *context = zmq_ctx_new(), *rogue = deaf_new(context, &pair, &slow), *read = NULL;
    char *block = calloc(1, SIZE);
    assert_non_null(block);
    atomic_store(&live_bytes, 0);
    uint32_t sent = 0;
    while (dp_listener_would_send(pair.listener, &slow, SIZE)) {
        send_large(pair.listener, &slow, block, SIZE);
        sent++;
    }
    assert_true(sent >= DP_PEER_UNSENT_MAX / SIZE && sent < READ);
    assert_int_equal(pthread_create(&reader, NULL, read_later, rogue), 0);
    uint64_t end = now_ms() + 60000;
    while (sent < READ && now_ms() < end) {
        if (dp_listener_would_send(pair.listener, &slow, SIZE)) {
            send_large(pair.listener, &slow, block, SIZE);
            sent++;
        } else {
            dp_listener_wait(pair.listener, -1, 60000);
        }
    }
    assert_true(now_ms() < end);
    assert_int_equal(undeliverable_of(pair.listener), 0);
    assert_int_equal(pthread_join(reader, &read), 0);
    assert_int_equal((uintptr_t)read, READ);
    (void)zmq_close(rogue);
    (void)zmq_ctx_term(context);
    assert_all_released(pair.listener);
    pair_close(&pair);
    free(block);
}

#define ENDS_MORE 2500u /* than ZeroMQ's monitors keep by default */

struct door {
    int fd;
    _Atomic uint32_t closed; /* connections that were accepted and closed at once */
};

static void *close_all(void *arg)
{
    struct door *door = arg;
    for (int fd; (fd = accept(door->fd, NULL, NULL)) >= 0 || errno != EINVAL; (void)close(fd))
        atomic_fetch_add(&door->closed, fd >= 0);
    return NULL;
}

/* A proxy accepts and closes while its server is down, and the client computes meanwhile: it reads no event. */
static void ends_that_nobody_looks_at_hold_up_nothing(void **state)
{
    struct dp_net *net;
    struct dp_error err = {0};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct door door = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    socklen_t size = sizeof at;
    char endpoint[64];
    void *dealer, *monitor;
    pthread_t thread;
    int soon = 1, never = 0;
    assert_int_equal(bind(door.fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(door.fd, 64), 0);
    assert_int_equal(getsockname(door.fd, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(pthread_create(&thread, NULL, close_all, &door), 0);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(dp_net_open(1, &net, &err), DP_OK);
    assert_int_equal(dp_socket_new(net, ZMQ_DEALER, endpoint, &dealer, &err), DP_OK);
    assert_int_equal(zmq_setsockopt(dealer, ZMQ_RECONNECT_IVL, &soon, sizeof soon), 0);
    assert_int_equal(zmq_setsockopt(dealer, ZMQ_RECONNECT_IVL_MAX, &never, sizeof never), 0);
    assert_int_equal(dp_socket_monitor(net, dealer, ZMQ_EVENT_DISCONNECTED, false, endpoint, &monitor, &err),
                     DP_OK);
    assert_int_equal(zmq_connect(dealer, endpoint), 0);
    uint32_t seen = 0, closed;
    for (uint64_t end = now_ms() + 10000; seen < ENDS_MORE && now_ms() < end; seen = closed) {
        (void)poll(NULL, 0, 20);
        closed = atomic_load(&door.closed);
        end = closed > seen ? now_ms() + 10000 : end;
    }
    char event[64];
    if (seen < ENDS_MORE)
        while (zmq_recv(monitor, event, sizeof event, ZMQ_DONTWAIT) >= 0)
            continue; /* else the close below would wait for ever */
    (void)zmq_socket_monitor(dealer, NULL, 0);
    (void)zmq_close(monitor);
    (void)zmq_close(dealer);
    dp_net_close(&net);
    (void)shutdown(door.fd, SHUT_RDWR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(door.fd);
    assert_true(seen >= ENDS_MORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rubbish_ends_its_own_connection_only),
        cmocka_unit_test(peers_with_ids_of_their_own_are_refused),
        cmocka_unit_test(messages_over_the_limits_are_drained),
        cmocka_unit_test(the_sum_of_frames_is_limited),
        cmocka_unit_test(what_cannot_be_delivered_is_counted_and_freed),
        cmocka_unit_test(a_peer_that_does_not_read_takes_bounded_memory),
        cmocka_unit_test(a_wait_ends_when_a_peer_has_read),
        cmocka_unit_test(ends_that_nobody_looks_at_hold_up_nothing),
    };
    return cmocka_run_group_tests_name("net_rogue", tests, NULL, NULL);
}

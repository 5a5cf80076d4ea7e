/* Guard: peers that send without end or read nothing lose their connections; all others are served meanwhile. */
#include "tests/lib/test.h"

#include "common/net/net.h"
#include "tests/lib/process.h"
#include "tests/lib/zmtp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MIB     ((size_t)1 << 20)
#define WAITING (8 * MIB)  /* of one peer */
#define ALL     (16 * MIB) /* of all, each way */
#define MUCH    (512 * MIB)
#define STALL   300u
#define SOON_MS 20000u

struct scene {
    struct dp_net *net;
    struct dp_listener *listener;
    struct dp_connection *good;
    uint32_t port;
    char *block; /* [MIB] */
};

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct dp_error err = {0};
    const struct dp_listener_limits limits = {
        .unsent_bytes = ALL, .waiting_bytes = WAITING, .all_waiting_bytes = ALL, .stall_ms = STALL};
    if (!s || !(s->block = calloc(1, MIB)) || dp_net_open(1, &s->net, &err) != DP_OK ||
        dp_listener_open(s->net, "tcp://127.0.0.1:*", &s->listener, &err) != DP_OK)
        return -1;
    dp_listener_limit(s->listener, &limits);
    s->port = (uint32_t)atoi(strrchr(dp_listener_endpoint(s->listener), ':') + 1);
    *state = s;
    return dp_connection_open(s->net, dp_listener_endpoint(s->listener), &s->good, &err) == DP_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    dp_connection_close(&s->good);
    dp_listener_close(&s->listener);
    dp_net_close(&s->net);
    free(s->block);
    free(s);
    return 0;
}

static uint64_t refused_by(const struct scene *s)
{
    uint64_t refused = 0, undeliverable = 0;
    dp_listener_drops(s->listener, &refused, &undeliverable);
    return refused;
}

/* Between the frames of a flood: a send into a full window learns only after many seconds that it was hung up on. */
static void let_look(const struct scene *s)
{
    dp_listener_wait(s->listener, -1, 10);
}

static void await_refused(const struct scene *s, uint64_t least)
{
    for (uint64_t end = now_ms() + (uint64_t)SOON_MS * DP_PATIENCE; refused_by(s) < least;) {
        assert_true(now_ms() < end);
        dp_listener_wait(s->listener, -1, 10);
    }
}

static void take_one(struct scene *s, struct dp_peer *from, size_t size)
{
    struct dp_message *message = NULL;
    uint64_t end = now_ms() + (uint64_t)SOON_MS * DP_PATIENCE;
    while (!dp_listener_receive(s->listener, from, &message)) {
        assert_true(now_ms() < end);
        dp_listener_wait(s->listener, -1, 10);
    }
    assert_int_equal(message->frame[0].size, size);
    dp_message_free(&message);
}

/* A message of the good peer reaches the listener. */
static void is_served(struct scene *s, size_t size)
{
    struct dp_error err = {0};
    struct dp_message *message = dp_message_new(1);
    struct dp_peer from;
    assert_non_null(message);
    dp_message_add(message, dp_frame_copy(s->block, size));
    assert_int_equal(dp_connection_send(s->good, &message, &err), DP_OK);
    take_one(s, &from, size);
}

/* The frames of a message that never ends: none of them reaches anybody, so the listener's thread has nothing to look at. */
static void a_message_without_end_ends_its_connection(void **state)
{
    struct scene *s = *state;
    size_t sent = 0;
    is_served(s, 3);
    int fd = dp_zmtp_connect(s->port, 0);
    assert_true(fd >= 0);
    for (; refused_by(s) == 0; sent += MIB) {
        assert_true(sent < MUCH);
        (void)dp_zmtp_send(fd, true, s->block, MIB);
        let_look(s);
    }
    (void)close(fd);
    is_served(s, MIB);
}

/* Empty frames: nothing but their headers. */
static void frames_without_bytes_count_too(void **state)
{
    struct scene *s = *state;
    size_t sent = 0;
    int fd = dp_zmtp_connect(s->port, 0);
    assert_true(fd >= 0);
    for (size_t i = 0; i < MIB; i += 2) {
        s->block[i] = 1; /* more, length 0 */
        s->block[i + 1] = 0;
    }
    for (; refused_by(s) == 0; sent += MIB) {
        assert_true(sent < MUCH);
        (void)!send(fd, s->block, MIB, MSG_NOSIGNAL);
        let_look(s);
    }
    (void)close(fd);
    memset(s->block, 0, MIB);
    is_served(s, MIB);
}

/* What a peer sent before the guard knew of its connection counts as taken. The guard hears of connections in order: once it has ended
 * one more, it knows all that were there before. Returns how many it has ended so far. */
static uint64_t knows_all(struct scene *s)
{
    uint64_t before = refused_by(s), end = now_ms() + (uint64_t)SOON_MS * DP_PATIENCE;
    int fd = dp_zmtp_connect(s->port, 0);
    assert_true(fd >= 0);
    while (refused_by(s) == before) {
        assert_true(now_ms() < end);
        (void)dp_zmtp_send(fd, true, s->block, MIB);
        let_look(s);
    }
    (void)close(fd);
    return before + 1;
}

/* Each below the bound of one: together above that of all. */
static void all_peers_share_a_bound(void **state)
{
    enum { PEERS = 4 };
    struct scene *s = *state;
    int fd[PEERS];
    for (int i = 0; i < PEERS; i++) {
        fd[i] = dp_zmtp_connect(s->port, 0);
        assert_true(fd[i] >= 0);
    }
    uint64_t before = knows_all(s);
    for (size_t sent = 0; sent < 6 * MIB; sent += MIB)
        for (int i = 0; i < PEERS; i++)
            (void)dp_zmtp_send(fd[i], true, s->block, MIB);
    await_refused(s, before + 1);
    is_served(s, MIB);
    assert_in_range(refused_by(s), before + 1, before + 2); /* those that are left are below it */
    for (int i = 0; i < PEERS; i++)
        (void)close(fd[i]);
}

/* Ten times the bound, and frames of all kinds of length: what is taken does not count. */
static void a_peer_whose_messages_are_taken_stays(void **state)
{
    struct scene *s = *state;
    static const size_t sizes[] = {0, 1, 254, 255, 256, 257, 70000, 1 << 20};
    for (uint32_t i = 0; i < 80 * 8; i++)
        is_served(s, sizes[i % 8]);
    assert_int_equal(refused_by(s), 0);
}

static void release_nothing(void *data, void *owner) {}

static void send_mib(struct scene *s, const struct dp_peer *to)
{
    struct dp_message *message = dp_message_new(1);
    assert_non_null(message);
    dp_message_add(message, (struct dp_frame){s->block, MIB, release_nothing, NULL});
    dp_listener_send(s->listener, to, &message);
}

/* Many peers that ask and do not read: together they hold no more than the bound, then they go, and the others have it back. */
static void peers_that_do_not_read_share_a_bound_and_go(void **state)
{
    enum { PEERS = 6, EACH = 40 };
    struct scene *s = *state;
    struct dp_peer peer[PEERS], from;
    int fd[PEERS];
    for (int i = 0; i < PEERS; i++) {
        fd[i] = dp_zmtp_connect(s->port, 64 << 10);
        assert_true(fd[i] >= 0 && dp_zmtp_send(fd[i], false, "pull", 4));
        take_one(s, &peer[i], 4);
    }
    uint32_t went = 0;
    for (int n = 0; n < EACH; n++)
        for (int i = 0; i < PEERS; i++) {
            went += dp_listener_would_send(s->listener, &peer[i], MIB);
            send_mib(s, &peer[i]);
        }
    /* Beside the bound: one message each, and what the kernels hold. */
    assert_in_range(went, ALL / MIB, ALL / MIB + PEERS * 8);
    await_refused(s, PEERS);
    struct dp_error err = {0};
    struct dp_message *message = dp_message_new(1), *answer = NULL;
    assert_non_null(message);
    dp_message_add(message, dp_frame_copy("pull", 4));
    assert_int_equal(dp_connection_send(s->good, &message, &err), DP_OK);
    take_one(s, &from, 4);
    send_mib(s, &from);
    for (uint64_t end = now_ms() + (uint64_t)SOON_MS * DP_PATIENCE;
         !dp_connection_receive(s->good, &answer);) {
        assert_true(now_ms() < end);
        dp_connections_wait(&s->good, 1, 10);
    }
    assert_int_equal(answer->frame[0].size, MIB);
    dp_message_free(&answer);
    for (int i = 0; i < PEERS; i++) {
        assert_true(dp_zmtp_hangs_up(fd[i]));
        (void)close(fd[i]);
    }
}

/* Peers that hold all that may be unread, and longer than a test takes: who asks and reads is served all the same. */
static void peers_that_do_not_read_keep_nobody_out(void **state)
{
    enum { PEERS = 6, EACH = 8 * MIB };
    struct scene *s = *state;
    const struct dp_listener_limits limits = {
        .unsent_bytes = ALL, .waiting_bytes = WAITING, .all_waiting_bytes = ALL, .stall_ms = 1000 * SOON_MS};
    struct dp_peer from;
    struct dp_error err = {0};
    struct dp_message *answer = NULL;
    int fd[PEERS];
    dp_listener_limit(s->listener, &limits);
    is_served(s, 3);
    for (int i = 0; i < PEERS; i++) {
        fd[i] = dp_zmtp_connect(s->port, 64 << 10);
        assert_true(fd[i] >= 0 && dp_zmtp_send(fd[i], false, "pull", 4));
        take_one(s, &from, 4);
        struct dp_message *large =
            dp_message_new(1); /* to one with nothing unsent it goes, whatever its size */
        assert_non_null(large);
        dp_message_add(large, dp_frame_new(EACH));
        dp_listener_send(s->listener, &from, &large);
    }
    for (uint64_t end = now_ms() + (uint64_t)SOON_MS * DP_PATIENCE; !answer;) {
        assert_true(now_ms() < end);
        struct dp_message *message = dp_message_new(1);
        assert_non_null(message);
        dp_message_add(message, dp_frame_copy("pull", 4));
        assert_int_equal(dp_connection_send(s->good, &message, &err), DP_OK);
        take_one(s, &from, 4);
        send_mib(s, &from);
        dp_connections_wait(&s->good, 1, 50);
        (void)!dp_connection_receive(s->good, &answer);
    }
    dp_message_free(&answer);
    for (int i = 0; i < PEERS; i++)
        (void)close(fd[i]);
}

static void let_pass(struct scene *s, uint64_t ms)
{
    for (uint64_t end = now_ms() + ms; now_ms() < end;)
        dp_listener_wait(s->listener, -1, 10);
}

/* A message takes long to come, and is larger than those that peers keep open: they lose their connections, not its peer. Before, its
 * peer was silent for as long as they were. */
static void small_messages_without_end_push_no_larger_one_out(void **state)
{
    enum { PEERS = 7, GOOD = PEERS, HELD_MS = 1000 };
    struct scene *s = *state;
    int fd[PEERS + 1];
    struct dp_peer from;
    for (int i = 0; i <= GOOD; i++) {
        fd[i] = dp_zmtp_open(s->port, 0);
        assert_true(fd[i] >= 0);
    }
    uint64_t before = knows_all(s); /* their handshakes come after it */
    for (int i = 0; i <= GOOD; i++)
        assert_true(dp_zmtp_shake_hands(fd[i]));
    for (int i = 0; i < PEERS; i++) /* 14 MiB of the 16 */
        assert_true(dp_zmtp_send(fd[i], true, s->block, MIB) && dp_zmtp_send(fd[i], true, s->block, MIB));
    let_pass(s, HELD_MS); /* what they have held for long is what is tested */
    assert_int_equal(refused_by(s), before);
    for (int i = 0; i < 3; i++)
        assert_true(dp_zmtp_send(fd[GOOD], true, s->block, MIB));
    await_refused(s, before + 1);
    assert_true(dp_zmtp_send(fd[GOOD], false, s->block, MIB));
    take_one(s, &from, MIB);
    for (int i = 0; i <= GOOD; i++)
        (void)close(fd[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_message_without_end_ends_its_connection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frames_without_bytes_count_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_peers_share_a_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_whose_messages_are_taken_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peers_that_do_not_read_share_a_bound_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peers_that_do_not_read_keep_nobody_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(small_messages_without_end_push_no_larger_one_out, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}

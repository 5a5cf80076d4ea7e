/* A cut: the network loses everything for a while, and no end of the connection reaches either side. Method:
 * the test takes down the loopback of a network namespace of its own. Skipped where none can be made. */
#define _GNU_SOURCE /* unshare */
#include "tests/lib/timeouts.h"
#include "tests/unit/net/pair.h"

#include <net/if.h>
#include <sys/ioctl.h>

static bool own_network;

/* Before the first thread: namespaces are a thread's. As an ordinary user, in a user namespace. */
static int open_network(void **state)
{
    own_network = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
    return 0;
}

static void set_loopback(bool up)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = (short)(up ? IFF_UP : 0)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &loopback), 0);
    (void)close(fd);
}

static bool broke_within(struct dp_connection *connection, uint32_t timeout_ms)
{
    uint64_t end = now_ms() + timeout_ms;
    bool broke = false;
    while (!broke && now_ms() < end) {
        dp_connections_wait(&connection, 1, 100);
        broke = dp_connection_broke(connection);
    }
    return broke;
}

/* The one before may have been lost in the cut, or not. */
static void assert_answered(struct pair *pair, uint64_t n)
{
    struct dp_message *message = NULL;
    struct dp_peer from;
    send_number(pair->connection, n);
    for (uint64_t got = 0; got != n;) {
        dp_message_free(&message);
        assert_int_equal(receive_at(pair->listener, &from, &message, 10000), DP_OK);
        got = dp_load_u64le(message->frame[0].data);
    }
    dp_listener_send(pair->listener, &from, &message);
    assert_int_equal(receive_answer(pair->connection, &message, 10000), DP_OK);
    assert_numbered(message, n);
    dp_message_free(&message);
}

/* TCP itself would notice the end of an idle connection after 60 s, by its keepalive, of another after
 * minutes. */
static void a_cut_ends_the_connection(bool busy)
{
    if (!own_network)
        skip();
    set_loopback(true);
    struct pair pair = pair_open(ANY_PORT);
    assert_reaches(&pair, 1);
    (void)broke_within(pair.connection, 0);
    set_loopback(false);
    if (busy)
        send_number(pair.connection, 2);
    assert_true(broke_within(pair.connection, 20000 * DP_PATIENCE));
    set_loopback(true);
    assert_answered(&pair, 3);
    pair_close(&pair);
}

static void a_cut_ends_an_idle_connection(void **state)
{
    a_cut_ends_the_connection(false);
}

static void a_cut_ends_a_busy_connection(void **state)
{
    a_cut_ends_the_connection(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_ends_an_idle_connection),
        cmocka_unit_test(a_cut_ends_a_busy_connection),
    };
    return cmocka_run_group_tests(tests, open_network, NULL);
}

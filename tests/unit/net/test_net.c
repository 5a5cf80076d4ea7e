/* Net: messages arrive whole and in order, without a copy being left behind; a peer that sends rubbish loses
 * its own connection only; every wait ends; a server that comes back is found again. */
#include "tests/unit/net/pair.h"

#include <netdb.h>
#include <sys/resource.h>

struct echo {
    const char *endpoint;
    char bound[128];
    atomic_int started, stop;
    uint64_t undeliverable, refused;
    enum dp_status status;
};

/* A server thread: sends back what came, the same frames. */
static void *echo_main(void *arg)
{
    struct echo *echo = arg;
    struct dp_net *net = NULL;
    struct dp_listener *listener = NULL;
    echo->status = dp_net_open(1, &net, NULL);
    if (echo->status == DP_OK)
        echo->status = dp_listener_open(net, echo->endpoint, &listener, NULL);
    if (echo->status == DP_OK)
        (void)snprintf(echo->bound, sizeof echo->bound, "%s", dp_listener_endpoint(listener));
    atomic_store(&echo->started, 1);
    while (echo->status == DP_OK && !atomic_load(&echo->stop)) {
        struct dp_peer from;
        struct dp_message *message = NULL;
        while (dp_listener_receive(listener, &from, &message))
            dp_listener_send(listener, &from, &message);
        dp_listener_wait(listener, -1, 5);
    }
    if (listener)
        dp_listener_drops(listener, &echo->refused, &echo->undeliverable);
    dp_listener_close(&listener);
    dp_net_close(&net);
    return NULL;
}

static void echo_in_order(const char *endpoint)
{
    enum { COUNT = 10000, AHEAD = 50 };
    struct echo echo = {.endpoint = endpoint};
    struct dp_transport transport;
    struct dp_error err = {0};
    pthread_t thread;
    atomic_store(&live_frames, 0);
    assert_int_equal(pthread_create(&thread, NULL, echo_main, &echo), 0);
    for (uint64_t end = now_ms() + 10000; !atomic_load(&echo.started) && now_ms() < end;)
        (void)sched_yield();
    assert_int_equal(echo.status, DP_OK);
    const char *endpoints[] = {echo.bound};
    assert_int_equal(dp_transport_open(endpoints, 1, &transport, &err), DP_OK);
    uint64_t sent = 0, got = 0, end = now_ms() + 60000;
    while (got < COUNT && now_ms() < end) {
        struct dp_message *message = NULL;
        uint32_t server = 99;
        while (sent < COUNT && sent < got + AHEAD) {
            message = numbered(sent);
            if (transport.send(transport.self, 0, &message, &err) != DP_OK) {
                assert_non_null(message);
                dp_message_free(&message);
                break;
            }
            sent++;
        }
        while (transport.receive(transport.self, &server, &message)) {
            assert_int_equal(server, 0);
            assert_numbered(message, got++);
            dp_message_free(&message);
        }
        if (got < COUNT)
            transport.wait(transport.self, 10);
    }
    assert_int_equal(got, COUNT);
    transport.close(transport.self);
    atomic_store(&echo.stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(echo.undeliverable + echo.refused, 0);
    assert_int_equal(atomic_load(&live_frames), 0); /* each frame was released, once */
}

static void messages_come_back_in_order_over_tcp(void **state)
{
    echo_in_order(ANY_PORT);
}

static void messages_come_back_in_order_over_ipc(void **state)
{
    char endpoint[64];
    (void)snprintf(endpoint, sizeof endpoint, "ipc:///tmp/dp-test-net-%ld", (long)getpid());
    echo_in_order(endpoint);
}

/* A large frame arrives at the address where ZeroMQ put it and leaves from where its owner put it. Nobody listens while that is looked
 * at: what is sent is released. */
static void large_frames_are_not_copied_on_send(void **state)
{
    char endpoint[64];
    struct pair pair = {0};
    struct dp_message *message = dp_message_new(2);
    struct dp_error err = {0};
    struct dp_peer from;
    (void)snprintf(endpoint, sizeof endpoint, "ipc:///tmp/dp-test-net-%ld", (long)getpid());
    assert_int_equal(dp_net_open(1, &pair.net, &err), DP_OK);
    assert_int_equal(dp_connection_open(pair.net, endpoint, &pair.connection, &err), DP_OK);
    atomic_store(&live_frames, 0);
    dp_message_add(message, counted_frame(100, 1));
    dp_message_add(message, counted_frame((size_t)8 << 20, 2));
    assert_int_equal(dp_connection_send(pair.connection, &message, &err), DP_OK);
    assert_int_equal(atomic_load(&live_frames), 1); /* the small one was copied; the large one is ZeroMQ's */
    assert_int_equal(dp_listener_open(pair.net, endpoint, &pair.listener, &err), DP_OK);
    assert_int_equal(receive_at(pair.listener, &from, &message, 10000), DP_OK);
    assert_int_equal(message->frame[1].size, (size_t)8 << 20);
    assert_int_equal(((unsigned char *)message->frame[1].data)[(8 << 20) - 1], 2);
    dp_message_free(&message);
    pair_close(&pair);
    assert_int_equal(atomic_load(&live_frames), 0);
}

static void assert_not_opened(struct dp_net *net, const char *endpoint, enum dp_status why, const char *cause)
{
    struct dp_listener *listener = NULL;
    struct dp_error err = {0};
    enum dp_status st = dp_listener_open(net, endpoint, &listener, &err);
    if (st != why || !strstr(err.text, endpoint) || !strstr(err.text, cause))
        fail_msg("'%s': %s: %s", endpoint, dp_status_name((int)st), err.text);
    assert_null(listener);
}

static void bad_endpoints_are_named_with_their_cause(void **state)
{
    struct pair pair = pair_open(ANY_PORT);
    struct dp_error err = {0};
    assert_not_opened(pair.net, pair.endpoint, DP_IO, "another server");
    assert_not_opened(pair.net, "", DP_ARGUMENT, "expected tcp://");
    assert_not_opened(pair.net, "127.0.0.1:5701", DP_ARGUMENT, "expected tcp://");
    assert_not_opened(pair.net, "inproc://x", DP_ARGUMENT, "expected tcp://");
    assert_not_opened(pair.net, "tcp://127.0.0.1", DP_ARGUMENT, "expected tcp://");
    assert_not_opened(pair.net, "tcp://127.0.0.1:70000", DP_ARGUMENT, "expected tcp://");
    assert_not_opened(pair.net, "tcp://192.0.2.1:5701", DP_IO, "no such address");
    assert_not_opened(pair.net, "ipc:///nowhere/at/all", DP_IO, "No such file");
    static const char *const bad[] = {"tcp://",
                                      "tcp://127.0.0.1:",
                                      "tcp://127.0.0.1:x",
                                      "udp://127.0.0.1:1",
                                      "tcp://127.0.0.1:65536",
                                      "tcp://127.0.0.1:*",
                                      "ipc://"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dp_connection *connection = NULL;
        assert_int_equal(dp_connection_open(pair.net, bad[i], &connection, &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, bad[i]));
        assert_null(connection);
    }
    pair_close(&pair);
}

static void an_ipc_path_in_use_is_not_taken_over(void **state)
{
    char endpoint[64];
    (void)snprintf(endpoint, sizeof endpoint, "ipc:///tmp/dp-test-net-%ld", (long)getpid());
    struct pair pair = pair_open(endpoint);
    assert_not_opened(pair.net, endpoint, DP_IO, "another server");
    assert_reaches(&pair, 2);
    pair_close(&pair);

    /* What a killed server leaves: a socket file that nobody listens on. */
    struct sockaddr_un left = {.sun_family = AF_UNIX};
    assert_int_equal(access(endpoint + 6, F_OK), -1); /* the closed listener took its file away */
    (void)snprintf(left.sun_path, sizeof left.sun_path, "%s", endpoint + 6);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&left, sizeof left), 0);
    (void)close(fd);
    pair = pair_open(endpoint);
    assert_reaches(&pair, 3);
    pair_close(&pair);
}

static void a_server_that_comes_back_is_found_again(void **state)
{
    struct pair pair = pair_open(ANY_PORT);
    struct dp_error err = {0};
    struct dp_message *message = NULL;
    struct dp_peer from;
    assert_reaches(&pair, 1);
    dp_listener_close(&pair.listener);
    /* The port is free when ZeroMQ's thread has closed it: a moment later. */
    for (uint64_t end = now_ms() + 10000; !pair.listener && now_ms() < end;)
        (void)!dp_listener_open(pair.net, pair.endpoint, &pair.listener, &err);
    assert_non_null(pair.listener);
    /* What was sent in between may be lost; so it is sent again, as clients do. */
    enum dp_status st = DP_AGAIN;
    for (int i = 0; i < 100 && st != DP_OK; i++) {
        send_number(pair.connection, 7);
        st = receive_at(pair.listener, &from, &message, 100);
    }
    assert_int_equal(st, DP_OK);
    assert_numbered(message, 7);
    dp_listener_send(pair.listener, &from, &message);
    assert_int_equal(receive_answer(pair.connection, &message, 10000), DP_OK);
    assert_numbered(message, 7);
    dp_message_free(&message);
    pair_close(&pair);
}

/* As clients do: what is sent when the end of the connection is heard arrives, whatever was lost before. */
static void the_end_of_a_connection_is_heard(void **state)
{
    const char *endpoint = *state;
    struct pair pair = pair_open(endpoint);
    struct dp_error err = {0};
    struct dp_message *message = NULL;
    struct dp_peer from;
    for (uint64_t n = 0; n < 3; n++) {
        assert_reaches(&pair, n);
        dp_connections_wait(&pair.connection, 1, 0);
        assert_false(dp_connection_broke(pair.connection));
        dp_listener_close(&pair.listener);
        bool broke = false;
        for (uint64_t end = now_ms() + 30000; !broke && now_ms() < end;) {
            dp_connections_wait(&pair.connection, 1, 30000);
            broke = dp_connection_broke(pair.connection);
        }
        assert_true(broke);
        assert_false(dp_connection_broke(pair.connection)); /* told once */
        send_number(pair.connection, 7);
        for (uint64_t end = now_ms() + 10000; !pair.listener && now_ms() < end;)
            (void)!dp_listener_open(pair.net, pair.endpoint, &pair.listener, &err);
        assert_non_null(pair.listener);
        assert_int_equal(receive_at(pair.listener, &from, &message, 30000), DP_OK);
        assert_numbered(message, 7);
        dp_message_free(&message);
    }
    pair_close(&pair);
}

static void waits_end_at_the_deadline_or_when_woken(void **state)
{
    struct pair pair = pair_open(ANY_PORT);
    int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    uint64_t one = 1, begin = now_ms();
    dp_listener_wait(pair.listener, wake, 50);
    dp_connections_wait(&pair.connection, 1, 50);
    uint64_t took = now_ms() - begin;
    assert_true(took >= 90 && took < 10000);
    assert_int_equal(write(wake, &one, sizeof one), sizeof one);
    begin = now_ms();
    dp_listener_wait(pair.listener, wake, 30000);
    assert_true(now_ms() - begin < 10000);
    assert_int_equal(read(wake, &one, sizeof one), sizeof one); /* left for the caller to read */
    (void)close(wake);
    send_number(pair.connection, 3);
    begin = now_ms();
    dp_listener_wait(pair.listener, -1, 30000);
    assert_true(now_ms() - begin < 10000);
    pair_close(&pair);
}

/* What a client needs is compared with the limit before it opens anything, and is enough. */
static void too_few_open_files_are_named_at_once(void **state)
{
    enum { MANY = 17 };
    const char *endpoints[MANY];
    struct dp_transport transport;
    struct dp_error err = {0};
    struct rlimit before, few;
    for (int i = 0; i < MANY; i++)
        endpoints[i] = "tcp://127.0.0.1:9";
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 87;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    enum dp_status st = dp_transport_open(endpoints, MANY, &transport, &err);
    few.rlim_cur = 88;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    enum dp_status enough = dp_transport_open(endpoints, MANY, &transport, NULL);
    if (enough == DP_OK)
        transport.close(transport.self);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(st, DP_FULL);
    assert_non_null(strstr(err.text, "a client needs about 88 open files and connections"));
    assert_int_equal(enough, DP_OK);
}

static void route_has_an_address_of_this_machine(void **state)
{
    struct dp_net *net;
    struct dp_error err = {0};
    char out[64];
    assert_int_equal(dp_net_open(1, &net, &err), DP_OK);
    assert_int_equal(dp_net_route(net, "tcp://127.0.0.1:5700", 1000, out, sizeof out, &err), DP_OK);
    assert_string_equal(out, "127.0.0.1");
    assert_true(dp_net_is_own(out));
    /* A bare system may have no /etc/hosts. */
    struct addrinfo *found = NULL;
    if (getaddrinfo("localhost", NULL, NULL, &found) == 0) {
        freeaddrinfo(found);
        assert_int_equal(dp_net_route(net, "tcp://localhost:5700", 10000, out, sizeof out, &err), DP_OK);
        assert_true(dp_net_is_own(out));
    }
    if (dp_net_route(net, "tcp://[::1]:5700", 1000, out, sizeof out, &err) == DP_OK)
        assert_string_equal(out, "[::1]");
    assert_false(dp_net_is_own("192.0.2.1"));
    dp_net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(route_has_an_address_of_this_machine),
        cmocka_unit_test(messages_come_back_in_order_over_tcp),
        cmocka_unit_test(messages_come_back_in_order_over_ipc),
        cmocka_unit_test(large_frames_are_not_copied_on_send),
        cmocka_unit_test(bad_endpoints_are_named_with_their_cause),
        cmocka_unit_test(an_ipc_path_in_use_is_not_taken_over),
        cmocka_unit_test(a_server_that_comes_back_is_found_again),
        cmocka_unit_test_prestate(the_end_of_a_connection_is_heard, ANY_PORT),
        cmocka_unit_test(waits_end_at_the_deadline_or_when_woken),
        cmocka_unit_test(too_few_open_files_are_named_at_once),
    };
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}

/* Names: a listener takes all addresses of its name that are of this machine; a client goes to the next
 * address, follows a name that moves, and says why a name has none. Method: getaddrinfo is replaced (a link
 * option), so no name server is needed. */
#include "tests/lib/test.h"

#include "common/net/net.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct {
    pthread_mutex_t lock;
    const char *address[2]; /* of any name; NULL: unknown */
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    struct addrinfo **at = out;
    int error = EAI_NONAME;
    (void)pthread_mutex_lock(&names.lock);
    for (uint32_t i = 0; i < 2 && names.address[i]; i++) {
        error = __real_getaddrinfo(names.address[i], service, hints, at);
        while (error == 0 && *at)
            at = &(*at)->ai_next;
    }
    (void)pthread_mutex_unlock(&names.lock);
    return error;
}

static void name_is(const char *first, const char *second)
{
    (void)pthread_mutex_lock(&names.lock);
    names.address[0] = first;
    names.address[1] = second;
    (void)pthread_mutex_unlock(&names.lock);
}

static struct dp_listener *listen_at(struct dp_net *net, const char *address, const char *port)
{
    struct dp_listener *listener = NULL;
    struct dp_error err = {0};
    char endpoint[128];
    (void)snprintf(endpoint, sizeof endpoint, "tcp://%s:%s", address, port);
    if (dp_listener_open(net, endpoint, &listener, &err) != DP_OK)
        fail_msg("%s", err.text);
    return listener;
}

static const char *port_of(const struct dp_listener *listener)
{
    return strrchr(dp_listener_endpoint(listener), ':') + 1;
}

static struct dp_connection *connect_to(struct dp_net *net, const char *host, const char *port)
{
    struct dp_connection *connection = NULL;
    char endpoint[128];
    (void)snprintf(endpoint, sizeof endpoint, "tcp://%s:%s", host, port);
    assert_int_equal(dp_connection_open(net, endpoint, &connection, NULL), DP_OK);
    return connection;
}

/* Sends a message until one arrives: those of a connection that ends may be lost. */
static void assert_arrives(struct dp_connection *connection, struct dp_listener *listener)
{
    static char bytes[8];
    struct dp_message *message = NULL, *got = NULL;
    struct dp_peer from;
    for (uint64_t end = now_ms() + 20000; !got && now_ms() < end;) {
        if (!message) {
            message = dp_message_new(1);
            dp_message_add(message, (struct dp_frame){bytes, sizeof bytes, NULL, NULL});
        }
        (void)!dp_connection_send(connection, &message, NULL);
        dp_connections_wait(&connection, 1, 10);
        (void)dp_connection_broke(connection);
        (void)!dp_listener_receive(listener, &from, &got);
    }
    assert_non_null(got);
    dp_message_free(&got);
    dp_message_free(&message);
}

static void a_listener_takes_all_addresses_of_its_name(void **state)
{
    struct dp_net *net = NULL;
    assert_int_equal(dp_net_open(1, &net, NULL), DP_OK);
    name_is("127.0.0.1", "127.0.0.2");
    struct dp_listener *listener = listen_at(net, "both", "*");
    for (uint32_t i = 0; i < 2; i++) {
        struct dp_connection *connection = connect_to(net, i ? "127.0.0.2" : "127.0.0.1", port_of(listener));
        assert_arrives(connection, listener);
        dp_connection_close(&connection);
    }
    dp_listener_close(&listener);
    dp_net_close(&net);
}

static void refuses(const char *why)
{
    struct dp_net *net = NULL;
    struct dp_listener *listener = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_net_open(1, &net, NULL), DP_OK);
    assert_int_equal(dp_listener_open(net, "tcp://node7:*", &listener, &err), DP_IO);
    assert_non_null(strstr(err.text, "'node7'"));
    assert_non_null(strstr(err.text, why));
    assert_null(listener);
    dp_net_close(&net);
}

static void a_name_of_another_machine_is_refused(void **state)
{
    name_is("192.0.2.1", NULL);
    refuses("is 192.0.2.1, which is no address of this machine");
}

static void an_unknown_name_is_refused(void **state)
{
    name_is(NULL, NULL);
    refuses("cannot be resolved (Name or service not known)");
}

static void a_client_takes_the_next_address(void **state)
{
    struct dp_net *net = NULL;
    assert_int_equal(dp_net_open(1, &net, NULL), DP_OK);
    struct dp_listener *listener = listen_at(net, "127.0.0.1", "*");
    name_is("127.0.0.3", "127.0.0.1");
    struct dp_connection *connection = connect_to(net, "two", port_of(listener));
    assert_arrives(connection, listener);
    dp_connection_close(&connection);
    dp_listener_close(&listener);
    dp_net_close(&net);
}

static void a_client_follows_a_name_that_moves(void **state)
{
    struct dp_net *net = NULL;
    char port[16];
    assert_int_equal(dp_net_open(1, &net, NULL), DP_OK);
    struct dp_listener *listener = listen_at(net, "127.0.0.1", "*");
    (void)snprintf(port, sizeof port, "%s", port_of(listener));
    name_is("127.0.0.1", NULL);
    struct dp_connection *connection = connect_to(net, "moves", port);
    assert_arrives(connection, listener);
    dp_listener_close(&listener);
    name_is("127.0.0.2", NULL);
    listener = listen_at(net, "127.0.0.2", port);
    assert_arrives(connection, listener);
    dp_connection_close(&connection);
    dp_listener_close(&listener);
    dp_net_close(&net);
}

static void a_client_waits_for_a_name_and_says_so(void **state)
{
    struct dp_net *net = NULL;
    assert_int_equal(dp_net_open(1, &net, NULL), DP_OK);
    struct dp_listener *listener = listen_at(net, "127.0.0.1", "*");
    name_is(NULL, NULL);
    struct dp_connection *connection = connect_to(net, "late", port_of(listener));
    for (uint64_t end = now_ms() + 20000; !dp_connection_trouble(connection) && now_ms() < end;)
        dp_connections_wait(&connection, 1, 10);
    assert_non_null(dp_connection_trouble(connection));
    assert_non_null(strstr(dp_connection_trouble(connection), "'late' cannot be resolved"));
    name_is("127.0.0.1", NULL);
    assert_arrives(connection, listener);
    assert_null(dp_connection_trouble(connection));
    dp_connection_close(&connection);
    dp_listener_close(&listener);
    dp_net_close(&net);
}

/* A wait ends with the lookup: the caller has a message that could not be sent before. */
static void a_kept_message_leaves_at_once(void **state)
{
    static char bytes[8];
    struct dp_net *net = NULL;
    struct dp_message *message = dp_message_new(1);
    dp_message_add(message, (struct dp_frame){bytes, sizeof bytes, NULL, NULL});
    assert_int_equal(dp_net_open(1, &net, NULL), DP_OK);
    name_is("127.0.0.1", NULL);
    struct dp_connection *connection = connect_to(net, "here", "9");
    uint64_t begun = now_ms();
    while (dp_connection_send(connection, &message, NULL) == DP_AGAIN)
        dp_connections_wait(&connection, 1, 60000);
    assert_true(now_ms() - begun < 60000);
    dp_connection_close(&connection);
    dp_net_close(&net);
}

/* Without a wait for the lookup that still runs: the name server's answer comes when the lock is free. */
static void closing_does_not_wait_for_a_lookup(void **state)
{
    struct dp_net *net = NULL;
    assert_int_equal(dp_net_open(1, &net, NULL), DP_OK);
    (void)pthread_mutex_lock(&names.lock);
    struct dp_connection *connection = connect_to(net, "slow", "9");
    dp_connections_wait(&connection, 1, 1);
    dp_connection_close(&connection);
    dp_net_close(&net);
    (void)pthread_mutex_unlock(&names.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listener_takes_all_addresses_of_its_name),
        cmocka_unit_test(a_name_of_another_machine_is_refused),
        cmocka_unit_test(an_unknown_name_is_refused),
        cmocka_unit_test(a_client_takes_the_next_address),
        cmocka_unit_test(a_client_follows_a_name_that_moves),
        cmocka_unit_test(a_client_waits_for_a_name_and_says_so),
        cmocka_unit_test(a_kept_message_leaves_at_once),
        cmocka_unit_test(closing_does_not_wait_for_a_lookup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

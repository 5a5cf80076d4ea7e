/* Pair: a listener and a connection to it, in one thread, and numbered messages between them; a rogue is a peer of ZeroMQ alone. */
#ifndef DP_TESTS_UNIT_NET_PAIR_H
#define DP_TESTS_UNIT_NET_PAIR_H

#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/net/transport.h"
#include "common/wire/limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define ANY_PORT "tcp://127.0.0.1:*"

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct pair {
    struct dp_net *net;
    struct dp_listener *listener;
    struct dp_connection *connection;
    char endpoint[128];
};

static struct pair pair_open(const char *endpoint)
{
    struct pair pair = {0};
    struct dp_error err = {0};
    assert_int_equal(dp_net_open(1, &pair.net, &err), DP_OK);
    if (dp_listener_open(pair.net, endpoint, &pair.listener, &err) != DP_OK)
        fail_msg("%s", err.text);
    (void)snprintf(pair.endpoint, sizeof pair.endpoint, "%s", dp_listener_endpoint(pair.listener));
    assert_int_equal(dp_connection_open(pair.net, pair.endpoint, &pair.connection, &err), DP_OK);
    return pair;
}

static void pair_close(struct pair *pair)
{
    dp_connection_close(&pair->connection);
    dp_listener_close(&pair->listener);
    dp_net_close(&pair->net);
    assert_null(pair->net);
}

/* DP_AGAIN after `timeout_ms`. */
static enum dp_status receive_at(struct dp_listener *listener, struct dp_peer *from, struct dp_message **out,
                                 uint32_t timeout_ms)
{
    uint64_t end = now_ms() + timeout_ms;
    while (!dp_listener_receive(listener, from, out)) {
        if (now_ms() >= end)
            return DP_AGAIN;
        dp_listener_wait(listener, -1, 10);
    }
    return DP_OK;
}

static enum dp_status receive_answer(struct dp_connection *connection, struct dp_message **out,
                                     uint32_t timeout_ms)
{
    uint64_t end = now_ms() + timeout_ms;
    while (!dp_connection_receive(connection, out)) {
        if (now_ms() >= end)
            return DP_AGAIN;
        dp_connections_wait(&connection, 1, 10);
    }
    return DP_OK;
}

static atomic_int live_frames;

static void release_counted(void *data, void *owner)
{
    atomic_fetch_sub(&live_frames, 1);
    free(data);
}

static struct dp_frame counted_frame(size_t size, unsigned char fill)
{
    struct dp_frame frame = {malloc(size ? size : 1), size, release_counted, NULL};
    assert_non_null(frame.data);
    memset(frame.data, fill, size);
    atomic_fetch_add(&live_frames, 1);
    return frame;
}

/* Number n: an 8-byte frame with n, then up to 4 frames of sizes that n gives. */
static struct dp_message *numbered(uint64_t n)
{
    static const size_t sizes[] = {0, 1, 33, 34, 511, 512, 513, 8192, 40000};
    struct dp_message *message = dp_message_new(5);
    struct dp_frame first = counted_frame(8, 0);
    dp_store_u64le(first.data, n);
    dp_message_add(message, first);
    for (uint64_t i = 0; i < n % 5; i++)
        dp_message_add(message, counted_frame(sizes[(n * 7 + i) % 9], (unsigned char)(n + i)));
    return message;
}

static void assert_numbered(const struct dp_message *message, uint64_t n)
{
    struct dp_message *want = numbered(n);
    assert_int_equal(message->frames, want->frames);
    for (uint32_t i = 0; i < want->frames; i++) {
        assert_int_equal(message->frame[i].size, want->frame[i].size);
        assert_memory_equal(message->frame[i].data, want->frame[i].data, want->frame[i].size);
    }
    dp_message_free(&want);
}

static void send_number(struct dp_connection *connection, uint64_t n)
{
    struct dp_message *message = numbered(n);
    struct dp_error err = {0};
    assert_int_equal(dp_connection_send(connection, &message, &err), DP_OK);
    assert_null(message);
}

/* Sends `n`, and the listener gets it whole. */
static void assert_reaches(struct pair *pair, uint64_t n)
{
    struct dp_message *message = NULL;
    struct dp_peer from;
    send_number(pair->connection, n);
    assert_int_equal(receive_at(pair->listener, &from, &message, 10000), DP_OK);
    assert_numbered(message, n);
    dp_message_free(&message);
}

#endif

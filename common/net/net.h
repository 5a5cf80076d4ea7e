/* Net: sockets that carry messages. The only room that sees zmq.h.
 *     listener    a server's end (ROUTER): from any peer, to one peer
 *     connection  a client's end (DEALER): to and from one server; reconnects by itself, with back-off
 * Promise   Frames go between message and socket without being copied. Neither send nor receive blocks;
 *           waits have a deadline. A peer that breaks ZMTP, or sends a frame over the limit, loses its
 *           connection, nothing else. Messages sent to a peer that is gone, whose queue is full, or
 *           that does not read, are dropped and counted: the client's resend repairs them.
 * Thread    A socket stays with the thread that opened it. dp_net: open first, close last, on any thread.
 * Endpoints "tcp://127.0.0.1:5701", "ipc:///path". */
#ifndef DP_NET_NET_H
#define DP_NET_NET_H

#include "common/wire/message.h"

#include <stdbool.h>

/* A peer that leaves so many bytes unread gets nothing more (but small messages) until it reads. */
#define DP_PEER_UNSENT_MAX (128u << 20)
/* Of all peers of a listener together: past it only a peer with nothing unsent is sent to, while they are below twice as much. */
#define DP_ALL_UNSENT_MAX (UINT64_C(2) << 30)
/* Bytes received that nobody has taken yet, whole messages and unfinished ones, of one peer and of all peers of a listener
 * (guard.h): beyond them a connection is dropped. The largest message, and as much again. */
#define DP_PEER_WAITING_MAX (UINT64_C(1) << 30)
#define DP_ALL_WAITING_MAX  (UINT64_C(2) << 30)
/* A peer that reads nothing for so long, though bytes wait for it, loses its connection. */
#define DP_STALL_MS 30000u

struct dp_net;
struct dp_listener;
struct dp_connection;

/* io_threads: ZeroMQ's, usually 1. */
DP_MUST_USE
enum dp_status dp_net_open(uint32_t io_threads, struct dp_net **out, struct dp_error *err);
/* All sockets must be closed. Waits until what was sent has left, linger_ms at most (set at dp_net_open:
 * 1,000). */
void dp_net_close(struct dp_net **net);

/* DP_IO naming the endpoint and the cause ("port in use"); DP_ARGUMENT for one that is not of the forms
 * above. Port * takes a free one. */
DP_MUST_USE
enum dp_status dp_listener_open(struct dp_net *net, const char *endpoint, struct dp_listener **out,
                                struct dp_error *err);
void dp_listener_close(struct dp_listener **listener);
/* Other bounds than those above. */
struct dp_listener_limits {
    uint64_t unsent_bytes;                     /* DP_ALL_UNSENT_MAX */
    uint64_t waiting_bytes, all_waiting_bytes; /* DP_PEER_WAITING_MAX, DP_ALL_WAITING_MAX */
    uint32_t stall_ms;                         /* DP_STALL_MS */
};
void dp_listener_limit(struct dp_listener *listener, const struct dp_listener_limits *limits);
/* The endpoint that was bound, for connecting: "tcp://127.0.0.1:*" has its port now. Lives as long as the
 * listener. */
const char *dp_listener_endpoint(const struct dp_listener *listener);
/* DP_AGAIN when nothing waits, or when a batch of messages was refused (more may wait). Messages over
 * DP_FRAMES_MAX frames or DP_MESSAGE_BYTES_MAX bytes, and those of a peer that chose a routing id of its own,
 * are dropped and counted, never given. */
DP_MUST_USE
enum dp_status dp_listener_receive(struct dp_listener *listener, struct dp_peer *from,
                                   struct dp_message **out);
/* Takes the message over, whatever happens. Dropped and counted as undeliverable: what has no peer or finds its
 * queue full; what would raise the bytes that the peer has not let ZeroMQ send yet (of frames over 512 bytes)
 * over DP_PEER_UNSENT_MAX, or all peers' over DP_ALL_UNSENT_MAX. To a peer with nothing unsent a message goes, whatever its size,
 * while all peers' are below twice DP_ALL_UNSENT_MAX. */
void dp_listener_send(struct dp_listener *listener, const struct dp_peer *to, struct dp_message **message);
/* Whether a message with so many bytes in its frames would go to the peer now; false: what is made for it would be dropped. */
bool dp_listener_would_send(struct dp_listener *listener, const struct dp_peer *to, uint64_t bytes);
/* Returns when a message waits, when wake_fd (an eventfd, or -1) is readable, or when the time is over; the
 * caller reads the eventfd. */
void dp_listener_wait(struct dp_listener *listener, int wake_fd, uint32_t timeout_ms);
/* Messages dropped so far: refused on receipt (connections that were dropped, too), undeliverable. */
void dp_listener_drops(const struct dp_listener *listener, uint64_t *refused, uint64_t *undeliverable);

/* Connects in the background. */
DP_MUST_USE
enum dp_status dp_connection_open(struct dp_net *net, const char *endpoint, struct dp_connection **out,
                                  struct dp_error *err);
void dp_connection_close(struct dp_connection **connection);
/* DP_AGAIN when the socket's queue is full: the message stays the caller's. */
DP_MUST_USE
enum dp_status dp_connection_send(struct dp_connection *connection, struct dp_message **message,
                                  struct dp_error *err);
DP_MUST_USE
enum dp_status dp_connection_receive(struct dp_connection *connection, struct dp_message **out);
/* Waits until one of n connections has a message, or the time is over. */
void dp_connections_wait(struct dp_connection *const *connections, uint32_t n, uint32_t timeout_ms);

#endif

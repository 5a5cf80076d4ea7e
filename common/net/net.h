/* Net: sockets that carry messages. Only this room includes zmq.h.
 *     listener    a server's end (ROUTER): from any peer, to one peer
 *     connection  a client's end (DEALER): to and from one server; reconnects by itself, with back-off
 * Promise   Frames move between message and socket without a copy. Neither send nor receive blocks; waits
 *           have a deadline. A peer that breaks ZMTP or sends a frame over the limit loses its connection,
 *           with no other effect. Messages to a peer that has disconnected, does not read, or has a full
 *           queue are dropped and counted: the client's resend repairs that.
 * Thread    A socket stays with the thread that opened it. dp_net: open first, close last, on any thread.
 * Endpoints "tcp://127.0.0.1:5701", "ipc:///path". */
#ifndef DP_NET_NET_H
#define DP_NET_NET_H

#include "common/wire/message.h"

#include <stdbool.h>

/* A peer that leaves so many bytes unread gets only small messages until it reads. */
#define DP_PEER_UNSENT_MAX (128u << 20)
/* The same for all peers of a listener together: above it, only peers with nothing unsent get large messages;
 * above twice as much, none does. */
#define DP_ALL_UNSENT_MAX (UINT64_C(2) << 30)
/* Bounds on the bytes received but not taken yet, of complete and unfinished messages, for one peer and for
 * all peers of a listener (guard.h): above them a connection is dropped. Twice the largest message. */
#define DP_PEER_WAITING_MAX (UINT64_C(1) << 30)
#define DP_ALL_WAITING_MAX  (UINT64_C(2) << 30)
/* A peer that reads nothing for so long although bytes wait for it loses its connection. */
#define DP_STALL_MS 30000u

struct dp_net;
struct dp_listener;
struct dp_connection;

/* io_threads: ZeroMQ's, usually 1. */
enum dp_status dp_net_open(uint32_t io_threads, struct dp_net **out, struct dp_error *err);
/* All sockets must be closed. Waits until sent messages have left, for at most 1,000 ms. */
void dp_net_close(struct dp_net **net);

/* Port * takes a free port. A host that is a name: on all its addresses that are of this machine, within
 * 10 s. DP_IO names the endpoint and the cause ("port in use", "cannot be resolved"). DP_ARGUMENT: the
 * endpoint has none of the forms above. */
enum dp_status dp_listener_open(struct dp_net *net, const char *endpoint, struct dp_listener **out,
                                struct dp_error *err);
void dp_listener_close(struct dp_listener **listener);
/* Bounds that replace those above. */
struct dp_listener_limits {
    uint64_t unsent_bytes;                     /* DP_ALL_UNSENT_MAX */
    uint64_t waiting_bytes, all_waiting_bytes; /* DP_PEER_WAITING_MAX, DP_ALL_WAITING_MAX */
    uint32_t stall_ms;                         /* DP_STALL_MS */
};
void dp_listener_limit(struct dp_listener *listener, const struct dp_listener_limits *limits);
/* The bound endpoint, to connect to: "tcp://127.0.0.1:*" has its port. Lives as long as the listener. */
const char *dp_listener_endpoint(const struct dp_listener *listener);
/* Returns false if no message waits, or if a batch of messages was refused (more may wait). Messages over
 * DP_FRAMES_MAX frames or DP_MESSAGE_BYTES_MAX bytes, and those of a peer that chose its own routing id, are
 * dropped and counted, never returned. */
DP_MUST_USE
bool dp_listener_receive(struct dp_listener *listener, struct dp_peer *from, struct dp_message **out);
/* Takes ownership of the message in any case. A message is dropped and counted as undeliverable if its peer
 * has disconnected or its queue is full, or if it would raise the unsent bytes (of frames over 512 bytes) of the peer
 * above DP_PEER_UNSENT_MAX or of all peers above DP_ALL_UNSENT_MAX. A peer with nothing unsent gets a message
 * of any size while all peers together are below twice DP_ALL_UNSENT_MAX. */
void dp_listener_send(struct dp_listener *listener, const struct dp_peer *to, struct dp_message **message);
/* Whether a message with so many bytes in its frames would be sent to the peer now; false: it would be
 * dropped, and the next dp_listener_wait ends when a peer has read something. */
bool dp_listener_would_send(struct dp_listener *listener, const struct dp_peer *to, uint64_t bytes);
/* Waits for a message, for wake_fd (an eventfd, or -1) to become readable, for the timeout, or after
 * dp_listener_would_send said no for a peer to read something. The caller reads wake_fd. */
void dp_listener_wait(struct dp_listener *listener, int wake_fd, uint32_t timeout_ms);
/* Dropped so far: messages refused on receipt, including dropped connections, and undeliverable messages. */
void dp_listener_drops(const struct dp_listener *listener, uint64_t *refused, uint64_t *undeliverable);

/* The address of this machine from which the endpoint "tcp://HOST:PORT" is reached, as a host for
 * endpoints: "10.0.0.2". DP_UNAVAILABLE: there is no route now, or the name has no address within the
 * timeout; it may come. */
enum dp_status dp_net_route(struct dp_net *net, const char *endpoint, uint32_t timeout_ms, char *out,
                            size_t size, struct dp_error *err);
/* False: this machine does not have the address (of dp_net_route) any more. */
bool dp_net_is_own(const char *address);

/* Connects in the background. A host that is a name is looked up again after each lost connection. After
 * an address that failed comes the next. Endpoint "": it is not known yet, and send answers DP_AGAIN
 * until move. */
enum dp_status dp_connection_open(struct dp_net *net, const char *endpoint, struct dp_connection **out,
                                  struct dp_error *err);
/* To another endpoint; what was sent to the one before may be lost. DP_ARGUMENT, DP_IO: it is connected
 * to none. */
enum dp_status dp_connection_move(struct dp_connection *connection, const char *endpoint,
                                  struct dp_error *err);
void dp_connection_close(struct dp_connection **connection);
/* Takes ownership of the message if it succeeds. DP_AGAIN: the socket's queue is full, and the caller keeps
 * the message. */
enum dp_status dp_connection_send(struct dp_connection *connection, struct dp_message **message,
                                  struct dp_error *err);
/* Returns false if no complete message waits. */
DP_MUST_USE
bool dp_connection_receive(struct dp_connection *connection, struct dp_message **out);
/* Whether a connection to the server has ended since the last call: what was sent on it, and what the server sent, may be lost. It
 * reconnects by itself; what is sent from now on leaves then. Looks at what the last wait has found. */
bool dp_connection_broke(struct dp_connection *connection);
/* Bytes that the connection has carried in both directions and that have arrived; 0 where the kernel does
 * not count. Another connection begins at 0. */
uint64_t dp_connection_carried(const struct dp_connection *connection);
/* Why the name of the server's host has no address now; NULL: it has one. Lives until the next wait. */
const char *dp_connection_trouble(const struct dp_connection *connection);
/* Waits until one of n connections has a message or has ended, or for the timeout. */
void dp_connections_wait(struct dp_connection *const *connections, uint32_t n, uint32_t timeout_ms);

#endif

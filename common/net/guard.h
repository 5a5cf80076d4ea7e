/* Guard: bounds the bytes that the peers of a listener have sent and the listener has not taken yet. Private
 * to the room.
 *     accepted -> (received by the kernel - taken from the socket > a bound?) -> shut the connection down ->
 *     ZeroMQ frees what it held
 * Why       ZeroMQ keeps the frames of a message until the last one arrives. It counts neither these frames
 *           nor their bytes against its queue. So a message without end would fill the memory. It has no
 *           limit for that. But it names the descriptor that it accepted (its monitor) and which one a
 *           message came from, and the kernel counts each one's bytes.
 * Promise   A peer loses its connection if its waiting bytes exceed DP_PEER_WAITING_MAX, or if it has read
 *           nothing for DP_STALL_MS although bytes wait for it. While the waiting bytes of all peers exceed
 *           DP_ALL_WAITING_MAX, the peer with the greatest product of waiting bytes and waiting time loses
 *           its connection. Bytes that arrive between two checks come on top. Only TCP is watched: peers of
 *           an ipc:// path are local and may open it.
 * Thread    open, close, limit, taken: the listener's. A thread inside checks every 20 ms, less often with
 *           many peers.
 * Holds     A descriptor is shut down only while it is the socket (SO_COOKIE) that was accepted. */
#ifndef DP_NET_GUARD_H
#define DP_NET_GUARD_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct dp_guard;
struct dp_net;

/* Call it before the socket is bound: connections accepted earlier would be missed. */
enum dp_status dp_guard_open(struct dp_net *net, void *socket, const char *endpoint, struct dp_guard **out,
                             struct dp_error *err);
/* Call it while the socket is still open. */
void dp_guard_close(struct dp_guard **guard, void *socket); /* accepts NULL inside, leaves NULL */
void dp_guard_limit(struct dp_guard *guard, uint64_t peer_bytes, uint64_t all_bytes, uint32_t stall_ms);
/* Records that so many bytes of a connection (as on the wire) were taken from the socket. fd: ZMQ_SRCFD, -1:
 * unknown. */
void dp_guard_taken(struct dp_guard *guard, int fd, uint64_t bytes);
/* Asks to drop a connection, because its unread bytes use up what others need. It is dropped at the next
 * check; until then is_asked is true and another ask has no effect. fd: ZMQ_SRCFD, -1: unknown. */
void dp_guard_ask(struct dp_guard *guard, int fd);
bool dp_guard_is_asked(const struct dp_guard *guard);
uint64_t dp_guard_dropped(const struct dp_guard *guard); /* connections so far */

#endif

/* Guard: what the peers of a listener have sent and nobody has taken yet, bounded. Of this room only.
 *     accepted -> (received by the kernel - taken from the socket > a bound?) -> its connection is shut down -> ZeroMQ frees what it held
 * Why       ZeroMQ keeps the frames of a message until its last one has come and counts neither them nor their bytes against its
 *           queue: a message that never ends would fill the memory. It has no limit for that, but tells which descriptor it
 *           accepted (its monitor) and which one a message came from, and the kernel counts the bytes of each.
 * Promise   A peer whose bytes that wait exceed DP_PEER_WAITING_MAX loses its connection. So does, while those of all peers exceed
 *           DP_ALL_WAITING_MAX, the one that has most of them, times how long it has let them wait; and a peer that has read nothing for DP_STALL_MS though
 *           bytes wait for it. What arrives between two looks comes on top. Only TCP is watched: peers of an ipc:// path
 *           are local and may open it.
 * Thread    open, close, limit, taken: the listener's. A thread inside looks, every 20 ms and less often for many peers.
 * Holds     A descriptor is shut down only while it is the socket (SO_COOKIE) that was accepted.                    */
#ifndef DP_NET_GUARD_H
#define DP_NET_GUARD_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct dp_guard;
struct dp_net;

/* Before the socket is bound: a connection accepted earlier would not be seen. */
DP_MUST_USE
enum dp_status dp_guard_open(struct dp_net *net, void *socket, const char *endpoint, struct dp_guard **out,
                             struct dp_error *err);
/* While the socket is still open. */
void dp_guard_close(struct dp_guard **guard, void *socket); /* accepts NULL inside, leaves NULL */
void dp_guard_limit(struct dp_guard *guard, uint64_t peer_bytes, uint64_t all_bytes, uint32_t stall_ms);
/* So many bytes of its connection (as on the wire) were taken from the socket. fd: ZMQ_SRCFD, -1: unknown. */
void dp_guard_taken(struct dp_guard *guard, int fd, uint64_t bytes);
/* The peer with that connection is to lose it: it keeps what others need. It does at the next look; until then is_asked is true, and
 * another ask has no effect. fd: ZMQ_SRCFD, -1: unknown. */
void dp_guard_ask(struct dp_guard *guard, int fd);
bool dp_guard_is_asked(const struct dp_guard *guard);
uint64_t dp_guard_dropped(const struct dp_guard *guard); /* connections so far */

#endif

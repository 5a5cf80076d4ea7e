/* Proxy: TCP connections that a test spoils: held up, cut, reset, half open, or deaf on one side.
 *     open -> lane (a port of its own for a port of 127.0.0.1)* -> turn, set, cut, turn, ... -> close
 * Promise   What passes, passes unchanged. A connection that lost a byte of one side passes nothing of that side any
 *           more, and is reset when that side is set to another way. Nothing moves but in a turn.
 * Thread    One.
 * Failure   What the system refuses ends the test program, but for connections: a port where nobody listens closes the
 *           connection to it.                                                                            */
#ifndef DP_TESTS_LIB_PROXY_H
#define DP_TESTS_LIB_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct dp_proxy;
enum dp_proxy_side { DP_PROXY_REQUESTS, DP_PROXY_REPLIES }; /* to the port; from it */
enum dp_proxy_way {
    DP_PROXY_PASS,
    DP_PROXY_HOLD, /* nothing is read: it arrives later */
    DP_PROXY_LOSE  /* read and thrown away: half open */
};

struct dp_proxy *dp_proxy_open(void);
void dp_proxy_close(struct dp_proxy **proxy); /* accepts NULL inside, leaves NULL */
/* Lanes are numbered from 0 in the order of these calls; gives the port that clients connect to. */
uint32_t dp_proxy_lane(struct dp_proxy *proxy, uint32_t to_port);
uint32_t dp_proxy_lanes(const struct dp_proxy *proxy);
/* Moves what there is to move; waits so long for something. */
void dp_proxy_turn(struct dp_proxy *proxy, int timeout_ms);

void dp_proxy_set(struct dp_proxy *proxy, uint32_t lane, enum dp_proxy_side side, enum dp_proxy_way way);
/* Ends the lane's connections: both ends see an orderly end, or a reset. What was under way is lost. */
void dp_proxy_cut(struct dp_proxy *proxy, uint32_t lane, bool reset);
/* Only the port's end is reset; the client's stays open, hears nothing, and is reset at the lane's next cut or set. */
void dp_proxy_orphan(struct dp_proxy *proxy, uint32_t lane);
/* Bytes thrown away on this side so far. */
uint64_t dp_proxy_lost(const struct dp_proxy *proxy, uint32_t lane, enum dp_proxy_side side);

#endif

/* Hosts: network namespaces with one address each, on a bridge in this program's own namespace.
 *     open -> (start, cut, heal, move)* -> the place ends what runs in them, and the hosts with it
 * Address   Host i has 10.77.0.i, this program 10.77.0.254. Nothing outside is reached or changed.
 * Needs     `ip` and `ss` (iproute2), nsenter, and the right to make namespaces, as root or as a user.
 * Thread    The test's own: failures are CMocka's. */
#ifndef DP_TESTS_SYSTEM_HOSTS_H
#define DP_TESTS_SYSTEM_HOSTS_H

#include "tests/system/place.h"

#define DP_HOSTS_MAX 8u

/* Before the first thread of the program, once: whether hosts can be made here. From then on 10.77.0.254 is
 * the name server. */
bool dp_hosts_possible(void);

/* Makes the hosts 1 .. count; those of an earlier place are replaced. */
void dp_hosts_open(struct dp_place *place, uint32_t count);

/* As dp_place_start, on that host. */
struct dp_process *dp_hosts_start(struct dp_place *place, uint32_t host, const char *program, const char *a,
                                  const char *b, const char *c, const char *d);

enum dp_hosts_cut { DP_HOSTS_ALL /* of a, with all others */, DP_HOSTS_PAIR, DP_HOSTS_ONE_WAY /* a to b */ };
/* What is cut loses each packet; no end of a connection hears of it. One cut at a time. */
void dp_hosts_cut(struct dp_place *place, enum dp_hosts_cut kind, uint32_t a, uint32_t b);
void dp_hosts_heal(struct dp_place *place, enum dp_hosts_cut kind, uint32_t a, uint32_t b);

/* Gives the host the address 10.77.0.TO. */
void dp_hosts_move(struct dp_place *place, uint32_t host, uint32_t to);

/* Runs a shell command on the host. */
void dp_hosts_do(struct dp_place *place, uint32_t host, const char *command);

/* A name server at 10.77.0.254 that knows hN.test. SIGSTOP makes it one that does not answer. */
struct dp_process *dp_hosts_name_server(struct dp_place *place);

/* The established connections of the host with 10.77.0.FROM, as "ADDRESS:PORT ADDRESS:PORT" lines. */
const char *dp_hosts_connections(struct dp_place *place, uint32_t host, uint32_t from);
/* The most bytes that one connection of the host from 10.77.0.FROM has received; 0 where there is none. */
uint64_t dp_hosts_received(uint32_t host, uint32_t from);

#endif

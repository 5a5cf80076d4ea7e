/* Names: the addresses of host names, looked up on threads of their own. Of this room only.
 *     ask(host) -> (a thread calls getaddrinfo) -> look(host): addresses, or why there are none
 * Why       ZeroMQ resolves names on its I/O thread: a name server that does not answer stops all sockets
 *           of the process for seconds. So ZeroMQ gets addresses only.
 * Promise   No call waits for a name server longer than its timeout. One lookup of a name runs at a time.
 * Thread    Any. A lookup that still runs when `names` is freed ends by itself.
 * Failure   dp_names.error: getaddrinfo's code, in words by dp_names_reason. */
#ifndef DP_NET_NAMES_H
#define DP_NET_NAMES_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_NAME_ADDRESSES_MAX 16u

struct dp_names;

struct dp_name_found {
    uint64_t lookups; /* ended so far; 0: none */
    int error;        /* of the last one; 0: it found addresses */
    uint32_t count;
    char address[DP_NAME_ADDRESSES_MAX][64]; /* "10.0.0.1" first, then "[fd00::1]", each once */
};

/* NULL: out of memory. */
struct dp_names *dp_names_new(void);
void dp_names_free(struct dp_names **names); /* accepts NULL inside */

/* Whether the host of "tcp://HOST:PORT" is a name that must be looked up; then host has it. */
bool dp_names_is_one(const char *endpoint, char *host, size_t size);
/* Begins a lookup unless one runs. */
void dp_names_ask(struct dp_names *names, const char *host);
void dp_names_look(struct dp_names *names, const char *host, struct dp_name_found *out);
/* Waits for the end of the lookup that ask began. False: it did not end in time. */
bool dp_names_wait(struct dp_names *names, const char *host, uint32_t timeout_ms, struct dp_name_found *out);
const char *dp_names_reason(int error);
/* "tcp://ADDRESS:PORT", with the port of the endpoint. */
void dp_names_endpoint(const char *endpoint, const char *address, char *out, size_t size);

#endif

/* Address: where a server is, as the register's value address/N has it; N: the number of its first shard.
 * Value     u32 format (1) | u32 ports | for each u16 port (control, then its shards') | the host's name or
 *           address, without a final 0. Little endian.
 * Thread    Any. Memory: the caller's.
 * Failure   DP_INVALID names the field: the bytes are no such value. */
#ifndef DP_WIRE_ADDRESS_H
#define DP_WIRE_ADDRESS_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_ADDRESS_PREFIX     "address/" /* of the register's values */
#define DP_ADDRESS_HOST_MAX   255u
#define DP_ADDRESS_PORTS_MAX  65u /* control and 64 shards */
#define DP_ADDRESS_BYTES_MAX  (8u + 2u * DP_ADDRESS_PORTS_MAX + DP_ADDRESS_HOST_MAX)
#define DP_ADDRESS_NAME_BYTES 24u

struct dp_address {
    char host[DP_ADDRESS_HOST_MAX + 1];
    uint32_t ports;
    uint16_t port[DP_ADDRESS_PORTS_MAX];
};

void dp_address_name(uint32_t first_shard, char out[DP_ADDRESS_NAME_BYTES]);
enum dp_status dp_address_decode(const void *bytes, size_t size, struct dp_address *out,
                                 struct dp_error *err);
size_t dp_address_encode(const struct dp_address *address, char bytes[DP_ADDRESS_BYTES_MAX]); /* how many */
/* "tcp://HOST:PORT" of its socket 0 (control), 1, 2, ...; size: DP_ADDRESS_HOST_MAX + 32 or more. */
void dp_address_endpoint(const struct dp_address *address, uint32_t socket, char *out, size_t size);

#endif

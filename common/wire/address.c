#include "common/wire/address.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FORMAT     1u
#define HEAD_BYTES 8u

void dp_address_name(uint32_t first_shard, char out[DP_ADDRESS_NAME_BYTES])
{
    (void)snprintf(out, DP_ADDRESS_NAME_BYTES, DP_ADDRESS_PREFIX "%" PRIu32, first_shard);
}

enum dp_status dp_address_decode(const void *bytes, size_t size, struct dp_address *out, struct dp_error *err)
{
    const unsigned char *at = bytes;
    *out = (struct dp_address){0};
    if (size < HEAD_BYTES || dp_load_u32le(bytes) != FORMAT)
        return dp_fail(err, DP_INVALID, "%zu bytes are no address of format %u", size, FORMAT);
    uint32_t ports = dp_load_u32le((const char *)bytes + 4);
    if (ports < 2 || ports > DP_ADDRESS_PORTS_MAX)
        return dp_fail(err, DP_INVALID, "an address of %" PRIu32 " ports, expected 2 .. %u", ports,
                       DP_ADDRESS_PORTS_MAX);
    size_t host_at = HEAD_BYTES + 2 * (size_t)ports;
    if (size <= host_at || size - host_at > DP_ADDRESS_HOST_MAX)
        return dp_fail(err, DP_INVALID, "an address of %zu bytes, expected a host of 1 .. %u after %zu", size,
                       DP_ADDRESS_HOST_MAX, host_at);
    for (uint32_t i = 0; i < ports; i++) {
        out->port[i] = (uint16_t)(at[HEAD_BYTES + 2 * i] | at[HEAD_BYTES + 2 * i + 1] << 8);
        if (out->port[i] == 0)
            return dp_fail(err, DP_INVALID, "an address with port 0");
    }
    for (size_t i = host_at; i < size; i++)
        if (at[i] <= ' ' || at[i] > '~' || at[i] == '/')
            return dp_fail(err, DP_INVALID, "an address whose host has byte 0x%02x", at[i]);
    out->ports = ports;
    memcpy(out->host, at + host_at, size - host_at);
    return DP_OK;
}

size_t dp_address_encode(const struct dp_address *address, char bytes[DP_ADDRESS_BYTES_MAX])
{
    size_t host = strlen(address->host), at = HEAD_BYTES;
    DP_ASSERT(address->ports <= DP_ADDRESS_PORTS_MAX);
    dp_store_u32le(bytes, FORMAT);
    dp_store_u32le(bytes + 4, address->ports);
    for (uint32_t i = 0; i < address->ports; i++) {
        bytes[at++] = (char)(address->port[i] & 0xff);
        bytes[at++] = (char)(address->port[i] >> 8);
    }
    memcpy(bytes + at, address->host, host);
    return at + host;
}

void dp_address_endpoint(const struct dp_address *address, uint32_t socket, char *out, size_t size)
{
    bool bare_ipv6 = strchr(address->host, ':') && address->host[0] != '[';
    DP_ASSERT(socket < address->ports);
    (void)snprintf(out, size, bare_ipv6 ? "tcp://[%s]:%u" : "tcp://%s:%u", address->host,
                   (unsigned)address->port[socket]);
}

#include "server/control/stores.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define FORMAT     1u
#define HEAD_BYTES 8u
#define ONE_BYTES  16u

enum dp_status dp_stores_decode(const void *bytes, size_t size, uint32_t shards, struct dp_stores *out,
                                struct dp_error *err)
{
    const char *at = bytes;
    DP_ASSERT(shards <= DP_STORES_SHARDS_MAX);
    *out = (struct dp_stores){.shards = shards};
    if (size == 0)
        return DP_OK;
    if (size < HEAD_BYTES || dp_load_u32le(at) != FORMAT)
        return dp_fail(err, DP_UNSUPPORTED,
                       "the register's value '" DP_STORES_NAME
                       "' (%zu bytes) is not of the format that this build reads",
                       size);
    if (dp_load_u32le(at + 4) != shards)
        return dp_fail(err, DP_EXISTS,
                       "the register is that of a cluster of %" PRIu32 " shards, not of %" PRIu32
                       ": put servers and shards of the cluster file back as they were",
                       dp_load_u32le(at + 4), shards);
    if (size != HEAD_BYTES + (size_t)ONE_BYTES * shards)
        return dp_fail(err, DP_CORRUPT,
                       "the register's value '" DP_STORES_NAME "' has %zu bytes for %" PRIu32 " shards", size,
                       shards);
    for (uint32_t i = 0; i < shards; i++) {
        out->shard[i].id = dp_load_u64le(at + HEAD_BYTES + (size_t)ONE_BYTES * i);
        out->shard[i].opening = dp_load_u64le(at + HEAD_BYTES + (size_t)ONE_BYTES * i + 8);
    }
    return DP_OK;
}

size_t dp_stores_encode(const struct dp_stores *stores, char bytes[DP_STORES_BYTES_MAX])
{
    DP_ASSERT(stores->shards <= DP_STORES_SHARDS_MAX);
    dp_store_u32le(bytes, FORMAT);
    dp_store_u32le(bytes + 4, stores->shards);
    for (uint32_t i = 0; i < stores->shards; i++) {
        dp_store_u64le(bytes + HEAD_BYTES + (size_t)ONE_BYTES * i, stores->shard[i].id);
        dp_store_u64le(bytes + HEAD_BYTES + (size_t)ONE_BYTES * i + 8, stores->shard[i].opening);
    }
    return HEAD_BYTES + (size_t)ONE_BYTES * stores->shards;
}

/* ---- what a server sets */

/* The shards of a value whose form is right; 0: it is not. */
static uint32_t shards_of(const char *at, size_t size)
{
    uint32_t shards = size >= HEAD_BYTES && dp_load_u32le(at) == FORMAT ? dp_load_u32le(at + 4) : 0;
    return shards <= DP_STORES_SHARDS_MAX && size == HEAD_BYTES + (size_t)ONE_BYTES * shards ? shards : 0;
}

enum dp_status dp_stores_check(const void *before, size_t before_size, const void *bytes, size_t size,
                               uint32_t shards, uint32_t shard, struct dp_error *err)
{
    static const char none[ONE_BYTES] = {0};
    const char *at = bytes;
    uint32_t count = shards_of(at, size);
    bool follows = count > 0 && shards_of(before, before_size) == count;
    if (count == 0)
        return dp_fail(err, DP_INVALID,
                       "'" DP_STORES_NAME
                       "': %zu bytes are no value of format %u: its format, number of shards "
                       "and size do not fit",
                       size, FORMAT);
    if (shards != 0 && count != shards)
        return dp_fail(err, DP_INVALID,
                       "'" DP_STORES_NAME "': %" PRIu32
                       " shards, but the first server's cluster file has %" PRIu32,
                       count, shards);
    if (shard >= count)
        return dp_fail(err, DP_INVALID, "'" DP_STORES_NAME "': the server of shard %" PRIu32 " of %" PRIu32,
                       shard, count);
    for (uint32_t i = 0; i < count; i++) {
        size_t from = HEAD_BYTES + (size_t)ONE_BYTES * i;
        bool same = memcmp(at + from, follows ? (const char *)before + from : none, ONE_BYTES) == 0;
        if (!same && i != shard)
            return dp_fail(err, DP_INVALID,
                           "'" DP_STORES_NAME "': the server of shard %" PRIu32
                           " changes the store of shard %" PRIu32,
                           shard, i);
        if (!same && (dp_load_u64le(at + from) == 0 || dp_load_u64le(at + from + 8) == 0))
            return dp_fail(err, DP_INVALID,
                           "'" DP_STORES_NAME "': shard %" PRIu32 " has id %016" PRIx64
                           " and opening %016" PRIx64 ", expected two numbers other than 0",
                           i, dp_load_u64le(at + from), dp_load_u64le(at + from + 8));
    }
    return DP_OK;
}

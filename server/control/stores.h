/* Stores: the register's value "stores", which says which store each shard of the cluster has.
 * Value     u32 format (1) | u32 shards | for each shard u64 id (0: none is known) | u64 its last opening. Little endian.
 * Thread    Any. Memory: the caller's. */
#ifndef DP_CONTROL_STORES_H
#define DP_CONTROL_STORES_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_STORES_NAME       "stores" /* of the register's value */
#define DP_STORES_SHARDS_MAX 4095u    /* so that it fits the register's 64 KiB */
#define DP_STORES_BYTES_MAX  (8u + 16u * DP_STORES_SHARDS_MAX)

struct dp_stores {
    uint64_t register_id;
    uint32_t shards; /* of the cluster */
    struct {
        uint64_t id, opening;
    } shard[DP_STORES_SHARDS_MAX];
};

/* size 0, a value that was never set: none of the shards is known. DP_EXISTS: of a cluster with another number of shards. */
enum dp_status dp_stores_decode(const void *bytes, size_t size, uint32_t shards, struct dp_stores *out,
                                struct dp_error *err);
size_t dp_stores_encode(const struct dp_stores *stores, char bytes[DP_STORES_BYTES_MAX]); /* how many */

/* Checks a value that a server sets: a value of so many shards (0: of any number) that differs from `before` only in the place of
 * `shard`, from 0. Where `before` is empty or cannot be read, no other shard has a store in it. DP_INVALID names the field. */
enum dp_status dp_stores_check(const void *before, size_t before_size, const void *bytes, size_t size,
                               uint32_t shards, uint32_t shard, struct dp_error *err);

#endif

/* Keys: the bytes of a row's key in RocksDB: table u32 | mixed u64, big endian. Byte order is numeric order,
 * so a table, and a range of it, are contiguous. Private to the room. */
#ifndef DP_STORE_KEYS_H
#define DP_STORE_KEYS_H

#include "common/base/bytes.h"
#include "server/store/store.h"

#define DP_KEY_BYTES 12u

static inline void dp_key_put(char bytes[DP_KEY_BYTES], struct dp_store_key key)
{
    dp_store_u32be(bytes, key.table);
    dp_store_u64be(bytes + 4, key.mixed);
}

static inline struct dp_store_key dp_key_get(const char bytes[DP_KEY_BYTES])
{
    return (struct dp_store_key){dp_load_u32be(bytes), dp_load_u64be(bytes + 4)};
}

/* Negative, 0 or positive, like memcmp of the bytes. */
static inline int dp_key_compare(struct dp_store_key a, struct dp_store_key b)
{
    if (a.table != b.table)
        return a.table < b.table ? -1 : 1;
    return (a.mixed > b.mixed) - (a.mixed < b.mixed);
}

#endif

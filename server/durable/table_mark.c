#include "server/durable/table_mark.h"

#include "common/base/bytes.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_FORMAT    1u
#define TABLE_KEY_BYTES 14u
#define NAME_BYTES      48u
#define TABLE_BYTES     (4u + NAME_BYTES + 4u + 8u + 16u + 40u + 8u)

static_assert(DP_TABLE_NAME_MAX + 1 == NAME_BYTES, "the mark's format has 48 bytes for a name");

/* The fields after the name, in this order, of 4 or 8 bytes each. */
#define FIELD(field)                                                                                         \
    {                                                                                                        \
        offsetof(struct dp_table_spec, field), sizeof((struct dp_table_spec *)0)->field                      \
    }
static const struct {
    size_t at, bytes;
} fields[] = {
    FIELD(dim),
    FIELD(seed),
    FIELD(init.kind),
    FIELD(init.scale),
    FIELD(init.fan_in),
    FIELD(init.fan_out),
    FIELD(optimizer.kind),
    FIELD(optimizer.l2),
    FIELD(optimizer.momentum),
    FIELD(optimizer.beta1),
    FIELD(optimizer.beta2),
    FIELD(optimizer.epsilon),
    FIELD(optimizer.decay),
    FIELD(optimizer.l1),
    FIELD(optimizer.ftrl_beta),
    FIELD(optimizer.accumulator),
};
#undef FIELD

enum dp_status dp_table_mark_decode(const struct dp_store_mark *mark, struct dp_table_spec *spec,
                                    uint64_t *rows, struct dp_error *err)
{
    const char *at = mark->value;
    if (mark->key_bytes != TABLE_KEY_BYTES || mark->value_bytes != TABLE_BYTES ||
        dp_load_u32le(at) != TABLE_FORMAT)
        return dp_fail(err, DP_CORRUPT, "the store's mark '%.*s' is not a table of format %u",
                       (int)(mark->key_bytes < 40 ? mark->key_bytes : 40), (const char *)mark->key,
                       TABLE_FORMAT);
    *spec = (struct dp_table_spec){0};
    memcpy(spec->name, at + 4, DP_TABLE_NAME_MAX);
    at += 4 + NAME_BYTES;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; at += fields[i++].bytes) {
        uint64_t wide = fields[i].bytes == 8 ? dp_load_u64le(at) : 0;
        uint32_t narrow = dp_load_u32le(at);
        const void *value = fields[i].bytes == 8 ? (const void *)&wide : &narrow;
        memcpy((char *)spec + fields[i].at, value, fields[i].bytes);
    }
    *rows = dp_load_u64le(at);
    if (dp_table_check(spec, err) != DP_OK)
        return dp_wrap(err, DP_CORRUPT, "the store's mark '%.*s'", (int)mark->key_bytes,
                       (const char *)mark->key);
    return DP_OK;
}

struct dp_store_mark dp_table_mark_encode(const struct dp_table_spec *spec, uint64_t rows,
                                          char bytes[DP_TABLE_MARK_BYTES])
{
    static_assert(DP_TABLE_MARK_BYTES == TABLE_KEY_BYTES + 1 + TABLE_BYTES, "key with its 0, and value");
    char *value = bytes + TABLE_KEY_BYTES + 1, *at = value + 4 + NAME_BYTES;
    (void)snprintf(bytes, TABLE_KEY_BYTES + 1, DP_TABLE_MARK_PREFIX "%08" PRIx32, dp_table_id(spec->name));
    dp_store_u32le(value, TABLE_FORMAT);
    memset(value + 4, 0, NAME_BYTES);
    memcpy(value + 4, spec->name, strlen(spec->name));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; at += fields[i++].bytes) {
        uint64_t wide = 0;
        uint32_t narrow = 0;
        memcpy(fields[i].bytes == 8 ? (void *)&wide : &narrow, (const char *)spec + fields[i].at,
               fields[i].bytes);
        if (fields[i].bytes == 8)
            dp_store_u64le(at, wide);
        else
            dp_store_u32le(at, narrow);
    }
    dp_store_u64le(at, rows);
    DP_ASSERT(at + 8 == value + TABLE_BYTES);
    return (struct dp_store_mark){
        .key = bytes, .key_bytes = TABLE_KEY_BYTES, .value = value, .value_bytes = TABLE_BYTES};
}

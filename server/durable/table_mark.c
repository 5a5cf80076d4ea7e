#include "server/durable/table_mark.h"

#include "common/base/bytes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define TABLE_FORMAT    1u
#define TABLE_KEY_BYTES 14u
#define TABLE_BYTES     (4u + 48u + 4u + 8u + 16u + 40u + 8u)

static_assert(DP_TABLE_NAME_MAX + 1 == 48, "the mark's format has 48 bytes for a name");

struct mark_cursor {
    char *at;
};

static void put_u32(struct mark_cursor *to, uint32_t v)
{
    dp_store_u32le(to->at, v);
    to->at += 4;
}
static void put_u64(struct mark_cursor *to, uint64_t v)
{
    dp_store_u64le(to->at, v);
    to->at += 8;
}
static void put_f32(struct mark_cursor *to, float v)
{
    memcpy(to->at, &v, 4);
    to->at += 4;
}
static uint32_t get_u32(struct mark_cursor *from)
{
    uint32_t v = dp_load_u32le(from->at);
    from->at += 4;
    return v;
}
static uint64_t get_u64(struct mark_cursor *from)
{
    uint64_t v = dp_load_u64le(from->at);
    from->at += 8;
    return v;
}
static float get_f32(struct mark_cursor *from)
{
    float v;
    memcpy(&v, from->at, 4);
    from->at += 4;
    return v;
}

static void encode(const struct dp_table_spec *spec, uint64_t rows, char *bytes)
{
    struct mark_cursor to = {bytes};
    const struct dp_optimizer_spec *o = &spec->optimizer;
    put_u32(&to, TABLE_FORMAT);
    memset(to.at, 0, 48);
    memcpy(to.at, spec->name, strlen(spec->name));
    to.at += 48;
    put_u32(&to, spec->dim);
    put_u64(&to, spec->seed);
    put_u32(&to, (uint32_t)spec->init.kind);
    put_f32(&to, spec->init.scale);
    put_u32(&to, spec->init.fan_in);
    put_u32(&to, spec->init.fan_out);
    put_u32(&to, (uint32_t)o->kind);
    const float hyper[] = {o->l2,    o->momentum, o->beta1,     o->beta2,      o->epsilon,
                           o->decay, o->l1,       o->ftrl_beta, o->accumulator};
    for (size_t i = 0; i < sizeof hyper / sizeof hyper[0]; i++)
        put_f32(&to, hyper[i]);
    put_u64(&to, rows);
    DP_ASSERT(to.at == bytes + TABLE_BYTES);
}

enum dp_status dp_table_mark_decode(const struct dp_store_mark *mark, struct dp_table_spec *spec,
                                    uint64_t *rows, struct dp_error *err)
{
    char bytes[TABLE_BYTES];
    if (mark->key_bytes != TABLE_KEY_BYTES || mark->value_bytes != TABLE_BYTES ||
        dp_load_u32le(mark->value) != TABLE_FORMAT)
        return dp_fail(err, DP_CORRUPT, "the store's mark '%.*s' is not a table of format %u",
                       (int)(mark->key_bytes < 40 ? mark->key_bytes : 40), (const char *)mark->key,
                       TABLE_FORMAT);
    memcpy(bytes, mark->value, sizeof bytes);
    *spec = (struct dp_table_spec){0};
    struct mark_cursor from = {bytes + 4};
    memcpy(spec->name, from.at, DP_TABLE_NAME_MAX);
    from.at += 48;
    spec->dim = get_u32(&from);
    spec->seed = get_u64(&from);
    spec->init.kind = (enum dp_init_kind)get_u32(&from);
    spec->init.scale = get_f32(&from);
    spec->init.fan_in = get_u32(&from);
    spec->init.fan_out = get_u32(&from);
    struct dp_optimizer_spec *o = &spec->optimizer;
    o->kind = (enum dp_optimizer_kind)get_u32(&from);
    float *const hyper[] = {&o->l2,    &o->momentum, &o->beta1,     &o->beta2,      &o->epsilon,
                            &o->decay, &o->l1,       &o->ftrl_beta, &o->accumulator};
    for (size_t i = 0; i < sizeof hyper / sizeof hyper[0]; i++)
        *hyper[i] = get_f32(&from);
    *rows = get_u64(&from);
    if (dp_table_check(spec, err) != DP_OK)
        return dp_wrap(err, DP_CORRUPT, "the store's mark '%.*s'", (int)mark->key_bytes,
                       (const char *)mark->key);
    return DP_OK;
}

struct dp_store_mark dp_table_mark_encode(const struct dp_table_spec *spec, uint64_t rows,
                                          char bytes[DP_TABLE_MARK_BYTES])
{
    static_assert(DP_TABLE_MARK_BYTES == TABLE_KEY_BYTES + 1 + TABLE_BYTES, "key with its 0, and value");
    (void)snprintf(bytes, TABLE_KEY_BYTES + 1, DP_TABLE_MARK_PREFIX "%08" PRIx32, dp_table_id(spec->name));
    encode(spec, rows, bytes + TABLE_KEY_BYTES + 1);
    return (struct dp_store_mark){.key = bytes,
                                  .key_bytes = TABLE_KEY_BYTES,
                                  .value = bytes + TABLE_KEY_BYTES + 1,
                                  .value_bytes = TABLE_BYTES};
}

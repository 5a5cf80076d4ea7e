#include "common/model/table.h"

#include "common/base/hash.h"
#include "common/model/optimizer_kinds.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static const char *const INITS[] = {"zero", "normal", "uniform", "xavier", "he", "constant"};
#define INITS_LEN (sizeof INITS / sizeof INITS[0])

/* By number: a peer's message may hold one that is no kind. */
const char *dp_init_name(enum dp_init_kind kind)
{
    long long number = (long long)kind;
    return number >= 0 && number < (long long)INITS_LEN ? INITS[number] : NULL;
}

uint32_t dp_table_id(const char *name)
{
    uint32_t id = (uint32_t)dp_hash_mix(dp_hash_text(name));
    return id ? id : 1;
}

static enum dp_status check_name(const char *name, struct dp_error *err)
{
    const char *end = memchr(name, '\0', DP_TABLE_NAME_MAX + 1);
    if (!end)
        return dp_fail(err, DP_ARGUMENT, "table name '%.*s...' is too long; it takes 1 to %d characters",
                       DP_TABLE_NAME_MAX, name, DP_TABLE_NAME_MAX);
    if (end == name)
        return dp_fail(err, DP_ARGUMENT, "table name is empty; it takes 1 to %d characters",
                       DP_TABLE_NAME_MAX);
    for (const char *at = name; *at; at++) {
        char c = *at;
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '_' && c != '.' && c != '-')
            return dp_fail(err, DP_ARGUMENT,
                           "table name has byte 0x%02x at place %zu; it takes letters, digits and _ . -",
                           (unsigned)(unsigned char)c, (size_t)(at - name) + 1);
    }
    return DP_OK;
}

static enum dp_status check_init(const struct dp_table_spec *spec, struct dp_error *err)
{
    const struct dp_init_spec *init = &spec->init;
    const char *kind = dp_init_name(init->kind);
    if (!kind)
        return dp_fail(err, DP_ARGUMENT, "table '%s': init kind %d is unknown", spec->name, (int)init->kind);
    if (!isfinite(init->scale))
        return dp_fail(err, DP_ARGUMENT, "table '%s': init scale is not finite", spec->name);
    bool scaled = init->kind == DP_INIT_NORMAL || init->kind == DP_INIT_UNIFORM;
    /* The ends keep weights away from overflow and underflow. */
    if (scaled && !(init->scale >= 1e-30f && init->scale <= 1e30f))
        return dp_fail(err, DP_ARGUMENT, "table '%s': init scale is %g, %s wants it in [1e-30, 1e30]",
                       spec->name, (double)init->scale, kind);
    if ((init->kind == DP_INIT_XAVIER || init->kind == DP_INIT_HE) && init->fan_in == 0)
        return dp_fail(err, DP_ARGUMENT, "table '%s': init fan_in is 0, %s wants at least 1", spec->name,
                       kind);
    if (init->kind == DP_INIT_XAVIER && init->fan_out == 0)
        return dp_fail(err, DP_ARGUMENT, "table '%s': init fan_out is 0, xavier wants at least 1",
                       spec->name);
    return DP_OK;
}

static enum dp_status check_optimizer(const struct dp_table_spec *spec, struct dp_error *err)
{
    const char *kind = dp_optimizer_name(spec->optimizer.kind);
    if (!kind)
        return dp_fail(err, DP_ARGUMENT, "table '%s': optimizer kind %d is unknown", spec->name,
                       (int)spec->optimizer.kind);
    for (size_t i = 0; i < dp_optimizer_fields_len; i++) {
        const struct dp_optimizer_field *field = &dp_optimizer_fields[i];
        float value = dp_optimizer_value(&spec->optimizer, field->offset);
        if (!isfinite(value))
            return dp_fail(err, DP_ARGUMENT, "table '%s': %s is not finite", spec->name, field->name);
        if (!dp_optimizer_uses(spec->optimizer.kind, field->offset)) {
            if (value != 0)
                return dp_fail(err, DP_ARGUMENT, "table '%s': %s is %g, but %s does not use it: leave it 0",
                               spec->name, field->name, (double)value, kind);
        } else if (!(value >= field->least && value <= field->most)) {
            return dp_fail(err, DP_ARGUMENT, "table '%s': %s is %.9g, %s wants it %s", spec->name,
                           field->name, (double)value, kind, field->range);
        }
    }
    return DP_OK;
}

enum dp_status dp_table_check(const struct dp_table_spec *spec, struct dp_error *err)
{
    enum dp_status st = check_name(spec->name, err);
    if (st != DP_OK)
        return st;
    if (spec->dim < 1 || spec->dim > DP_TABLE_DIM_MAX)
        return dp_fail(err, DP_ARGUMENT, "table '%s': dim is %" PRIu32 ", it must be 1 to %d", spec->name,
                       spec->dim, DP_TABLE_DIM_MAX);
    st = check_init(spec, err);
    if (st != DP_OK)
        return st;
    return check_optimizer(spec, err);
}

static enum dp_status differs_number(const char *table, const char *field, uint64_t have, uint64_t want,
                                     struct dp_error *err)
{
    return dp_fail(err, DP_EXISTS, "table '%s' has %s %" PRIu64 ", %" PRIu64 " was asked for", table, field,
                   have, want);
}

static enum dp_status differs_text(const char *table, const char *field, const char *have, const char *want,
                                   struct dp_error *err)
{
    return dp_fail(err, DP_EXISTS, "table '%s' has %s %s, %s was asked for", table, field,
                   have ? have : "unknown", want ? want : "unknown");
}

/* %.9g: two f32 that differ have texts that differ. */
static enum dp_status differs_float(const char *table, const char *field, float have, float want,
                                    struct dp_error *err)
{
    return dp_fail(err, DP_EXISTS, "table '%s' has %s %.9g, %.9g was asked for", table, field, (double)have,
                   (double)want);
}

enum dp_status dp_table_same(const struct dp_table_spec *have, const struct dp_table_spec *want,
                             struct dp_error *err)
{
    const struct dp_init_spec *hi = &have->init, *wi = &want->init;
    const struct dp_optimizer_spec *ho = &have->optimizer, *wo = &want->optimizer;
    const char *table = have->name;
    if (strcmp(have->name, want->name) != 0)
        return differs_text(table, "the name", have->name, want->name, err);
    if (have->dim != want->dim)
        return differs_number(table, "dim", have->dim, want->dim, err);
    if (have->seed != want->seed)
        return differs_number(table, "seed", have->seed, want->seed, err);
    if (hi->kind != wi->kind)
        return differs_text(table, "init", dp_init_name(hi->kind), dp_init_name(wi->kind), err);
    if (hi->scale != wi->scale)
        return differs_float(table, "init scale", hi->scale, wi->scale, err);
    if (hi->fan_in != wi->fan_in)
        return differs_number(table, "init fan_in", hi->fan_in, wi->fan_in, err);
    if (hi->fan_out != wi->fan_out)
        return differs_number(table, "init fan_out", hi->fan_out, wi->fan_out, err);
    if (ho->kind != wo->kind)
        return differs_text(table, "optimizer", dp_optimizer_name(ho->kind), dp_optimizer_name(wo->kind),
                            err);
    for (size_t i = 0; i < dp_optimizer_fields_len; i++) {
        const struct dp_optimizer_field *field = &dp_optimizer_fields[i];
        float h = dp_optimizer_value(ho, field->offset), w = dp_optimizer_value(wo, field->offset);
        if (h != w)
            return differs_float(table, field->name, h, w, err);
    }
    return DP_OK;
}

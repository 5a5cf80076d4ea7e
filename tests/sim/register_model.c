/* Each version of a value has one maker, and each set makes one version at most: that is all that compare-and-set is. */
#include "tests/sim/register_sim.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct op {
    uint32_t name;
    uint64_t version; /* that it made, as answers showed; 0: none yet */
    bool ended;
    enum reg_end end;
};

struct history {
    uint64_t shown, delivered;           /* the greatest that an answer had, and that one that arrived had */
    uint64_t maker[REG_VERSIONS_MAX];    /* of each version that was shown; 0: not shown */
    uint64_t shown_ns[REG_VERSIONS_MAX]; /* first */
};

struct reg_model {
    struct reg *reg;
    uint64_t id, ops;
    struct history history[REG_NAMES_MAX];
    struct op op[REG_OPS_MAX + 1];
};

struct reg_model *reg_model_new(struct reg *reg)
{
    struct reg_model *model = calloc(1, sizeof *model);
    DP_ASSERT(model);
    model->reg = reg;
    return model;
}

void reg_model_free(struct reg_model **model)
{
    free(*model);
    *model = NULL;
}

void reg_name_of(uint32_t name, char text[16])
{
    (void)snprintf(text, 16, name == 0 ? "stores" : "run/%" PRIu32 "/plan", name);
}

/* From some bytes to over two sectors, so that a torn file shows. */
size_t reg_content_bytes(const struct reg_content *content, unsigned char to[REG_CONTENT_BYTES_MAX])
{
    size_t bytes = 20 + (size_t)(content->op * 7919 % (REG_CONTENT_BYTES_MAX - 20));
    memset(to, (int)(content->op & 0xff), bytes);
    dp_store_u64le(to, content->op);
    dp_store_u64le(to + 8, content->version);
    dp_store_u32le(to + 16, content->name);
    return bytes;
}

uint64_t reg_model_begin(struct reg_model *model, uint32_t name)
{
    DP_ASSERT(model->ops < REG_OPS_MAX);
    model->op[++model->ops] = (struct op){.name = name};
    return model->ops;
}

/* The bytes are those of one set, and say which. */
static uint64_t check_content(const struct reg_model *model, uint32_t name, uint64_t version,
                              const void *bytes, size_t size)
{
    const struct sim_world *world = model->reg->world;
    unsigned char want[REG_CONTENT_BYTES_MAX];
    uint64_t op = size >= 20 ? dp_load_u64le(bytes) : 0;
    if (op == 0 || op > model->ops)
        sim_fail(world, "value %" PRIu32 " at version %" PRIu64 " has bytes that nobody set", name, version);
    const struct reg_content content = {op, name, version};
    if (reg_content_bytes(&content, want) != size || memcmp(want, bytes, size) != 0)
        sim_fail(world,
                 "value %" PRIu32 " at version %" PRIu64 " has bytes that set %" PRIu64 " did not give it",
                 name, version, op);
    return op;
}

static void check_history(struct reg_model *model, uint32_t name, uint64_t version, uint64_t op)
{
    const struct sim_world *world = model->reg->world;
    struct history *history = &model->history[name];
    struct op *set = &model->op[op];
    uint64_t *maker = &history->maker[version];
    if (*maker != 0 && *maker != op)
        sim_fail(world,
                 "version %" PRIu64 " of value %" PRIu32 " was made by set %" PRIu64 ", now by %" PRIu64,
                 version, name, *maker, op);
    if (set->version != 0 && set->version != version)
        sim_fail(world, "set %" PRIu64 " made versions %" PRIu64 " and %" PRIu64 " of value %" PRIu32, op,
                 set->version, version, name);
    if (set->ended && set->end == REG_LOST)
        sim_fail(world, "set %" PRIu64 " was told that it lost, and made version %" PRIu64, op, version);
    if (*maker == 0)
        history->shown_ns[version] = world->now_ns;
    *maker = op;
    set->version = version;
}

void reg_model_end(struct reg_model *model, uint64_t op, enum reg_end end, uint64_t version)
{
    struct op *set = &model->op[op];
    set->ended = true;
    set->end = end;
    if (end == REG_WON)
        check_history(model, set->name, version, op);
    if (end == REG_LOST && set->version != 0)
        sim_fail(model->reg->world, "set %" PRIu64 " made version %" PRIu64 ", and is told that it lost", op,
                 set->version);
}

void reg_model_answers(struct reg_model *model, uint64_t id, uint32_t name, uint64_t version,
                       const void *bytes, size_t size)
{
    struct history *history = &model->history[name];
    if (model->id == 0)
        model->id = id;
    if (id != model->id)
        sim_fail(model->reg->world, "the register has become another one");
    if (version < history->shown)
        sim_fail(model->reg->world, "value %" PRIu32 " went back from version %" PRIu64 " to %" PRIu64, name,
                 history->shown, version);
    DP_ASSERT(version < REG_VERSIONS_MAX);
    history->shown = version;
    if (version > 0)
        check_history(model, name, version, check_content(model, name, version, bytes, size));
}

void reg_model_shows(struct reg_model *model, uint32_t name, uint64_t version, uint64_t before,
                     const void *bytes, size_t size)
{
    struct history *history = &model->history[name];
    if (version < before)
        sim_fail(model->reg->world,
                 "a client was shown version %" PRIu64 " of value %" PRIu32 " after version %" PRIu64,
                 version, name, before);
    if (version > 0)
        check_history(model, name, version, check_content(model, name, version, bytes, size));
    if (version > history->delivered)
        history->delivered = version;
}

uint64_t reg_model_delivered(const struct reg_model *model, uint32_t name)
{
    return model->history[name].delivered;
}

uint64_t reg_model_made_ns(const struct reg_model *model, uint32_t name, uint64_t version)
{
    for (; version < REG_VERSIONS_MAX; version++)
        if (model->history[name].shown_ns[version] != 0)
            return model->history[name].shown_ns[version];
    return UINT64_MAX;
}

void reg_model_audit(struct reg_model *model, uint32_t name, uint64_t version)
{
    const struct sim_world *world = model->reg->world;
    uint64_t won = 0, unknown = 0;
    for (uint64_t i = 1; i <= model->ops; i++) {
        const struct op *set = &model->op[i];
        if (set->name != name)
            continue;
        won += set->ended && set->end == REG_WON;
        unknown += !set->ended || set->end == REG_UNKNOWN;
        if (set->version > version)
            sim_fail(world, "version %" PRIu64 " of value %" PRIu32 " is gone: %" PRIu64 " stands",
                     set->version, name, version);
    }
    /* Those whose clients died or gave up may have made a version, which nobody need have seen. */
    if (version < won || version > won + unknown)
        sim_fail(world,
                 "value %" PRIu32 " stands at %" PRIu64 ", of %" PRIu64 " sets that won and %" PRIu64
                 " of which nobody knows",
                 name, version, won, unknown);
}

#include "tests/sim/checkpoints.h"

#include "server/control/register_file.h"
#include "server/durable/table_mark.h"
#include "tests/sim/counts.h"
#include "tests/sim/model_image.h"
#include "tests/sim/restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PARTS_MAX 16u

struct sim_checkpoints {
    struct sim_part *part[PARTS_MAX];
    struct sim_checkpoint *made[SIM_CHECKPOINTS_MAX];
    uint32_t parts, count;
};

/* ---- parts */

struct sim_part *sim_part_new(const struct dp_copy_job *job)
{
    struct sim_part *part = calloc(1, sizeof *part);
    DP_ASSERT(part);
    part->order = job->order;
    part->lsn = job->lsn;
    part->after = job->after;
    part->until = job->until;
    part->shard = job->shard;
    part->missing.count = job->missing_count;
    part->missing.push = calloc(job->missing_count + 1u, sizeof part->missing.push[0]);
    DP_ASSERT(part->missing.push);
    for (uint32_t i = 0; i < job->missing_count; i++)
        part->missing.push[i] = job->missing[i];
    return part;
}

void sim_part_free(struct sim_part **out)
{
    struct sim_part *part = *out;
    *out = NULL;
    if (!part)
        return;
    sim_store_copy_free(&part->link);
    dp_sim_disk_free(&part->tail);
    free(part->missing.push);
    free(part);
}

static struct sim_part *take_part(struct sim_checkpoints *c, uint64_t order, uint32_t shard)
{
    for (uint32_t i = 0; i < c->parts; i++)
        if (c->part[i]->order == order && c->part[i]->shard == shard) {
            struct sim_part *part = c->part[i];
            memmove(&c->part[i], &c->part[i + 1], (--c->parts - i) * sizeof c->part[0]);
            return part;
        }
    return NULL;
}

void sim_checkpoints_put(struct sim_world *world, struct sim_part **part)
{
    struct sim_checkpoints *c = world->checkpoints;
    struct sim_part *before = take_part(c, (*part)->order, (*part)->shard);
    sim_part_free(&before);
    if (c->parts == PARTS_MAX) { /* the first: of a command that died */
        struct sim_part *first = take_part(c, c->part[0]->order, c->part[0]->shard);
        sim_part_free(&first);
    }
    c->part[c->parts++] = *part;
    *part = NULL;
}

/* ---- a whole one */

struct tables {
    struct sim_world *world;
    struct dp_manifest_tables *to;
};

static void add_table(void *context, const struct dp_store_mark *mark)
{
    const struct tables *tables = context;
    struct dp_manifest_tables *to = tables->to;
    struct dp_table_spec spec;
    struct dp_error err = {0};
    uint64_t rows;
    size_t prefix = sizeof DP_TABLE_MARK_PREFIX - 1;
    if (mark->key_bytes < prefix || memcmp(mark->key, DP_TABLE_MARK_PREFIX, prefix) != 0)
        return;
    if (dp_table_mark_decode(mark, &spec, &rows, &err) != DP_OK)
        sim_fail(tables->world, "a link's table: %s", err.text);
    to->table = realloc(to->table, (to->count + 1) * sizeof to->table[0]);
    DP_ASSERT(to->table);
    to->table[to->count++] = (struct dp_manifest_table){.spec = spec, .rows = rows};
}

static int by_name(const void *a, const void *b)
{
    const struct dp_manifest_table *x = a, *y = b;
    return strcmp(x->spec.name, y->spec.name);
}

static void fill_manifest(struct sim_world *world, struct sim_checkpoint *c, uint32_t shards)
{
    struct dp_manifest *m = &c->from.manifest;
    struct dp_error err = {0};
    m->order = c->order;
    m->shards = shards;
    m->shard = calloc(shards, sizeof m->shard[0]);
    DP_ASSERT(m->shard);
    for (uint32_t i = 0; i < shards; i++) {
        struct dp_manifest_shard *shard = &m->shard[i];
        *shard = (struct dp_manifest_shard){.index = i,
                                            .shards = shards,
                                            .range = dp_range_of_shard(i, shards),
                                            .lsn = c->part[i]->lsn,
                                            .after = c->part[i]->after,
                                            .tail = c->part[i]->facts};
        sim_store_copy_marks(c->part[i]->link, add_table, &(struct tables){world, &shard->tables});
        if (shard->tables.count > 0)
            qsort(shard->tables.table, shard->tables.count, sizeof shard->tables.table[0], by_name);
    }
    if (dp_manifest_sum(m, &err) != DP_OK || dp_restore_from_complete(&c->from, &err) != DP_OK)
        sim_fail(world, "a checkpoint's manifest: %s", err.text);
}

static void *copy_of(const void *bytes, size_t size)
{
    void *copy = malloc(size + 1);
    DP_ASSERT(copy);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

/* The number of the view in the register. */
static uint64_t view_of(struct sim_world *world, const struct sim_checkpoint *c)
{
    char name[32];
    uint64_t number = 0;
    struct dp_control_register_content content = {0};
    struct dp_error err = {0};
    struct dp_sim_disk *sim = sim_disk_with_register(c);
    struct dp_disk disk = dp_sim_disk_interface(sim);
    (void)snprintf(name, sizeof name, "run/%u/view", SIM_RUN);
    if (dp_control_register_file_read(&disk, false, &content, &err) != DP_OK)
        sim_fail(world, "a checkpoint's register: %s", err.text);
    for (uint32_t i = 0; i < content.count; i++) {
        struct dp_view view = {0};
        if (strcmp(content.item[i]->name, name) != 0)
            continue;
        if (dp_view_unpack(content.item[i]->bytes, content.item[i]->size, &view, &err) != DP_OK)
            sim_fail(world, "the view of a checkpoint's register: %s", err.text);
        number = view.number;
        dp_view_clear(&view);
    }
    dp_control_register_content_clear(&content);
    dp_sim_disk_free(&sim);
    return number;
}

static void free_checkpoint(struct sim_checkpoint *c)
{
    sim_image_free(&c->image);
    dp_restore_from_close(&c->from);
    for (uint32_t i = 0; i < SIM_SERVERS_MAX; i++)
        sim_part_free(&c->part[i]);
    free(c->registered);
    free(c);
}

static void check(void *context, uint64_t order)
{
    struct sim_world *world = context;
    const struct sim_checkpoints *all = world->checkpoints;
    for (uint32_t i = 0; i < all->count; i++) {
        struct sim_checkpoint *c = all->made[i];
        if (c->order != order)
            continue;
        struct sim_cut cut[SIM_SERVERS_MAX] = {{0}};
        for (uint32_t k = 0; k < c->from.manifest.shards; k++)
            cut[k] = (struct sim_cut){c->part[k]->lsn, c->part[k]->until, c->part[k]->missing.push,
                                      c->part[k]->missing.count};
        c->view = view_of(world, c);
        c->image = sim_image_new(world->model, cut, c->from.ids, (size_t)c->from.manifest.ids.bytes,
                                 &c->from.manifest.partial);
        sim_restore_check(world, c);
    }
}

/* It has partial pushes. They are rare, and what becomes of them behind a restore is to be seen often. */
static bool is_torn(const struct sim_checkpoint *c)
{
    return c->from.manifest.partial.count > 0;
}

void sim_checkpoints_finish(struct sim_world *world, uint64_t order, struct dp_union *cut,
                            const struct dp_register_value *registered)
{
    struct sim_checkpoints *all = world->checkpoints;
    struct sim_checkpoint *c = calloc(1, sizeof *c);
    DP_ASSERT(c);
    c->order = order;
    for (uint32_t i = 0; i < cut->shards; i++) {
        c->part[i] = take_part(all, order, i);
        if (!c->part[i])
            sim_fail(world, "shard %" PRIu32 " says that it has copied its part, and nobody has it", i);
    }
    c->from.ids = copy_of(cut->ids, cut->ids_bytes);
    c->from.manifest.ids.bytes = cut->ids_bytes;
    c->from.steps = cut->steps ? copy_of(cut->steps, cut->steps_bytes) : NULL;
    c->from.manifest.steps.bytes = cut->steps_bytes;
    c->from.manifest.partial = cut->partial;
    cut->partial = (struct dp_copy_pushes){0};
    sim_counts_add(SIM_PARTIAL, c->from.manifest.partial.count);
    c->registered = copy_of(registered->bytes, registered->size);
    c->registered_bytes = registered->size;
    fill_manifest(world, c, cut->shards);
    if (all->count == SIM_CHECKPOINTS_MAX) {
        uint32_t oldest = 0;
        while (oldest + 1 < all->count && is_torn(all->made[oldest]))
            oldest++;
        free_checkpoint(all->made[oldest]);
        all->count--;
        memmove(&all->made[oldest], &all->made[oldest + 1], (all->count - oldest) * sizeof all->made[0]);
    }
    all->made[all->count++] = c;
    sim_counts_add(SIM_CHECKPOINTS, 1);
    sim_say(world, "checkpoint %016" PRIx64 " is finished", order);
    sim_at(world, 0, check, world, order); /* (not on the command's stack) */
}

const struct sim_checkpoint *sim_checkpoints_pick(struct sim_world *world)
{
    const struct sim_checkpoint *of[SIM_CHECKPOINTS_MAX], *torn = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->checkpoints->count; i++) {
        const struct sim_checkpoint *one = world->checkpoints->made[i];
        if (!one->image)
            continue;
        of[count++] = one;
        if (is_torn(one))
            torn = one;
    }
    if (torn && sim_draw(world, 4))
        return torn;
    return count > 0 ? of[sim_draw(world, count)] : NULL;
}

struct sim_checkpoints *sim_checkpoints_new(struct sim_world *world)
{
    struct sim_checkpoints *c = world->plan.checkpoints ? calloc(1, sizeof *c) : NULL;
    DP_ASSERT(c || !world->plan.checkpoints);
    return c;
}

void sim_checkpoints_free(struct sim_checkpoints **out)
{
    struct sim_checkpoints *c = *out;
    *out = NULL;
    if (!c)
        return;
    while (c->parts > 0)
        sim_part_free(&c->part[--c->parts]);
    while (c->count > 0)
        free_checkpoint(c->made[--c->count]);
    free(c);
}

#include "tests/sim/restore.h"

#include "server/control/register_file.h"
#include "server/restore/restore_marks.h"
#include "tests/lib/shard_bed.h"
#include "tests/sim/command.h"
#include "tests/sim/control.h"
#include "tests/sim/counts.h"
#include "tests/sim/mail.h"
#include "tests/sim/model_image.h"
#include "tests/sim/server.h"
#include "tests/sim/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TURNS_MAX 100000u
#define NAMES_MAX 32u

/* ---- files */

static void put_file(struct dp_disk *to, const char *name, const void *bytes, size_t size)
{
    struct dp_file *file = NULL;
    struct dp_error err = {0};
    const struct dp_disk_piece piece = {bytes, size};
    enum dp_status st = to->open(to->self, name, true, &file, &err);
    if (st == DP_OK && size > 0)
        st = to->write(to->self, file, 0, &piece, 1, &err);
    if (st == DP_OK)
        st = to->sync(to->self, file, &err);
    if (file)
        to->close(to->self, file);
    if (st == DP_OK)
        st = to->sync_directory(to->self, &err);
    DP_ASSERT(st == DP_OK);
}

struct dp_sim_disk *sim_disk_with_register(const struct sim_checkpoint *checkpoint)
{
    struct dp_sim_disk *sim = dp_sim_disk_new(checkpoint->order);
    struct dp_disk disk = dp_sim_disk_interface(sim);
    put_file(&disk, DP_REGISTER_FILE, checkpoint->registered, checkpoint->registered_bytes);
    return sim;
}

struct names {
    char name[NAMES_MAX][64];
    uint32_t count;
};

static void add_name(void *context, const char *name)
{
    struct names *names = context;
    DP_ASSERT(names->count < NAMES_MAX);
    (void)snprintf(names->name[names->count++], sizeof names->name[0], "%s", name);
}

/* A restore brings files, and leaves those of the checkpoint. */
static struct dp_sim_disk *copy_tail(struct sim_world *world, const struct sim_part *part)
{
    struct dp_sim_disk *copy = dp_sim_disk_new(sim_draw(world, UINT64_C(1) << 40));
    struct names names = {0};
    struct dp_disk from = dp_sim_disk_interface(part->tail), to = dp_sim_disk_interface(copy);
    struct dp_error err;
    enum dp_status st = from.list(from.self, add_name, &names, &err);
    DP_ASSERT(st == DP_OK);
    for (uint32_t i = 0; i < names.count; i++) {
        uint64_t bytes = 0;
        const uint8_t *data = dp_sim_disk_bytes(part->tail, names.name[i], &bytes);
        put_file(&to, names.name[i], data, (size_t)bytes);
    }
    return copy;
}

/* ---- a shard as it was */

static void put_marks(struct sim_store *store, const struct dp_restore_marks *marks)
{
    DP_ASSERT(!marks->failed);
    for (uint32_t i = 0; i < marks->count; i++)
        sim_store_put_mark(store, &marks->mark[i]);
}

static void copy_rows(const struct sim_checkpoint *c, uint32_t index, struct sim_store *to)
{
    static struct dp_restore_marks marks; /* large */
    sim_store_fill(to, c->part[index]->link);
    dp_restore_put_copied(&marks, &c->from, &c->from.manifest.shard[index]);
    put_marks(to, &marks);
    dp_restore_marks_clear(&marks);
}

static void ignore_wake(void *context) {}

static void ignore_write(void *context, uint64_t lsn) {}

static void drop_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    dp_message_free(message);
}

static struct dp_store open_store(void *context)
{
    return sim_store_open(context);
}

static uint64_t zero_ns(void *self)
{
    return 0;
}

/* Its own time: nobody else's passes meanwhile. */
static uint64_t next_ns(void *self)
{
    return *(uint64_t *)self += SIM_MS;
}

/* As server/restore/restore_source.c does it: the shard's own recovery, then a drain. */
static struct sim_store *recover(struct sim_world *world, const struct sim_checkpoint *c, uint32_t index)
{
    const struct sim_plan *plan = &world->plan;
    struct sim_store *rows = sim_store_new(world, ignore_wake, ignore_write, NULL);
    struct dp_sim_disk *disk = copy_tail(world, c->part[index]);
    struct dp_error err = {0};
    uint64_t now_ns = world->now_ns;
    copy_rows(c, index, rows);
    sim_store_at_once(rows, true);
    struct shard_bed bed = {.open_store = open_store,
                            .store_context = rows,
                            .options = {.index = index,
                                        .shards = c->from.manifest.shards,
                                        .cluster = 7,
                                        .generation = world->generation + 1,
                                        .history = 1,
                                        .boot = 1,
                                        .wall = {zero_ns, NULL},
                                        .cache_bytes = plan->cache_bytes,
                                        .recovers = true,
                                        .clock = {.now_ns = next_ns, .self = &now_ns},
                                        .reply = drop_reply}};
    shard_bed_journal(&bed, disk, DP_DURABILITY_MACHINE, plan->segment_bytes, plan->budget_bytes);
    enum dp_status st = shard_bed_open(&bed, &err);
    if (st == DP_OK) {
        dp_shard_drain(bed.shard);
        st = DP_AGAIN;
    }
    for (uint32_t turns = 0; st == DP_AGAIN && turns < TURNS_MAX; turns++) {
        (void)dp_shard_turn(bed.shard);
        st = dp_shard_drained(bed.shard, &err);
    }
    if (st != DP_OK)
        sim_fail(world, "shard %" PRIu32 " of checkpoint %016" PRIx64 " is not recovered: %s %s", index,
                 c->order, dp_status_name((int)st), err.text);
    shard_bed_close(&bed);
    dp_sim_disk_free(&disk);
    return rows;
}

void sim_restore_check(struct sim_world *world, const struct sim_checkpoint *c)
{
    for (uint32_t i = 0; i < c->from.manifest.shards; i++) {
        struct sim_store *rows = recover(world, c, i);
        sim_image_compare(c->image, i, rows);
        sim_store_free(&rows);
    }
}

/* ---- new shards */

/* Durable, with the rows before them. */
static void put_marks_last(struct dp_store *store, const struct dp_restore_marks *marks)
{
    struct dp_store_job job = {.kind = DP_STORE_MARKS, .count = marks->count, .marks = marks->mark};
    enum dp_status st = store->submit(store->self, &job);
    DP_ASSERT(st == DP_OK && !marks->failed && store->completed(store->self) == &job && job.status == DP_OK);
}

static void bring_shards(struct sim_world *world, const struct sim_checkpoint *c,
                         uint64_t lsn[SIM_SERVERS_MAX])
{
    for (uint32_t i = 0; i < world->plan.servers; i++) {
        copy_rows(c, i, sim_server_store(world->server[i]));
        sim_server_adopt(world->server[i], copy_tail(world, c->part[i]));
        lsn[i] = c->part[i]->facts.last_lsn;
    }
}

static void split_rows(struct sim_world *world, const struct sim_checkpoint *c,
                       struct dp_restore_target *target, struct dp_restore_rows *rows)
{
    static struct dp_restore_marks marks;
    uint64_t streams = 0;
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < c->from.manifest.shards && st == DP_OK; i++) {
        struct sim_store *old = recover(world, c, i);
        struct dp_store from = sim_store_open(old);
        st = dp_restore_see_streams(&streams, &from, &err);
        if (st == DP_OK)
            st = dp_restore_rows_take(rows, &from, c->from.manifest.shard[i].range, &err);
        from.close(from.self);
        sim_store_free(&old);
    }
    if (st == DP_OK)
        st = dp_restore_rows_end(rows, &err);
    if (st != DP_OK)
        sim_fail(world, "the rows of checkpoint %016" PRIx64 ": %s", c->order, err.text);
    for (uint32_t i = 0; i < world->plan.servers; i++) {
        dp_restore_put_new(&marks, &c->from, streams, rows, i);
        put_marks_last(target[i].store, &marks);
        target[i].store->close(target[i].store->self);
        dp_restore_marks_clear(&marks);
    }
}

static void split_shards(struct sim_world *world, const struct sim_checkpoint *c,
                         uint64_t lsn[SIM_SERVERS_MAX])
{
    struct dp_store store[SIM_SERVERS_MAX];
    struct dp_restore_target target[SIM_SERVERS_MAX];
    struct dp_restore_rows *rows = NULL;
    struct dp_error err = {0};
    uint32_t servers = world->plan.servers;
    for (uint32_t i = 0; i < servers; i++) {
        sim_store_at_once(sim_server_store(world->server[i]), true);
        store[i] = sim_store_open(sim_server_store(world->server[i]));
        target[i] = (struct dp_restore_target){dp_range_of_shard(i, servers), &store[i]};
    }
    const struct dp_restore_rows_options options = {.target = target,
                                                    .targets = servers,
                                                    .table = c->from.table,
                                                    .tables = c->from.tables,
                                                    .lsn_max = c->from.lsn_max};
    enum dp_status st = dp_restore_rows_new(&options, &rows, &err);
    DP_ASSERT(st == DP_OK);
    split_rows(world, c, target, rows);
    dp_restore_rows_free(&rows);
    for (uint32_t i = 0; i < servers; i++) {
        sim_store_at_once(sim_server_store(world->server[i]), false);
        lsn[i] = c->from.lsn_max;
    }
}

/* ---- everybody */

static void kill_all(struct sim_world *world)
{
    sim_commands_end(world);
    for (uint32_t i = 0; i < world->plan.workers; i++)
        sim_worker_end(world->worker[i]);
    for (uint32_t i = 0; i < world->plan.servers; i++)
        sim_server_free(&world->server[i]);
    sim_control_free(&world->control);
    sim_mail_clear(world);
    world->waiting = 0; /* what was to happen to them */
}

void sim_restore(struct sim_world *world, const struct sim_checkpoint *c, uint32_t servers)
{
    uint64_t lsn[SIM_SERVERS_MAX] = {0};
    bool same = servers == c->from.manifest.shards;
    sim_say(world, "checkpoint %016" PRIx64 " of %" PRIu32 " shards is restored onto %" PRIu32, c->order,
            c->from.manifest.shards, servers);
    sim_counts_add(same ? SIM_RESTORED : SIM_RESTORED_ANEW, 1);
    kill_all(world);
    world->plan.servers = servers;
    world->generation++;
    world->history = 1 + sim_draw(world, UINT64_C(1) << 40);
    world->control = sim_control_new(world);
    sim_control_restore(world->control, sim_disk_with_register(c));
    for (uint32_t i = 0; i < servers; i++)
        (void)sim_server_new(world, i);
    if (same)
        bring_shards(world, c, lsn);
    else
        split_shards(world, c, lsn);
    sim_model_restore(world->model, c->image, lsn, same, c->view);
    for (uint32_t i = 0; i < servers && !same; i++)
        sim_model_drained(world->model, i, sim_server_store(world->server[i]));
    for (uint32_t i = 0; i < servers; i++)
        sim_server_start(world->server[i]);
    for (uint32_t i = 0; i < world->plan.workers; i++)
        sim_worker_restored(world->worker[i]);
    sim_commands_begin(world);
}

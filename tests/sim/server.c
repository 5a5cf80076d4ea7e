#include "tests/sim/server.h"

#include "common/base/log.h"
#include "tests/lib/sim_disk.h"
#include "tests/sim/control.h"
#include "tests/sim/counts.h"
#include "tests/sim/model.h"
#include "tests/sim/net.h"
#include "tests/sim/server_inner.h"
#include "tests/sim/stranger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS  (SIM_S / 2) /* a turn, when nothing else asks for one */
#define HELD_MAX 512u

/* The world of now, and the server whose shard is at work: what the shard calls knows nothing of them. */
static struct sim_world *playing;
static struct sim_server *working;

static void start(void *context, uint64_t life);
static void restart_disk(struct sim_server *server, bool power);

struct sim_server *sim_server_of_disk(const struct dp_disk *disk)
{
    for (uint32_t i = 0; i < playing->plan.servers; i++)
        if (playing->server[i] && disk == &playing->server[i]->bed.disk)
            return playing->server[i];
    return NULL;
}

struct sim_server *sim_server_of_journal(const struct dp_journal *journal)
{
    for (uint32_t i = 0; i < playing->plan.servers; i++)
        if (playing->server[i] && playing->server[i]->journal == journal)
            return playing->server[i];
    return NULL;
}

static void dies_by_hand(void *context, uint64_t life)
{
    struct sim_server *server = context;
    if (server->up && life == server->life)
        sim_server_crash(server, false);
}

/* Somebody looks after it: a server that has an error to tell, or whose store takes nothing any more, is started
 * again. */
static void start_by_hand(struct sim_server *server)
{
    if (server->by_hand == server->life)
        return;
    server->by_hand = server->life;
    sim_at(server->world, SIM_S * (1 + sim_draw(server->world, 8)), dies_by_hand, server, server->life);
}

/* In the place of the product's log. */
void dp_log(enum dp_log_level level, const char *format, ...)
{
    char text[512];
    va_list args;
    if (level == DP_LOG_ERROR && working)
        start_by_hand(working);
    if (!sim_verbose)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sim_say(playing, "log: %s", text);
}

/* ---- turns */

static void take_in(struct sim_server *server)
{
    struct sim_mail mail;
    while (sim_inbox_take(&server->inbox, &mail)) {
        sim_model_asked(server->world->model, server->index, mail.message);
        dp_shard_receive(server->bed.shard, &mail.peer, &mail.message);
    }
}

static void close_all(struct sim_server *server)
{
    if (server->bed.shard)
        sim_counts_add_shard(server->bed.shard);
    server->up = false;
    server->life++;
    server->turn_at = UINT64_MAX;
    server->commit_asked = server->sync_asked = server->claim_asked = false;
    sim_inbox_clear(&server->inbox);
    shard_bed_close(&server->bed);
    if (server->copier)
        sim_copier_crash(server->copier);
    server->journal = NULL;
    sim_model_closed(server->world->model, server->index);
}

/* The first server's process has the register, too. */
static struct sim_control *control_of(const struct sim_server *server)
{
    return server->index == 0 ? server->world->control : NULL;
}

/* Down for a while. */
static void start_later(struct sim_server *server)
{
    sim_at(server->world, SIM_MS * (1 + sim_draw(server->world, server->world->plan.storm ? 300 : 3000)),
           start, server, server->life);
}

static void check_bounds(const struct sim_server *server)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    uint32_t n = dp_shard_counters(server->bed.shard, counters);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t value = counters[i].value;
        /* (An entry of the index is charged what it takes at the most usual load: row_cache.h.) */
        if (strcmp(counters[i].name, "cache_bytes") == 0 && value > server->world->plan.cache_bytes / 4 * 5)
            sim_fail(server->world,
                     "shard %" PRIu32 ": %" PRIu64 " bytes of row cache, %" PRIu64 " are allowed",
                     server->index, value, server->world->plan.cache_bytes);
        if (strcmp(counters[i].name, "answers_held") == 0 && value > HELD_MAX)
            sim_fail(server->world, "shard %" PRIu32 " holds %" PRIu64 " answers", server->index, value);
    }
}

/* What a server does once all is in the store: marked clean, then the journal's segments are removed; it dies anywhere between. */
static void end_cleanly(struct sim_server *server)
{
    struct dp_error err = {0};
    bool may_die = !server->world->calm && !server->stops;
    uint64_t fate = may_die ? sim_draw(server->world, 8) : 7;
    server->clean = fate > 0 && (!may_die || sim_draw(server->world, 2)); /* or the next start died at once */
    if (fate < 2)
        return;
    if (fate == 2 && !server->world->plan.process)
        dp_sim_disk_cut_at(server->bed.sim, 1 + sim_draw(server->world, 8));
    uint64_t used = dp_sim_disk_used(server->bed.sim);
    enum dp_status st = dp_shard_end_journal(server->bed.shard, &err);
    server->journal = NULL;
    sim_counts_add(SIM_ENDED, used > 0);
    if (st == DP_OK && !dp_sim_disk_is_off(server->bed.sim) && dp_sim_disk_used(server->bed.sim) > 0)
        sim_fail(server->world, "shard %" PRIu32 ": its journal has ended, and takes %" PRIu64 " bytes",
                 server->index, dp_sim_disk_used(server->bed.sim));
}

/* Drained: is it time to close? */
static void drained(struct sim_server *server)
{
    struct dp_error err = {0};
    enum dp_status st = dp_shard_drained(server->bed.shard, &err);
    if (st == DP_AGAIN)
        return;
    sim_say(server->world, "s%" PRIu32 ": drained: %s %s", server->index, dp_status_name((int)st), err.text);
    server->clean = false;
    if (st == DP_OK && !dp_shard_keeps_journal(server->bed.shard))
        end_cleanly(server);
    bool off = dp_sim_disk_is_off(server->bed.sim);
    close_all(server);
    sim_control_down(control_of(server), off);
    if (off)
        restart_disk(server, true);
    dp_sim_disk_cut_at(server->bed.sim, 0);
    if (st == DP_OK && sim_store_links(server->rows) > 0)
        sim_fail(server->world, "shard %" PRIu32 " is drained, and a checkpoint's link is there",
                 server->index);
    if (st == DP_OK)
        sim_model_drained(server->world->model, server->index, server->rows);
    server->stopped = server->stops && st == DP_OK;
    if (!server->stopped)
        start_later(server);
}

static void turn(void *context, uint64_t life)
{
    struct sim_server *server = context;
    if (life != server->life || server->world->now_ns < server->turn_at)
        return;
    server->turn_at = UINT64_MAX;
    working = server;
    take_in(server);
    bool more = dp_shard_turn(server->bed.shard);
    working = NULL;
    if (dp_sim_disk_is_off(server->bed.sim)) {
        sim_server_crash(server, true);
        return;
    }
    if (server->world->events % 16 == 0)
        check_bounds(server);
    if (sim_store_is_poisoned(server->rows))
        start_by_hand(server);
    sim_server_ask_turn(server, more ? 1000 : TICK_NS);
    if (server->draining)
        drained(server);
}

void sim_server_ask_turn(struct sim_server *server, uint64_t delay_ns)
{
    uint64_t at = server->world->now_ns + delay_ns;
    if (at >= server->turn_at)
        return;
    server->turn_at = at;
    sim_at(server->world, delay_ns, turn, server, server->life);
}

static void wake(void *context)
{
    sim_server_ask_turn(context, 1000);
}

/* Rows reach the store only when their records survive a loss of power. */
static void wrote(void *context, uint64_t lsn)
{
    const struct sim_server *server = context;
    if (server->journal && lsn > dp_journal_synced(server->journal))
        sim_fail(server->world, "shard %" PRIu32 " writes a row of lsn %" PRIu64 " back, synced is %" PRIu64,
                 server->index, lsn, dp_journal_synced(server->journal));
}

void sim_server_receive(struct sim_server *server, const struct dp_peer *from, struct dp_message **message)
{
    if (!server->up) {
        dp_message_free(message);
        return;
    }
    struct sim_mail mail = {.message = *message, .peer = *from};
    *message = NULL;
    sim_inbox_put(&server->inbox, &mail);
    sim_server_ask_turn(server, 1000 * (1 + sim_draw(server->world, server->world->plan.turn_us + 1)));
}

static void reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct sim_server *server = context;
    if (dp_sim_disk_is_off(server->bed.sim)) {
        dp_message_free(message);
        return;
    }
    sim_model_answered(server->world->model, server->index, *message);
    if (to->size != SIM_PEER_BYTES) { /* the stranger, who does not listen */
        dp_message_free(message);
        return;
    }
    sim_net_to_worker(server->world, server->index, to, *message);
    *message = NULL;
}

/* ---- start and crash */

static uint64_t wall_ns(void *self)
{
    return SIM_WALL_S * UINT64_C(1000000000);
}

static struct dp_store open_store(void *context)
{
    return sim_store_open(((const struct sim_server *)context)->rows);
}

static enum dp_status open_shard(struct sim_server *server, struct dp_error *err)
{
    struct dp_shard_options *options = &server->bed.options;
    options->boot = server->life;
    options->salt = sim_draw(server->world, UINT64_C(1) << 40);
    options->recovers = !server->clean;
    enum dp_status st = shard_bed_open(&server->bed, err);
    if (st == DP_OK) {
        server->clean = false;
        server->up = true;
        server->draining = false;
        server->rounds = 0;
        return st;
    }
    sim_store_crash(server->rows, false);
    while (server->bed.store.completed(server->bed.store.self))
        ;
    shard_bed_close(&server->bed);
    server->journal = NULL;
    server->life++;
    server->commit_asked = server->sync_asked = server->claim_asked = false;
    server->turn_at = UINT64_MAX;
    return st;
}

static void restart_disk(struct sim_server *server, bool power)
{
    static const enum dp_sim_survival survivals[] = {DP_SIM_RANDOM, DP_SIM_NOTHING, DP_SIM_ALL,
                                                     DP_SIM_RANDOM, DP_SIM_RANDOM,  DP_SIM_RANDOM};
    uint64_t kinds = server->world->plan.sectors ? 1 : server->world->plan.storm ? 6 : 3;
    server->sick = false;
    dp_sim_disk_restart(server->bed.sim, power ? survivals[sim_draw(server->world, kinds)] : DP_SIM_PROCESS);
}

static void start(void *context, uint64_t life)
{
    struct sim_server *server = context;
    struct dp_error err = {0};
    if (life != server->life)
        return;
    const struct sim_plan *plan = &server->world->plan;
    if (!server->world->calm && !plan->process &&
        sim_draw(server->world, plan->storm ? 4 : 8) < (plan->storm ? 3 : 1))
        dp_sim_disk_cut_at(server->bed.sim, (plan->storm ? 4 : 1) + sim_draw(server->world, 16));
    bool clean = server->clean;
    enum dp_status st = open_shard(server, &err);
    bool off = dp_sim_disk_is_off(server->bed.sim);
    sim_say(server->world, "s%" PRIu32 ": start, %s: %s %s", server->index, clean ? "clean" : "recovering",
            dp_status_name((int)st), off ? "power went" : err.text);
    if (st == DP_OK && (off || !sim_control_up(control_of(server)))) {
        sim_server_crash(server, true);
        return;
    }
    if (off)
        restart_disk(server, true);
    else if (st == DP_IO && server->sick)
        restart_disk(server, false); /* the failure that was asked for */
    else if (st == DP_FULL && !server->world->calm)
        sim_say(server->world, "s%" PRIu32 ": the disk is full", server->index);
    else if (st != DP_OK)
        sim_fail(server->world, "shard %" PRIu32 " does not open again: %s", server->index, err.text);
    if (st == DP_OK)
        sim_server_ask_turn(server, 1000);
    else
        start_later(server);
}

void sim_server_crash(struct sim_server *server, bool power)
{
    sim_say(server->world, "s%" PRIu32 ": %s", server->index, power ? "power goes" : "dies");
    sim_counts_add(power ? SIM_POWER_CUTS : SIM_DEATHS, 1);
    shard_bed_cut(&server->bed);
    sim_store_crash(server->rows, power);
    close_all(server);
    restart_disk(server, power);
    sim_control_down(control_of(server), power);
    start_later(server);
}

struct sim_server *sim_server_new(struct sim_world *world, uint32_t index)
{
    struct sim_server *server = calloc(1, sizeof *server);
    DP_ASSERT(server);
    playing = world;
    *server =
        (struct sim_server){.world = world, .index = index, .life = 1, .clean = true, .turn_at = UINT64_MAX};
    world->server[index] = server;
    const struct sim_plan *plan = &world->plan;
    server->bed = (struct shard_bed){.open_store = open_store,
                                     .store_context = server,
                                     .options = {.index = index,
                                                 .shards = plan->servers,
                                                 .cluster = 7,
                                                 .generation = world->generation,
                                                 .history = world->history,
                                                 .store_id = 77 + index,
                                                 .wall = {wall_ns, NULL},
                                                 .cache_bytes = plan->cache_bytes,
                                                 .requests_max = plan->requests_max,
                                                 .taken_rows_max = plan->taken_rows,
                                                 .clock = sim_clock(world),
                                                 .reply = reply,
                                                 .reply_context = server}};
    shard_bed_journal(&server->bed, dp_sim_disk_new(sim_draw(world, UINT64_C(1) << 40)), plan->durability,
                      plan->segment_bytes, plan->budget_bytes);
    server->rows = sim_store_new(world, wake, wrote, server);
    if (plan->checkpoints) {
        const struct sim_copier_options copier = {world, &server->bed.disk, server->rows, wake, server};
        server->copier = sim_copier_new(&copier);
        server->bed.options.copier = sim_copier_seam(server->copier);
    }
    return server;
}

void sim_server_free(struct sim_server **out)
{
    struct sim_server *server = *out;
    if (server->up) {
        sim_store_crash(server->rows, false);
        close_all(server);
    }
    sim_inbox_clear(&server->inbox);
    dp_sim_disk_free(&server->bed.sim);
    sim_store_free(&server->rows);
    sim_copier_free(&server->copier);
    free(server);
    *out = NULL;
}

struct sim_store *sim_server_store(struct sim_server *server)
{
    return server->rows;
}

void sim_server_adopt(struct sim_server *server, struct dp_sim_disk *journal)
{
    const struct sim_plan *plan = &server->world->plan;
    dp_sim_disk_free(&server->bed.sim);
    shard_bed_journal(&server->bed, journal, plan->durability, plan->segment_bytes, plan->budget_bytes);
    server->clean = false;
}

bool sim_server_is_up(const struct sim_server *server)
{
    return server->up;
}

bool sim_server_is_stopped(const struct sim_server *server)
{
    return server->stopped;
}

void sim_server_start(struct sim_server *server)
{
    server->stops = server->stopped = false;
    start(server, server->life);
}

/* ---- faults */

void sim_server_dies(struct sim_server *server, bool power)
{
    if (server->up)
        sim_server_crash(server, power && !server->world->plan.process);
}

void sim_server_loses_power_at(struct sim_server *server, uint64_t operation)
{
    if (!server->up || server->world->plan.process)
        return;
    dp_sim_disk_cut_at(server->bed.sim, operation);
    sim_control_loses_power_at(control_of(server), operation / 4 + 1);
}

static void job_done(void *context)
{
    struct sim_server *server = context;
    if (server->up)
        sim_server_crash(server, !server->world->plan.process);
}

void sim_server_loses_power_at_job(struct sim_server *server, bool marks)
{
    sim_store_die(server->rows, marks ? DP_STORE_MARKS : DP_STORE_WRITE, job_done);
}

void sim_server_read_fails(struct sim_server *server)
{
    if (server->up)
        sim_store_fail(server->rows, DP_STORE_READ, DP_IO);
}

void sim_server_write_fails(struct sim_server *server, uint64_t choice)
{
    if (!server->up)
        return;
    sim_store_fail(server->rows, choice % 2 ? DP_STORE_WRITE : DP_STORE_MARKS,
                   choice / 2 % 2 ? DP_IO : DP_FULL);
}

void sim_server_sync_fails(struct sim_server *server, uint64_t choice)
{
    if (!server->up || server->world->plan.durability == DP_DURABILITY_PROCESS)
        return;
    server->sick = true;
    dp_sim_disk_fail(server->bed.sim, DP_SIM_SYNC, 1 + choice % 4, 1, DP_IO);
}

static void has_room(void *context, uint64_t life)
{
    struct sim_server *server = context;
    dp_sim_disk_capacity(server->bed.sim, UINT64_MAX);
}

void sim_server_disk_is_full(struct sim_server *server)
{
    dp_sim_disk_capacity(server->bed.sim, dp_sim_disk_used(server->bed.sim));
    sim_at(server->world, SIM_S * (1 + sim_draw(server->world, 15)), has_room, server, 0);
}

void sim_server_restart(struct sim_server *server)
{
    if (!server->up || server->draining)
        return;
    sim_say(server->world, "s%" PRIu32 ": drains", server->index);
    server->draining = true;
    dp_shard_drain(server->bed.shard);
    sim_server_ask_turn(server, 1000);
}

void sim_server_stop(struct sim_server *server)
{
    server->stops = true;
    sim_server_restart(server);
}

void sim_server_heal(struct sim_server *server)
{
    dp_sim_disk_capacity(server->bed.sim, UINT64_MAX);
    dp_sim_disk_cut_at(server->bed.sim, 0);
    sim_control_heal(control_of(server));
    sim_store_heal(server->rows);
}

#include "tests/sim/server.h"

#include "common/base/log.h"
#include "server/shard/shard.h"
#include "tests/lib/sim_disk.h"
#include "tests/sim/model.h"
#include "tests/sim/net.h"
#include "tests/sim/stranger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS  (SIM_S / 2) /* a turn, when nothing else asks for one */
#define HELD_MAX 512u

struct letter {
    struct letter *next;
    struct dp_peer from;
    struct dp_message *message;
};

struct sim_server {
    struct sim_world *world;
    uint32_t index;
    uint64_t life;    /* of events: those of an earlier one are void */
    uint64_t by_hand; /* the life that somebody is about to end */
    bool up, clean, draining, stops, stopped;
    bool sick; /* an operation of its disk is to fail */
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct sim_store *rows;
    struct dp_store store;
    struct dp_shard *shard;
    struct dp_journal *journal;
    struct letter *inbox, **inbox_end;
    uint64_t turn_at; /* the earliest that is asked for; UINT64_MAX: none */
    bool commit_asked, sync_asked, claim_asked;
    uint64_t claim_lsn;              /* the last when a claim was asked for */
    uint32_t rounds;                 /* of this life */
    struct dp_journal_options given; /* of the opening under way */
};

/* The world of now, and the server whose shard is at work: what the shard calls knows nothing of them. */
static struct sim_world *playing;
static struct sim_server *working;

enum { BEHIND = 2, CLAIMS, ENDED }; /* of counted */

/* What happened, over all seeds: a simulation in which nothing does shows nothing. */
static struct {
    const char *name;
    uint64_t sum;
} counted[] = {{"deaths", 0},
               {"power_cuts", 0},
               {"appends_behind", 0},
               {"journal_claims", 0},
               {"journals_ended", 0},
               {"pushes", 0},
               {"pushes_repeated", 0},
               {"pushes_replayed", 0},
               {"rows_read", 0},
               {"rows_evicted", 0},
               {"rows_written_back", 0},
               {"write_back_cycles", 0},
               {"requests_postponed", 0},
               {"requests_parked", 0}};

static void start(void *context, uint64_t life);
static void restart_disk(struct sim_server *server, bool power);
static void crash(struct sim_server *server, bool power);

/* ---- the journal's side */

enum dp_status __real_dp_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                                      struct dp_error *err);
enum dp_status __wrap_dp_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                                      struct dp_error *err);
enum dp_status __real_dp_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                        uint32_t count, uint64_t *lsn, struct dp_error *err);
enum dp_status __wrap_dp_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                        uint32_t count, uint64_t *lsn, struct dp_error *err);
void __real_dp_journal_commit(struct dp_journal *journal);
void __wrap_dp_journal_commit(struct dp_journal *journal);
void __real_dp_journal_sync(struct dp_journal *journal);
void __wrap_dp_journal_sync(struct dp_journal *journal);
void __real_dp_journal_release(struct dp_journal *journal, uint64_t keep_from);
void __wrap_dp_journal_release(struct dp_journal *journal, uint64_t keep_from);
void __wrap_dp_log(enum dp_log_level level, const char *format, ...) DP_PRINTF(2, 3);

static enum dp_status replay(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err)
{
    struct sim_server *server = context;
    sim_model_replayed(server->world->model, server->index, lsn, record, bytes);
    return server->given.replay(server->given.replay_context, lsn, record, bytes, err);
}

enum dp_status __wrap_dp_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                                      struct dp_error *err)
{
    struct dp_journal_options watched = *options;
    struct sim_server *server = NULL;
    for (uint32_t i = 0; i < playing->plan.servers; i++)
        if (options->disk == &playing->server[i]->disk)
            server = playing->server[i];
    DP_ASSERT(server);
    server->given = *options;
    watched.replay = replay;
    watched.replay_context = server;
    enum dp_status st = __real_dp_journal_open(&watched, out, err);
    if (st != DP_OK)
        return st;
    server->journal = *out;
    sim_model_opened(playing->model, server->index, dp_journal_last(*out));
    return st;
}

static struct sim_server *owner_of(const struct dp_journal *journal)
{
    for (uint32_t i = 0; i < playing->plan.servers; i++)
        if (playing->server[i]->journal == journal)
            return playing->server[i];
    sim_fail(playing, "a journal that no server has");
}

static void ask_turn(struct sim_server *server, uint64_t delay_ns);
static void ask_claim(struct sim_server *server);

/* What the commit thread would do once it is signalled. */
static void commit_round(void *context, uint64_t life)
{
    struct sim_server *server = context;
    if (life != server->life)
        return;
    bool sync = server->sync_asked;
    /* Where a storm's records are of one sector each: power goes in the first write of an opening. */
    uint64_t unsynced = dp_journal_last(server->journal) - dp_journal_synced(server->journal);
    if (server->world->plan.sectors && !server->world->calm && unsynced > 0 && server->rounds++ == 0 &&
        sim_draw(server->world, 4) > 0)
        dp_sim_disk_cut_at(server->sim, 1);
    server->commit_asked = server->sync_asked = false;
    if (sync)
        __real_dp_journal_sync(server->journal);
    else
        __real_dp_journal_commit(server->journal);
    if (dp_sim_disk_is_off(server->sim))
        crash(server, true);
    else
        ask_turn(server, 1000);
}

/* What the commit thread would do once nothing was appended for a while. */
static void claim_if_idle(void *context, uint64_t life)
{
    struct sim_server *server = context;
    if (life != server->life)
        return;
    server->claim_asked = false;
    if (server->commit_asked || dp_journal_last(server->journal) != server->claim_lsn) {
        ask_claim(server);
        return;
    }
    struct dp_journal_figures before, after;
    dp_journal_figures(server->journal, &before);
    dp_journal_claim(server->journal);
    dp_journal_figures(server->journal, &after);
    counted[CLAIMS].sum += after.claimed_lsn > before.claimed_lsn;
    if (dp_sim_disk_is_off(server->sim))
        crash(server, true);
    else
        ask_turn(server, 1000);
}

static void ask_claim(struct sim_server *server)
{
    if (server->claim_asked)
        return;
    server->claim_asked = true;
    server->claim_lsn = dp_journal_last(server->journal);
    sim_at(server->world, SIM_MS * server->world->plan.idle_ms, claim_if_idle, server, server->life);
}

static void ask_commit(struct sim_server *server, bool sync)
{
    server->sync_asked |= sync;
    if (server->commit_asked)
        return;
    server->commit_asked = true;
    sim_at(server->world, 1000 * (10 + sim_draw(server->world, server->world->plan.sync_ms * 1000 + 1)),
           commit_round, server, server->life);
}

void __wrap_dp_journal_commit(struct dp_journal *journal)
{
    struct sim_server *server = owner_of(journal);
    if (server->world->plan.durability == DP_DURABILITY_PROCESS || server->world->plan.sync_ms == 0)
        __real_dp_journal_commit(journal);
    else
        ask_commit(server, false);
}

void __wrap_dp_journal_sync(struct dp_journal *journal)
{
    struct sim_server *server = owner_of(journal);
    if (server->world->plan.sync_ms == 0)
        __real_dp_journal_sync(journal);
    else
        ask_commit(server, true);
}

void __wrap_dp_journal_release(struct dp_journal *journal, uint64_t keep_from)
{
    __real_dp_journal_release(journal, keep_from);
    ask_commit(owner_of(journal), false); /* the thread makes a segment of what it can have */
}

/* A disk that has not taken yet what was appended before: this push may be too large for what is left, another not. */
static bool is_behind(const struct sim_server *server)
{
    struct sim_world *world = server->world;
    struct dp_error err;
    enum dp_status st;
    uint64_t durable = dp_journal_durable(server->journal, &st, &err);
    return st == DP_OK && world->plan.behind > 0 &&
           dp_journal_last(server->journal) - durable >= world->plan.behind && sim_draw(world, 4) > 0;
}

enum dp_status __wrap_dp_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                        uint32_t count, uint64_t *lsn, struct dp_error *err)
{
    struct sim_server *server = owner_of(journal);
    if (is_behind(server)) {
        counted[BEHIND].sum++;
        ask_commit(server, false);
        return dp_fail(err, DP_JOURNAL_BEHIND, "simulated journal: its disk is behind");
    }
    uint64_t got = 0;
    enum dp_status st = __real_dp_journal_append(journal, pieces, count, &got, err);
    if (st == DP_OK) {
        *lsn = got;
        ask_claim(server);
        sim_model_appended(server->world->model, server->index, got, pieces, count);
    } else if (st == DP_AGAIN || st == DP_FULL) {
        ask_commit(server, false); /* the thread tries to make a segment */
    }
    return st;
}

static void dies_by_hand(void *context, uint64_t life)
{
    struct sim_server *server = context;
    if (server->up && life == server->life)
        crash(server, false);
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

void __wrap_dp_log(enum dp_log_level level, const char *format, ...)
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

static void forget_inbox(struct sim_server *server)
{
    while (server->inbox) {
        struct letter *letter = server->inbox;
        server->inbox = letter->next;
        dp_message_free(&letter->message);
        free(letter);
    }
    server->inbox_end = &server->inbox;
}

static void take_in(struct sim_server *server)
{
    while (server->inbox) {
        struct letter *letter = server->inbox;
        server->inbox = letter->next;
        sim_model_asked(server->world->model, server->index, letter->message);
        dp_shard_receive(server->shard, &letter->from, &letter->message);
        free(letter);
    }
    server->inbox_end = &server->inbox;
}

static void count(const struct sim_server *server)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    uint32_t n = server->shard ? dp_shard_counters(server->shard, counters) : 0;
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof counted / sizeof counted[0]; k++)
            if (strcmp(counters[i].name, counted[k].name) == 0)
                counted[k].sum += counters[i].value;
}

void sim_server_tell_counts(void)
{
    for (size_t k = 0; k < sizeof counted / sizeof counted[0]; k++)
        (void)printf("%s %" PRIu64 "%s", counted[k].name, counted[k].sum,
                     k + 1 < sizeof counted / sizeof counted[0] ? ", " : "\n");
}

static void close_all(struct sim_server *server)
{
    count(server);
    server->up = false;
    server->life++;
    server->turn_at = UINT64_MAX;
    server->commit_asked = server->sync_asked = server->claim_asked = false;
    forget_inbox(server);
    dp_shard_close(&server->shard);
    server->journal = NULL;
    server->store.close(server->store.self);
    sim_model_closed(server->world->model, server->index);
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
    uint32_t n = dp_shard_counters(server->shard, counters);
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
        dp_sim_disk_cut_at(server->sim, 1 + sim_draw(server->world, 8));
    uint64_t used = dp_sim_disk_used(server->sim);
    enum dp_status st = dp_shard_end_journal(server->shard, &err);
    server->journal = NULL;
    counted[ENDED].sum += used > 0;
    if (st == DP_OK && !dp_sim_disk_is_off(server->sim) && dp_sim_disk_used(server->sim) > 0)
        sim_fail(server->world, "shard %" PRIu32 ": its journal has ended, and takes %" PRIu64 " bytes",
                 server->index, dp_sim_disk_used(server->sim));
}

/* Drained: is it time to close? */
static void drained(struct sim_server *server)
{
    struct dp_error err = {0};
    enum dp_status st = dp_shard_drained(server->shard, &err);
    if (st == DP_AGAIN)
        return;
    sim_say(server->world, "s%" PRIu32 ": drained: %s %s", server->index, dp_status_name((int)st), err.text);
    server->clean = false;
    if (st == DP_OK)
        end_cleanly(server);
    bool off = dp_sim_disk_is_off(server->sim);
    close_all(server);
    if (off)
        restart_disk(server, true);
    dp_sim_disk_cut_at(server->sim, 0);
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
    bool more = dp_shard_turn(server->shard);
    working = NULL;
    if (dp_sim_disk_is_off(server->sim)) {
        crash(server, true);
        return;
    }
    if (server->world->events % 16 == 0)
        check_bounds(server);
    if (sim_store_is_poisoned(server->rows))
        start_by_hand(server);
    ask_turn(server, more ? 1000 : TICK_NS);
    if (server->draining)
        drained(server);
}

static void ask_turn(struct sim_server *server, uint64_t delay_ns)
{
    uint64_t at = server->world->now_ns + delay_ns;
    if (at >= server->turn_at)
        return;
    server->turn_at = at;
    sim_at(server->world, delay_ns, turn, server, server->life);
}

static void wake(void *context)
{
    ask_turn(context, 1000);
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
    struct letter *letter = malloc(sizeof *letter);
    DP_ASSERT(letter);
    *letter = (struct letter){.from = *from, .message = *message};
    *message = NULL;
    *server->inbox_end = letter;
    server->inbox_end = &letter->next;
    ask_turn(server, 1000 * (1 + sim_draw(server->world, server->world->plan.turn_us + 1)));
}

static void reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct sim_server *server = context;
    if (dp_sim_disk_is_off(server->sim)) {
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
    (void)self;
    return SIM_WALL_S * UINT64_C(1000000000);
}

static enum dp_status open_shard(struct sim_server *server, struct dp_error *err)
{
    const struct sim_plan *plan = &server->world->plan;
    server->store = sim_store_open(server->rows);
    struct dp_shard_options options = {.index = server->index,
                                       .shards = plan->servers,
                                       .cluster = 7,
                                       .generation = 1,
                                       .boot = server->life,
                                       .wall = {wall_ns, NULL},
                                       .cache_bytes = plan->cache_bytes,
                                       .salt = sim_draw(server->world, UINT64_C(1) << 40),
                                       .requests_max = plan->requests_max,
                                       .taken_rows_max = plan->taken_rows,
                                       .store = &server->store,
                                       .clock = sim_clock(server->world),
                                       .journaled = true,
                                       .recovers = !server->clean,
                                       .journal = {.disk = &server->disk,
                                                   .durability = plan->durability,
                                                   .segment_bytes = plan->segment_bytes,
                                                   .budget_bytes = plan->budget_bytes},
                                       .reply = reply,
                                       .reply_context = server};
    enum dp_status st = dp_shard_open(&options, &server->shard, err);
    if (st == DP_OK) {
        server->clean = false;
        server->up = true;
        server->draining = false;
        server->rounds = 0;
        return st;
    }
    sim_store_crash(server->rows, false);
    while (server->store.completed(server->store.self))
        ;
    server->store.close(server->store.self);
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
    dp_sim_disk_restart(server->sim, power ? survivals[sim_draw(server->world, kinds)] : DP_SIM_PROCESS);
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
        dp_sim_disk_cut_at(server->sim, (plan->storm ? 4 : 1) + sim_draw(server->world, 16));
    bool clean = server->clean;
    enum dp_status st = open_shard(server, &err);
    bool off = dp_sim_disk_is_off(server->sim);
    sim_say(server->world, "s%" PRIu32 ": start, %s: %s %s", server->index, clean ? "clean" : "recovering",
            dp_status_name((int)st), off ? "power went" : err.text);
    if (off && st == DP_OK) {
        crash(server, true);
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
        ask_turn(server, 1000);
    else
        start_later(server);
}

static void crash(struct sim_server *server, bool power)
{
    sim_say(server->world, "s%" PRIu32 ": %s", server->index, power ? "power goes" : "dies");
    counted[power].sum++;
    if (!dp_sim_disk_is_off(server->sim)) { /* at once, so that closing saves nothing */
        dp_sim_disk_cut_at(server->sim, 1);
        (void)server->disk.sync_directory(server->disk.self, NULL);
    }
    sim_store_crash(server->rows, power);
    close_all(server);
    restart_disk(server, power);
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
    server->inbox_end = &server->inbox;
    server->sim = dp_sim_disk_new(sim_draw(world, UINT64_C(1) << 40));
    server->disk = dp_sim_disk_interface(server->sim);
    server->rows = sim_store_new(world, wake, wrote, server);
    return server;
}

void sim_server_free(struct sim_server **out)
{
    struct sim_server *server = *out;
    if (server->up) {
        sim_store_crash(server->rows, false);
        close_all(server);
    }
    forget_inbox(server);
    dp_sim_disk_free(&server->sim);
    sim_store_free(&server->rows);
    free(server);
    *out = NULL;
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
        crash(server, power && !server->world->plan.process);
}

void sim_server_loses_power_at(struct sim_server *server, uint64_t operation)
{
    if (server->up && !server->world->plan.process)
        dp_sim_disk_cut_at(server->sim, operation);
}

static void job_done(void *context)
{
    struct sim_server *server = context;
    if (server->up)
        crash(server, !server->world->plan.process);
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
    dp_sim_disk_fail(server->sim, DP_SIM_SYNC, 1 + choice % 4, 1, DP_IO);
}

static void has_room(void *context, uint64_t life)
{
    struct sim_server *server = context;
    (void)life;
    dp_sim_disk_capacity(server->sim, UINT64_MAX);
}

void sim_server_disk_is_full(struct sim_server *server)
{
    dp_sim_disk_capacity(server->sim, dp_sim_disk_used(server->sim));
    sim_at(server->world, SIM_S * (1 + sim_draw(server->world, 15)), has_room, server, 0);
}

void sim_server_restart(struct sim_server *server)
{
    if (!server->up || server->draining)
        return;
    sim_say(server->world, "s%" PRIu32 ": drains", server->index);
    server->draining = true;
    dp_shard_drain(server->shard);
    ask_turn(server, 1000);
}

void sim_server_stop(struct sim_server *server)
{
    server->stops = true;
    sim_server_restart(server);
}

void sim_server_heal(struct sim_server *server)
{
    dp_sim_disk_capacity(server->sim, UINT64_MAX);
    dp_sim_disk_cut_at(server->sim, 0);
    sim_store_heal(server->rows);
}

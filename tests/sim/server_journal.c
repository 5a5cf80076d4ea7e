#include "tests/lib/journal_seam.h"
#include "tests/lib/sim_disk.h"
#include "tests/sim/counts.h"
#include "tests/sim/model.h"
#include "tests/sim/server_inner.h"

static enum dp_status replay(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err)
{
    struct sim_server *server = context;
    sim_model_replayed(server->world->model, server->index, lsn, record, bytes);
    return server->given.replay(server->given.replay_context, lsn, record, bytes, err);
}

enum dp_status dp_seam_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                                    struct dp_error *err)
{
    struct dp_journal_options watched = *options;
    struct sim_server *server = sim_server_of_disk(options->disk);
    if (!server) /* of a restore */
        return dp_journal_open(options, out, err);
    server->given = *options;
    watched.replay = replay;
    watched.replay_context = server;
    enum dp_status st = dp_journal_open(&watched, out, err);
    if (st != DP_OK)
        return st;
    server->journal = *out;
    sim_model_opened(server->world->model, server->index, dp_journal_last(*out));
    return st;
}

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
        dp_sim_disk_cut_at(server->bed.sim, 1);
    server->commit_asked = server->sync_asked = false;
    if (sync)
        dp_journal_sync(server->journal);
    else
        dp_journal_commit(server->journal);
    if (dp_sim_disk_is_off(server->bed.sim))
        sim_server_crash(server, true);
    else
        sim_server_ask_turn(server, 1000);
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
    sim_counts_add(SIM_CLAIMS, after.claimed_lsn > before.claimed_lsn);
    if (dp_sim_disk_is_off(server->bed.sim))
        sim_server_crash(server, true);
    else
        sim_server_ask_turn(server, 1000);
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

void dp_seam_journal_commit(struct dp_journal *journal)
{
    struct sim_server *server = sim_server_of_journal(journal);
    if (!server || server->world->plan.durability == DP_DURABILITY_PROCESS ||
        server->world->plan.sync_ms == 0)
        dp_journal_commit(journal);
    else
        ask_commit(server, false);
}

void dp_seam_journal_sync(struct dp_journal *journal)
{
    struct sim_server *server = sim_server_of_journal(journal);
    if (!server || server->world->plan.sync_ms == 0)
        dp_journal_sync(journal);
    else
        ask_commit(server, true);
}

void dp_seam_journal_release(struct dp_journal *journal, uint64_t keep_from)
{
    struct sim_server *server = sim_server_of_journal(journal);
    dp_journal_release(journal, keep_from);
    if (server)
        ask_commit(server, false); /* the thread makes a segment of what it can have */
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

enum dp_status dp_seam_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                      uint32_t count, uint64_t *lsn, struct dp_error *err)
{
    struct sim_server *server = sim_server_of_journal(journal);
    if (!server)
        return dp_journal_append(journal, pieces, count, lsn, err);
    if (is_behind(server)) {
        sim_counts_add(SIM_BEHIND, 1);
        ask_commit(server, false);
        return dp_fail(err, DP_BEHIND, "simulated journal: its disk is behind");
    }
    uint64_t got = 0;
    enum dp_status st = dp_journal_append(journal, pieces, count, &got, err);
    if (st == DP_OK) {
        *lsn = got;
        ask_claim(server);
        enum dp_status failed;
        struct dp_error why;
        uint64_t durable = dp_journal_durable(journal, &failed, &why);
        sim_model_appended(server->world->model, server->index, got, durable, pieces, count);
    } else if (st == DP_AGAIN || st == DP_FULL) {
        ask_commit(server, false); /* the thread tries to make a segment */
    }
    return st;
}

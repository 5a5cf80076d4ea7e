#include "tests/unit/server/journal/journal_world.h"

#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_MAX (60u << 10)

uint64_t world_draw(struct world *world)
{
    uint64_t z = world->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Bytes of the record with this tag. */
static size_t world_record(uint64_t tag, uint64_t size_max, uint8_t *to)
{
    uint64_t x = tag * 0x9e3779b97f4a7c15u + 1;
    size_t bytes = 8 + (size_t)(x >> 20) % size_max;
    memcpy(to, &tag, 8);
    for (size_t i = 8; i < bytes; i++) {
        if (i % 8 == 0)
            x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
        to[i] = (uint8_t)(x >> i % 8 * 8);
    }
    return bytes;
}

/* The tag's upper bits say the bound of its size. */
static uint64_t size_of(uint64_t tag)
{
    return tag >> 32;
}

static enum dp_status compare(void *context, uint64_t lsn, const void *record, size_t bytes,
                              struct dp_error *err)
{
    struct world *world = context;
    static uint8_t wanted[RECORD_MAX + 16];
    if (lsn != world->replayed + 1 || lsn > world->last)
        fail_msg("seed %" PRIu64 ": lsn %" PRIu64 " replayed after %" PRIu64 ", appended were %" PRIu64,
                 world->seed, lsn, world->replayed, world->last);
    uint64_t tag = world->tag[lsn % WORLD_LSNS];
    size_t length = world_record(tag, size_of(tag), wanted);
    if (length != bytes || memcmp(wanted, record, bytes) != 0)
        fail_msg("seed %" PRIu64 ": lsn %" PRIu64 " is replayed with other bytes (resurrected or torn)",
                 world->seed, lsn);
    world->replayed = lsn;
    /* Rows may be written back from here on: it must never be lost any more. */
    if (lsn > world->synced)
        world->synced = world->durable = lsn;
    return DP_OK;
}

void world_init(struct world *world, uint64_t seed, enum dp_durability durability)
{
    memset(world, 0, sizeof *world);
    world->seed = world->random = seed;
    world->sim = dp_sim_disk_new(seed * 31 + 7);
    world->disk = dp_sim_disk_interface(world->sim);
    world->options = (struct dp_journal_options){
        .disk = &world->disk,
        .durability = durability,
        .segment_bytes = WORLD_SEGMENT,
        .budget_bytes = WORLD_BUDGET,
        .secret = seed * UINT64_C(0x9e3779b97f4a7c15),
        .replay = compare,
        .replay_context = world,
    };
}

void world_grows(struct world *world)
{
    world->options.first_bytes = WORLD_SEGMENT;
    world->options.segment_bytes = 3 * WORLD_SEGMENT;
    world->options.budget_bytes = 3 * world->options.segment_bytes;
}

void world_clear(struct world *world)
{
    dp_journal_close(&world->journal);
    dp_sim_disk_free(&world->sim);
}

enum dp_status world_open(struct world *world, struct dp_error *err)
{
    uint64_t process = world->durable;
    world->options.replay_after = world->replayed = world->marks;
    enum dp_status st = dp_journal_open(&world->options, &world->journal, err);
    if (st != DP_OK)
        return st;
    if (world->replayed < process)
        fail_msg("seed %" PRIu64 ": replay ended at %" PRIu64 ", %" PRIu64 " was durable", world->seed,
                 world->replayed, process);
    assert_int_equal(dp_journal_last(world->journal), world->replayed);
    world->last = world->synced = world->durable = world->replayed;
    /* One more than the budget, for the opening's own. */
    assert_true(dp_sim_disk_used(world->sim) <= world->options.budget_bytes + world->options.segment_bytes);
    return st;
}

enum dp_status world_append(struct world *world, uint64_t size_max)
{
    static uint8_t record[RECORD_MAX + 16];
    uint64_t lsn = 0, tag = size_max << 32 | ++world->tags,
             before = world->tag[(world->last + 1) % WORLD_LSNS];
    size_t bytes = world_record(tag, size_max, record), cut = bytes / 3;
    struct dp_journal_piece pieces[3] = {{record, cut}, {record + cut, 0}, {record + cut, bytes - cut}};
    world->tag[(world->last + 1) % WORLD_LSNS] = tag;
    enum dp_status st = dp_journal_append(world->journal, pieces, 3, &lsn, NULL);
    if (st == DP_AGAIN || st == DP_FULL || st == DP_ARGUMENT) {
        world->tag[(world->last + 1) % WORLD_LSNS] = before;
        return st;
    }
    world->last++; /* a failed one may be there all the same */
    world->appends++;
    assert_true(world->last - world->marks < WORLD_LSNS);
    if (st == DP_OK)
        assert_int_equal(lsn, world->last);
    return st;
}

enum dp_status world_commit(struct world *world)
{
    enum dp_status st;
    dp_journal_commit(world->journal);
    uint64_t durable = dp_journal_durable(world->journal, &st, NULL);
    assert_true(durable <= world->last && durable >= world->durable);
    world->durable = durable;
    world->synced = dp_journal_synced(world->journal);
    assert_true(world->synced <= durable);
    if (st == DP_OK)
        assert_int_equal(durable, dp_journal_last(world->journal));
    return st;
}

void world_claim(struct world *world)
{
    enum dp_status st;
    struct dp_journal_figures before, after;
    dp_journal_figures(world->journal, &before);
    dp_journal_claim(world->journal);
    dp_journal_figures(world->journal, &after);
    (void)dp_journal_durable(world->journal, &st, NULL);
    assert_true(after.claimed_lsn <= after.synced_lsn);
    if (st != DP_OK)
        return;
    world->durable = world->synced = after.synced_lsn;
    assert_int_equal(after.synced_lsn, after.last_lsn);
    world->claims += after.claimed_lsn > before.claimed_lsn;
    dp_journal_claim(world->journal); /* said already, or there is no place for it: not a byte more */
    dp_journal_figures(world->journal, &before);
    assert_int_equal(before.bytes_kept, after.bytes_kept);
    assert_int_equal(before.syncs, after.syncs);
}

void world_release(struct world *world, uint64_t upto)
{
    assert_true(upto <= world->synced);
    if (upto > world->marks)
        world->marks = upto;
    dp_journal_release(world->journal, world->marks + 1);
}

void world_close(struct world *world)
{
    bool well;
    enum dp_status st;
    (void)dp_journal_durable(world->journal, &st, NULL);
    uint64_t last = dp_journal_last(world->journal);
    dp_journal_close(&world->journal);
    well = st == DP_OK && !dp_sim_disk_is_off(world->sim);
    if (well)
        world->durable = world->synced = last;
}

void world_end(struct world *world)
{
    enum dp_status st;
    struct dp_error err = {0};
    struct dp_journal_figures figures;
    dp_journal_sync(world->journal);
    dp_journal_figures(world->journal, &figures);
    (void)dp_journal_durable(world->journal, &st, NULL);
    if (st != DP_OK || figures.synced_lsn < figures.last_lsn)
        return; /* a caller that drains waits for it, and gives up */
    world->marks = world->durable = world->synced = world->last = figures.last_lsn;
    world->options.released = world->options.incarnation = figures.incarnation;
    if (dp_journal_end(&world->journal, &err) == DP_OK)
        assert_int_equal(dp_sim_disk_used(world->sim), 0);
    else if (!dp_sim_disk_is_off(world->sim))
        fail_msg("seed %" PRIu64 ": %s", world->seed, err.text);
    assert_null(world->journal);
    world->ends++;
}

void world_crash(struct world *world, enum dp_sim_survival survival)
{
    /* A process that dies writes nothing more. */
    dp_sim_disk_cut_at(world->sim, 1);
    if (survival != DP_SIM_PROCESS) {
        world->durable = world->synced;
        world->power_losses++;
    }
    if (survival == DP_SIM_PROCESS && world->journal)
        dp_sim_disk_fail(world->sim, DP_SIM_WRITE, 1, 1000, DP_IO);
    if (survival == DP_SIM_PROCESS)
        dp_sim_disk_cut_at(world->sim, 0);
    dp_journal_close(&world->journal);
    dp_sim_disk_restart(world->sim, survival);
}

static enum dp_sim_survival any_survival(struct world *world)
{
    static const enum dp_sim_survival kinds[] = {DP_SIM_RANDOM, DP_SIM_RANDOM, DP_SIM_RANDOM, DP_SIM_NOTHING,
                                                 DP_SIM_ALL};
    return kinds[world_draw(world) % 5];
}

void world_recover(struct world *world, uint32_t cuts)
{
    for (uint32_t attempt = 0;; attempt++) {
        struct dp_error err = {0};
        if (attempt < cuts)
            dp_sim_disk_cut_at(world->sim, 1 + world_draw(world) % 12);
        enum dp_status st = world_open(world, &err);
        if (st == DP_OK && !dp_sim_disk_is_off(world->sim)) {
            dp_sim_disk_cut_at(world->sim, 0);
            return;
        }
        if (st != DP_OK && !dp_sim_disk_is_off(world->sim))
            fail_msg("seed %" PRIu64 ": refused: %s", world->seed, err.text);
        world_crash(world, any_survival(world));
    }
}

void world_script(struct world *world, uint32_t steps)
{
    for (uint32_t i = 0; i < steps && !dp_sim_disk_is_off(world->sim); i++) {
        uint64_t what = world_draw(world) % 100;
        if (!world->journal) {
            world_recover(world, 0);
        } else if (what < 40) {
            (void)world_append(world, 1 + world_draw(world) % 3000);
        } else if (what < 55) {
            (void)world_append(world, 30000 + world_draw(world) % 25000);
        } else if (what < 80) {
            (void)world_commit(world);
        } else if (what < 84) {
            dp_journal_sync(world->journal);
            world->synced = dp_journal_synced(world->journal);
        } else if (what < 88) {
            world_claim(world);
        } else if (what < 94) {
            world_release(world, world->marks + world_draw(world) % (world->synced - world->marks + 1));
        } else if (what < 95) {
            world_end(world);
        } else if (what < 96) {
            world_close(world);
        } else if (what < 98) {
            world_crash(world, DP_SIM_PROCESS);
        }
    }
}

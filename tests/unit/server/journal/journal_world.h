/* Journal world: a journal on a simulated disk beside a model of it that a test compares with.
 * The model knows, for each lsn, which bytes were appended last under it, what was answered as durable, and what the
 * caller's marks say; opening compares every replayed record with it and fails the test on the first difference.
 * Thread    The test's own. */
#ifndef DP_TESTS_UNIT_SERVER_JOURNAL_JOURNAL_WORLD_H
#define DP_TESTS_UNIT_SERVER_JOURNAL_JOURNAL_WORLD_H

#include "server/journal/journal.h"
#include "tests/lib/sim_disk.h"

#define WORLD_SEGMENT (64u << 10)
#define WORLD_BUDGET  (4u * WORLD_SEGMENT)
#define WORLD_LSNS    4096u

struct world {
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_journal_options options;
    struct dp_journal *journal; /* NULL: closed */
    uint64_t seed, random, tags;
    uint64_t tag[WORLD_LSNS]; /* of the record that was appended last under this lsn */
    uint64_t last;            /* lsn of the last append, one that failed included */
    uint64_t durable;         /* answered as durable */
    uint64_t synced;          /* answered as surviving a loss of power, or replayed */
    uint64_t marks;           /* the caller's replay_after */
    uint64_t replayed;        /* lsn of the last replayed record, of this opening */
    uint64_t power_losses, appends, claims, ends;
};

void world_init(struct world *world, uint64_t seed, enum dp_durability durability);
/* Before it is opened: its segments are 1, 2, 3, 3 ... of WORLD_SEGMENT, in a budget of 9. */
void world_grows(struct world *world);
void world_clear(struct world *world);
uint64_t world_draw(struct world *world);

/* Opens and compares. The status is the journal's: DP_IO when power went, and what else the test expects. */
enum dp_status world_open(struct world *world, struct dp_error *err);
/* Not DP_OK: refused, or power went. Sizes up to size_max bytes. */
enum dp_status world_append(struct world *world, uint64_t size_max);
/* One round, and what it says is durable. */
enum dp_status world_commit(struct world *world);
/* The journal was idle. */
void world_claim(struct world *world);
/* The caller wrote rows back up to this lsn, which is synced, and put its marks. */
void world_release(struct world *world, uint64_t upto);
void world_close(struct world *world);
/* All was written back, and the caller's marks say so and that the opening is over. */
void world_end(struct world *world);
/* The process dies or power goes; then the disk is there again. */
void world_crash(struct world *world, enum dp_sim_survival survival);
/* Opens until it works, with power lost within it as often as `cuts` says. */
void world_recover(struct world *world, uint32_t cuts);
/* A random script of so many steps; ends early when power goes. */
void world_script(struct world *world, uint32_t steps);

#endif

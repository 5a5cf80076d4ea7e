/* Crash bed: a bed with a journal, in which pushes of small integers go to tables at rate 1 from 0, in one session and one stream.
 * Allocations are wrapped (link options in CMakeLists.txt).
 *     crash_new -> crash_open -> crash_meet ... crash_close -> crash_open ... crash_close -> crash_free
 * Failure   The test fails, with the seed. */
#ifndef DP_TESTS_UNIT_SERVER_SHARD_CRASH_BED_H
#define DP_TESTS_UNIT_SERVER_SHARD_CRASH_BED_H

#include "tests/unit/server/shard/bed.h"

#define CRASH_KEYS    40u
#define CRASH_PUSHES  120u
#define CRASH_STREAM  ((uint64_t)1 << 63 | 5)
#define CRASH_ROWS    6u /* of a push, at most */
#define CRASH_SESSION 9u
#define CRASH_TABLES  5u

struct crash_script {
    uint32_t rows;
    uint32_t key[CRASH_ROWS], tables; /* the same rows of so many of the first tables */
    float gradient;
    uint64_t id; /* of the last request that carried it; 0: never sent */
    bool acknowledged;
};

struct crash {
    struct bed bed;
    uint64_t random, sequence;
    enum dp_durability durability;
    uint64_t mixed[CRASH_KEYS];
    uint32_t issued;
    struct crash_script push[CRASH_PUSHES];
    float value[CRASH_KEYS];
    uint64_t pull_id;
    uint32_t pull_first, pull_rows;
    uint64_t answered; /* id of the last answer, its status and reason */
    enum dp_status status;
    char reason[DP_REASON_MAX + 1];
    bool pulled, welcomed;
    uint32_t dim, tables, created;    /* tables: asked for; created: answered since the last crash */
    uint64_t create_id[CRASH_TABLES]; /* of the last request for each */
    uint64_t segment_bytes;
    bool may_be_refused;
    bool fails_store, fails_disk, failed; /* this seed does; has done */
    bool small;                           /* the cache */
    uint64_t evicted;
    uint32_t crashes, cuts, ends; /* ends: of the journal, at clean closes */
    bool power_too;               /* mode process, power lost all the same */
};

extern const char *const crash_table_names[CRASH_TABLES];

/* One table, 2 wide, and segments of 64 KiB, of which four are allowed; closed. seed 0: a case that nothing is drawn for. */
struct crash *crash_new(uint64_t seed);
void crash_free(struct crash *c); /* closed */
/* Of seed 0, opened, and met. */
struct crash *crash_opened(void);
uint64_t crash_draw(struct crash *c, uint64_t below);
void crash_broken(const struct crash *c, const char *what, uint64_t number);
/* Its journal will be on this one. */
void crash_take_disk(struct crash *c, struct dp_sim_disk *sim);
/* DP_OK, or the power went while it opened. */
enum dp_status crash_open(struct crash *c, bool recovers);
void crash_close(struct crash *c);
/* A new session with the shard, its tables, everything turned until they are there. False: the power went. */
bool crash_meet(struct crash *c);
/* One turn in which one allocation in so many fails. */
void crash_turn_short_of_memory(struct crash *c, uint32_t one_in);

/* Sent, not turned. */
uint64_t crash_send(struct crash *c, struct dp_request *request, struct dp_frame *frames, uint32_t count);
void crash_push(struct crash *c, uint32_t number);
void crash_create(struct crash *c, uint32_t table);

/* Pushes `from` to `last`, each turned until its rows are where they go; how many were refused (AGAIN). */
uint32_t crash_push_all(struct crash *crash, uint32_t from, uint32_t last);

#endif

/* Sync bed: members of a run that train in step on one shard with a journal on a simulated disk, and the same training as a plain
 * loop. Two tables: "a" (Adam, dim 3) and "s" (SGD, dim 2). A gradient is a function of what was pulled, the member and the step;
 * some rows come from one member, some from several, some pushes are empty, some are bf16.
 *     sync_new -> sync_train ... sync_crash -> sync_train ... -> sync_check -> sync_free
 * Each answer to a pull is compared with the plain loop's weights of that step, bit for bit.
 * Backups   With them the shard chooses whose pushes a step takes. The loop takes, when weights of the next step are seen first, those
 *           members whose sum gives them: enough of them, all whose push was answered, none whose push was dropped. From then on
 *           this is what the step was. What was seen must be durable: each crash is looked at by a shard that only reads.
 * Failure   The test fails, with the seed. */
#ifndef DP_TESTS_UNIT_SERVER_SHARD_SYNC_BED_H
#define DP_TESTS_UNIT_SERVER_SHARD_SYNC_BED_H

#include "tests/unit/server/shard/member_bed.h"

#define SYNC_KEYS    24u
#define SYNC_TABLES  2u
#define SYNC_DIM     3u /* at most */
#define SYNC_STEPS   12u
#define SYNC_MEMBERS 4u

typedef float sync_weights[SYNC_TABLES][SYNC_KEYS][SYNC_DIM];

struct sync_member {
    uint64_t step, id; /* id: of the request that is not answered; 0: none */
    uint64_t sequence;
    uint64_t open; /* backups: steps below it were closed without it: it pushes them empty */
    bool pulled, met;
    sync_weights weights; /* what it pulled for its step */
};

struct sync {
    struct bed bed;
    uint32_t members;
    uint64_t steps, until[SYNC_MEMBERS]; /* until: it takes part in the steps below */
    struct member_bed_view view;
    struct dp_table_spec spec[SYNC_TABLES];
    uint64_t mixed[SYNC_KEYS];
    sync_weights before[SYNC_STEPS + 1]; /* of the plain loop: before each step, and at the end */
    struct sync_member member[SYNC_MEMBERS];
    uint64_t sequence; /* of session 1, which is no member's */
    uint32_t crashes;
    uint32_t backups;
    uint64_t known; /* with backups: before[] stands up to this step */
    uint32_t counted[SYNC_STEPS], kept[SYNC_STEPS], dropped[SYNC_STEPS]; /* sets of members, a bit each */
    bool holds_reads; /* of the store: who only reads cannot look after a crash */
    bool wild;        /* some gradients are near the end of f32 */
    uint64_t bounded; /* by the plain loop: rows of steps, of which a value was beyond f32 */
};

/* Opened, tables made; the view is not handed over yet. cache_bytes 0: all that it wants. */
struct sync *sync_new(uint32_t members, uint64_t steps, uint64_t seed, enum dp_durability durability,
                      uint64_t cache_bytes);
/* The same; each step closes without up to so many members. */
struct sync *sync_new_with_backups(uint32_t members, uint32_t backups, uint64_t steps, uint64_t seed,
                                   enum dp_durability durability);
void sync_free(struct sync *s); /* open or closed */
/* Before training: some gradients are near the end of f32. */
void sync_go_wild(struct sync *s);
/* Each member goes on as far as it can until all have done `steps` steps, or the disk is off. */
void sync_train(struct sync *s, uint64_t steps);
/* The same of some members only (a bit each), until none of them goes on any more, or for long. */
void sync_let(struct sync *s, uint32_t members, uint64_t steps);
/* The shard dies, and the power of its disk goes, or not (PROCESS). It opens again; members do again what was not answered. with
 * workers: they too begin their step anew. */
void sync_crash(struct sync *s, enum dp_sim_survival survival, bool with_workers);
/* Drained and opened again. Returns whether the journal was kept. */
bool sync_restart(struct sync *s);
/* So many other rows in the store that an opening does not read them all. */
void sync_fill(struct sync *s);
/* All leave after their last step. */
void sync_leave(struct sync *s);
/* This one will leave after the step before: for the plain loop, from the beginning. */
void sync_will_leave(struct sync *s, uint32_t rank, uint64_t until);
/* What is pulled by nobody's order is what the plain loop has before this step. */
void sync_check(struct sync *s, uint64_t step);
/* Of all pushes that the first `steps` steps are of. */
uint64_t sync_examples(const struct sync *s, uint64_t steps);

/* All members have pulled this step, whose rows are in the store only, and all but the backups have pushed it; it is not closed: opened
 * again before that, while the store holds reads. */
struct sync *sync_gathered(uint32_t members, uint32_t backups, uint64_t step);

/* Requests of members, for tests of their own. Sent, not turned. */
uint64_t sync_pull(struct sync *s, uint32_t rank);
uint64_t sync_push(struct sync *s, uint32_t rank);
/* The push of a step with these fields instead. */
uint64_t sync_push_with(struct sync *s, uint32_t rank, uint64_t number, float rate, uint64_t step);
/* That of a step which was closed without it. */
uint64_t sync_push_empty(struct sync *s, uint32_t rank);
/* The last reply to this request but HELD; NULL: none. */
const struct bed_reply *sync_reply(const struct sync *s, uint64_t id);
void sync_view(struct sync *s);
/* The weights in an answer are the plain loop's before this step. */
void sync_same(struct sync *s, const struct bed_reply *reply, uint64_t step);

#endif

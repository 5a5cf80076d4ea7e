/* Cut bed: a shard with a small journal on a simulated disk and a fake copier; table "t" (SGD, dim 2), session 1; orders for a
 * checkpoint, and what a link of the fake store has.
 *     cut_bed_start ... -> cut_bed_stop */
#ifndef DP_TESTS_UNIT_SERVER_SHARD_CUT_BED_H
#define DP_TESTS_UNIT_SERVER_SHARD_CUT_BED_H

#include "server/ids/push_ids.h"
#include "tests/lib/fake_copier.h"
#include "tests/unit/server/shard/member_bed.h"

#define CUT_ORDER  UINT64_C(0xabcdef0123456789)
#define CUT_STREAM ((uint64_t)1 << 63 | UINT64_C(3) << 32)
#define CUT_SECOND UINT64_C(1000000000)

struct cut_bed {
    struct bed bed;
    struct dp_fake_copier *fake;
    struct dp_copier copier;
    uint64_t sequence, number; /* of the next push; from 1 */
};

/* Segments of 64 KiB, a budget of 512 KiB. */
void cut_bed_start(struct cut_bed *c);
/* Of durability none. */
void cut_bed_start_unjournaled(struct cut_bed *c);
void cut_bed_stop(struct cut_bed *c);
/* The store's and the copier's answers, too, and what follows from them. */
void cut_bed_turns(struct cut_bed *c);
/* One row, gradient 1 in both columns; applied. Returns its number. */
uint64_t cut_bed_push(struct cut_bed *c, uint64_t mixed);
/* Sent, not turned. */
uint64_t cut_bed_send_push(struct cut_bed *c, uint64_t mixed);
/* 256 rows from `mixed` on; 4 KiB in the journal. */
void cut_bed_push_many(struct cut_bed *c, uint64_t mixed);
/* Time for a write-back cycle, and its turns. */
void cut_bed_write_back(struct cut_bed *c);

/* Requests: sent and turned (cut_bed_turns); the answer must be OK. `at_once`: not turned. */
const struct dp_checkpoint_state *cut_bed_at_once(struct cut_bed *c, const struct dp_checkpoint_ask *ask);
const struct dp_checkpoint_state *cut_bed_look(struct cut_bed *c);
void cut_bed_begin(struct cut_bed *c);
/* Until it is made. */
const struct dp_checkpoint_state *cut_bed_cut(struct cut_bed *c, uint32_t number);
void cut_bed_finish(struct cut_bed *c, uint32_t number, uint64_t step, const struct dp_copy_push *missing,
                    uint32_t count);
enum dp_status cut_bed_refused(struct cut_bed *c, const struct dp_checkpoint_ask *ask);
/* The ids in the last answer of cut_bed_look or cut_bed_cut: the caller frees them. */
struct dp_push_ids *cut_bed_ids(struct cut_bed *c);
uint32_t cut_bed_steps_bytes(const struct cut_bed *c);

bool cut_bed_has_link(const struct cut_bed *c, uint32_t number);
/* Whether the journal has all records after + 1 .. until, read beside the shard as a copier does. */
bool cut_bed_journal_has(struct cut_bed *c, uint64_t after, uint64_t until);

#endif

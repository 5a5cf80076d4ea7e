/* Member bed: pulls and pushes of the members of a run, on the bed of a shard; table "t", dim 2.
 * Member r of run 3 has the incarnation 100 + r, and speaks in session 1 + r unless the test says otherwise. */
#ifndef DP_TESTS_UNIT_SERVER_SHARD_MEMBER_BED_H
#define DP_TESTS_UNIT_SERVER_SHARD_MEMBER_BED_H

#include "common/wire/view.h"
#include "tests/unit/server/shard/bed.h"

#define MEMBER_BED_MEMBERS 8u
#define MEMBER_BED_STREAM  (UINT64_C(1) << 63 | 1)

/* What is handed to the shard next. */
struct member_bed_view {
    struct dp_view view;
    struct dp_member member[MEMBER_BED_MEMBERS];
};

/* Of run 3, number 1, from step 0; nobody has left. */
struct member_bed_view member_bed_view(enum dp_consistency mode, uint32_t slack, uint32_t members);
/* Sent: answered at once. Returns the id. */
uint64_t member_bed_put_once(struct bed *bed, struct member_bed_view *view);
/* As a client does: again after a turn while it hears AGAIN. */
uint64_t member_bed_put(struct bed *bed, struct member_bed_view *view);
/* Opened as bed_start does, with a session for each member (sequences start at 1, but at 2 in session 1), and this view. */
void member_bed_start(struct bed *bed, struct member_bed_view *view);
/* Two members, ssp:0. */
void member_bed_start_two(struct bed *bed);
/* As member_bed_start, with a journal, sessions 1 and 2. */
void member_bed_start_journaled(struct bed *bed, struct member_bed_view *view);
/* Power is lost; opened again, sessions 1 and 2 known. */
void member_bed_crash(struct bed *bed);
/* What member `rank` says of itself in these. */
struct dp_membership member_bed_member(uint32_t rank, uint64_t step);
/* One row. Sent, not turned. */
uint64_t member_bed_pull(struct bed *bed, uint64_t session, uint64_t sequence,
                         const struct dp_membership *member);
uint64_t member_bed_push(struct bed *bed, uint64_t session, uint64_t sequence,
                         const struct dp_membership *member, uint64_t number);
/* Of member `rank`, as member_bed_member says, in session 1 + rank; each member has push numbers of its own, one for each step. */
uint64_t member_bed_pull_step(struct bed *bed, uint64_t sequence, uint32_t rank, uint64_t step);
uint64_t member_bed_push_step(struct bed *bed, uint64_t sequence, uint32_t rank, uint64_t step);
/* The replies with this status to request `id`, of the last BED_REPLIES; the last of them, which must be there. */
uint32_t member_bed_count(const struct bed *bed, uint64_t id, enum dp_status status);
const struct bed_reply *member_bed_last(const struct bed *bed, uint64_t id, enum dp_status status);
/* Answered OK, which is the last it heard, once; or not: the last it heard is HELD. */
bool member_bed_is_answered(const struct bed *bed, uint64_t id);

#endif

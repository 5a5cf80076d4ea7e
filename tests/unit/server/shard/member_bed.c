#include "tests/unit/server/shard/member_bed.h"

#include "common/model/mix.h"

#include <stdlib.h>
#include <string.h>

struct member_bed_view member_bed_view(enum dp_consistency mode, uint32_t slack, uint32_t members)
{
    struct member_bed_view out = {
        .view = {.run = 3, .number = 1, .mode = mode, .slack = slack, .members = members}};
    assert_true(members <= MEMBER_BED_MEMBERS);
    for (uint32_t r = 0; r < members; r++)
        out.member[r] = (struct dp_member){.incarnation = 100 + r, .until = UINT64_MAX};
    return out;
}

uint64_t member_bed_put_once(struct bed *bed, struct member_bed_view *view)
{
    struct dp_request request = {.kind = DP_REQUEST_VIEW_PUT};
    view->view.member = view->member;
    struct dp_frame frame = dp_frame_new(dp_view_bytes(&view->view));
    dp_view_pack(&view->view, frame.data);
    return bed_send(bed, &request, &frame, 1);
}

uint64_t member_bed_put(struct bed *bed, struct member_bed_view *view)
{
    uint64_t id = member_bed_put_once(bed, view);
    for (int tries = 0; tries < 9 && member_bed_count(bed, id, DP_AGAIN) > 0; tries++) {
        bed_turn(bed);
        id = member_bed_put_once(bed, view);
    }
    return id;
}

void member_bed_start(struct bed *bed, struct member_bed_view *view)
{
    bed_start(bed);
    bed->timeout_ms = 60000;
    for (uint64_t session = 3; session <= view->view.members; session++)
        bed_meet(bed, session);
    assert_int_equal(bed_expect(bed, member_bed_put(bed, view), DP_OK)->reply.version, view->view.number);
}

void member_bed_start_two(struct bed *bed)
{
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start(bed, &view);
}

void member_bed_start_journaled(struct bed *bed, struct member_bed_view *view)
{
    struct dp_table_spec spec = bed_sgd("t", 2);
    bed_init(bed, 16);
    bed_journal(bed, 1);
    bed_open_shard(bed);
    bed->timeout_ms = 60000;
    bed_meet(bed, 1);
    bed_meet(bed, 2);
    bed_make_table(bed, 1, 1, &spec);
    bed_expect(bed, member_bed_put(bed, view), DP_OK);
    bed_turn(bed);
}

void member_bed_crash(struct bed *bed)
{
    shard_bed_cut(&bed->host);
    shard_bed_close(&bed->host);
    dp_sim_disk_restart(bed->host.sim, DP_SIM_NOTHING);
    dp_sim_disk_cut_at(bed->host.sim, 0);
    bed->host.options.recovers = true;
    bed_open_shard(bed);
    bed_meet(bed, 1);
    bed_meet(bed, 2);
}

struct dp_membership member_bed_member(uint32_t rank, uint64_t step)
{
    return (struct dp_membership){
        .given = true, .run = 3, .rank = rank, .view = 1, .incarnation = 100 + rank, .step = step};
}

static const uint64_t *key(void)
{
    static uint64_t mixed;
    mixed = dp_mix(7);
    return &mixed;
}

uint64_t member_bed_pull(struct bed *bed, uint64_t session, uint64_t sequence,
                         const struct dp_membership *member)
{
    struct dp_request request = {.kind = DP_REQUEST_PULL,
                                 .session = session,
                                 .sequence = sequence,
                                 .member = *member,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id("t"), .rows = 1}}};
    struct dp_frame frame = dp_frame_copy(key(), sizeof *key());
    return bed_send(bed, &request, &frame, 1);
}

uint64_t member_bed_push(struct bed *bed, uint64_t session, uint64_t sequence,
                         const struct dp_membership *member, uint64_t number)
{
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = session,
                                 .sequence = sequence,
                                 .member = *member,
                                 .stream = MEMBER_BED_STREAM,
                                 .number = number,
                                 .rate = 1,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id("t"), .rows = 1}}};
    const float gradient[2] = {1, 1};
    struct dp_frame frames[2] = {dp_frame_copy(key(), sizeof *key()),
                                 dp_frame_copy(gradient, sizeof gradient)};
    return bed_send(bed, &request, frames, 2);
}

uint64_t member_bed_pull_step(struct bed *bed, uint64_t sequence, uint32_t rank, uint64_t step)
{
    struct dp_membership member = member_bed_member(rank, step);
    return member_bed_pull(bed, 1 + rank, sequence, &member);
}

uint64_t member_bed_push_step(struct bed *bed, uint64_t sequence, uint32_t rank, uint64_t step)
{
    struct dp_membership member = member_bed_member(rank, step);
    return member_bed_push(bed, 1 + rank, sequence, &member, rank * 1000 + step);
}

static const struct bed_reply *find(const struct bed *bed, uint64_t id, enum dp_status status,
                                    uint32_t *count)
{
    const struct bed_reply *last = NULL;
    *count = 0;
    for (uint32_t i = bed->replies > BED_REPLIES ? bed->replies - BED_REPLIES : 0; i < bed->replies; i++) {
        const struct bed_reply *reply = &bed->reply[i % BED_REPLIES];
        if (reply->reply.id != id || reply->reply.status != status)
            continue;
        last = reply;
        ++*count;
    }
    return last;
}

uint32_t member_bed_count(const struct bed *bed, uint64_t id, enum dp_status status)
{
    uint32_t count;
    (void)find(bed, id, status, &count);
    return count;
}

const struct bed_reply *member_bed_last(const struct bed *bed, uint64_t id, enum dp_status status)
{
    uint32_t count;
    const struct bed_reply *last = find(bed, id, status, &count);
    if (!last)
        fail_msg("request %u never heard %s", (unsigned)id, dp_status_name((int)status));
    return last;
}

bool member_bed_is_answered(const struct bed *bed, uint64_t id)
{
    uint32_t answers = member_bed_count(bed, id, DP_OK);
    assert_true(answers <= 1);
    if (answers == 0)
        (void)member_bed_last(bed, id, DP_HELD);
    return answers == 1;
}

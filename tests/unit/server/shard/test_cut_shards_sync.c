/* Goal    A checkpoint of a synchronous run has on each shard all steps below t*, and no push of a later one.
 * Method  Two shards, two members that push each step to both, in turns of their own: a shard may be steps ahead of the other. Each is cut
 *         at a random time; t* is the greatest open step. What a restore would make of each part (the link's rows, closes redone by lsn,
 *         each with its kept pushes before it) is compared with t*: a step changes each row by 1, whoever's pushes it takes. With a backup
 *         member a shard may close a step without a push that the other one takes. */
#include "tests/unit/server/shard/cut_bed.h"

#include "common/model/row.h"
#include "server/ids/push_ids_union.h"
#include "server/journal/record.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS  2u
#define MEMBERS 3u
#define STEPS   30u

struct part {
    struct cut_bed c;
    uint64_t key, id[MEMBERS], step[MEMBERS]; /* id: of the push that is not answered; 0: none */
    uint64_t sequence[MEMBERS];
    struct dp_checkpoint_state cut;
    struct dp_push_ids *ids;
    const struct dp_copy_job *job;
    uint64_t lsn;
    float weight;
    uint32_t kept[STEPS + 1],
        least; /* found by a restore, a bit for each member; least: so many in each step */
};

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % below;
}

static void start(struct part *p, uint32_t index, uint32_t backups)
{
    struct member_bed_view view = member_bed_view(DP_SYNC, backups, MEMBERS);
    *p = (struct part){.sequence = {2, 1, 1}, .least = MEMBERS - backups};
    cut_bed_start_as(&p->c, index, SHARDS);
    bed_keys(&p->c.bed, 100, 1, &p->key);
    bed_meet(&p->c.bed, 3);
    bed_expect(&p->c.bed, member_bed_put(&p->c.bed, &view), DP_OK);
    cut_bed_turns(&p->c);
    cut_bed_begin(&p->c);
}

static uint64_t number_of(uint32_t rank, uint64_t step)
{
    return step * MEMBERS + rank;
}

/* The member's next push; again while it hears AGAIN, as its step is not open yet. */
static void push(struct part *p, uint32_t rank)
{
    const float gradient[2] = {1, 1};
    const struct bed_reply *reply = p->id[rank] ? bed_reply_to(&p->c.bed, p->id[rank]) : NULL;
    if (reply && reply->reply.status == DP_OK) {
        p->step[rank]++;
        p->sequence[rank]++;
    }
    if ((p->id[rank] && !reply) || p->step[rank] >= STEPS)
        return;
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 1 + rank,
                                 .sequence = p->sequence[rank],
                                 .member = member_bed_member(rank, p->step[rank]),
                                 .stream = MEMBER_BED_STREAM,
                                 .number = number_of(rank, p->step[rank]),
                                 .rate = 1,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id("t"), .rows = 1}}};
    struct dp_frame frames[2] = {dp_frame_copy(&p->key, sizeof p->key),
                                 dp_frame_copy(gradient, sizeof gradient)};
    request.member.examples = 1;
    p->id[rank] = bed_send(&p->c.bed, &request, frames, 2);
}

static void goes_on(struct part *p, uint64_t *random)
{
    const struct dp_checkpoint_ask look = {.action = DP_CHECKPOINT_LOOK, .order = CUT_ORDER};
    uint64_t what = draw(random, 8);
    if (what < 5)
        push(p, (uint32_t)draw(random, MEMBERS));
    else if (what == 5)
        p->c.bed.now_ns += 11 * CUT_SECOND;
    else if (dp_fake_store_held(p->c.bed.fake) > 0)
        dp_fake_store_release(p->c.bed.fake, 0);
    (void)bed_one_turn(&p->c.bed);
    (void)cut_bed_at_once(&p->c, &look);
}

static bool ask_push(void *context, uint64_t stream, uint64_t number)
{
    struct dp_copy_push **at = context;
    *(*at)++ = (struct dp_copy_push){stream, number};
    return true;
}

static enum dp_status redo(void *context, uint64_t lsn, const void *bytes, size_t size, struct dp_error *err)
{
    struct part *p = context;
    struct dp_record record;
    static struct dp_request push;
    assert_int_equal(dp_record_decode(bytes, size, &record, &push, err), DP_OK);
    if (record.kind == DP_RECORD_VIEW || record.kind == DP_RECORD_PUSH || record.step >= p->job->step)
        return DP_OK;
    assert_true(record.kind == DP_RECORD_KEPT_PUSH || record.kind == DP_RECORD_CLOSE);
    if (record.kind == DP_RECORD_KEPT_PUSH) {
        p->kept[record.step] |= 1u << record.rank;
    } else {
        assert_true((uint32_t)__builtin_popcount(p->kept[record.step]) >= p->least);
        p->weight -= p->lsn < lsn;
        p->lsn = p->lsn < lsn ? lsn : p->lsn;
    }
    return DP_OK;
}

static void restore(struct part *p)
{
    struct dp_journal_options options = p->c.bed.host.options.journal;
    struct dp_journal_figures figures;
    struct dp_error err = {0};
    p->lsn = cut_bed_link_lsn(&p->c, 1, p->key, &p->weight);
    assert_true(p->lsn <= p->cut.lsn);
    options.replay_after = p->job->after;
    options.read_until = p->job->until;
    options.beside_writer = true;
    options.replay = redo;
    options.replay_context = p;
    if (dp_journal_read(&options, &figures, &err) != DP_OK)
        fail_msg("%s", err.text);
}

/* Returns how many steps it was behind. */
static uint64_t finish(struct part *p, const struct dp_push_ids *all, uint64_t step)
{
    struct dp_copy_push missing[MEMBERS * STEPS], *at = missing;
    dp_push_ids_lacking(p->ids, all, ask_push, &at);
    cut_bed_finish(&p->c, 1, step, missing, (uint32_t)(at - missing));
    for (uint32_t turns = 0; cut_bed_look(&p->c)->stage == DP_CHECKPOINT_WAITING; turns++) {
        assert_true(turns < 10 * STEPS);
        push(p, turns % MEMBERS);
        (void)bed_one_turn(&p->c.bed);
    }
    p->job = dp_fake_copier_job(p->c.fake, 0);
    assert_true(p->job->has_sync && p->job->run == 3 && p->job->step == step);
    return step - p->cut.open;
}

static void cuts(uint32_t backups)
{
    uint64_t behind = 0, written = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        static struct part part[SHARDS];
        uint64_t random = seed * 0x9e3779b97f4a7c15u, open = 0;
        const struct dp_checkpoint_ask cut = {.action = DP_CHECKPOINT_CUT, .order = CUT_ORDER, .cut = 1};
        struct dp_push_ids *all = NULL;
        enum dp_status status;
        assert_int_equal(dp_push_ids_new(&all), DP_OK);
        for (uint32_t i = 0; i < SHARDS; i++) {
            struct part *p = &part[i];
            start(p, i, backups);
            dp_fake_store_hold(p->c.bed.fake, true);
            for (uint64_t ops = 30 + draw(&random, 60); ops > 0; ops--)
                goes_on(p, &random);
            (void)cut_bed_at_once(&p->c, &cut);
            for (uint64_t ops = draw(&random, 40); ops > 0; ops--)
                goes_on(p, &random);
            dp_fake_store_hold(p->c.bed.fake, false);
            p->cut = *cut_bed_look(&p->c);
            assert_int_equal(p->cut.stage, DP_CHECKPOINT_IS_CUT);
            p->ids = cut_bed_ids(&p->c);
            assert_int_equal(dp_push_ids_merge(all, p->ids), DP_OK);
            open = p->cut.open > open ? p->cut.open : open;
        }
        for (uint64_t n = 0; n < number_of(0, STEPS); n++) {
            bool there = dp_push_ids_look(all, MEMBER_BED_STREAM, n, &status) == DP_PUSH_REPEATED;
            assert_true(there == (n < number_of(0, open)) || (!there && backups > 0));
        }
        for (uint32_t i = 0; i < SHARDS; i++) {
            behind += finish(&part[i], all, open);
            restore(&part[i]);
            written += part[i].lsn > 0 && part[i].job->after > 1;
            if (!(part[i].weight >= -(float)open && part[i].weight <= -(float)open))
                fail_msg("seed %d, shard %d: %g, expected %d", (int)seed, (int)i, (double)part[i].weight,
                         -(int)open);
            dp_fake_copier_end(part[i].c.fake, 0, DP_OK);
            dp_push_ids_free(&part[i].ids);
            cut_bed_stop(&part[i].c);
        }
        dp_push_ids_free(&all);
    }
    assert_true(behind > 50 && written > 50);
}

static void a_step_is_on_all_shards_or_on_none(void **state)
{
    (void)state;
    cuts(0);
}

static void so_it_is_with_backup_members(void **state)
{
    (void)state;
    cuts(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_on_all_shards_or_on_none),
        cmocka_unit_test(so_it_is_with_backup_members),
    };
    return cmocka_run_group_tests_name("cuts of several shards in step", tests, NULL, NULL);
}

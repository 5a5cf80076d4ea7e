/* Goal    A push is in the checkpoint of all shards or of none, once, whenever each shard is cut and whatever it writes back.
 * Method  Two shards; each push has one row on either and comes to the two in different turns, in an order of their own. Each is
 *         cut at a random time, some twice. Their ids are united, what one lacks is asked of it, and what a restore would make of its
 *         part (its link's rows, the journal's records behind them, redone by lsn) is compared with the union: a row's weight tells
 *         how many pushes it has. */
#include "tests/unit/server/shard/cut_bed.h"

#include "common/model/row.h"
#include "server/ids/push_ids_union.h"
#include "server/journal/record.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS 2u
#define KEYS   6u
#define PUSHES 60u /* numbers 1 .. PUSHES */

struct part {
    struct cut_bed c;
    uint64_t key[KEYS];
    uint32_t sent[PUSHES + 1]; /* numbers in the order in which they come to this shard */
    uint32_t next;
    struct dp_checkpoint_state cut;
    struct dp_push_ids *ids;
    /* What a restore makes of it. */
    uint64_t lsn[KEYS];
    float weight[KEYS];
    const struct dp_copy_job *job;
};

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % below;
}

/* Key of push n on this shard. */
static uint32_t key_of(uint32_t number)
{
    return number * 7 % KEYS;
}

static void start(struct part *p, uint32_t index, uint64_t *random)
{
    cut_bed_start_as(&p->c, index, SHARDS);
    bed_keys(&p->c.bed, 100, KEYS, p->key);
    for (uint32_t i = 1; i <= PUSHES; i++)
        p->sent[i] = i;
    for (uint32_t i = 1; i + 4 <= PUSHES; i++) { /* up to four places early or late */
        uint32_t j = i + (uint32_t)draw(random, 4), number = p->sent[i];
        p->sent[i] = p->sent[j];
        p->sent[j] = number;
    }
    p->next = 1;
    cut_bed_begin(&p->c);
}

static void push_next(struct part *p)
{
    if (p->next > PUSHES)
        return;
    uint32_t number = p->sent[p->next++];
    (void)bed_push(&p->c.bed, 1, p->c.sequence++, "t", &p->key[key_of(number)], 1, 2, 1, CUT_STREAM, number);
}

static void goes_on(struct part *p, uint64_t *random)
{
    uint64_t what = draw(random, 8);
    if (what < 4)
        push_next(p);
    else if (what == 4) /* time for a write-back cycle */
        p->c.bed.now_ns += 11 * CUT_SECOND;
    else if (what < 7 && dp_fake_store_held(p->c.bed.fake) > 0)
        dp_fake_store_release(p->c.bed.fake, 0);
    (void)bed_one_turn(&p->c.bed);
    const struct dp_checkpoint_ask look = {.action = DP_CHECKPOINT_LOOK, .order = CUT_ORDER};
    (void)cut_bed_at_once(&p->c, &look);
}

/* Taken in a turn of its own; made when the store has got so far. */
static void order_cut(struct part *p, uint32_t number)
{
    const struct dp_checkpoint_ask cut = {.action = DP_CHECKPOINT_CUT, .order = CUT_ORDER, .cut = number};
    (void)cut_bed_at_once(&p->c, &cut);
    (void)bed_one_turn(&p->c.bed);
}

static bool ask_push(void *context, uint64_t stream, uint64_t number)
{
    struct dp_copy_push **at = context;
    *(*at)++ = (struct dp_copy_push){stream, number};
    return true;
}

static bool is_missing(const struct dp_copy_job *job, uint64_t number)
{
    for (uint32_t i = 0; i < job->missing_count; i++)
        if (job->missing[i].number == number)
            return true;
    return false;
}

static enum dp_status redo(void *context, uint64_t lsn, const void *bytes, size_t size, struct dp_error *err)
{
    struct part *p = context;
    struct dp_record record;
    static struct dp_request push;
    assert_int_equal(dp_record_decode(bytes, size, &record, &push, err), DP_OK);
    assert_int_equal(record.kind, DP_RECORD_PUSH);
    if (lsn > p->job->lsn && !is_missing(p->job, push.number))
        return DP_OK;
    uint32_t key = key_of((uint32_t)push.number);
    if (p->lsn[key] < lsn) {
        p->lsn[key] = lsn;
        p->weight[key] -= 1;
    }
    return DP_OK;
}

static void restore(struct part *p)
{
    struct dp_journal_options options = p->c.bed.host.options.journal;
    struct dp_journal_figures figures;
    struct dp_error err = {0};
    for (uint32_t k = 0; k < KEYS; k++)
        p->lsn[k] = cut_bed_link_lsn(&p->c, p->cut.cut, p->key[k], &p->weight[k]);
    options.replay_after = p->job->after;
    options.read_until = p->job->until;
    options.beside_writer = true;
    options.replay = redo;
    options.replay_context = p;
    if (dp_journal_read(&options, &figures, &err) != DP_OK)
        fail_msg("%s", err.text);
}

static void check(struct part *p, const struct dp_push_ids *all, uint64_t seed)
{
    float expected[KEYS] = {0};
    enum dp_status status;
    for (uint32_t n = 1; n <= PUSHES; n++)
        expected[key_of(n)] -= dp_push_ids_look(all, CUT_STREAM, n, &status) == DP_PUSH_REPEATED;
    for (uint32_t k = 0; k < KEYS; k++)
        if (!(p->weight[k] >= expected[k] && p->weight[k] <= expected[k]))
            fail_msg("seed %d, shard %d, key %d: %g, expected %g", (int)seed, (int)p->job->shard, (int)k,
                     (double)p->weight[k], (double)expected[k]);
}

/* Returns how many pushes one shard lacked. */
static uint32_t finish(struct part *p, const struct dp_push_ids *all)
{
    struct dp_copy_push missing[PUSHES], *at = missing;
    dp_push_ids_lacking(p->ids, all, ask_push, &at);
    uint32_t count = (uint32_t)(at - missing);
    cut_bed_finish(&p->c, p->cut.cut, 0, missing, count);
    while (cut_bed_look(&p->c)->stage == DP_CHECKPOINT_WAITING) {
        assert_true(p->next <= PUSHES);
        push_next(p);
        (void)bed_one_turn(&p->c.bed);
    }
    p->job = dp_fake_copier_job(p->c.fake, 0);
    return count;
}

static void a_push_is_on_all_shards_or_on_none(void **state)
{
    (void)state;
    uint32_t lacked = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        static struct part part[SHARDS];
        uint64_t random = seed * 0x9e3779b97f4a7c15u;
        struct dp_push_ids *all = NULL;
        assert_int_equal(dp_push_ids_new(&all), DP_OK);
        for (uint32_t i = 0; i < SHARDS; i++) {
            struct part *p = &part[i];
            *p = (struct part){.next = 1};
            start(p, i, &random);
            dp_fake_store_hold(p->c.bed.fake, true);
            for (uint64_t ops = 40 + draw(&random, 40); ops > 0; ops--)
                goes_on(p, &random);
            bool twice = draw(&random, 3) == 0;
            order_cut(p, 1);
            for (uint64_t ops = draw(&random, 10); twice && ops > 0; ops--)
                goes_on(p, &random);
            if (twice)
                order_cut(p, 2);
            for (uint64_t ops = draw(&random, 30); ops > 0; ops--)
                goes_on(p, &random);
            dp_fake_store_hold(p->c.bed.fake, false);
            p->cut = *cut_bed_look(&p->c);
            assert_int_equal(p->cut.stage, DP_CHECKPOINT_IS_CUT);
            p->ids = cut_bed_ids(&p->c);
            assert_int_equal(dp_push_ids_merge(all, p->ids), DP_OK);
        }
        for (uint32_t i = 0; i < SHARDS; i++) {
            lacked += finish(&part[i], all);
            restore(&part[i]);
            check(&part[i], all, seed);
            dp_fake_copier_end(part[i].c.fake, 0, DP_OK);
            dp_push_ids_free(&part[i].ids);
            cut_bed_stop(&part[i].c);
        }
        dp_push_ids_free(&all);
    }
    assert_true(lacked > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_on_all_shards_or_on_none),
    };
    return cmocka_run_group_tests_name("cuts of several shards", tests, NULL, NULL);
}

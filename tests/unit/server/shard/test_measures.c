/* Goal    What an answer and a status report say of a push is what it was: how stale, how many of its rows had changed, at which rate
 *         it was applied; a rate that was divided is in the journal, so that a replay gives the same bits.
 * Method  Pushes of a known order over shared and own rows; power is lost behind them. */
#include "tests/unit/server/shard/member_bed.h"

#include <float.h>
#include <string.h>

#define STREAM MEMBER_BED_STREAM

/* A measured push of the first n keys, gradient 1, rate 1. */
struct measured {
    uint64_t sequence, number, pulled_at, pulled_lsn;
    bool by_staleness;
    float rate;
    struct dp_membership member;
};

static uint64_t push(struct bed *bed, const struct measured *m, const uint64_t *keys, uint32_t n)
{
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 1,
                                 .sequence = m->sequence,
                                 .stream = STREAM,
                                 .number = m->number,
                                 .rate = m->rate > 0 ? m->rate : 1,
                                 .measured = true,
                                 .pulled_at = m->pulled_at,
                                 .pulled_lsn = m->pulled_lsn,
                                 .by_staleness = m->by_staleness,
                                 .examples = 3,
                                 .member = m->member,
                                 .sections = n > 0,
                                 .section = {{.table = dp_table_id("t"), .rows = n}}};
    const float gradient = 1;
    struct dp_frame frames[2] = {dp_frame_copy(keys, n * sizeof *keys), dp_frame_new((size_t)n * 8)};
    for (size_t i = 0; i < (size_t)n * 2; i++)
        memcpy((char *)frames[1].data + i * 4, &gradient, 4);
    if (n == 0) {
        dp_frame_release(&frames[0]);
        dp_frame_release(&frames[1]);
    }
    return bed_send(bed, &request, frames, n > 0 ? 2 : 0);
}

static void rows_that_changed_since_the_pull_are_counted(void **state)
{
    struct bed bed;
    uint64_t keys[8];
    bed_start(&bed);
    bed_keys(&bed, 10, 8, keys);
    uint64_t id = bed_push(&bed, 1, 2, "t", keys, 4, 2, 1, STREAM, 0);
    bed_turn(&bed);
    const struct dp_reply *reply = &bed_expect(&bed, id, DP_OK)->reply;
    assert_true(reply->rows == 0 && reply->rate == 1); /* it was not measured */
    id = bed_pull(&bed, 1, 3, "t", keys, 8);
    bed_turn(&bed);
    reply = &bed_expect(&bed, id, DP_OK)->reply;
    struct measured m = {.sequence = 5, .number = 2, .pulled_at = reply->applied, .pulled_lsn = reply->lsn};
    (void)bed_push(&bed, 1, 4, "t", keys + 3, 2, 2, 1, STREAM, 1);
    id = push(&bed, &m, keys, 8);
    bed_turn(&bed);
    reply = &bed_expect(&bed, id, DP_OK)->reply;
    assert_true(reply->staleness == 1 && reply->rows == 8 && reply->changed_rows == 2 && reply->rate == 1);
    m.sequence = 6;
    m.number = 3; /* all were changed by now, by this client itself */
    id = push(&bed, &m, keys, 8);
    bed_turn(&bed);
    reply = &bed_expect(&bed, id, DP_OK)->reply;
    assert_true(reply->staleness == 2 && reply->rows == 8 && reply->changed_rows == 8);
    m.sequence = 7; /* the same again, then one without rows */
    id = push(&bed, &m, keys, 8);
    bed_turn(&bed);
    reply = &bed_expect(&bed, id, DP_OK)->reply;
    assert_true(reply->repeated && reply->rows == 0 && reply->rate == 0);
    m.sequence = 8;
    m.number = 4;
    id = push(&bed, &m, keys, 0);
    bed_turn(&bed);
    assert_true(bed_expect(&bed, id, DP_OK)->reply.rows == 0);
    assert_int_equal(bed_counter(&bed, "measured_rows"), 16);
    assert_int_equal(bed_counter(&bed, "changed_rows"), 10);
    assert_int_equal(bed_counter(&bed, "examples"), 3 * 3); /* the repeated push added none */
    struct dp_request status = {.kind = DP_REQUEST_STATUS, .session = 1};
    const struct bed_reply *told = bed_expect(&bed, bed_send(&bed, &status, NULL, 0), DP_OK);
    assert_int_equal(told->histograms, 3);
    assert_string_equal(told->histogram[0].name, "staleness");
    assert_true(told->histogram[0].count[1] == 1 && told->histogram[0].count[2] == 2);
    assert_true(told->histogram[1].buckets == 17 && dp_histogram_total(&told->histogram[1]) == 0);
    assert_string_equal(told->histogram[2].name, "changed");
    assert_true(told->histogram[2].count[5] == 1 && told->histogram[2].upper[5] == 0.3);
    assert_true(told->histogram[2].count[12] == 1 && dp_histogram_total(&told->histogram[2]) == 2);
    bed_close(&bed);
}

static void clock_gaps_of(enum dp_consistency mode, uint32_t slack)
{
    struct bed bed;
    struct member_bed_view view = member_bed_view(mode, slack, 2);
    member_bed_start(&bed, &view);
    for (uint64_t step = 0; step < 3; step++)
        (void)member_bed_push_step(&bed, 2 + step, 0, step);
    bed_turn(&bed);
    (void)member_bed_push_step(&bed, 1, 1, 0);
    bed_turn(&bed);
    struct dp_request status = {.kind = DP_REQUEST_STATUS, .session = 1};
    const struct bed_reply *told = bed_expect(&bed, bed_send(&bed, &status, NULL, 0), DP_OK);
    const uint64_t want[4] = {2, 1, 1, 0}; /* 0, 1 and 2 steps ahead of member 1, the slowest */
    assert_memory_equal(told->histogram[1].count, want, sizeof want);
    bed_close(&bed);
}

static void the_clock_gap_has_a_histogram(void **state)
{
    clock_gaps_of(DP_SSP, 3);
    clock_gaps_of(DP_ASYNC, 0);
}

static float value(struct bed *bed, uint64_t sequence, uint64_t key)
{
    return bed_value(bed, 1, sequence, key);
}

/* 4 pushes came in between: a quarter of the rate, in the row and in the record; the least rate stays one. */
static void the_rate_is_divided_by_the_staleness(void **state)
{
    struct bed bed;
    uint64_t key;
    struct member_bed_view none = member_bed_view(DP_SSP, UINT32_C(1) << 20, 2);
    member_bed_start_journaled(&bed, &none);
    bed_keys(&bed, 10, 1, &key);
    struct measured m = {.by_staleness = true, .pulled_at = 1}; /* behind the view */
    uint64_t id = 0, sequence = 2;
    for (uint64_t i = 0; i < 6; i++) {
        m.sequence = sequence++;
        m.number = i;
        id = push(&bed, &m, &key, 1);
        bed_turn(&bed);
        const struct dp_reply *reply = &bed_expect(&bed, id, DP_OK)->reply;
        assert_true(reply->staleness == i && reply->rate == (i > 1 ? 1.0f / (float)i : 1));
    }
    float all = -1 - 1 - 0.5f - 1.0f / 3 - 0.25f - 0.2f, got = value(&bed, sequence++, key);
    assert_true(got > all - 1e-6f && got < all + 1e-6f);
    m = (struct measured){.sequence = sequence, .number = 6, .rate = FLT_MIN, .by_staleness = true};
    id = push(&bed, &m, &key, 1);
    bed_turn(&bed);
    assert_true(bed_expect(&bed, id, DP_OK)->reply.rate == FLT_MIN);
    member_bed_crash(&bed);
    assert_true(value(&bed, 1, key) == got);
    bed_close(&bed);
}

/* What was pulled before power was lost is as stale as if it had not been. */
static void a_restart_is_no_staleness(void **state)
{
    struct bed bed;
    uint64_t key;
    struct member_bed_view none = member_bed_view(DP_SSP, UINT32_C(1) << 20, 2);
    member_bed_start_journaled(&bed, &none);
    bed_keys(&bed, 10, 1, &key);
    uint64_t sequence = 2;
    for (uint64_t i = 0; i < 3; i++)
        (void)bed_push(&bed, 1, sequence++, "t", &key, 1, 2, 1, STREAM, i);
    bed_turn(&bed);
    uint64_t id = bed_pull(&bed, 1, sequence, "t", &key, 1);
    bed_turn(&bed);
    const struct dp_reply *pulled = &bed_expect(&bed, id, DP_OK)->reply;
    struct measured m = {.number = 3, .pulled_at = pulled->applied, .pulled_lsn = pulled->lsn};
    member_bed_crash(&bed);
    for (m.sequence = 1; m.sequence < 4; m.sequence++, m.number++) {
        id = push(&bed, &m, &key, 1);
        bed_turn(&bed);
        const struct dp_reply *reply = &bed_expect(&bed, id, DP_OK)->reply;
        assert_true(reply->staleness == m.sequence - 1 && reply->changed_rows == (m.sequence > 1));
    }
    bed_close(&bed);
}

/* One rate applies a synchronous step. */
static void a_synchronous_push_has_no_rate_of_its_own(void **state)
{
    struct bed bed;
    uint64_t key;
    struct member_bed_view view = member_bed_view(DP_SYNC, 0, 2);
    member_bed_start_journaled(&bed, &view);
    bed_keys(&bed, 10, 1, &key);
    struct measured m = {.sequence = 2, .by_staleness = true, .member = member_bed_member(0, 0)};
    uint64_t id = push(&bed, &m, &key, 1);
    bed_turn(&bed);
    assert_non_null(strstr(bed_expect(&bed, id, DP_INVALID)->reply.reason, "divided by its staleness"));
    m.sequence++;
    m.by_staleness = false; /* its number is free */
    id = push(&bed, &m, &key, 1);
    bed_turn(&bed);
    const struct dp_reply *reply = &bed_expect(&bed, id, DP_OK)->reply;
    assert_true(!reply->repeated && reply->rate == 0 && reply->rows == 0 && reply->staleness == 0);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_changed_since_the_pull_are_counted),
        cmocka_unit_test(the_clock_gap_has_a_histogram),
        cmocka_unit_test(the_rate_is_divided_by_the_staleness),
        cmocka_unit_test(a_restart_is_no_staleness),
        cmocka_unit_test(a_synchronous_push_has_no_rate_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal    Wherever a training ends, one epoch's weights are kept on all shards: those of the earlier best epoch until every shard has the
 *         new ones. What a second process does then ends as if none had ended.
 * Method  worker/coordinate/keep.c over shards that are sets of epochs: each shard's part of each order is the last one in turn, and the
 *         orders reach the shards from each of them on. */
#include "tests/lib/test.h"

#include "common/env/clock.h"
#include "worker/coordinate/keep.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS 3u
#define RUN    4u
#define ALL    UINT32_MAX

static struct fake_shard {
    uint32_t held; /* bits, by epoch */
    uint32_t run, reverted;
} shards[SHARDS];
static uint32_t first, parts, ends_at; /* the part of an order at which the process ends; ALL: none */

static uint32_t bit(uint32_t epoch)
{
    return epoch ? 1u << epoch : 0;
}

static enum dp_status take_part(struct fake_shard *shard, const struct dp_snapshot_order *order,
                                struct dp_snapshot_state *state, struct dp_error *err)
{
    bool is_reverted = shard->run == order->run && shard->reverted == order->epoch;
    if (order->action == DP_SNAPSHOT_DROP)
        shard->held = 0;
    if (order->action == DP_SNAPSHOT_TAKE) {
        shard->held |= bit(order->epoch);
        shard->held &= bit(order->epoch) | bit(order->keeps);
    }
    if (order->action == DP_SNAPSHOT_REVERT && !is_reverted) {
        if (!(shard->held & bit(order->epoch)))
            return dp_fail(err, DP_NOT_FOUND, "no snapshot of epoch %u", order->epoch);
        *shard = (struct fake_shard){0, order->run, order->epoch};
    }
    *state = (struct dp_snapshot_state){
        .held = (shard->held & bit(order->epoch)) != 0, .run = shard->run, .epoch = shard->reverted};
    return DP_OK;
}

enum dp_status __wrap_dp_client_snapshot(struct dp_client *client, const struct dp_snapshot_order *order,
                                         struct dp_snapshot_state *states, uint32_t timeout_ms,
                                         struct dp_error *err);
enum dp_status __wrap_dp_client_snapshot(struct dp_client *client, const struct dp_snapshot_order *order,
                                         struct dp_snapshot_state *states, uint32_t timeout_ms,
                                         struct dp_error *err)
{
    (void)client, (void)timeout_ms;
    assert_true(order->action == DP_SNAPSHOT_DROP || order->run == RUN);
    for (uint32_t n = 0; n < SHARDS; n++) {
        uint32_t i = (first + n) % SHARDS;
        if (order->spares && order->spares[i])
            continue;
        if (parts++ >= ends_at)
            return dp_fail(err, DP_STOPPING, "this process has ended");
        enum dp_status st = take_part(&shards[i], order, &states[i], err);
        if (st != DP_OK)
            return st;
    }
    return DP_OK;
}

/* ---- */

static struct dp_cluster cluster;
static atomic_int never;

static struct dp_job job_of(void)
{
    cluster.training.run = RUN;
    cluster.training.timeout_ms = 60000;
    return (struct dp_job){.cluster = &cluster, .stop = &never, .clock = dp_clock_real(), .shards = SHARDS};
}

static void begin(uint32_t held, uint32_t from, uint32_t at)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        shards[i] = (struct fake_shard){.held = held};
    first = from;
    parts = 0;
    ends_at = at;
}

static uint32_t held_by_all(void)
{
    uint32_t held = ALL;
    for (uint32_t i = 0; i < SHARDS; i++)
        held &= shards[i].held;
    return held;
}

static void expect_held(uint32_t epochs)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_int_equal(shards[i].held, epochs);
}

/* False: no process ended; it had carried out all. */
static bool take_ends_at(uint32_t epoch, uint32_t kept, uint32_t from, uint32_t at)
{
    struct dp_job job = job_of();
    struct dp_error err = {0};
    begin(bit(kept), from, at);
    enum dp_status st = dp_keep_take(&job, epoch, kept, &err);
    bool ended = parts > at;
    /* That of which the register says that it is kept: the new one only after DP_OK. */
    if (!(held_by_all() & bit(st == DP_OK ? epoch : kept)) && (st == DP_OK || kept))
        fail_msg("epoch %u after %u, shard %u first: ended at part %u, no epoch is on all shards", epoch,
                 kept, from, at);
    assert_true(st == DP_OK || ended);
    ends_at = ALL;
    if (st != DP_OK)
        assert_int_equal(dp_keep_take(&job, epoch, kept, &err), DP_OK);
    if (st != DP_OK || !ended)
        expect_held(bit(epoch));
    else /* what could not be removed goes with the next */
        assert_int_equal(dp_keep_take(&job, epoch + 1, epoch, &err), DP_OK);
    if (st == DP_OK && ended)
        expect_held(bit(epoch + 1));
    return ended;
}

static void one_epoch_is_on_all_shards_wherever_it_ends(void **state)
{
    uint32_t ends = 0;
    (void)state;
    for (uint32_t from = 0; from < SHARDS; from++)
        for (uint32_t kept = 0; kept <= 2; kept++) {
            uint32_t at = 0;
            while (take_ends_at(3, kept, from, at))
                at++;
            assert_int_equal(at, kept ? 2 * SHARDS : SHARDS);
            ends += at;
        }
    assert_true(ends > 0);
}

/* A decision that is repeated, after all shards had it, or with the same epoch. */
static void what_is_kept_already_stays(void **state)
{
    struct dp_job job = job_of();
    struct dp_error err = {0};
    (void)state;
    begin(bit(2), 0, ALL);
    assert_int_equal(dp_keep_take(&job, 2, 2, &err), DP_OK);
    expect_held(bit(2));
    assert_int_equal(dp_keep_take(&job, 2, 0, &err), DP_OK);
    expect_held(bit(2));
}

static void expect_reverted(uint32_t epoch)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_int_equal(shards[i].reverted, epoch);
}

static bool end_ends_at(uint32_t from, uint32_t at)
{
    struct dp_job job = job_of();
    struct dp_error err = {0};
    uint32_t left = 0;
    begin(bit(2), from, at);
    enum dp_status st = dp_keep_end(&job, 2, 5, &left, &err);
    bool ended = parts > at;
    for (uint32_t i = 0; i < SHARDS; i++) /* a shard has gone back, or still can */
        assert_true(shards[i].reverted == 2 || shards[i].held == bit(2));
    assert_true(ended == (st != DP_OK));
    ends_at = ALL;
    if (ended && shards[(from + SHARDS - 1) % SHARDS].reverted == 0 && shards[from].reverted == 2)
        assert_int_equal(dp_keep_settle(&job, false, &err), DP_DATA);
    assert_int_equal(dp_keep_end(&job, 2, 5, &left, &err), DP_OK);
    assert_int_equal(left, 2);
    expect_reverted(2);
    assert_int_equal(dp_keep_settle(&job, false, &err), DP_OK);
    return ended;
}

static void an_end_goes_back_on_all_shards(void **state)
{
    uint32_t ends = 0;
    (void)state;
    for (uint32_t from = 0; from < SHARDS; from++)
        for (uint32_t at = 0; end_ends_at(from, at); at++)
            ends++;
    assert_true(ends >= SHARDS * 2 * SHARDS);
}

static void the_last_epoch_needs_no_way_back(void **state)
{
    struct dp_job job = job_of();
    struct dp_error err = {0};
    uint32_t left = 0;
    (void)state;
    begin(bit(5), 0, ALL);
    assert_int_equal(dp_keep_end(&job, 5, 5, &left, &err), DP_OK);
    assert_int_equal(left, 5);
    expect_held(0);
    expect_reverted(0);
    begin(0, 0, ALL);
    assert_int_equal(dp_keep_end(&job, 0, 5, &left, &err), DP_OK);
    assert_int_equal(left, 5);
    expect_reverted(0);
}

/* Weights of two epochs would be no model. */
static void where_a_shard_has_lost_them_all_stay(void **state)
{
    struct dp_error err = {0};
    (void)state;
    for (uint32_t lost = 0; lost < SHARDS; lost++) {
        struct dp_job job = job_of();
        uint32_t left = 0;
        begin(bit(2), 0, ALL);
        shards[lost].held = 0;
        assert_int_equal(dp_keep_end(&job, 2, 5, &left, &err), DP_OK);
        assert_int_equal(left, 5);
        expect_reverted(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_epoch_is_on_all_shards_wherever_it_ends),
        cmocka_unit_test(what_is_kept_already_stays),
        cmocka_unit_test(an_end_goes_back_on_all_shards),
        cmocka_unit_test(the_last_epoch_needs_no_way_back),
        cmocka_unit_test(where_a_shard_has_lost_them_all_stay),
    };
    return cmocka_run_group_tests_name("kept weights", tests, NULL, NULL);
}

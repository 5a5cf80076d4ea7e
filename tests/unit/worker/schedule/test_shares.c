/* Goal    shares and groups cut every epoch without gap or overlap, short last ones included; no two pushes
 * of a
 *         training have one id. All members have the same steps in an epoch; a step without minibatches is
 *         empty, and in sync all pushes of a round have one rate.
 * Method  sweep small sizes, compare with counting one by one. */
#include "tests/lib/test.h"
#include "worker/schedule/shares.h"

#include <string.h>

static void check_shares(uint64_t examples, uint32_t batch, uint32_t workers)
{
    uint64_t batches = (examples + batch - 1) / batch, all_positions = 0, all_examples = 0;
    for (uint32_t worker = 0; worker < workers; worker++) {
        const struct dp_share share = {.batches = batches, .worker = worker, .workers = workers};
        uint64_t positions = 0, mine = 0;
        for (uint64_t n = 0; n < batches; n++) {
            if (n % workers != worker)
                continue;
            assert_int_equal(dp_share_number(share, positions), n);
            assert_int_equal(dp_push_number(worker, workers, positions), n); /* one minibatch a push */
            positions++;
            mine += n + 1 < batches ? batch : examples - n * batch;
        }
        assert_int_equal(dp_share_positions(share), positions);
        assert_int_equal(dp_share_examples(share, examples, batch), mine);
        all_positions += positions;
        all_examples += mine;
    }
    assert_int_equal(all_positions, batches);
    assert_int_equal(all_examples, examples);
}

static void test_shares(void **state)
{
    for (uint64_t examples = 1; examples <= 40; examples++)
        for (uint32_t batch = 1; batch <= 9; batch++)
            for (uint32_t workers = 1; workers <= 6; workers++)
                check_shares(examples, batch, workers);
}

static void test_groups(void **state)
{
    for (uint64_t positions = 0; positions <= 30; positions++) {
        for (uint32_t every = 1; every <= 32; every++) {
            uint64_t at = 0, groups = dp_groups(positions, every);
            for (uint64_t g = 0; g < groups; g++) {
                struct dp_group group = dp_group_at(positions, every, g);
                assert_int_equal(group.first, at);
                assert_true(group.count >= 1 && group.count <= every);
                if (g + 1 < groups)
                    assert_int_equal(group.count, every);
                for (uint32_t i = 0; i < group.count; i++, at++) {
                    assert_int_equal(dp_group_ends(positions, every, at), i + 1 == group.count);
                    assert_int_equal(at / every, g);
                }
            }
            assert_int_equal(at, positions);
        }
    }
}

/* The push numbers of all shares are those below their sum, each once. */
static void test_numbers_of_all(void **state)
{
    for (uint64_t batches = 0; batches <= 30; batches++)
        for (uint32_t workers = 1; workers <= 7; workers++)
            for (uint32_t every = 1; every <= 9; every++) {
                struct dp_share share = {.batches = batches, .workers = workers};
                uint64_t all = dp_groups_of_all(share, every), seen = 0, sum = 0;
                for (uint32_t w = 0; w < workers; w++) {
                    share.worker = w;
                    uint64_t groups = dp_groups(dp_share_positions(share), every);
                    for (uint64_t g = 0; g < groups; g++, sum++) {
                        assert_int_equal(dp_push_number(w, workers, g), w + workers * g);
                        assert_true(w + workers * g < all);
                        seen |= UINT64_C(1) << (w + workers * g);
                    }
                }
                assert_true(sum == all && all < 64 && seen == (UINT64_C(1) << all) - 1);
            }
    struct dp_share share = {.batches = 30, .worker = 1, .workers = 4};
    assert_int_equal(dp_share_with(share, 11).worker, 3);
}

static void test_stream(void **state)
{
    assert_int_equal(dp_push_stream(1, 0), UINT64_C(0x8000000100000000));
    assert_int_equal(dp_push_stream(0x7fffffff, 0xffffffff), UINT64_C(0xffffffffffffffff));
    assert_true(dp_push_stream(1, 2) != dp_push_stream(2, 1));
}

static struct dp_cluster_training training_of(const char *consistency, uint32_t push_every,
                                              uint32_t accumulate)
{
    struct dp_cluster_training training = {.push_every = push_every, .accumulate = accumulate};
    (void)strcpy(training.consistency, consistency);
    return training;
}

static void check_member(const struct dp_rounds *r, uint64_t steps, uint64_t examples, uint32_t batch)
{
    uint64_t all = 0;
    assert_int_equal(r->count, steps);
    for (uint64_t s = 0; s < r->count; s++) {
        uint64_t mine = dp_rounds_examples(r, examples, batch, s);
        assert_int_equal(mine == 0, s >= r->own);
        assert_true(dp_rounds_rated(r, s, UINT64_MAX) < r->share.batches || r->rule.mode != DP_SYNC);
        all += mine;
    }
    assert_int_equal(all, dp_share_examples(r->share, examples, batch));
}

static void check(uint64_t batches, uint32_t workers, uint32_t every, const char *consistency)
{
    const uint32_t batch = 4;
    const struct dp_cluster_training training = training_of(consistency, every, 1);
    uint64_t most = (batches + workers - 1) / workers, steps = (most + every - 1) / every;
    for (uint32_t w = 0; w < workers; w++) {
        const struct dp_share share = {.batches = batches, .worker = w, .workers = workers};
        const struct dp_rounds r = dp_rounds_of(&training, share);
        assert_int_equal(r.own, dp_groups(dp_share_positions(share), every));
        if (strcmp(consistency, "async") == 0 || w >= batches) {
            assert_int_equal(r.members, 0);
            assert_int_equal(r.count, r.own);
            continue;
        }
        assert_int_equal(r.members, batches < workers ? batches : workers);
        check_member(&r, steps, batches * batch - 1, batch);
    }
}

/* Planted: count of the own minibatches; a step more for all; numbers from 0 for empty steps. */
static void members_have_the_same_steps(void **state)
{
    for (uint64_t batches = 1; batches <= 25; batches++)
        for (uint32_t workers = 1; workers <= 7; workers++)
            for (uint32_t every = 1; every <= 5; every++) {
                check(batches, workers, every, "async");
                check(batches, workers, every, "ssp:1");
                check(batches, workers, every, "sync");
            }
}

/* Planted: the rate of the own first minibatch, and of the last. */
static void a_step_of_sync_has_one_rate(void **state)
{
    const struct dp_cluster_training sync = training_of("sync", 1, 3), ssp = training_of("ssp:0", 1, 3);
    const struct dp_cluster_training async = training_of("async", 2, 1);
    for (uint32_t w = 0; w < 4; w++) { /* 13 minibatches: steps of 12 and of 1 */
        const struct dp_share share = {.batches = 13, .worker = w, .workers = 4};
        struct dp_rounds r = dp_rounds_of(&sync, share);
        assert_int_equal(r.count, 2);
        assert_int_equal(r.own, w == 0 ? 2 : 1);
        assert_int_equal(dp_rounds_rated(&r, 0, 8 + w), 0);
        assert_int_equal(dp_rounds_rated(&r, 1, 12), 12);
        assert_int_equal(dp_rounds_step(&r, 7, 1), 15);
        r = dp_rounds_of(&ssp, share);
        assert_int_equal(dp_rounds_rated(&r, 0, 8 + w), 8 + w);
        assert_int_equal(dp_rounds_rated(&r, 1, 12), 12);
        r = dp_rounds_of(&async, share);
        assert_int_equal(dp_rounds_rated(&r, 0, 4 + w), 4 + w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_numbers_of_all),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(members_have_the_same_steps),
        cmocka_unit_test(a_step_of_sync_has_one_rate),
    };
    return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}

/* Leases: who gets which numbers, over resends, dead and replaced processes, and old epochs. What seeds find (requests lost, doubled and late,
 * a server that forgets) is sim/leases'. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "server/control/leases.h"

#include <inttypes.h>

#define MS_NS UINT64_C(1000000)
#define RUN   7u

struct asked {
    uint32_t rank, want, held, done, epoch;
    uint64_t total, number[8];
    bool tells;
    uint64_t bits[10000 / 64 + 1];
};

static enum dp_status take(struct dp_leases *leases, uint64_t now_ms, uint64_t session, uint64_t id,
                           const struct asked *a, struct dp_lease_answer *out)
{
    struct dp_error err = {0};
    struct dp_request request = {.kind = DP_REQUEST_LEASE,
                                 .id = id,
                                 .session = session,
                                 .run = RUN,
                                 .epoch = a->epoch,
                                 .lease = {.total = a->total ? a->total : 100,
                                           .rank = a->rank,
                                           .want = a->want,
                                           .held = a->held,
                                           .done = a->done,
                                           .tells = a->tells,
                                           .numbers = a->number,
                                           .bits = a->bits}};
    return dp_leases_take(leases, now_ms * MS_NS, &request, out, &err);
}

static void told(struct dp_leases **leases, uint64_t total)
{
    struct dp_error err = {0};
    struct dp_lease_answer answer;
    assert_int_equal(dp_leases_new(leases, &err), DP_OK);
    assert_int_equal(take(*leases, 0, 1, 1, &(struct asked){.want = 1, .total = total}, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_TELL);
    /* Others wait for that one, but not for ever. */
    const struct asked other = {.rank = 1, .want = 1, .total = total};
    assert_int_equal(take(*leases, 1, 2, 2, &other, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_WAIT);
    assert_int_equal(take(*leases, 5000, 2, 3, &other, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_TELL);
    assert_int_equal(take(*leases, 5001, 1, 4, &(struct asked){.tells = true, .total = total}, &answer),
                     DP_OK);
    assert_int_equal(answer.state, DP_LEASE_WAIT); /* it wanted none */
}

static void a_request_has_one_answer(void **state)
{
    struct dp_leases *leases;
    struct dp_lease_answer answer, again;
    told(&leases, 100);
    const struct asked ten = {.want = 10};
    assert_int_equal(take(leases, 6000, 1, 10, &ten, &answer), DP_OK);
    assert_true(answer.state == DP_LEASE_GIVEN && answer.count == 10 && answer.number[9] == 9);
    assert_int_equal(take(leases, 6001, 1, 10, &ten, &again), DP_OK);
    assert_memory_equal(&answer, &again, sizeof answer);
    /* A late copy of an older request takes nothing back. */
    assert_int_equal(take(leases, 6002, 1, 9, &ten, &again), DP_OK);
    assert_true(again.count == 0);
    const struct asked other = {.rank = 1, .want = 3};
    assert_int_equal(take(leases, 6003, 2, 11, &other, &again), DP_OK);
    assert_true(again.count == 3 && again.number[0] == 10);
    /* A new one that holds nothing: the answer before was lost, its numbers are free. */
    assert_int_equal(take(leases, 6004, 1, 12, &ten, &again), DP_OK);
    assert_true(again.count == 10 && again.number[0] == 0);
    dp_leases_free(&leases);
}

static void a_new_process_of_a_rank_frees_the_old_ones(void **state)
{
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 100);
    const struct asked four = {.want = 4}, other = {.rank = 1, .want = 4};
    assert_int_equal(take(leases, 6000, 1, 10, &four, &answer), DP_OK);
    assert_int_equal(take(leases, 6001, 9, 1, &four, &answer), DP_OK); /* worker 0 again */
    assert_true(answer.count == 4 && answer.number[0] == 0);
    assert_int_equal(take(leases, 6002, 1, 11, &four, &answer), DP_REPLACED);
    /* What it did meanwhile counts all the same. */
    const struct asked late = {.want = 1, .done = 1, .number = {50}};
    assert_int_equal(take(leases, 6003, 1, 12, &late, &answer), DP_REPLACED);
    assert_int_equal(take(leases, 6004, 2, 13, &other, &answer), DP_OK);
    assert_true(answer.done == 1 && answer.number[0] == 4);
    /* Two ranks of one session, and another total, are refused. */
    assert_int_equal(take(leases, 6005, 2, 14, &(struct asked){.rank = 2, .want = 1}, &answer), DP_INVALID);
    assert_int_equal(take(leases, 6005, 2, 15, &(struct asked){.rank = 1, .total = 99}, &answer), DP_INVALID);
    dp_leases_free(&leases);
}

/* Stopped in an epoch that ended without it, and replaced in the next: it wakes, and asks of either. Planted: a process is replaced in
 * the epoch of the request only; who was replaced in an earlier epoch is new in the next. */
static void a_replaced_process_stays_so_in_every_epoch(void **state)
{
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 2);
    const struct asked old = {.want = 2, .total = 2}, next = {.epoch = 1, .want = 2, .total = 2};
    assert_int_equal(take(leases, 6000, 1, 10, &old, &answer), DP_OK);
    const struct asked all = {.rank = 1, .want = 1, .total = 2, .done = 2, .number = {0, 1}};
    assert_int_equal(take(leases, 6001, 2, 11, &all, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_OVER);
    assert_int_equal(take(leases, 6002, 9, 1, &next, &answer), DP_OK); /* worker 0 again */
    assert_true(answer.count == 1 && answer.number[0] == 0);
    assert_int_equal(take(leases, 6003, 1, 12, &next, &answer), DP_REPLACED);
    assert_int_equal(take(leases, 6004, 1, 13, &old, &answer), DP_REPLACED);
    assert_int_equal(take(leases, 6005, 1, 14, &next, &answer), DP_REPLACED);
    const struct asked mine = {.epoch = 1, .want = 2, .total = 2, .held = 1, .number = {0}};
    assert_int_equal(take(leases, 6006, 9, 2, &mine, &answer), DP_OK);
    dp_leases_free(&leases);
}

/* The last numbers of an epoch, held by a process that is not heard of any more. */
static void old_leases_are_given_again_once(void **state)
{
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 2);
    const struct asked two = {.want = 2, .total = 2}, other = {.rank = 1, .want = 2, .total = 2};
    assert_int_equal(take(leases, 6000, 1, 10, &two, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == 0); /* half of what is left each */
    assert_int_equal(take(leases, 6001, 2, 11, &other, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == 1);
    const struct asked done = {.rank = 1, .want = 2, .total = 2, .done = 1, .number = {1}};
    assert_int_equal(take(leases, 6041, 2, 12, &done, &answer), DP_OK); /* took 40 ms */
    assert_true(answer.state == DP_LEASE_WAIT && answer.wait_ms > 0);
    assert_int_equal(take(leases, 6079, 2, 13, &other, &answer), DP_OK);
    assert_true(answer.state == DP_LEASE_WAIT && answer.wait_ms == 1);
    assert_int_equal(take(leases, 6080, 2, 14, &other, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == 0);
    /* Not to one that holds it, nor to a third one at once. */
    const struct asked mine = {.want = 2, .total = 2, .held = 1}, third = {.rank = 2, .want = 2, .total = 2};
    assert_int_equal(take(leases, 9000, 1, 15, &mine, &answer), DP_OK);
    assert_true(answer.state == DP_LEASE_WAIT);
    assert_int_equal(take(leases, 6081, 3, 16, &third, &answer), DP_OK);
    assert_true(answer.state == DP_LEASE_WAIT);
    const struct asked last = {.rank = 1, .want = 2, .total = 2, .done = 1};
    assert_int_equal(take(leases, 6090, 2, 17, &last, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_OVER);
    dp_leases_free(&leases);
}

/* A process that stops holds no window back: the others take its number when they are far ahead of it. */
static void numbers_stay_within_the_span(void **state)
{
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 10000);
    assert_int_equal(take(leases, 6000, 1, 10, &(struct asked){.want = 1, .total = 10000}, &answer), DP_OK);
    assert_true(answer.number[0] == 0);
    struct asked other = {.rank = 1, .want = 1, .total = 10000};
    uint64_t id = 10, now_ms = 6000;
    for (uint64_t n = 1; n < DP_LEASES_SPAN; n++) {
        assert_int_equal(take(leases, ++now_ms, 2, ++id, &other, &answer), DP_OK);
        if (answer.count != 1 || answer.number[0] != n)
            fail_msg("%u numbers, %" PRIu64 " instead of %" PRIu64, answer.count, answer.number[0], n);
        other.done = 1;
        other.number[0] = n;
    }
    assert_int_equal(take(leases, ++now_ms, 2, ++id, &other, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == 0);
    other.number[0] = 0;
    assert_int_equal(take(leases, ++now_ms, 2, ++id, &other, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == DP_LEASES_SPAN);
    dp_leases_free(&leases);
}

/* The server that saw an epoch end knows that nothing of the next is done; one that was told so does not. */
static void what_is_done_is_asked_once(void **state)
{
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 2);
    const struct asked two = {.want = 2, .total = 2};
    assert_int_equal(take(leases, 6000, 1, 10, &two, &answer), DP_OK);
    const struct asked all = {.want = 2, .total = 2, .done = 2, .number = {0, 1}};
    assert_int_equal(take(leases, 6001, 1, 11, &all, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_OVER);
    const struct asked next = {.epoch = 1, .want = 2, .total = 2};
    assert_int_equal(take(leases, 6002, 1, 12, &next, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_GIVEN);
    dp_leases_free(&leases);
    struct dp_error err = {0};
    assert_int_equal(dp_leases_new(&leases, &err), DP_OK);
    const struct asked over = {.want = 2, .total = 2, .tells = true, .bits = {1}, .done = 1, .number = {1}};
    assert_int_equal(take(leases, 6003, 1, 13, &over, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_OVER);
    assert_int_equal(take(leases, 6004, 1, 14, &next, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_TELL);
    dp_leases_free(&leases);
}

static void old_epochs_are_forgotten(void **state)
{
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 100); /* of epoch 0 */
    for (uint32_t e = 1; e < DP_LEASES_TABLES_MAX; e++)
        assert_int_equal(take(leases, 6000, 1, 10 + e, &(struct asked){.epoch = e}, &answer), DP_OK);
    assert_int_equal(take(leases, 6000, 1, 90, &(struct asked){.want = 1}, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_GIVEN);
    for (uint32_t e = 1; e <= DP_LEASES_TABLES_MAX; e++)
        assert_int_equal(take(leases, 6000, 1, 100 + e, &(struct asked){.epoch = e}, &answer), DP_OK);
    assert_int_equal(take(leases, 6000, 1, 190, &(struct asked){.want = 1}, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_TELL);
    dp_leases_free(&leases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_one_answer),
        cmocka_unit_test(a_new_process_of_a_rank_frees_the_old_ones),
        cmocka_unit_test(a_replaced_process_stays_so_in_every_epoch),
        cmocka_unit_test(old_leases_are_given_again_once),
        cmocka_unit_test(numbers_stay_within_the_span),
        cmocka_unit_test(what_is_done_is_asked_once),
        cmocka_unit_test(old_epochs_are_forgotten),
    };
    return cmocka_run_group_tests_name("leases", tests, NULL, NULL);
}

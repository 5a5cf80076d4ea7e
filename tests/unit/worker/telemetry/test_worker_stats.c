/* Goal    a worker's stats survive the note; rubbish in their place is refused. */
#include "tests/lib/test.h"
#include "worker/telemetry/worker_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_measures(struct dp_staleness *staleness)
{
    dp_staleness_begin(staleness);
    staleness->gap.count[2] = 7;
    staleness->rows = 1000;
    staleness->changed_rows = 10;
    staleness->changed.count[12] = 68;
    staleness->divided = 6;
    staleness->divisor_sum = 9.5;
    staleness->fine[0] = 3, staleness->fine[DP_STALENESS_FINE - 1] = 9;
    staleness->own_sum = 40, staleness->own_max = 2;
}

static void measure(struct dp_worker_stats *have)
{
    assert_int_equal(dp_worker_stats_init(have, 3, 2, NULL), DP_OK);
    have->pushes = 70;
    have->ended = 2;
    (void)snprintf(have->device, sizeof have->device, "cuda:0, tf32");
    have->repeated_examples = 24;
    have->found_examples = 100;
    have->missed = 12, have->missed_examples = 190;
    have->dropped = (struct dp_dropped){.pushes = 4, .partly = 3, .examples = 60, .passed = 50};
    have->staleness = (struct dp_staleness){.pushes = 68,
                                            .repeated = 2,
                                            .measured = 136,
                                            .sum = 99,
                                            .max = 5,
                                            .gaps = 7,
                                            .gap_sum = 11,
                                            .gap_max = 3};
    count_measures(&have->staleness);
    for (int i = 0; i < DP_PHASE_KINDS; i++)
        have->times.seconds[i] = 0.1 * i;
    have->epoch[0] =
        (struct dp_epoch_stats){.loss_sum = 0.1, .examples = 1000, .begun = 1.7e9, .seconds = 1.0};
    have->epoch[1] = (struct dp_epoch_stats){.loss_sum = 1e-300, .examples = 24, .seconds = 0.25};
}

static void test_round(void **state)
{
    struct dp_worker_stats have, back = {0};
    measure(&have);
    char *text;
    assert_int_equal(dp_worker_stats_pack(&have, &text, NULL), DP_OK);
    assert_int_equal(dp_worker_stats_unpack(text, strlen(text), 2, &back, NULL), DP_OK);
    assert_int_equal(back.worker, 3);
    assert_int_equal(back.pushes, 70);
    assert_int_equal(back.ended, 2);
    assert_string_equal(back.device, "cuda:0, tf32");
    assert_int_equal(back.repeated_examples, 24);
    assert_true(back.missed == 12 && back.missed_examples == 190);
    assert_int_equal(dp_worker_stats_new_examples(&back),
                     990); /* without the 10 that were computed and dropped */
    assert_memory_equal(&back.dropped, &have.dropped, sizeof have.dropped);
    assert_memory_equal(&back.staleness, &have.staleness, sizeof have.staleness);
    assert_memory_equal(&back.times, &have.times, sizeof have.times);
    assert_memory_equal(back.epoch, have.epoch, 2 * sizeof *have.epoch);
    assert_int_equal(dp_worker_stats_examples(&back), 1174);
    assert_true(dp_worker_stats_seconds(&back) == 1.25);
    dp_worker_stats_clear(&back);

    /* Of another number of epochs, and cut at every byte. */
    struct dp_error err = {0};
    assert_int_equal(dp_worker_stats_unpack(text, strlen(text), 1, &back, &err), DP_DATA);
    assert_non_null(strstr(err.text, "1 epochs"));
    for (size_t n = 0; n < strlen(text); n++)
        assert_int_equal(dp_worker_stats_unpack(text, n, 2, &back, NULL), DP_DATA);

    /* A number that is none. */
    char *number = malloc(strlen(text) + 1), *at;
    assert_non_null(number);
    at = strstr(strcpy(number, text), "\"gap_sum\":11");
    assert_non_null(at);
    at[10] = '-';
    assert_int_equal(dp_worker_stats_unpack(number, strlen(number), 2, &back, NULL), DP_DATA);
    free(number);
    free(text);

    /* More epochs ended than there are. */
    have.ended = 3;
    assert_int_equal(dp_worker_stats_pack(&have, &text, NULL), DP_OK);
    assert_int_equal(dp_worker_stats_unpack(text, strlen(text), 2, &back, NULL), DP_DATA);
    free(text);
    have.ended = 2;

    /* What has not begun yet is left out. */
    have.epoch[1] = (struct dp_epoch_stats){0};
    assert_int_equal(dp_worker_stats_pack(&have, &text, NULL), DP_OK);
    assert_int_equal(dp_worker_stats_unpack(text, strlen(text), 2, &back, NULL), DP_OK);
    assert_memory_equal(back.epoch, have.epoch, 2 * sizeof *have.epoch);
    dp_worker_stats_clear(&back);
    free(text);
    dp_worker_stats_clear(&have);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

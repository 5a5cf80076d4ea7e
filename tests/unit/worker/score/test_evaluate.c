/* Goal    parts of evaluations that notes cannot hold are refused before a training. */
#include "tests/lib/test.h"

#include "common/wire/limits.h"
#include "server/control/board.h"
#include "worker/score/evaluate.h"

#include <string.h>

#define HEAD 4u /* in front of a part */

static void parts_that_notes_cannot_hold_are_refused(void **state)
{
    struct dp_error err = {0};
    const uint64_t most = DP_NOTE_BYTES_MAX - HEAD, mib = 1u << 20;
    assert_int_equal(dp_evaluate_notes_fit(2, most + 1, 2 * most, &err), DP_FULL);
    assert_non_null(strstr(err.text, "more workers than 2"));
    const uint64_t part = 7 * mib - HEAD;
    assert_int_equal(dp_evaluate_notes_fit(4, part, 4 * part, &err), DP_OK);
    assert_int_equal(dp_evaluate_notes_fit(5, part, 5 * part, &err), DP_FULL);
    assert_non_null(strstr(err.text, "smaller set"));
}

/* What is accepted before a training has room at its end, too: the test set's parts are put while those of the last validation are
 * still there. Otherwise each put would wait for room that its own worker is to make. */
static void the_last_parts_have_room_beside_the_others(void **state)
{
    const uint64_t mib = 1u << 20, board = DP_BOARD_BYTES_MAX - 4 * mib; /* the rest: all other notes */
    uint64_t accepted = 0;
    for (uint64_t all = mib / 4; all <= DP_BOARD_BYTES_MAX; all += mib / 4) {
        if (dp_evaluate_notes_fit(2, all / 2, all, NULL) != DP_OK)
            continue;
        accepted = all;
        assert_true(all + all <= board);
    }
    assert_true(accepted >= 25 * mib);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_that_notes_cannot_hold_are_refused),
        cmocka_unit_test(the_last_parts_have_room_beside_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

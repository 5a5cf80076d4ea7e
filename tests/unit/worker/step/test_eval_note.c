/* Goal    the notes of evaluations are told apart by set and epoch; parts that notes cannot hold are refused before a training. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/wire/limits.h"
#include "server/control/board.h"
#include "worker/eval_note.h"

#include <string.h>

static void the_sets_are_told_apart(void **state)
{
    (void)state;
    assert_string_equal(dp_eval_note_name(DP_EVAL_EPOCH), "check");
    assert_string_equal(dp_eval_note_name(DP_EVAL_TEST), "test");
}

static void parts_that_notes_cannot_hold_are_refused(void **state)
{
    (void)state;
    struct dp_error err = {0};
    const uint64_t most = DP_NOTE_BYTES_MAX - DP_EVAL_EPOCH_BYTES, mib = 1u << 20;
    assert_int_equal(dp_eval_note_fits(2, most + 1, 2 * most, &err), DP_FULL);
    assert_non_null(strstr(err.text, "more workers than 2"));
    const uint64_t part = 7 * mib - DP_EVAL_EPOCH_BYTES;
    assert_int_equal(dp_eval_note_fits(4, part, 4 * part, &err), DP_OK);
    assert_int_equal(dp_eval_note_fits(5, part, 5 * part, &err), DP_FULL);
    assert_non_null(strstr(err.text, "smaller set"));
}

/* What is accepted before a training has room at its end, too: the test set's parts are put while those of the last validation are
 * still there. Otherwise each put would wait for room that its own worker is to make. */
static void the_last_parts_have_room_beside_the_others(void **state)
{
    (void)state;
    const uint64_t mib = 1u << 20, board = DP_BOARD_BYTES_MAX - 4 * mib; /* the rest: all other notes */
    uint64_t accepted = 0;
    for (uint64_t all = mib / 4; all <= DP_BOARD_BYTES_MAX; all += mib / 4) {
        if (dp_eval_note_fits(2, all / 2, all, NULL) != DP_OK)
            continue;
        accepted = all;
        assert_true(all + all <= board);
    }
    assert_true(accepted >= 25 * mib);
}

static void a_note_is_of_its_epoch_or_not(void **state)
{
    (void)state;
    unsigned char note[16] = {0};
    enum dp_eval_note found;
    struct dp_error err = {0};
    dp_store_u32le(note, 70);
    assert_int_equal(dp_eval_note_read(note, sizeof note, 70, &found, &err), DP_OK);
    assert_int_equal(found, DP_EVAL_PART);
    assert_int_equal(dp_eval_note_read(note, DP_EVAL_EPOCH_BYTES, 70, &found, &err), DP_OK);
    assert_int_equal(found, DP_EVAL_GONE); /* taken away */
    assert_int_equal(dp_eval_note_read(note, sizeof note, 6, &found, &err), DP_OK);
    assert_int_equal(found, DP_EVAL_GONE); /* replaced */
    for (size_t size = DP_EVAL_EPOCH_BYTES; size <= sizeof note; size++) {
        assert_int_equal(dp_eval_note_read(note, size, 134, &found, &err), DP_OK);
        assert_int_equal(found, DP_EVAL_NOT_YET);
    }
    assert_int_equal(dp_eval_note_read(note, 3, 70, &found, &err), DP_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sets_are_told_apart),
        cmocka_unit_test(parts_that_notes_cannot_hold_are_refused),
        cmocka_unit_test(the_last_parts_have_room_beside_the_others),
        cmocka_unit_test(a_note_is_of_its_epoch_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

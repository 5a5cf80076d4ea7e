/* Goal    however many epochs and workers, the notes of evaluations are few and are told apart; parts that notes
 * cannot hold are refused before a training. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/wire/limits.h"
#include "server/control/board.h"
#include "worker/eval_note.h"

#include <string.h>

static void few_names_however_many_epochs(void **state)
{
    (void)state;
    static const uint32_t workers[] = {1, 2, 100, 4096};
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        struct dp_eval_ring ring;
        assert_int_equal(dp_eval_ring_plan(1000000, workers[i], 72, 72 * workers[i], &ring, NULL), DP_OK);
        /* And two more a worker: progress and trained. */
        assert_true(workers[i] * (ring.slots + 3) <= 65536);
        assert_true(ring.slots >= 8 && ring.slots <= 64);
        char name[DP_EVAL_NAME_BYTES], other[DP_EVAL_NAME_BYTES];
        for (uint32_t e = 1; e + ring.slots < 200; e++) {
            dp_eval_note_name(ring, e, name);
            dp_eval_note_name(ring, e + ring.slots, other);
            assert_string_equal(name, other);
            for (uint32_t d = 1; d < ring.slots; d++) {
                dp_eval_note_name(ring, e + d, other);
                assert_string_not_equal(name, other);
            }
        }
        dp_eval_note_name(ring, 1000000, name);
        assert_string_equal(name, "eval/last");
    }
}

static void parts_that_notes_cannot_hold_are_refused(void **state)
{
    (void)state;
    struct dp_eval_ring ring;
    struct dp_error err = {0};
    const uint64_t most = DP_NOTE_BYTES_MAX - DP_EVAL_EPOCH_BYTES, mib = 1u << 20;
    assert_int_equal(dp_eval_ring_plan(10, 2, most + 1, 2 * most, &ring, &err), DP_FULL);
    assert_non_null(strstr(err.text, "more workers than 2"));
    const uint64_t part = 7 * mib - DP_EVAL_EPOCH_BYTES;
    assert_int_equal(dp_eval_ring_plan(10, 1, part, part, &ring, &err), DP_OK);
    assert_int_equal(ring.slots, 4); /* of 7 MiB each in 28 */
    assert_int_equal(dp_eval_ring_plan(10, 4, part, 4 * part, &ring, &err), DP_OK);
    assert_int_equal(ring.slots, 1);
    assert_int_equal(dp_eval_ring_plan(10, 5, part, 5 * part, &ring, &err), DP_FULL);
    assert_non_null(strstr(err.text, "smaller test set"));
}

/* What is accepted before a training has room at its end, too: the last epoch's parts are put while the slots of earlier epochs, or the
 * last validation's parts, are still there. Otherwise each put would wait for room that its own worker is to make. */
static void the_last_parts_have_room_beside_the_others(void **state)
{
    (void)state;
    const uint64_t mib = 1u << 20, board = DP_BOARD_BYTES_MAX - 4 * mib; /* the rest: all other notes */
    uint64_t accepted = 0;
    for (uint64_t all = mib / 4; all <= DP_BOARD_BYTES_MAX; all += mib / 4) {
        struct dp_eval_ring test, validation;
        if (dp_eval_ring_plan(10, 2, all / 2, all, &test, NULL) != DP_OK)
            continue;
        accepted = all;
        assert_true(test.slots * all + all <= board);
        assert_int_equal(dp_eval_ring_plan(10, 2, all / 2, all, &validation, NULL), DP_OK);
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
    assert_int_equal(found, DP_EVAL_GONE); /* merged */
    assert_int_equal(dp_eval_note_read(note, sizeof note, 6, &found, &err), DP_OK);
    assert_int_equal(found, DP_EVAL_GONE); /* overwritten */
    for (size_t size = DP_EVAL_EPOCH_BYTES; size <= sizeof note; size++) {
        assert_int_equal(dp_eval_note_read(note, size, 134, &found, &err), DP_OK);
        assert_int_equal(found, DP_EVAL_NOT_YET);
    }
    assert_int_equal(dp_eval_note_read(note, 3, 70, &found, &err), DP_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_names_however_many_epochs),
        cmocka_unit_test(parts_that_notes_cannot_hold_are_refused),
        cmocka_unit_test(the_last_parts_have_room_beside_the_others),
        cmocka_unit_test(a_note_is_of_its_epoch_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

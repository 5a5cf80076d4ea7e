/* Board: put, put again, found by prefix in name order; its bounds. */
#include "tests/lib/test.h"

#include "server/control/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dp_board *start(void)
{
    struct dp_board *board = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_board_new(&board, &err), DP_OK);
    return board;
}

static void put(struct dp_board *board, const char *name, const char *text)
{
    struct dp_error err = {0};
    assert_int_equal(dp_board_put(board, 0, name, text, strlen(text), &err), DP_OK);
}

static void notes_are_found_by_prefix_in_order(void **state)
{
    struct dp_board *board = start();
    const struct dp_board_note *note;
    assert_int_equal(dp_board_find(board, "", &note), 0);
    static const char *const names[] = {"b/2", "a", "b/10", "c", "b", "b/1", "ab"};
    for (size_t i = 0; i < 7; i++)
        put(board, names[i], names[i]);
    static const char *const sorted[] = {"a", "ab", "b", "b/1", "b/10", "b/2", "c"};
    assert_int_equal(dp_board_find(board, "", &note), 7);
    for (size_t i = 0; i < 7; i++) {
        assert_string_equal(note[i].name, sorted[i]);
        assert_int_equal(note[i].size, strlen(sorted[i]));
        assert_memory_equal(note[i].bytes, sorted[i], note[i].size);
    }
    assert_int_equal(dp_board_find(board, "b/", &note), 3);
    assert_string_equal(note[0].name, "b/1");
    assert_int_equal(dp_board_find(board, "b/1", &note), 2);
    assert_int_equal(dp_board_find(board, "b0", &note), 0);
    assert_int_equal(dp_board_find(board, "zz", &note), 0);
    dp_board_free(&board);
    assert_null(board);
    dp_board_free(&board);
}

static void a_note_put_again_replaces(void **state)
{
    struct dp_board *board = start();
    const struct dp_board_note *note;
    char text[8];
    for (uint32_t i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof text, "%u", i);
        put(board, i % 2 ? "odd" : "even", text);
    }
    put(board, "even", "");
    assert_int_equal(dp_board_find(board, "", &note), 2);
    assert_int_equal(note[0].size, 0);
    assert_memory_equal(note[1].bytes, "999", 3);
    dp_board_free(&board);
}

static void it_is_bounded(void **state)
{
    struct dp_board *board = start();
    struct dp_error err = {0};
    const struct dp_board_note *note;
    char name[32];
    for (uint32_t i = 0; i < DP_BOARD_NOTES_MAX; i++) {
        (void)snprintf(name, sizeof name, "%08u", i);
        put(board, name, "x");
    }
    assert_int_equal(dp_board_put(board, 0, "one more", "x", 1, &err), DP_FULL);
    put(board, "00000007", "y"); /* replacing is no more */
    assert_int_equal(dp_board_find(board, "", &note), DP_BOARD_NOTES_MAX);
    assert_memory_equal(note[7].bytes, "y", 1);
    dp_board_free(&board);

    /* Bytes, to the edge of the bound; a name and the note itself cost some. */
    board = start();
    size_t quarter = DP_BOARD_BYTES_MAX / 4, cost = DP_BOARD_NOTE_COST + sizeof "0";
    char *large = calloc(1, quarter);
    assert_non_null(large);
    for (uint32_t i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        assert_int_equal(dp_board_put(board, 0, name, large, quarter - cost - (i == 3), &err), DP_OK);
    }
    assert_int_equal(dp_board_put(board, 0, "a", "", 0, &err), DP_FULL);
    assert_non_null(strstr(err.text, "note 'a'"));
    assert_int_equal(dp_board_put(board, 0, "3", large, quarter - cost, &err), DP_OK);
    assert_int_equal(dp_board_put(board, 0, "3", large, quarter - cost + 1, &err), DP_FULL);
    assert_int_equal(dp_board_find(board, "3", &note), 1);
    assert_int_equal(note->size, quarter - cost); /* as it was */
    put(board, "0", "small");                     /* a replaced note gives its bytes back */
    assert_int_equal(dp_board_put(board, 0, "a", large, quarter - 2 * cost - 4, &err), DP_FULL);
    assert_int_equal(dp_board_put(board, 0, "a", large, quarter - 2 * cost - 5, &err), DP_OK);
    free(large);
    dp_board_free(&board);
}

/* Runs that have ended leave as one, the longest silent first, and only for want of room; a note of no run is one alone. */
static void runs_that_have_ended_make_room(void **state)
{
    enum { HALF = DP_BOARD_BYTES_MAX / 2 - 1000 };
    const uint64_t idle = DP_BOARD_IDLE_NS;
    struct dp_board *board = start();
    struct dp_error err = {0};
    const struct dp_board_note *note;
    char *large = calloc(1, HALF);
    assert_non_null(large);
    assert_int_equal(dp_board_put(board, 10, "run/1/plan/0", large, HALF, &err), DP_OK);
    assert_int_equal(dp_board_put(board, 10, "run/10/plan/0", "x", 1, &err), DP_OK);
    assert_int_equal(dp_board_put(board, 5, "run/2/plan/0", large, HALF, &err), DP_OK);
    assert_int_equal(dp_board_put(board, 20, "run/2/progress/0", "x", 1, &err), DP_OK);
    assert_int_equal(dp_board_put(board, 15, "own", "x", 1, &err), DP_OK);
    /* Nobody is silent for so long yet; and the own run never is. */
    assert_int_equal(dp_board_put(board, idle + 9, "run/3/plan/0", large, HALF, &err), DP_FULL);
    assert_int_equal(dp_board_put(board, idle + 19, "run/1/plan/1", large, HALF, &err), DP_FULL);
    assert_int_equal(dp_board_find(board, "run/1/", &note), 1);
    assert_int_equal(dp_board_find(board, "run/10/", &note), 0); /* it was, but gave too little */
    assert_int_equal(dp_board_find(board, "own", &note), 0);
    /* The first put of run 2 is older, its last is not. */
    assert_int_equal(dp_board_put(board, idle + 20, "run/3/plan/0", large, HALF, &err), DP_OK);
    assert_int_equal(dp_board_find(board, "run/1/", &note), 0);
    assert_int_equal(dp_board_find(board, "run/2/", &note), 2);
    assert_int_equal(dp_board_put(board, idle + 20, "run/4/plan/0", large, HALF, &err), DP_OK);
    assert_int_equal(dp_board_find(board, "run/2/", &note), 0);
    assert_int_equal(dp_board_find(board, "", &note), 2);
    free(large);
    dp_board_free(&board);
}

/* A board full of notes of no run, or of a run each, refuses runs for some minutes, not until its server ends. */
static void notes_of_no_run_leave_too(void **state)
{
    static const char *const ends[] = {"", "/b"};
    for (size_t form = 0; form < 2; form++) {
        struct dp_board *board = start();
        struct dp_error err = {0};
        const struct dp_board_note *note;
        char name[32];
        for (uint32_t i = 0; i < DP_BOARD_NOTES_MAX; i++) {
            (void)snprintf(name, sizeof name, "a/%08u%s", i, ends[form]);
            assert_int_equal(dp_board_put(board, i, name, "x", 1, &err), DP_OK);
        }
        assert_int_equal(dp_board_put(board, DP_BOARD_IDLE_NS - 1, "run/1/a", "x", 1, &err), DP_FULL);
        assert_int_equal(dp_board_put(board, DP_BOARD_IDLE_NS, "run/1/a", "x", 1, &err), DP_OK);
        assert_int_equal(dp_board_find(board, "", &note), DP_BOARD_NOTES_MAX);
        (void)snprintf(name, sizeof name, "a/%08u%s", 0, ends[form]);
        assert_int_equal(dp_board_find(board, name, &note), 0);
        /* A put that needs all of it takes it in pieces: each is short, and the client sends it again. */
        char *large = calloc(1, DP_BOARD_BYTES_MAX);
        uint32_t before = DP_BOARD_NOTES_MAX, tries = 0;
        assert_non_null(large);
        enum dp_status st = DP_FULL;
        for (; st == DP_FULL && tries < 3; tries++) {
            st = dp_board_put(board, 2 * DP_BOARD_IDLE_NS, "run/1/b", large, DP_BOARD_BYTES_MAX - 4096, &err);
            uint32_t left = dp_board_find(board, "", &note);
            assert_true(st == DP_OK || (left < before && before - left <= 64));
            before = left;
        }
        assert_int_equal(st, DP_FULL);
        free(large);
        dp_board_free(&board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_are_found_by_prefix_in_order),
        cmocka_unit_test(a_note_put_again_replaces),
        cmocka_unit_test(it_is_bounded),
        cmocka_unit_test(runs_that_have_ended_make_room),
        cmocka_unit_test(notes_of_no_run_leave_too),
    };
    return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}

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
    assert_int_equal(dp_board_put(board, name, text, strlen(text), &err), DP_OK);
}

static void notes_are_found_by_prefix_in_order(void **state)
{
    (void)state;
    struct dp_board *board = start();
    const struct dp_note *note;
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
    (void)state;
    struct dp_board *board = start();
    const struct dp_note *note;
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
    (void)state;
    struct dp_board *board = start();
    struct dp_error err = {0};
    const struct dp_note *note;
    char name[32];
    for (uint32_t i = 0; i < DP_BOARD_NOTES_MAX; i++) {
        (void)snprintf(name, sizeof name, "%08u", i);
        put(board, name, "x");
    }
    assert_int_equal(dp_board_put(board, "one more", "x", 1, &err), DP_FULL);
    put(board, "00000007", "y"); /* replacing is no more */
    assert_int_equal(dp_board_find(board, "", &note), DP_BOARD_NOTES_MAX);
    assert_memory_equal(note[7].bytes, "y", 1);
    dp_board_free(&board);

    /* Bytes: most of the bound in large notes (pages that nobody touches), then to its edge. */
    board = start();
    size_t quarter = DP_BOARD_BYTES_MAX / 4;
    char *large = calloc(1, quarter);
    assert_non_null(large);
    for (uint32_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        assert_int_equal(dp_board_put(board, name, large, quarter, &err), DP_OK);
    }
    assert_int_equal(dp_board_put(board, "3", large, quarter - 1, &err), DP_OK);
    put(board, "last", "x");
    assert_int_equal(dp_board_put(board, "more", "x", 1, &err), DP_FULL);
    assert_int_equal(dp_board_put(board, "last", "xx", 2, &err), DP_FULL);
    assert_int_equal(dp_board_find(board, "last", &note), 1);
    assert_int_equal(note->size, 1); /* as it was */
    put(board, "0", "small");        /* a replaced note gives its bytes back */
    assert_int_equal(dp_board_put(board, "more", large, quarter - 5, &err), DP_OK);
    assert_int_equal(dp_board_put(board, "and", "x", 1, &err), DP_FULL);
    free(large);
    dp_board_free(&board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_are_found_by_prefix_in_order),
        cmocka_unit_test(a_note_put_again_replaces),
        cmocka_unit_test(it_is_bounded),
    };
    return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}

/* Push ids taken back, as a checkpoint's cut does with pushes of an open step: against a naive set of numbers, packed and unpacked, and at
 * the window's edge. */
#include "tests/lib/test.h"

#include "server/ids/push_ids.h"

#include <stdlib.h>
#include <string.h>

#define TRAINING(n) (DP_STREAM_TRAINING | (n))
#define SECOND_NS   UINT64_C(1000000000)

static uint64_t now_ns = SECOND_NS;

static enum dp_push_seen look(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    enum dp_status status;
    return dp_push_ids_look(ids, stream, number, &status);
}

static enum dp_push_room reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    return dp_push_ids_reserve(ids, stream, number, &now_ns);
}

/* A second later: the quota of forgetting is never in the way. */
static void put(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    now_ns += SECOND_NS;
    assert_int_equal(reserve(ids, stream, number), DP_PUSH_ROOM);
    dp_push_ids_add(ids, stream, number, DP_OK);
}

static struct dp_push_ids *start(void)
{
    struct dp_push_ids *ids = NULL;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    return ids;
}

static void add(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    assert_int_equal(look(ids, stream, number), DP_PUSH_NEW);
    put(ids, stream, number);
    assert_int_equal(look(ids, stream, number), DP_PUSH_REPEATED);
}

static struct dp_push_ids *packed_and_unpacked(struct dp_push_ids *ids)
{
    struct dp_push_ids *again = start();
    struct dp_error err = {0};
    size_t size;
    void *bytes = dp_push_ids_pack(ids, &size);
    assert_non_null(bytes);
    assert_int_equal(dp_push_ids_unpack(again, bytes, size, &err), DP_OK);
    free(bytes);
    dp_push_ids_free(&ids);
    return again;
}

/* Numbers are used up and taken back at random; then the same, packed and unpacked. */
static void what_is_taken_back_is_new_again(void **state)
{
    enum { SPAN = 9000 };
    struct dp_push_ids *ids = start();
    uint8_t *seen = calloc(SPAN, 1);
    uint64_t seed = 5, lowered = 0;
    for (uint32_t op = 0; op < 60000; op++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t front = op / 7, number = (front + (seed >> 24) % 300) % SPAN;
        if ((seed >> 40) % 16 == 0) {
            lowered += seen[number] && number < front;
            assert_int_equal(dp_push_ids_take_back(ids, TRAINING(4), number), DP_OK);
            seen[number] = 0;
        } else if (!seen[number]) {
            add(ids, TRAINING(4), number);
            seen[number] = 1;
        }
    }
    assert_int_equal(dp_push_ids_take_back(ids, TRAINING(5), 1), DP_OK); /* of a stream that is not known */
    for (uint32_t again = 0; again < 2; again++) {
        for (uint64_t number = 0; number < SPAN; number++)
            assert_int_equal(look(ids, TRAINING(4), number), seen[number] ? DP_PUSH_REPEATED : DP_PUSH_NEW);
        ids = packed_and_unpacked(ids);
    }
    free(seen);
    dp_push_ids_free(&ids);
}

static void a_number_beyond_the_window_is_not_taken_back(void **state)
{
    struct dp_push_ids *ids = start();
    const uint64_t w = DP_PUSH_WINDOW;
    for (uint64_t n = 0; n <= w; n++)
        add(ids, 1, n);
    assert_int_equal(dp_push_ids_take_back(ids, 1, 0), DP_AGAIN);
    assert_int_equal(look(ids, 1, 0), DP_PUSH_REPEATED);
    assert_int_equal(dp_push_ids_take_back(ids, 1, 1), DP_OK);
    assert_int_equal(look(ids, 1, 1), DP_PUSH_NEW);
    assert_int_equal(look(ids, 1, w), DP_PUSH_REPEATED);
    add(ids, 1, 1);
    assert_int_equal(look(ids, 1, 2 * w), DP_PUSH_NEW);
    assert_int_equal(look(ids, 1, 2 * w + 1), DP_PUSH_ABOVE);
    dp_push_ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_back_is_new_again),
        cmocka_unit_test(a_number_beyond_the_window_is_not_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

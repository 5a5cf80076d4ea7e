/* Push exceptions in push ids: packed and read back; gone with the push that is used up, or with its stream; and what is none. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "server/durable/push_ids.h"

#include <stdlib.h>
#include <string.h>

#define STREAM UINT64_C(7)

static struct dp_push_ids *start(void)
{
    struct dp_push_ids *ids = NULL;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    return ids;
}

static enum dp_status except(struct dp_push_ids *ids, uint64_t stream, uint64_t number, uint64_t first,
                             uint64_t last)
{
    struct dp_error err;
    const struct dp_push_exception one = {stream, number, {first, last}};
    return dp_push_ids_except(ids, &one, &err);
}

/* Of three pushes, the second one with two ranges. */
static struct dp_push_ids *with_some(void)
{
    struct dp_push_ids *ids = start();
    assert_int_equal(dp_push_ids_restore(ids, STREAM, 0, DP_OK), DP_OK);
    assert_int_equal(except(ids, STREAM, 1, 0, 99), DP_OK);
    assert_int_equal(except(ids, STREAM, 2, 10, 19), DP_OK);
    assert_int_equal(except(ids, STREAM, 2, 30, UINT64_MAX), DP_OK);
    assert_int_equal(except(ids, STREAM + 1, 5, 3, 3), DP_OK);
    return ids;
}

static uint32_t ranges(const struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    uint32_t count;
    (void)dp_push_exceptions_find(dp_push_ids_exceptions(ids), stream, number, &count);
    return count;
}

static enum dp_status again(const void *bytes, size_t size, struct dp_push_ids **out)
{
    struct dp_error err;
    *out = start();
    return dp_push_ids_unpack(*out, bytes, size, &err);
}

static void they_are_packed_and_read_back(void **state)
{
    (void)state;
    struct dp_push_ids *ids = with_some(), *read;
    size_t size;
    char *bytes = dp_push_ids_pack(ids, &size);
    assert_int_equal(again(bytes, size, &read), DP_OK);
    const struct dp_push_exceptions *a = dp_push_ids_exceptions(ids), *b = dp_push_ids_exceptions(read);
    assert_int_equal(b->count, 4);
    assert_memory_equal(a->one, b->one, 4 * sizeof a->one[0]);
    enum dp_status ignored;
    assert_int_equal(dp_push_ids_look(read, STREAM, 1, &ignored), DP_PUSH_NEW);
    dp_push_ids_free(&read);
    /* The last one: cut off, all keys, of a push that is used up, not behind the one before. */
    assert_int_equal(again(bytes, size - 1, &read), DP_CORRUPT);
    dp_push_ids_free(&read);
    assert_int_equal(again(bytes, size - 4 * 32, &read), DP_CORRUPT);
    dp_push_ids_free(&read);
    const uint64_t bad[][4] = {{STREAM + 1, 5, 0, UINT64_MAX},
                               {STREAM + 1, 5, 4, 3},
                               {STREAM, 0, 3, 3},
                               {STREAM, 1, 3, 3},
                               {0, 5, 3, 3}};
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 4; k++)
            dp_store_u64le(bytes + size - 32 + 8 * k, bad[i][k]);
        assert_int_equal(again(bytes, size, &read), DP_CORRUPT);
        dp_push_ids_free(&read);
    }
    free(bytes);
    dp_push_ids_free(&ids);
}

static void ids_without_any_keep_their_format(void **state)
{
    (void)state;
    struct dp_push_ids *ids = with_some();
    size_t size;
    dp_push_ids_forget_exceptions(ids);
    char *bytes = dp_push_ids_pack(ids, &size);
    assert_int_equal(dp_load_u32le(bytes), 3);
    free(bytes);
    dp_push_ids_free(&ids);
}

static void what_is_used_up_is_none_any_more(void **state)
{
    (void)state;
    struct dp_push_ids *ids = with_some();
    assert_int_equal(dp_push_ids_reserve(ids, STREAM, 2, 1), DP_PUSH_ROOM);
    dp_push_ids_add(ids, STREAM, 2, DP_OK);
    assert_int_equal(ranges(ids, STREAM, 2), 0);
    assert_int_equal(ranges(ids, STREAM, 1), 1);
    assert_int_equal(dp_push_ids_restore(ids, STREAM + 1, 5, DP_OK), DP_OK); /* as replay does */
    assert_int_equal(dp_push_ids_exceptions(ids)->count, 1);
    assert_int_equal(except(ids, STREAM, 2, 5, 6), DP_CORRUPT);
    dp_push_ids_free(&ids);
}

static void a_forgotten_stream_takes_them_along(void **state)
{
    (void)state;
    struct dp_push_ids *ids = with_some();
    for (uint64_t i = 0; i < DP_PUSH_CLIENTS_MAX - 1; i++) /* one more than there is room for */
        assert_int_equal(dp_push_ids_restore(ids, 100 + i, 0, DP_OK), DP_OK);
    assert_int_equal(ranges(ids, STREAM, 1) + ranges(ids, STREAM, 2), 0);
    assert_int_equal(ranges(ids, STREAM + 1, 5), 1);
    dp_push_ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_packed_and_read_back),
        cmocka_unit_test(ids_without_any_keep_their_format),
        cmocka_unit_test(what_is_used_up_is_none_any_more),
        cmocka_unit_test(a_forgotten_stream_takes_them_along),
    };
    return cmocka_run_group_tests_name("push exceptions", tests, NULL, NULL);
}

/* Union of shards of which one is damaged. Goal: exceptions outside a shard's own range are refused, naming the shard; those inside are
 * taken. Method: two shards that have a part of the same push, one up to its last key and one beyond it. */
#include "tests/lib/test.h"

#include "server/checkpoint/union.h"
#include "server/durable/push_ids.h"

#include <stdlib.h>
#include <string.h>

#define STREAM UINT64_C(0x2000)

static struct dp_union_part part_with(struct dp_range has)
{
    const struct dp_push_exception one = {STREAM, 0, has};
    struct dp_union_part part = {0};
    struct dp_push_ids *ids = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    assert_int_equal(dp_push_ids_except(ids, &one, &err), DP_OK);
    part.ids = dp_push_ids_pack(ids, &part.ids_bytes);
    assert_non_null(part.ids);
    dp_push_ids_free(&ids);
    return part;
}

static void exceptions_are_of_the_shards_own_keys(void **state)
{
    (void)state;
    for (uint64_t beyond = 0; beyond < 2; beyond++) {
        struct dp_range first = dp_range_of_shard(0, 2), last = dp_range_of_shard(1, 2);
        struct dp_union cut;
        struct dp_error err = {0};
        first.last += beyond;
        last.last--;
        struct dp_union_part parts[2] = {part_with(first), part_with(last)};
        assert_int_equal(dp_union_make(parts, 2, &cut, &err), beyond ? DP_CORRUPT : DP_OK);
        if (beyond)
            assert_non_null(strstr(err.text, "shard 0"));
        else
            dp_union_clear(&cut);
        for (uint32_t i = 0; i < 2; i++)
            free((void *)(uintptr_t)parts[i].ids);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exceptions_are_of_the_shards_own_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A shard beside clients of before a restore. */
#include "tests/unit/server/shard/bed.h"

#define T ((uint64_t)1 << 63 | 1)

/* A session of before a restore: whatever it sends, its own numbers included, nothing takes effect. Who says that it knows
 * no generation may greet and look. */
static void requests_of_another_history_change_nothing(void **state)
{
    static const uint64_t named[][2] = {{BED_GENERATION, 7},
                                        {BED_GENERATION, 0},
                                        {BED_GENERATION - 1, BED_HISTORY},
                                        {0, BED_HISTORY},
                                        {0, 0}};
    struct bed bed;
    uint64_t key, id;
    bed_open(&bed, 1, 2);
    bed_meet(&bed, 1);
    struct dp_table_spec spec = bed_sgd("t", 2);
    bed_make_table(&bed, 1, 1, &spec);
    bed_keys(&bed, 10, 1, &key);
    id = bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 1);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_OK);
    float before = bed_value(&bed, 1, 3, key);
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        bool knows_none = named[i][0] == 0 && named[i][1] == 0;
        bed.names.given = true;
        bed.names.generation = named[i][0];
        bed.names.history = named[i][1];
        const struct bed_reply *reply =
            bed_expect(&bed, bed_push(&bed, 1, 4 + i, "t", &key, 1, 2, 1, T, 2 + i), DP_GENERATION);
        assert_true(reply->reply.generation == BED_GENERATION && reply->reply.history == BED_HISTORY);
        bed_expect(&bed, bed_pull(&bed, 1, 4 + i, "t", &key, 1), DP_GENERATION);
        bed_expect(&bed, bed_hello(&bed, 1, 4 + i, false), knows_none ? DP_OK : DP_GENERATION);
        struct dp_request status = {.kind = DP_REQUEST_STATUS, .session = 1};
        bed_expect(&bed, bed_send(&bed, &status, NULL, 0), knows_none ? DP_OK : DP_GENERATION);
        bed.names.given = false;
        assert_true(bed_value(&bed, 1, 4 + i, key) == before);
    }
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(requests_of_another_history_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

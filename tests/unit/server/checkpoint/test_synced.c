/* What a checkpoint stands on is durable before it counts. Goal: at the rename that makes one, every name and every byte that it has is
 * synced, its own and the pool's; nothing that a manifest names goes before the manifest is durably gone. */
#include "tests/lib/unsynced.h"
#include "tests/unit/server/checkpoint/area.h"

#include <stdio.h>

static void a_checkpoint_is_durable_before_it_counts(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    char pool[200];
    uint32_t number;
    (void)snprintf(pool, sizeof pool, "%s/files", area->directory);
    for (uint32_t i = 0; i < 4;
         i++) { /* the first one makes the directories; all is written; some is known */
        area->full = i == 2;
        dp_unsynced_begin(area->directory, pool);
        assert_int_equal(area_make(area, &number, &err), DP_OK);
        assert_int_equal(dp_unsynced_expect_none(), 1);
        area_change(area);
    }
    area_free(area);
}

/* A server says COPIED to a command that may be on another machine. */
static void a_shards_part_is_durable_when_it_is_copied(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    assert_int_equal(dp_checkpoint_begin(area->directory, area->order, &err), DP_OK);
    for (uint32_t i = 0; i < AREA_SHARDS; i++) {
        struct dp_copy_job *job = area_job(area, i);
        dp_unsynced_begin(area->directory, NULL);
        area_copy(area, job);
        assert_int_equal(job->status, DP_OK);
        assert_int_equal(dp_unsynced_expect_none(), 0);
        dp_copy_job_free(&job);
    }
    area_free(area);
}

static void what_is_removed_goes_after_its_manifest(void **state)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    struct dp_prune pruned;
    uint32_t number;
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(area_make(area, &number, &err), DP_OK);
        area_change(area);
    }
    dp_unsynced_begin(area->directory, NULL);
    assert_int_equal(area_prune(area, 1, &pruned, &err), DP_OK);
    assert_int_equal(dp_unsynced_expect_none(), 3);
    area_free(area);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_durable_before_it_counts),
        cmocka_unit_test(a_shards_part_is_durable_when_it_is_copied),
        cmocka_unit_test(what_is_removed_goes_after_its_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Checkpoints removed. Goal: the last whole ones stay, whatever lies beside them: damaged ones, another cluster's, a later format's, two
 * that were moved over each other. (That a prune may die at any call is test_making's.) */
#include "common/env/directory.h"
#include "tests/unit/server/checkpoint/area.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct area *area_of(uint32_t checkpoints)
{
    struct area *area = area_new();
    struct dp_error err = {0};
    uint32_t number;
    for (uint32_t i = 0; i < checkpoints; i++) {
        assert_int_equal(area_make(area, &number, &err), DP_OK);
        area_change(area);
    }
    return area;
}

static void expect_pruned(const struct area *area, uint32_t keep, enum dp_status status, uint32_t removed)
{
    struct dp_error err = {0};
    struct dp_prune pruned;
    enum dp_status st = area_prune(area, keep, &pruned, &err);
    if (st != status || pruned.checkpoints != removed)
        fail_msg("%s, %u removed: %s", dp_status_name((int)st), pruned.checkpoints, err.text);
}

static void while_a_manifest_cannot_be_read_no_file_goes(void **state)
{
    struct area *area = area_of(3);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/checkpoint-000001/manifest.json", area->directory);
    uint32_t files = area_count(area, "files", "");
    /* A format that a later version writes may well be whole: it stays, and its files with it. */
    area_put_file(path, "{\"format\": 9}", 13);
    expect_pruned(area, 1, DP_UNSUPPORTED, 1);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(area_count(area, "files", ""), files);
    area_put_file(path, "{\"format\": 1}", 13);
    expect_pruned(area, 2, DP_CORRUPT, 0);
    assert_int_equal(area_count(area, "files", ""), files);
    expect_pruned(area, 1, DP_OK, 1);
    assert_int_equal(area_expect_whole(area), 1);
    assert_true(area_count(area, "files", "") < files);
    area_free(area);
}

/* What is removed is never the last that can be restored. */
static void a_damaged_one_is_not_counted(void **state)
{
    char path[300];
    struct area *area = area_of(4);
    (void)snprintf(path, sizeof path, "%s/checkpoint-000004/ids", area->directory);
    assert_int_equal(truncate(path, 5), 0);
    (void)snprintf(path, sizeof path, "%s/checkpoint-000003/manifest.json", area->directory);
    area_put_file(path, "{", 1);
    expect_pruned(area, 2, DP_CORRUPT, 0); /* 1 and 2 are whole; the text names 3 */
    expect_pruned(area, 1, DP_CORRUPT, 1);
    assert_int_equal(area_verify(area, 2, &(struct dp_error){0}), DP_OK);
    expect_pruned(area, 1, DP_CORRUPT, 0);
    (void)snprintf(path, sizeof path, "%s/checkpoint-000004/ids", area->directory);
    area_put_file(path, "idsids", 6);
    expect_pruned(area, 1, DP_OK, 2); /* with 4 whole again, the damaged one goes as 2 does */
    assert_int_equal(area_expect_whole(area), 1);
    area_free(area);
}

/* A flipped bit leaves the size as it is. */
static void one_whose_bytes_are_damaged_is_not_counted(void **state)
{
    char path[300];
    struct area *area = area_of(3);
    (void)snprintf(path, sizeof path, "%s/checkpoint-000003/ids", area->directory);
    area_put_file(path, "idsidr", 6);
    expect_pruned(area, 1, DP_OK, 1);
    assert_int_equal(area_verify(area, 2, &(struct dp_error){0}), DP_OK);
    area_free(area);
}

static void swap(const struct area *area, const char *one, const char *other)
{
    char from[300], to[300], aside[300];
    (void)snprintf(from, sizeof from, "%s/checkpoint-%s", area->directory, one);
    (void)snprintf(to, sizeof to, "%s/checkpoint-%s", area->directory, other);
    (void)snprintf(aside, sizeof aside, "%s/aside", area->directory);
    assert_int_equal(rename(from, aside), 0);
    assert_int_equal(rename(to, from), 0);
    assert_int_equal(rename(aside, to), 0);
}

static void one_that_is_cancelled_removes_none(void **state)
{
    struct area *area = area_of(3);
    const atomic_bool cancelled = true;
    (void)state;
    area->cancelled = &cancelled;
    expect_pruned(area, 1, DP_STOPPING, 0);
    assert_int_equal(area_expect_whole(area), 3);
    area_free(area);
}

/* By their names the later one would go. */
static void two_that_were_moved_over_each_other_stay(void **state)
{
    struct area *area = area_of(3);
    struct dp_error err = {0};
    struct dp_prune pruned;
    struct dp_manifest manifest;
    swap(area, "000001", "000002");
    assert_int_equal(area_prune(area, 1, &pruned, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "is checkpoint 1 by its manifest"));
    assert_int_equal(pruned.checkpoints, 0);
    assert_int_equal(dp_manifest_read_numbered(area->directory, 1, &manifest, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "name back (checkpoint-000002)"));
    assert_null(manifest.shard);
    expect_pruned(area, 3, DP_OK, 0); /* none is to go */
    swap(area, "000001", "000002");
    assert_int_equal(dp_manifest_read_numbered(area->directory, 1, &manifest, &err), DP_OK);
    dp_manifest_clear(&manifest);
    expect_pruned(area, 1, DP_OK, 2);
    area_free(area);
}

static void only_those_of_the_cluster_are_removed(void **state)
{
    struct area *area = area_new();
    struct dp_prune pruned;
    struct dp_checkpoint_list list;
    struct dp_error err = {0};
    uint32_t number;
    for (uint32_t i = 0; i < 5; i++) {
        area->cluster = i % 2 ? 7 : 8;
        area_change(area);
        if (area_make(area, &number, &err) != DP_OK)
            fail_msg("%s", err.text);
    }
    assert_int_equal(area_prune(area, 1, &pruned, &err), DP_OK); /* of cluster 8: 1, 3 and 5 */
    assert_int_equal(pruned.checkpoints, 2);
    assert_int_equal(dp_checkpoint_list_read(area->directory, &list, &err), DP_OK);
    assert_true(list.count == 3 && list.number[0] == 2 && list.number[1] == 4 && list.number[2] == 5);
    dp_checkpoint_list_clear(&list);
    assert_int_equal(area_expect_whole(area), 3);
    area->cluster = 0; /* of each cluster */
    expect_pruned(area, 2, DP_OK, 0);
    expect_pruned(area, 1, DP_OK, 1);
    assert_int_equal(dp_checkpoint_list_read(area->directory, &list, &err), DP_OK);
    assert_true(list.count == 2 && list.number[0] == 4 && list.number[1] == 5);
    dp_checkpoint_list_clear(&list);
    area_free(area);
}

/* A directory of models may be named so; a person may keep things in ours. A rest of a prune goes, all else stays. */
static void what_is_not_of_a_checkpoint_stays(void **state)
{
    static const char *const directories[] = {"checkpoint-100000", "checkpoint-000001", "files/mine",
                                              "files/0000000000005000"};
    static const char *const stays[] = {"checkpoint-100000/model.safetensors", "checkpoint-100000/ids",
                                        "files/mine/a-0123456789abcdef0123456789abcdef",
                                        "files/0000000000005000/README"};
    static const char *const goes[] = {
        "checkpoint-000001/ids", "checkpoint-000001/manifest.json.new-7-000000001",
        "files/0000000000005000/tmp-1-a", "files/0000000000005000/a-0123456789abcdef0123456789abcdef"};
    struct area *area = area_of(2);
    char path[300];
    (void)state;
    expect_pruned(area, 1, DP_OK, 1);
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", area->directory, directories[i]);
        assert_int_equal(dp_directory_make(path, NULL), DP_OK);
    }
    for (size_t i = 0; i < sizeof stays / sizeof stays[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", area->directory, stays[i]);
        area_put_file(path, "mine", 4);
        (void)snprintf(path, sizeof path, "%s/%s", area->directory, goes[i]);
        area_put_file(path, "rest", 4);
    }
    expect_pruned(area, 1, DP_OK, 0);
    for (size_t i = 0; i < sizeof stays / sizeof stays[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", area->directory, stays[i]);
        assert_int_equal(access(path, F_OK), 0);
        (void)snprintf(path, sizeof path, "%s/%s", area->directory, goes[i]);
        assert_int_equal(access(path, F_OK), -1);
    }
    area_free(area);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_a_manifest_cannot_be_read_no_file_goes),
        cmocka_unit_test(a_damaged_one_is_not_counted),
        cmocka_unit_test(one_whose_bytes_are_damaged_is_not_counted),
        cmocka_unit_test(one_that_is_cancelled_removes_none),
        cmocka_unit_test(two_that_were_moved_over_each_other_stay),
        cmocka_unit_test(only_those_of_the_cluster_are_removed),
        cmocka_unit_test(what_is_not_of_a_checkpoint_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

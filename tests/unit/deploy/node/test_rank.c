/* rank: each launcher's variable is read, and two that differ are refused with both names. */
#include "tests/lib/test.h"

#include "common/config/cluster_place.h"
#include "deploy/node/rank.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"DOWNPOUR_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                                    "PMIX_RANK",     "PMI_RANK",     "JOB_COMPLETION_INDEX",
                                    "RANK"};
#define NAMES (sizeof names / sizeof names[0])
static const char *const sizes[] = {"SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE",
                                    "SLURM_HET_SIZE"};

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMES; i++)
        assert_int_equal(unsetenv(names[i]), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(unsetenv(sizes[i]), 0);
    return 0;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static uint64_t found(const char *flag, const char *name)
{
    struct dp_node_rank rank;
    struct dp_error err = {0};
    assert_int_equal(dp_node_rank_find(flag, &rank, &err), DP_OK);
    assert_string_equal(rank.name, name);
    return rank.rank;
}

static void refused(const char *one, const char *other)
{
    struct dp_node_rank rank;
    struct dp_error err = {0};
    assert_int_equal(dp_node_rank_find(NULL, &rank, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, one));
    assert_non_null(strstr(err.text, other));
}

static void each_variable_is_read(void **state)
{
    for (size_t i = 0; i < NAMES; i++) {
        clear(state);
        set(names[i], "5");
        assert_int_equal(found(NULL, names[i]), 5);
    }
}

static void two_that_differ_are_refused_with_both_names(void **state)
{
    for (size_t i = 1; i < NAMES; i++)
        for (size_t k = i + 1; k < NAMES; k++) {
            clear(state);
            set(names[i], "0");
            set(names[k], "0");
            assert_int_equal(found(NULL, names[i]), 0);
            set(names[k], "3");
            refused(names[i], names[k]);
            set("DOWNPOUR_RANK", "2"); /* says it outright, as --rank does */
            assert_int_equal(found(NULL, "DOWNPOUR_RANK"), 2);
            assert_int_equal(found("1", "--rank"), 1);
        }
}

static void none_and_no_number_are_refused(void **state)
{
    (void)state;
    refused("there is no rank", "DOWNPOUR_RANK");
    set("RANK", "");
    refused("there is no rank", "DOWNPOUR_RANK");
    set("RANK", "two");
    refused("RANK", "two");
    set("RANK", "-1");
    refused("RANK", "-1");
}

static void size_is_that_of_the_same_launcher(void **state)
{
    struct dp_node_rank rank;
    (void)state;
    set("OMPI_COMM_WORLD_RANK", "1");
    set("OMPI_COMM_WORLD_SIZE", "4");
    set("WORLD_SIZE", "9");
    assert_int_equal(dp_node_rank_find(NULL, &rank, NULL), DP_OK);
    assert_int_equal(rank.size, 4);
    clear(state);
    set("SLURM_PROCID", "1");
    set("SLURM_STEP_NUM_TASKS", "2");
    assert_int_equal(dp_node_rank_find(NULL, &rank, NULL), DP_OK);
    assert_int_equal(rank.size, 2);
    set("SLURM_HET_SIZE", "3"); /* ranks run over three such parts */
    assert_int_equal(dp_node_rank_find(NULL, &rank, NULL), DP_OK);
    assert_int_equal(rank.size, 0);
}

static void ranks_are_servers_then_workers(void **state)
{
    struct dp_cluster_place place;
    struct dp_error err = {0};
    struct dp_cluster cluster = {.server_count = 2};
    cluster.training.workers = 3;
    char text[32];
    (void)state;
    assert_int_equal(dp_cluster_place_of(&cluster, 1, "--rank", &place, &err), DP_OK);
    assert_string_equal(dp_cluster_place_text(&place, text), "server 1");
    assert_int_equal(dp_cluster_place_of(&cluster, 2, "--rank", &place, &err), DP_OK);
    assert_string_equal(dp_cluster_place_text(&place, text), "worker 0");
    assert_int_equal(dp_cluster_place_of(&cluster, 4, "--rank", &place, &err), DP_OK);
    assert_string_equal(dp_cluster_place_text(&place, text), "worker 2");
    assert_int_equal(dp_cluster_place_of(&cluster, 5, "RANK", &place, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "RANK is 5"));
    assert_int_equal(dp_cluster_place_check(&cluster, true, 2, "--number", &place, &err), DP_OK);
    assert_int_equal(dp_cluster_place_check(&cluster, false, 2, "--number", &place, &err), DP_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_variable_is_read, clear),
        cmocka_unit_test_setup(two_that_differ_are_refused_with_both_names, clear),
        cmocka_unit_test_setup(none_and_no_number_are_refused, clear),
        cmocka_unit_test_setup(size_is_that_of_the_same_launcher, clear),
        cmocka_unit_test(ranks_are_servers_then_workers),
    };
    return cmocka_run_group_tests_name("rank", tests, NULL, NULL);
}

/* Generation: what control makes of what the stores tell, and of requests. */
#include "server/control/generation.h"

#include "tests/lib/sim_disk.h"
#include "tests/lib/test.h"

static const struct dp_control_generation none = {0};

static void assert_is(struct dp_control_generation is, uint64_t number, uint64_t history)
{
    assert_true(is.number == number && is.history == history);
}

static struct dp_control_register *open_register(struct dp_disk *disk)
{
    struct dp_control_register *values = NULL;
    struct dp_error err = {0};
    bool made;
    const struct dp_control_register_options options = {.disk = disk, .new_id = 5, .create = true};
    assert_int_equal(dp_control_register_open(&options, &values, &made, &err), DP_OK);
    return values;
}

static uint64_t version_of(struct dp_control_register *values)
{
    struct dp_control_register_entry entry;
    struct dp_error err = {0};
    assert_int_equal(dp_control_register_get(values, DP_CONTROL_GENERATION_NAME, &entry, &err), DP_OK);
    return entry.version;
}

/* The register remembers for stores that are made anew; stores that are there are right. */
static void stores_tell_and_the_register_remembers(void **state)
{
    struct dp_sim_disk *sim = dp_sim_disk_new(1);
    struct dp_disk disk = dp_sim_disk_interface(sim);
    struct dp_control_register *values = open_register(&disk);
    assert_is(dp_control_generation_settle(NULL, none), 1, 0);
    assert_is(dp_control_generation_settle(values, none), 1, 0);
    assert_is(dp_control_generation_settle(values, (struct dp_control_generation){1, 0}), 1, 0);
    assert_int_equal(version_of(values), 0); /* never restored: no value */
    assert_is(dp_control_generation_settle(values, (struct dp_control_generation){2, 7}), 2, 7);
    assert_is(dp_control_generation_settle(values, (struct dp_control_generation){2, 7}), 2, 7);
    assert_int_equal(version_of(values), 1);
    dp_control_register_close(&values);
    values = open_register(&disk);
    assert_is(dp_control_generation_settle(values, none), 2, 7);
    assert_is(dp_control_generation_settle(values, (struct dp_control_generation){3, 8}), 3, 8);
    assert_is(dp_control_generation_settle(values, none), 3, 8);
    assert_int_equal(version_of(values), 2);
    dp_control_register_close(&values);
    dp_sim_disk_free(&sim);
}

/* Builds before the register checked what is set accepted any bytes. */
static void a_number_that_no_restore_comes_to_is_ignored(void **state)
{
    struct dp_sim_disk *sim = dp_sim_disk_new(1);
    struct dp_disk disk = dp_sim_disk_interface(sim);
    struct dp_control_register *values = open_register(&disk);
    struct dp_control_register_entry entry;
    struct dp_error err = {0};
    struct dp_control_register_change change = {
        .name = DP_CONTROL_GENERATION_NAME, .nonce = 5, .bytes = "0123456789abcdef", .size = 16};
    assert_int_equal(dp_control_register_set(values, &change, &entry, &err), DP_OK);
    assert_is(dp_control_generation_settle(values, none), 1, 0);
    change.expected = change.size = 1;
    assert_int_equal(dp_control_register_set(values, &change, &entry, &err), DP_OK);
    assert_is(dp_control_generation_settle(values, none), 1, 0);
    assert_is(dp_control_generation_settle(values, (struct dp_control_generation){2, 7}), 2, 7);
    assert_is(dp_control_generation_settle(values, none), 2, 7);
    dp_control_register_close(&values);
    dp_sim_disk_free(&sim);
}

static void what_may_be_done_before_it_is_known(void **state)
{
    static const struct {
        enum dp_request_kind kind;
        uint64_t generation, history;
        enum dp_status unknown, known;
    } cases[] = {
        {DP_REQUEST_HELLO, 0, 0, DP_OK, DP_OK},
        {DP_REQUEST_STATUS, 0, 0, DP_OK, DP_OK},
        {DP_REQUEST_NOTES_GET, 0, 0, DP_OK, DP_OK},
        {DP_REQUEST_NOTE_PUT, 0, 0, DP_AGAIN, DP_GENERATION},
        {DP_REQUEST_REGISTER_SET, 0, 0, DP_AGAIN, DP_GENERATION},
        {DP_REQUEST_REGISTER_SET, 2, 7, DP_AGAIN, DP_OK},
        {DP_REQUEST_HELLO, 2, 7, DP_AGAIN, DP_OK},
        {DP_REQUEST_HELLO, 2, 6, DP_AGAIN, DP_GENERATION},
        {DP_REQUEST_HELLO, 0, 7, DP_AGAIN, DP_GENERATION},
        {DP_REQUEST_HEARTBEAT, 1, 7, DP_AGAIN, DP_GENERATION},
    };
    const struct dp_control_generation known = {2, 7};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_error err = {0};
        const struct dp_request request = {
            .kind = cases[i].kind, .generation = cases[i].generation, .history = cases[i].history};
        assert_int_equal(dp_control_generation_check(&none, &request, &err), cases[i].unknown);
        assert_int_equal(err.wait.reason, cases[i].unknown == DP_AGAIN ? DP_WAIT_OPENING : DP_WAIT_NONE);
        assert_int_equal(dp_control_generation_check(&known, &request, &err), cases[i].known);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_tell_and_the_register_remembers),
        cmocka_unit_test(a_number_that_no_restore_comes_to_is_ignored),
        cmocka_unit_test(what_may_be_done_before_it_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

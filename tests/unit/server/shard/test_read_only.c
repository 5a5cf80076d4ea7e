/* A shard that only reads: it answers pulls with the rows that a restart would have, refuses what changes rows, and leaves store
 * and journal as they are, whether they were closed cleanly or not. */
#include "tests/unit/server/shard/crash_bed.h"

#include <stdlib.h>

#define KEYS 15u

/* What has been done to the store and to the journal's disk. */
struct traces {
    uint64_t writes, marks, disk;
};

static struct traces traces_of(const struct crash *c)
{
    return (struct traces){dp_fake_store_jobs(c->bed.fake, DP_STORE_WRITE),
                           dp_fake_store_jobs(c->bed.fake, DP_STORE_MARKS),
                           dp_sim_disk_operations(c->bed.host.sim)};
}

static void expect_no_more(const struct crash *c, struct traces before)
{
    struct traces now = traces_of(c);
    assert_int_equal(now.writes, before.writes);
    assert_int_equal(now.marks, before.marks);
    assert_int_equal(now.disk, before.disk);
}

/* Rows 0 .. KEYS - 1, each pushed to as often as its number. */
static struct crash *trained(void)
{
    struct crash *c = crash_new(0);
    for (uint64_t k = 0; k < CRASH_KEYS; k++)
        c->mixed[k] = 1000 * k;
    assert_int_equal(crash_open(c, false), DP_OK);
    assert_true(crash_meet(c));
    for (uint32_t key = 1; key < KEYS; key++)
        for (uint32_t time = 0; time < key; time++) {
            struct crash_script *push = &c->push[c->issued++];
            *push = (struct crash_script){.rows = 1, .tables = 1, .key = {key}, .gradient = 1};
            crash_push(c, c->issued - 1);
            bed_turn(&c->bed);
            bed_turn(&c->bed);
            assert_true(push->acknowledged);
        }
    return c;
}

static void drain(struct crash *c)
{
    struct dp_error err = {0};
    assert_int_equal(bed_drain(&c->bed, &err), DP_OK);
    crash_close(c);
}

static void expect_rows(struct crash *c)
{
    struct dp_request pull = {.kind = DP_REQUEST_PULL, .sequence = c->sequence++, .sections = 1};
    struct dp_frame keys = dp_frame_new(KEYS * 8);
    pull.section[0] = (struct dp_section){.table = dp_table_id(crash_table_names[0]), .rows = KEYS};
    memcpy(keys.data, c->mixed, KEYS * 8);
    c->pull_first = 0;
    c->pull_rows = KEYS;
    c->pulled = false;
    c->pull_id = c->bed.next_id;
    (void)crash_send(c, &pull, &keys, 1);
    for (uint32_t i = 0; i < 10 && !c->pulled; i++)
        bed_turn(&c->bed);
    assert_true(c->pulled);
    for (uint32_t key = 0; key < KEYS; key++)
        assert_float_equal(c->value[key], -(double)key, 0);
}

/* In a life of its own: pulls, pushes, tables, 40 s, and the end. */
static void reads_and_changes_nothing(struct crash *c, bool recovers)
{
    const struct traces before = traces_of(c);
    c->bed.host.options.read_only = true;
    assert_int_equal(crash_open(c, recovers), DP_OK);
    assert_true(crash_meet(c)); /* the table that is there is given */
    expect_rows(c);
    crash_push(c, c->issued - 1);
    bed_turn(&c->bed);
    assert_int_equal(c->status, DP_UNSUPPORTED);
    assert_non_null(strstr(c->reason, "read-only"));
    c->issued++;
    c->push[c->issued - 1] = (struct crash_script){.rows = 1, .tables = 1, .key = {1}, .gradient = 1};
    crash_push(c, c->issued - 1);
    bed_turn(&c->bed);
    assert_int_equal(c->status, DP_UNSUPPORTED);
    c->issued--;
    crash_create(c, 1);
    bed_turn(&c->bed);
    assert_int_equal(c->status, DP_UNSUPPORTED);
    c->bed.now_ns += 40000000000u; /* a write-back cycle would be due */
    bed_turn(&c->bed);
    expect_rows(c);
    drain(c);
    c->bed.host.options.read_only = false;
    expect_no_more(c, before);
}

static void a_clean_store_is_read(void **state)
{
    struct crash *c = trained();
    drain(c);
    reads_and_changes_nothing(c, false);
    assert_int_equal(crash_open(c, false), DP_OK); /* and goes on */
    assert_true(crash_meet(c));
    expect_rows(c);
    drain(c);
    crash_free(c);
}

/* Its last pushes are in the journal alone. */
static void a_store_that_was_killed_is_read(void **state)
{
    struct crash *c = trained();
    crash_close(c);
    for (uint32_t time = 0; time < 2; time++)
        reads_and_changes_nothing(c, true);
    assert_int_equal(crash_open(c, true), DP_OK);
    assert_true(crash_meet(c));
    expect_rows(c);
    drain(c);
    crash_free(c);
}

/* The journal's rows must have room at once, as none can be written back. */
static void a_journal_that_has_no_room_is_refused(void **state)
{
    struct crash *c = trained();
    crash_close(c);
    c->bed.host.options.read_only = c->small = c->may_be_refused = true;
    const struct traces before = traces_of(c);
    assert_int_equal(crash_open(c, true), DP_UNSUPPORTED);
    expect_no_more(c, before);
    c->bed.host.options.read_only = c->small = c->may_be_refused = false;
    assert_int_equal(crash_open(c, true), DP_OK);
    assert_true(crash_meet(c));
    expect_rows(c);
    crash_close(c);
    crash_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_store_is_read),
        cmocka_unit_test(a_store_that_was_killed_is_read),
        cmocka_unit_test(a_journal_that_has_no_room_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

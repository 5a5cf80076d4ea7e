/* A disk that is behind: a push that the journal cannot stage waits, in its place, and no longer than it must.
 * Method    The journal lies on a simulated disk, without a commit thread. The test stands in front of append
 *           (tests/lib/journal_seam.h), which says that the disk is behind while `disk.behind`, and of commit, which does nothing while
 *           `disk.stuck`. */
#include "common/model/mix.h"
#include "tests/lib/journal_seam.h"
#include "tests/unit/server/shard/bed.h"

#include <stdlib.h>
#include <string.h>

#define DIM    2u
#define STREAM (UINT64_C(1) << 63 | 7)
#define SECOND UINT64_C(1000000000)

static struct {
    bool behind, stuck;
    uint32_t tried; /* appends, while it was behind */
} disk;

enum dp_status dp_seam_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                      uint32_t count, uint64_t *lsn, struct dp_error *err)
{
    if (!disk.behind)
        return dp_journal_append(journal, pieces, count, lsn, err);
    disk.tried++;
    return dp_fail(err, DP_BEHIND, "journal: the disk has not taken 16 MiB yet that were appended");
}

void dp_seam_journal_commit(struct dp_journal *journal)
{
    if (!disk.stuck)
        dp_journal_commit(journal);
}

static uint64_t sequence[4], number; /* the next ones: of each session, of the stream */

/* Until nothing goes on, and what the store has completed by then is taken too. */
static void turn(struct bed *bed)
{
    for (uint32_t rounds = 0; rounds < 4; rounds++)
        bed_turn(bed);
}

static uint64_t push_at(struct bed *bed, uint32_t session, uint64_t at, uint64_t key, uint64_t n)
{
    const uint64_t mixed = dp_mix(key);
    return bed_push(bed, session, at, "t", &mixed, 1, DIM, 1, STREAM, n);
}

static uint64_t push(struct bed *bed, uint32_t session, uint64_t key)
{
    return push_at(bed, session, sequence[session]++, key, number++);
}

static uint64_t pull(struct bed *bed, uint32_t session, uint64_t key)
{
    const uint64_t mixed = dp_mix(key);
    return bed_pull(bed, session, sequence[session]++, "t", &mixed, 1);
}

static uint64_t create(struct bed *bed, uint32_t session, const char *name)
{
    const struct dp_table_spec spec = bed_sgd(name, DIM);
    return bed_create(bed, session, sequence[session]++, &spec);
}

static void open_shard(struct bed *bed)
{
    bed_open_shard(bed);
    turn(bed);
    for (uint32_t session = 1; session < 4; session++) {
        bed_meet(bed, session);
        sequence[session] = 1;
    }
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    *state = bed;
    memset(&disk, 0, sizeof disk);
    number = 0;
    bed_init(bed, 8);
    bed_journal(bed, 1);
    bed->timeout_ms = 600000;
    open_shard(bed);
    uint64_t id = create(bed, 1, "t");
    turn(bed);
    bed_expect(bed, id, DP_OK);
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    memset(&disk, 0, sizeof disk);
    bed_close(bed);
    free(bed);
    return 0;
}

/* One push is appended and not durable, the next finds the disk behind. */
static uint64_t fall_behind(struct bed *bed, uint64_t *first)
{
    disk.stuck = true;
    *first = push(bed, 1, 1);
    turn(bed);
    disk.behind = true;
    uint64_t second = push(bed, 1, 2);
    turn(bed);
    assert_null(bed_reply_to(bed, *first));
    assert_null(bed_reply_to(bed, second));
    assert_int_equal(disk.tried, 1);
    return second;
}

/* Write-back syncs the journal for its rows, and so learns first that the disk goes on: whoever is parked is tried in that turn.
 * Planted: only what is durable is answered there; the schedule's assertion finds that nothing will wake them. */
static void progress_that_write_back_sees_wakes_too(void **state)
{
    struct bed *bed = *state;
    disk.stuck = true;
    uint64_t first = push(bed, 1, 1);
    turn(bed);
    bed->now_ns += 30 * SECOND - SECOND / 2; /* a cycle is nearly due */
    disk.behind = true;
    uint64_t second = push(bed, 1, 2);
    turn(bed);
    assert_null(bed_reply_to(bed, second));
    bed->now_ns += SECOND * 3 / 5;
    while (dp_shard_turn(bed->host.shard) && !bed_reply_to(bed, first))
        ;
    bed_expect(bed, first, DP_OK);
    assert_null(bed_reply_to(bed, second));
    memset(&disk, 0, sizeof disk);
    turn(bed);
    bed_expect(bed, second, DP_OK);
}

/* It finds the disk behind again, though it went on in between: another second. */
static void progress_starts_a_new_second(void **state)
{
    struct bed *bed = *state;
    uint64_t first, second = fall_behind(bed, &first);
    bed->now_ns += SECOND - 1;
    disk.stuck = false;
    turn(bed);
    bed_expect(bed, first, DP_OK);
    assert_int_equal(disk.tried, 2);
    bed->now_ns += SECOND - 1;
    turn(bed);
    assert_null(bed_reply_to(bed, second));
    bed->now_ns += 1;
    turn(bed);
    bed_expect(bed, second, DP_AGAIN);
}

static void after_a_second_the_client_hears_of_the_disk(void **state)
{
    struct bed *bed = *state;
    uint64_t first, second = fall_behind(bed, &first), third = push(bed, 1, 2), at = sequence[1] - 2;
    bed->now_ns += SECOND;
    turn(bed);
    assert_non_null(strstr(bed_expect(bed, second, DP_AGAIN)->reply.reason, "the disk has not taken"));
    bed_expect_wait(bed, second, DP_AGAIN, DISK);
    assert_null(bed_reply_to(bed, third)); /* must not overtake it: both come again */
    second = push_at(bed, 1, at, 2, number - 2);
    turn(bed);
    bed_expect(bed, second, DP_AGAIN); /* no second wait, while nothing moves */
    memset(&disk, 0, sizeof disk);
    second = push_at(bed, 1, at, 2, number - 2);
    third = push_at(bed, 1, at + 1, 2, number - 1);
    uint64_t fourth = pull(bed, 1, 2);
    turn(bed);
    bed_expect(bed, first, DP_OK);
    bed_expect(bed, second, DP_OK);
    bed_expect(bed, third, DP_OK);
    assert_true(bed_expect(bed, fourth, DP_OK)->value[0] == -2); /* each once */
}

/* The disk stays behind: each hears it, and what was parked behind another too. */
static void all_that_wait_hear_of_the_disk(void **state)
{
    struct bed *bed = *state;
    uint64_t first, second = fall_behind(bed, &first), third = push(bed, 3, 3), fourth = push(bed, 2, 4);
    turn(bed);
    bed->now_ns += SECOND;
    turn(bed);
    bed_expect(bed, second, DP_AGAIN);
    bed_expect(bed, third, DP_AGAIN);
    bed_expect(bed, fourth, DP_AGAIN);
}

/* Wherever it stands: it is not applied, what its session sent behind it must come again, and the others keep their places. */
static void a_deadline_ends_a_push_that_is_not_first(void **state)
{
    struct bed *bed = *state;
    uint64_t first, second = fall_behind(bed, &first);
    bed->timeout_ms = 300;
    uint64_t third = push(bed, 3, 3), at = sequence[3] - 1, n = number - 1;
    bed->timeout_ms = 600000;
    uint64_t behind = push(bed, 3, 3), fourth = push(bed, 2, 4);
    turn(bed);
    bed->now_ns += SECOND * 3 / 10;
    turn(bed);
    assert_null(bed_reply_to(bed, third)); /* not a moment earlier */
    uint32_t tried = disk.tried, answers = bed->replies;
    bed->now_ns += SECOND / 1000;
    turn(bed);
    assert_int_equal(bed->replies, answers + 1);
    assert_non_null(strstr(bed_expect(bed, third, DP_AGAIN)->reply.reason, "disk is slow"));
    bed_expect_wait(bed, third, DP_AGAIN, DISK);
    assert_null(bed_reply_to(bed, behind));
    assert_int_equal(disk.tried, tried); /* nothing has changed for who is first */
    memset(&disk, 0, sizeof disk);
    third = push_at(bed, 3, at, 3, n);
    turn(bed);
    assert_int_equal(bed->replies, answers + 5);
    assert_int_equal(bed->reply[answers + 1].reply.id, first);
    assert_int_equal(bed->reply[answers + 2].reply.id, second);
    assert_int_equal(bed->reply[answers + 3].reply.id, fourth);
    assert_int_equal(bed->reply[answers + 4].reply.id, third);
    sequence[3] = at + 1;
    behind = push_at(bed, 3, sequence[3]++, 3, n + 1);
    uint64_t pulled = pull(bed, 3, 3);
    turn(bed);
    bed_expect(bed, behind, DP_OK);
    assert_true(bed_expect(bed, pulled, DP_OK)->value[0] == -2); /* each once */
}

/* Who is first hears the same, though the disk goes on now and then. */
static void a_deadline_ends_the_first_push_too(void **state)
{
    struct bed *bed = *state;
    bed->timeout_ms = 300;
    uint64_t first, second = fall_behind(bed, &first);
    bed->timeout_ms = 600000;
    uint64_t third = push(bed, 2, 3);
    turn(bed);
    bed->now_ns += SECOND * 3 / 10 + 1;
    turn(bed);
    assert_non_null(strstr(bed_expect(bed, second, DP_AGAIN)->reply.reason, "disk is slow"));
    assert_null(bed_reply_to(bed, third));
    memset(&disk, 0, sizeof disk);
    turn(bed);
    bed_expect(bed, third, DP_OK); /* it is first now */
}

static void a_journal_that_fails_lets_it_go(void **state)
{
    struct bed *bed = *state;
    uint64_t first, second = fall_behind(bed, &first);
    dp_sim_disk_fail(bed->host.sim, DP_SIM_SYNC, 1, 1, DP_IO);
    disk.stuck = false;
    turn(bed);
    bed_expect(bed, first, DP_AGAIN);
    assert_non_null(strstr(bed_expect(bed, second, DP_AGAIN)->reply.reason, "restart its server"));
    bed_expect_wait(bed, second, DP_AGAIN, FAULT);
}

static void a_drain_waits_for_it(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    uint64_t first, second = fall_behind(bed, &first);
    assert_int_equal(bed_drain(bed, &err), DP_AGAIN);
    assert_null(bed_reply_to(bed, second));
    memset(&disk, 0, sizeof disk);
    assert_int_equal(bed_drained(bed, &err), DP_OK);
    bed_expect(bed, second, DP_OK);
}

static void what_waits_for_the_store_is_left_alone(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    (void)push(bed, 1, 7);
    turn(bed);
    assert_int_equal(bed_drain(bed, &err), DP_OK);
    shard_bed_close(&bed->host);
    open_shard(bed); /* key 7 is in the store, not in the cache */
    (void)push(bed, 1, 1);
    (void)push(bed, 1, 2);
    turn(bed); /* those are */
    dp_fake_store_hold(bed->fake, true);
    uint64_t read = push(bed, 2, 7), made = create(bed, 3, "u");
    turn(bed);
    uint64_t first, second = fall_behind(bed, &first);
    uint64_t reads = dp_fake_store_jobs(bed->fake, DP_STORE_READ);
    assert_int_equal(dp_fake_store_held(bed->fake), 2);
    memset(&disk, 0, sizeof disk);
    turn(bed);
    bed_expect(bed, second, DP_OK);
    assert_null(bed_reply_to(bed, read));
    assert_null(bed_reply_to(bed, made)); /* tried now, it would hear that it is being created */
    dp_fake_store_hold(bed->fake, false);
    uint64_t pulled = pull(bed, 2, 7);
    turn(bed);
    bed_expect(bed, read, DP_OK);
    bed_expect(bed, made, DP_OK);
    assert_int_equal(dp_fake_store_jobs(bed->fake, DP_STORE_READ), reads);
    assert_true(bed_expect(bed, pulled, DP_OK)->value[0] == -2);
}

int main(void)
{
#define DP_BEHIND_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        DP_BEHIND_TEST(progress_that_write_back_sees_wakes_too),
        DP_BEHIND_TEST(progress_starts_a_new_second),
        DP_BEHIND_TEST(after_a_second_the_client_hears_of_the_disk),
        DP_BEHIND_TEST(all_that_wait_hear_of_the_disk),
        DP_BEHIND_TEST(a_deadline_ends_a_push_that_is_not_first),
        DP_BEHIND_TEST(a_deadline_ends_the_first_push_too),
        DP_BEHIND_TEST(a_journal_that_fails_lets_it_go),
        DP_BEHIND_TEST(a_drain_waits_for_it),
        DP_BEHIND_TEST(what_waits_for_the_store_is_left_alone),
    };
    return cmocka_run_group_tests_name("behind", tests, NULL, NULL);
}

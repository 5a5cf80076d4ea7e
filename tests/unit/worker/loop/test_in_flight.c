/* Goal    what an answer says of a push is counted once, in the place that the report shows; totals add up.
 * Method  a client whose answers a script gives. */
#include "common/model/stream.h"
#include "tests/lib/test.h"
#include "worker/loop/in_flight.h"

static struct dp_outcome said;
static enum dp_status status;
static uint64_t too_old;
static uint32_t looks; /* waits in which others are looked after */

enum dp_status __wrap_dp_job_wait(struct dp_job *job, struct dp_ticket *ticket, bool look,
                                  struct dp_outcome *outcome, struct dp_error *err);
enum dp_status __wrap_dp_job_wait(struct dp_job *job, struct dp_ticket *ticket, bool look,
                                  struct dp_outcome *outcome, struct dp_error *err)
{
    looks += look;
    ticket->id = 0;
    *outcome = said;
    return status;
}

uint64_t __wrap_dp_client_too_old(const struct dp_client *client);
uint64_t __wrap_dp_client_too_old(const struct dp_client *client)
{
    return too_old;
}

struct bed {
    struct dp_job job;
    struct dp_progress progress;
    struct dp_worker_stats stats;
    struct dp_in_flight pushes;
};

static void set_up(struct bed *b)
{
    *b = (struct bed){.job.shards = 2};
    b->pushes = (struct dp_in_flight){.job = &b->job, .progress = &b->progress, .stats = &b->stats};
}

static void answered(struct bed *b, uint32_t examples, uint32_t passed, struct dp_outcome outcome)
{
    said = outcome;
    dp_in_flight_next(&b->pushes)->id = 1;
    dp_in_flight_added(&b->pushes, 7, examples, passed, 2);
    assert_int_equal(dp_in_flight_wait(&b->pushes, 0, NULL), DP_OK);
    assert_int_equal(b->pushes.count, 0);
}

/* Planted: a push that one shard of two used is dropped; the empty round is a push; what was passed over is counted twice. */
static void what_was_dropped_is_counted(void **state)
{
    struct bed b;
    set_up(&b);
    const struct dp_dropped *d = &b.stats.dropped;
    answered(&b, 16, 0, (struct dp_outcome){.gaps = 2});
    assert_true(b.stats.pushes == 1 && d->pushes == 0 && d->partly == 0 && d->examples == 0);
    answered(&b, 16, 0, (struct dp_outcome){.gaps = 2, .dropped = 1});
    assert_true(b.stats.pushes == 2 && d->pushes == 0 && d->partly == 1 && d->examples == 0);
    answered(&b, 16, 0, (struct dp_outcome){.gaps = 2, .dropped = 2});
    assert_true(b.stats.pushes == 3 && d->pushes == 1 && d->partly == 1 && d->examples == 16);
    /* Passed over: the one shard that was not as far kept an empty push. */
    answered(&b, 0, 13, (struct dp_outcome){.gaps = 2, .dropped = 1});
    assert_true(b.stats.pushes == 4 && d->pushes == 2 && d->partly == 1 && d->examples == 29);
    assert_true(d->passed == 13 && b.progress.dropped == 29);
    /* In the middle of a step: a part of it was computed. */
    answered(&b, 16, 16, (struct dp_outcome){.gaps = 2});
    assert_true(b.stats.pushes == 5 && d->pushes == 2 && d->partly == 2 && d->examples == 45 &&
                d->passed == 29);
    /* The empty round at the end of an epoch is no push of minibatches. */
    answered(&b, 0, 0, (struct dp_outcome){.gaps = 2, .dropped = 2});
    assert_true(b.stats.pushes == 5 && d->pushes == 2 && d->partly == 2);
    assert_true(b.stats.repeated_examples == 0);
}

/* A worker that has no minibatch in the last round pushes it at once, one step further than it has read.
 * Planted: it counts. */
static void an_empty_push_has_no_clock_gap(void **state)
{
    struct bed b;
    set_up(&b);
    answered(&b, 16, 0, (struct dp_outcome){.gaps = 2, .gap_sum = 3, .gap_max = 2});
    answered(&b, 0, 0, (struct dp_outcome){.gaps = 2, .gap_sum = 6, .gap_max = 3});
    assert_true(b.stats.staleness.gaps == 2 && b.stats.staleness.gap_sum == 3);
    assert_true(b.stats.staleness.gap_max == 2);
    /* In async, too. */
    b.job.seated = true;
    answered(&b, 16, 0,
             (struct dp_outcome){.gaps = 2, .gap_sum = 14, .gap_max = 7, .measured = 2, .staleness_max = 2});
    assert_true(b.stats.staleness.gaps == 4 && b.stats.staleness.gap_max == 7);
    assert_true(b.stats.staleness.own_sum == 2 && b.stats.staleness.own_max == 2);
}

/* A member's: one shard had it of the process before, and the answer of another, which was killed, was lost. Planted: it is repeated. */
static void a_push_that_all_shards_had_is_no_new_one(void **state)
{
    struct bed b;
    set_up(&b);
    answered(&b, 16, 0, (struct dp_outcome){.repeated = true});
    assert_true(b.stats.pushes == 0 && b.stats.repeated_examples == 16);
    answered(&b, 16, 0, (struct dp_outcome){.repeated = true, .measured = 1});
    assert_true(b.stats.pushes == 1 && b.stats.repeated_examples == 16);
    b.pushes.member = true;
    answered(&b, 16, 0, (struct dp_outcome){.repeated = true});
    assert_true(b.stats.pushes == 2 && b.stats.repeated_examples == 16);
}

static uint32_t answers;

void __wrap_dp_work_leases_answered(struct dp_work_leases *leases, uint64_t number);
void __wrap_dp_work_leases_answered(struct dp_work_leases *leases, uint64_t number)
{
    answers++;
}

/* Of leased work: others had pushed it, if its epoch is over; a worker that woke when its run was forgotten may not say that it is done.
 * Planted: whatever is too old was pushed by others. */
static void what_is_too_old_was_pushed_only_if_the_run_is_known(void **state)
{
    static struct dp_cluster cluster;
    struct bed b;
    set_up(&b);
    cluster.training.run = 7;
    b.job.cluster = &cluster;
    b.pushes.leases = (struct dp_work_leases *)&b;
    status = DP_TOO_OLD;
    too_old = dp_stream_of_run(7, 3);
    answered(&b, 16, 0, (struct dp_outcome){.gaps = 2});
    assert_true(answers == 1 && b.stats.repeated_examples == 16);
    too_old = dp_stream_of_run(9, UINT32_MAX);
    dp_in_flight_next(&b.pushes)->id = 1;
    dp_in_flight_added(&b.pushes, 8, 16, 0, 0);
    assert_int_equal(dp_in_flight_wait(&b.pushes, 0, NULL), DP_TOO_OLD);
    assert_true(answers == 1 && b.pushes.count == 1 && b.stats.repeated_examples == 16);
    status = DP_OK;
}

/* Whoever stands in uses the program. */
static void others_are_looked_after_unless_a_device_computes(void **state)
{
    struct bed b;
    uint32_t flying = 0;
    set_up(&b);
    b.pushes.flying = &flying;
    looks = 0;
    answered(&b, 16, 0, (struct dp_outcome){0});
    assert_int_equal(looks, 1);
    flying = 1;
    answered(&b, 16, 0, (struct dp_outcome){0});
    assert_int_equal(looks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_looked_after_unless_a_device_computes),
        cmocka_unit_test(what_was_dropped_is_counted),
        cmocka_unit_test(an_empty_push_has_no_clock_gap),
        cmocka_unit_test(a_push_that_all_shards_had_is_no_new_one),
        cmocka_unit_test(what_is_too_old_was_pushed_only_if_the_run_is_known),
    };
    return cmocka_run_group_tests_name("sent", tests, NULL, NULL);
}

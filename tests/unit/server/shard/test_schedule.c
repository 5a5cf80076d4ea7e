/* Schedule: one request of a session at a time; places kept, order kept, nobody left behind; what a deadline brings, and what is
 * asserted. What must abort does so in a child. */
#include "tests/lib/child.h"
#include "tests/lib/test.h"

#include "server/shard/schedule.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS 4u
#define MANY     200u
#define MS       UINT64_C(1000000)

struct bench {
    struct dp_schedule schedule;
    struct dp_session session[SESSIONS];
    struct dp_waiting waiting[SESSIONS];
};

/* All with one request, in the run queue. */
static struct bench *new_bench(void)
{
    struct bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        b->waiting[i].bytes = 10;
        b->waiting[i].deadline_ns = 100 * (i + 1) * MS;
        dp_session_append(&b->session[i], &b->waiting[i]);
        dp_schedule_add(&b->schedule, &b->waiting[i]);
        dp_schedule_run(&b->schedule, &b->session[i]);
    }
    return b;
}

/* Takes the next, which is session i, and parks it. */
static void park_next(struct bench *b, uint32_t i, enum dp_wait_reason reason)
{
    struct dp_session *next = dp_schedule_take(&b->schedule);
    assert_ptr_equal(next, &b->session[i]);
    dp_schedule_park(&b->schedule, next, reason);
}

static void who_waits_for_the_same_waits_in_order(void **state)
{
    struct bench *b = new_bench();
    for (uint32_t i = 0; i < SESSIONS; i++)
        park_next(b, i, DP_WAIT_ROOM);
    assert_null(dp_schedule_take(&b->schedule));
    assert_ptr_equal(dp_schedule_first(&b->schedule, DP_WAIT_ROOM), &b->session[0]);
    assert_true(dp_schedule_is_first(&b->schedule, DP_WAIT_ROOM, &b->waiting[0]));
    assert_false(dp_schedule_is_first(&b->schedule, DP_WAIT_ROOM, &b->waiting[1]));
    assert_true(dp_schedule_is_first(&b->schedule, DP_WAIT_DISK, &b->waiting[1])); /* nobody waits for that */

    /* Tried again for the same: it keeps its place. */
    dp_schedule_wake_first(&b->schedule, DP_WAIT_ROOM);
    dp_schedule_wake_first(&b->schedule, DP_WAIT_ROOM); /* once is enough */
    park_next(b, 0, DP_WAIT_ROOM);
    assert_null(dp_schedule_take(&b->schedule));
    assert_ptr_equal(dp_schedule_first(&b->schedule, DP_WAIT_ROOM), &b->session[0]);

    /* For something else: it goes behind those who wait for that. */
    dp_schedule_wake(&b->schedule, &b->session[1]);
    park_next(b, 1, DP_WAIT_STORE);
    dp_schedule_wake(&b->schedule, &b->session[0]);
    park_next(b, 0, DP_WAIT_STORE);
    assert_ptr_equal(dp_schedule_first(&b->schedule, DP_WAIT_ROOM), &b->session[2]);
    assert_ptr_equal(dp_schedule_first(&b->schedule, DP_WAIT_STORE), &b->session[1]);
    assert_ptr_equal(b->session[1].next_waiting, &b->session[0]);
    assert_int_equal(b->schedule.queue[DP_WAIT_ROOM].count, 2);
    assert_int_equal(b->schedule.queue[DP_WAIT_STORE].count, 2);
    free(b);
}

/* What the first needed may be there for the next: for the disk it is woken, whatever became of the first. */
static void the_next_who_waits_for_the_disk_follows(void **state)
{
    struct bench *b = new_bench();
    for (uint32_t i = 0; i < SESSIONS; i++)
        park_next(b, i, DP_WAIT_DISK);
    dp_schedule_wake_first(&b->schedule, DP_WAIT_DISK);
    dp_schedule_leave(&b->schedule, dp_schedule_take(&b->schedule)); /* done */
    park_next(b, 1, DP_WAIT_STORE);
    park_next(b, 2, DP_WAIT_DISK);
    assert_null(dp_schedule_take(&b->schedule));
    dp_schedule_wake(&b->schedule, &b->session[3]); /* not the first: nobody follows */
    dp_schedule_leave(&b->schedule, dp_schedule_take(&b->schedule));
    assert_null(dp_schedule_take(&b->schedule));
    assert_int_equal(b->schedule.queue[DP_WAIT_DISK].count, 1);
    free(b);
}

static void whose_deadline_passed_is_tried_wherever_it_stands(void **state)
{
    struct bench *b = new_bench();
    for (uint32_t i = 0; i < SESSIONS; i++)
        park_next(b, i, DP_WAIT_ROOM);
    dp_schedule_wake_late(&b->schedule, 100 * MS); /* not passed: it is the last moment of the first */
    assert_null(dp_schedule_take(&b->schedule));
    dp_schedule_wake_late(&b->schedule, 201 * MS);
    assert_ptr_equal(dp_schedule_take(&b->schedule), &b->session[0]);
    assert_ptr_equal(dp_schedule_take(&b->schedule), &b->session[1]);
    assert_null(dp_schedule_take(&b->schedule));
    dp_schedule_leave(&b->schedule, &b->session[1]);
    assert_int_equal(b->schedule.queue[DP_WAIT_ROOM].count, 3);
    assert_ptr_equal(b->session[0].next_waiting, &b->session[2]);
    b->waiting[2].deadline_ns = 200 * MS;
    dp_schedule_wake_late(&b->schedule, 202 * MS - 1); /* turns may be short: it looks once a millisecond */
    assert_null(dp_schedule_take(&b->schedule));
    dp_schedule_wake_late(&b->schedule, 202 * MS);
    assert_ptr_equal(dp_schedule_take(&b->schedule), &b->session[2]);
    free(b);
}

/* The last of a queue leaves, and another comes: the queue's end is where it was. */
static void a_queue_ends_with_its_last(void **state)
{
    struct bench *b = new_bench();
    park_next(b, 0, DP_WAIT_MARK);
    park_next(b, 1, DP_WAIT_MARK);
    dp_schedule_wake(&b->schedule, &b->session[1]);
    park_next(b, 2, DP_WAIT_MARK);
    park_next(b, 3, DP_WAIT_STORE);
    dp_schedule_leave(&b->schedule, dp_schedule_take(&b->schedule));
    dp_schedule_wake(&b->schedule, &b->session[3]);
    park_next(b, 3, DP_WAIT_MARK);
    assert_ptr_equal(b->session[0].next_waiting, &b->session[2]);
    assert_ptr_equal(b->session[2].next_waiting, &b->session[3]);
    assert_null(b->session[3].next_waiting);
    assert_ptr_equal(b->schedule.queue[DP_WAIT_MARK].last, &b->session[3]);
    free(b);
}

static void what_waits_is_counted(void **state)
{
    struct bench *b = new_bench();
    assert_int_equal(b->schedule.requests, SESSIONS);
    assert_int_equal(b->schedule.bytes, 10 * SESSIONS);
    dp_schedule_remove(&b->schedule, dp_session_take_first(&b->session[2]));
    assert_int_equal(b->schedule.requests, SESSIONS - 1);
    assert_int_equal(b->schedule.bytes, 10 * (SESSIONS - 1));
    for (uint32_t i = 0; i < 2; i++)
        (void)dp_schedule_take(&b->schedule);
    b->session[2].runnable = false;
    dp_schedule_run(&b->schedule, &b->session[2]); /* it has none: it is not to be tried */
    assert_false(b->session[2].runnable);
    free(b);
}

/* Planted: a deadline wakes those who wait for a job, or nobody. */
static void a_deadline_wakes_who_might_wait_for_ever(void **state)
{
    static const enum dp_wait_reason reasons[] = {DP_WAIT_STORE, DP_WAIT_MARK, DP_WAIT_ROOM, DP_WAIT_DISK};
    struct dp_error err = {0};
    for (size_t r = 0; r < sizeof reasons / sizeof reasons[0]; r++) {
        enum dp_wait_reason reason = reasons[r];
        struct bench *b = new_bench();
        for (uint32_t i = 0; i < SESSIONS; i++)
            park_next(b, i, reason);
        b->waiting[2].deadline_ns = 50 * MS; /* wherever it stands */
        dp_schedule_wake_late(&b->schedule, 100 * MS);
        assert_ptr_equal(dp_schedule_take(&b->schedule),
                         reason == DP_WAIT_ROOM || reason == DP_WAIT_DISK ? &b->session[2] : NULL);
        assert_null(dp_schedule_take(&b->schedule));
        assert_int_equal(dp_schedule_late(reason, 3, &err), reason == DP_WAIT_DISK ? DP_AGAIN : DP_TIMEOUT);
        assert_int_equal(err.wait.reason, reason);
        assert_non_null(strstr(err.text, "shard 3"));
        assert_non_null(strstr(err.text, reason == DP_WAIT_DISK ? "was not applied" : dp_wait_text(reason)));
        free(b);
    }
    assert_int_equal(dp_schedule_late(DP_WAIT_NONE, 3, &err), DP_TIMEOUT); /* it had no turn */
    assert_int_equal(err.wait.reason, DP_WAIT_QUEUE);
}

static void check(const struct bench *b, bool is_waker)
{
    bool will_wake[DP_SCHEDULE_QUEUES];
    for (uint32_t i = 0; i < DP_SCHEDULE_QUEUES; i++)
        will_wake[i] = is_waker;
    dp_schedule_check(&b->schedule, will_wake);
}

static void hellos_wait_in_order(void **state)
{
    struct bench *b = new_bench();
    struct dp_waiting *first = calloc(1, sizeof *first), *second = calloc(1, sizeof *second),
                      *at[2] = {first, second};
    assert_true(first && second);
    assert_false(dp_schedule_waits(&b->schedule));
    for (uint32_t i = 0; i < 2; i++) {
        dp_schedule_park_hello(&b->schedule, &at[i]);
        assert_null(at[i]);
    }
    assert_true(dp_schedule_waits(&b->schedule));
    assert_int_equal(b->schedule.requests, SESSIONS + 2);
    check(b, true);
    assert_ptr_equal(dp_schedule_take_hello(&b->schedule), first);
    assert_int_equal(b->schedule.requests, SESSIONS + 1);
    dp_schedule_clear(&b->schedule); /* frees the second */
    assert_null(dp_schedule_take_hello(&b->schedule));
    free(first);
    free(b);
}

/* Who is to be tried needs no waker. */
static void one_who_is_tried_is_enough(void **state)
{
    struct bench *b = new_bench();
    for (uint32_t i = 0; i < SESSIONS; i++)
        park_next(b, i, DP_WAIT_ROOM);
    check(b, true);
    dp_schedule_wake(&b->schedule, &b->session[2]);
    check(b, false);
    free(b);
}

static void park_twice(struct bench *b)
{
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_ROOM);
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_DISK);
}

static void park_for_no_reason(struct bench *b)
{
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_NONE);
}

static void park_for_a_reason_without_a_line(struct bench *b)
{
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_REGISTER);
}

static void park_who_is_to_be_tried(struct bench *b)
{
    dp_schedule_run(&b->schedule, &b->session[0]);
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_ROOM);
}

static void forget_to_wake(struct bench *b)
{
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_STORE);
    check(b, false);
}

static void forget_to_wake_a_hello(struct bench *b)
{
    struct dp_waiting *hello = calloc(1, sizeof *hello);
    dp_schedule_park_hello(&b->schedule, &hello);
    check(b, false);
}

/* So many that not each of them is looked at. */
static void forget_to_wake_many(struct bench *b)
{
    struct dp_session *session = calloc(MANY, sizeof *session);
    for (uint32_t i = 0; i < MANY; i++) {
        session[i].first = calloc(1, sizeof *session[i].first);
        dp_schedule_add(&b->schedule, session[i].first);
        dp_schedule_park(&b->schedule, &session[i], DP_WAIT_STORE);
    }
    check(b, true);
    dp_schedule_wake(&b->schedule, &session[7]);
    check(b, false);
    dp_schedule_park(&b->schedule, dp_schedule_take(&b->schedule), DP_WAIT_STORE);
    check(b, true);
    check(b, false);
}

static void leave_while_parked(struct bench *b)
{
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_STORE);
    dp_schedule_leave(&b->schedule, &b->session[0]);
}

static void change_the_reason_by_hand(struct bench *b)
{
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_STORE);
    b->session[0].waits = DP_WAIT_ROOM;
    check(b, true);
}

static void wake_by_hand(struct bench *b)
{
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_STORE);
    dp_schedule_park(&b->schedule, &b->session[1], DP_WAIT_STORE);
    b->session[0].parked = false; /* without the run queue */
    check(b, true);
}

static void nothing(struct bench *b)
{
    dp_schedule_park(&b->schedule, &b->session[0], DP_WAIT_STORE);
    check(b, true);
}

static bool aborts(void (*mistake)(struct bench *))
{
    pid_t child = fork();
    if (child == 0) {
        struct bench *b = new_bench();
        (void)close(STDERR_FILENO);
        for (uint32_t i = 0; i < SESSIONS; i++)
            (void)dp_schedule_take(&b->schedule);
        mistake(b);
        _exit(0);
    }
    return dp_exit_of(child) == -SIGABRT;
}

static void mistakes_are_asserted(void **state)
{
    void (*const mistakes[])(struct bench *) = {park_twice,
                                                park_for_no_reason,
                                                park_for_a_reason_without_a_line,
                                                park_who_is_to_be_tried,
                                                forget_to_wake,
                                                forget_to_wake_a_hello,
                                                forget_to_wake_many,
                                                leave_while_parked,
                                                change_the_reason_by_hand,
                                                wake_by_hand};
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        if (!aborts(mistakes[i]))
            fail_msg("mistake %zu was not asserted", i);
    assert_false(aborts(nothing));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_the_same_waits_in_order),
        cmocka_unit_test(the_next_who_waits_for_the_disk_follows),
        cmocka_unit_test(whose_deadline_passed_is_tried_wherever_it_stands),
        cmocka_unit_test(a_queue_ends_with_its_last),
        cmocka_unit_test(what_waits_is_counted),
        cmocka_unit_test(a_deadline_wakes_who_might_wait_for_ever),
        cmocka_unit_test(hellos_wait_in_order),
        cmocka_unit_test(one_who_is_tried_is_enough),
        cmocka_unit_test(mistakes_are_asserted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

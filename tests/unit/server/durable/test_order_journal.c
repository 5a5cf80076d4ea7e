/* An order's journal with its threads, on a real disk: opened beside pushes that go on, used, removed; dropped and cleared at any moment. */
#include "server/durable/order_journal.h"

#include "tests/lib/patience.h"
#include "tests/lib/test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct ordered {
    char directory[64];
    struct dp_disk disk;
    struct dp_store store;
    struct dp_io_jobs jobs;
    struct dp_shard_base base;
    struct dp_journaling journaling;
    struct dp_journal_options options;
    struct dp_order_journal order;
};

static void lost(void *context)
{
    (void)context;
    fail_msg("a journal that is there for an order is never missed");
}

static int set_up(void **state)
{
    struct ordered *t = calloc(1, sizeof *t);
    struct dp_error err = {0};
    assert_non_null(t);
    (void)snprintf(t->directory, sizeof t->directory, "/tmp/dp_order_XXXXXX");
    assert_non_null(mkdtemp(t->directory));
    assert_int_equal(dp_disk_open(t->directory, &t->disk, &err), DP_OK);
    t->base.shards = 1;
    t->base.clock = dp_clock_real();
    t->jobs.store = &t->store;
    t->journaling = (struct dp_journaling){.base = &t->base, .jobs = &t->jobs, .lost = lost};
    t->options = (struct dp_journal_options){.disk = &t->disk, .commit_thread = true};
    t->order = (struct dp_order_journal){.base = &t->base,
                                         .journaling = &t->journaling,
                                         .jobs = &t->jobs,
                                         .options = &t->options,
                                         .secret = 5};
    dp_journaling_start(&t->journaling, 100);
    *state = t;
    return 0;
}

static void count(void *context, const char *name)
{
    (void)name;
    ++*(uint32_t *)context;
}

static uint32_t files(const struct ordered *t)
{
    struct dp_error err = {0};
    uint32_t n = 0;
    assert_int_equal(t->disk.list(t->disk.self, count, &n, &err), DP_OK);
    return n;
}

static void remove_file(void *context, const char *name)
{
    const struct ordered *t = context;
    assert_int_equal(t->disk.remove(t->disk.self, name, NULL), DP_OK);
}

static int tear_down(void **state)
{
    struct ordered *t = *state;
    dp_order_journal_clear(&t->order);
    dp_journaling_clear(&t->journaling);
    (void)t->disk.list(t->disk.self, remove_file, t, NULL);
    dp_disk_close(&t->disk);
    assert_int_equal(rmdir(t->directory), 0);
    free(t);
    return 0;
}

/* Answered at once, whatever the journal does. */
static void push(struct ordered *t)
{
    const struct dp_request push = {.kind = DP_REQUEST_PUSH, .stream = 7, .number = t->journaling.lsn};
    struct dp_error err = {0};
    enum dp_appended appended;
    while ((appended = dp_journaling_append(&t->journaling, &push, NULL, 1, DP_INVALID, &err)) !=
           DP_APPENDED) {
        assert_true(err.status == DP_AGAIN || err.status == DP_BEHIND); /* a segment is made */
        (void)sched_yield();
    }
    assert_true(t->journaling.durable == t->journaling.lsn && t->journaling.synced == t->journaling.lsn);
}

static void until_on(struct ordered *t)
{
    dp_order_journal_begin(&t->order);
    while (!dp_order_journal_turn(&t->order)) {
        assert_null(dp_order_journal_failed(&t->order));
        push(t);
    }
    assert_true(dp_order_journal_is_on(&t->order));
    assert_int_equal(t->order.from, t->journaling.lsn);
}

static void until_off(struct ordered *t)
{
    dp_order_journal_drop(&t->order);
    while (!dp_order_journal_is_off(&t->order)) {
        push(t);
        assert_false(dp_order_journal_turn(&t->order));
    }
    assert_int_equal(files(t), 0);
}

static enum dp_status see(void *context, uint64_t lsn, const void *record, size_t bytes, struct dp_error *err)
{
    struct dp_record decoded;
    static struct dp_request request;
    (void)lsn;
    enum dp_status st = dp_record_decode(record, bytes, &decoded, &request, err);
    *(uint64_t *)context += st == DP_OK && decoded.kind == DP_RECORD_PUSH;
    return st;
}

static void what_is_pushed_behind_it_is_in_it(void **state)
{
    struct ordered *t = *state;
    for (int order = 0; order < 8; order++) {
        struct dp_error err = {0};
        struct dp_journal_figures figures;
        uint64_t seen = 0;
        until_on(t);
        for (int i = 0; i < 20; i++)
            push(t);
        while (dp_journaling_readable(&t->journaling) < t->journaling.lsn) {
            dp_journaling_commit(&t->journaling);
            dp_journaling_turn(&t->journaling);
        }
        struct dp_journal_options read = t->options;
        read.replay_after = t->order.from;
        read.read_until = t->journaling.lsn;
        read.beside_writer = true;
        read.replay = see;
        read.replay_context = &seen;
        assert_int_equal(dp_journal_read(&read, &figures, &err), DP_OK);
        assert_int_equal(seen, 20);
        until_off(t);
    }
}

static void it_may_be_dropped_while_it_is_opened(void **state)
{
    struct ordered *t = *state;
    for (int order = 0; order < 8; order++) {
        dp_order_journal_begin(&t->order);
        for (int i = 0; i < order; i++)
            push(t);
        until_off(t);
    }
    dp_order_journal_begin(&t->order); /* torn down meanwhile */
}

static void what_another_one_left_goes(void **state)
{
    struct ordered *t = *state;
    struct dp_error err = {0};
    struct dp_journal *left = NULL;
    struct dp_journal_options options = t->options;
    const struct dp_journal_piece piece = {"record", 6};
    uint64_t lsn = 0;
    options.incarnation = 40;
    options.replay_after = 100000;
    options.replay = see;
    options.replay_context = &lsn;
    assert_int_equal(dp_journal_open(&options, &left, &err), DP_OK);
    assert_int_equal(dp_journal_append(left, &piece, 1, &lsn, &err), DP_OK);
    dp_journal_close(&left);
    assert_true(files(t) > 0);
    until_on(t);
    until_off(t);
    until_on(t); /* torn down while it is on */
}

/* With a small budget, and pushes while it is opened whose VOIDs take four times as much. */
static void begin_small(struct ordered *t)
{
    t->options.segment_bytes = t->options.first_bytes = 64u << 10;
    t->options.budget_bytes = 256u << 10;
    dp_order_journal_begin(&t->order);
    for (int i = 0; i < 16384; i++)
        push(t);
}

static void what_came_while_it_was_opened_does_not_fill_it(void **state)
{
    struct ordered *t = *state;
    const time_t until = time(NULL) + 20 * DP_PATIENCE;
    begin_small(t);
    while (!dp_order_journal_turn(&t->order) && !dp_order_journal_failed(&t->order) && time(NULL) < until)
        (void)sched_yield();
    assert_true(dp_order_journal_is_on(&t->order));
    assert_int_equal(t->order.from, 100 + 16384);
    until_off(t);
}

static uint64_t read_ns(void *ns)
{
    return *(uint64_t *)ns;
}

static void one_that_is_not_filled_in_time_fails(void **state)
{
    struct ordered *t = *state;
    uint64_t now_ns = 0;
    t->base.clock = (struct dp_clock){read_ns, &now_ns};
    begin_small(t);
    while (t->order.stage == DP_ORDER_JOURNAL_OPENING) {
        assert_false(dp_order_journal_turn(&t->order));
        (void)sched_yield();
    }
    assert_null(dp_order_journal_failed(&t->order));
    now_ns += UINT64_C(30000000001);
    assert_false(dp_order_journal_turn(&t->order));
    assert_non_null(dp_order_journal_failed(&t->order));
    assert_non_null(strstr(dp_order_journal_failed(&t->order)->text, "still lacks"));
    until_off(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_pushed_behind_it_is_in_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_may_be_dropped_while_it_is_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_another_one_left_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_came_while_it_was_opened_does_not_fill_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_not_filled_in_time_fails, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

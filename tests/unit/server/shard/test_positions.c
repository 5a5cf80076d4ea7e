/* Positions: a shard tells which numbers of a stream it has applied, and what it tells outlives the loss of power. Its
 * journal lies on a simulated disk whose sync waits at a gate, so that the test decides when a push is durable. */
#include "server/ids/push_ids.h"
#include "tests/unit/server/shard/bed.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define STREAM  (DP_STREAM_TRAINING | (uint64_t)1 << 32 | 5)
#define SESSION 9u

/* The commit thread waits here while it is shut. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut;
    uint64_t wakes;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct dp_disk sim_functions;

static enum dp_status gated_sync(void *self, struct dp_file *file, struct dp_error *err)
{
    (void)pthread_mutex_lock(&gate.lock);
    while (gate.shut)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
    return sim_functions.sync(self, file, err);
}

static void set_gate(bool shut)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.shut = shut;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static void wake(void *context)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.wakes++;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static uint64_t sequence; /* the next one */

/* Turns until it is answered; each time nothing can be done it waits for the commit thread. */
static const struct bed_reply *await(struct bed *bed, uint64_t id)
{
    for (uint32_t i = 0; i < 1000; i++) {
        while (bed_one_turn(bed))
            ;
        if (bed_reply_to(bed, id))
            return bed_reply_to(bed, id);
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 10000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_mutex_lock(&gate.lock);
        uint64_t before = gate.wakes;
        while (gate.wakes == before && pthread_cond_timedwait(&gate.changed, &gate.lock, &until) == 0)
            ;
        (void)pthread_mutex_unlock(&gate.lock);
    }
    fail_msg("request %u was not answered", (unsigned)id);
    return NULL;
}

static void open_shard(struct bed *bed)
{
    bed_open_shard(bed);
    sequence = 1;
    assert_int_equal(await(bed, bed_hello(bed, SESSION, 1, false))->reply.status, DP_OK);
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    *state = bed;
    bed_init(bed, 8);
    bed_journal(bed, 1);
    bed->timeout_ms = 600000;
    sim_functions = bed->host.disk;
    bed->host.disk.sync = gated_sync;
    bed->host.options.journal.commit_thread = true;
    bed->host.options.journal.wake = wake;
    open_shard(bed);
    return 0;
}

static void close_shard(struct bed *bed)
{
    set_gate(false);
    while (bed_one_turn(bed))
        ;
    shard_bed_close(&bed->host);
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    close_shard(bed);
    bed_clear(bed);
    free(bed);
    return 0;
}

/* Without rows: a push like any other. */
static uint64_t push(struct bed *bed, uint64_t stream, uint64_t number)
{
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = SESSION,
                                 .sequence = sequence++,
                                 .stream = stream,
                                 .number = number,
                                 .rate = 1};
    return bed_send(bed, &request, NULL, 0);
}

static void pushed(struct bed *bed, uint64_t stream, uint64_t number)
{
    assert_int_equal(await(bed, push(bed, stream, number))->reply.status, DP_OK);
}

static uint64_t ask(struct bed *bed, uint64_t stream, uint64_t from, uint32_t count)
{
    struct dp_request request = {
        .kind = DP_REQUEST_POSITIONS_GET, .stream = stream, .number = from, .numbers = count};
    return bed_send(bed, &request, NULL, 0);
}

static bool bit(const struct bed_reply *answer, uint32_t i)
{
    return answer->word[i / 64] >> i % 64 & 1;
}

static void what_was_applied_is_told_and_nothing_else(void **state)
{
    struct bed *bed = *state;
    static const uint64_t numbers[] = {0, 1, 2, 5, 63, 64, 130, 5000};
    const struct bed_reply *answer = await(bed, ask(bed, STREAM, 0, 200));
    assert_int_equal(answer->reply.kind, DP_REPLY_POSITIONS);
    assert_int_equal(answer->values * 4, 32); /* 200 bits */
    for (uint32_t i = 0; i < 256; i++)
        assert_false(bit(answer, i));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        pushed(bed, STREAM, numbers[i]);
    pushed(bed, STREAM + 1, 3); /* another epoch */
    for (uint64_t from = 0; from < 140; from += 7) {
        answer = await(bed, ask(bed, STREAM, from, 130));
        assert_int_equal(answer->values * 4, 24);
        for (uint32_t i = 0; i < 192; i++) {
            bool is = false;
            for (size_t k = 0; i < 130 && k < sizeof numbers / sizeof numbers[0]; k++)
                is |= numbers[k] == from + i;
            assert_int_equal(bit(answer, i), is);
        }
    }
    answer = await(bed, ask(bed, STREAM, 4000, DP_POSITIONS_MAX));
    assert_true(answer->values * 4 == sizeof answer->word && bit(answer, 1000) && !bit(answer, 999));
    answer = await(bed, ask(bed, STREAM, UINT64_MAX - 64, 64)); /* far above the window */
    assert_true(answer->reply.status == DP_OK && answer->word[0] == 0);
}

static void a_refused_number_is_not_told_as_applied(void **state)
{
    struct bed *bed = *state;
    pushed(bed, STREAM, 0);
    uint64_t refused = bed_push(bed, SESSION, sequence++, "no such table", NULL, 0, 1, 1, STREAM, 1);
    assert_int_not_equal(await(bed, refused)->reply.status, DP_OK);
    pushed(bed, STREAM, 2);
    assert_int_equal(await(bed, ask(bed, STREAM, 0, 64))->word[0], 5);
}

static void a_forgotten_stream_is_told_from_a_new_one(void **state)
{
    struct bed *bed = *state;
    for (uint64_t i = 0; i <= DP_PUSH_EPOCHS_MAX; i++) {
        (void)push(bed, STREAM + i, 0);
        (void)bed_one_turn(bed);
        bed->replies = 0;
    }
    const struct bed_reply *answer = await(bed, ask(bed, STREAM, 0, 1));
    assert_int_equal(answer->reply.status, DP_TOO_OLD);
    assert_non_null(strstr(answer->reply.reason, "forgotten"));
    assert_int_equal(await(bed, ask(bed, STREAM + 1, 0, 1))->word[0], 1);
    assert_int_equal(await(bed, ask(bed, STREAM + DP_PUSH_EPOCHS_MAX + 1, 0, 1))->reply.status, DP_OK);
}

/* Planted: answered at once. */
static void nothing_is_told_before_it_is_durable(void **state)
{
    struct bed *bed = *state;
    pushed(bed, STREAM, 0);
    set_gate(true);
    uint64_t second = push(bed, STREAM, 1);
    (void)bed_one_turn(bed);
    uint64_t asked = ask(bed, STREAM, 0, 64);
    uint64_t third = push(bed, STREAM, 2);
    for (int i = 0; i < 10; i++)
        (void)bed_one_turn(bed);
    assert_null(bed_reply_to(bed, second));
    assert_null(bed_reply_to(bed, asked));
    set_gate(false);
    assert_int_equal(await(bed, asked)->word[0], 3); /* the third came after the question */
    assert_int_equal(await(bed, third)->reply.status, DP_OK);
}

/* Whatever is told survives: the sync that would have made number 1 durable fails, and the power goes. */
static void what_a_lost_journal_had_is_not_told(void **state)
{
    struct bed *bed = *state;
    pushed(bed, STREAM, 0);
    set_gate(true);
    uint64_t lost = push(bed, STREAM, 1);
    (void)bed_one_turn(bed);
    uint64_t held = ask(bed, STREAM, 0, 64);
    dp_sim_disk_fail(bed->host.sim, DP_SIM_SYNC, 1, 1, DP_IO);
    set_gate(false);
    assert_int_equal(await(bed, held)->reply.status, DP_AGAIN);
    assert_int_equal(await(bed, lost)->reply.status, DP_AGAIN);
    const struct bed_reply *answer = await(bed, ask(bed, STREAM, 0, 64));
    assert_int_equal(answer->reply.status, DP_AGAIN);
    assert_non_null(strstr(answer->reply.reason, "restart its server"));
    shard_bed_cut(&bed->host);
    close_shard(bed);
    dp_sim_disk_restart(bed->host.sim, DP_SIM_NOTHING);
    dp_sim_disk_cut_at(bed->host.sim, 0);
    bed->host.options.recovers = true;
    open_shard(bed);
    assert_int_equal(await(bed, ask(bed, STREAM, 0, 64))->word[0], 1);
    pushed(bed, STREAM, 1);
    assert_int_equal(await(bed, ask(bed, STREAM, 0, 64))->word[0], 3);
}

static void answers_that_wait_are_bounded_and_stopping_is_said(void **state)
{
    struct bed *bed = *state;
    set_gate(true);
    (void)push(bed, STREAM, 0);
    (void)bed_one_turn(bed);
    uint64_t first = bed->next_id;
    for (int i = 0; i < 64; i++)
        (void)ask(bed, STREAM, 0, 64);
    uint64_t one_more = ask(bed, STREAM, 0, 64);
    assert_int_equal(bed_reply_to(bed, one_more)->reply.status, DP_AGAIN);
    assert_null(bed_reply_to(bed, first));
    set_gate(false);
    for (uint64_t id = first; id < one_more; id++)
        assert_int_equal(await(bed, id)->word[0], 1);
    dp_shard_drain(bed->host.shard);
    assert_int_equal(await(bed, ask(bed, STREAM, 0, 64))->reply.status, DP_STOPPING);
}

int main(void)
{
#define DP_POSITIONS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        DP_POSITIONS_TEST(what_was_applied_is_told_and_nothing_else),
        DP_POSITIONS_TEST(a_refused_number_is_not_told_as_applied),
        DP_POSITIONS_TEST(a_forgotten_stream_is_told_from_a_new_one),
        DP_POSITIONS_TEST(nothing_is_told_before_it_is_durable),
        DP_POSITIONS_TEST(what_a_lost_journal_had_is_not_told),
        DP_POSITIONS_TEST(answers_that_wait_are_bounded_and_stopping_is_said),
    };
    return cmocka_run_group_tests_name("positions", tests, NULL, NULL);
}

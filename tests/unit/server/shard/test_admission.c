/* Which streams pushes may name: what was given out, by shard 0's count, or by the clock. What was not uses up nothing and
 * leaves nothing; whatever was pushed, a new client and a new run are served, after a restart too. A push that a restored checkpoint has on
 * some shards only is refused with that reason. */
#include "tests/unit/server/shard/bed.h"

#include "common/base/bytes.h"
#include "common/model/stream.h"
#include "server/ids/push_ids.h"

#include <stdlib.h>
#include <string.h>

#define SESSION UINT64_C(11)
#define RUN(n)  (DP_STREAM_TRAINING | (uint64_t)(n) << 32)
#define WALL_S  UINT64_C(1800000000) /* January 2027 */
#define DAY_S   UINT64_C(86400)
#define RUNS    (WALL_S - UINT64_C(1767225600) + DAY_S) /* the greatest run of that second */

static uint64_t sequence; /* of SESSION; 0: the shard was started, and has not met it */

/* The answer to one push without rows. */
static const struct dp_reply *push(struct bed *bed, uint64_t stream, uint64_t number)
{
    if (sequence == 0)
        bed_meet(bed, SESSION);
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = SESSION,
                                 .sequence = ++sequence,
                                 .stream = stream,
                                 .number = number,
                                 .rate = 1};
    bed->replies = 0;
    uint64_t id = bed_send(bed, &request, NULL, 0);
    for (uint32_t i = 0; i < 100 && !bed_reply_to(bed, id); i++)
        (void)dp_shard_turn(bed->host.shard);
    assert_non_null(bed_reply_to(bed, id));
    const struct dp_reply *reply = &bed_reply_to(bed, id)->reply;
    sequence -= reply->status == DP_AGAIN; /* it is sent again under the same one */
    return reply;
}

static void restart(struct bed *bed, uint64_t wall_s)
{
    bed->wall_s = wall_s;
    bed_restart(bed);
    sequence = 0;
}

static void open_at(struct bed *bed, uint32_t index, uint32_t shards, uint64_t wall_s)
{
    bed_open(bed, index, shards);
    restart(bed, wall_s);
}

static const struct dp_reply *greet(struct bed *bed, uint64_t session, bool want_stream, uint64_t above)
{
    struct dp_request request = {.kind = DP_REQUEST_HELLO,
                                 .session = session,
                                 .client = "test",
                                 .next_sequence = 1,
                                 .want_stream = want_stream,
                                 .stream_above = above};
    bed->replies = 0;
    uint64_t id = bed_send(bed, &request, NULL, 0);
    bed_turn(bed);
    assert_non_null(bed_reply_to(bed, id));
    return &bed_reply_to(bed, id)->reply;
}

static void shard_0_takes_the_streams_that_it_gave(void **state)
{
    struct bed bed;
    open_at(&bed, 0, 2, WALL_S);
    uint64_t first = greet(&bed, 1, true, 0)->stream;
    assert_int_equal(first, WALL_S << 20);
    assert_int_equal(push(&bed, first, 0)->status, DP_OK);
    assert_int_equal(push(&bed, first - 1, 0)->status, DP_OK); /* of a store before */
    static const uint64_t others[] = {1, 2, UINT64_C(1) << 40, DP_STREAM_TRAINING - 1 - (WALL_S << 20)};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct dp_reply *reply = push(&bed, first + others[i], 0);
        assert_int_equal(reply->status, DP_INVALID);
        assert_non_null(strstr(reply->reason, "handshake"));
    }
    uint64_t second = greet(&bed, 2, true, 0)->stream;
    assert_int_equal(second, first + 1);
    assert_false(push(&bed, second, 0)->repeated); /* what was refused used up nothing */
    assert_int_equal(bed_counter(&bed, "pushes"), 3);
    bed_close(&bed);
}

/* A minute's difference of clocks is waited for. */
static void other_shards_take_what_the_clock_allows(void **state)
{
    struct bed bed;
    open_at(&bed, 1, 2, WALL_S);
    bed.now_ns += UINT64_C(5000000000);
    const uint64_t last = dp_stream_of_client(WALL_S + 5 + DAY_S);
    assert_int_equal(push(&bed, 1, 0)->status, DP_OK);
    assert_int_equal(push(&bed, last, 0)->status, DP_OK);
    assert_int_equal(push(&bed, last + 1, 0)->status, DP_AGAIN);
    assert_int_equal(push(&bed, last + 1, 0)->wait.reason, DP_WAIT_STREAMS);
    bed.now_ns += UINT64_C(1000000000);
    assert_int_equal(push(&bed, last + 1, 0)->status, DP_OK);
    const struct dp_reply *reply = push(&bed, last + (UINT64_C(62) << 20), 0);
    assert_int_equal(reply->status, DP_INVALID);
    assert_non_null(strstr(reply->reason, "clocks"));
    bed_close(&bed);
}

/* A server that started before its machine knew the time. */
static void a_clock_that_is_set_is_followed(void **state)
{
    struct bed bed;
    open_at(&bed, 1, 2, 0);
    assert_int_equal(push(&bed, WALL_S << 20, 0)->status, DP_INVALID);
    assert_int_equal(push(&bed, RUN(RUNS), 0)->status, DP_INVALID);
    bed.wall_s = WALL_S;
    assert_int_equal(push(&bed, WALL_S << 20, 0)->status, DP_OK);
    assert_int_equal(push(&bed, RUN(RUNS), 0)->status, DP_OK);
    bed_close(&bed);
}

static void runs_count_up_with_the_clock(void **state)
{
    struct bed bed;
    open_at(&bed, 0, 1, WALL_S);
    assert_int_equal(push(&bed, RUN(7) + 3, 0)->status, DP_OK);
    assert_int_equal(push(&bed, RUN(RUNS) + UINT32_MAX, 0)->status, DP_OK);
    assert_int_equal(push(&bed, RUN(RUNS + 1), 0)->status, DP_AGAIN);
    const struct dp_reply *reply = push(&bed, RUN(RUNS + 61), 0);
    assert_int_equal(reply->status, DP_INVALID);
    assert_non_null(strstr(reply->reason, "run 32860861 ")); /* which, */
    assert_non_null(strstr(reply->reason, "up to 32860800"));
    assert_non_null(strstr(reply->reason, "use 32860801")); /* and what to do */
    assert_int_equal(push(&bed, RUN(INT32_MAX), 0)->status, DP_INVALID);
    restart(&bed, WALL_S - 30 * DAY_S); /* a clock set back: known ones go on */
    assert_int_equal(push(&bed, RUN(RUNS) + 8, 0)->status, DP_OK);
    assert_int_equal(push(&bed, RUN(RUNS - 1), 0)->status, DP_INVALID);
    bed_close(&bed);
}

/* The refusal of a push that breaks a rule besides is not remembered either. */
static void what_nobody_was_given_uses_up_nothing(void **state)
{
    struct bed bed;
    open_at(&bed, 0, 1, WALL_S);
    bed_meet(&bed, 5);
    struct dp_table_spec spec = bed_sgd("t", 2);
    bed_make_table(&bed, 5, 1, &spec);
    uint64_t key = 3, stream = WALL_S << 20;
    for (uint32_t i = 0; i < 10; i++) {
        uint64_t id = bed_push(&bed, 5, 2 + i, "none", &key, 1, 2, 1, i % 2 ? stream : RUN(INT32_MAX), i / 2);
        bed_turn(&bed);
        bed_expect(&bed, id, DP_INVALID);
    }
    assert_int_equal(greet(&bed, 6, true, 0)->stream, stream);
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t id = bed_push(&bed, 5, 12 + i, "t", &key, 1, 2, 1, stream, i);
        bed_turn(&bed);
        assert_false(bed_expect(&bed, id, DP_OK)->reply.repeated);
    }
    bed_close(&bed);
}

/* A client that another shard told that its stream is too old; and hellos that would take the streams away. */
static void a_stream_is_given_above_what_is_too_old(void **state)
{
    struct bed bed;
    open_at(&bed, 0, 2, WALL_S);
    const uint64_t first = WALL_S << 20, above = first + (UINT64_C(20000) << 20);
    assert_int_equal(greet(&bed, 1, true, 0)->stream, first);
    assert_int_equal(greet(&bed, 1, true, 0)->stream, first); /* sent again */
    assert_int_equal(greet(&bed, 1, true, above)->stream, above + 1);
    assert_int_equal(greet(&bed, 1, true, above)->stream, above + 1);
    assert_int_equal(greet(&bed, 1, true, first)->stream, above + 1);
    assert_int_equal(greet(&bed, 2, true, 0)->stream, above + 2);
    assert_int_equal(greet(&bed, 3, true, dp_stream_of_client(WALL_S + DAY_S + 60) + 1)->status, DP_INVALID);
    assert_int_equal(greet(&bed, 3, true, UINT64_MAX)->status, DP_INVALID);
    assert_int_equal(push(&bed, above + 1, 0)->status, DP_OK);
    restart(&bed, WALL_S + 9);
    assert_true(greet(&bed, 4, true, 0)->stream > above + 2); /* none is given twice */
    assert_int_equal(push(&bed, above + 1, 1)->status, DP_OK);
    bed_close(&bed);
}

/* One that asks for more than is due has to wait, by itself: the next client's stream is due on other shards at once. */
static void nobody_takes_the_streams_of_the_next_minute(void **state)
{
    struct bed bed;
    open_at(&bed, 0, 2, WALL_S);
    const uint64_t last = dp_stream_of_client(WALL_S + DAY_S),
                   soon = dp_stream_of_client(WALL_S + DAY_S + 60);
    assert_int_equal(greet(&bed, 1, true, soon)->status, DP_AGAIN);
    assert_int_equal(greet(&bed, 1, true, soon)->wait.reason, DP_WAIT_STREAMS);
    assert_int_equal(greet(&bed, 1, true, last + 1)->status, DP_AGAIN);
    assert_true(greet(&bed, 2, true, 0)->stream <= last);
    assert_int_equal(greet(&bed, 3, true, last)->stream, last + 1);
    bed.now_ns += UINT64_C(1000000000);
    assert_int_equal(greet(&bed, 1, true, last + 1)->stream, last + 2);
    bed_close(&bed);
}

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed ^ *seed >> 29;
}

/* 100,000 pushes: random ids, great ones as far as they are let in, and again some of before. */
static void flood(struct bed *bed, uint64_t given, uint64_t each_ns, uint64_t client, uint64_t run)
{
    uint64_t seed = given, number = 1;
    for (uint32_t i = 0; i < 100000; i++) {
        const uint64_t each[] = {draw(&seed) | 1, RUN(INT32_MAX - i % 20000) + draw(&seed) % 1000,
                                 RUN(RUNS - i % 20000), given - i,
                                 i % 2 ? given - i % 3000 : RUN(RUNS - i % 3000)};
        bed->now_ns += each_ns;
        enum dp_status st = push(bed, each[i % 5], 0)->status;
        assert_true(st == DP_OK || st == DP_INVALID || st == DP_AGAIN || st == DP_TOO_OLD);
        if (each_ns > 1000000 && i % 5000 == 4999) { /* a long one: somebody is at work meanwhile */
            assert_int_equal(push(bed, client, number)->status, DP_OK);
            assert_int_equal(push(bed, run, number++)->status, DP_OK);
        }
    }
}

/* As a client library and `downpour run` go by the answers' fields. */
static void newcomers_are_served(struct bed *bed, uint64_t session, uint64_t run)
{
    const struct dp_reply *reply = greet(bed, session, bed->host.options.index == 0, 0);
    uint64_t stream = bed->host.options.index == 0 ? reply->stream : reply->too_old + 1;
    assert_true(stream > reply->too_old);
    bed->now_ns += UINT64_C(1000000000); /* the quota, and what is above all that can have been given */
    assert_int_equal(push(bed, stream, 0)->status, DP_OK);
    reply = push(bed, run, 0);
    if (reply->status == DP_TOO_OLD) {
        run = RUN(dp_stream_run(reply->too_old) + 1);
        reply = push(bed, run, 0);
    }
    assert_int_equal(reply->status, DP_OK);
    assert_int_equal(push(bed, stream, 1)->status, DP_OK);
    assert_int_equal(push(bed, run + 1, 0)->status, DP_OK);
}

/* On either kind of shard, within 3 seconds or within 50 minutes: in these thousands are forgotten. */
static void after_a_flood_newcomers_are_served(void **state)
{
    for (uint32_t i = 0; i < 4; i++) {
        struct bed bed;
        const uint64_t client = (WALL_S << 20) - 9, run = RUN(3), each_ns = i / 2 ? 30000000 : 30000;
        open_at(&bed, i % 2, 2, WALL_S);
        assert_int_equal(push(&bed, client, 0)->status, DP_OK);
        assert_int_equal(push(&bed, run, 0)->status, DP_OK);
        flood(&bed, i % 2 ? dp_stream_of_client(WALL_S + DAY_S) : (WALL_S << 20) - 10, each_ns, client, run);
        assert_int_equal(greet(&bed, 20, false, 0)->too_old > 0, i / 2); /* some were forgotten */
        for (uint64_t round = 0; round < 2; round++) {
            assert_int_equal(push(&bed, client, 1000 + round)->status, DP_OK); /* at work before */
            assert_int_equal(push(&bed, run + 1 + round, 0)->status, DP_OK);
            newcomers_are_served(&bed, 21 + round, RUN(4 + round));
            restart(&bed, WALL_S + 9);
        }
        bed_close(&bed);
    }
}

static void a_partial_push_is_refused_with_that_reason(void **state)
{
    struct dp_push_ids *ids = NULL;
    struct bed bed;
    size_t size;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    for (uint64_t number = 0; number < 3; number++)
        assert_int_equal(dp_push_ids_restore(ids, 7, number, DP_OK), DP_OK);
    dp_push_ids_refuse(ids, 7, 1, DP_PARTIAL);
    void *bytes = dp_push_ids_pack(ids, &size);
    const struct dp_store_mark mark = {.key = "ids", .key_bytes = 3, .value = bytes, .value_bytes = size};
    open_at(&bed, 0, 2, WALL_S);
    bed_restart_on(&bed, &mark);
    sequence = 0;
    for (uint32_t time = 0; time < 2; time++) {
        const struct dp_reply *reply = push(&bed, 7, 1);
        assert_int_equal(reply->status, DP_PARTIAL);
        assert_non_null(strstr(reply->reason, "on some shards only"));
        assert_true(push(&bed, 7, 2)->repeated);
    }
    assert_int_equal(push(&bed, 7, 3)->status, DP_OK);
    free(bytes);
    dp_push_ids_free(&ids);
    bed_close(&bed);
}

/* Another shard was cut after this one, and has pushes of a stream that this one gave in between. The clock stands still. */
static void a_restored_shard_gives_no_stream_that_another_shard_has(void **state)
{
    const uint64_t given = (WALL_S << 20) + 5000;
    struct dp_push_ids *ids = NULL;
    struct bed bed;
    size_t size;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    assert_int_equal(dp_push_ids_restore(ids, given, 0, DP_OK), DP_OK);
    assert_int_equal(dp_push_ids_restore(ids, RUN(3), 0, DP_OK), DP_OK);
    void *bytes = dp_push_ids_pack(ids, &size);
    const struct dp_store_mark mark = {.key = "ids", .key_bytes = 3, .value = bytes, .value_bytes = size};
    open_at(&bed, 0, 2, WALL_S);
    bed_restart_on(&bed, &mark);
    sequence = 0;
    uint64_t next = greet(&bed, 1, true, 0)->stream;
    assert_true(next > given);
    assert_false(push(&bed, next, 0)->repeated);
    free(bytes);
    dp_push_ids_free(&ids);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shard_0_takes_the_streams_that_it_gave),
        cmocka_unit_test(other_shards_take_what_the_clock_allows),
        cmocka_unit_test(a_clock_that_is_set_is_followed),
        cmocka_unit_test(runs_count_up_with_the_clock),
        cmocka_unit_test(what_nobody_was_given_uses_up_nothing),
        cmocka_unit_test(a_stream_is_given_above_what_is_too_old),
        cmocka_unit_test(nobody_takes_the_streams_of_the_next_minute),
        cmocka_unit_test(after_a_flood_newcomers_are_served),
        cmocka_unit_test(a_partial_push_is_refused_with_that_reason),
        cmocka_unit_test(a_restored_shard_gives_no_stream_that_another_shard_has),
    };
    return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}

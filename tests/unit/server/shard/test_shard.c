/* Shard: what it promises in shard.h, over a fake store, without a journal. Sessions 1, 2, ...; table "t" of
 * dim 2, SGD at rate 1 from 0. */
#include "tests/unit/server/shard/bed.h"

#include "common/model/row.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define T ((uint64_t)1 << 63 | 1)

static void a_push_shows_in_the_next_pull(void **state)
{
    struct bed bed;
    uint64_t keys[5];
    bed_start(&bed);
    bed_keys(&bed, 10, 5, keys);
    uint64_t before = bed_pull(&bed, 1, 2, "t", keys, 5);
    uint64_t push = bed_push(&bed, 1, 3, "t", keys + 1, 3, 2, 0.5f, T, 0);
    uint64_t after = bed_pull(&bed, 1, 4, "t", keys, 5);
    bed_turn(&bed);
    const struct bed_reply *reply = bed_expect(&bed, before, DP_OK);
    for (size_t i = 0; i < 10; i++)
        assert_true(reply->value[i] == 0);
    bed_expect(&bed, push, DP_OK);
    reply = bed_expect(&bed, after, DP_OK);
    assert_int_equal(reply->reply.applied, 1);
    for (size_t i = 0; i < 10; i++)
        assert_true(reply->value[i] == (i >= 2 && i < 8 ? -0.5f : 0));
    assert_int_equal(bed_counter(&bed, "pull_rows"), 10);
    assert_int_equal(bed_counter(&bed, "pull_rows_initial"), 5 + 2);
    assert_int_equal(bed_counter(&bed, "cache_rows"), 3); /* a pull stores nothing */
    bed_close(&bed);
}

static void a_repeated_push_is_answered_and_not_applied(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    uint64_t a = bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 5);
    uint64_t b = bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 5); /* a resend */
    uint64_t c = bed_push(&bed, 2, 1, "t", &key, 1, 2, 1, T, 5); /* another worker had the same minibatch */
    bed_turn(&bed);
    assert_false(bed_expect(&bed, a, DP_OK)->reply.repeated);
    assert_true(bed_expect(&bed, b, DP_OK)->reply.repeated);
    assert_true(bed_expect(&bed, c, DP_OK)->reply.repeated);
    assert_true(bed_value(&bed, 1, 3, key) == -1);
    assert_int_equal(bed_counter(&bed, "pushes_repeated"), 2);
    bed_close(&bed);
}

static void staleness_counts_the_pushes_between(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    (void)bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 0);
    (void)bed_push(&bed, 1, 3, "t", &key, 1, 2, 1, T, 1);
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 1,
                                 .sequence = 4,
                                 .stream = T,
                                 .number = 2,
                                 .rate = 1,
                                 .measured = true,
                                 .pulled_at = 0};
    uint64_t id = bed_send(&bed, &request, NULL, 0);
    bed_turn(&bed);
    assert_int_equal(bed_expect(&bed, id, DP_OK)->reply.staleness, 2);
    bed_close(&bed);
}

static void requests_of_a_session_keep_their_order(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    uint64_t early = bed_push(&bed, 1, 3, "t", &key, 1, 2, 1, T, 1);
    bed_turn(&bed);
    assert_int_equal(bed_expect(&bed, early, DP_ORDER)->reply.sequence, 2);
    bed_expect(&bed, bed_pull(&bed, 77, 1, "t", &key, 1), DP_SESSION);
    /* A late hello does not turn the order back; a new one of a client that goes on elsewhere moves it
     * forward. */
    bed_expect(&bed, bed_hello(&bed, 1, 1, false), DP_OK);
    early = bed_push(&bed, 1, 3, "t", &key, 1, 2, 1, T, 1);
    assert_int_equal(bed_expect(&bed, early, DP_ORDER)->reply.sequence, 2);
    bed_expect(&bed, bed_hello(&bed, 1, 3, false), DP_OK);
    uint64_t id = bed_push(&bed, 1, 3, "t", &key, 1, 2, 1, T, 1);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_OK);
    bed_close(&bed);
}

static void strangers_are_refused(void **state)
{
    struct bed bed;
    bed_start(&bed);
    struct dp_request other = {.kind = DP_REQUEST_STATUS, .session = 1, .cluster = 8};
    const struct bed_reply *reply = bed_expect(&bed, bed_send(&bed, &other, NULL, 0), DP_GENERATION);
    assert_non_null(strstr(reply->reply.reason, "cluster"));
    other =
        (struct dp_request){.kind = DP_REQUEST_STATUS, .session = 1, .generation = 2, .history = BED_HISTORY};
    reply = bed_expect(&bed, bed_send(&bed, &other, NULL, 0), DP_GENERATION);
    assert_true(reply->reply.generation == BED_GENERATION && reply->reply.history == BED_HISTORY);
    other = (struct dp_request){.kind = DP_REQUEST_STATUS, .session = 1, .generation = BED_GENERATION};
    bed_expect(&bed, bed_send(&bed, &other, NULL, 0), DP_GENERATION);
    other = (struct dp_request){.kind = DP_REQUEST_NOTES_GET, .session = 1};
    bed_expect(&bed, bed_send(&bed, &other, NULL, 0), DP_UNSUPPORTED);
    bed_close(&bed);
}

/* It came to the address that the other shard had before, under a session and a number that are expected
 * here, too. */
static void a_request_for_another_shard_changes_nothing(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_open(&bed, 1, 2);
    bed_meet(&bed, 1);
    struct dp_table_spec spec = bed_sgd("t", 2);
    bed_make_table(&bed, 1, 1, &spec);
    bed_keys(&bed, 10, 1, &key);
    struct dp_request other = {.kind = DP_REQUEST_PUSH,
                               .session = 1,
                               .sequence = 2,
                               .stream = T,
                               .number = 1,
                               .rate = 1,
                               .timeout_ms = 1000,
                               .shard = 1};
    uint64_t id = bed_send(&bed, &other, NULL, 0);
    bed_turn(&bed);
    bed_expect_wait(&bed, id, DP_AGAIN, PLACE);
    other = (struct dp_request){.kind = DP_REQUEST_STATUS, .session = 1, .shard = 1};
    bed_expect_wait(&bed, bed_send(&bed, &other, NULL, 0), DP_AGAIN, PLACE);
    id = bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 1);
    bed_turn(&bed);
    assert_false(bed_expect(&bed, id, DP_OK)->reply.repeated);
    bed_close(&bed);
}

/* Every wrong push and pull: its status, and no row changes. */
static void wrong_requests_change_nothing(void **state)
{
    struct bed bed;
    uint64_t keys[2], sequence = 2, id;
    bed_open(&bed, 1, 2);
    bed_meet(&bed, 1);
    struct dp_table_spec spec = bed_sgd("t", 2);
    bed_make_table(&bed, 1, 1, &spec);
    bed_keys(&bed, 10, 2, keys);

    id = bed_push(&bed, 1, sequence++, "absent", keys, 2, 2, 1, T, 0);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_NOT_FOUND);
    id = bed_push(&bed, 1, sequence++, "t", keys, 2, 3, 1, T, 1); /* wrong width */
    bed_turn(&bed);
    assert_non_null(strstr(bed_expect(&bed, id, DP_INVALID)->reply.reason, "'t'"));
    id = bed_push(&bed, 1, sequence++, "t", keys, 2, 2, NAN, T, 2);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_NOT_FINITE);
    id = bed_push(&bed, 1, sequence++, "t", keys, 2, 2, -INFINITY, T, 3);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_NOT_FINITE);
    assert_int_equal(bed_counter(&bed, "pushes_not_finite"), 2);
    id = bed_push(&bed, 1, sequence++, "t", keys, 2, 2, 1, 0, 4); /* stream 0 */
    bed_turn(&bed);
    bed_expect(&bed, id, DP_INVALID);
    uint64_t foreign = 5; /* mixed key of shard 0 */
    id = bed_push(&bed, 1, sequence++, "t", &foreign, 1, 2, 1, T, 5);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_INVALID);
    struct dp_request twice = {.kind = DP_REQUEST_PULL, .session = 1, .sequence = sequence++, .sections = 2};
    twice.section[0] = twice.section[1] = (struct dp_section){.table = dp_table_id("t"), .rows = 1};
    struct dp_frame frames[2] = {dp_frame_copy(keys, 8), dp_frame_copy(keys, 8)};
    id = bed_send(&bed, &twice, frames, 2);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_INVALID);
    /* Keys not ascending: the wire's check, answered in order. */
    uint64_t swapped[2] = {keys[1], keys[0]};
    id = bed_pull(&bed, 1, sequence++, "t", swapped, 2);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_INVALID);

    assert_int_equal(bed_counter(&bed, "cache_rows"), 0);
    assert_true(bed_value(&bed, 1, sequence++, keys[0]) == 0);
    /* A push that was refused for good used up its number: whatever comes under it hears the same. */
    id = bed_push(&bed, 1, sequence++, "t", keys, 2, 2, 1, T, 2);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_NOT_FINITE);
    /* And resent as it was it is refused again. */
    id = bed_push(&bed, 1, 4, "t", keys, 2, 2, NAN, T, 2);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_NOT_FINITE);
    bed_close(&bed);
}

/* Finite gradients whose arithmetic overflows: applied, the row stays at the largest number, each such row counts. */
static void a_row_stays_finite(void **state)
{
    struct bed bed;
    uint64_t keys[3], sequence = 2;
    bed_start(&bed);
    bed_keys(&bed, 10, 3, keys);
    for (uint64_t push = 0; push < 3; push++) {
        uint32_t rows = push == 0 ? 3 : 2; /* 3e38 itself is finite, its double is not */
        uint64_t id = bed_push(&bed, 1, sequence++, "t", keys, rows, 2, 3e38f, T, push);
        bed_turn(&bed);
        bed_expect(&bed, id, DP_OK);
        assert_int_equal(bed_counter(&bed, "rows_bounded"), 2 * push);
    }
    assert_true(bed_value(&bed, 1, sequence++, keys[0]) == -FLT_MAX);
    assert_true(bed_value(&bed, 1, sequence++, keys[2]) == -3e38f);
    bed_close(&bed);
}

static void a_pull_too_large_to_answer_is_refused(void **state)
{
    struct bed bed;
    struct dp_table_spec spec = bed_sgd("wide", DP_TABLE_DIM_MAX);
    bed_start(&bed);
    bed_make_table(&bed, 1, 2, &spec);
    uint64_t *keys = malloc(2000 * sizeof *keys);
    for (uint64_t i = 0; i < 2000; i++)
        keys[i] = i;
    uint64_t id = bed_pull(&bed, 1, 3, "wide", keys, 2000); /* 500 MiB */
    free(keys);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_INVALID);
    bed_close(&bed);
}

static void rubbish_is_counted_and_harmless(void **state)
{
    struct bed bed;
    static const struct dp_peer peer = {.size = 5};
    bed_start(&bed);
    uint32_t seed = 12345;
    for (uint32_t i = 0; i < 5000; i++) {
        struct dp_message *message = dp_message_new(4);
        uint32_t frames = i % 5;
        for (uint32_t f = 0; f < frames && f < 4; f++) {
            struct dp_frame frame = dp_frame_new(i % 97);
            for (size_t b = 0; b < frame.size; b++)
                ((unsigned char *)frame.data)[b] =
                    (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
            dp_message_add(message, frame);
        }
        dp_shard_receive(bed.host.shard, &peer, &message);
        assert_null(message);
        if (bed.replies > 200)
            bed.replies = 0;
    }
    bed_turn(&bed);
    assert_true(bed_counter(&bed, "requests_unreadable") > 1000);
    bed.replies = 0;
    assert_true(bed_value(&bed, 2, 1, 1) == 0);
    bed_close(&bed);
}

static void a_request_past_its_deadline_is_not_done(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    uint64_t id = bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 0);
    bed.now_ns += 1001u * 1000000u;
    bed_turn(&bed);
    uint64_t behind = bed_pull(&bed, 1, 3, "t", &key, 1); /* came too early, for what is to come again */
    bed_expect_wait(&bed, id, DP_TIMEOUT, QUEUE);
    assert_int_equal(bed_expect(&bed, behind, DP_ORDER)->reply.sequence, 2);
    assert_true(bed_value(&bed, 1, 2, key) == 0);
    bed_close(&bed);
}

/* A peer that counts up to the last number there is gets an answer, and the shard goes on. */
static void the_greatest_sequence_number_is_refused(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    uint64_t hello = bed_hello(&bed, 9, UINT64_MAX, false);
    bed_turn(&bed);
    bed_expect(&bed, hello, DP_INVALID);
    hello = bed_hello(&bed, 8, UINT64_MAX - 1, false);
    bed_turn(&bed);
    bed_expect(&bed, hello, DP_OK);
    uint64_t pull = bed_pull(&bed, 8, UINT64_MAX - 1, "t", &key, 1);
    bed_turn(&bed);
    bed_expect(&bed, pull, DP_OK);
    pull = bed_pull(&bed, 8, UINT64_MAX, "t", &key, 1);
    bed_turn(&bed);
    bed_expect(&bed, pull, DP_INVALID);
    assert_true(bed_value(&bed, 1, 2, key) == 0);
    bed_close(&bed);
}

static void a_full_shard_postpones(void **state)
{
    struct bed bed;
    uint64_t key, id = 0;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    for (uint64_t i = 0; i < 65; i++)
        id = bed_push(&bed, 1, 2 + i, "t", &key, 1, 2, 1, T, i);
    bed_expect_wait(&bed, id, DP_AGAIN, QUEUE); /* the window of one session */
    for (uint64_t i = 0; i < 37; i++)
        id = bed_push(&bed, 2, 1 + i, "t", &key, 1, 2, 1, T + 1, i);
    bed_expect_wait(&bed, id, DP_AGAIN, QUEUE); /* of all: 100 */
    bed_turn(&bed);
    assert_true(bed_value(&bed, 1, 66, key) == -100);
    bed_close(&bed);
}

static void a_number_above_the_window_waits_and_what_follows_it_too(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    uint64_t ahead = bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 65536);
    uint64_t behind = bed_push(&bed, 1, 3, "t", &key, 1, 2, 1, T, 1);
    bed_turn(&bed);
    bed_expect_wait(&bed, ahead, DP_AGAIN, GAP);
    assert_int_equal(bed_expect(&bed, ahead, DP_AGAIN)->reply.wait.subject, T);
    assert_null(bed_reply_to(&bed, behind)); /* dropped: it would have overtaken */
    (void)bed_push(&bed, 2, 1, "t", &key, 1, 2, 1, T, 0);
    bed_turn(&bed);
    ahead = bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 65536);
    behind = bed_push(&bed, 1, 3, "t", &key, 1, 2, 1, T, 1);
    bed_turn(&bed);
    assert_false(bed_expect(&bed, ahead, DP_OK)->reply.repeated);
    assert_false(bed_expect(&bed, behind, DP_OK)->reply.repeated);
    bed_close(&bed);
}

/* Numbers far ahead of one that is missing are taken of so many streams; of others those that are not so far. */
static void only_some_streams_may_be_far_ahead(void **state)
{
    struct bed bed;
    uint64_t key, id, sequence = 2;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    for (uint64_t s = 0; s <= 256; s++) {
        id = bed_push(&bed, 1, sequence++, "t", &key, 1, 2, 1, T + s, 4096);
        bed_turn(&bed);
        const struct bed_reply *reply = bed_expect(&bed, id, s < 256 ? DP_OK : DP_AGAIN);
        assert_true(s < 256 ||
                    (reply->reply.wait.reason == DP_WAIT_GAP && reply->reply.wait.subject == T + s));
        bed.replies = 0;
    }
    sequence--;
    for (uint64_t number = 4095; number <= 4096; number++) { /* 0 was missing, then 1 is */
        id = bed_push(&bed, 1, sequence++, "t", &key, 1, 2, 1, T + 256, number);
        (void)bed_push(&bed, 1, sequence++, "t", &key, 1, 2, 1, T + 256, number - 4095);
        bed_turn(&bed);
        bed_expect(&bed, id, DP_OK);
    }
    bed_close(&bed);
}

static void a_table_is_answered_when_it_is_durable(void **state)
{
    struct bed bed;
    struct dp_table_spec spec = bed_sgd("u", 3), wider = bed_sgd("u", 4);
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    dp_fake_store_hold(bed.fake, true);
    uint64_t create = bed_create(&bed, 1, 2, &spec);
    uint64_t pull = bed_pull(&bed, 1, 3, "u", &key, 1);
    uint64_t other = bed_create(&bed, 2, 1, &spec);
    bed_meet(&bed, 3);
    uint64_t early = bed_pull(&bed, 3, 1, "u", &key, 1); /* of a client that may have heard of it */
    bed_turn(&bed);
    bed_expect_wait(&bed, early, DP_AGAIN, MARK);
    assert_null(bed_reply_to(&bed, create));
    assert_null(bed_reply_to(&bed, pull));
    bed_expect_wait(&bed, other, DP_AGAIN, MARK);
    assert_int_equal(bed_expect(&bed, other, DP_AGAIN)->reply.wait.subject, dp_table_id("u"));
    dp_fake_store_hold(bed.fake, false);
    bed_turn(&bed);
    assert_false(bed_expect(&bed, create, DP_OK)->reply.existed);
    assert_int_equal(bed_expect(&bed, pull, DP_OK)->values, 3);
    other = bed_create(&bed, 2, 1, &spec);
    uint64_t differs = bed_create(&bed, 2, 2, &wider);
    bed_turn(&bed);
    assert_true(bed_expect(&bed, other, DP_OK)->reply.existed);
    assert_non_null(strstr(bed_expect(&bed, differs, DP_EXISTS)->reply.reason, "dim"));
    bed_close(&bed);
}

/* A full disk refuses neither tables nor streams for good: each try hears the cause, and the first one with room is taken. */
static void what_the_store_lacks_is_asked_for_again(void **state)
{
    struct bed bed;
    uint64_t key;
    struct dp_table_spec unlucky = bed_sgd("v", 1);
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    for (uint32_t tries = 0; tries < 3; tries++) {
        dp_fake_store_fail(bed.fake, DP_STORE_MARKS, 1, DP_FULL);
        uint64_t create = bed_create(&bed, 1, 2, &unlucky);
        bed_turn(&bed);
        bed_turn(&bed);
        uint64_t pull = bed_pull(&bed, 2, 1, "v", &key, 1);
        bed_turn(&bed);
        assert_non_null(strstr(bed_expect(&bed, create, DP_AGAIN)->reply.reason, "fake store"));
        bed_expect_wait(&bed, create, DP_AGAIN, DISK);
        bed_expect(&bed, pull, DP_NOT_FOUND); /* the table is not there */
        dp_fake_store_fail(bed.fake, DP_STORE_MARKS, 1, DP_FULL);
        uint64_t hello = bed_hello(&bed, 5, 1, true);
        bed_turn(&bed);
        assert_non_null(strstr(bed_expect(&bed, hello, DP_AGAIN)->reply.reason, "fake store"));
        bed_expect_wait(&bed, hello, DP_AGAIN, DISK);
    }
    uint64_t create = bed_create(&bed, 1, 2, &unlucky), hello = bed_hello(&bed, 5, 1, true);
    bed_turn(&bed);
    bed_turn(&bed);
    assert_false(bed_expect(&bed, create, DP_OK)->reply.existed);
    assert_true(bed_expect(&bed, hello, DP_OK)->reply.stream > 0);
    bed_close(&bed);
}

static void rows_come_back_after_a_clean_close(void **state)
{
    struct bed bed;
    uint64_t keys[100];
    bed_start(&bed);
    bed_keys(&bed, 1000, 100, keys);
    (void)bed_push(&bed, 1, 2, "t", keys, 60, 2, 1, T, 0);
    (void)bed_push(&bed, 1, 3, "t", keys + 40, 60, 2, 1, T, 1);
    bed_turn(&bed);
    bed_restart(&bed);
    assert_int_equal(dp_fake_store_rows(bed.fake), 100);
    struct dp_store_key first = {dp_table_id("t"), keys[0]}, both = {dp_table_id("t"), keys[50]};
    size_t bytes;
    assert_int_equal(dp_row_lsn(dp_fake_store_row(bed.fake, first, &bytes)), 1);
    assert_int_equal(dp_row_lsn(dp_fake_store_row(bed.fake, both, &bytes)), 2);
    assert_int_equal(dp_row_step(dp_fake_store_row(bed.fake, both, &bytes)), 2);
    bed_meet(&bed, 1);
    uint64_t id = bed_pull(&bed, 1, 1, "t", keys, 100);
    bed_turn(&bed);
    bed_turn(&bed);
    const struct bed_reply *reply = bed_expect(&bed, id, DP_OK);
    assert_int_equal(reply->reply.applied, 2);
    for (size_t i = 0; i < 100; i++)
        assert_true(reply->value[2 * i] == (i >= 40 && i < 60 ? -2 : -1));
    struct dp_request status = {.kind = DP_REQUEST_STATUS, .session = 1};
    assert_int_equal(bed_expect(&bed, bed_send(&bed, &status, NULL, 0), DP_OK)->table_rows, 100);
    /* A second close writes back only what changed since, and the counts still agree. */
    uint64_t written = dp_fake_store_items(bed.fake, DP_STORE_WRITE), fresh;
    bed_keys(&bed, 5000000, 1, &fresh);
    (void)bed_push(&bed, 1, 2, "t", &fresh, 1, 2, 1, T, 2);
    bed_turn(&bed);
    bed_turn(&bed);
    bed_restart(&bed);
    assert_int_equal(dp_fake_store_items(bed.fake, DP_STORE_WRITE), written + 1);
    bed_meet(&bed, 1);
    assert_int_equal(bed_expect(&bed, bed_send(&bed, &status, NULL, 0), DP_OK)->table_rows, 101);
    bed_close(&bed);
}

static void push_ids_are_remembered_across_a_clean_close(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    (void)bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 0);
    (void)bed_push(&bed, 1, 3, "t", &key, 1, 2, 1, T, 7);
    bed_turn(&bed);
    for (uint32_t opening = 0; opening < 2; opening++) {
        bed_restart(&bed);
        bed_meet(&bed, 1);
        uint64_t again =
            bed_push(&bed, 1, 1, "t", &key, 1, 2, 1, T, 7); /* its answer was lost, then the server went */
        bed_turn(&bed);
        assert_true(bed_expect(&bed, again, DP_OK)->reply.repeated);
        assert_true(bed_value(&bed, 1, 2, key) == -2);
    }
    bed_close(&bed);
}

static void draining_refuses_new_work_and_tells_failures(void **state)
{
    struct bed bed;
    struct dp_error err = {0};
    uint64_t keys[10];
    bed_start(&bed);
    bed_keys(&bed, 1000, 10, keys);
    uint64_t id = bed_push(&bed, 1, 2, "t", keys, 10, 2, 1, T, 0);
    dp_shard_drain(bed.host.shard); /* what was taken in is still done */
    uint64_t late = bed_push(&bed, 1, 3, "t", keys, 10, 2, 1, T, 1);
    dp_fake_store_fail(bed.fake, DP_STORE_WRITE, 1, DP_IO);
    assert_int_equal(bed_drain(&bed, &err), DP_IO);
    bed_expect(&bed, id, DP_OK);
    bed_expect_wait(&bed, late, DP_STOPPING, STOPPING);
    assert_non_null(strstr(err.text, "could not write its rows back"));
    bed_close(&bed);
}

static void streams_are_never_given_twice(void **state)
{
    struct bed bed;
    uint64_t last = 0;
    bed_start(&bed);
    for (uint32_t opening = 0; opening < 3; opening++) {
        for (uint64_t i = 0; i < 40; i++) {
            uint64_t id = bed_hello(&bed, 1000 + i, 1, true);
            bed_turn(&bed);
            uint64_t stream = bed_expect(&bed, id, DP_OK)->reply.stream;
            assert_true(stream > last && stream >> 63 == 0);
            last = stream;
            id = bed_hello(&bed, 1000 + i, 1, true); /* said again: the same */
            bed_turn(&bed);
            assert_int_equal(bed_expect(&bed, id, DP_OK)->reply.stream, stream);
        }
        bed.replies = 0;
        bed_restart(&bed);
    }
    bed_close(&bed);
}

/* What stands behind a request that came too late is sent again behind it. */
static void nothing_overtakes_a_request_past_its_deadline(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    uint64_t pull = bed_pull(&bed, 1, 2, "t", &key, 1);
    bed.now_ns += 1001u * 1000000u;
    uint64_t push = bed_push(&bed, 1, 3, "t", &key, 1, 2, 1, T, 0); /* in time */
    bed_turn(&bed);
    bed_expect(&bed, pull, DP_TIMEOUT);
    assert_null(bed_reply_to(&bed, push));
    assert_true(bed_value(&bed, 1, 2, key) == 0);
    bed_close(&bed);
}

/* A push that was refused for good, resent because the refusal was lost, when its row can be read again. */
static void a_push_refused_before_does_not_take_effect_later(void **state)
{
    struct bed bed;
    uint64_t key;
    bed_start(&bed);
    bed_keys(&bed, 10, 1, &key);
    (void)bed_push(&bed, 1, 2, "t", &key, 1, 2, 1, T, 0);
    bed_turn(&bed);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    dp_fake_store_fail(bed.fake, DP_STORE_READ, 1, DP_CORRUPT);
    uint64_t refused = bed_push(&bed, 1, 1, "t", &key, 1, 2, 1, T, 1);
    uint64_t behind = bed_push(&bed, 1, 2, "t", &key, 1, 2, 4, T, 2);
    for (uint32_t i = 0; i < 4; i++)
        bed_turn(&bed);
    bed_expect(&bed, refused, DP_CORRUPT);
    bed_expect(&bed, behind, DP_OK);
    uint64_t again = bed_push(&bed, 1, 1, "t", &key, 1, 2, 1, T, 1);
    bed_turn(&bed);
    bed_expect(&bed, again, DP_CORRUPT); /* it hears the same */
    assert_true(bed_value(&bed, 1, 3, key) == -5);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    again = bed_push(&bed, 1, 1, "t", &key, 1, 2, 1, T, 1);
    bed_turn(&bed);
    bed_expect(&bed, again, DP_CORRUPT); /* over a restart too */
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_shows_in_the_next_pull),
        cmocka_unit_test(a_repeated_push_is_answered_and_not_applied),
        cmocka_unit_test(staleness_counts_the_pushes_between),
        cmocka_unit_test(requests_of_a_session_keep_their_order),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(a_request_for_another_shard_changes_nothing),
        cmocka_unit_test(wrong_requests_change_nothing),
        cmocka_unit_test(a_row_stays_finite),
        cmocka_unit_test(a_pull_too_large_to_answer_is_refused),
        cmocka_unit_test(rubbish_is_counted_and_harmless),
        cmocka_unit_test(a_request_past_its_deadline_is_not_done),
        cmocka_unit_test(the_greatest_sequence_number_is_refused),
        cmocka_unit_test(a_full_shard_postpones),
        cmocka_unit_test(a_number_above_the_window_waits_and_what_follows_it_too),
        cmocka_unit_test(only_some_streams_may_be_far_ahead),
        cmocka_unit_test(a_table_is_answered_when_it_is_durable),
        cmocka_unit_test(what_the_store_lacks_is_asked_for_again),
        cmocka_unit_test(rows_come_back_after_a_clean_close),
        cmocka_unit_test(push_ids_are_remembered_across_a_clean_close),
        cmocka_unit_test(draining_refuses_new_work_and_tells_failures),
        cmocka_unit_test(streams_are_never_given_twice),
        cmocka_unit_test(nothing_overtakes_a_request_past_its_deadline),
        cmocka_unit_test(a_push_refused_before_does_not_take_effect_later),
    };
    return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}

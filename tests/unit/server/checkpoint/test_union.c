/* Union against sets of numbers: random streams of pushes of which each shard has counted others, some of which are given up; streams
 * that a shard has forgotten. (What all shards together have, and what each lacks: sim/checkpoints. Steps: test_union_steps.c.) */
#include "tests/lib/test.h"

#include "server/checkpoint/union.h"
#include "server/ids/push_ids.h"
#include "server/ids/push_ids_union.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS  4u
#define STREAMS 6u
#define NUMBERS 9000u /* beyond DP_PUSH_NARROW */
#define SEEDS   40u

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static uint64_t stream_of(uint32_t i)
{
    return i % 2 ? dp_stream_of_run(1 + i / 4, i) : 1000 + i;
}

static struct dp_push_ids *start(void)
{
    struct dp_push_ids *ids = NULL;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    return ids;
}

static void put(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    assert_int_equal(dp_push_ids_restore(ids, stream, number, DP_OK), DP_OK);
}

static struct dp_union_part part_of(struct dp_push_ids **ids)
{
    struct dp_union_part part = {0};
    part.ids = dp_push_ids_pack(*ids, &part.ids_bytes);
    assert_non_null(part.ids);
    dp_push_ids_free(ids);
    return part;
}

static void free_parts(struct dp_union_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)parts[i].ids);
        free((void *)(uintptr_t)parts[i].steps);
    }
}

static bool has(const struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    enum dp_status status;
    enum dp_push_seen seen = dp_push_ids_look(ids, stream, number, &status);
    return seen == DP_PUSH_REPEATED || seen == DP_PUSH_REFUSED;
}

static bool used[SHARDS][STREAMS][NUMBERS];

/* Numbers up to a stream's end were pushed; each shard lacks some of the last ones. */
static void draw_pushes(void)
{
    memset(used, 0, sizeof used);
    for (uint32_t s = 0; s < STREAMS; s++) {
        uint32_t end = 1 + draw(draw(3) == 0 ? NUMBERS - 1 : 100), tail = 1 + draw(draw(2) ? 40 : end);
        for (uint32_t shard = 0; shard < SHARDS; shard++)
            for (uint32_t n = 0; n < end; n++)
                used[shard][s][n] = n + tail < end || draw(2) == 0;
    }
}

static void fill_parts(struct dp_union_part *parts)
{
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        struct dp_push_ids *ids = start();
        for (uint32_t s = 0; s < STREAMS; s++)
            for (uint32_t n = 0; n < NUMBERS; n++)
                if (used[shard][s][n])
                    put(ids, stream_of(s), n);
        parts[shard] = part_of(&ids);
    }
}

static bool used_anywhere(uint32_t s, uint32_t n)
{
    bool any = false;
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        any = any || used[shard][s][n];
    return any;
}

static uint32_t stream_at(uint64_t stream)
{
    uint32_t s = 0;
    while (s < STREAMS && stream_of(s) != stream)
        s++;
    assert_true(s < STREAMS);
    return s;
}

/* A stream that one shard forgot for the newer ones is below its floor: it lacks nothing of it. */
static void test_forgotten_stream(void **unused)
{
    struct dp_push_ids *ids[2] = {start(), start()}, *all = start();
    struct dp_union_part parts[2];
    struct dp_union cut;
    struct dp_error err = {0};
    for (uint32_t i = 1; i <= DP_PUSH_CLIENTS_MAX; i++)
        for (uint32_t shard = 0; shard < 2; shard++)
            put(ids[shard], i, 0);
    put(ids[1], DP_PUSH_CLIENTS_MAX + 1, 0); /* forgets stream 1 */
    parts[0] = part_of(&ids[0]);
    parts[1] = part_of(&ids[1]);
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_OK);
    assert_int_equal(cut.lacking[1].count, 0);
    assert_int_equal(cut.lacking[0].count, 1);
    assert_int_equal(cut.lacking[0].push[0].stream, DP_PUSH_CLIENTS_MAX + 1);
    assert_int_equal(dp_push_ids_unpack(all, cut.ids, cut.ids_bytes, &err), DP_OK);
    assert_int_equal(dp_push_ids_floors(all).clients, 2);
    dp_push_ids_free(&all);
    dp_union_clear(&cut);
    free_parts(parts, 2);
}

static void test_refusals_are_united(void **unused)
{
    struct dp_push_ids *ids[2] = {start(), start()}, *all = start();
    struct dp_union_part parts[2];
    struct dp_union cut;
    struct dp_error err = {0};
    enum dp_status status = DP_OK;
    for (uint32_t shard = 0; shard < 2; shard++)
        assert_int_equal(dp_push_ids_restore(ids[shard], 7, 0, DP_NOT_FINITE), DP_OK);
    assert_int_equal(dp_push_ids_restore(ids[1], 7, 2, DP_INVALID), DP_OK);
    parts[0] = part_of(&ids[0]);
    parts[1] = part_of(&ids[1]);
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_OK);
    assert_int_equal(dp_push_ids_unpack(all, cut.ids, cut.ids_bytes, &err), DP_OK);
    assert_int_equal(dp_push_ids_look(all, 7, 0, &status), DP_PUSH_REFUSED);
    assert_int_equal(status, DP_NOT_FINITE);
    assert_int_equal(dp_push_ids_look(all, 7, 1, &status), DP_PUSH_NEW);
    assert_int_equal(dp_push_ids_look(all, 7, 2, &status), DP_PUSH_REFUSED);
    assert_int_equal(status, DP_INVALID);
    dp_push_ids_free(&all);
    dp_union_clear(&cut);
    free_parts(parts, 2);
}

/* ---- pushes that are given up */

static bool is_odd(const void *unused, const struct dp_copy_push *push)
{
    return push->number % 2 == 1;
}

static bool is_every_third(const void *unused, const struct dp_copy_push *push)
{
    return push->number % 3 == 0;
}

static bool is_lacked(uint32_t s, uint32_t n)
{
    uint32_t have = 0;
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        have += used[shard][s][n];
    return have > 0 && have < SHARDS;
}

/* What was given up in two steps is listed once, ascending; all else is lacked as before; ids have all of it. */
static void check_given_up(const struct dp_union *cut)
{
    struct dp_push_ids *all = start();
    struct dp_error err = {0};
    uint32_t at = 0, given_up = 0;
    assert_int_equal(dp_push_ids_unpack(all, cut->ids, cut->ids_bytes, &err), DP_OK);
    for (uint32_t s = 0; s < STREAMS; s++)
        for (uint32_t n = 0; n < NUMBERS; n++) {
            given_up += is_lacked(s, n) && (n % 2 == 1 || n % 3 == 0);
            assert_int_equal(has(all, stream_of(s), n), used_anywhere(s, n));
        }
    assert_int_equal(cut->partial.count, given_up);
    for (; at < given_up; at++) {
        const struct dp_copy_push *push = &cut->partial.push[at], *before = push - 1;
        enum dp_status status = DP_OK;
        assert_true(is_lacked(stream_at(push->stream), (uint32_t)push->number));
        assert_true(push->number % 2 == 1 || push->number % 3 == 0);
        if (at > 0)
            assert_true(before->stream < push->stream ||
                        (before->stream == push->stream && before->number < push->number));
        if (given_up <= DP_REFUSED_MAX) {
            assert_int_equal(dp_push_ids_look(all, push->stream, push->number, &status), DP_PUSH_REFUSED);
            assert_int_equal(status, DP_PARTIAL);
        }
    }
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        uint32_t wanted = 0;
        for (uint32_t s = 0; s < STREAMS; s++)
            for (uint32_t n = 0; n < NUMBERS; n++)
                wanted += used_anywhere(s, n) && !used[shard][s][n] && n % 2 == 0 && n % 3 > 0;
        assert_int_equal(cut->lacking[shard].count, wanted);
        for (uint32_t i = 0; i < wanted; i++)
            assert_true(cut->lacking[shard].push[i].number % 2 == 0 &&
                        cut->lacking[shard].push[i].number % 3 > 0);
    }
    dp_push_ids_free(&all);
}

static void test_pushes_that_are_given_up(void **unused)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct dp_union_part parts[SHARDS] = {{0}};
        struct dp_union cut;
        struct dp_error err = {0};
        state = seed;
        draw_pushes();
        fill_parts(parts);
        assert_int_equal(dp_union_make(parts, SHARDS, &cut, &err), DP_OK);
        assert_int_equal(cut.partial.count, 0);
        assert_int_equal(dp_union_give_up(&cut, is_odd, NULL, &err), DP_OK);
        assert_int_equal(dp_union_give_up(&cut, is_every_third, NULL, &err), DP_OK);
        check_given_up(&cut);
        dp_union_clear(&cut);
        free_parts(parts, SHARDS);
    }
}

static void test_shard_that_lacks_too_much(void **unused)
{
    struct dp_push_ids *ids[2] = {start(), start()};
    struct dp_union_part parts[2];
    struct dp_union cut;
    struct dp_error err = {0};
    for (uint32_t n = 0; n <= DP_UNION_LACKING_MAX; n++)
        put(ids[0], 7, n);
    put(ids[1], 8, 0);
    parts[0] = part_of(&ids[0]);
    parts[1] = part_of(&ids[1]);
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_DATA);
    assert_non_null(strstr(err.text, "shard 1 lacks more than"));
    assert_null(cut.lacking);
    free_parts(parts, 2);
}

static void test_ids_that_are_none(void **unused)
{
    struct dp_push_ids *ids = start();
    struct dp_union_part parts[2] = {part_of(&ids), {.ids = "rubbish", .ids_bytes = 7}};
    struct dp_union cut;
    struct dp_error err = {0};
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "shard 1"));
    free_parts(parts, 1);
}

static bool is_small(const void *unused, const struct dp_copy_push *push)
{
    return push->stream < 100;
}

/* Planted: a push twice, of two shards; all of them; none of the last shard. */
static void each_is_found_once(void **unused)
{
    struct dp_copy_push one[] = {{9, 2}, {100, 5}, {9, 1}}, two[] = {{9, 1}, {7, 4}};
    struct dp_copy_pushes lacking[] = {{one, 3}, {two, 2}}, out = {0};
    const struct dp_union cut = {.shards = 2, .lacking = lacking};
    const struct dp_copy_push expected[] = {{7, 4}, {9, 1}, {9, 2}};
    struct dp_error err = {0};
    assert_int_equal(dp_union_find_lacking(&cut, is_small, NULL, &out, &err), DP_OK);
    assert_int_equal(out.count, 3);
    for (uint32_t i = 0; i < out.count; i++) {
        assert_true(out.push[i].stream == expected[i].stream && out.push[i].number == expected[i].number);
        assert_true(dp_union_has_push(&out, &expected[i]));
    }
    assert_false(dp_union_has_push(&out, &one[1]));
    free(out.push);
    out = (struct dp_copy_pushes){0};
    assert_false(dp_union_has_push(&out, &one[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_found_once),
        cmocka_unit_test(test_forgotten_stream),
        cmocka_unit_test(test_refusals_are_united),
        cmocka_unit_test(test_pushes_that_are_given_up),
        cmocka_unit_test(test_shard_that_lacks_too_much),
        cmocka_unit_test(test_ids_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

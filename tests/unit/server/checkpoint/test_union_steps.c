/* Union of steps: what shards that are at different steps, or know different views, have in common is the same in whatever order they
 * are asked. */
#include "tests/lib/test.h"

#include "server/checkpoint/union.h"
#include "server/ids/push_ids.h"
#include "server/steps/steps_mark.h"

#include <stdlib.h>
#include <string.h>

static struct dp_union_part part_without_pushes(void)
{
    struct dp_union_part part = {0};
    struct dp_push_ids *ids = NULL;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    part.ids = dp_push_ids_pack(ids, &part.ids_bytes);
    assert_non_null(part.ids);
    dp_push_ids_free(&ids);
    return part;
}

static void free_parts(struct dp_union_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)parts[i].ids);
        free((void *)(uintptr_t)parts[i].steps);
    }
}

static struct dp_union_part part_with(const struct dp_view *view, uint64_t open,
                                      const struct dp_steps_place *place)
{
    static struct dp_steps steps;
    struct dp_view own;
    struct dp_union_part part = part_without_pushes();
    memset(&steps, 0, sizeof steps);
    assert_int_equal(dp_view_copy(view, &own, NULL), DP_OK);
    dp_steps_restore(&steps, &own, open, place, 0);
    void *packed = malloc(part.steps_bytes = dp_steps_mark_bytes(&steps));
    assert_non_null(packed);
    dp_steps_mark_pack(&steps, packed);
    part.steps = packed;
    dp_steps_clear(&steps);
    return part;
}

static void put_steps(struct dp_union_part *part, uint32_t run, uint64_t number, enum dp_consistency mode,
                      uint64_t open, const uint64_t next[2])
{
    struct dp_member member[2] = {{.incarnation = 5, .until = UINT64_MAX, .from = 3},
                                  {.incarnation = 6, .until = UINT64_MAX, .from = 3}};
    const struct dp_view view = {.run = run,
                                 .number = number,
                                 .mode = mode,
                                 .slack = mode == DP_SSP,
                                 .first_step = 3,
                                 .members = 2,
                                 .member = member};
    *part = part_with(&view, open, (const struct dp_steps_place[2]){{next[0], 3, 0}, {next[1], 3, 0}});
}

static void take_steps(const struct dp_union *cut, struct dp_steps *out)
{
    memset(out, 0, sizeof *out);
    assert_int_equal(dp_steps_mark_unpack(cut->steps, cut->steps_bytes, out, 0, NULL), DP_OK);
}

/* What the union tells of member 1 of two, where the open step is 12: `next` and its interval as the one shard has them. {0}: there is no
 * cut now. */
static struct dp_steps_place place_of(struct dp_member member, struct dp_steps_place place)
{
    static struct dp_steps all;
    struct dp_member members[2] = {{.incarnation = 5, .until = UINT64_MAX, .from = 3}, member};
    const struct dp_view view = {
        .run = 4, .number = 9, .mode = DP_SYNC, .first_step = 3, .members = 2, .member = members};
    struct dp_union_part part = part_with(&view, 12, (const struct dp_steps_place[2]){{13, 3, 0}, place});
    struct dp_union cut;
    struct dp_error err = {0};
    enum dp_status st = dp_union_make(&part, 1, &cut, &err);
    struct dp_steps_place found = {0};
    if (st == DP_OK) {
        take_steps(&cut, &all);
        found = (struct dp_steps_place){all.next[1], all.start[1], all.former[1]};
        dp_steps_clear(&all);
        dp_union_clear(&cut);
    } else {
        assert_int_equal(st, DP_AGAIN);
        assert_non_null(strstr(err.text, "worker 1 has ended with step 12"));
    }
    free_parts(&part, 1);
    return found;
}

static void test_members_that_left_the_open_step(void **unused)
{
    /* It pushed step 12 and left behind it: no cut until that is closed, as nobody would make the push again. */
    struct dp_steps_place place =
        place_of((struct dp_member){6, 13, 3, 0}, (struct dp_steps_place){13, 3, 0});
    assert_true(place.start == 0);
    place = place_of((struct dp_member){6, UINT64_MAX, 15, 2}, (struct dp_steps_place){15, 15, 13});
    assert_true(place.start == 0);
    /* It is to leave behind step 12, and has not pushed it. */
    place = place_of((struct dp_member){6, 13, 3, 0}, (struct dp_steps_place){12, 3, 0});
    assert_true(place.start == 3 && place.next == 12);
    /* It left before: nothing changes. */
    place = place_of((struct dp_member){6, 10, 3, 0}, (struct dp_steps_place){10, 3, 0});
    assert_true(place.start == 3 && place.next == 10);
    /* Taken back from step 9 on by one shard, and passed by the one that closed 11 without it. */
    place = place_of((struct dp_member){6, UINT64_MAX, 9, 2}, (struct dp_steps_place){9, 9, 5});
    assert_true(place.start == UINT64_MAX);
}

static void test_shards_in_different_runs(void **unused)
{
    struct dp_union_part parts[2];
    struct dp_union cut;
    struct dp_error err = {0};
    put_steps(&parts[0], 4, 9, DP_SYNC, 12, (uint64_t[]){12, 12});
    put_steps(&parts[1], 5, 1, DP_SYNC, 3, (uint64_t[]){3, 3});
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_AGAIN);
    free((void *)(uintptr_t)parts[1].steps);
    parts[1].steps = NULL;
    parts[1].steps_bytes = 0; /* it has had no run yet */
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_AGAIN);
    free_parts(parts, 2);
}

/* ---- in any order */

static const uint32_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* Shards 0 and 2 know view 9, shard 1 the one before, in which it had not decided about member 1 yet. */
static void test_three_shards_in_any_order(void **unused)
{
    static const uint64_t number[3] = {9, 8, 9}, open[3] = {3, 5, 4};
    static const uint64_t from[3] = {12, 9, 12};
    static const struct dp_steps_place place[3][2] = {
        {{13, 3, 0}, {11, 12, 8}}, {{12, 3, 0}, {14, UINT64_MAX, 9}}, {{10, UINT64_MAX, 2}, {12, 12, 5}}};
    static struct dp_steps all;
    for (size_t o = 0; o < 6; o++) {
        struct dp_union_part parts[3];
        struct dp_union cut;
        struct dp_error err = {0};
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t of = orders[o][i];
            struct dp_member member[2] = {{.incarnation = 5, .until = UINT64_MAX, .from = 3},
                                          {.incarnation = number[of], .until = UINT64_MAX, .from = from[of]}};
            const struct dp_view view = {.run = 4,
                                         .number = number[of],
                                         .mode = DP_SSP,
                                         .slack = 1,
                                         .first_step = 3,
                                         .members = 2,
                                         .member = member};
            parts[i] = part_with(&view, open[of], place[of]);
        }
        if (dp_union_make(parts, 3, &cut, &err) != DP_OK)
            fail_msg("%s", err.text);
        take_steps(&cut, &all);
        assert_true(all.view.number == 9 && all.view.member[1].incarnation == 9 && all.open == 5);
        assert_true(all.next[0] == 13 && all.next[1] == 14);
        assert_true(all.start[0] == UINT64_MAX && all.start[1] == 12);
        assert_true(all.former[0] == 2 && all.former[1] == 8);
        dp_steps_clear(&all);
        dp_union_clear(&cut);
        free_parts(parts, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_that_left_the_open_step),
        cmocka_unit_test(test_shards_in_different_runs),
        cmocka_unit_test(test_three_shards_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

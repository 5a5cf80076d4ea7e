/* Union against sets of numbers: random streams of pushes of which each shard has counted others, as many shards, united; what a
 * shard lacks; pushes that never came, against cells of the key space; streams that a shard has forgotten; steps of shards that are at different ones. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "server/checkpoint/union.h"
#include "server/durable/push_ids.h"
#include "server/durable/push_ids_union.h"
#include "server/durable/steps_mark.h"

#include <stdio.h>
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

static void check_lacking(const struct dp_union *cut)
{
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        uint32_t wanted = 0;
        const struct dp_union_lacking *lacking = &cut->lacking[shard];
        for (uint32_t s = 0; s < STREAMS; s++)
            for (uint32_t n = 0; n < NUMBERS; n++)
                wanted += used_anywhere(s, n) && !used[shard][s][n];
        assert_int_equal(lacking->count, wanted);
        for (uint32_t i = 0; i < lacking->count; i++) {
            const struct dp_copy_push *push = &lacking->push[i], *before = push - 1;
            uint32_t s = stream_at(push->stream);
            assert_true(used_anywhere(s, (uint32_t)push->number) && !used[shard][s][push->number]);
            if (i > 0)
                assert_true(before->stream < push->stream ||
                            (before->stream == push->stream && before->number < push->number));
        }
    }
}

/* stream_of(5): epoch 5 of run 2; no other stream is of run 2. */
static void check_last(const struct dp_union *cut)
{
    uint64_t pushes = 0;
    bool any = false;
    for (uint32_t n = 0; n < NUMBERS; n++)
        pushes += used_anywhere(5, n);
    any = pushes > 0;
    assert_int_equal(cut->last_run, any ? 2 : 1);
    assert_int_equal(cut->last_epoch, any ? 5 : 3);
    if (any)
        assert_int_equal(cut->pushes, pushes);
}

static void test_random_pushes(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct dp_union_part parts[SHARDS] = {{0}};
        struct dp_union cut;
        struct dp_error err = {0};
        struct dp_push_ids *all = start();
        print_message("seed %u\n", (unsigned)seed);
        state = seed;
        draw_pushes();
        fill_parts(parts);
        assert_int_equal(dp_union_make(parts, SHARDS, &cut, &err), DP_OK);
        assert_int_equal(dp_push_ids_unpack(all, cut.ids, cut.ids_bytes, &err), DP_OK);
        for (uint32_t s = 0; s < STREAMS; s++)
            for (uint32_t n = 0; n < NUMBERS; n++)
                assert_int_equal(has(all, stream_of(s), n), used_anywhere(s, n));
        check_lacking(&cut);
        check_last(&cut);
        assert_null(cut.steps);
        dp_push_ids_free(&all);
        dp_union_clear(&cut);
        free_parts(parts, SHARDS);
    }
}

/* A stream that one shard forgot for the newer ones is below its floor: it lacks nothing of it. */
static void test_forgotten_stream(void **unused)
{
    (void)unused;
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
    (void)unused;
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

/* ---- pushes that never came */

#define CELLS  (3 * SHARDS) /* of the key space: three of each shard */
#define PUSHES 24u          /* of a stream */
#define LEFT   UINT64_C(0x2000)

/* What each shard has of each push: all of it, counted; or some cells; and whether it leaves out what it lacks. */
static bool counted[SHARDS][PUSHES], cell_has[CELLS][PUSHES], leaves_out[SHARDS][PUSHES];

static void draw_partial(void)
{
    for (uint32_t n = 0; n < PUSHES; n++) {
        uint32_t kind = draw(4); /* 0: everywhere */
        for (uint32_t shard = 0; shard < SHARDS; shard++) {
            bool has = counted[shard][n] = kind == 0 || draw(3) == 0;
            uint32_t some = kind == 3 ? draw(7) : 0; /* not all three cells */
            for (uint32_t i = 0; i < 3; i++)
                cell_has[3 * shard + i][n] = has || (some >> i & 1);
            leaves_out[shard][n] = draw(2) == 0;
        }
    }
}

static bool is_counted(uint32_t n)
{
    bool any = false;
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        any = any || counted[shard][n];
    return any;
}

static struct dp_union_part partial_part(uint32_t shard)
{
    struct dp_push_ids *ids = start();
    struct dp_error err = {0};
    for (uint32_t n = 0; n < PUSHES; n++)
        if (counted[shard][n])
            put(ids, LEFT, n);
    for (uint32_t n = 0; n < PUSHES; n++)
        for (uint32_t c = 3 * shard; c < 3 * shard + 3 && !counted[shard][n]; c++) {
            struct dp_push_exception one = {LEFT, n, dp_range_of_shard(c, CELLS)};
            while (c + 1 < 3 * shard + 3 && cell_has[c][n] && cell_has[c + 1][n])
                one.has.last = dp_range_of_shard(++c, CELLS).last;
            if (cell_has[c][n])
                assert_int_equal(dp_push_ids_except(ids, &one, &err), DP_OK);
        }
    return part_of(&ids);
}

/* Of what it lacks; the others have come. */
static struct dp_union_left_out left_out_of(const struct dp_union *cut, uint32_t shard, char *bytes)
{
    struct dp_union_left_out out = {.pushes = bytes};
    for (uint32_t i = 0; i < cut->lacking[shard].count; i++) {
        const struct dp_copy_push *push = &cut->lacking[shard].push[i];
        assert_true(is_counted((uint32_t)push->number) && !counted[shard][push->number]);
        if (!leaves_out[shard][push->number])
            continue;
        dp_store_u64le(bytes + out.bytes, push->stream);
        dp_store_u64le(bytes + out.bytes + 8, push->number);
        out.bytes += 16;
    }
    return out;
}

static void check_exceptions(const struct dp_union *cut)
{
    struct dp_push_ids *ids = start();
    struct dp_error err = {0};
    assert_int_equal(dp_push_ids_unpack(ids, cut->ids, cut->ids_bytes, &err), DP_OK);
    assert_int_equal(dp_push_ids_exceptions(ids)->count, 0);
    for (uint32_t n = 0; n < PUSHES; n++) {
        uint32_t cells = 0, count;
        const struct dp_push_exception *one = dp_push_exceptions_find(&cut->exceptions, LEFT, n, &count);
        for (uint32_t c = 0; c < CELLS; c++) {
            struct dp_range range = dp_range_of_shard(c, CELLS);
            bool came = is_counted(n) && !leaves_out[c / 3][n];
            bool wanted = cell_has[c][n] || came, first = false, last = false;
            for (uint32_t i = 0; one && i < count; i++) {
                first = first || dp_range_has(one[i].has, range.first);
                last = last || dp_range_has(one[i].has, range.last);
            }
            cells += wanted;
            if (one)
                assert_true(first == wanted && last == wanted);
        }
        assert_int_equal(has(ids, LEFT, n), cells == CELLS);
        assert_int_equal(one != NULL, cells > 0 && cells < CELLS);
    }
    dp_push_ids_free(&ids);
}

static void test_pushes_that_are_left_out(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        static char bytes[SHARDS][PUSHES * 16];
        struct dp_union_part parts[SHARDS] = {{0}};
        struct dp_union_left_out left_out[SHARDS];
        struct dp_union cut;
        struct dp_error err = {0};
        state = seed;
        draw_partial();
        for (uint32_t shard = 0; shard < SHARDS; shard++)
            parts[shard] = partial_part(shard);
        assert_int_equal(dp_union_make(parts, SHARDS, &cut, &err), DP_OK);
        for (uint32_t shard = 0; shard < SHARDS; shard++)
            left_out[shard] = left_out_of(&cut, shard, bytes[shard]);
        assert_int_equal(dp_union_leave_out(&cut, left_out, &err), DP_OK);
        check_exceptions(&cut);
        dp_union_clear(&cut);
        free_parts(parts, SHARDS);
    }
}

/* A number that is left out holds its stream's window back: all beyond it are left out, too, and can be. */
static void test_left_out_beyond_the_window(void **unused)
{
    (void)unused;
    struct dp_push_ids *ids[2] = {start(), start()}, *all = start();
    struct dp_union_part parts[2];
    struct dp_union cut;
    struct dp_error err = {0};
    char bytes[2 * 16];
    for (uint32_t n = 0; n < DP_PUSH_WINDOW + 5; n++) {
        put(ids[0], LEFT, n);
        if (n != 3 && n < DP_PUSH_WINDOW + 3)
            put(ids[1], LEFT, n);
    }
    parts[0] = part_of(&ids[0]);
    parts[1] = part_of(&ids[1]);
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_OK);
    assert_int_equal(cut.lacking[1].count, 3);
    static char three[3 * 16];
    for (uint32_t i = 0; i < 3; i++) {
        dp_store_u64le(three + i * 16, LEFT);
        dp_store_u64le(three + i * 16 + 8, cut.lacking[1].push[i].number);
    }
    memcpy(bytes, three + 16, sizeof bytes); /* without the first it is no cut */
    dp_store_u64le(bytes, LEFT + 1);
    assert_int_equal(dp_union_leave_out(&cut, (struct dp_union_left_out[]){{0}, {bytes, sizeof bytes}}, &err),
                     DP_CORRUPT);
    assert_int_equal(dp_union_leave_out(&cut, (struct dp_union_left_out[]){{0}, {three, 17}}, &err),
                     DP_CORRUPT);
    assert_int_equal(dp_union_leave_out(&cut, (struct dp_union_left_out[]){{0}, {three, sizeof three}}, &err),
                     DP_OK);
    assert_int_equal(dp_push_ids_unpack(all, cut.ids, cut.ids_bytes, &err), DP_OK);
    assert_int_equal(cut.exceptions.count, 3);
    assert_false(has(all, LEFT, 3));
    assert_true(has(all, LEFT, DP_PUSH_WINDOW + 2));
    assert_false(has(all, LEFT, DP_PUSH_WINDOW + 3));
    dp_push_ids_free(&all);
    dp_union_clear(&cut);
    free_parts(parts, 2);
}

static void test_shard_that_lacks_too_much(void **unused)
{
    (void)unused;
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
    (void)unused;
    struct dp_push_ids *ids = start();
    struct dp_union_part parts[2] = {part_of(&ids), {.ids = "rubbish", .ids_bytes = 7}};
    struct dp_union cut;
    struct dp_error err = {0};
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "shard 1"));
    free_parts(parts, 1);
}

/* ---- steps */

static struct dp_union_part part_with(const struct dp_view *view, uint64_t open,
                                      const struct dp_steps_place *place)
{
    static struct dp_steps steps;
    struct dp_view own;
    struct dp_push_ids *ids = start();
    struct dp_union_part part = part_of(&ids);
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

/* Shard 1 has closed step 11 and has a push of the open one; shard 0 is behind with the close and the view. */
static void test_sync_steps(void **unused)
{
    (void)unused;
    static struct dp_steps all;
    struct dp_union_part parts[2];
    struct dp_union cut;
    struct dp_error err = {0};
    put_steps(&parts[1], 4, 9, DP_SYNC, 12, (uint64_t[]){13, 12});
    put_steps(&parts[0], 4, 8, DP_SYNC, 11, (uint64_t[]){12, 11});
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_OK);
    assert_true(cut.has_sync && cut.run == 4 && cut.step == 12);
    take_steps(&cut, &all);
    assert_true(all.open == 12 && all.view.number == 9 && all.next[0] == 12 && all.next[1] == 12);
    dp_steps_clear(&all);
    dp_union_clear(&cut);
    free_parts(parts, 2);
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
    (void)unused;
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

static void test_ssp_steps(void **unused)
{
    (void)unused;
    static struct dp_steps all;
    struct dp_union_part parts[2];
    struct dp_union cut;
    struct dp_error err = {0};
    put_steps(&parts[0], 4, 9, DP_SSP, 3, (uint64_t[]){13, 11});
    put_steps(&parts[1], 4, 9, DP_SSP, 3, (uint64_t[]){12, 14});
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_OK);
    assert_true(!cut.has_sync && cut.run == 4 && cut.step == 0);
    take_steps(&cut, &all);
    assert_true(all.open == 3 && all.next[0] == 13 && all.next[1] == 14);
    dp_steps_clear(&all);
    dp_union_clear(&cut);
    free_parts(parts, 2);
}

/* Shard 1 left a push of member 0 out, while one of member 1 came: that member 0 has finished its step no shard may know. */
static void test_steps_of_what_is_left_out(void **unused)
{
    (void)unused;
    static struct dp_steps all;
    static char told[4096];
    struct dp_union_part parts[2], then;
    struct dp_union cut;
    struct dp_error err = {0};
    struct dp_push_ids *ids = start();
    put_steps(&parts[0], 4, 9, DP_SSP, 3, (uint64_t[]){13, 14});
    put_steps(&parts[1], 4, 9, DP_SSP, 3, (uint64_t[]){12, 13});
    put_steps(&then, 4, 9, DP_SSP, 3, (uint64_t[]){12, 15});
    put(ids, LEFT, 0);
    free((void *)(uintptr_t)parts[0].ids);
    parts[0].ids = dp_push_ids_pack(ids, &parts[0].ids_bytes);
    dp_push_ids_free(&ids);
    assert_int_equal(dp_union_make(parts, 2, &cut, &err), DP_OK);
    dp_store_u64le(told, LEFT);
    memcpy(told + 32, then.steps, then.steps_bytes);
    assert_int_equal(
        dp_union_leave_out(&cut, (struct dp_union_left_out[]){{0}, {told, 32 + then.steps_bytes - 1}}, &err),
        DP_CORRUPT);
    assert_int_equal(
        dp_union_leave_out(&cut, (struct dp_union_left_out[]){{0}, {told, 32 + then.steps_bytes}}, &err),
        DP_OK);
    assert_int_equal(cut.exceptions.count, 1);
    take_steps(&cut, &all);
    assert_true(all.open == 3 && all.next[0] == 12 && all.next[1] == 14);
    dp_steps_clear(&all);
    dp_union_clear(&cut);
    free_parts(parts, 2);
    free_parts(&then, 1);
}

static void test_shards_in_different_runs(void **unused)
{
    (void)unused;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_pushes),
        cmocka_unit_test(test_forgotten_stream),
        cmocka_unit_test(test_refusals_are_united),
        cmocka_unit_test(test_pushes_that_are_left_out),
        cmocka_unit_test(test_left_out_beyond_the_window),
        cmocka_unit_test(test_shard_that_lacks_too_much),
        cmocka_unit_test(test_ids_that_are_none),
        cmocka_unit_test(test_sync_steps),
        cmocka_unit_test(test_members_that_left_the_open_step),
        cmocka_unit_test(test_ssp_steps),
        cmocka_unit_test(test_steps_of_what_is_left_out),
        cmocka_unit_test(test_shards_in_different_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal    A synchronous step that is larger than its shard can close is refused at the push that makes it so, with sizes; nothing of
 *         that push is kept, and the step can be completed by a smaller one under the same number.
 * Method  Two members and one step; each bound is broken by both together, never by one. */
#include "tests/unit/server/shard/member_bed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB     ((uint64_t)1 << 20)
#define EACH    40u  /* tables of one push: two are over DP_SECTIONS_MAX */
#define LONGEST 1000 /* values of a row */

struct scene {
    struct bed bed;
    uint64_t sequence[2];
    struct dp_table_spec spec[2 * EACH];
};

static struct scene *scene_of(uint32_t tables, uint32_t dim, uint64_t cache, uint64_t segment,
                              uint64_t budget)
{
    struct scene *s = calloc(1, sizeof *s);
    struct member_bed_view view = member_bed_view(DP_SYNC, 0, 2);
    assert_non_null(s);
    bed_init(&s->bed, 16);
    s->bed.timeout_ms = 60000;
    if (cache)
        s->bed.host.options.cache_bytes = cache;
    shard_bed_journal(&s->bed.host, dp_sim_disk_new(1), DP_DURABILITY_MACHINE, segment, budget);
    bed_open_shard(&s->bed);
    bed_meet(&s->bed, 1);
    bed_meet(&s->bed, 2);
    s->sequence[0] = s->sequence[1] = 1;
    for (uint32_t t = 0; t < tables; t++) {
        char name[8];
        (void)snprintf(name, sizeof name, "t%u", (unsigned)t);
        s->spec[t] = bed_sgd(name, dim);
        bed_make_table(&s->bed, 1, s->sequence[0]++, &s->spec[t]);
    }
    bed_expect(&s->bed, member_bed_put(&s->bed, &view), DP_OK);
    return s;
}

static void scene_free(struct scene *s)
{
    bed_close(&s->bed);
    free(s);
}

/* Takes the frames of the push's sections. */
static uint64_t send(struct scene *s, struct dp_request *request, uint32_t table, uint64_t first,
                     uint32_t rows)
{
    static struct dp_frame frames[2 * EACH];
    uint64_t *keys = malloc(rows * sizeof *keys);
    assert_non_null(keys);
    bed_keys(&s->bed, first, rows, keys);
    for (uint32_t t = 0; t < request->sections; t++) {
        const struct dp_table_spec *spec = &s->spec[table + t];
        request->section[t] = (struct dp_section){.table = dp_table_id(spec->name), .rows = rows};
        frames[2 * t] = dp_frame_copy(keys, rows * sizeof *keys);
        frames[2 * t + 1] = dp_frame_new((size_t)rows * spec->dim * 4);
        memset(frames[2 * t + 1].data, 0, (size_t)rows * spec->dim * 4);
    }
    free(keys);
    return bed_send(&s->bed, request, frames, 2 * request->sections);
}

/* A push of step 0: `rows` rows of each of these tables, with keys from `first`; again while it hears AGAIN. */
static const struct bed_reply *push(struct scene *s, uint32_t rank, uint32_t table, uint32_t tables,
                                    uint64_t first, uint32_t rows)
{
    const struct bed_reply *reply = NULL;
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 1 + rank,
                                 .sequence = s->sequence[rank]++,
                                 .stream = MEMBER_BED_STREAM,
                                 .number = rank,
                                 .rate = 1,
                                 .member = member_bed_member(rank, 0),
                                 .sections = tables};
    request.member.examples = 1;
    for (int tries = 0; tries < 9 && (!reply || reply->reply.status == DP_AGAIN); tries++) {
        uint64_t id = send(s, &request, table, first, rows);
        bed_turn(&s->bed);
        reply = bed_reply_to(&s->bed, id);
        assert_non_null(reply);
    }
    return reply;
}

static void is_refused(const struct bed_reply *reply, const char *text)
{
    assert_int_equal(reply->reply.status, DP_INVALID);
    if (!strstr(reply->reply.reason, text))
        fail_msg("'%s' is not in: %s", text, reply->reply.reason);
}

static void is_closed_by(struct scene *s, const struct bed_reply *reply)
{
    assert_int_equal(reply->reply.status, DP_OK);
    assert_false(reply->reply.repeated);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
}

/* Planted: no bound. */
static void tables_of_a_step_are_bounded(void **state)
{
    struct scene *s = scene_of(2 * EACH, 1, 0, MIB, 64 * MIB);
    assert_int_equal(push(s, 0, 0, EACH, 1, 1)->reply.status, DP_OK);
    is_refused(push(s, 1, EACH, EACH, 1, 1),
               "step 0 pushes to more than 64 tables: push to fewer in one step");
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 0);
    is_closed_by(s, push(s, 1, EACH, DP_SECTIONS_MAX - EACH, 1, 1));
    scene_free(s);
}

static void rows_of_a_step_are_bounded(void **state)
{
    struct scene *s = scene_of(1, 10, MIB, MIB, 64 * MIB);
    uint32_t rows = 5000; /* each takes some 100 bytes there */
    assert_int_equal(push(s, 0, 0, 1, 1, rows)->reply.status, DP_OK);
    is_refused(push(s, 1, 0, 1, 100000, rows), "of a row cache of 1048576; a step may take 524288");
    is_closed_by(s, push(s, 1, 0, 1, 100000, 1));
    scene_free(s);
}

/* Each row counts once, whoever pushes it. */
static void rows_of_all_members_count_once(void **state)
{
    struct scene *s = scene_of(1, 10, MIB, MIB, 64 * MIB);
    uint32_t rows = 5000;
    assert_int_equal(push(s, 0, 0, 1, 1, rows)->reply.status, DP_OK);
    is_closed_by(s, push(s, 1, 0, 1, 11, rows)); /* and ten more */
    scene_free(s);
}

/* The same rows, so that only the pushes themselves are many. */
static void bytes_that_are_kept_are_bounded(void **state)
{
    struct scene *s = scene_of(1, LONGEST, 256 * MIB, 128 * MIB, 1024 * MIB);
    uint32_t rows = (uint32_t)(33 * MIB / (LONGEST * 4 + 8));
    assert_int_equal(push(s, 0, 0, 1, 1, rows)->reply.status, DP_OK);
    is_refused(push(s, 1, 0, 1, 1, rows), "a quarter of cache_bytes or 64 MiB: take smaller minibatches");
    is_closed_by(s, push(s, 1, 0, 1, 1, 1));
    scene_free(s);
}

static void bytes_in_the_journal_are_bounded(void **state)
{
    struct scene *s = scene_of(1, 10, 0, MIB / 4, MIB); /* an eighth: 128 KiB */
    uint32_t rows = 1000;
    assert_int_equal(push(s, 0, 0, 1, 1, rows)->reply.status, DP_OK);
    is_refused(push(s, 1, 0, 1, 1, rows), "bytes of the journal, and its close");
    is_closed_by(s, push(s, 1, 0, 1, 1, 1));
    scene_free(s);
}

/* A step lacks a push whose contents were refused until the same number brings another. Planted: it is refused for good. */
static void a_refused_push_uses_up_no_number(void **state)
{
    struct scene *s = scene_of(1, 1, 0, MIB, 64 * MIB);
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 2,
                                 .sequence = s->sequence[1]++,
                                 .stream = MEMBER_BED_STREAM,
                                 .number = 1,
                                 .rate = 1,
                                 .member = member_bed_member(1, 0),
                                 .sections = 1,
                                 .section = {{.table = dp_table_id("t0"), .rows = 1}}};
    const float gradient = NAN;
    uint64_t key;
    bed_keys(&s->bed, 1, 1, &key);
    struct dp_frame frames[2] = {dp_frame_copy(&key, sizeof key), dp_frame_copy(&gradient, sizeof gradient)};
    assert_int_equal(push(s, 0, 0, 1, 1, 1)->reply.status, DP_OK);
    uint64_t id = bed_send(&s->bed, &request, frames, 2);
    bed_turn(&s->bed);
    bed_expect(&s->bed, id, DP_NOT_FINITE);
    is_closed_by(s, push(s, 1, 0, 1, 1, 1));
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_a_step_are_bounded),
        cmocka_unit_test(rows_of_a_step_are_bounded),
        cmocka_unit_test(rows_of_all_members_count_once),
        cmocka_unit_test(bytes_that_are_kept_are_bounded),
        cmocka_unit_test(bytes_in_the_journal_are_bounded),
        cmocka_unit_test(a_refused_push_uses_up_no_number),
    };
    return cmocka_run_group_tests_name("step bounds", tests, NULL, NULL);
}

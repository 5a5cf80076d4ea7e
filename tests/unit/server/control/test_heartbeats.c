/* Heartbeats: whose silence is told, and from when it counts. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "server/control/heartbeats.h"

#include <stdlib.h>
#include <string.h>

#define S_NS UINT64_C(1000000000)

struct answers {
    uint32_t count, members;
    uint64_t id, ms[DP_MEMBERS_MAX];
};

static void keep(void *context, const struct dp_peer *to, struct dp_reply *reply, struct dp_frame *frames,
                 uint32_t frame_count)
{
    struct answers *answers = context;
    assert_int_equal(frame_count, 1);
    assert_true(reply->kind == DP_REPLY_SILENCES && reply->session == 9);
    answers->count++;
    answers->id = reply->id;
    answers->members = (uint32_t)(frames->size / 8);
    for (uint32_t i = 0; i < answers->members; i++)
        answers->ms[i] = dp_load_u64le((const char *)frames->data + 8 * (size_t)i);
    dp_frame_release(frames);
}

static enum dp_status heartbeat(struct dp_control_heartbeats *heartbeats, uint64_t now_ns, uint32_t run,
                                uint32_t rank, uint32_t members)
{
    const struct dp_peer from = {0};
    struct dp_request *request = calloc(1, sizeof *request);
    struct dp_error err = {0};
    assert_non_null(request);
    request->kind = DP_REQUEST_HEARTBEAT;
    request->session = 9;
    request->id = 100 + rank;
    request->heartbeat = (struct dp_heartbeat){run, rank, members};
    enum dp_status st = dp_control_heartbeats_take(heartbeats, now_ns, &from, request, &err);
    free(request);
    return st;
}

static struct answers answers_at(struct dp_control_heartbeats *heartbeats, uint64_t now_ns)
{
    struct answers answers = {0};
    dp_control_heartbeats_answer(heartbeats, now_ns, keep, &answers);
    return answers;
}

static void silence_counts_from_the_last_beat(void **state)
{
    struct dp_control_heartbeats *heartbeats = *state;
    assert_int_equal(heartbeat(heartbeats, 10 * S_NS, 1, 0, 3), DP_OK);
    assert_int_equal(heartbeat(heartbeats, 12 * S_NS, 1, 1, 3), DP_OK);
    struct answers a = answers_at(heartbeats, 15 * S_NS);
    assert_true(a.count == 2 && a.members == 3 && a.id == 101);
    assert_true(a.ms[0] == 5000 && a.ms[1] == 3000);
    assert_true(a.ms[2] == 5000); /* never heard: since the run was heard of */
    assert_int_equal(answers_at(heartbeats, 16 * S_NS).count, 0);
}

/* A server that was suspended for long: whatever stands in its socket is heard before the first answer. */
static void all_that_waits_is_heard_before_anything_is_told(void **state)
{
    struct dp_control_heartbeats *heartbeats = *state;
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(heartbeat(heartbeats, 10 * S_NS, 1, rank, 3), DP_OK);
    (void)answers_at(heartbeats, 10 * S_NS);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(heartbeat(heartbeats, 50 * S_NS, 1, rank, 3), DP_OK);
    struct answers a = answers_at(heartbeats, 50 * S_NS);
    assert_int_equal(a.count, 3);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_true(a.ms[rank] == 0);
}

static void a_newer_run_begins_anew_and_an_older_one_is_over(void **state)
{
    struct dp_control_heartbeats *heartbeats = *state;
    assert_int_equal(heartbeat(heartbeats, 10 * S_NS, 1, 1, 2), DP_OK);
    assert_int_equal(heartbeat(heartbeats, 90 * S_NS, 2, 0, 2), DP_OK);
    assert_int_equal(heartbeat(heartbeats, 91 * S_NS, 1, 1, 2), DP_INVALID);
    struct answers a = answers_at(heartbeats, 92 * S_NS);
    assert_true(a.count == 1 && a.ms[0] == 2000 && a.ms[1] == 2000);
}

static void a_run_that_nobody_began_is_over_when_it_is_silent(void **state)
{
    struct dp_control_heartbeats *heartbeats = *state;
    assert_int_equal(heartbeat(heartbeats, 10 * S_NS, 7, 0, 2), DP_OK);
    assert_int_equal(heartbeat(heartbeats, 11 * S_NS, 1, 0, 3), DP_INVALID);
    assert_int_equal(heartbeat(heartbeats, 69 * S_NS, 1, 0, 3), DP_INVALID);
    assert_int_equal(heartbeat(heartbeats, 71 * S_NS, 1, 0, 3), DP_OK);
    assert_int_equal(heartbeat(heartbeats, 72 * S_NS, 1, 1, 3), DP_OK);
    struct answers a = answers_at(heartbeats, 73 * S_NS);
    assert_true(a.members == 3 && a.ms[0] == 2000 && a.ms[1] == 1000 && a.ms[2] == 2000);
}

static void a_flood_is_heard_and_answered_in_part(void **state)
{
    struct dp_control_heartbeats *heartbeats = *state;
    for (uint32_t i = 0; i < 3 * DP_MEMBERS_MAX; i++)
        assert_int_equal(heartbeat(heartbeats, 10 * S_NS + i, 1, i % DP_MEMBERS_MAX, DP_MEMBERS_MAX), DP_OK);
    struct answers a = answers_at(heartbeats, 11 * S_NS);
    assert_true(a.count == DP_MEMBERS_MAX && a.members == DP_MEMBERS_MAX);
    assert_true(a.ms[0] == 999 && a.ms[DP_MEMBERS_MAX - 1] == 999);
}

static int make(void **state)
{
    *state = calloc(1, sizeof(struct dp_control_heartbeats));
    return *state ? 0 : -1;
}

static int drop(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(silence_counts_from_the_last_beat, make, drop),
        cmocka_unit_test_setup_teardown(all_that_waits_is_heard_before_anything_is_told, make, drop),
        cmocka_unit_test_setup_teardown(a_newer_run_begins_anew_and_an_older_one_is_over, make, drop),
        cmocka_unit_test_setup_teardown(a_run_that_nobody_began_is_over_when_it_is_silent, make, drop),
        cmocka_unit_test_setup_teardown(a_flood_is_heard_and_answered_in_part, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Sessions: found by id, the longest silent makes room, none with requests waiting. */
#include "tests/lib/test.h"

#include "server/shard/sessions.h"

#include <stdlib.h>

static uint64_t id_of(uint64_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15u; /* in no order */
}

static struct dp_waiting *new_waiting(uint64_t sequence)
{
    struct dp_waiting *waiting = calloc(1, sizeof *waiting);
    assert_non_null(waiting);
    waiting->request.sequence = sequence;
    return waiting;
}

/* All places taken; session i was heard at 1000 + i, but the first `busy` ones of them wait. */
static struct dp_sessions *full(uint32_t busy)
{
    struct dp_sessions *sessions = NULL;
    assert_int_equal(dp_sessions_new(&sessions), DP_OK);
    for (uint64_t i = 0; i < DP_SESSIONS_MAX; i++) {
        struct dp_session *session = dp_sessions_add(sessions, id_of(i));
        assert_non_null(session);
        session->heard_ns = 1000 + i;
        session->expected = i;
        if (i < busy)
            dp_session_append(session, new_waiting(1));
    }
    assert_int_equal(dp_sessions_count(sessions), DP_SESSIONS_MAX);
    return sessions;
}

static void the_longest_silent_makes_room(void **state)
{
    struct dp_sessions *sessions = full(0);
    dp_sessions_find(sessions, id_of(0))->heard_ns = 9999; /* spoke again */
    dp_sessions_find(sessions, id_of(1))->runnable = true; /* the run queue points at it */
    struct dp_session *fresh = dp_sessions_add(sessions, 5);
    assert_non_null(fresh);
    assert_int_equal(fresh->expected, 0);
    assert_int_equal(dp_sessions_count(sessions), DP_SESSIONS_MAX);
    assert_null(dp_sessions_find(sessions, id_of(2)));
    for (uint64_t i = 0; i < DP_SESSIONS_MAX; i++) {
        const struct dp_session *session = dp_sessions_find(sessions, id_of(i));
        assert_true(i == 2 ? !session : session && session->expected == i && session->id == id_of(i));
    }
    assert_ptr_equal(dp_sessions_find(sessions, 5), fresh);
    dp_sessions_free(&sessions);
    assert_null(sessions);
}

static void one_whose_pull_is_held_is_kept(void **state)
{
    struct dp_sessions *sessions = full(0);
    dp_sessions_find(sessions, id_of(0))->held = 1;
    assert_non_null(dp_sessions_add(sessions, 5));
    assert_non_null(dp_sessions_find(sessions, id_of(0)));
    assert_null(dp_sessions_find(sessions, id_of(1)));
    dp_sessions_free(&sessions);
}

static void none_that_waits_makes_room(void **state)
{
    struct dp_sessions *sessions = full(DP_SESSIONS_MAX - 1);
    assert_non_null(dp_sessions_add(sessions, 5)); /* in place of the only idle one, though it spoke last */
    assert_null(dp_sessions_find(sessions, id_of(DP_SESSIONS_MAX - 1)));
    dp_session_append(dp_sessions_find(sessions, 5), new_waiting(1));
    assert_null(dp_sessions_add(sessions, 6));
    assert_int_equal(dp_sessions_count(sessions), DP_SESSIONS_MAX);
    assert_non_null(dp_sessions_find(sessions, 5));
    dp_sessions_free(&sessions); /* with all that waits: the leak checker looks */
}

/* As many members as a run can have, all of them held, some of them dead: the processes that take their places come in. */
static void all_members_may_be_held_and_have_successors(void **state)
{
    struct dp_sessions *sessions = NULL;
    assert_int_equal(dp_sessions_new(&sessions), DP_OK);
    for (uint64_t i = 0; i < 2 * DP_MEMBERS_MAX; i++) {
        struct dp_session *session = dp_sessions_add(sessions, id_of(i));
        assert_non_null(session);
        session->held = 1;
    }
    dp_sessions_free(&sessions);
}

static void requests_wait_in_order(void **state)
{
    struct dp_sessions *sessions = NULL;
    assert_int_equal(dp_sessions_new(&sessions), DP_OK);
    struct dp_session *session = dp_sessions_add(sessions, 1);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 1; i <= 5; i++)
            dp_session_append(session, new_waiting(i));
        assert_int_equal(session->waiting, 5);
        for (uint64_t i = 1; i <= 5; i++) {
            struct dp_waiting *first = dp_session_take_first(session);
            assert_int_equal(first->request.sequence, i);
            assert_null(first->next);
            dp_waiting_free(&first);
            assert_null(first);
        }
        assert_true(!session->first && !session->last && session->waiting == 0);
    }
    dp_sessions_free(&sessions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_silent_makes_room),
        cmocka_unit_test(one_whose_pull_is_held_is_kept),
        cmocka_unit_test(none_that_waits_makes_room),
        cmocka_unit_test(all_members_may_be_held_and_have_successors),
        cmocka_unit_test(requests_wait_in_order),
    };
    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}

/* Goal    each minibatch of what is leased comes once, in order; the first server is told all that is held and done, once.
 * Method  a scripted first server. */
#include "tests/lib/test.h"
#include "worker/coordinate/work_leases.h"
#include "worker/schedule/shares.h"

#include <stdlib.h>
#include <string.h>

#define RUN     3u
#define BATCHES 10u /* of 3 workers in groups of 3: 4, 3, 3 minibatches; numbers 0 .. 3 (worker 0 has two) */
#define WORKERS 3u
#define EVERY   3u

struct server {
    struct dp_leased answer[8]; /* in this order */
    enum dp_status fails[8];
    uint32_t asked, pushed;
    enum dp_status pushed_fails;
    uint64_t has; /* bits: what every shard has */
    /* The last request. */
    struct dp_lease last;
    uint64_t held[16], done[16], told;
    bool patient;
    uint64_t now_ns;
};

enum dp_status __wrap_dp_client_lease(struct dp_client *client, const struct dp_lease *ask,
                                      uint32_t timeout_ms, struct dp_leased *out, struct dp_error *err);
enum dp_status __wrap_dp_client_lease(struct dp_client *client, const struct dp_lease *ask,
                                      uint32_t timeout_ms, struct dp_leased *out, struct dp_error *err)
{
    struct server *server = (struct server *)client;
    uint32_t i = server->asked++;
    assert_true(i < 8 && ask->held_count <= 16 && ask->done_count <= 16);
    server->last = *ask;
    server->patient = timeout_ms > 250; /* by the retry policy */
    server->told = ask->pushed ? ask->pushed[0] : 0;
    memcpy(server->held, ask->held, ask->held_count * sizeof server->held[0]);
    memcpy(server->done, ask->done, ask->done_count * sizeof server->done[0]);
    *out = server->answer[i];
    return server->fails[i] == DP_OK ? DP_OK : dp_fail(err, server->fails[i], "away");
}

enum dp_status __wrap_dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count,
                                    uint64_t *bits, struct dp_error *err);
enum dp_status __wrap_dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count,
                                    uint64_t *bits, struct dp_error *err)
{
    struct server *server = (struct server *)job->client;
    server->pushed++;
    assert_true(stream == dp_push_stream(RUN, 2) && from == 0 && count == 4 && bits[0] == 0);
    bits[0] = server->has;
    return server->pushed_fails == DP_OK ? DP_OK : dp_fail(err, server->pushed_fails, "forgotten");
}

static uint64_t now(void *of)
{
    return ((struct server *)of)->now_ns;
}

static struct dp_cluster cluster = {.training = {.run = RUN, .timeout_ms = 60000}};
static atomic_int never;
static struct dp_job job;

static struct dp_work_leases *open_leases(struct server *server)
{
    struct dp_error err = {0};
    struct dp_work_leases *leases = NULL;
    const struct dp_share share = {.batches = BATCHES, .worker = 1, .workers = WORKERS};
    job = (struct dp_job){.cluster = &cluster,
                          .stop = &never,
                          .client = (struct dp_client *)server,
                          .clock = {.now_ns = now, .self = server}};
    server->now_ns = 1000;
    assert_int_equal(dp_work_leases_open(&job, share, EVERY, &leases, &err), DP_OK);
    dp_work_leases_begin(leases, 2);
    return leases;
}

static enum dp_lease_state ask(struct dp_work_leases *leases, bool patient, uint32_t *wait_ms)
{
    struct dp_error err = {0};
    enum dp_lease_state state = DP_LEASE_TELL;
    if (dp_work_leases_ask(leases, 2, patient, &state, wait_ms, &err) != DP_OK)
        fail_msg("%s", err.text);
    return state;
}

static void expect(struct dp_work_leases *leases, const uint64_t *minibatches, size_t n)
{
    assert_true(dp_work_leases_left(leases) == n);
    for (size_t i = 0; i < n; i++)
        assert_true(dp_work_leases_next(leases) == minibatches[i]);
    assert_true(dp_work_leases_left(leases) == 0);
}

static void leases_are_those_of_fixed_shares(void **state)
{
    struct server server = {.answer = {{.state = DP_LEASE_GIVEN, .count = 3, .number = {1, 0, 3}},
                                       {.state = DP_LEASE_GIVEN, .count = 1, .number = {2}},
                                       {.state = DP_LEASE_WAIT, .wait_ms = 7},
                                       {.state = DP_LEASE_OVER}}};
    struct dp_work_leases *leases = open_leases(&server);
    uint32_t wait_ms;
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_GIVEN);
    assert_true(server.last.run == RUN && server.last.epoch == 2 && server.last.total == 4 &&
                server.last.rank == 1);
    assert_true(server.last.want == 2 && server.last.held_count == 0 && !server.last.pushed &&
                server.patient);
    const uint64_t first[] = {1, 4, 7, 0, 3, 6, 9};
    expect(leases, first, 7);
    dp_work_leases_answered(leases, 1);
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_GIVEN);
    assert_true(server.last.held_count == 2 && server.held[0] == 0 && server.held[1] == 3);
    assert_true(server.last.done_count == 1 && server.done[0] == 1);
    const uint64_t second[] = {2, 5, 8};
    expect(leases, second, 3);
    dp_work_leases_answered(leases, 0);
    dp_work_leases_answered(leases, 3);
    dp_work_leases_answered(leases, 2);
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_WAIT);
    assert_true(wait_ms == 7 && server.last.held_count == 0 && server.last.done_count == 3);
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_OVER);
    assert_true(server.last.done_count == 0);
    dp_work_leases_begin(leases, 3);
    dp_work_leases_close(&leases);
    dp_work_leases_close(&leases);
}

/* What was done stays to be told until an answer came; training goes on meanwhile. */
static void a_server_that_is_away_is_told_later(void **state)
{
    struct server server = {.answer = {{.state = DP_LEASE_GIVEN, .count = 2, .number = {1, 2}},
                                       {0},
                                       {.state = DP_LEASE_WAIT, .wait_ms = 1}},
                            .fails = {DP_OK, DP_TIMEOUT, DP_OK, DP_REPLACED}};
    struct dp_work_leases *leases = open_leases(&server);
    struct dp_error err = {0};
    enum dp_lease_state now_is;
    uint32_t wait_ms;
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_GIVEN);
    const uint64_t first[] = {1, 4, 7, 2, 5, 8};
    expect(leases, first, 6);
    dp_work_leases_answered(leases, 1);
    assert_int_equal(ask(leases, false, &wait_ms), DP_LEASE_WAIT);
    assert_true(wait_ms >= 100 && !server.patient);
    assert_int_equal(ask(leases, false, &wait_ms), DP_LEASE_WAIT);
    assert_true(server.last.done_count == 1 && server.done[0] == 1 && server.last.held_count == 1);
    assert_int_equal(dp_work_leases_ask(leases, 1, false, &now_is, &wait_ms, &err), DP_REPLACED);
    dp_work_leases_close(&leases);
}

static void a_server_that_knows_nothing_is_told(void **state)
{
    struct server server = {.answer = {{.state = DP_LEASE_TELL},
                                       {.state = DP_LEASE_GIVEN, .count = 1, .number = {3}},
                                       {.state = DP_LEASE_TELL},
                                       {.state = DP_LEASE_OVER}},
                            .has = 7};
    struct dp_work_leases *leases = open_leases(&server);
    uint32_t wait_ms;
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_GIVEN);
    assert_true(server.pushed == 1 && server.told == 7);
    const uint64_t last[] = {9};
    expect(leases, last, 1);
    dp_work_leases_answered(leases, 3);
    /* A forgotten stream is of an epoch that is over. */
    server.has = 0;
    server.pushed_fails = DP_TOO_OLD;
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_OVER);
    assert_true(server.told == UINT64_MAX);
    dp_work_leases_close(&leases);
}

/* About 50 ms of work. */
static void as_many_are_asked_for_as_are_needed(void **state)
{
    struct server server = {.answer = {{.state = DP_LEASE_GIVEN, .count = 2, .number = {1, 2}},
                                       {.state = DP_LEASE_GIVEN, .count = 1, .number = {0}},
                                       {.state = DP_LEASE_WAIT, .wait_ms = 1}}};
    struct dp_work_leases *leases = open_leases(&server);
    uint32_t wait_ms;
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_GIVEN);
    assert_true(server.last.want == 2);
    while (dp_work_leases_left(leases) > 0)
        (void)dp_work_leases_next(leases);
    dp_work_leases_answered(leases, 1);
    dp_work_leases_answered(leases, 2);
    server.now_ns += 20000000; /* 10 ms each */
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_GIVEN);
    assert_true(server.last.want == 5);
    while (dp_work_leases_left(leases) > 0)
        (void)dp_work_leases_next(leases);
    dp_work_leases_answered(leases, 0);
    server.now_ns += 1000; /* a microsecond */
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_WAIT);
    assert_true(server.last.want > 5 && server.last.want <= DP_LEASE_WANT_MAX);
    dp_work_leases_close(&leases);
}

/* Planted: an ask that no answer came before begins the time anew, so that a slow worker counts as quick and takes much. */
static void asks_in_between_make_no_worker_quick(void **state)
{
    struct server server = {.answer = {{.state = DP_LEASE_GIVEN, .count = 2, .number = {1, 2}},
                                       {.state = DP_LEASE_WAIT, .wait_ms = 1},
                                       {.state = DP_LEASE_WAIT, .wait_ms = 1},
                                       {.state = DP_LEASE_WAIT, .wait_ms = 1}}};
    struct dp_work_leases *leases = open_leases(&server);
    uint32_t wait_ms;
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_GIVEN);
    assert_true(dp_work_leases_ahead(leases) == 0);
    while (dp_work_leases_left(leases) > 0)
        (void)dp_work_leases_next(leases);
    for (int i = 0; i < 2; i++) {
        server.now_ns += 5000000;
        assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_WAIT);
    }
    dp_work_leases_answered(leases, 1);
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_WAIT);
    assert_true(server.last.want == 5);                               /* 10 ms */
    assert_true(dp_work_leases_ahead(leases) == (uint64_t)5 * EVERY); /* minibatches */
    dp_work_leases_close(&leases);
}

/* Planted: what was given to the reader is still held. */
static void the_rest_of_an_epoch_is_given_up(void **state)
{
    struct server server = {.answer = {{.state = DP_LEASE_GIVEN, .count = 4, .number = {1, 0, 3, 2}},
                                       {.state = DP_LEASE_OVER},
                                       {.state = DP_LEASE_OVER}}};
    struct dp_work_leases *leases = open_leases(&server);
    uint32_t wait_ms;
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_GIVEN);
    for (int i = 0; i < 5; i++) /* the first is pushed, the second is being read */
        (void)dp_work_leases_next(leases);
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_OVER);
    assert_true(server.last.held_count == 4);
    dp_work_leases_give_up(leases, 1);
    assert_true(dp_work_leases_left(leases) == 0);
    assert_int_equal(ask(leases, true, &wait_ms), DP_LEASE_OVER);
    assert_true(server.last.held_count == 1 && server.held[0] == 1);
    dp_work_leases_answered(leases, 1);
    dp_work_leases_begin(leases, 3);
    dp_work_leases_close(&leases);
}

static void too_many_leases_are_refused(void **state)
{
    struct dp_error err = {0};
    struct dp_work_leases *leases;
    const struct dp_share share = {.batches = (uint64_t)DP_LEASE_TOTAL_MAX + 1, .workers = 1};
    job.cluster = &cluster;
    assert_int_equal(dp_work_leases_open(&job, share, 1, &leases, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "--push-every"));
    assert_int_equal(dp_work_leases_open(&job, share, 2, &leases, &err), DP_OK);
    dp_work_leases_close(&leases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_are_those_of_fixed_shares),
        cmocka_unit_test(a_server_that_is_away_is_told_later),
        cmocka_unit_test(a_server_that_knows_nothing_is_told),
        cmocka_unit_test(as_many_are_asked_for_as_are_needed),
        cmocka_unit_test(asks_in_between_make_no_worker_quick),
        cmocka_unit_test(the_rest_of_an_epoch_is_given_up),
        cmocka_unit_test(too_many_leases_are_refused),
    };
    return cmocka_run_group_tests_name("leases", tests, NULL, NULL);
}

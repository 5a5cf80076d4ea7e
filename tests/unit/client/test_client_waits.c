/* Waits: a server that makes a request wait, and says why. */
#include "tests/unit/client/bench.h"

#include <stdio.h>

static enum dp_status recovering(const struct dp_fake_turn *it)
{
    const bool *still = it->context;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "shard 0 is recovering: 3 of 9 segments");
    it->reply->wait = (struct dp_wait){.reason = DP_WAIT_RECOVERING, .done = 3, .total = 9};
    return *still ? DP_AGAIN : DP_OK;
}

/* For a minute; then all is as it was. */
static void a_shard_that_recovers_is_asked_with_pauses(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    bool still = true;
    b.net->refuse = recovering;
    b.net->context = &still;
    b.net->shard[0].session = 0; /* it was started again */
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    uint32_t before = b.net->sent_to[0];
    for (int i = 0; i < 6; i++) {
        assert_int_equal(dp_client_wait(b.client, &ticket, 10000, NULL, &b.err), DP_TIMEOUT);
        text_has(&b, "shard 0 at tcp://f0");
        text_has(&b, "AGAIN: shard 0 is recovering: 3 of 9 segments");
        assert_true(b.err.wait.reason == DP_WAIT_RECOVERING && b.err.wait.done == 3 && b.err.wait.total == 9);
    }
    /* Pauses of 100 to 125 ms once they have grown. */
    assert_in_range(b.net->sent_to[0] - before, 60000 / 125, 60000 / 100 + 20);
    still = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, 1000, NULL, &b.err), DP_OK);
    assert_int_equal(b.net->shard[0].pushes, 1);
    done(&b);
}

/* Goal    why a server makes a request wait is told as long as it goes on saying so, and no longer.
 * Planted the last word of a server that died is told for ever; an answer to something else leaves it. */
static void the_last_word_of_a_dead_server_is_not_told_for_ever(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    bool still = true;
    b.net->refuse = recovering;
    b.net->context = &still;
    b.net->shard[0].session = 0;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, 2000, NULL, &b.err), DP_TIMEOUT);
    assert_int_equal(b.err.wait.reason, DP_WAIT_RECOVERING);
    b.net->dead[0] = true;
    assert_int_equal(dp_client_wait(b.client, &ticket, 200, NULL, &b.err), DP_TIMEOUT);
    assert_int_equal(b.err.wait.reason, DP_WAIT_RECOVERING); /* it may be between two answers */
    assert_int_equal(dp_client_wait(b.client, &ticket, 10000, NULL, &b.err), DP_TIMEOUT);
    assert_int_equal(b.err.wait.reason, DP_WAIT_NONE);
    text_has(&b, "AGAIN: shard 0 is recovering: 3 of 9 segments"); /* for a person it is worth reading */
    b.net->dead[0] = still = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, 10000, NULL, &b.err), DP_OK);
    b.net->dead[0] = true;
    assert_int_equal(push_one(&b, t, 4, WAIT_MS, &ticket), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, 200, NULL, &b.err), DP_TIMEOUT);
    assert_int_equal(b.err.wait.reason, DP_WAIT_NONE);
    done(&b);
}

/* A clock on which an hour passes before its look number `at`: there the process was suspended, from anywhere since the look before. */
static struct suspension {
    struct dp_fake_net *net;
    uint32_t looks, at; /* at 0: never */
    bool kills;         /* the server is gone when the process goes on */
    uint32_t questions; /* of which the server answers each third */
} suspension;

enum { HOUR_MS = 3600000, COUNTED_MS = 250 }; /* of a suspension */

static uint64_t now_after_suspension(void *self)
{
    struct dp_fake_net *net = self;
    if (++suspension.looks == suspension.at) {
        net->now_ns += HOUR_MS * UINT64_C(1000000);
        net->dead[0] |= suspension.kills;
    }
    return net->now_ns;
}

static enum dp_status open_suspended(struct bench *b)
{
    struct dp_transport transport = dp_fake_net_transport(b->net);
    struct dp_clock clock = {.now_ns = now_after_suspension, .self = b->net};
    return dp_client_open_over(&b->options, &transport, &clock, 41, &b->client, &b->err);
}

static enum dp_status answers_each_third(const struct dp_fake_turn *it)
{
    return it->request->kind == DP_REQUEST_POSITIONS_GET && ++suspension.questions % 3 != 0 ? DP_TIMEOUT
                                                                                            : DP_OK;
}

/* A step of the script below: what it gave, and how long it took while the process ran. */
struct step {
    enum dp_status st;
    uint64_t ms;
};

enum {
    OPEN_DEAD,
    OPEN,
    TABLE,
    WAIT_DEAD,
    ROOM_DEAD,
    WAIT,
    VALUE_DEAD,
    VALUE,
    NOTE_DEAD,
    PUSHED_DEAD,
    PUSHED,
    STEPS
};

static enum dp_status do_step(struct bench *b, int step, struct dp_client_table **t, struct dp_ticket *ticket)
{
    static const struct dp_table_spec spec = {.name = "t", .dim = 4, .optimizer = {.kind = DP_OPT_SGD}};
    static uint64_t bits[3 * DP_POSITIONS_MAX / 64];
    struct dp_register_value value;
    struct dp_ticket refused;
    enum dp_status st;
    b->net->dead[0] = step == OPEN_DEAD || step == WAIT_DEAD || step == ROOM_DEAD || step == PUSHED_DEAD;
    b->net->dead[1] = step == VALUE_DEAD || step == NOTE_DEAD;
    switch (step) {
    case OPEN_DEAD:
    case OPEN:
        return open_suspended(b);
    case TABLE:
        return dp_client_table(b->client, &spec, 1000, t, &b->err);
    case WAIT_DEAD:
        assert_int_equal(push_one(b, *t, 3, 1000, ticket), DP_OK);
        return dp_client_wait(b->client, ticket, 2000, NULL, &b->err);
    case ROOM_DEAD:
        return push_one(b, *t, 4, 1000, &refused);
    case WAIT:
        return dp_client_wait(b->client, ticket, 1000, NULL, &b->err);
    case VALUE_DEAD:
    case VALUE:
        st = dp_client_register_get(b->client, "v", 1, 700, 500, &value, &b->err);
        dp_register_value_clear(&value);
        return st;
    case NOTE_DEAD:
        return dp_client_note_put(b->client, "n", "", 0, 1000, &b->err);
    default:
        return dp_client_pushed(b->client, 1, 0, 3 * DP_POSITIONS_MAX, bits, step == PUSHED ? 1800 : 1000,
                                &b->err);
    }
}

static void run_script(uint32_t at, struct step *steps)
{
    struct bench b = made(1);
    struct dp_client_table *t = NULL;
    struct dp_ticket ticket = {0};
    b.options.window = 1;
    b.net->refuse = answers_each_third;
    suspension = (struct suspension){.net = b.net, .at = at};
    for (int i = 0; i < STEPS; i++) {
        uint64_t begun = b.net->now_ns;
        bool before = at > 0 && suspension.looks >= at;
        steps[i].st = do_step(&b, i, &t, &ticket);
        steps[i].ms = (b.net->now_ns - begun) / 1000000;
        if (at > 0 && !before && suspension.looks >= at)
            steps[i].ms -= HOUR_MS;
    }
    done(&b);
}

/* Goal    a wait goes on where it was when the process goes on that was suspended, wherever that began: the servers may have been
 *         suspended, too.
 * Method  an hour before each look at the clock in turn, until the script has no more looks.
 * Planted the hour counts where it begins outside of the transport's wait; a deadline of several requests counts it. */
static void a_suspended_process_waits_as_if_it_had_not_been(void **state)
{
    static const enum dp_status expected[STEPS] = {
        [OPEN_DEAD] = DP_UNAVAILABLE, [WAIT_DEAD] = DP_TIMEOUT, [ROOM_DEAD] = DP_TIMEOUT,
        [VALUE_DEAD] = DP_TIMEOUT,    [NOTE_DEAD] = DP_TIMEOUT, [PUSHED_DEAD] = DP_TIMEOUT};
    static const uint64_t least_ms[STEPS] = {
        /* of waits that end by their time */

        [OPEN_DEAD] = 1000, [WAIT_DEAD] = 2000, [ROOM_DEAD] = 1000,  [VALUE_DEAD] = 1200,
        [VALUE] = 700,      [NOTE_DEAD] = 1000, [PUSHED_DEAD] = 1000};
    struct step undisturbed[STEPS], steps[STEPS];
    run_script(0, undisturbed);
    for (uint32_t at = 1;; at++) {
        run_script(at, steps);
        if (suspension.looks < at)
            break;
        for (int i = 0; i < STEPS; i++) {
            bool timed = least_ms[i] == 0 || (steps[i].ms >= least_ms[i] - COUNTED_MS &&
                                              steps[i].ms <= undisturbed[i].ms + COUNTED_MS);
            if (steps[i].st != expected[i] || undisturbed[i].st != expected[i] || !timed)
                fail_msg("suspended before look %u: step %d gave %s after %u ms, else %s after %u ms", at, i,
                         dp_status_name((int)steps[i].st), (unsigned)steps[i].ms,
                         dp_status_name((int)undisturbed[i].st), (unsigned)undisturbed[i].ms);
        }
    }
    assert_true(suspension.looks > 100);
}

/* Goal    a server that died while this process was suspended is waited for as long as any other. */
static void a_server_that_dies_during_a_suspension_is_waited_for(void **state)
{
    uint32_t at = 0, timeouts = 0;
    do {
        struct bench b = made(1);
        struct dp_ticket ticket;
        b.net->faults = (struct dp_fake_faults){.slow = 1000, .slow_ms = 90};
        suspension = (struct suspension){.net = b.net};
        assert_int_equal(open_suspended(&b), DP_OK);
        struct dp_client_table *t = table(&b, "t", 4);
        suspension = (struct suspension){.net = b.net, .at = ++at, .kills = true};
        uint64_t begun = b.net->now_ns;
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
        if (dp_client_wait(b.client, &ticket, 2000, NULL, &b.err) == DP_TIMEOUT) {
            timeouts++;
            text_has(&b, "no answer from shard 0");
            assert_in_range((b.net->now_ns - begun) / 1000000, HOUR_MS + 2000 - COUNTED_MS, HOUR_MS + 2200);
            b.net->dead[0] = false;
            assert_int_equal(dp_client_wait(b.client, &ticket, 2000, NULL, &b.err), DP_OK);
        }
        assert_int_equal(b.net->shard[0].pushes, 1);
        done(&b);
    } while (suspension.looks >= at);
    assert_true(timeouts > 2);
}

static void (*wait_in_time)(void *self, uint32_t timeout_ms);

static void wait_too_long(void *self, uint32_t timeout_ms)
{
    struct dp_fake_net *net = self;
    wait_in_time(self, timeout_ms);
    net->now_ns += UINT64_C(3000000000);
}

/* Goal    a process that is late at each look, as on a machine with too much to do, ends its waits, too.
 * Planted a late look does not count at all. */
static void a_late_process_ends_its_waits(void **state)
{
    struct bench b = made(1);
    struct dp_transport transport = dp_fake_net_transport(b.net);
    struct dp_clock clock = dp_fake_net_clock(b.net);
    b.net->dead[0] = true;
    wait_in_time = transport.wait;
    transport.wait = wait_too_long;
    assert_int_equal(dp_client_open_over(&b.options, &transport, &clock, 41, &b.client, &b.err),
                     DP_UNAVAILABLE);
    assert_in_range(b.net->now_ns / 1000000, 1000, 4 * 3200 + 3200);
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_that_recovers_is_asked_with_pauses),
        cmocka_unit_test(the_last_word_of_a_dead_server_is_not_told_for_ever),
        cmocka_unit_test(a_suspended_process_waits_as_if_it_had_not_been),
        cmocka_unit_test(a_server_that_dies_during_a_suspension_is_waited_for),
        cmocka_unit_test(a_late_process_ends_its_waits),
    };
    return cmocka_run_group_tests_name("client_waits", tests, NULL, NULL);
}

/* member: joining and leaving a run against a register and shards that lose, refuse and forget. */
#include "tests/unit/client/bench.h"

static const struct dp_join as_one = {
    .run = 3, .rank = 1, .members = 3, .mode = DP_SSP, .slack = 2, .first_step = 5};

static enum dp_status join(struct bench *b, const struct dp_join *how)
{
    return dp_client_join(b->client, how, WAIT_MS, &b->err);
}

static struct bench joined(uint32_t shards)
{
    struct bench b = opened(shards, false);
    if (join(&b, &as_one) != DP_OK)
        fail_msg("%s", b.err.text);
    return b;
}

/* What the register has; the test's to clear. */
static struct dp_view registered(const struct bench *b)
{
    struct dp_view view;
    struct dp_error err = {0};
    if (dp_view_unpack(b->net->value.bytes, b->net->value.size, &view, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_true(view.number == b->net->value.version);
    return view;
}

/* Somebody else's doing: another incarnation in a rank's place, or its end. */
static void others_set(struct dp_fake_net *net, uint32_t rank, struct dp_member member)
{
    struct dp_view view;
    assert_int_equal(dp_view_unpack(net->value.bytes, net->value.size, &view, NULL), DP_OK);
    view.member[rank] = member;
    view.number = ++net->value.version;
    net->value.nonce = 0;
    dp_view_pack(&view, net->value.bytes);
    dp_view_clear(&view);
}

static void the_first_makes_the_view_and_hands_it_to_all_shards(void **state)
{
    struct bench b = joined(3);
    struct dp_view view = registered(&b);
    assert_true(view.run == 3 && view.number == 1 && view.mode == DP_SSP && view.slack == 2);
    assert_true(view.first_step == 5 && view.members == 3);
    assert_true(view.member[0].incarnation == 0 && view.member[2].incarnation == 0);
    uint64_t mine = view.member[1].incarnation;
    assert_true(mine != 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(view.member[i].until == UINT64_MAX);
        assert_true(b.net->shard[i].view_puts == 1 && b.net->shard[i].view.number == 1);
        assert_true(b.net->shard[i].view.member[1].incarnation == mine);
    }
    assert_int_equal(join(&b, &as_one), DP_OK); /* again: nothing to change */
    assert_true(b.net->value.version == 1);
    dp_view_clear(&view);
    done(&b);
}

static void a_later_one_takes_its_place_and_leaves_the_others(void **state)
{
    struct bench b = joined(1);
    others_set(b.net, 0, (struct dp_member){.incarnation = 17, .until = UINT64_MAX, .from = 5});
    others_set(
        b.net, 1,
        (struct dp_member){.incarnation = 18, .until = 40, .from = 5}); /* one before us, which has left */
    dp_client_close(&b.client);
    b.net->closed = false;
    struct dp_transport transport = dp_fake_net_transport(b.net);
    struct dp_clock clock = dp_fake_net_clock(b.net);
    assert_int_equal(dp_client_open_over(&b.options, &transport, &clock, 42, &b.client, &b.err), DP_OK);
    assert_int_equal(join(&b, &as_one), DP_OK);
    struct dp_view view = registered(&b);
    assert_true(view.number == 4 && view.member[0].incarnation == 17 && view.member[1].incarnation != 18);
    assert_true(view.member[1].until == 40);
    assert_true(b.net->shard[0].view.number == 4);
    dp_view_clear(&view);
    done(&b);
}

static void other_settings_are_refused_with_both_sides(void **state)
{
    struct bench b = joined(1);
    struct dp_join other = as_one;
    dp_client_close(&b.client);
    b.net->closed = false;
    assert_int_equal(open_client(&b), DP_OK);
    other.mode = DP_SYNC;
    other.slack = 0;
    assert_int_equal(join(&b, &other), DP_EXISTS);
    text_has(&b, "run 3 is ssp:2 with 3 members from step 5");
    text_has(&b, "this process means sync with 3 members from step 5");
    other = as_one;
    other.members = 4;
    assert_int_equal(join(&b, &other), DP_EXISTS);
    other = as_one;
    other.first_step = 6;
    assert_int_equal(join(&b, &other), DP_EXISTS);
    other = as_one;
    other.slack = 3;
    assert_int_equal(join(&b, &other), DP_EXISTS);
    text_has(&b, "means ssp:3");
    assert_true(b.net->value.version == 1 && b.net->shard[0].view_puts == 1);
    other.rank = 3;
    assert_int_equal(join(&b, &other), DP_ARGUMENT);
    other = as_one;
    other.mode = DP_SYNC;
    other.slack = 3;
    assert_int_equal(join(&b, &other), DP_ARGUMENT);
    text_has(&b, "3 backup members of 3, expected fewer");
    other.mode = DP_ASYNC;
    assert_int_equal(join(&b, &other), DP_ARGUMENT);
    done(&b);
}

static void tells_an_older_view(const struct dp_fake_turn *it)
{
    if (it->reply->kind == DP_REPLY_VIEW)
        it->reply->version = 0;
}

/* Neither the register's bytes nor a shard's answer are trusted. */
static void what_is_no_view_of_the_run_is_refused(void **state)
{
    struct bench b = opened(2, false);
    b.net->value.version = 1;
    b.net->value.size = 5;
    assert_int_equal(join(&b, &as_one), DP_INVALID);
    text_has(&b, "cannot be used (view: format 0, expected 1");
    b.net->value.version = b.net->value.size = 0;
    b.net->tamper = tells_an_older_view;
    assert_int_equal(join(&b, &as_one), DP_INVALID);
    text_has(&b, "shard 0 at tcp://f0: acts on view 0 of the run's members, though it was given 1");
    b.net->tamper = NULL;
    b.net->value.version = 2; /* by whoever copied the first one's bytes */
    assert_int_equal(join(&b, &as_one), DP_INVALID);
    text_has(&b,
             "'run/3/view', version 2, which lists the workers of the run, cannot be used (view 1 of run 3)");
    struct dp_join other = as_one;
    other.run = 4;
    b.net->value.version = 1;
    assert_int_equal(join(&b, &other), DP_INVALID);
    text_has(&b,
             "'run/4/view', version 1, which lists the workers of the run, cannot be used (view 1 of run 3)");
    done(&b);
}

/* Before a set arrives, another process sets. */
struct rivals {
    struct dp_fake_net *net;
    uint64_t left;
};

static enum dp_status rival_sets(const struct dp_fake_turn *it)
{
    struct rivals *rivals = it->context;
    if (it->request->kind != DP_REQUEST_REGISTER_SET || rivals->left == 0)
        return DP_OK;
    others_set(rivals->net, 2,
               (struct dp_member){.incarnation = rivals->left--, .until = UINT64_MAX, .from = 5});
    return rivals->left == 2 ? DP_TOO_OLD : DP_OK; /* as if that one had been the 33rd meanwhile */
}

static void a_join_that_lost_is_tried_again(void **state)
{
    struct bench b = opened(2, false);
    struct rivals rivals = {.net = b.net, .left = 5};
    struct dp_join first = as_one;
    first.rank = 0;
    assert_int_equal(join(&b, &first), DP_OK);
    b.net->refuse = rival_sets;
    b.net->context = &rivals;
    assert_int_equal(join(&b, &as_one), DP_OK); /* this client takes another place */
    struct dp_view view = registered(&b);
    assert_true(view.number == 7 && view.member[2].incarnation == 1 && view.member[1].incarnation != 0);
    assert_true(view.member[0].incarnation != 0 && view.member[0].incarnation != view.member[1].incarnation);
    assert_true(b.net->shard[1].view.number == 7);
    dp_view_clear(&view);
    done(&b);
}

/* Half of all messages are lost: it is there once, with one incarnation, and so is its end. */
static void lost_messages_change_nothing(void **state)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct bench b = opened(3, false);
        b.net->random = seed;
        b.net->faults = (struct dp_fake_faults){.lose = 500, .twice = 200, .slow = 300, .slow_ms = 200};
        if (join(&b, &as_one) != DP_OK || dp_client_leave(b.client, 9, WAIT_MS, &b.err) != DP_OK)
            fail_msg("seed %u: %s", (unsigned)seed, b.err.text);
        struct dp_view view = registered(&b);
        assert_true(view.number == 2 && view.member[1].until == 9);
        for (uint32_t i = 0; i < 3; i++)
            assert_true(b.net->shard[i].view.number == 2);
        dp_view_clear(&view);
        done(&b);
    }
}

static void a_join_that_timed_out_is_repeated(void **state)
{
    struct bench b = opened(2, false);
    struct dp_ticket ticket;
    b.net->dead[2] = true;
    assert_int_equal(dp_client_join(b.client, &as_one, 300, &b.err), DP_TIMEOUT);
    text_has(&b, "join: register value 'run/3/view': no answer from control at tcp://control");
    b.net->dead[2] = false;
    b.net->dead[1] = true;
    assert_int_equal(dp_client_join(b.client, &as_one, 300, &b.err), DP_TIMEOUT);
    text_has(&b, "join: the members of the run: no answer from shard 1 at tcp://f1");
    assert_int_equal(dp_client_pull_step(b.client, 5, NULL, 0, NULL, WAIT_MS, &ticket, &b.err), DP_ARGUMENT);
    text_has(&b, "call dp_client_join first");
    struct dp_view before = registered(&b);
    b.net->dead[1] = false;
    assert_int_equal(join(&b, &as_one), DP_OK);
    struct dp_view view = registered(&b);
    assert_true(view.number == 1 && view.member[1].incarnation == before.member[1].incarnation);
    assert_true(b.net->shard[1].view.number == 1);
    dp_view_clear(&before);
    dp_view_clear(&view);
    done(&b);
}

static enum dp_status push_step(struct bench *b, uint64_t step, struct dp_ticket *ticket)
{
    static const struct dp_pulled_at at[3];
    const struct dp_push_options options = {
        .rate = 1, .pulled_at = at, .in_step = true, .step = step, .examples = 8};
    return dp_client_push(b->client, &options, NULL, 0, WAIT_MS, ticket, &b->err);
}

static void told_more(const struct dp_fake_turn *it)
{
    if (it->reply->kind != DP_REPLY_PUSHED)
        return;
    it->reply->dropped = it->shard == 1;
    it->reply->gap = 2 + it->shard;
}

static void requests_say_who_asks_and_outcomes_what_came_of_it(void **state)
{
    struct bench b = joined(3);
    struct dp_outcome outcome;
    struct dp_ticket ticket;
    b.net->tamper = told_more;
    assert_int_equal(push_step(&b, 6, &ticket), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.dropped == 1 && outcome.gaps == 3 && outcome.gap_sum == 9 && outcome.gap_max == 4);
    assert_int_equal(outcome.measured, 2); /* what was dropped was not applied to anything */
    const struct dp_membership *member = &b.net->shard[2].push[0].member;
    assert_true(member->given && member->run == 3 && member->rank == 1 && member->view == 1);
    assert_true(member->step == 6 && member->examples == 8);
    assert_true(member->incarnation == b.net->shard[2].view.member[1].incarnation);
    const struct dp_push_options plain = {.rate = 1};
    assert_int_equal(dp_client_push(b.client, &plain, NULL, 0, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.dropped == 0 && outcome.gaps == 0 && outcome.gap_sum == 0 &&
                !b.net->shard[0].push[1].member.given);
    done(&b);
}

/* Else one shard could be steps ahead of another, and who comes back would not find the weights of the step that it is to repeat. */
static void in_sync_a_push_waits_for_that_of_the_step_before(void **state)
{
    static const struct dp_join sync = {.run = 3, .rank = 1, .members = 3, .mode = DP_SYNC};
    struct bench b = opened(2, false);
    struct dp_ticket first, second;
    assert_int_equal(join(&b, &sync), DP_OK);
    b.net->dead[1] = true;
    assert_int_equal(push_step(&b, 0, &first), DP_OK);
    assert_int_equal(push_step(&b, 1, &second), DP_TIMEOUT);
    text_has(&b, "push: the one of the step before: no answer from shard 1");
    assert_true(b.net->shard[0].pushes == 1);
    b.net->dead[1] = false;
    assert_int_equal(push_step(&b, 1, &second), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &second, WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &first, WAIT_MS, NULL, &b.err), DP_OK);
    assert_true(b.net->shard[0].pushes == 2 && b.net->shard[1].pushes == 2);
    done(&b);
}

/* Planted: it waits as without backups. */
static void with_backups_a_push_waits_for_none(void **state)
{
    static const struct dp_join sync = {.run = 3, .rank = 1, .members = 3, .mode = DP_SYNC, .slack = 1};
    struct bench b = opened(2, false);
    struct dp_ticket first, second;
    assert_int_equal(join(&b, &sync), DP_OK);
    b.net->dead[1] = true;
    assert_int_equal(push_step(&b, 0, &first), DP_OK);
    assert_int_equal(push_step(&b, 1, &second), DP_OK);
    b.net->dead[1] = false;
    assert_int_equal(dp_client_wait(b.client, &first, WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &second, WAIT_MS, NULL, &b.err), DP_OK);
    assert_true(b.net->shard[0].pushes == 2 && b.net->shard[1].pushes == 2);
    done(&b);
}

static void tells_a_later_step(const struct dp_fake_turn *it)
{
    static const uint64_t open[] = {6, 9, 7};
    if (it->reply->kind == DP_REPLY_PULLED)
        it->reply->open = open[it->shard];
}

/* Goal    shards may be at different steps: it is the latest that the member goes on at.
 * Planted that of the last shard to answer. */
static void a_pull_tells_the_greatest_open_step(void **state)
{
    static const struct dp_join sync = {.run = 3, .rank = 1, .members = 3, .mode = DP_SYNC, .slack = 1};
    struct bench b = opened(3, false);
    struct dp_outcome outcome;
    struct dp_ticket ticket;
    assert_int_equal(join(&b, &sync), DP_OK);
    b.net->tamper = tells_a_later_step;
    assert_int_equal(dp_client_pull_step(b.client, 6, NULL, 0, NULL, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.open == 9);
    assert_int_equal(dp_client_pull(b.client, NULL, 0, NULL, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.open == 0);
    done(&b);
}

/* One shard says while a push waits that the place was taken; another has yet to hear of it. */
static void in_sync_a_replaced_member_goes_no_step_further(void **state)
{
    static const struct dp_join sync = {.run = 3, .rank = 1, .members = 3, .mode = DP_SYNC};
    struct bench b = opened(2, false);
    struct dp_ticket first, second;
    assert_int_equal(join(&b, &sync), DP_OK);
    b.net->shard[1].view.member[1].incarnation++;
    assert_int_equal(push_step(&b, 0, &first), DP_OK);
    assert_int_equal(push_step(&b, 1, &second), DP_REPLACED);
    assert_true(b.net->shard[0].pushes == 1 && b.net->shard[1].pushes == 0);
    done(&b);
}

static void leaving_ends_its_part(void **state)
{
    struct bench b = joined(2);
    struct dp_ticket ticket;
    b.net->dead[1] = true;
    assert_int_equal(push_step(&b, 5, &ticket), DP_OK);
    assert_int_equal(dp_client_leave(b.client, 6, 300, &b.err), DP_ARGUMENT);
    text_has(&b, "wait for it first");
    b.net->dead[1] = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_leave(b.client, UINT64_MAX, WAIT_MS, &b.err), DP_ARGUMENT);
    b.net->dead[1] = true;
    assert_int_equal(dp_client_leave(b.client, 6, 300, &b.err), DP_TIMEOUT);
    text_has(&b, "leave: the members of the run: no answer from shard 1");
    b.net->dead[1] = false;
    for (int i = 0; i < 2; i++)
        assert_int_equal(dp_client_leave(b.client, 6, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_leave(b.client, 7, WAIT_MS, &b.err), DP_INVALID);
    text_has(&b, "worker 1 left run 3 before step 6 already, and not before step 7");
    struct dp_view view = registered(&b);
    assert_true(view.number == 2 && view.member[1].until == 6 && view.member[0].until == UINT64_MAX);
    assert_true(b.net->shard[1].view.number == 2 && b.net->shard[1].view.member[1].until == 6);
    dp_view_clear(&view);
    done(&b);
}

/* By a shard or by the register: all that it does as a member is over. */
static void a_client_whose_place_was_taken_is_no_member_any_more(void **state)
{
    for (int by_shard = 0; by_shard < 2; by_shard++) {
        struct bench b = joined(2);
        struct dp_ticket ticket, waits;
        b.net->dead[0] = true;
        assert_int_equal(push_step(&b, 5, &waits), DP_OK);
        if (by_shard) {
            b.net->shard[1].view.member[1].incarnation++;
            assert_int_equal(push_step(&b, 5, &ticket), DP_OK);
            assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_REPLACED);
            text_has(&b, "shard 1 at tcp://f1: run 3: another process joined as worker 1");
        } else {
            others_set(b.net, 1, (struct dp_member){.incarnation = 4, .until = UINT64_MAX, .from = 5});
            assert_int_equal(join(&b, &as_one), DP_REPLACED);
        }
        text_has(&b, "run 3: another process joined as worker 1");
        uint64_t start = b.net->now_ns;
        assert_int_equal(dp_client_wait(b.client, &waits, WAIT_MS, NULL, &b.err), DP_REPLACED);
        assert_int_equal(push_step(&b, 6, &ticket), DP_REPLACED);
        assert_int_equal(dp_client_pull_step(b.client, 6, NULL, 0, NULL, WAIT_MS, &ticket, &b.err),
                         DP_REPLACED);
        assert_int_equal(dp_client_leave(b.client, 6, WAIT_MS, &b.err), DP_REPLACED);
        assert_int_equal(join(&b, &as_one), DP_REPLACED);
        text_has(&b, "run 3: another process joined as worker 1");
        assert_true(b.net->now_ns - start < 1000000);
        b.net->dead[0] = false;
        const struct dp_push_options plain = {.rate = 1};
        assert_int_equal(dp_client_push(b.client, &plain, NULL, 0, WAIT_MS, &ticket, &b.err), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
        done(&b);
    }
}

static void a_shard_that_lost_the_view_is_given_it_again(void **state)
{
    struct bench b = joined(2);
    struct dp_ticket ticket[3];
    dp_fake_net_restart(b.net, 1);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(push_step(&b, 5 + i, &ticket[i]), DP_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(dp_client_wait(b.client, &ticket[i], 1000, NULL, &b.err), DP_OK);
    assert_true(b.net->shard[0].view_puts == 1 && b.net->shard[1].view_puts == 2);
    for (uint64_t i = 0; i < 3; i++)
        assert_true(b.net->shard[1].push[i].member.step == 5 + i);
    assert_int_equal(b.net->shard[1].pushes, 3);
    done(&b);
}

static bool holds_step_9(const struct dp_fake_turn *it)
{
    const struct dp_fake_net *net = it->context;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "step 9 waits for worker 0");
    it->reply->wait = (struct dp_wait){DP_WAIT_STEP, 0, 8, 9};
    return it->request->member.step == 9 && net->shard[it->shard].view.member[0].until == UINT64_MAX;
}

/* Worker 0 left, and died before it could tell the shards. Who waits for it hands the view over. */
static void who_is_held_hands_a_newer_view_over(void **state)
{
    for (uint32_t replaced = 0; replaced < 2; replaced++) {
        struct bench b = joined(2);
        struct dp_ticket ticket;
        struct dp_keys *keys;
        const uint64_t key = 1;
        float weights[4];
        assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
        assert_int_equal(dp_keys_set(keys, &key, 1, &b.err), DP_OK);
        const struct dp_pull_part part = {table(&b, "t", 4), keys, weights};
        b.net->holds = holds_step_9;
        b.net->context = b.net;
        assert_int_equal(dp_client_pull_step(b.client, 9, &part, 1, NULL, WAIT_MS, &ticket, &b.err), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, 1500, NULL, &b.err), DP_TIMEOUT);
        assert_true(b.err.wait.reason == DP_WAIT_STEP && b.net->value.gets == 1);
        assert_int_equal(dp_client_wait(b.client, &ticket, 3000, NULL, &b.err), DP_TIMEOUT);
        assert_true(b.net->value.gets >= 2 && b.net->shard[0].view_puts == 1);
        others_set(b.net, replaced, (struct dp_member){.incarnation = 17, .until = 9, .from = 5});
        if (replaced) {
            assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_REPLACED);
        } else {
            assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
            assert_true(b.net->shard[0].view.number == 2 && b.net->shard[1].view.number == 2);
        }
        dp_keys_free(&keys);
        done(&b);
    }
}

/* Goal    a shard that starts again, and had lost the newest view in its crash, is given it, though what is sent again names an older one.
 * Planted nothing is given to a shard that starts again. */
static void a_shard_that_lost_the_newest_view_is_given_it(void **state)
{
    struct bench b = joined(1);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    struct dp_view older;
    assert_int_equal(dp_view_copy(&b.net->shard[0].view, &older, &b.err), DP_OK);
    b.net->dead[0] = true;
    assert_int_equal(push_step(&b, 5, &ticket), DP_OK); /* names view 1 */
    b.net->dead[0] = false;
    others_set(b.net, 0, (struct dp_member){.incarnation = 17, .until = 9, .from = 5});
    assert_int_equal(join(&b, &as_one), DP_OK);
    assert_true(b.net->shard[0].view.number == 2);
    dp_fake_net_restart(b.net, 0);
    b.net->shard[0].view = older;
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    assert_true(push_one(&b, t, 1, WAIT_MS, &ticket) == DP_OK &&
                dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err) == DP_OK);
    assert_true(b.net->shard[0].push[0].member.view == 1 && b.net->shard[0].view.number == 2);
    done(&b);
}

/* A shard that never has the view; and one that does not answer who hands it over. */
struct forgetful {
    bool silent;
    uint32_t refused, puts;
};

static enum dp_status never_has_it(const struct dp_fake_turn *it)
{
    struct forgetful *f = it->context;
    f->puts += it->request->kind == DP_REQUEST_VIEW_PUT;
    f->refused += it->request->kind == DP_REQUEST_PUSH;
    if (it->request->kind == DP_REQUEST_VIEW_PUT && f->silent)
        return DP_TIMEOUT;
    if (it->request->kind != DP_REQUEST_PUSH)
        return DP_OK;
    it->reply->wait.reason = DP_WAIT_VIEW;
    return DP_AGAIN;
}

/* Goal    a shard that says for ever that it lacks the view is given it once an answer, with the pauses of any AGAIN, and not again
 *         while one is under way.
 * Planted the answer to the view ends the pauses; each answer hands it over. */
static void a_view_is_handed_over_once_an_answer(void **state)
{
    for (int silent = 0; silent < 2; silent++) {
        struct bench b = joined(1);
        struct forgetful forgetful = {.silent = silent};
        struct dp_ticket ticket;
        b.net->refuse = never_has_it;
        b.net->context = &forgetful;
        assert_int_equal(push_step(&b, 5, &ticket), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, 10000, NULL, &b.err), DP_TIMEOUT);
        assert_true(b.err.wait.reason == DP_WAIT_VIEW);
        assert_in_range(forgetful.refused, 10000 / 125, 10000 / 100 + 20);
        if (silent)
            assert_in_range(forgetful.puts, 10, 20); /* after 100, 200, 400, 800, 800 ... */
        else
            assert_in_range(forgetful.puts, forgetful.refused - 1, forgetful.refused + 1);
        done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_makes_the_view_and_hands_it_to_all_shards),
        cmocka_unit_test(a_later_one_takes_its_place_and_leaves_the_others),
        cmocka_unit_test(other_settings_are_refused_with_both_sides),
        cmocka_unit_test(what_is_no_view_of_the_run_is_refused),
        cmocka_unit_test(a_join_that_lost_is_tried_again),
        cmocka_unit_test(lost_messages_change_nothing),
        cmocka_unit_test(a_join_that_timed_out_is_repeated),
        cmocka_unit_test(requests_say_who_asks_and_outcomes_what_came_of_it),
        cmocka_unit_test(in_sync_a_push_waits_for_that_of_the_step_before),
        cmocka_unit_test(with_backups_a_push_waits_for_none),
        cmocka_unit_test(a_pull_tells_the_greatest_open_step),
        cmocka_unit_test(in_sync_a_replaced_member_goes_no_step_further),
        cmocka_unit_test(leaving_ends_its_part),
        cmocka_unit_test(a_client_whose_place_was_taken_is_no_member_any_more),
        cmocka_unit_test(a_shard_that_lost_the_view_is_given_it_again),
        cmocka_unit_test(who_is_held_hands_a_newer_view_over),
        cmocka_unit_test(a_shard_that_lost_the_newest_view_is_given_it),
        cmocka_unit_test(a_view_is_handed_over_once_an_answer),
    };
    return cmocka_run_group_tests_name("member", tests, NULL, NULL);
}

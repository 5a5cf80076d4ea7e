/* member: taking part again after it has left, against shards that go on meanwhile.
 * Goal      When join returns, all shards have accepted the step from which it takes part, and each had known before that it left. */
#include "tests/unit/client/bench.h"

static const struct dp_join again = {
    .run = 3, .rank = 1, .members = 3, .mode = DP_SSP, .slack = 2, .first_step = 5, .returns = true};

static enum dp_status join(struct bench *b)
{
    return dp_client_join(b->client, &again, WAIT_MS, &b->err);
}

/* What the register has; the test's to clear. */
static struct dp_view registered(const struct bench *b)
{
    struct dp_view view;
    assert_int_equal(dp_view_unpack(b->net->value.bytes, b->net->value.size, &view, NULL), DP_OK);
    assert_true(view.number == b->net->value.version);
    return view;
}

static struct dp_member seat(const struct bench *b)
{
    struct dp_view view = registered(b);
    struct dp_member member = view.member[1];
    dp_view_clear(&view);
    return member;
}

/* Somebody else's doing. */
static void set_seat(struct bench *b, struct dp_member member)
{
    struct dp_view view = registered(b);
    view.member[1] = member;
    view.number = ++b->net->value.version;
    b->net->value.nonce = 0;
    dp_view_pack(&view, b->net->value.bytes);
    dp_view_clear(&view);
}

static void come_anew(struct bench *b)
{
    struct dp_transport transport = dp_fake_net_transport(b->net);
    struct dp_clock clock = dp_fake_net_clock(b->net);
    dp_client_close(&b->client);
    b->net->closed = false;
    assert_int_equal(dp_client_open_over(&b->options, &transport, &clock, 42, &b->client, &b->err), DP_OK);
}

/* Two shards; worker 1 was let leave before step 9, by a process that died before it told them. This client is a new one. */
static struct bench left(void)
{
    struct bench b = opened(2, false);
    if (join(&b) != DP_OK)
        fail_msg("%s", b.err.text);
    assert_true(dp_client_joined_at(b.client) == 5 && dp_client_missed(b.client) == 0);
    set_seat(&b, (struct dp_member){.incarnation = 17, .until = 9, .from = 5});
    come_anew(&b);
    return b;
}

static void assert_is_back(const struct bench *b)
{
    struct dp_view view = registered(b);
    const struct dp_member *member = &view.member[1];
    assert_true(member->until == UINT64_MAX && member->incarnation != 17 && member->incarnation != 0);
    assert_true(member->missed == member->from - 9);
    assert_true(dp_client_joined_at(b->client) == member->from);
    assert_true(dp_client_missed(b->client) == member->missed);
    for (uint32_t i = 0; i < 2; i++) {
        assert_false(b->net->shard[i].passed);
        assert_true(b->net->shard[i].view.number == view.number);
        assert_true(b->net->shard[i].view.member[1].from == member->from);
    }
    dp_view_clear(&view);
}

/* Each shard sees the view in which it left before one in which it returns. */
struct told {
    bool left[2];
};

static enum dp_status watch(const struct dp_fake_turn *it)
{
    struct told *told = it->context;
    struct dp_view view;
    if (it->request->kind != DP_REQUEST_VIEW_PUT)
        return DP_OK;
    assert_int_equal(dp_view_unpack(it->request->note, it->request->note_bytes, &view, NULL), DP_OK);
    told->left[it->shard] |= view.member[1].until == 9;
    assert_true(view.member[1].from == 5 || (told->left[0] && told->left[1]));
    dp_view_clear(&view);
    return DP_OK;
}

static void it_takes_part_from_a_step_that_no_shard_has_reached(void **state)
{
    struct bench b = left();
    struct told told = {0};
    b.net->refuse = watch;
    b.net->context = &told;
    b.net->shard[0].begins = 30;
    b.net->shard[1].begins = 12;
    assert_int_equal(join(&b), DP_OK);
    assert_is_back(&b);
    assert_int_equal(dp_client_joined_at(b.client), 32);
    assert_true(b.net->value.version == 3 && told.left[0] && told.left[1]);
    done(&b);
}

/* No shard names a step: then from where it left, and a little later. */
static void it_never_takes_part_before_it_left(void **state)
{
    struct bench b = left();
    assert_int_equal(join(&b), DP_OK);
    assert_is_back(&b);
    assert_int_equal(dp_client_joined_at(b.client), 11);
    done(&b);
}

static void it_moves_on_while_a_shard_passes_its_step(void **state)
{
    for (uint64_t hurries = 1; hurries <= 300; hurries += hurries) {
        struct bench b = left();
        b.net->shard[1].begins = 40;
        b.net->shard[1].hurries = hurries;
        assert_int_equal(join(&b), DP_OK);
        assert_is_back(&b);
        assert_in_range(b.net->value.version, 3, 13);
        done(&b);
    }
}

/* The process before it died after some shards had refused it. */
static void who_comes_after_one_that_moved_on_moves_on(void **state)
{
    struct bench b = left();
    struct told told = {.left = {true, true}};
    b.net->refuse = watch;
    b.net->context = &told;
    set_seat(&b, (struct dp_member){.incarnation = 18, .until = UINT64_MAX, .from = 15, .missed = 6});
    b.net->shard[0].begins = 20;
    assert_int_equal(join(&b), DP_OK);
    assert_is_back(&b);
    assert_int_equal(dp_client_joined_at(b.client), 22);
    done(&b);
}

static void a_seat_that_all_shards_know_stays_as_it_is(void **state)
{
    struct bench b = left();
    set_seat(&b, (struct dp_member){.incarnation = 18, .until = UINT64_MAX, .from = 15, .missed = 6});
    assert_int_equal(join(&b), DP_OK);
    assert_is_back(&b);
    assert_int_equal(dp_client_joined_at(b.client), 15);
    assert_true(b.net->value.version == 4);
    done(&b);
}

/* Another joins while the views are handed over: a shard that acts on that one has not been asked about this one. */
struct rival {
    struct bench *b;
    uint32_t puts;
};

static enum dp_status joins_meanwhile(const struct dp_fake_turn *it)
{
    struct rival *rival = it->context;
    struct bench *b = rival->b;
    if (it->request->kind != DP_REQUEST_VIEW_PUT || ++rival->puts != 3 || it->shard == 9)
        return DP_OK;
    struct dp_view view = registered(b);
    view.member[0].incarnation = 99;
    view.number = ++b->net->value.version;
    b->net->value.nonce = 0;
    dp_view_pack(&view, b->net->value.bytes);
    for (uint32_t i = 0; i < 2; i++) {
        dp_view_clear(&b->net->shard[i].view);
        assert_int_equal(dp_view_copy(&view, &b->net->shard[i].view, NULL), DP_OK);
        b->net->shard[i].passed = true;
        b->net->shard[i].begins = 70;
    }
    dp_view_clear(&view);
    return DP_OK;
}

static void an_answer_of_a_newer_view_is_not_taken_for_this_one(void **state)
{
    struct bench b = left();
    struct rival rival = {.b = &b};
    b.net->refuse = joins_meanwhile;
    b.net->context = &rival;
    assert_int_equal(join(&b), DP_OK);
    assert_is_back(&b);
    struct dp_view view = registered(&b);
    assert_true(view.member[0].incarnation == 99 && view.member[1].from > 70);
    assert_true(rival.puts >= 7);
    dp_view_clear(&view);
    done(&b);
}

static void it_may_be_repeated_after_a_shard_was_away(void **state)
{
    struct bench b = left();
    b.net->dead[1] = true;
    assert_int_equal(dp_client_join(b.client, &again, 300, &b.err), DP_TIMEOUT);
    text_has(&b, "no answer from shard 1");
    assert_true(seat(&b).until == 9); /* nothing is changed before all know that it left */
    b.net->dead[1] = false;
    b.net->shard[1].begins = 50;
    assert_int_equal(join(&b), DP_OK);
    assert_is_back(&b);
    assert_int_equal(dp_client_joined_at(b.client), 52);
    set_seat(&b, (struct dp_member){.incarnation = 19, .until = 60, .from = 52, .missed = 43});
    assert_int_equal(join(&b), DP_REPLACED);
    assert_true(dp_client_was_let_leave(b.client));
    done(&b);
}

static void who_does_not_return_leaves_the_end_as_it_is(void **state)
{
    struct bench b = left();
    struct dp_join how = again;
    how.returns = false;
    assert_int_equal(dp_client_join(b.client, &how, WAIT_MS, &b.err), DP_OK);
    struct dp_member member = seat(&b);
    assert_true(member.until == 9 && member.from == 5 && member.missed == 0 && member.incarnation != 17);
    assert_true(dp_client_joined_at(b.client) == 5 && dp_client_missed(b.client) == 0);
    done(&b);
}

static void nobody_leaves_before_it_takes_part(void **state)
{
    struct bench b = left();
    assert_int_equal(join(&b), DP_OK);
    assert_int_equal(dp_client_leave(b.client, 10, WAIT_MS, &b.err), DP_ARGUMENT);
    text_has(&b, "worker 1 takes part in run 3 from step 11 on, and cannot leave before step 10");
    assert_int_equal(dp_client_leave(b.client, 11, WAIT_MS, &b.err), DP_OK); /* in no step at all */
    struct dp_member member = seat(&b);
    assert_true(member.from == 11 && member.until == 11 && member.missed == 2);
    assert_int_equal(join(&b), DP_OK); /* and back again */
    member = seat(&b);
    assert_true(member.from > 11 && member.until == UINT64_MAX && member.missed == member.from - 9);
    done(&b);
}

/* By the register and by a shard; and where another process took the place. */
static void who_was_let_leave_is_told_apart(void **state)
{
    for (int by_shard = 0; by_shard < 2; by_shard++) {
        for (int other = 0; other < 2; other++) {
            struct bench b = opened(2, false);
            struct dp_ticket ticket;
            const struct dp_push_options options = {
                .rate = 1, .stream = 77, .number = 5, .in_step = true, .step = 5};
            assert_int_equal(join(&b), DP_OK);
            assert_false(dp_client_was_let_leave(b.client));
            struct dp_member member = {.incarnation = 17, .until = other ? UINT64_MAX : 9, .from = 5};
            if (by_shard)
                b.net->shard[1].view.member[1] = member;
            else
                set_seat(&b, member);
            enum dp_status st =
                by_shard ? dp_client_push(b.client, &options, NULL, 0, WAIT_MS, &ticket, &b.err) : join(&b);
            if (by_shard && st == DP_OK)
                st = dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err);
            assert_int_equal(st, DP_REPLACED);
            assert_int_equal(dp_client_was_let_leave(b.client), !other);
            assert_int_equal(join(&b), DP_REPLACED); /* for good */
            assert_int_equal(dp_client_was_let_leave(b.client), !other);
            done(&b);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_part_from_a_step_that_no_shard_has_reached),
        cmocka_unit_test(it_never_takes_part_before_it_left),
        cmocka_unit_test(it_moves_on_while_a_shard_passes_its_step),
        cmocka_unit_test(who_comes_after_one_that_moved_on_moves_on),
        cmocka_unit_test(a_seat_that_all_shards_know_stays_as_it_is),
        cmocka_unit_test(an_answer_of_a_newer_view_is_not_taken_for_this_one),
        cmocka_unit_test(it_may_be_repeated_after_a_shard_was_away),
        cmocka_unit_test(who_does_not_return_leaves_the_end_as_it_is),
        cmocka_unit_test(nobody_leaves_before_it_takes_part),
        cmocka_unit_test(who_was_let_leave_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

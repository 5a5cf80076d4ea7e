/* member: the register's view is gone or older than what the shards act on. */
#include "tests/unit/client/bench.h"

static const struct dp_join as_one = {
    .run = 3, .rank = 1, .members = 3, .mode = DP_SSP, .slack = 2, .first_step = 5};

static enum dp_status join(struct bench *b)
{
    return dp_client_join(b->client, &as_one, WAIT_MS, &b->err);
}

static void another_joins(struct dp_fake_net *net)
{
    struct dp_view view;
    assert_int_equal(dp_view_unpack(net->value.bytes, net->value.size, &view, NULL), DP_OK);
    view.member[2].incarnation++;
    view.number = ++net->value.version;
    net->value.nonce = 0;
    dp_view_pack(&view, net->value.bytes);
    dp_view_clear(&view);
}

static void acts_on_a_newer_view(const struct dp_fake_turn *it)
{
    if (it->reply->kind == DP_REPLY_VIEW && it->shard == 1)
        it->reply->version = 4;
}

/* While the view is handed over, others change it. */
static enum dp_status others_join(const struct dp_fake_turn *it)
{
    struct bench *b = it->context;
    while (it->request->kind == DP_REQUEST_VIEW_PUT && b->net->value.version < 4)
        another_joins(b->net);
    return DP_OK;
}

/* Planted: a shard's newer view is never looked into; each is taken for an old register. */
static void a_register_that_is_older_than_the_shards_is_named(void **state)
{
    struct bench b = opened(2, false);
    b.net->tamper = acts_on_a_newer_view;
    assert_int_equal(join(&b), DP_DATA);
    text_has(
        &b, "join: the register has view 1 of run 3, but the shards act on view 4: the first server's store");
    b.net->refuse = others_join;
    b.net->context = &b;
    if (join(&b) != DP_OK)
        fail_msg("%s", b.err.text);
    b.net->refuse = NULL;
    b.net->tamper = NULL;
    b.net->value.version = b.net->value.size = 0;
    assert_int_equal(dp_client_leave(b.client, 9, WAIT_MS, &b.err), DP_DATA);
    text_has(
        &b, "leave: the register no longer has the members of run 3: was the first server's store replaced?");
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_register_that_is_older_than_the_shards_is_named),
    };
    return cmocka_run_group_tests_name("member's register", tests, NULL, NULL);
}

/* client: a member's pull that a shard holds stays there, whatever is answered meanwhile, lost or forgotten. */
#include "tests/unit/client/bench.h"

enum { RETRY_MS = 400 }; /* the fake shard says HELD each 250 ms */

static const struct dp_join as_one = {.run = 3, .rank = 1, .members = 3, .mode = DP_SYNC};

struct held {
    struct bench b;
    struct dp_client_table *table;
    struct dp_keys *keys;
    float weights[4];
    struct dp_ticket pull;
    bool hold[DP_FAKE_SHARDS_MAX];
    uint32_t pulls;       /* that came, and were held */
    uint32_t timeout_ms;  /* of the last */
    uint32_t pushes_lost; /* from now on */
};

static bool holds(const struct dp_fake_turn *it)
{
    struct held *h = it->context;
    if (!h->hold[it->shard])
        return false;
    h->pulls++;
    h->timeout_ms = it->request->timeout_ms;
    it->reply->wait =
        (struct dp_wait){.reason = DP_WAIT_STEP, .subject = 2, .done = 5, .total = it->request->member.step};
    it->reply->silent_ms = 12300;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason,
                   "step %u waits for worker 2, which has finished 5 steps and was last heard 12.3 s ago",
                   (unsigned)it->request->member.step);
    return true;
}

static void set_up(struct held *h, uint32_t shards, uint32_t window)
{
    *h = (struct held){.b = made(shards)};
    h->b.options.retry_ms = RETRY_MS;
    h->b.options.window = window;
    if (open_client(&h->b) != DP_OK || dp_client_join(h->b.client, &as_one, WAIT_MS, &h->b.err) != DP_OK)
        fail_msg("%s", h->b.err.text);
    h->table = table(&h->b, "t", 4);
    h->b.net->holds = holds;
    h->b.net->context = h;
    assert_int_equal(dp_keys_new(&h->keys, &h->b.err), DP_OK);
}

static void tear_down(struct held *h)
{
    done(&h->b);
    dp_keys_free(&h->keys);
}

/* Of the row of a key, or of two that are on shards 0 and 1 of two. */
static void pull(struct held *h, uint64_t step, size_t keys)
{
    const uint64_t mixed[2] = {0, UINT64_MAX};
    static float weights[8];
    assert_int_equal(dp_keys_lend(h->keys, mixed, keys, &h->b.err), DP_OK);
    const struct dp_pull_part part = {h->table, h->keys, keys == 1 ? h->weights : weights};
    for (uint32_t i = 0; i < DP_FAKE_SHARDS_MAX; i++)
        h->hold[i] = true;
    if (dp_client_pull_step(h->b.client, step, &part, 1, NULL, WAIT_MS, &h->pull, &h->b.err) != DP_OK)
        fail_msg("%s", h->b.err.text);
}

static void is_pulled(struct held *h, float weight)
{
    for (uint32_t i = 0; i < DP_FAKE_SHARDS_MAX; i++)
        h->hold[i] = false;
    if (dp_client_wait(h->b.client, &h->pull, 3000, NULL, &h->b.err) != DP_OK)
        fail_msg("%s", h->b.err.text);
    assert_true(h->weights[0] == weight);
}

static void push_is_answered(struct held *h, uint32_t within_ms)
{
    struct dp_ticket ticket;
    assert_int_equal(push_one(&h->b, h->table, 0, WAIT_MS, &ticket), DP_OK);
    if (dp_client_wait(h->b.client, &ticket, within_ms, NULL, &h->b.err) != DP_OK)
        fail_msg("%s", h->b.err.text);
}

/* Goal    a held pull is sent once, however long it is held and whatever is answered behind it.
 * Planted it is counted as silent; as overtaken. */
static void it_is_not_sent_again(void **state)
{
    struct held h;
    set_up(&h, 1, 0);
    pull(&h, 7, 1);
    for (int i = 0; i < 40; i++) {
        uint32_t before = h.b.net->sent_to[0];
        push_is_answered(&h, 100);
        advance(&h.b, 500);
        assert_int_equal(h.b.net->sent_to[0], before + 1);
    }
    assert_in_range(h.pulls, 80, 90); /* 20 s of HELD */
    assert_int_equal(h.timeout_ms, DP_TIMEOUT_MS_MAX);
    assert_int_equal(h.b.net->shard[0].pulls, 0);
    is_pulled(&h, 40);
    assert_int_equal(h.b.net->shard[0].pulls, 1);
    tear_down(&h);
}

static void it_is_sent_again_when_it_is_not_heard_any_more(void **state)
{
    struct held h;
    set_up(&h, 1, 0);
    pull(&h, 7, 1);
    advance(&h.b, 2010); /* the last HELD came 10 ms ago */
    uint32_t before = h.b.net->sent_to[0];
    h.b.net->dead[0] = true;
    advance(&h.b, RETRY_MS - 20);
    assert_int_equal(h.b.net->sent_to[0], before);
    advance(&h.b, 20);
    assert_int_equal(h.b.net->sent_to[0], before + 1);
    advance(&h.b, 2 * RETRY_MS - 20);
    assert_int_equal(h.b.net->sent_to[0], before + 1);
    advance(&h.b, 20 + 4 * RETRY_MS);
    assert_int_equal(h.b.net->sent_to[0], before + 3);
    h.b.net->dead[0] = false;
    advance(&h.b, 8 * RETRY_MS);
    before = h.b.net->sent_to[0];
    advance(&h.b, 20000); /* the resend renewed it */
    assert_in_range(h.b.net->sent_to[0], before, before + 1);
    is_pulled(&h, 0);
    assert_int_equal(h.b.net->shard[0].pulls, 1);
    tear_down(&h);
}

/* The shard would answer on the connection that has ended. Planted: only what is not held is sent again. */
static void it_is_sent_again_when_its_connection_ends(void **state)
{
    struct held h;
    set_up(&h, 1, 0);
    pull(&h, 7, 1);
    advance(&h.b, 10);
    uint32_t before = h.b.net->sent_to[0];
    h.b.net->broke[0] = true;
    dp_client_progress(h.b.client);
    assert_int_equal(h.b.net->sent_to[0], before + 1);
    advance(&h.b, 2000);
    assert_int_equal(h.b.net->sent_to[0], before + 1);
    is_pulled(&h, 0);
    tear_down(&h);
}

/* Goal    what it waits for is told as long as the shard says so, also where a later push was answered, and of it alone.
 * Planted an answer clears it; it is told of a push that is silent; it is told of a dead shard. */
static void a_wait_that_ends_says_whom_it_waits_for(void **state)
{
    struct held h;
    struct dp_ticket push;
    set_up(&h, 1, 2);
    pull(&h, 7, 1);
    push_is_answered(&h, 100);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 1000, NULL, &h.b.err), DP_TIMEOUT);
    text_has(&h.b,
             "wait: shard 0 at tcp://f0 still holds it after 1000 ms: step 7 waits for worker 2, which has "
             "finished 5 steps and was last heard 12.3 s ago");
    assert_true(h.b.err.wait.reason == DP_WAIT_STEP && h.b.err.wait.subject == 2 && h.b.err.wait.done == 5 &&
                h.b.err.wait.total == 7);
    push_is_answered(&h, 100);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 1, NULL, &h.b.err), DP_TIMEOUT);
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_STEP);
    h.b.net->dead[0] = true;
    assert_int_equal(push_one(&h.b, h.table, 0, WAIT_MS, &push), DP_OK);
    assert_int_equal(dp_client_wait(h.b.client, &push, 500, NULL, &h.b.err), DP_TIMEOUT);
    text_has(&h.b, "wait: no answer from shard 0 at tcp://f0 in 500 ms: is its server running?");
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_NONE);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 5000, NULL, &h.b.err), DP_TIMEOUT);
    text_has(
        &h.b,
        "no answer from shard 0 at tcp://f0 in 5000 ms: is its server running? It said last: step 7 waits");
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_NONE);
    h.b.net->dead[0] = false;
    assert_int_equal(dp_client_wait(h.b.client, &push, 5000, NULL, &h.b.err), DP_OK);
    is_pulled(&h, 3);
    tear_down(&h);
}

static void a_window_full_of_held_pulls_takes_pushes(void **state)
{
    struct held h;
    set_up(&h, 1, 1);
    struct dp_ticket push, next;
    pull(&h, 7, 1);
    advance(&h.b, 10);
    const struct dp_pull_part part = {h.table, h.keys, h.weights};
    assert_int_equal(dp_client_pull_step(h.b.client, 8, &part, 1, NULL, 300, &next, &h.b.err), DP_TIMEOUT);
    text_has(
        &h.b,
        "pull: window of 1 requests is full: shard 0 at tcp://f0 still holds it after 300 ms: step 7 waits");
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_STEP);
    /* What others may wait for goes on. */
    assert_int_equal(push_one(&h.b, h.table, 0, 300, &push), DP_OK);
    assert_int_equal(dp_client_wait(h.b.client, &push, 300, NULL, &h.b.err), DP_OK);
    is_pulled(&h, 1);
    tear_down(&h);
}

static void a_silent_shard_is_named_before_one_that_holds_it(void **state)
{
    struct held h;
    set_up(&h, 2, 0);
    h.b.net->dead[1] = true;
    pull(&h, 7, 2);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 1000, NULL, &h.b.err), DP_TIMEOUT);
    text_has(&h.b, "no answer from shard 1 at tcp://f1");
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_NONE);
    h.b.net->dead[1] = false;
    advance(&h.b, 2000);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 1000, NULL, &h.b.err), DP_TIMEOUT);
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_STEP);
    h.b.net->dead[1] = true; /* it held it, too, until now */
    advance(&h.b, 9 * RETRY_MS);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 1000, NULL, &h.b.err), DP_TIMEOUT);
    text_has(&h.b, "no answer from shard 1 at tcp://f1");
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_NONE);
    h.b.net->dead[1] = false;
    is_pulled(&h, 0);
    tear_down(&h);
}

static enum dp_status recovers(const struct dp_fake_turn *it)
{
    it->reply->wait.reason = DP_WAIT_RECOVERING;
    return DP_AGAIN;
}

/* Goal    who waits hears why the server makes it wait now, and not what was before it was started again.
 * Planted what was heard of the held pull is told as long as it is under way. */
static void a_shard_that_recovers_says_so_instead(void **state)
{
    struct held h;
    set_up(&h, 1, 0);
    pull(&h, 7, 1);
    advance(&h.b, 1000);
    dp_fake_net_restart(h.b.net, 0);
    h.b.net->refuse = recovers;
    advance(&h.b, 9 * RETRY_MS);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 1000, NULL, &h.b.err), DP_TIMEOUT);
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_RECOVERING);
    h.b.net->refuse = NULL;
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 1000, NULL, &h.b.err), DP_TIMEOUT);
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_STEP);
    is_pulled(&h, 0);
    tear_down(&h);
}

static enum dp_status loses_pushes(const struct dp_fake_turn *it)
{
    struct held *h = it->context;
    if (it->request->kind != DP_REQUEST_PUSH || h->pushes_lost == 0)
        return DP_OK;
    h->pushes_lost--;
    return DP_TIMEOUT;
}

/* Planted only shards with rows of it are asked: nothing holds it. */
static void it_goes_to_shards_without_rows_of_it_too(void **state)
{
    struct held h;
    set_up(&h, 2, 0);
    const uint64_t first = 0;
    struct dp_pulled_at at[2] = {{7, 7}, {7, 7}};
    assert_int_equal(dp_keys_lend(h.keys, &first, 1, &h.b.err), DP_OK);
    const struct dp_pull_part part = {h.table, h.keys, h.weights};
    h.hold[1] = true;
    assert_int_equal(dp_client_pull_step(h.b.client, 7, &part, 1, at, WAIT_MS, &h.pull, &h.b.err), DP_OK);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 1000, NULL, &h.b.err), DP_TIMEOUT);
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_STEP);
    is_pulled(&h, 0);
    assert_true(at[0].applied == 0 && at[1].applied == DP_NOT_MEASURED);
    tear_down(&h);
}

/* Goal    HELD is no answer to what else is under way: that is sent again in its time.
 * Planted HELD restarts the retry timer of all. */
static void what_is_lost_behind_it_is_sent_again(void **state)
{
    struct held h;
    set_up(&h, 1, 0);
    pull(&h, 7, 1);
    advance(&h.b, 1000);
    h.b.net->refuse = loses_pushes;
    h.pushes_lost = 1;
    push_is_answered(&h, RETRY_MS + 50);
    h.pushes_lost = 3;
    push_is_answered(&h, 7 * RETRY_MS + 50);
    is_pulled(&h, 2);
    tear_down(&h);
}

static void loses_an_answer(const struct dp_fake_turn *it)
{
    struct held *h = it->context;
    if (it->reply->kind != DP_REPLY_PUSHED || h->pushes_lost == 0)
        return;
    h->pushes_lost--;
    it->reply->session++; /* another's: nobody takes it */
}

/* Goal    what is behind a held pull is overtaken like any other request: it is sent again, even while others are answered.
 * Planted the held pull is taken for the one that was overtaken. */
static void what_was_overtaken_behind_it_is_sent_again(void **state)
{
    struct held h;
    struct dp_ticket push;
    set_up(&h, 1, 0);
    pull(&h, 7, 1);
    advance(&h.b, 1000);
    h.b.net->tamper = loses_an_answer;
    h.pushes_lost = 1;
    assert_int_equal(push_one(&h.b, h.table, 0, WAIT_MS, &push), DP_OK);
    for (int i = 0; i < 8 * RETRY_MS / 100 + 5; i++) {
        push_is_answered(&h, 50);
        advance(&h.b, 100);
    }
    assert_int_equal(dp_client_wait(h.b.client, &push, 0, NULL, &h.b.err), DP_OK);
    is_pulled(&h, 1 + 8 * RETRY_MS / 100 + 5);
    tear_down(&h);
}

/* Goal    a shard that starts again is sent what it held, and takes what follows, though numbers between them were answered.
 * Planted hello names the number of the oldest unanswered request, the held one's. */
static void a_shard_that_starts_again_is_sent_it_again(void **state)
{
    struct held h;
    struct dp_ticket push;
    set_up(&h, 1, 0);
    pull(&h, 7, 1);
    for (int i = 0; i < 3; i++)
        push_is_answered(&h, 100);
    dp_fake_net_restart(h.b.net, 0);
    push_is_answered(&h, 300);
    advance(&h.b, 1000);
    assert_int_equal(dp_client_wait(h.b.client, &h.pull, 10, NULL, &h.b.err), DP_TIMEOUT);
    assert_int_equal(h.b.err.wait.reason, DP_WAIT_STEP);
    /* Once more, with a push under way. */
    h.b.net->dead[0] = true;
    assert_int_equal(push_one(&h.b, h.table, 0, WAIT_MS, &push), DP_OK);
    dp_fake_net_restart(h.b.net, 0);
    h.b.net->dead[0] = false;
    assert_int_equal(dp_client_wait(h.b.client, &push, 2000, NULL, &h.b.err), DP_OK);
    advance(&h.b, 1000);
    uint32_t before = h.b.net->sent_to[0];
    advance(&h.b, 10000);
    assert_int_equal(h.b.net->sent_to[0], before);
    is_pulled(&h, 5);
    assert_int_equal(h.b.net->shard[0].pushes, 5);
    tear_down(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_not_sent_again),
        cmocka_unit_test(it_is_sent_again_when_it_is_not_heard_any_more),
        cmocka_unit_test(it_is_sent_again_when_its_connection_ends),
        cmocka_unit_test(a_wait_that_ends_says_whom_it_waits_for),
        cmocka_unit_test(a_window_full_of_held_pulls_takes_pushes),
        cmocka_unit_test(a_silent_shard_is_named_before_one_that_holds_it),
        cmocka_unit_test(it_goes_to_shards_without_rows_of_it_too),
        cmocka_unit_test(a_shard_that_recovers_says_so_instead),
        cmocka_unit_test(what_is_lost_behind_it_is_sent_again),
        cmocka_unit_test(what_was_overtaken_behind_it_is_sent_again),
        cmocka_unit_test(a_shard_that_starts_again_is_sent_it_again),
    };
    return cmocka_run_group_tests_name("client_held", tests, NULL, NULL);
}

/* client: waits that end and name their cause, the window, resends, servers that lie or come back. */
#include "tests/unit/client/bench.h"

#include "common/client/client_session.h"

#include "common/model/mix.h"

#include <math.h>
#include <stdlib.h>

static void wait_names_the_silent_shard_and_may_be_repeated(void **state)
{
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    struct dp_outcome outcome;
    b.net->dead[1] = true;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    uint64_t start = b.net->now_ns;
    assert_int_equal(dp_client_wait(b.client, &ticket, 500, NULL, &b.err), DP_TIMEOUT);
    text_has(&b, "no answer from shard 1 at tcp://f1 in 500 ms: is its server running?");
    assert_true(b.net->now_ns - start >= 500000000u && b.net->now_ns - start < 510000000u);
    assert_true(ticket.id != 0);
    b.net->dead[1] = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_false(outcome.repeated);
    assert_int_equal(ticket.id, 0);
    assert_int_equal(dp_client_wait(b.client, &ticket, 0, NULL, &b.err), DP_ARGUMENT);
    assert_true(b.net->shard[0].pushes == 1 && b.net->shard[1].pushes == 1);
    done(&b);
}

static void silence_is_asked_again_ever_more_slowly(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    b.net->dead[0] = true;
    uint32_t before = b.net->sent_to[0];
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    advance(&b, 99);
    assert_int_equal(b.net->sent_to[0] - before, 1);
    advance(&b, 1);
    assert_int_equal(b.net->sent_to[0] - before, 2); /* after 100, 200, 400, 800, 800 ... */
    advance(&b, 199);
    assert_int_equal(b.net->sent_to[0] - before, 2);
    advance(&b, 201 + 400);
    assert_int_equal(b.net->sent_to[0] - before, 4);
    advance(&b, 8000);
    assert_in_range(b.net->sent_to[0] - before, 13, 15);
    done(&b);
}

/* Answers nothing but status while `hold`. */
static enum dp_status only_status(const struct dp_fake_turn *it)
{
    const bool *hold = it->context;
    return *hold && it->request->kind != DP_REQUEST_STATUS ? DP_TIMEOUT : DP_OK;
}

static void a_shard_that_is_heard_is_not_hurried(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    struct dp_status_report *report;
    bool hold = true;
    b.net->refuse = only_status;
    b.net->context = &hold;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket), DP_OK);
    for (int i = 0; i < 9; i++) { /* 720 ms; retry_ms is 100 */
        uint32_t before = b.net->sent_to[0];
        advance(&b, 80);
        assert_int_equal(b.net->sent_to[0], before);
        assert_int_equal(dp_client_status(b.client, 0, WAIT_MS, &report, &b.err), DP_OK);
        dp_client_status_free(&report);
        assert_null(report);
    }
    advance(&b, 80);
    uint32_t before = b.net->sent_to[0];
    assert_int_equal(dp_client_status(b.client, 0, WAIT_MS, &report, &b.err), DP_OK);
    dp_client_status_free(&report);
    advance(&b, 90); /* but not for ever: 8 retries after the first answer that overtook it */
    assert_int_equal(b.net->sent_to[0], before + 2);
    hold = false;
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    done(&b);
}

static void the_window_is_respected(void **state)
{
    struct bench b = made(2);
    b.options.window = 5;
    b.net->window = 3; /* the server's is smaller */
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[4];
    b.net->dead[1] = true;
    uint32_t before = b.net->sent_to[1];
    for (int i = 0; i < 3; i++)
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    assert_int_equal(b.net->sent_to[1] - before, 3);
    assert_int_equal(push_one(&b, t, 3, 50, &ticket[3]), DP_TIMEOUT);
    text_has(&b, "push: window of 3 requests is full: no answer from shard 1 at tcp://f1");
    assert_int_equal(b.net->sent_to[1] - before, 3);
    b.net->dead[1] = false;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[3]), DP_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err), DP_OK);
    for (uint32_t i = 0; i < 4; i++) /* the one that found no room used up no number */
        assert_true(b.net->shard[0].push[i].number == i && b.net->shard[1].push[i].number == i);
    done(&b);
}

/* What a server would drop, as answers that were not read, is not asked for: it waits for one of those before it. */
static void no_more_is_asked_for_than_may_be_unread(void **state)
{
    enum {
        ROWS = 40000,
        DIM = DP_FAKE_DIM_MAX,
        MOST = DP_PEER_UNSENT_MAX / (ROWS * DIM * 4),
        PULLS = 2 * MOST
    };
    struct bench b = made(1);
    b.options.window = 2 * PULLS;
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_client_table *t = table(&b, "t", DIM);
    struct dp_ticket ticket[PULLS], push;
    uint64_t *key = calloc(ROWS, sizeof *key);
    float *w = calloc(ROWS, DIM * sizeof *w);
    struct dp_keys *keys;
    assert_true(key && w && MOST > 10);
    for (uint64_t i = 0; i < ROWS; i++)
        key[i] = i;
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, key, ROWS, &b.err), DP_OK);
    const struct dp_pull_part pull = {t, keys, w};
    b.net->dead[0] = true;
    uint32_t before = b.net->sent_to[0];
    for (int i = 0; i < PULLS; i++)
        assert_int_equal(dp_client_pull(b.client, &pull, 1, NULL, WAIT_MS, &ticket[i], &b.err), DP_OK);
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &push), DP_OK);
    advance(&b, 90);
    assert_int_equal(b.net->sent_to[0] - before, MOST);
    b.net->dead[0] = false;
    for (int i = 0; i < PULLS; i++)
        assert_int_equal(dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &push, WAIT_MS, NULL, &b.err), DP_OK);
    dp_keys_free(&keys);
    free(key);
    free(w);
    done(&b);
}

/* Calls without time passing. */
static void broken(struct bench *b)
{
    b->net->broke[0] = true;
    dp_client_progress(b->client);
    assert_false(b->net->broke[0]);
}

static void a_connection_that_ends_has_all_sent_again_at_once(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket first, second, third;
    b.net->dead[0] = true;
    uint32_t before = b.net->sent_to[0];
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &first), DP_OK);
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &second), DP_OK);
    assert_int_equal(b.net->sent_to[0] - before, 2);
    broken(&b);
    assert_int_equal(b.net->sent_to[0] - before, 4);
    /* One that ends before it has brought an answer is no reason to hurry. */
    broken(&b);
    assert_int_equal(b.net->sent_to[0] - before, 4);
    advance(&b, 20);
    assert_int_equal(b.net->sent_to[0] - before, 6);
    for (int i = 0; i < 200; i++) {
        advance(&b, 1);
        broken(&b);
    }
    assert_in_range(b.net->sent_to[0] - before, 8, 30);
    b.net->dead[0] = false;
    assert_int_equal(dp_client_wait(b.client, &first, WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &second, WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(b.net->shard[0].pushes, 2); /* each once */
    b.net->dead[0] = true;
    assert_int_equal(push_one(&b, t, 3, WAIT_MS, &third), DP_OK);
    before = b.net->sent_to[0];
    broken(&b);
    assert_int_equal(b.net->sent_to[0] - before, 1);
    b.net->dead[0] = false;
    assert_int_equal(dp_client_wait(b.client, &third, WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(b.net->shard[0].pushes, 3);
    done(&b);
}

static void staleness_is_measured(void **state)
{
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4);
    uint64_t key = 0; /* mixed 0: shard 0 */
    struct dp_pulled_at at[2];
    float w[4];
    struct dp_keys *keys;
    struct dp_ticket ticket;
    struct dp_outcome outcome;
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, &key, 1, &b.err), DP_OK);
    const struct dp_pull_part pull = {t, keys, w};
    assert_int_equal(push_one(&b, t, 0, WAIT_MS, &ticket), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_int_equal(outcome.measured, 0);
    assert_int_equal(dp_client_pull(b.client, &pull, 1, at, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    assert_true(at[0].applied == 1 && at[0].lsn == DP_FAKE_LSN_FIRST + 1);
    assert_true(at[1].applied == DP_NOT_MEASURED);
    assert_true(b.net->shard[0].pulls == 1 && b.net->shard[1].pulls == 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(push_one(&b, t, 0, WAIT_MS, &ticket), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    }
    const struct dp_push_part push = {t, keys, w};
    struct dp_push_options options = {.rate = 1, .pulled_at = at};
    assert_int_equal(dp_client_push(b.client, &options, &push, 1, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.measured == 1 && outcome.staleness_sum == 2 && outcome.staleness_max == 2);
    assert_true(outcome.rows == 1 && outcome.changed_rows == 1 && outcome.divided == 0);
    at[1].applied = 0;
    assert_int_equal(dp_client_push(b.client, &options, &push, 1, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.measured == 2 && outcome.staleness_sum == 3 + 4 && outcome.staleness_max == 4);
    assert_int_equal(dp_client_pull(b.client, &pull, 1, at, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_push(b.client, &options, &push, 1, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
    assert_true(outcome.rows == 1 && outcome.changed_rows == 0 && outcome.staleness_max == 0);
    dp_keys_free(&keys);
    done(&b);
}

/* Only the shard that was pulled from knows how stale the push is. */
static void the_rate_may_be_divided_by_the_staleness(void **state)
{
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 4);
    uint64_t key = 0; /* mixed 0: shard 0 */
    float w[4];
    struct dp_pulled_at at[2];
    struct dp_keys *keys;
    struct dp_ticket ticket;
    struct dp_outcome outcome;
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, &key, 1, &b.err), DP_OK);
    const struct dp_pull_part pull = {t, keys, w};
    const struct dp_push_part push = {t, keys, w};
    struct dp_push_options options = {.rate = 0.5f, .by_staleness = true};
    assert_int_equal(dp_client_push(b.client, &options, &push, 1, WAIT_MS, &ticket, &b.err), DP_ARGUMENT);
    text_has(&b, "without pulled_at");
    assert_int_equal(dp_client_pull(b.client, &pull, 1, at, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_OK);
    options.pulled_at = at;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(dp_client_push(b.client, &options, &push, 1, WAIT_MS, &ticket, &b.err), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
        assert_int_equal(outcome.divided, 1);
        assert_true(fabs(outcome.divisor_sum - (i > 1 ? i : 1)) < 1e-6);
        assert_true(b.net->shard[0].push[i].rate == 0.5f / (float)(i > 1 ? i : 1));
        assert_true(b.net->shard[1].push[i].rate == 0.5f);
    }
    dp_keys_free(&keys);
    done(&b);
}

static void a_number_of_ones_own_counts_once(void **state)
{
    struct bench b = opened(2, false);
    (void)table(&b, "t", 4);
    const struct dp_push_options options = {.rate = 1, .stream = 7, .number = 12};
    for (int i = 0; i < 2; i++) {
        struct dp_ticket ticket;
        struct dp_outcome outcome;
        assert_int_equal(dp_client_push(b.client, &options, NULL, 0, WAIT_MS, &ticket, &b.err), DP_OK);
        assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, &outcome, &b.err), DP_OK);
        assert_int_equal(outcome.repeated, i == 1);
    }
    assert_int_equal(b.net->shard[1].pushes, 1);
    assert_true(b.net->shard[1].push[0].stream == 7 && b.net->shard[1].push[0].number == 12);
    done(&b);
}

static void a_simple_push_whose_number_was_taken_is_an_error(void **state)
{
    struct bench b = opened(2, false);
    struct dp_client_table *t = table(&b, "t", 2);
    uint64_t key[1] = {5};
    float gradient[2] = {1, 1};
    assert_int_equal(dp_client_push_rows(b.client, t, key, 1, gradient, 1, WAIT_MS, &b.err), DP_OK);
    /* Somebody else's push under the number that comes next. */
    struct dp_fake_shard *shard = &b.net->shard[1];
    assert_int_equal(shard->pushes, 1);
    shard->push[1] = shard->push[0];
    shard->push[1].number++;
    shard->pushes = 2;
    assert_int_equal(dp_client_push_rows(b.client, t, key, 1, gradient, 1, WAIT_MS, &b.err), DP_INVALID);
    assert_non_null(strstr(b.err.text, "two clients share a stream"));
    assert_non_null(strstr(b.err.text, "number 1 of stream"));
    assert_int_equal(dp_client_push_rows(b.client, t, key, 1, gradient, 1, WAIT_MS, &b.err), DP_OK);
    /* Sent twice since its answer was lost: no error, though the second is repeated. */
    b.net->faults.lose = 500;
    for (int i = 0; i < 40; i++)
        assert_int_equal(dp_client_push_rows(b.client, t, key, 1, gradient, 1, 600000, &b.err), DP_OK);
    b.net->faults.lose = 0;
    assert_int_equal(shard->pushes, 43);
    done(&b);
}

static void keys_that_change_under_a_pull_are_noticed(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    uint64_t key[2] = {1, 2};
    float w[8];
    struct dp_keys *keys;
    struct dp_ticket ticket;
    assert_int_equal(dp_keys_new(&keys, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, key, 2, &b.err), DP_OK);
    const struct dp_pull_part pull = {t, keys, w};
    assert_int_equal(dp_client_pull(b.client, &pull, 1, NULL, WAIT_MS, &ticket, &b.err), DP_OK);
    assert_int_equal(dp_keys_set(keys, key, 1, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err), DP_ARGUMENT);
    dp_keys_free(&keys);
    done(&b);
}

/* ---- servers that stop, come back, are busy ---- */

static enum dp_status busy(const struct dp_fake_turn *it)
{
    const uint32_t *from = it->context;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "number is above the window");
    return it->shard == 0 && it->request->kind == DP_REQUEST_PUSH && it->request->number >= *from ? DP_AGAIN
                                                                                                  : DP_OK;
}

static void a_busy_shard_is_quoted_and_asked_again(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[3];
    uint32_t from = 1;
    b.net->refuse = busy;
    b.net->context = &from;
    for (int i = 0; i < 3; i++)
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket[0], WAIT_MS, NULL, &b.err), DP_OK);
    uint32_t before = b.net->sent;
    assert_int_equal(dp_client_wait(b.client, &ticket[1], 1000, NULL, &b.err), DP_TIMEOUT);
    text_has(&b, "it said: AGAIN: number is above the window");
    assert_in_range(b.net->sent - before, 10, 60); /* with growing pauses, not in a loop */
    from = 100;
    assert_int_equal(dp_client_wait(b.client, &ticket[2], WAIT_MS, NULL, &b.err), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket[1], WAIT_MS, NULL, &b.err), DP_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(b.net->shard[0].push[i].number, i);
    done(&b);
}

/* The shard's disk is full: it refuses push 1 for that, and all behind it because push 1 is missing. */
static enum dp_status full_and_in_order(const struct dp_fake_turn *it)
{
    uint64_t *refused = it->context;
    if (it->request->kind != DP_REQUEST_PUSH || it->request->number == 0)
        return DP_OK;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "%s",
                   it->request->number == 1 ? "the disk is full" : "request 3 came before request 2");
    if (it->request->number == 1)
        *refused = it->request->sequence;
    it->reply->sequence = *refused;
    return it->request->number == 1 ? DP_AGAIN : DP_ORDER;
}

static void the_cause_is_quoted_not_what_follows_from_it(void **state)
{
    struct bench b = opened(1, false);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[4];
    uint64_t refused = 0;
    b.net->refuse = full_and_in_order;
    b.net->context = &refused;
    for (int i = 0; i < 4; i++)
        assert_int_equal(push_one(&b, t, 3, WAIT_MS, &ticket[i]), DP_OK);
    for (uint32_t ms = 100; ms < 2000; ms += 100) {
        assert_int_equal(dp_client_wait(b.client, &ticket[3], ms, NULL, &b.err), DP_TIMEOUT);
        text_has(&b, "it said: AGAIN: the disk is full");
    }
    b.net->refuse = NULL;
    assert_int_equal(dp_client_wait(b.client, &ticket[3], WAIT_MS, NULL, &b.err), DP_OK);
    done(&b);
}

/* ---- status and notes ---- */

static void status_tells_of_a_shard(void **state)
{
    struct bench b = opened(3, false);
    struct dp_status_report *report = NULL;
    (void)table(&b, "t", 4);
    assert_int_equal(dp_client_status(b.client, 2, WAIT_MS, &report, &b.err), DP_OK);
    assert_true(report->shard == 2 && report->shards == 3 && report->tables == 1 && report->counters == 1);
    assert_string_equal(report->table[0].spec.name, "t");
    dp_client_status_free(&report);
    b.net->dead[2] = true;
    assert_int_equal(dp_client_status(b.client, 2, 200, &report, &b.err), DP_TIMEOUT);
    text_has(&b, "shard 2 at tcp://f2");
    assert_null(report);
    assert_int_equal(dp_client_status(b.client, 3, 200, &report, &b.err), DP_ARGUMENT);
    done(&b);
}

static void collect(void *context, const char *name, const void *bytes, size_t size)
{
    char *text = context;
    (void)snprintf(text + strlen(text), 100 - strlen(text), "%s=%.*s;", name, (int)size, (const char *)bytes);
}

static void notes_come_back_in_name_order(void **state)
{
    struct bench b = opened(2, false);
    char text[100] = "";
    b.net->faults.lose = 300; /* asked again until they arrive */
    assert_int_equal(dp_client_note_put(b.client, "w/2", "two", 3, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_note_put(b.client, "w/1", "one", 3, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_note_put(b.client, "x", "", 0, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_note_put(b.client, "w/2", "zwei", 4, WAIT_MS, &b.err), DP_OK);
    assert_int_equal(dp_client_notes(b.client, "w/", collect, text, WAIT_MS, &b.err), DP_OK);
    assert_string_equal(text, "w/1=one;w/2=zwei;");
    assert_int_equal(dp_client_note_put(b.client, "", "x", 1, WAIT_MS, &b.err), DP_ARGUMENT);
    b.net->dead[2] = true;
    assert_int_equal(dp_client_notes(b.client, "", collect, text, 200, &b.err), DP_TIMEOUT);
    text_has(&b, "control at tcp://control");
    done(&b);

    b = made(1);
    b.options.control = NULL;
    assert_int_equal(open_client(&b), DP_OK);
    assert_int_equal(dp_client_notes(b.client, "", collect, text, 200, &b.err), DP_ARGUMENT);
    done(&b);
}

/* Clients of one server do not come back all at once. */
static void pauses_are_drawn(void **state)
{
    struct dp_client_session session = {.random = 41};
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t pause = dp_client_session_jitter(&session, 1000000);
        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    assert_in_range(least, 1000000, 1010000);
    assert_in_range(most, 1240000, 1250000);
    assert_in_range(dp_client_session_jitter(&session, 0), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_names_the_silent_shard_and_may_be_repeated),
        cmocka_unit_test(pauses_are_drawn),
        cmocka_unit_test(silence_is_asked_again_ever_more_slowly),
        cmocka_unit_test(a_shard_that_is_heard_is_not_hurried),
        cmocka_unit_test(the_window_is_respected),
        cmocka_unit_test(no_more_is_asked_for_than_may_be_unread),
        cmocka_unit_test(a_connection_that_ends_has_all_sent_again_at_once),
        cmocka_unit_test(staleness_is_measured),
        cmocka_unit_test(the_rate_may_be_divided_by_the_staleness),
        cmocka_unit_test(a_number_of_ones_own_counts_once),
        cmocka_unit_test(a_simple_push_whose_number_was_taken_is_an_error),
        cmocka_unit_test(keys_that_change_under_a_pull_are_noticed),
        cmocka_unit_test(a_busy_shard_is_quoted_and_asked_again),
        cmocka_unit_test(the_cause_is_quoted_not_what_follows_from_it),
        cmocka_unit_test(status_tells_of_a_shard),
        cmocka_unit_test(notes_come_back_in_name_order),
    };
    return cmocka_run_group_tests_name("client_links", tests, NULL, NULL);
}

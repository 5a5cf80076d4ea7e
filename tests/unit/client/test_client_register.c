/* client: values of the register: won once whatever is lost, waits that end, and causes that are named. */
#include "tests/unit/client/bench.h"

static struct dp_register_value value;

static bool get(struct bench *b, uint64_t above, uint32_t wait_ms, uint32_t timeout_ms)
{
    dp_register_value_clear(&value);
    return dp_client_register_get(b->client, "stores", above, wait_ms, timeout_ms, &value, &b->err) == DP_OK;
}

static enum dp_status set(struct bench *b, uint64_t expected, const char *text, bool *won)
{
    dp_register_value_clear(&value);
    return dp_client_register_set(b->client, "stores", expected, text, strlen(text), WAIT_MS, won, &value,
                                  &b->err);
}

static uint64_t ms_since(const struct bench *b, uint64_t start_ns)
{
    return (b->net->now_ns - start_ns) / 1000000;
}

static void values_come_back(void **state)
{
    struct bench b = opened(2, false);
    bool won = false;
    assert_true(get(&b, 0, 0, WAIT_MS) && value.version == 0 && value.size == 0 && value.register_id == 99);
    assert_int_equal(set(&b, 0, "one", &won), DP_OK);
    assert_true(won && value.version == 1 && value.size == 3);
    assert_string_equal(value.bytes, "one");
    assert_int_equal(set(&b, 0, "two", &won), DP_OK);
    assert_true(!won && value.version == 1);
    assert_string_equal(value.bytes, "one");
    assert_int_equal(dp_client_register_set(b.client, "stores", 1, NULL, 0, WAIT_MS, &won, NULL, &b.err),
                     DP_OK);
    assert_true(won && get(&b, 1, 5000, WAIT_MS) && value.version == 2 && value.size == 0);
    dp_register_value_clear(&value);
    assert_null(value.bytes);
    done(&b);
}

/* Each is stored once and hears so, though half of what is sent is lost: a resend has the nonce of the first. */
static void a_set_wins_once_whatever_is_lost(void **state)
{
    struct bench b = opened(1, false);
    bool won;
    b.net->faults.lose = 500;
    b.net->faults.twice = 200;
    b.net->faults.slow = 300;
    b.net->faults.slow_ms = 40;
    for (uint64_t v = 0; v < 200; v++) {
        assert_int_equal(set(&b, v, "x", &won), DP_OK);
        assert_true(won && value.version == v + 1);
        uint64_t nonce = b.net->value.nonce;
        assert_int_equal(set(&b, v, "x", &won), DP_OK); /* the same once more is another set */
        assert_true(!won && b.net->value.nonce == nonce);
    }
    assert_true(b.net->value.version == 200 && b.net->value.sets > 600);
    dp_register_value_clear(&value);
    done(&b);
}

static void someone_sets(struct bench *b)
{
    b->net->value.version++;
}

struct asked {
    uint32_t n, wait_ms[64];
    uint64_t at_ns[64];
    uint32_t sets_at; /* the question before which somebody sets the value; 0: none */
    struct bench *bench;
};

static enum dp_status look(const struct dp_fake_turn *it)
{
    struct asked *asked = it->context;
    if (it->request->kind != DP_REQUEST_REGISTER_GET)
        return DP_OK;
    asked->wait_ms[asked->n] = it->request->wait_ms;
    asked->at_ns[asked->n++] = asked->bench->net->now_ns;
    if (asked->n == asked->sets_at)
        someone_sets(asked->bench);
    return DP_OK;
}

/* Sent again every two retry_ms, each time with what is left; the value ends it, or its time. */
static void a_wait_is_renewed_and_ends(void **state)
{
    struct bench b = opened(1, false);
    struct asked asked = {.bench = &b};
    b.net->refuse = look;
    b.net->context = &asked;
    uint64_t start = b.net->now_ns;
    assert_true(get(&b, 0, 3000, 1000) && value.version == 0);
    assert_in_range(ms_since(&b, start), 3000, 3300);
    assert_in_range(asked.n, 12, 17); /* retry_ms is 100: after 100, then 200 to 250 each */
    assert_int_equal(asked.wait_ms[0], 3000);
    for (uint32_t i = 1; i < asked.n; i++) {
        uint64_t passed = (asked.at_ns[i] - asked.at_ns[0]) / 1000000;
        uint64_t sum = asked.wait_ms[i] > 0 ? asked.wait_ms[i] + passed : 3000;
        assert_in_range(sum, 2999, 3001);
    }
    asked.n = 0;
    asked.sets_at = 4;
    start = b.net->now_ns;
    assert_true(get(&b, 0, 60000, 1000) && value.version == 1);
    assert_int_equal(asked.n, 4);
    assert_true(ms_since(&b, start) < 1000);
    dp_register_value_clear(&value);
    done(&b);
}

static void a_first_server_that_is_away_is_waited_for_and_named(void **state)
{
    struct bench b = opened(1, false);
    bool won = true;
    b.net->dead[1] = true;
    uint64_t start = b.net->now_ns;
    assert_int_equal(dp_client_register_get(b.client, "stores", 0, 2000, 500, &value, &b.err), DP_TIMEOUT);
    assert_in_range(ms_since(&b, start), 2500, 2600);
    text_has(&b, "register value 'stores': no answer from control at tcp://control in 2500 ms");
    assert_null(value.bytes);
    assert_int_equal(dp_client_register_set(b.client, "stores", 0, "x", 1, 300, &won, &value, &b.err),
                     DP_TIMEOUT);
    assert_false(won);
    text_has(&b, "control at tcp://control");
    b.net->dead[1] = false;
    assert_true(get(&b, 0, 0, WAIT_MS));
    dp_register_value_clear(&value);
    done(&b);
}

static enum dp_status refuse_full(const struct dp_fake_turn *it)
{
    uint32_t *left = it->context;
    if (it->request->kind != DP_REQUEST_REGISTER_SET || *left == 0)
        return DP_OK;
    --*left;
    (void)snprintf(it->reply->reason, sizeof it->reply->reason, "No space left on device");
    it->reply->wait.reason = DP_WAIT_DISK;
    return DP_AGAIN;
}

static void a_full_disk_is_waited_for_and_named(void **state)
{
    struct bench b = opened(1, false);
    uint32_t left = 5;
    bool won;
    b.net->refuse = refuse_full;
    b.net->context = &left;
    assert_int_equal(set(&b, 0, "one", &won), DP_OK);
    assert_true(won);
    left = UINT32_MAX;
    dp_register_value_clear(&value);
    assert_int_equal(dp_client_register_set(b.client, "stores", 1, "x", 1, 300, &won, &value, &b.err),
                     DP_TIMEOUT);
    assert_int_equal(strncmp(b.err.text, "No space left on device (register value 'stores': ", 50), 0);
    done(&b);
}

static void bad_arguments_are_refused(void **state)
{
    static char large[DP_REGISTER_VALUE_BYTES_MAX + 1], name[DP_NOTE_NAME_MAX + 2];
    struct bench b = opened(1, false);
    bool won;
    memset(name, 'n', sizeof name - 1);
    assert_int_equal(dp_client_register_get(b.client, "", 0, 0, 100, &value, &b.err), DP_ARGUMENT);
    assert_int_equal(dp_client_register_get(b.client, name, 0, 0, 100, &value, &b.err), DP_ARGUMENT);
    assert_int_equal(dp_client_register_set(b.client, "x", 0, large, sizeof large, 100, &won, NULL, &b.err),
                     DP_ARGUMENT);
    text_has(&b, "65537 bytes, at most 65536");
    assert_int_equal(b.net->value.gets + b.net->value.sets, 0);
    done(&b);

    b = made(1);
    b.options.control = NULL;
    assert_int_equal(open_client(&b), DP_OK);
    assert_int_equal(dp_client_register_get(b.client, "x", 0, 0, 100, &value, &b.err), DP_ARGUMENT);
    text_has(&b, "without a control endpoint");
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(a_set_wins_once_whatever_is_lost),
        cmocka_unit_test(a_wait_is_renewed_and_ends),
        cmocka_unit_test(a_first_server_that_is_away_is_waited_for_and_named),
        cmocka_unit_test(a_full_disk_is_waited_for_and_named),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests_name("client_register", tests, NULL, NULL);
}

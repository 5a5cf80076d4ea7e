/* Client: servers whose addresses the register has. They are not there yet, move, swap their places, or their
 * address is damaged; each push counts once on each shard. */
#include "tests/unit/client/bench.h"

#include "common/wire/address.h"

enum { SHARDS = 2 };

static struct bench made_counted(void)
{
    struct bench b = made(SHARDS);
    b.options.shards = NULL;
    b.options.servers = 1;
    b.options.control_from = "MASTER_ADDR";
    return b;
}

static void set_value(struct bench *b, const void *bytes, size_t size)
{
    b->net->value.version++;
    b->net->value.size = size;
    memcpy(b->net->value.bytes, bytes, size);
}

/* Registers the server at these ports of h; there it is. */
static void settle(struct bench *b, uint16_t port_0, uint16_t port_1)
{
    const struct dp_address address = {.host = "h", .ports = 1 + SHARDS, .port = {1, port_0, port_1}};
    char bytes[DP_ADDRESS_BYTES_MAX];
    set_value(b, bytes, dp_address_encode(&address, bytes));
    for (uint32_t i = 0; i < SHARDS; i++)
        dp_address_endpoint(&address, 1 + i, b->net->lives[i], sizeof b->net->lives[i]);
}

static void push_and_wait(struct bench *b, struct dp_client_table *t, uint64_t key)
{
    struct dp_ticket ticket;
    assert_int_equal(push_one(b, t, key, WAIT_MS, &ticket), DP_OK);
    if (dp_client_wait(b->client, &ticket, WAIT_MS, NULL, &b->err) != DP_OK)
        fail_msg("%s", b->err.text);
}

/* Each shard has had each push once, in their order. */
static void assert_pushes(const struct bench *b, uint32_t pushes)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(b->net->shard[i].pushes, pushes);
        for (uint32_t k = 1; k < pushes; k++)
            assert_true(b->net->shard[i].push[k].number > b->net->shard[i].push[k - 1].number);
    }
}

static void opens_at_the_registered_address(void **state)
{
    struct bench b = made_counted();
    settle(&b, 5, 6);
    assert_int_equal(open_client(&b), DP_OK);
    assert_string_equal(b.net->leads[0], "tcp://h:5");
    assert_string_equal(b.net->leads[1], "tcp://h:6");
    push_and_wait(&b, table(&b, "t", 4), 1);
    assert_pushes(&b, 1);
    assert_int_equal(b.net->value.gets, 1);
    done(&b);
}

static void names_what_is_missing(void **state)
{
    struct bench b = made_counted();
    b.net->dead[SHARDS] = true; /* the first server */
    assert_int_equal(open_client(&b), DP_UNAVAILABLE);
    text_has(&b, "the first server, of MASTER_ADDR");
    text_has(&b, "no answer from control at tcp://control");
    dp_fake_net_free(&b.net);

    b = made_counted(); /* it answers, the server has not registered */
    assert_int_equal(open_client(&b), DP_UNAVAILABLE);
    text_has(&b, "the server of shard 0 has not given its address to the first one, at tcp://control");
    dp_fake_net_free(&b.net);

    b = made_counted();
    set_value(&b, "junk", 4);
    assert_int_equal(open_client(&b), DP_UNAVAILABLE);
    text_has(&b, "'address/0' cannot be read: 4 bytes are no address");
    dp_fake_net_free(&b.net);

    const struct dp_address other = {.host = "h", .ports = 2, .port = {1, 5}};
    char bytes[DP_ADDRESS_BYTES_MAX];
    b = made_counted();
    set_value(&b, bytes, dp_address_encode(&other, bytes));
    assert_int_equal(open_client(&b), DP_UNAVAILABLE);
    text_has(&b, "an address of 2 ports, expected 3");
    dp_fake_net_free(&b.net);
}

static enum dp_status refuse_cluster(const struct dp_fake_turn *it)
{
    it->reply->cluster = 6;
    return DP_GENERATION;
}

/* That will not change: it is no server out of reach. */
static void is_refused_by_the_first_server_of_another_cluster(void **state)
{
    struct bench b = made_counted();
    b.net->refuse = refuse_cluster;
    uint64_t begun = b.net->now_ns;
    assert_int_equal(open_client(&b), DP_GENERATION);
    text_has(&b, "control at tcp://control");
    assert_true(b.net->now_ns - begun < UINT64_C(1000000000));
    dp_fake_net_free(&b.net);
}

/* The register is mended while the client opens. */
static uint32_t gets;
static enum dp_status mend_later(const struct dp_fake_turn *it)
{
    struct bench *b = it->context;
    if (it->request->kind == DP_REQUEST_REGISTER_GET && gets++ == 3)
        settle(b, 5, 6);
    return DP_OK;
}

static void waits_for_an_address_that_can_be_read(void **state)
{
    struct bench b = made_counted();
    gets = 0;
    set_value(&b, "junk", 4);
    b.options.open_timeout_ms = 20000;
    b.net->refuse = mend_later;
    b.net->context = &b;
    if (open_client(&b) != DP_OK)
        fail_msg("%s", b.err.text);
    done(&b);
}

static void follows_a_server_that_moved(void **state)
{
    struct bench b = made_counted();
    settle(&b, 5, 6);
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket[2];
    push_and_wait(&b, t, 1);
    settle(&b, 7, 8); /* what is sent to 5 and 6 is lost, and no connection is reported to end */
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(push_one(&b, t, 2 + i, WAIT_MS, &ticket[i]), DP_OK);
    uint64_t begun = b.net->now_ns;
    for (uint32_t i = 0; i < 2; i++)
        if (dp_client_wait(b.client, &ticket[i], WAIT_MS, NULL, &b.err) != DP_OK)
            fail_msg("%s", b.err.text);
    assert_true(b.net->now_ns - begun < UINT64_C(1000000000)); /* retry_ms is 100 */
    assert_string_equal(b.net->leads[1], "tcp://h:8");
    assert_pushes(&b, 3);
    done(&b);
}

/* A shard at another one's old address must not take the other's requests for its own. */
static void shards_that_swap_their_places_are_told_apart(void **state)
{
    struct bench b = made_counted();
    settle(&b, 5, 6);
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_client_table *t = table(&b, "t", 4);
    push_and_wait(&b, t, 1);
    settle(&b, 6, 5);
    push_and_wait(&b, t, 2);
    assert_true(b.net->misplaced > 0);
    assert_string_equal(b.net->leads[0], "tcp://h:6");
    assert_pushes(&b, 2);
    done(&b);
}

static void tamper_cluster(const struct dp_fake_turn *it)
{
    struct bench *b = it->context;
    if (it->shard < SHARDS && b->net->value.version == 1)
        it->reply->cluster = 6;
}

/* An old address may be another cluster's by now: its answers say nothing. */
static void another_cluster_at_the_address_is_passed_over(void **state)
{
    struct bench b = made_counted();
    settle(&b, 5, 6);
    assert_int_equal(open_client(&b), DP_OK);
    struct dp_client_table *t = table(&b, "t", 4);
    struct dp_ticket ticket;
    b.net->tamper = tamper_cluster;
    b.net->context = &b;
    assert_int_equal(push_one(&b, t, 1, WAIT_MS, &ticket), DP_OK);
    assert_int_equal(dp_client_wait(b.client, &ticket, 500, NULL, &b.err), DP_TIMEOUT);
    settle(&b, 7, 8);
    if (dp_client_wait(b.client, &ticket, WAIT_MS, NULL, &b.err) != DP_OK)
        fail_msg("%s", b.err.text);
    done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_at_the_registered_address),
        cmocka_unit_test(names_what_is_missing),
        cmocka_unit_test(is_refused_by_the_first_server_of_another_cluster),
        cmocka_unit_test(waits_for_an_address_that_can_be_read),
        cmocka_unit_test(follows_a_server_that_moved),
        cmocka_unit_test(shards_that_swap_their_places_are_told_apart),
        cmocka_unit_test(another_cluster_at_the_address_is_passed_over),
    };
    return cmocka_run_group_tests_name("client addresses", tests, NULL, NULL);
}

/* The ledger under kill -9, pauses and spoiled connections: each acknowledged push is there once, each other one once or
 * not at all, and in order. DP_LONG=1: 1,000 kills instead of 10 in each of the two main tests, 200 in the others;
 * DP_KILLS: another number; DP_TEST=name: this one only. */
#include "tests/lib/test.h"
#include "tests/system/chaos.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUND 50u /* kills between two comparisons */

/* Cycles, recycling and full journals all the time: the smallest budget there is. */
#define SMALL "id = 77; journal_bytes = \"16MiB\"; "

static const char *conf_with(struct dp_place *place, struct dp_chaos_options *options, const char *file,
                             const char *top)
{
    struct dp_place_cluster cluster = {.file = "c",
                                       .servers = options->servers,
                                       .shards = options->shards,
                                       .port = options->port,
                                       .top = top};
    const char *conf = dp_place_conf(place, &cluster), *path = dp_place_path(place, "%s", file);
    options->port = cluster.port;
    assert_int_equal(rename(conf, path), 0); /* stores and ports are those of "c" */
    return path;
}

static uint32_t kills_of(uint32_t in_short, uint32_t in_long)
{
    const char *own = getenv("DP_KILLS");
    return own ? (uint32_t)strtoul(own, NULL, 10) : getenv("DP_LONG") ? in_long : in_short;
}

static void weather(struct dp_place *place, struct dp_chaos_options *options, uint32_t kills,
                    struct dp_ledger_sums *sums)
{
    struct dp_chaos *chaos = dp_chaos_open(place, options);
    for (uint32_t done = 0; done < kills; done += ROUND) {
        dp_chaos_storm(chaos, kills - done < ROUND ? kills - done : ROUND);
        dp_chaos_go_on(chaos, 20);
        dp_chaos_compare(chaos, sums);
    }
    const struct dp_chaos_sums *did = dp_chaos_sums(chaos);
    print_message("%" PRIu64 " kills: servers %" PRIu64 " (all at once %" PRIu64 " times, starting %" PRIu64
                  ", draining %" PRIu64 "), clients %" PRIu64 "; %" PRIu64 " pauses, %" PRIu64
                  " spoiled connections\n",
                  did->kills, did->servers, did->both, did->starting, did->draining, did->clients,
                  did->pauses, did->spoiled);
    print_message("%" PRIu64 " pushes: acknowledged %" PRIu64 ", unanswered %" PRIu64 " (%" PRIu64
                  " of them applied), issued again %" PRIu64 ", known already %" PRIu64 "\n",
                  sums->pushes, sums->acked, sums->unanswered, sums->applied_unanswered, sums->resent,
                  sums->repeated);
    assert_true(sums->acked > 0);
    dp_chaos_close(&chaos);
}

static struct dp_chaos_options four_clients(void)
{
    return (struct dp_chaos_options){.servers = 2, .shards = 1, .clients = 4, .every_ms = 600};
}

static void new_streams_in_mode_machine(void **state)
{
    struct dp_chaos_options options = four_clients();
    const char *conf[2] = {conf_with(*state, &options, "machine.conf", SMALL), NULL};
    struct dp_ledger_sums sums;
    options.conf = conf;
    weather(*state, &options, kills_of(10, 1000), &sums);
}

/* Most rows are not in the cache. */
static void the_same_streams_in_mode_process(void **state)
{
    struct dp_chaos_options options = four_clients();
    const char *conf[2] = {conf_with(*state, &options, "process.conf",
                                     SMALL "cache_bytes = \"2MiB\"; durability = \"process\";"),
                           NULL};
    struct dp_ledger_sums sums;
    options.conf = conf;
    options.same = true;
    weather(*state, &options, kills_of(10, 1000), &sums);
    assert_int_equal(sums.unanswered, 0);
}

/* What a restart may change, it changes: durability, the journal's budget, the cache's. Two shards a server. */
static void other_settings_at_each_start(void **state)
{
    struct dp_chaos_options options = four_clients();
    options.shards = 2;
    const char *conf[] = {conf_with(*state, &options, "1.conf", SMALL),
                          conf_with(*state, &options, "2.conf", SMALL "cache_bytes = \"2MiB\";"),
                          conf_with(*state, &options, "3.conf", "id = 77; journal_bytes = \"64MiB\";"),
                          conf_with(*state, &options, "4.conf",
                                    "id = 77; journal_bytes = \"40000001\"; cache_bytes = \"1MiB\";"),
                          NULL};
    struct dp_ledger_sums sums;
    options.conf = conf;
    options.same = true;
    weather(*state, &options, kills_of(6, 200), &sums);
    assert_int_equal(sums.unanswered, 0);
}

static void spoiled_connections(void **state)
{
    struct dp_chaos_options options = four_clients();
    const char *conf[2] = {conf_with(*state, &options, "proxied.conf", SMALL), NULL};
    struct dp_ledger_sums sums;
    options.conf = conf;
    options.proxied = true;
    weather(*state, &options, kills_of(6, 200), &sums);
}

/* Servers that are killed as soon as they live: while their store is made, while tables are, before the first push. */
static void young_servers(void **state)
{
    for (uint32_t round = 0; round < kills_of(3, 60); round++) {
        void *place = NULL;
        struct dp_chaos_options options = four_clients();
        struct dp_ledger_sums sums;
        assert_int_equal(dp_place_setup(&place), 0);
        const char *conf[2] = {conf_with(place, &options, "young.conf", SMALL), NULL};
        options.conf = conf;
        options.same = round % 2;
        options.every_ms = 60;
        weather(place, &options, 4, &sums);
        assert_int_equal(dp_place_teardown(&place), 0);
    }
}

static void until_an_answer_is_lost(struct dp_chaos *chaos)
{
    struct dp_proxy *proxy = dp_chaos_proxy(chaos);
    uint64_t before = dp_proxy_lost(proxy, 0, DP_PROXY_REPLIES);
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    dp_proxy_set(proxy, 0, DP_PROXY_REPLIES, DP_PROXY_LOSE);
    while (dp_proxy_lost(proxy, 0, DP_PROXY_REPLIES) == before && dp_process_now_ms() < deadline)
        dp_chaos_tick(chaos);
    assert_true(dp_proxy_lost(proxy, 0, DP_PROXY_REPLIES) > before);
}

/* The push was applied, is durable and was answered; the client never hears. Each second time the server dies before it is
 * asked again. */
static void answers_are_lost(void **state)
{
    struct dp_chaos_options options = {.servers = 1, .shards = 1, .clients = 2, .proxied = true};
    const char *conf[2] = {conf_with(*state, &options, "lost.conf", SMALL), NULL};
    struct dp_ledger_sums sums;
    options.conf = conf;
    struct dp_chaos *chaos = dp_chaos_open(*state, &options);
    for (int i = 0; i < 8; i++) {
        dp_chaos_go_on(chaos, 30);
        until_an_answer_is_lost(chaos);
        if (i % 2 == 0)
            dp_chaos_kill(chaos, 0);
        dp_proxy_set(dp_chaos_proxy(chaos), 0, DP_PROXY_REPLIES, DP_PROXY_PASS);
    }
    dp_chaos_settle(chaos);
    assert_true(dp_place_counter(*state, conf[0], "pushes_repeated") > 0);
    dp_chaos_compare(chaos, &sums);
    assert_int_equal(sums.unanswered, 0);
    dp_chaos_close(&chaos);
}

/* After a clean stop any durability may follow; with a journal kills lose nothing, whatever was before. */
static void one_durability_after_the_other(void **state)
{
    struct dp_chaos_options options = {.servers = 1, .shards = 2, .clients = 2};
    const char *machine = conf_with(*state, &options, "machine.conf", SMALL);
    const char *process = conf_with(*state, &options, "process.conf", SMALL "cache_bytes = \"2MiB\";");
    const char *none = conf_with(*state, &options, "none.conf", SMALL "durability = \"none\";");
    const char *next[] = {none, process, none, none, machine, process, machine};
    const char *conf[2] = {machine, NULL};
    struct dp_ledger_sums sums;
    options.conf = conf;
    options.same = true;
    struct dp_chaos *chaos = dp_chaos_open(*state, &options);
    for (size_t i = 0; i < sizeof next / sizeof next[0]; i++) {
        dp_chaos_go_on(chaos, 60);
        if (conf[0] != none)
            dp_chaos_kill(chaos, 0);
        dp_chaos_go_on(chaos, 20);
        dp_chaos_settle(chaos);
        conf[0] = next[i];
        dp_chaos_compare(chaos, &sums);
    }
    assert_int_equal(sums.unanswered, 0);
    dp_chaos_close(&chaos);
}

int main(void)
{
#define DP_LEDGER_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_LEDGER_TEST(new_streams_in_mode_machine),
        DP_LEDGER_TEST(the_same_streams_in_mode_process),
        DP_LEDGER_TEST(other_settings_at_each_start),
        DP_LEDGER_TEST(spoiled_connections),
        DP_LEDGER_TEST(young_servers),
        DP_LEDGER_TEST(answers_are_lost),
        DP_LEDGER_TEST(one_durability_after_the_other),
    };
    cmocka_set_test_filter(getenv("DP_TEST"));
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

/* The ledger under kill -9, pauses and spoiled connections: each acknowledged push is there once, each other one once or
 * not at all, and in order. DP_LONG=1: 1,000 kills instead of 10 in each of the two main tests, 200 in the others;
 * DP_KILLS: another number. */
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

static void the_same_streams_in_mode_process(void **state)
{
    struct dp_chaos_options options = four_clients();
    const char *conf[2] = {conf_with(*state, &options, "process.conf", SMALL "durability = \"process\";"),
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
    const char *conf[] = {
        conf_with(*state, &options, "1.conf", SMALL),
        conf_with(*state, &options, "2.conf", SMALL "durability = \"process\";"),
        conf_with(*state, &options, "3.conf", "id = 77; journal_bytes = \"64MiB\";"),
        conf_with(
            *state, &options, "4.conf",
            "id = 77; journal_bytes = \"40000001\"; cache_bytes = \"16MiB\"; durability = \"process\";"),
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

int main(void)
{
#define DP_LEDGER_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_LEDGER_TEST(new_streams_in_mode_machine),
        DP_LEDGER_TEST(the_same_streams_in_mode_process),
        DP_LEDGER_TEST(other_settings_at_each_start),
        DP_LEDGER_TEST(spoiled_connections),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

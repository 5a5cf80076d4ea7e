/* Leases from end to end: the client library asks a control thread over a real socket. */
#include "tests/lib/test.h"

#include "common/client/downpour.h"
#include "server/control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 10000u

struct bed {
    struct dp_net *net;
    struct dp_control *control;
    struct dp_client *client;
    char endpoint[64], directory[64];
};

static uint32_t count(void *context, struct dp_counter counters[DP_COUNTERS_MAX])
{
    (void)context;
    (void)counters;
    return 0;
}

static void start(struct bed *bed, bool is_first)
{
    struct dp_error err = {0};
    const struct dp_control_options options = {.net = bed->net,
                                               .endpoint = bed->endpoint,
                                               .cluster = 5,
                                               .generation = 2,
                                               .boot = 1,
                                               .counters = count,
                                               .register_directory = is_first ? bed->directory : NULL,
                                               .first_server = "tcp://first:1"};
    dp_control_stop(&bed->control);
    if (dp_control_start(&options, &bed->control, &err) != DP_OK)
        fail_msg("%s", err.text);
}

static struct dp_client *open_client(struct bed *bed)
{
    struct dp_error err = {0};
    struct dp_client *client = NULL;
    const struct dp_client_options options = {
        .name = "test", .cluster = 5, .generation = 2, .control = bed->endpoint, .retry_ms = 100};
    if (dp_client_open(&options, &client, &err) != DP_OK)
        fail_msg("%s", err.text);
    return client;
}

static int open_bed(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    struct dp_error err = {0};
    assert_non_null(bed);
    (void)snprintf(bed->endpoint, sizeof bed->endpoint, "ipc:///tmp/dp-lease-%d", (int)getpid());
    (void)snprintf(bed->directory, sizeof bed->directory, "/tmp/dp-lease-XXXXXX");
    assert_non_null(mkdtemp(bed->directory));
    assert_int_equal(dp_net_open(1, &bed->net, &err), DP_OK);
    start(bed, true);
    bed->client = open_client(bed);
    *state = bed;
    return 0;
}

static int close_bed(void **state)
{
    struct bed *bed = *state;
    char path[96];
    dp_client_close(&bed->client);
    dp_control_stop(&bed->control);
    dp_net_close(&bed->net);
    (void)snprintf(path, sizeof path, "%s/register", bed->directory);
    (void)unlink(path);
    (void)rmdir(bed->directory);
    free(bed);
    return 0;
}

static struct dp_leased lease(struct dp_client *client, const struct dp_lease *ask)
{
    struct dp_error err = {0};
    struct dp_leased out;
    if (dp_client_lease(client, ask, TIMEOUT_MS, &out, &err) != DP_OK)
        fail_msg("%s", err.text);
    return out;
}

static void bad_asks_are_refused(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    struct dp_leased got;
    const struct dp_lease bad[] = {{.run = 0, .total = 8},
                                   {.run = 1, .total = 0},
                                   {.run = 1, .total = DP_LEASE_TOTAL_MAX + 1},
                                   {.run = 1, .total = 8, .rank = DP_LEASE_RANKS_MAX},
                                   {.run = 1, .total = 8, .want = DP_LEASE_WANT_MAX + 1},
                                   {.run = 1, .total = 8, .held_count = DP_LEASE_HELD_MAX + 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dp_client_lease(bed->client, &bad[i], TIMEOUT_MS, &got, &err), DP_ARGUMENT);
    const struct dp_lease ask = {.run = 1, .total = 8};
    assert_int_equal(lease(bed->client, &ask).state, DP_LEASE_TELL);
    const struct dp_lease other = {.run = 1, .total = 9};
    assert_int_equal(dp_client_lease(bed->client, &other, TIMEOUT_MS, &got, &err), DP_INVALID);
    assert_non_null(strstr(err.text, "8 push numbers, not 9"));
    start(bed, false); /* not the first server */
    assert_int_equal(dp_client_lease(bed->client, &ask, TIMEOUT_MS, &got, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "tcp://first:1"));
}

int main(void)
{
#define IN_BED(test) cmocka_unit_test_setup_teardown(test, open_bed, close_bed)
    const struct CMUnitTest tests[] = {
        IN_BED(bad_asks_are_refused),
    };
    return cmocka_run_group_tests_name("leases of a client", tests, NULL, NULL);
}

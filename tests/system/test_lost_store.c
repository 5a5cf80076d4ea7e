/* Stores that are not those that the cluster trained on: each is refused by name, with the ways out, by servers and clients, also
 * after all others were started again; nothing is made anew or changed, and with the right ones back all is as it was. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STOPS_MS 30000u /* until a running server has seen it: it asks every 10 s */

struct bed {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf;
    struct dp_process *server[2];
    const char *scores; /* of the trained weights */
};

static const char *store(const struct bed *bed, uint32_t server)
{
    return dp_place_path(bed->place, "c-%u", (unsigned)server);
}

static const char *shard(const struct bed *bed, uint32_t number)
{
    return dp_place_path(bed->place, "c-%u/shard-%04u", (unsigned)(number / 2), (unsigned)number);
}

static void start(struct bed *bed, uint32_t number)
{
    bed->server[number] = dp_place_server(bed->place, bed->conf, number);
}

static void stop(struct bed *bed, uint32_t number)
{
    dp_place_stops_cleanly(bed->server[number]);
}

static const char *scores_of(const struct bed *bed)
{
    const char *out = dp_place_path(bed->place, "scores");
    (void)dp_place_try(bed->place, 0, "downpour-worker", "--cluster", bed->conf, "--predict", DP_DIGITS_TEST,
                       "--out", out);
    return dp_place_read(bed->place, out, NULL);
}

/* Two servers of two shards each, trained and stopped. */
static struct bed trained(void **state)
{
    struct bed bed = {.place = *state,
                      .cluster = {.servers = 2, .shards = 2, .epochs = 1, .top = "id = 77;"}};
    bed.conf = dp_place_conf(bed.place, &bed.cluster);
    for (uint32_t i = 0; i < 2; i++)
        start(&bed, i);
    dp_place_ended(dp_place_worker(bed.place, bed.conf, 0), 0);
    bed.scores = scores_of(&bed);
    for (uint32_t i = 0; i < 2; i++)
        stop(&bed, i);
    return bed;
}

static void all_is_as_it_was(struct bed *bed)
{
    for (uint32_t i = 0; i < 2; i++)
        start(bed, i);
    assert_string_equal(scores_of(bed), bed->scores);
    for (uint32_t i = 0; i < 2; i++)
        stop(bed, i);
}

static void refused(const struct bed *bed, const char *conf, uint32_t server, const char *directory,
                    const char *cause)
{
    struct dp_process *process = dp_place_try(bed->place, 2, "downpour-server", "--cluster", conf, "--server",
                                              dp_place_text(bed->place, "%u", (unsigned)server));
    dp_place_says(process, directory);
    dp_place_says(process, cause);
}

/* Of the second server: beside the first one that runs, and after that was started again. */
static void refused_always(struct bed *bed, const char *directory, const char *cause)
{
    for (int round = 0; round < 2; round++) {
        start(bed, 0);
        refused(bed, bed->conf, 1, directory, cause);
        stop(bed, 0);
    }
}

static void move(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        fail_msg("%s cannot be renamed", from);
}

static void copy(const struct bed *bed, const char *from, const char *to)
{
    (void)dp_place_try(bed->place, 0, "/bin/cp", "-a", from, to);
}

/* ---- lost */

static void the_second_servers(void **state)
{
    struct bed bed = trained(state);
    const char *kept = dp_place_path(bed.place, "kept");
    move(store(&bed, 1), kept);
    refused_always(&bed, store(&bed, 1), "--replace-store");
    assert_int_not_equal(access(store(&bed, 1), F_OK), 0);
    assert_int_equal(mkdir(store(&bed, 1), 0777), 0); /* a disk that is not mounted leaves this */
    refused_always(&bed, store(&bed, 1), "was it removed, or its disk not mounted");
    assert_int_equal(rmdir(store(&bed, 1)), 0); /* nothing was made in it */
    move(kept, store(&bed, 1));
    all_is_as_it_was(&bed);
}

/* It starts as a new one only where the user says so: all others refuse that. */
static void the_first_servers(void **state)
{
    struct bed bed = trained(state);
    const char *kept = dp_place_path(bed.place, "kept");
    struct dp_place_cluster long_run = bed.cluster;
    long_run.file = "long";
    long_run.epochs = 1000;
    long_run.run = 2;
    const char *conf = dp_place_path(bed.place, "run.conf");
    move(dp_place_conf(bed.place, &long_run), conf);
    (void)dp_place_try(bed.place, 0, "/bin/sed", "-i", "s|/long-|/c-|; s|\"long\"|\"c\"|", conf);
    start(&bed, 0);
    start(&bed, 1);
    struct dp_process *worker = dp_place_worker(bed.place, conf, 0);
    dp_place_awaits(worker, "epoch 2 of");
    stop(&bed, 0);
    move(store(&bed, 0), kept);
    refused(&bed, bed.conf, 0, store(&bed, 0), "start server 0 once with --new");
    assert_int_not_equal(access(store(&bed, 0), F_OK), 0);
    start(&bed, 0);
    dp_place_says(bed.server[0], "a new cluster is begun");
    dp_place_ended(worker, 2);
    const char *why = dp_process_err(worker); /* whichever comes first: of its rows, or of its decisions */
    assert_true(strstr(why, "its store is another one now") || strstr(why, "was its store replaced?") ||
                strstr(why, "is this an older copy of the register?"));
    assert_int_equal(dp_process_wait(bed.server[1], STOPS_MS * DP_PATIENCE), 2);
    dp_place_says(bed.server[1], "is known to register");
    refused(&bed, bed.conf, 1, store(&bed, 1), "was one of the two lost");
    stop(&bed, 0);
    refused_always(&bed, store(&bed, 1), "was one of the two lost");
    (void)dp_place_try(bed.place, 0, "/bin/rm", "-r", store(&bed, 0));
    move(kept, store(&bed, 0));
    for (uint32_t i = 0; i < 2; i++)
        start(&bed, i);
    for (uint32_t i = 0; i < 2; i++)
        stop(&bed, i);
}

/* ---- copies */

/* The second server's copy, on other ports, with the same first server. */
static const char *conf_of_copy(const struct bed *bed, const char *from)
{
    char edit[256];
    const char *conf = dp_place_path(bed->place, "copy.conf");
    (void)snprintf(edit, sizeof edit, "s|%s|%s|; s|port = %u;|port = %u;|", store(bed, 1), from,
                   (unsigned)bed->cluster.port + 3, (unsigned)dp_place_ports(3));
    copy(bed, bed->conf, conf);
    (void)dp_place_try(bed->place, 0, "/bin/sed", "-i", edit, conf);
    return conf;
}

/* Taken from one that runs, it is the same to the last bit: it takes the place, and the original is told. */
static void a_copy_of_one_that_runs(void **state)
{
    struct bed bed = trained(state);
    const char *copied = dp_place_path(bed.place, "copied"), *conf = conf_of_copy(&bed, copied);
    start(&bed, 0);
    start(&bed, 1);
    dp_process_signal(bed.server[1], SIGSTOP);
    copy(&bed, store(&bed, 1), copied);
    dp_process_signal(bed.server[1], SIGCONT);
    stop(&bed, 0);
    bed.server[0] = dp_place_server(bed.place, conf, 0); /* by the file in which the copy has its place */
    struct dp_process *second = dp_place_server(bed.place, conf, 1);
    assert_int_equal(dp_process_wait(bed.server[1], STOPS_MS * DP_PATIENCE), 2);
    dp_place_says(bed.server[1], "another copy is used in its place");
    dp_place_stops_cleanly(second);
    stop(&bed, 0);
}

static bool misses_journal(const struct bed *bed)
{
    struct dp_process *inspect = dp_place_start(bed->place, "downpour", "inspect", shard(bed, 3), NULL);
    (void)dp_process_wait(inspect, DP_SOON_MS);
    return strstr(dp_process_out(inspect), "wrote to it") != NULL;
}

/* An opening that did not come to serve has accepted no push: the copy from before it still is the store. */
static void a_copy_after_an_opening_that_failed(void **state)
{
    struct bed bed = trained(state);
    const char *kept = dp_place_path(bed.place, "kept"), *damaged = dp_place_path(bed.place, "damaged"),
               *served = dp_place_path(bed.place, "served");
    start(&bed, 0);
    uint32_t tries = 0;
    do { /* a server that is killed at once may not have noted its journal yet: nothing is in it */
        start(&bed, 1);
        dp_process_signal(bed.server[1], SIGKILL);
        dp_place_ended(bed.server[1], -SIGKILL);
        (void)dp_place_try(bed.place, 0, "/bin/rm", "-rf", kept);
        copy(&bed, shard(&bed, 3), kept);
        (void)dp_place_try(bed.place, 0, "/bin/rm", "-r", dp_place_path(bed.place, "c-1/shard-0003/journal"));
    } while (!misses_journal(&bed) && ++tries < 50);
    for (int again = 0; again < 2; again++)
        refused(&bed, bed.conf, 1, "shard 3", "or a copy of the store made since its server last ended");
    move(shard(&bed, 3), damaged);
    copy(&bed, kept, shard(&bed, 3));
    start(&bed, 1);
    stop(&bed, 1);
    move(shard(&bed, 3), served);
    move(damaged, shard(&bed, 3)); /* it is the older one now */
    refused(&bed, bed.conf, 1, shard(&bed, 3), "is not the copy that was opened last");
    move(shard(&bed, 3), damaged);
    move(served, shard(&bed, 3));
    stop(&bed, 0);
    all_is_as_it_was(&bed);
}

/* ---- on purpose */

#define TEST(function) cmocka_unit_test_setup_teardown(function, dp_place_setup, dp_place_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_second_servers),
        TEST(the_first_servers),
        TEST(a_copy_of_one_that_runs),
        TEST(a_copy_after_an_opening_that_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Servers of durability none: an online checkpoint of them is refused with its remedy, which works; they are restored from one onto the same
 * and another number of shards, and trained on to the bits of the run that was never stopped; killed, they name the checkpoint, and start
 * empty only with --discard. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdio.h>

#define ALONE "overlap = false; pushes_max = 1;"

struct unsaved {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf, *to;
    struct dp_process *server[2], *worker;
};

static void as_durable(struct unsaved *u, const char *file, uint32_t servers, uint32_t shards,
                       const char *durability)
{
    u->cluster = (struct dp_place_cluster){
        .file = file,
        .servers = servers,
        .shards = shards,
        .epochs = 12,
        .batch = 8,
        .timeout_ms = 60000,
        .training = ALONE,
        .top = dp_place_text(u->place, "id = 77; durability = \"%s\";", durability)};
    u->conf = dp_place_conf(u->place, &u->cluster);
}

static void as(struct unsaved *u, const char *file, uint32_t servers, uint32_t shards)
{
    as_durable(u, file, servers, shards, "none");
}

static void start(struct unsaved *u)
{
    for (uint32_t i = 0; i < u->cluster.servers; i++)
        u->server[i] = dp_place_server(u->place, u->conf, i);
    u->worker = dp_place_worker(u->place, u->conf, 0);
}

/* The worker ends by itself. */
static const char *digest_of_the_end(struct unsaved *u)
{
    const char *file = u->cluster.file;
    dp_place_ended(u->worker, 0);
    for (uint32_t i = 0; i < u->cluster.servers; i++)
        dp_place_stops_cleanly(u->server[i]);
    return dp_place_digest(u->place, dp_place_path(u->place, "%s-0", file),
                           u->cluster.servers > 1 ? dp_place_path(u->place, "%s-1", file) : NULL);
}

static struct dp_process *checkpoint(const struct unsaved *u)
{
    return dp_place_try(u->place, 0, "downpour", "checkpoint", "--cluster", u->conf, "--to", u->to);
}

static struct unsaved training(void **state, const char *durability)
{
    struct unsaved u = {.place = *state, .to = NULL};
    u.to = dp_place_path(u.place, "checkpoints");
    as_durable(&u, "c", 2, 1, durability);
    start(&u);
    dp_place_awaits(u.worker, "epoch 2 of");
    return u;
}

static void an_online_checkpoint_is_refused_with_its_remedy(void **state)
{
    struct unsaved u = training(state, "none");
    struct dp_process *refused =
        dp_place_try(u.place, 2, "downpour", "checkpoint", "--cluster", u.conf, "--to", u.to);
    dp_place_says(refused, "has no journal (durability none)");
    dp_place_says(refused, "set durability to process or machine");
    (void)digest_of_the_end(&u);
    as_durable(&u, "c", 2, 1, "process"); /* the same stores */
    for (uint32_t i = 0; i < u.cluster.servers; i++)
        u.server[i] = dp_place_server(u.place, u.conf, i);
    dp_place_says(checkpoint(&u), "checkpoint 1 of run 1");
    for (uint32_t i = 0; i < u.cluster.servers; i++)
        dp_place_stops_cleanly(u.server[i]);
}

static void kill_all(struct unsaved *u)
{
    dp_process_signal(u->worker, SIGKILL);
    dp_place_ended(u->worker, -SIGKILL);
    for (uint32_t i = 0; i < u->cluster.servers; i++) {
        dp_process_signal(u->server[i], SIGKILL);
        dp_place_ended(u->server[i], -SIGKILL);
    }
}

static void expect_refused(const struct unsaved *u, const char *names)
{
    for (uint32_t i = 0; i < u->cluster.servers; i++) {
        struct dp_process *refused = dp_place_try(u->place, 2, "downpour-server", "--cluster", u->conf,
                                                  "--server", dp_place_text(u->place, "%u", (unsigned)i));
        dp_place_says(refused, "was not closed cleanly");
        dp_place_says(refused, names);
        dp_place_says(refused, "--discard");
    }
}

static void start_with_discard(struct unsaved *u)
{
    for (uint32_t i = 0; i < u->cluster.servers; i++) {
        u->server[i] = dp_place_start(u->place, "downpour-server", "--cluster", u->conf, "--server",
                                      dp_place_text(u->place, "%u", (unsigned)i), "--discard", NULL);
        dp_place_awaits(u->server[i], "ready:");
    }
}

/* What it would throw away shows that the register is missing. */
static void expect_no_discard_without_register(const struct unsaved *u)
{
    const char *file = dp_place_path(u->place, "c-0/register"), *kept = dp_place_path(u->place, "register");
    assert_int_equal(rename(file, kept), 0);
    for (int i = 0; i < 2; i++)
        dp_place_says(
            dp_place_try(u->place, 2, "downpour-server", "--cluster", u->conf, "--server", "0", "--discard"),
            "its file 'register' is missing");
    assert_int_equal(rename(kept, file), 0);
    dp_place_says(dp_place_try(u->place, 2, "downpour-server", "--cluster", u->conf, "--server", "0",
                               "--discard", "--existing-store"),
                  "leave one of them out");
}

static void killed_it_names_its_checkpoint_or_starts_empty(void **state)
{
    struct unsaved u = training(state, "none");
    kill_all(&u);
    expect_refused(&u, "No checkpoint of it is known");
    expect_no_discard_without_register(&u);
    as_durable(&u, "saved", 2, 1, "process");
    start(&u);
    dp_place_awaits(u.worker, "epoch 2 of");
    (void)checkpoint(&u);
    (void)digest_of_the_end(&u);
    as(&u, "c", 2, 1);
    (void)dp_place_try(u.place, 0, "downpour", "restore", "--from", u.to, "--cluster", u.conf, "--overwrite");
    start(&u);
    dp_place_awaits(u.worker, "continues at epoch");
    kill_all(&u);
    expect_refused(
        &u, dp_place_path(u.place, "checkpoints/checkpoint-000001")); /* the one it was restored from */
    start_with_discard(&u);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_says(u.server[i], "is thrown away (--discard); the rest of it is checkpoint");
    u.worker = dp_place_worker(u.place, u.conf, 0);
    const char *end = digest_of_the_end(&u);
    start_with_discard(&u); /* what was closed cleanly stays */
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(u.server[i]);
    assert_string_equal(
        dp_place_digest(u.place, dp_place_path(u.place, "c-0"), dp_place_path(u.place, "c-1")), end);
    as(&u, "undisturbed", 2, 1);
    start(&u);
    assert_string_equal(digest_of_the_end(&u), end);
}

int main(void)
{
#define UNJOURNALED_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        UNJOURNALED_TEST(an_online_checkpoint_is_refused_with_its_remedy),
        UNJOURNALED_TEST(killed_it_names_its_checkpoint_or_starts_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

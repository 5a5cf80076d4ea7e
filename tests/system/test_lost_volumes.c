/* Volumes that are lost: three servers, whose cluster file names a directory of checkpoints or none. Never
 * does a cluster that was
 * begun start from nothing without a word: it resumes, is restored from its last checkpoint by all servers or
 * by none, or is refused by name. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVERS 3u

struct bed {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf, *to; /* NULL: the file names no checkpoints */
    struct dp_process *server[SERVERS];
    const char *scores;
};

static const char *number(const struct bed *bed, uint32_t i)
{
    return dp_place_text(bed->place, "%u", (unsigned)i);
}

static const char *store(const struct bed *bed, uint32_t i)
{
    return dp_place_path(bed->place, "c-%u", (unsigned)i);
}

/* Without --new, and without waiting. */
static struct dp_process *begin(const struct bed *bed, uint32_t i)
{
    return dp_place_start(bed->place, "downpour-server", "--cluster", bed->conf, "--server", number(bed, i),
                          NULL);
}

static void begin_all(struct bed *bed)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        bed->server[i] = begin(bed, i);
}

static void await_all(struct bed *bed)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_place_awaits(bed->server[i], "ready:");
}

static void stop_all(struct bed *bed)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_process_signal(bed->server[i], SIGTERM);
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_place_ended(bed->server[i], 0);
}

static void kill_it(struct dp_process *process)
{
    dp_process_signal(process, SIGKILL);
    assert_int_equal(dp_process_end(process, DP_SOON_MS), -SIGKILL);
    while (dp_process_left(process) > 0) /* its child, which the kernel ends */
        dp_process_pause();
}

static void kill_all(struct bed *bed)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        kill_it(bed->server[i]);
}

static void refused(const struct bed *bed, uint32_t i, const char *cause)
{
    dp_place_says(
        dp_place_try(bed->place, 2, "downpour-server", "--cluster", bed->conf, "--server", number(bed, i)),
        cause);
}

static const char *scores_of(const struct bed *bed)
{
    const char *out = dp_place_path(bed->place, "scores");
    (void)dp_place_try(bed->place, 0, "downpour-worker", "--cluster", bed->conf, "--predict", DP_DIGITS_TEST,
                       "--out", out);
    return dp_place_read(bed->place, out, NULL);
}

static void lose(const struct bed *bed, uint32_t i)
{
    (void)dp_place_try(bed->place, 0, "/bin/rm", "-r", store(bed, i));
}

static struct bed bed_of(void **state, bool has_checkpoints)
{
    struct bed bed = {.place = *state, .cluster = {.servers = SERVERS, .epochs = 1, .model = "mlp:64-10"}};
    if (has_checkpoints) {
        bed.to = dp_place_path(bed.place, "shared");
        bed.cluster.top = dp_place_text(bed.place, "checkpoint = { to = \"%s\"; every = 3600; };", bed.to);
        assert_int_equal(mkdir(bed.to, 0777), 0);
    }
    bed.conf = dp_place_conf(bed.place, &bed.cluster);
    return bed;
}

static struct bed trained(void **state)
{
    struct bed bed = bed_of(state, true);
    begin_all(&bed);
    await_all(&bed);
    dp_place_ended(dp_place_worker(bed.place, bed.conf, 0), 0);
    bed.scores = scores_of(&bed);
    return bed;
}

static void checkpoint(const struct bed *bed)
{
    (void)dp_place_try(bed->place, 0, "downpour", "checkpoint", "--cluster", bed->conf, "--to", bed->to);
}

/* ---- no checkpoints in the cluster file: one word, once */

static void the_first_start(void **state)
{
    struct bed bed = bed_of(state, false);
    refused(&bed, 0, "start server 0 once with --new");
    assert_int_not_equal(access(store(&bed, 0), F_OK), 0);
    bed.server[0] = dp_place_server(bed.place, bed.conf, 0);
    dp_place_stops_cleanly(bed.server[0]);
    begin_all(&bed);
    await_all(&bed);
    stop_all(&bed);
    for (uint32_t i = 0; i < SERVERS; i++)
        lose(&bed, i);
    refused(&bed, 0, "nothing says whether this cluster was ever begun");
}

/* ---- all are lost */

static void all_without_a_checkpoint(void **state)
{
    struct bed bed = trained(state);
    kill_all(&bed);
    for (uint32_t i = 0; i < SERVERS; i++)
        lose(&bed, i);
    refused(&bed, 0, "says that cluster 'c' was begun");
    refused(&bed, 0, "--new");
    assert_int_not_equal(access(store(&bed, 0), F_OK), 0);
    bed.server[0] = dp_place_server(bed.place, bed.conf, 0); /* --new */
    dp_place_stops_cleanly(bed.server[0]);
}

static void all_with_a_checkpoint(void **state)
{
    struct bed bed = trained(state);
    checkpoint(&bed);
    kill_all(&bed);
    for (uint32_t i = 0; i < SERVERS; i++)
        lose(&bed, i);
    dp_place_says(
        dp_place_try(bed.place, 2, "downpour-server", "--cluster", bed.conf, "--server", "0", "--new"),
        "has checkpoint 1 of this cluster");
    /* A plan that is left, of another checkpoint of that number. */
    (void)dp_place_try(bed.place, 0, "/bin/sh", "-c",
                       dp_place_text(bed.place,
                                     "cd %s && d=restoring-$(ls | sed -n s/begun-//p) && mkdir $d && "
                                     "echo 00000000000000aa 00000000000000bb 1 >$d/plan",
                                     bed.to));
    begin_all(&bed);
    await_all(&bed);
    dp_place_says(bed.server[0], "it is built from checkpoint 1");
    dp_place_says(bed.server[2], "it is built from checkpoint 1");
    assert_string_equal(scores_of(&bed), bed.scores);
    stop_all(&bed);
    begin_all(&bed);
    await_all(&bed);
    assert_string_equal(scores_of(&bed), bed.scores);
    stop_all(&bed);
}

/* The last one's manifest is damaged: the one before it, and the log says so. All are: refused, not begun. */
static void a_damaged_manifest(void **state)
{
    struct bed bed = trained(state);
    checkpoint(&bed);
    checkpoint(&bed);
    kill_all(&bed);
    for (uint32_t i = 0; i < SERVERS; i++)
        lose(&bed, i);
    const char *const cut = "truncate -s 100 %s/checkpoint-00000%u/manifest*";
    (void)dp_place_try(bed.place, 0, "/bin/sh", "-c", dp_place_text(bed.place, cut, bed.to, 2u));
    /* A stop while it waits for the others is one to try again after. */
    bed.server[0] = dp_place_start(bed.place, "downpour-server", "--cluster", bed.conf, "--server", "0",
                                   "--until-done", NULL);
    dp_place_awaits(bed.server[0], "waits for server 1");
    dp_process_signal(bed.server[0], SIGTERM);
    assert_int_equal(dp_process_end(bed.server[0], DP_SOON_MS), 3);
    begin_all(&bed);
    await_all(&bed);
    dp_place_says(bed.server[0], "checkpoint 2 is damaged");
    dp_place_says(bed.server[1], "it is built from checkpoint 1");
    assert_string_equal(scores_of(&bed), bed.scores);
    kill_all(&bed);
    for (uint32_t i = 0; i < SERVERS; i++)
        lose(&bed, i);
    (void)dp_place_try(bed.place, 0, "/bin/sh", "-c", dp_place_text(bed.place, cut, bed.to, 1u));
    refused(&bed, 0, "checkpoint 2 is damaged");
}

/* Server 0 and another one are killed when their parts are built, and not exchanged. */
static void killed_between_build_and_exchange(void **state)
{
    struct bed bed = trained(state);
    checkpoint(&bed);
    kill_all(&bed);
    for (uint32_t i = 0; i < SERVERS; i++)
        lose(&bed, i);
    struct dp_process *first = begin(&bed, 0), *other = begin(&bed, 1);
    dp_place_awaits(first, "waits for server 1");
    dp_place_awaits(other, "built in");
    kill_it(first);
    kill_it(other);
    assert_int_equal(access(dp_place_path(bed.place, "c-0.restoring/restored"), F_OK), 0);
    assert_int_not_equal(access(store(&bed, 0), F_OK), 0);
    begin_all(&bed);
    await_all(&bed);
    assert_string_equal(scores_of(&bed), bed.scores);
    stop_all(&bed);
}

/* They were built, and their disks came back before server 0 went on: what they said then does not count. */
static void notes_of_before(void **state)
{
    struct bed bed = trained(state);
    checkpoint(&bed);
    kill_all(&bed);
    lose(&bed, 0);
    for (uint32_t i = 1; i < SERVERS; i++)
        assert_int_equal(rename(store(&bed, i), dp_place_path(bed.place, "away-%u", (unsigned)i)), 0);
    struct dp_process *first = begin(&bed, 0), *other[SERVERS];
    dp_place_awaits(first, "waits for server 1");
    kill_it(first);
    for (uint32_t i = 1; i < SERVERS; i++)
        other[i] = begin(&bed, i);
    for (uint32_t i = 1; i < SERVERS; i++) {
        const char *note = dp_place_text(bed.place, "ls %s/restoring-*/server-%u", bed.to, (unsigned)i);
        dp_place_awaits(other[i], "built in");
        while (dp_process_end(dp_place_start(bed.place, "/bin/sh", "-c", note, NULL), DP_SOON_MS) != 0)
            dp_process_pause();
    }
    for (uint32_t i = 1; i < SERVERS; i++) {
        kill_it(other[i]);
        assert_int_equal(rename(dp_place_path(bed.place, "away-%u", (unsigned)i), store(&bed, i)), 0);
    }
    first = begin(&bed, 0);
    dp_place_awaits(first, "waits for server 1");
    other[1] = begin(&bed, 1);
    dp_place_ended(first, 2);
    dp_place_says(first, "has its own");
    assert_int_not_equal(access(store(&bed, 0), F_OK), 0);
    assert_int_not_equal(access(dp_place_path(bed.place, "c-1.before"), F_OK), 0);
    kill_it(other[1]);
}

/* ---- restored by a person */

static void restore(const struct bed *bed, uint32_t checkpoint_number)
{
    (void)dp_place_try(bed->place, 0, "downpour", "restore", "--overwrite", "--cluster", bed->conf, "--from",
                       dp_place_text(bed->place, "%s/checkpoint-%06u", bed->to, (unsigned)checkpoint_number));
}

static void serve_once(struct bed *bed)
{
    begin_all(bed);
    await_all(bed);
    stop_all(bed);
}

/* Its generation is lower than the last one. The stores of before have the same one, and another history. */
static void an_older_checkpoint(void **state)
{
    struct bed bed = trained(state);
    const char *const away = dp_place_path(bed.place, "away");
    checkpoint(&bed);
    stop_all(&bed);
    restore(&bed, 1);
    begin_all(&bed);
    await_all(&bed);
    checkpoint(&bed);
    stop_all(&bed);
    (void)dp_place_try(bed.place, 0, "/bin/cp", "-r", store(&bed, 0), away);
    restore(&bed, 2);
    serve_once(&bed);
    restore(&bed, 1);
    serve_once(&bed);
    serve_once(&bed);
    lose(&bed, 0);
    assert_int_equal(rename(away, store(&bed, 0)), 0);
    refused(&bed, 0, "it is the store of before a restore");
}

/* Its stores go on under another register, and the proof with them. */
static void a_lost_register(void **state)
{
    struct bed bed = trained(state);
    stop_all(&bed);
    assert_int_equal(unlink(dp_place_path(bed.place, "c-0/register")), 0);
    refused(&bed, 0, "its file 'register' is missing");
    bed.server[0] = dp_place_start(bed.place, "downpour-server", "--cluster", bed.conf, "--server", "0",
                                   "--replace-store", NULL);
    dp_place_awaits(bed.server[0], "ready:");
    dp_place_stops_cleanly(bed.server[0]);
}

/* ---- some are lost */

static void one_of_the_others(void **state)
{
    struct bed bed = trained(state);
    checkpoint(&bed);
    stop_all(&bed);
    lose(&bed, 1);
    struct dp_process *first = begin(&bed, 0);
    dp_place_awaits(first, "ready:");
    refused(&bed, 1, "was it removed, or its disk not mounted");
    assert_int_not_equal(access(store(&bed, 1), F_OK), 0);
    dp_place_stops_cleanly(first);
}

static void the_first_one(void **state)
{
    struct bed bed = trained(state);
    checkpoint(&bed);
    stop_all(&bed);
    lose(&bed, 0);
    struct dp_process *first = begin(&bed, 0);
    dp_place_awaits(first, "waits for server 1");
    struct dp_process *other = begin(&bed, 1);
    dp_place_ended(first, 2);
    dp_place_says(first, "server 1 (on ");
    dp_place_says(first, "has its own");
    assert_int_not_equal(access(store(&bed, 0), F_OK), 0);
    /* It waits still, and sees the next try. */
    first = begin(&bed, 0);
    dp_place_ended(first, 2);
    dp_place_says(first, "has its own");
    kill_it(other);
}

/* With the flag it begins without its rows where another server has its store, and only there. */
static void the_first_one_is_given_up(void **state)
{
    struct bed bed = trained(state);
    checkpoint(&bed);
    stop_all(&bed);
    lose(&bed, 0);
    for (uint32_t i = 0; i < SERVERS; i++) {
        bed.server[i] = dp_place_start(bed.place, "downpour-server", "--cluster", bed.conf, "--server",
                                       number(&bed, i), "--replace-store", NULL);
        if (i == 0)
            dp_place_awaits(bed.server[0], "waits for another server to say whether it has its store");
    }
    await_all(&bed);
    kill_all(&bed);
    for (uint32_t i = 0; i < SERVERS; i++)
        lose(&bed, i);
    bed.server[0] = dp_place_start(bed.place, "downpour-server", "--cluster", bed.conf, "--server", "0",
                                   "--replace-store", NULL);
    bed.server[1] = begin(&bed, 1);
    bed.server[2] = begin(&bed, 2);
    dp_place_ended(bed.server[0], 2);
    dp_place_says(bed.server[0], "no server has a store");
    kill_it(bed.server[1]);
    kill_it(bed.server[2]);
}

/* ---- directories and files that differ between hosts */

static const char *edited(const struct bed *bed, const char *edit)
{
    const char *conf = dp_place_path(bed->place, "edited.conf");
    (void)dp_place_try(bed->place, 0, "/bin/cp", bed->conf, conf);
    (void)dp_place_try(bed->place, 0, "/bin/sed", "-i", edit, conf);
    return conf;
}

static void other_files(void **state)
{
    struct bed bed = bed_of(state, true);
    const char *const edits[][2] = {
        {"s|every = 3600|every = 360|", "'checkpoint.every' is 360 in this server's cluster file, and 3600"},
        {"s|^training|durability = \"process\"; training|",
         "'durability' is \"process\" in this server's cluster file, and \"machine\""}};
    bed.server[0] = begin(&bed, 0);
    dp_place_awaits(bed.server[0], "ready:");
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        dp_place_says(dp_place_try(bed.place, 2, "downpour-server", "--cluster", edited(&bed, edits[i][0]),
                                   "--server", "1"),
                      edits[i][1]);
    assert_int_not_equal(access(store(&bed, 1), F_OK), 0);
    /* Memory and paths of its own. */
    bed.server[1] = dp_place_start(
        bed.place, "downpour-server", "--cluster",
        edited(&bed, "s|^training|cache_bytes = \"64MiB\"; training|; s|c-1|own-1|"), "--server", "1", NULL);
    dp_place_awaits(bed.server[1], "ready:");
    dp_place_stops_cleanly(bed.server[1]);
    dp_place_stops_cleanly(bed.server[0]);
}

static const char *proof_of(const struct bed *bed)
{
    const struct dirent *e;
    const char *path = NULL;
    DIR *d = opendir(bed->to);
    assert_non_null(d);
    while ((e = readdir(d)))
        if (strncmp(e->d_name, "begun-", 6) == 0)
            path = dp_place_path(bed->place, "shared/%s", e->d_name);
    (void)closedir(d);
    assert_non_null(path);
    return path;
}

/* As on a host on which another directory is mounted there: the file is missing, or another cluster's. */
static void a_directory_that_is_not_shared(void **state)
{
    struct bed bed = bed_of(state, true);
    bed.server[0] = begin(&bed, 0);
    dp_place_awaits(bed.server[0], "ready:");
    const char *proof = proof_of(&bed), *kept = dp_place_path(bed.place, "kept");
    assert_int_equal(rename(proof, kept), 0);
    refused(&bed, 1, "is not the one that the first server has under that name");
    (void)dp_place_try(bed.place, 0, "/bin/sh", "-c",
                       dp_place_text(bed.place, "sed 's/^[0-9a-f]*/00000000000000ab/' %s >%s", kept, proof));
    refused(&bed, 1, "is of another cluster");
    dp_place_stops_cleanly(bed.server[0]);
    refused(&bed, 0, "is of another cluster of this name");
    assert_int_equal(rename(kept, proof), 0);
    bed.server[0] = begin(&bed, 0);
    dp_place_awaits(bed.server[0], "ready:");
    dp_place_stops_cleanly(bed.server[0]);
}

static void a_directory_that_is_missing(void **state)
{
    struct bed bed = bed_of(state, true);
    assert_int_equal(rmdir(bed.to), 0);
    refused(&bed, 0, "the directory checkpoint.to");
    assert_int_not_equal(access(bed.to, F_OK), 0);
    bed.server[0] = dp_place_server(bed.place, bed.conf, 0);
    const char *proof = proof_of(&bed);
    dp_place_stops_cleanly(bed.server[0]);
    /* As where the disk is not mounted when the stores are there. */
    assert_int_equal(unlink(proof), 0);
    bed.server[0] = dp_place_server(bed.place, bed.conf, 0);
    dp_place_says(bed.server[0], "lacks the file by which this cluster is known there");
    assert_string_equal(proof_of(&bed), proof);
    dp_place_stops_cleanly(bed.server[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_start, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(all_without_a_checkpoint, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(all_with_a_checkpoint, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(killed_between_build_and_exchange, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_damaged_manifest, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(the_first_one_is_given_up, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(notes_of_before, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(an_older_checkpoint, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_lost_register, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(one_of_the_others, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(the_first_one, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(other_files, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_is_not_shared, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_is_missing, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Training that is continued from a checkpoint ends as the undisturbed one. Goal: rows, metrics of each epoch, early stop, the epoch whose
 * weights stay, and all of the report that is not time or place. Method: a training that nobody disturbs; another one that is checkpointed
 * at some moments, until all of its processes are killed; each checkpoint restored onto another number of servers or shards, with none of the
 * files of the killed one but the checkpoint, and that of the best epoch, and ended. The order is fixed: one worker, or workers in step. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOMENTS_MAX  5u
#define WORKERS_MAX  4u
#define SERVERS_MAX  2u
#define EPOCHS       60u
#define PATIENCE     8u /* so long that a slow checkpoint is made before the end */
#define TRAINING_SAY "epoch %u of"

struct continued {
    struct dp_place *place;
    uint32_t workers;
    const char *how;
    struct dp_place_cluster cluster; /* the last one */
    const char *conf;
    struct dp_process *server[SERVERS_MAX], *worker[WORKERS_MAX];
    const char *end;        /* digest of the undisturbed one */
    uint32_t best, stopped; /* its epochs */
};

static void as(struct continued *c, const char *file, uint32_t servers, uint32_t shards)
{
    c->cluster = (struct dp_place_cluster){
        .file = file,
        .model = "mlp:64-32-10",
        .servers = servers,
        .shards = shards,
        .workers = c->workers,
        .epochs = EPOCHS,
        .batch = 4,
        .rate = "0.002",
        .timeout_ms = 60000,
        .training =
            dp_place_text(c->place, "patience = %u; keep = \"best\"; steps = \"%s\"; best = \"%s\"; %s",
                          PATIENCE, dp_place_path(c->place, "%s-steps", file),
                          dp_place_path(c->place, strcmp(file, "calm") == 0 ? "calm-best" : "best"), c->how),
        .top = "id = 77; journal_bytes = \"64MiB\";"};
    c->conf = dp_place_conf(c->place, &c->cluster);
}

static void start(struct continued *c)
{
    for (uint32_t i = 0; i < c->cluster.servers; i++)
        c->server[i] = dp_place_server(c->place, c->conf, i);
    for (uint32_t i = 0; i < c->workers; i++)
        c->worker[i] = dp_place_worker(c->place, c->conf, i);
}

static void end(struct continued *c)
{
    for (uint32_t i = 0; i < c->workers; i++)
        dp_place_ended(c->worker[i], 0);
    for (uint32_t i = 0; i < c->cluster.servers; i++)
        dp_place_stops_cleanly(c->server[i]);
}

static void kill_all(struct continued *c)
{
    for (uint32_t i = 0; i < c->workers; i++)
        dp_process_signal(c->worker[i], SIGKILL);
    for (uint32_t i = 0; i < c->cluster.servers; i++)
        dp_process_signal(c->server[i], SIGKILL);
    for (uint32_t i = 0; i < c->workers; i++)
        dp_place_ended(c->worker[i], -SIGKILL);
    for (uint32_t i = 0; i < c->cluster.servers; i++)
        dp_place_ended(c->server[i], -SIGKILL);
}

static const char *digest(const struct continued *c)
{
    return dp_place_digest(c->place, dp_place_path(c->place, "%s-0", c->cluster.file),
                           c->cluster.servers > 1 ? dp_place_path(c->place, "%s-1", c->cluster.file) : NULL);
}

/* ---- reports */

static void drop(json_t *from, const char *const names[])
{
    for (size_t i = 0; names[i]; i++)
        (void)json_object_del(from, names[i]);
}

/* A report without times, and without what is only counted while a process lives. */
static json_t *report_of(struct dp_place *place, const char *path)
{
    static const char *const of_all[] = {"cluster", "throughput", "staleness", "spent_s", "advice", NULL};
    static const char *const of_settings[] = {"servers", "shards", NULL};
    static const char *const of_one[] = {"seconds", "examples_per_s", "staleness", "spent_s", NULL};
    json_t *root = json_loads(dp_place_read(place, path, NULL), 0, NULL), *one;
    size_t at;
    assert_non_null(root);
    drop(root, of_all);
    drop(json_object_get(root, "settings"), of_settings);
    json_array_foreach(json_object_get(root, "epochs"), at, one) drop(one, of_one);
    json_array_foreach(json_object_get(root, "workers"), at, one) drop(one, of_one);
    return root;
}

static void expect_same_report(struct dp_place *place, const char *a, const char *b)
{
    json_t *x = report_of(place, a), *y = report_of(place, b);
    if (!json_equal(x, y)) {
        char *one = json_dumps(x, JSON_INDENT(1)), *other = json_dumps(y, JSON_INDENT(1));
        print_message("%s\n%s\n", one, other);
        free(one);
        free(other);
        fail_msg("%s and %s differ", a, b);
    }
    assert_true(json_is_true(json_object_get(x, "finished")));
    json_decref(x);
    json_decref(y);
}

/* ---- */

static void undisturbed(struct continued *c)
{
    const char *report = dp_place_path(c->place, "calm.json");
    as(c, "calm", 2, 1);
    start(c);
    end(c);
    c->end = digest(c);
    c->best = (uint32_t)dp_place_number(c->place, report, "kept_epoch");
    c->stopped = (uint32_t)dp_place_number(c->place, report, "stop.epoch");
    print_message("undisturbed: best epoch %u, stops after %u\n", c->best, c->stopped);
    assert_true(c->best + PATIENCE == c->stopped && c->stopped < EPOCHS && c->best > 2);
}

/* Checkpoint n + 1 is of moment[n]: the epoch that had ended when it was ordered. */
static void checkpointed(struct continued *c, const uint32_t *moment, uint32_t moments)
{
    as(c, "c", 2, 1);
    start(c);
    for (uint32_t i = 0; i < moments; i++) {
        dp_place_awaits(c->worker[0], dp_place_text(c->place, TRAINING_SAY, moment[i]));
        struct dp_process *made = dp_place_try(c->place, 0, "downpour", "checkpoint", "--cluster", c->conf,
                                               "--to", dp_place_path(c->place, "checkpoints"));
        dp_place_says(made, dp_place_text(c->place, "checkpoint %u of run 1", i + 1));
        assert_int_equal(dp_process_wait(c->worker[0], 0), DP_PROCESS_RUNS); /* or nothing was under way */
    }
    kill_all(c);
}

static void continues(struct continued *c, uint32_t checkpoint, uint32_t servers, uint32_t shards)
{
    as(c, dp_place_text(c->place, "from%u", checkpoint), servers, shards);
    (void)dp_place_try(c->place, 0, "downpour", "restore", "--cluster", c->conf, "--from",
                       dp_place_path(c->place, "checkpoints/checkpoint-%06u", checkpoint));
    start(c);
    end(c);
    dp_place_says(c->worker[0], "continues at epoch");
    print_message("checkpoint %u, onto %u x %u\n", checkpoint, servers, shards);
    assert_string_equal(digest(c), c->end);
    expect_same_report(c->place, dp_place_path(c->place, "calm.json"),
                       dp_place_path(c->place, "%s.json", c->cluster.file));
}

static void ends_as_the_undisturbed(void **state, uint32_t workers, const char *how)
{
    static const uint32_t layout[MOMENTS_MAX][2] = {{1, 3}, {2, 2}, {1, 1}, {2, 3}, {1, 2}};
    struct continued c = {.place = *state, .workers = workers, .how = how};
    undisturbed(&c);
    /* The last two go back to an epoch from before them. */
    const uint32_t all[MOMENTS_MAX] = {1, c.best / 2 + 1, c.best, c.best + 1, c.best + 2};
    bool is_long = getenv("DP_LONG") != NULL;
    uint32_t moments = is_long ? MOMENTS_MAX : 1;
    const uint32_t *moment = is_long ? all : &all[4 - moments];
    checkpointed(&c, moment, moments);
    for (uint32_t i = 0; i < moments; i++)
        continues(&c, i + 1, layout[i][0], layout[i][1]);
}

static void one_worker(void **state)
{
    ends_as_the_undisturbed(state, 1, "overlap = false; pushes_max = 1;");
}

static void four_workers_in_step(void **state)
{
    ends_as_the_undisturbed(state, 4, "consistency = \"sync\";");
}

/* A run's own directory goes back to its checkpoint; and a directory that is new goes on from it. */
static void runs_in_directories(void **state)
{
    struct dp_place *place = *state;
    const char *dir = dp_place_path(place, "run"), *to = dp_place_path(place, "checkpoints"),
               *other = dp_place_path(place, "other");
    struct dp_process *run = dp_place_start(
        place, "downpour", "run", "--dir", dir, "--model", "mlp:64-32-10", "--train", DP_DIGITS_TRAIN,
        "--test", DP_DIGITS_TEST, "--scale", "0.0625", "--servers", "2", "--workers", "1", "--no-overlap",
        "--batch", "4", "--epochs", "60", "--patience", "4", "--rate", "0.002", "--inject", "pace=2ms", NULL);
    dp_place_awaits(run, "\n   11 "); /* behind the best one; slow enough for a checkpoint before the end */
    (void)dp_place_try(place, 0, "downpour", "checkpoint", "--dir", dir, "--to", to);
    dp_place_says(dp_place_try(place, 2, "downpour", "restore", "--from", to, "--dir", dir, "--overwrite"),
                  "restore: ");
    dp_place_ended(run, 0);
    const char *end = dp_place_run_digest(place, dir);
    const char *report = dp_place_path(place, "run/runs/1/report.json"),
               *calm = dp_place_path(place, "calm.json");
    assert_int_equal(rename(report, calm), 0);
    (void)dp_place_try(place, 0, "downpour", "restore", "--from", to, "--dir", dir, "--overwrite");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dir, "--resume");
    assert_string_equal(dp_place_run_digest(place, dir), end);
    expect_same_report(place, calm, report);
    /* The best epoch is from before the checkpoint. */
    struct dp_process *begun = dp_place_start(place, "downpour", "run", "--dir", other, "--from", to,
                                              "--servers", "1", "--shards", "3", NULL);
    dp_place_awaits(begun, "goes on from");
    dp_process_signal(begun, SIGINT);
    dp_place_ended(begun, 128 + SIGINT);
    (void)dp_place_try(place, 0, "/bin/cp", "-a", dp_place_path(place, "run/runs/1/best"),
                       dp_place_path(place, "other/runs/1"));
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", other, "--resume");
    assert_string_equal(dp_place_run_digest(place, other), end);
    expect_same_report(place, calm, dp_place_path(place, "other/report.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_worker, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(four_workers_in_step, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(runs_in_directories, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

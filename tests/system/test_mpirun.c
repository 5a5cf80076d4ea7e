/* An all-reduce training over MPI, as real processes: its weights are those of sync on servers; delays, a killed, a hanging and a stopped
 * rank; what it refuses. Skipped by name without Open MPI, and under sanitizers, where Open MPI's own leaks end the ranks. */
#include "tests/lib/gpu.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include "common/base/bytes.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 4u
#define NORM  1e-5

/* training: further lines of that section. epochs: of 23 minibatches of 64, in 6 rounds. */
static const char *conf(struct dp_place *place, const char *name, uint32_t epochs, uint32_t timeout_ms,
                        const char *training)
{
    struct dp_place_cluster cluster = {.file = name,
                                       .model = "mlp:64-32-10",
                                       .workers = RANKS,
                                       .epochs = epochs,
                                       .batch = 64,
                                       .rate = "0.1",
                                       .timeout_ms = timeout_ms,
                                       .training = training};
    return dp_place_conf(place, &cluster);
}

static struct dp_process *start(struct dp_place *place, const char *ranks, const char *cluster,
                                const char *flag, const char *value)
{
    const char *root = geteuid() == 0 ? "--allow-run-as-root" : "--display-map";
    return dp_place_start(place, "mpirun", "-n", ranks, "--oversubscribe", "--bind-to", "none", root,
                          DP_BIN "/downpour-allreduce", "--cluster", cluster, "--weights",
                          dp_place_path(place, "all.safetensors"), flag, value, NULL);
}

/* The values of a file of tensors, which follow its header. */
static const float *values_of(struct dp_place *place, const char *path, size_t *n)
{
    size_t size;
    const char *bytes = dp_place_read(place, path, &size);
    assert_true(size > 8);
    size_t at = 8 + (size_t)dp_load_u64le(bytes);
    assert_true(at < size && at % sizeof(float) == 0);
    *n = (size - at) / sizeof(float);
    return (const float *)(const void *)(bytes + at);
}

/* |a - b| / |a| */
static double distance(struct dp_place *place, const char *a, const char *b)
{
    size_t n, m;
    double apart = 0, norm = 0;
    const float *x = values_of(place, a, &n), *y = values_of(place, b, &m);
    assert_int_equal(n, m);
    assert_int_equal(n, 64 * 32 + 32 + 32 * 10 + 10);
    for (size_t i = 0; i < n; i++) {
        apart += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        norm += (double)x[i] * (double)x[i];
    }
    return sqrt(apart / norm);
}

static void sync_on_servers(struct dp_place *place, const char *dir, const char *optimizer, const char *rate)
{
    dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "%s", dir), "--model",
                 "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs", "17", "--batch",
                 "64", "--workers", "4", "--servers", "2", "--consistency", "sync", "--optimizer", optimizer,
                 "--rate", rate, "--journal-bytes", "16MiB");
    dp_place_try(place, 0, "downpour", "export", "--from", dp_place_path(place, "%s", dir), "--to",
                 dp_place_path(place, "%s.safetensors", dir));
}

/* A checkpoint of the weights, and the weights out of it again. */
static void imported_and_exported(struct dp_place *place, const char *cluster)
{
    const char *all = dp_place_path(place, "all.safetensors"), *checkpoints = dp_place_path(place, "C"),
               *again = dp_place_path(place, "again.safetensors");
    struct dp_process *import =
        dp_place_try(place, 0, "downpour", "import", "--from", all, "--to", checkpoints, "--like", cluster);
    dp_place_says(import, "4 tables");
    dp_place_says(import, "the optimizer starts from zero");
    dp_place_try(place, 0, "downpour", "export", "--from", checkpoints, "--to", again);
    assert_true(distance(place, all, again) == 0);
    dp_place_says(dp_place_try(place, 0, "downpour", "run", "--from", checkpoints, "--dir",
                               dp_place_path(place, "on"), "--continue", "--epochs", "1", "--workers", "1"),
                  "Restoring checkpoint 1 (no run in it");
}

/* 17 epochs of 6 rounds: 102 steps. Planted: no weights by examples (the last round has three minibatches, one of them short). */
static void weights_are_those_of_sync(void **state)
{
    struct dp_place *place = *state;
    const char *all = dp_place_path(place, "all.safetensors");
    static const char *const optimizer[] = {"sgd", "adam"}, *const rate[] = {"0.1", "0.003"};
    for (int i = 0; i < 2; i++) {
        const char *servers = dp_place_path(place, "%s.safetensors", optimizer[i]);
        sync_on_servers(place, optimizer[i], optimizer[i], rate[i]);
        const char *cluster = dp_place_path(place, "%s/cluster.conf", optimizer[i]);
        dp_place_ended(start(place, "4", cluster, "--sum", "ordered"), 0);
        assert_true(distance(place, servers, all) == 0);
    }
    imported_and_exported(place, dp_place_path(place, "adam/cluster.conf"));
    dp_place_ended(start(place, "4", dp_place_path(place, "sgd/cluster.conf"), "--sum", "mpi"), 0);
    double apart = distance(place, dp_place_path(place, "sgd.safetensors"), all);
    print_message("MPI_Allreduce: %.2g of the norm from sync\n", apart);
    assert_true(apart <= NORM);
}

/* A number of the last sample. */
static double of_last(struct dp_place *place, const char *json, const char *key)
{
    json_t *root = json_load_file(json, 0, NULL);
    size_t n = json_array_size(json_object_get(root, "samples"));
    json_decref(root);
    assert_true(n > 0);
    return dp_place_number(place, json, dp_place_text(place, "samples.%zu.%s", n - 1, key));
}

/* The last sample is of the weights that sync reaches, by the same file and the same scoring. */
static void samples_are_scored_like_those_of_servers(void **state)
{
    struct dp_place *place = *state;
    const char *root = geteuid() == 0 ? "--allow-run-as-root" : "--display-map",
               *metrics[] = {"loss", "accuracy"};
    const char *cluster = dp_place_path(place, "run/current/score.conf"),
               *keys = dp_place_path(place, "keys"), *samples = dp_place_path(place, "samples"),
               *json = dp_place_path(place, "samples.json");
    dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--model", "mlp:64-32-10",
                 "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs", "3", "--batch", "64",
                 "--workers", "4", "--consistency", "sync", "--rate", "0.01", "--sample-every", "3600s",
                 "--score", DP_DIGITS_TEST);
    dp_place_try(place, 0, "downpour-worker", "--cluster", cluster, "--score-keys", keys);
    dp_place_ended(dp_place_start(place, "mpirun", "-n", "4", "--oversubscribe", "--bind-to", "none", root,
                                  DP_BIN "/downpour-allreduce", "--cluster", cluster, "--report",
                                  dp_place_path(place, "r.json"), "--observe", samples, "--keys", keys,
                                  "--sample-every", "3600000", NULL),
                   0);
    dp_place_try(place, 0, "downpour-worker", "--cluster", cluster, "--score-samples", samples, "--keys",
                 keys, "--out", json);
    for (int m = 0; m < 2; m++)
        assert_true(of_last(place, json, metrics[m]) ==
                    of_last(place, dp_place_path(place, "run/samples.json"), metrics[m]));
    assert_true(dp_place_number(place, json, "samples.0.pushes") == 0);
    assert_true(of_last(place, json, "examples") == 3 * 1437);
    /* A step has 256 examples, and one is due each 89. */
    assert_true(dp_place_number(place, json, "samples.1.examples") == 256);
}

static double number(struct dp_place *place, const char *where)
{
    return dp_place_number(place, dp_place_path(place, "r.json"), where);
}

/* Rank 2's 6 minibatches take 40 ms each, and the others wait. */
static void the_report_says_where_the_time_went(void **state)
{
    struct dp_place *place = *state;
    const char *cluster = conf(place, "c", 1, 30000, "pace = \"10ms\"; straggler = \"2:4x\";");
    dp_place_ended(start(place, "4", cluster, "--report", dp_place_path(place, "r.json")), 0);
    double of_slow = number(place, "workers.2.spent_s.injected") + number(place, "workers.2.spent_s.compute");
    double of_other =
        number(place, "workers.0.spent_s.injected") + number(place, "workers.0.spent_s.compute");
    assert_true(of_slow > 6 * 0.0399);
    assert_true(of_other > 6 * 0.0099 && of_other < of_slow);
    assert_true(number(place, "throughput.seconds") > 6 * 0.0399);
    assert_true(number(place, "workers.0.spent_s.waiting_rule") > 0);
    assert_true(number(place, "spent_s.waiting") == number(place, "spent_s.waiting_rule"));
    assert_true(number(place, "workers.0.pushes") == 6 && number(place, "workers.3.pushes") == 5);
    assert_true(number(place, "epochs.0.examples") == 1437);
    char *report = dp_place_read(place, dp_place_path(place, "r.json"), NULL);
    assert_non_null(strstr(report, "\"reduced_by\": \"MPI_Alltoall and MPI_Allgather, in order of rank\""));
    assert_non_null(strstr(report, "\"finished\": true"));
}

static void says_once(struct dp_process *process, const char *text)
{
    dp_place_says(process, text);
    const char *err = dp_process_err(process), *first = strstr(err, text);
    assert_null(strstr(first + 1, text));
}

static void what_is_refused_is_named_once(void **state)
{
    struct dp_place *place = *state;
    const char *cluster = conf(place, "c", 1, 30000, "");
    struct dp_process *run = start(place, "2", cluster, "--sum", "mpi");
    dp_place_ended(run, 2);
    says_once(run, "2 ranks were started, but training.workers (--workers) is 4: start as many, mpirun -n 4");
    run = start(place, "4", cluster, "--sum", "both");
    dp_place_ended(run, 2);
    says_once(run, "--sum is \"both\": ordered or mpi");
    struct dp_place_cluster sparse = {.file = "sparse", .model = "logistic", .workers = 2};
    run = start(place, "2", dp_place_conf(place, &sparse), "--sum", "mpi");
    dp_place_ended(run, 2);
    says_once(run, "model 'logistic' has the sparse table 'logistic.w'");
    dp_place_ended(dp_place_start(place, "downpour-allreduce", "--help", NULL), 0);
}

/* The process of a rank: mpirun starts them in order, as its children. */
static pid_t rank_of(struct dp_process *run, uint32_t rank)
{
    char path[64];
    long pid = 0;
    long mpirun = (long)dp_process_pid(run);
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", mpirun, mpirun);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    for (uint32_t r = 0; r <= rank; r++)
        assert_int_equal(fscanf(file, "%ld", &pid), 1);
    (void)fclose(file);
    return (pid_t)pid;
}

/* What mpirun ends, or loses, ends by itself. */
static void all_are_gone(struct dp_process *run)
{
    uint64_t deadline = dp_process_now_ms() + DP_SOON_MS;
    while (dp_process_left(run) > 0 && dp_process_now_ms() < deadline)
        dp_process_pause();
    assert_int_equal(dp_process_left(run), 0);
}

static struct dp_process *start_long(struct dp_place *place)
{
    const char *cluster = conf(place, "c", 10000, 2000, "pace = \"20ms\";");
    struct dp_process *run = start(place, "4", cluster, "--report", dp_place_path(place, "r.json"));
    dp_place_awaits(run, "rank 0: epoch 1 of");
    return run;
}

/* A rank that hangs is named where the others wait for it to come. Between those waits, in the sum itself, nobody knows which it is. */
static void hanging_is_named(struct dp_place *place, uint32_t rank, const char *named)
{
    bool is_named = false;
    for (int tries = 0; !is_named && tries < 5; tries++) {
        struct dp_process *run = start_long(place);
        (void)kill(rank_of(run, rank), SIGSTOP);
        assert_int_equal(dp_process_wait(run, DP_SOON_MS), 2);
        is_named = strstr(dp_process_err(run), named) != NULL;
        if (!is_named &&
            !strstr(dp_process_err(run), "did not come within 2.0 s")) /* others were late, too */
            dp_place_says(run, "another rank hangs");
        all_are_gone(run);
    }
    if (!is_named)
        fail_msg("'%s' was never said", named);
}

static void a_rank_that_fails_ends_the_job(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run = start_long(place);
    (void)kill(rank_of(run, 2), SIGKILL);
    int code = dp_process_wait(run, DP_SOON_MS);
    assert_true(code != 0 && code != DP_PROCESS_RUNS);
    all_are_gone(run);

    hanging_is_named(place, 2, "rank 2 did not come within 2.0 s");
    hanging_is_named(place, 0, "rank 0, which waits for the other ranks, gave no sign within 4.0 s");

    run = start_long(place);
    dp_process_signal(run, SIGKILL);
    assert_int_equal(dp_process_wait(run, DP_SOON_MS), -SIGKILL);
    all_are_gone(run);
}

static void a_signal_stops_all_after_the_same_step(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run = start_long(place);
    (void)kill(rank_of(run, 1), SIGTERM);
    int code = dp_process_wait(run, DP_SOON_MS);
    assert_true(code != 0 && code != DP_PROCESS_RUNS);
    says_once(run, "stopped by a signal after ");
    all_are_gone(run);
    char *report = dp_place_read(place, dp_place_path(place, "r.json"), NULL);
    assert_non_null(strstr(report, "\"ended\": \"stopped\""));
}

static bool has_mpirun(void)
{
    char path[4096];
    const char *dirs = getenv("PATH");
    for (size_t n; dirs && *dirs; dirs += n + (dirs[n] == ':')) {
        n = strcspn(dirs, ":");
        (void)snprintf(path, sizeof path, "%.*s/mpirun", (int)n, dirs);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

int main(void)
{
    const char *lacks =
        DP_PATIENCE > 1 ? "not under sanitizers: Open MPI has leaks of its own"
        : access(DP_BIN "/downpour-allreduce", X_OK) != 0
            ? "downpour-allreduce is not built (no Open MPI: deploy/install --tests installs it)"
        : !has_mpirun() ? "no mpirun in PATH (deploy/install --tests installs it)"
                        : NULL;
    if (lacks) {
        (void)printf("skipped: %s\n", lacks);
        return DP_TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weights_are_those_of_sync, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(samples_are_scored_like_those_of_servers, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(the_report_says_where_the_time_went, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_is_named_once, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_rank_that_fails_ends_the_job, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_signal_stops_all_after_the_same_step, dp_place_setup,
                                        dp_place_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal    the worker as a process on the CUDA plugin: images and clicks to the figures of the CPU, from step to step and in evaluation;
 *         a fault in a step ends it by name, and whoever is started again goes on; 'downpour-bench train' tells where a device's time went.
 * Method  real servers and workers. On the GPU, skipped by name where there is none; with EMULATED (the folder of the emulated plugin)
 *         on the emulated device, everywhere: there faults are brought about, too. One worker: both devices make the same pushes in the
 *         same order, so that only roundings are between them. DOWNPOUR_DATA: MNIST's first 6,000 images besides. */
#include "tests/lib/gpu.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "worker/compute/device.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef EMULATED
/* The plugin is looked for where the program lies: links of both in a folder of this test's own. */
static const char *const files[][2] = {{DP_BIN "/downpour", "downpour"},
                                       {DP_BIN "/downpour-bench", "downpour-bench"},
                                       {DP_BIN "/downpour-server", "downpour-server"},
                                       {DP_BIN "/downpour-worker", "downpour-worker"},
                                       {EMULATED "/libdownpour-cuda.so", "libdownpour-cuda.so"}};
#define FILES (sizeof files / sizeof files[0])

static const char *programs_open(struct dp_place *place)
{
    const char *folder = dp_place_text(place, EMULATED "/worker-%ld", (long)getpid());
    assert_true(mkdir(folder, 0777) == 0 || errno == EEXIST);
    for (size_t i = 0; i < FILES; i++) {
        const char *to = dp_place_text(place, "%s/%s", folder, files[i][1]);
        (void)unlink(to);
        if (link(files[i][0], to) != 0)
            fail_msg("%s as %s: %s", files[i][0], to, strerror(errno));
    }
    return folder;
}

static void programs_close(struct dp_place *place, const char *folder)
{
    for (size_t i = 0; i < FILES; i++)
        (void)unlink(dp_place_text(place, "%s/%s", folder, files[i][1]));
    (void)rmdir(folder);
}
#else
static const char *programs_open(struct dp_place *place)
{
    return DP_BIN;
}

static void programs_close(struct dp_place *place, const char *folder) {}
#endif

/* Trained anew by one server and one worker; its report. */
static const char *train(struct dp_place *place, const char *folder, struct dp_place_cluster cluster,
                         const char *device)
{
    cluster.file = dp_place_text(place, "%s-%s", cluster.file, device);
    cluster.shards = 2;
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0);
    (void)dp_place_try(place, 0, dp_place_text(place, "%s/downpour-worker", folder), "--cluster", conf,
                       "--worker", "0", "--device", device);
    dp_place_stops_cleanly(server);
    return dp_place_path(place, "%s.json", cluster.file);
}

static bool holds(struct dp_place *place, const char *path, const char *text)
{
    return strstr(dp_place_read(place, path, NULL), text) != NULL;
}

/* A figure of both reports, relative to the CPU's. */
static void near(struct dp_place *place, const char *cpu, const char *cuda, const char *figure,
                 double tolerance)
{
    double want = dp_place_number(place, cpu, figure), have = dp_place_number(place, cuda, figure);
    double off = fabs(have - want) / fabs(want);
    print_message("%-24s cpu %.6g, cuda %.6g: off by %.2g of %.0g\n", figure, want, have, off, tolerance);
    if (!(off <= tolerance))
        fail_msg("%s: %.9g on the CPU, %.9g on the device", figure, want, have);
}

#ifdef EMULATED
#define LOSS 1e-5 /* 3e-8 is seen */
#else
#define LOSS 1e-3 /* cuBLAS sums in other orders, and Adam makes small gradients large */
#endif
#define SHARE 1e-2 /* accuracy: 3 of the 360 images that are tested */

static void reaches_the_same(struct dp_place *place, struct dp_place_cluster cluster,
                             const char *const *figures)
{
    const char *folder = programs_open(place);
    const char *cpu = train(place, folder, cluster, "cpu"), *cuda = train(place, folder, cluster, "cuda");
    programs_close(place, folder);
    assert_true(holds(place, cuda, "\"cuda:0, f32\""));
    assert_true(holds(place, cpu, "\"cpu, 1 thread\""));
    near(place, cpu, cuda, "epochs.0.train_loss", LOSS);
    near(place, cpu, cuda, "epochs.0.test.loss", LOSS);
    near(place, cpu, cuda, "epochs.1.train_loss", LOSS);
    near(place, cpu, cuda, "final.test.loss", LOSS);
    for (; *figures; figures++)
        near(place, cpu, cuda, *figures, SHARE);
    static const char *const kinds[] = {"copy_in", "compute", "copy_out"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *spent = dp_place_text(place, "spent_s.device_%s", kinds[i]);
        assert_true(dp_place_number(place, cuda, spent) > 0);
        assert_true(dp_place_number(place, cpu, spent) == 0);
    }
}

static const char *const accuracy[] = {"final.test.accuracy", NULL};
static const char *const auc[] = {"final.test.auc", NULL};

static void digits(void **state)
{
    static const char *const trainings[] = {"", "overlap = false;", "accumulate = 4;"};
    for (size_t i = 0; i < sizeof trainings / sizeof trainings[0]; i++) {
        const struct dp_place_cluster cluster = {
            .file = dp_place_text(*state, "digits%zu", i), .model = "mlp:64-32-10", .training = trainings[i]};
        reaches_the_same(*state, cluster, accuracy);
    }
}

static const char *clicks_of(struct dp_place *place, const char *name, const char *first, const char *rows)
{
    const char *path = dp_place_path(place, "%s", name);
    (void)dp_place_try(place, 0, "downpour", "generate", "clicks", "--rows", rows, "--first", first,
                       "--features", "1000", "--out", path);
    return path;
}

static void clicks(void **state)
{
    struct dp_place *place = *state;
    const struct dp_place_cluster cluster = {.file = "clicks",
                                             .model = "deepfm:4-32-16",
                                             .batch = 64,
                                             .train = clicks_of(place, "train.tsv", "0", "3000"),
                                             .test = clicks_of(place, "test.tsv", "1000000", "1000"),
                                             .data = "format = \"criteo\";"};
    reaches_the_same(place, cluster, auc);
}

/* The first `count` of an idx file: its header, and so many bytes each. */
static void cut(struct dp_place *place, const char *data, const char *from, const char *to, unsigned count,
                size_t header, size_t each)
{
    size_t size;
    char *bytes = dp_place_read(place, dp_place_text(place, "%s/%s", data, from), &size);
    assert_true(size >= header + count * each);
    bytes[4] = bytes[5] = 0;
    bytes[6] = (char)(count >> 8);
    bytes[7] = (char)(count & 0xff);
    (void)dp_place_file(place, to, bytes, header + count * each);
}

static void mnist(void **state)
{
    struct dp_place *place = *state;
    const char *data = getenv("DOWNPOUR_DATA");
    if (!data) {
        static const char why[] = "DOWNPOUR_DATA does not name the folder of MNIST";
#ifdef EMULATED
        print_message("skipped: %s\n", why);
#else
        assert_int_equal(dp_gpu_test_lacks(why), DP_TEST_SKIPPED);
#endif
        skip();
    }
    cut(place, data, "mnist.train-images-idx3-ubyte.gz", "train-images-idx3-ubyte", 6000, 16, 784);
    cut(place, data, "mnist.train-labels-idx1-ubyte.gz", "train-labels-idx1-ubyte", 6000, 8, 1);
    cut(place, data, "mnist.t10k-images-idx3-ubyte.gz", "test-images-idx3-ubyte", 1000, 16, 784);
    cut(place, data, "mnist.t10k-labels-idx1-ubyte.gz", "test-labels-idx1-ubyte", 1000, 8, 1);
    const struct dp_place_cluster cluster = {.file = "mnist",
                                             .model = "mlp:784-64-10",
                                             .batch = 64,
                                             .rate = "0.001",
                                             .train = dp_place_path(place, "train-images-idx3-ubyte"),
                                             .test = dp_place_path(place, "test-images-idx3-ubyte"),
                                             .data = " "};
    reaches_the_same(place, cluster, accuracy);
}

static void bench_tells_what_was_hidden(void **state)
{
    struct dp_place *place = *state;
    const char *folder = programs_open(place);
    static const char *const devices[] = {"cuda", "cpu"};
    for (int i = 0; i < 2; i++) {
        struct dp_process *bench =
            dp_place_try(place, 0, dp_place_text(place, "%s/downpour-bench", folder), "train", "--quick",
                         "--models", "mf", "--device", devices[i], "--json");
        assert_non_null(strstr(dp_process_out(bench), i == 0 ? "\"cuda:0, f32\"" : "\"cpu, 1 thread\""));
        assert_true((strstr(dp_process_out(bench), "\"hidden\":") != NULL) == (i == 0));
    }
    programs_close(place, folder);
}

#ifdef EMULATED
static void fault_at(struct dp_place *place, unsigned launch)
{
    assert_int_equal(setenv("DP_EMULATOR_FAULT_AT", dp_place_text(place, "%u", launch), 1), 0);
}

static void sound(void)
{
    (void)unsetenv("DP_EMULATOR_FAULT_AT");
}

static void devices(const char *count)
{
    assert_int_equal(count ? setenv("DP_EMULATOR_DEVICES", count, 1) : unsetenv("DP_EMULATOR_DEVICES"), 0);
}

static void says_the_fault(struct dp_process *worker)
{
    dp_place_says(worker, "CUDA, a fault on the device, seen in ");
    dp_place_says(worker, "restart it");
}

/* In the first kernel, of the step that is taken when the program is opened, and later and later ones: each worker goes on where the one before it failed, and the last one ends the training. */
static void a_fault_ends_the_worker_and_the_next_goes_on(void **state)
{
    struct dp_place *place = *state;
    static const unsigned launches[] = {1, 30, 400, 1000, 0};
    struct dp_place_cluster cluster = {.file = "fault", .model = "mlp:64-32-10", .epochs = 3};
    const char *folder = programs_open(place), *conf = dp_place_conf(place, &cluster);
    const char *program = dp_place_text(place, "%s/downpour-worker", folder);
    struct dp_process *server = dp_place_server(place, conf, 0);
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
        sound();
        if (launches[i] > 0)
            fault_at(place, launches[i]);
        struct dp_process *worker = dp_place_try(place, launches[i] > 0 ? 2 : 0, program, "--cluster", conf,
                                                 "--worker", "0", "--resume", "--device", "cuda");
        if (launches[i] > 0) {
            says_the_fault(worker);
            dp_place_says(worker, launches[i] == 1 ? "the first step, of zeros, on the device: " : "epoch ");
        }
        if (i >= 3)
            dp_place_says(worker, "continues at epoch");
    }
    assert_true(dp_place_number(place, dp_place_path(place, "fault.json"), "final.test.accuracy") > 0.85);

    /* A forward alone. */
    const char *scores = dp_place_path(place, "scores");
    fault_at(place, 5);
    says_the_fault(dp_place_try(place, 2, program, "--cluster", conf, "--predict", DP_DIGITS_TEST, "--out",
                                scores, "--device", "cuda"));
    assert_int_not_equal(access(scores, F_OK), 0);
    sound();
    (void)dp_place_try(place, 0, program, "--cluster", conf, "--predict", DP_DIGITS_TEST, "--out", scores,
                       "--device", "cuda");

    /* With a GPU for each worker, it takes the first. */
    devices("2");
    dp_place_says(dp_place_try(place, 0, program, "--cluster", conf, "--predict", DP_DIGITS_TEST, "--out",
                               scores, "--device", "cuda:each"),
                  "computes on cuda:0, f32");
    devices(NULL);
    dp_place_stops_cleanly(server);
    programs_close(place, folder);
}

/* Three workers on two GPUs. What they trained can be predicted from. */
static void each_worker_has_its_gpu(void **state)
{
    struct dp_place *place = *state;
    const char *folder = programs_open(place), *dir = dp_place_path(place, "each");
    const char *program = dp_place_text(place, "%s/downpour", folder);
    devices("2");
    (void)dp_place_try(place, 0, program, "run", "--dir", dir, "--model", "mlp:64-32-10", "--train",
                       DP_DIGITS_TRAIN, "--epochs", "1", "--workers", "3", "--device", "cuda:each");
    for (int worker = 0; worker < 3; worker++)
        assert_true(holds(place, dp_place_text(place, "%s/log/worker-%d.log", dir, worker),
                          dp_place_text(place, "computes on cuda:%d, f32", worker % 2)));
    (void)dp_place_try(place, 0, program, "predict", "--from", dir, "--data", DP_DIGITS_TEST, "--out",
                       dp_place_path(place, "each-scores"));
    devices(NULL);
    programs_close(place, folder);
}

/* All of it by one command: the run ends with the worker's words. */
static void a_fault_ends_the_run(void **state)
{
    struct dp_place *place = *state;
    const char *folder = programs_open(place);
    fault_at(place, 200);
    struct dp_process *run = dp_place_try(place, 2, dp_place_text(place, "%s/downpour", folder), "run",
                                          "--dir", dp_place_path(place, "run"), "--model", "mlp:64-32-10",
                                          "--train", DP_DIGITS_TRAIN, "--epochs", "2", "--device", "auto");
    sound();
    says_the_fault(run);
    dp_place_says(run, "worker 0");
    programs_close(place, folder);
}
#endif

int main(void)
{
#define DP_CUDA_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
#ifndef EMULATED
    const struct dp_device_options options = {.device = "cuda", .precision = "f32", .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    if (dp_device_open(&options, &backend, NULL, &err) != DP_OK) {
        return dp_gpu_test_lacks(err.text);
    }
    dp_backend_close(&backend);
#endif
    const struct CMUnitTest tests[] = {
        DP_CUDA_TEST(digits),
        DP_CUDA_TEST(clicks),
        DP_CUDA_TEST(mnist),
        DP_CUDA_TEST(bench_tells_what_was_hidden),
#ifdef EMULATED
        DP_CUDA_TEST(a_fault_ends_the_worker_and_the_next_goes_on),
        DP_CUDA_TEST(a_fault_ends_the_run),
        DP_CUDA_TEST(each_worker_has_its_gpu),
#endif
    };
    return cmocka_run_group_tests_name("cuda worker", tests, NULL, NULL);
}

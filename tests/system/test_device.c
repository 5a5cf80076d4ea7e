/* A worker on a device that copies while it computes (late_plugin.c) makes the pushes that it makes on the CPU, in the same
 * order: one worker leaves the same rows, bit for bit, with overlap, too. What a machine lacks ends a worker by name. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A worker beside the plugin: its own link, as it is looked for where the program lies. */
static const char *late_worker(struct dp_place *place)
{
    const char *path = dp_place_text(place, DP_LATE "/downpour-worker-%ld", (long)getpid());
    (void)unlink(path);
    assert_int_equal(link(DP_BIN "/downpour-worker", path), 0);
    return path;
}

struct trained {
    const char *digest, *report;
};

static struct trained train(struct dp_place *place, const char *name, const char *program, const char *device,
                            const char *model, const char *training)
{
    struct dp_place_cluster cluster = {
        .file = name, .model = model, .shards = 2, .epochs = 3, .rate = "0.01", .training = training};
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0);
    struct dp_process *worker =
        dp_place_try(place, 0, program, "--cluster", conf, "--worker", "0", "--device", device);
    if (strcmp(device, "cpu") != 0)
        dp_place_says(worker, training[0] != '\0' ? "late device: no steps overlapped"
                                                  : "late device: some steps overlapped");
    dp_place_stops_cleanly(server);
    return (struct trained){
        .digest = dp_place_digest(place, dp_place_path(place, "%s-0", name), NULL),
        .report = dp_place_path(place, "%s.json", name),
    };
}

static void rows_are_those_of_the_cpu(void **state)
{
    struct dp_place *place = *state;
    static const char *const cases[][2] = {
        {"mlp:64-32-10", ""},
        {"fm:4,loss=squared", ""},
        {"mlp:64-32-10", "push_every = 3; fetch_every = 2;"},
        {"mlp:64-32-10",
         "consistency = \"ssp:0\";"}, /* rows of the next step come after the push of this one */
        {"fm:4,loss=squared", "consistency = \"sync\"; push_every = 7;"},
    };
    const char *late = late_worker(place);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *name = dp_place_text(place, "late%zu", i);
        struct trained cpu = train(place, dp_place_text(place, "cpu%zu", i), "downpour-worker", "cpu",
                                   cases[i][0], cases[i][1]);
        struct trained device = train(place, name, late, "cuda:0", cases[i][0], cases[i][1]);
        assert_string_equal(cpu.digest, device.digest);
        assert_true(dp_place_number(place, cpu.report, "epochs.2.train_loss") ==
                    dp_place_number(place, device.report, "epochs.2.train_loss"));
        assert_true(dp_place_number(place, device.report, "spent_s.device_copy_in") > 0);
        assert_true(dp_place_number(place, cpu.report, "spent_s.device_copy_in") == 0);
    }
    (void)unlink(late);
}

/* With a backup, beside two others: whatever it has started when it hears that it is behind, each of its minibatches is pushed or
 * passed over, once. Planted: what is under way is not landed before the steps behind it are passed over. */
static void a_device_that_is_behind_passes_over(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {
        .file = "behind", .test = "", .workers = 3, .epochs = 60, .training = "consistency = \"sync:1\";"};
    const char *conf = dp_place_conf(place, &cluster), *late = late_worker(place);
    const char *report = dp_place_path(place, "behind.json");
    struct dp_process *server = dp_place_server(place, conf, 0), *worker[3];
    worker[0] = dp_place_worker(place, conf, 0);
    worker[1] = dp_place_worker(place, conf, 1);
    dp_place_awaits(worker[0], "epoch 1 of");
    worker[2] = dp_place_start(place, late, "--cluster", conf, "--worker", "2", "--device", "cuda:0", NULL);
    dp_place_awaits(worker[2], "was committed without this worker");
    for (int i = 0; i < 3; i++) {
        dp_process_signal(worker[2], SIGSTOP);
        dp_process_pause();
        dp_process_signal(worker[2], SIGCONT);
        dp_process_pause();
    }
    for (uint32_t w = 0; w < 3; w++)
        dp_place_ended(worker[w], 0);
    double pushes = 0, examples = 0;
    for (unsigned w = 0; w < 3; w++) {
        pushes += dp_place_number(place, report, dp_place_text(place, "workers.%u.pushes", w));
        examples += dp_place_number(place, report, dp_place_text(place, "workers.%u.examples", w));
    }
    assert_true(pushes == 60 * 90 && examples == 60 * 1437);
    assert_true(dp_place_number(place, report, "dropped.pushes") ==
                dp_place_counter(place, conf, "pushes_dropped"));
    assert_true(dp_place_number(place, report, "workers.2.dropped.not_computed") > 0);
    dp_place_stops_cleanly(server);
    (void)unlink(late);
}

/* The times of a step are all of its time. */
static void time_is_spent_once(void **state)
{
    struct dp_place *place = *state;
    struct trained cpu = train(place, "spent", "downpour-worker", "cpu", "mlp:64-32-10", "");
    static const char *const kinds[] = {"read", "pull", "compute", "push", "waiting", "other"};
    double sum = 0, seconds = dp_place_number(place, cpu.report, "workers.0.seconds");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        sum += dp_place_number(place, cpu.report, dp_place_text(place, "workers.0.spent_s.%s", kinds[i]));
    assert_true(sum > 0.98 * seconds && sum < 1.02 * seconds);
}

static void what_is_missing_is_said(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.file = "c"};
    const char *conf = dp_place_conf(place, &cluster);
    /* Before anything is waited for: there is no server. */
    dp_place_says(
        dp_place_try(place, 2, "downpour-worker", "--cluster", conf, "--worker", "0", "--device", "cuda:777"),
        "device cuda:777: ");
    dp_place_says(
        dp_place_try(place, 2, "downpour-worker", "--cluster", conf, "--worker", "0", "--precision", "bf16"),
        "the CPU computes in f32");
    dp_place_says(
        dp_place_try(place, 2, "downpour-worker", "--cluster", conf, "--worker", "0", "--device", "tpu"),
        "must be cpu, cuda, cuda:N");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", dp_place_path(place, "r"), "--model",
                               "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--precision", "tf32"),
                  "the CPU computes in f32");
}

int main(void)
{
#define DP_DEVICE_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_DEVICE_TEST(rows_are_those_of_the_cpu),
        DP_DEVICE_TEST(a_device_that_is_behind_passes_over),
        DP_DEVICE_TEST(time_is_spent_once),
        DP_DEVICE_TEST(what_is_missing_is_said),
    };
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}

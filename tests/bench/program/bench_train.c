/* train: for each model: its data, written once -> trained by a server and a worker -> a line
 * Why       Real processes, as a user starts them, since what is between them is part of the speed. Generated
 *           data, so that two machines or versions do the same work. */
#include "tests/bench/program/bench_train.h"

#include "common/base/parse.h"
#include "deploy/cli/options.h"
#include "tests/bench/program/bench_train_run.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SET_MAX       511u
#define QUICK_BATCHES 12u

static const struct model {
    const char *name, *text;
    enum dp_bench_train_data data;
    uint32_t batch, each; /* each: examples that a row of the data becomes */
    uint64_t examples;    /* of an epoch, about */
} models[] = {
    {"logistic", "logistic", DP_BENCH_TRAIN_SPARSE, 256, 1, 200000},
    {"fm", "fm:8", DP_BENCH_TRAIN_SPARSE, 256, 1, 200000},
    {"mlp", "mlp:784-256-128-10", DP_BENCH_TRAIN_IMAGES, 128, 1, 60000},
    {"mf", "mf:16", DP_BENCH_TRAIN_PAIRS, 1024, 5, 2500000},
    {"neumf", "neumf:16-64-32-16", DP_BENCH_TRAIN_PAIRS, 1024, 5, 500000},
    {"wide-deep", "wide-deep:16-256-128", DP_BENCH_TRAIN_CLICKS, 1024, 1, 65536},
    {"deepfm", "deepfm:16-256-128", DP_BENCH_TRAIN_CLICKS, 1024, 1, 65536},
    {"dlrm", "dlrm:64,bottom=512-256,top=512-256,tables=fields", DP_BENCH_TRAIN_CLICKS, 8192, 1, 65536},
    {"skipgram", "skipgram:64", DP_BENCH_TRAIN_TEXT, 1024, 50, 2000000},
    {"lstm", "lstm:16-32-64,classes=256", DP_BENCH_TRAIN_TEXT, 128, 4, 40000},
};
#define MODELS (sizeof models / sizeof models[0])

static const struct dp_option flags[] = {
    {"--models", "LIST", NULL,
     "models to train, a,b,...: logistic, fm, mlp, mf, neumf, wide-deep, deepfm, dlrm, skipgram, lstm; "
     "default all"},
    {"--device", "NAME", "training.device",
     "where the worker computes: cpu, cuda, cuda:1, ... or auto; default cpu"},
    {"--precision", "KIND", "training.precision",
     "precision of a GPU's matrix products: f32, tf32 or bf16; default f32"},
    {"--examples", "N", NULL,
     "approximate examples per epoch; default: enough for some seconds, depending on the model"},
    {"--batch", "N", NULL, "examples per minibatch; default: depends on the model"},
    {"--epochs", "N", NULL, "epochs, 1 .. 1000; default 3"},
    {"--shards", "N", NULL, "shards (threads) of the server; default 1"},
    {"--blas-threads", "N", "training.blas_threads", "threads for the worker's matrix products; default 1"},
    {"--durability", "KIND", "durability",
     "what an acknowledged push survives: machine, process or none; default machine"},
    {"--set", "LIST", NULL,
     "further settings of the cluster file: training.pushes_max=8,training.overlap=false,..."},
    {"--quick", NULL, NULL, "little data and 2 epochs: only to see that all models run, in some seconds"},
    {"--json", NULL, NULL, "one line of JSON per model instead of the table"},
};
#define FLAGS (sizeof flags / sizeof flags[0])

static const struct dp_command command = {
    .program = "downpour-bench",
    .name = "train",
    .usage = "[FLAGS]",
    .summary =
        "Trains each model on generated data with one server process (one shard; --shards) and one worker "
        "process on this machine\n"
        "(Adam, the defaults of 'downpour run'). Shows examples/s of the median and of the best epoch, where "
        "the time of a step\n"
        "goes, how much of the device's computing overlaps with copies and pulls, and the processor time of "
        "both processes per\n"
        "example, start and reading included. Data and stores are in a temporary directory (TMPDIR), which "
        "is "
        "removed at the end.",
    .options = flags,
    .count = FLAGS,
};

struct bench_train {
    const char *values[FLAGS];
    bool wanted[MODELS], json, quick;
    uint64_t examples, batch, epochs, shards;
    char set[SET_MAX + 1]; /* taken apart by dp_bench_train_options */
    struct dp_bench_train_options options;
    struct dp_local *local;
    struct dp_folder folder;
};

static const char *flag(const struct bench_train *b, const char *name)
{
    return dp_options_value(&command, b->values, name);
}

/* ---- flags */

static enum dp_status parse_models(struct bench_train *b, struct dp_error *err)
{
    const char *text = flag(b, "--models");
    for (size_t i = 0; !text && i < MODELS; i++)
        b->wanted[i] = true;
    while (text) {
        size_t len = strcspn(text, ","), i = 0;
        while (i < MODELS && (strlen(models[i].name) != len || strncmp(models[i].name, text, len) != 0))
            i++;
        if (i == MODELS)
            return dp_fail(err, DP_ARGUMENT,
                           "flag '--models' has '%.*s': see --help for those that there are",
                           (int)(len < 64 ? len : 64), text);
        b->wanted[i] = true;
        text = text[len] ? text + len + 1 : NULL;
    }
    return DP_OK;
}

static enum dp_status add_setting(struct dp_bench_train_options *options, const char *key, const char *value,
                                  struct dp_error *err)
{
    if (options->settings == DP_BENCH_TRAIN_SETTINGS_MAX)
        return dp_fail(err, DP_ARGUMENT, "over %u settings", DP_BENCH_TRAIN_SETTINGS_MAX);
    options->setting[options->settings].key = key;
    options->setting[options->settings++].value = value;
    return DP_OK;
}

static enum dp_status parse_settings(struct bench_train *b, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < FLAGS; i++)
        if (flags[i].key && b->values[i])
            st = add_setting(&b->options, flags[i].key, b->values[i], err);
    if (st != DP_OK || !flag(b, "--set"))
        return st;
    if (snprintf(b->set, sizeof b->set, "%s", flag(b, "--set")) > (int)SET_MAX)
        return dp_fail(err, DP_ARGUMENT, "flag '--set' is longer than %u bytes", SET_MAX);
    char *rest = NULL;
    for (char *at = strtok_r(b->set, ",", &rest); st == DP_OK && at; at = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(at, '=');
        if (!equals)
            return dp_fail(err, DP_ARGUMENT, "flag '--set' has '%s': expected KEY=VALUE", at);
        *equals = '\0';
        st = add_setting(&b->options, at, equals + 1, err);
    }
    return st;
}

static enum dp_status settle(struct bench_train *b, struct dp_error *err)
{
    const struct {
        const char *name;
        uint64_t min, max, *to;
    } numbers[] = {{"--examples", 1, 1000000000, &b->examples},
                   {"--batch", 1, 1 << 20, &b->batch},
                   {"--epochs", 1, 1000, &b->epochs},
                   {"--shards", 1, DP_SHARDS_MAX, &b->shards}};
    b->json = flag(b, "--json") != NULL;
    b->quick = flag(b, "--quick") != NULL;
    b->epochs = b->quick ? 2 : 3;
    b->shards = 1;
    enum dp_status st = parse_models(b, err);
    for (size_t i = 0; st == DP_OK && i < sizeof numbers / sizeof numbers[0]; i++)
        if (flag(b, numbers[i].name))
            st = dp_parse_u64(flag(b, numbers[i].name), numbers[i].min, numbers[i].max, numbers[i].name,
                              numbers[i].to, err);
    return st == DP_OK ? parse_settings(b, err) : st;
}

/* ---- the directory */

static enum dp_status make_folder(struct bench_train *b, struct dp_error *err)
{
    const char *base = getenv("TMPDIR");
    char path[DP_PATH_MAX + 1];
    if (snprintf(path, sizeof path, "%s/downpour-bench-XXXXXX", base && base[0] ? base : "/tmp") >
        (int)DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "TMPDIR is too long");
    if (!mkdtemp(path))
        return dp_fail(err, DP_IO, "cannot make '%s': %s; set TMPDIR to a directory that is writable", path,
                       strerror(errno));
    return dp_folder_open(path, &b->folder, err);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    return remove(path);
}

/* ---- a model */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t batch_of(const struct bench_train *b, const struct model *model)
{
    if (b->batch)
        return (uint32_t)b->batch;
    return b->quick && model->batch > 1024 ? 1024 : model->batch;
}

static enum dp_status train(struct bench_train *b, const struct model *model,
                            struct dp_bench_train_figures *figures, struct dp_error *err)
{
    struct dp_bench_train_options options = b->options;
    char data[DP_PATH_MAX + 1], labels[DP_PATH_MAX + 1];
    options.model = model->text;
    options.format = dp_bench_train_data_format(model->data);
    options.train = data;
    options.labels = model->data == DP_BENCH_TRAIN_IMAGES ? labels : NULL;
    options.batch = batch_of(b, model);
    options.epochs = (uint32_t)b->epochs;
    options.shards = (uint32_t)b->shards;
    uint64_t quick = (uint64_t)options.batch * QUICK_BATCHES;
    uint64_t examples = b->examples ? b->examples
                        : b->quick  ? least(model->examples, quick)
                                    : model->examples;
    uint64_t rows = examples / model->each < 32 ? 32 : examples / model->each;
    enum dp_status st = dp_folder_path(&b->folder, data, err, "%s-%" PRIu64, options.format, rows);
    if (st == DP_OK)
        st = dp_folder_path(&b->folder, labels, err, "labels-%" PRIu64, rows);
    if (st == DP_OK && access(data, R_OK) != 0)
        st = dp_bench_train_data_write(model->data, rows, data, labels, err);
    return st == DP_OK ? dp_bench_train_run(b->local, &b->folder, &options, figures, err) : st;
}

static double of(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void show_heading(const struct bench_train *b)
{
    if (b->json)
        return;
    printf("%-10s %6s %10s %10s %8s   %-58s  %6s  %s\n", "", "", "examples/s", "", "",
           "a step's time (of a device's copies and computing: its own)", "", "us an example");
    printf("%-10s %6s %10s %10s %8s  %4s %4s %7s %7s %8s %5s %7s %6s  %6s  %6s %6s\n", "model", "batch",
           "median", "best", "ms/step", "read", "pull", "copy in", "compute", "copy out", "push", "waiting",
           "other", "hidden", "worker", "server");
}

static void show(const struct bench_train *b, const struct model *model,
                 const struct dp_bench_train_figures *f)
{
    uint32_t batch = batch_of(b, model);
    double examples = (double)f->examples, all = examples * f->epochs;
    double steps = (double)((f->examples + batch - 1) / batch) * f->epochs;
    double cpu_us[2] = {of(f->worker_cpu_s, all) * 1e6, of(f->server_cpu_s, all) * 1e6};
    if (!b->json) {
        static const int width[DP_BENCH_TRAIN_PARTS] = {3, 3, 6, 6, 7, 4, 6, 5};
        printf("%-10s %6" PRIu32 " %10.0f %10.0f %8.2f ", model->name, batch, of(examples, f->median_s),
               of(examples, f->best_s), of(f->whole_s, steps) * 1e3);
        for (int i = 0; i < DP_BENCH_TRAIN_PARTS; i++)
            printf(" %*.0f%%", width[i], 100 * of(f->part_s[i], f->whole_s));
        if (isfinite(f->hidden))
            printf("  %6.2f", f->hidden);
        else
            printf("  %6s", "-");
        printf("  %6.2f %6.2f\n", cpu_us[0], cpu_us[1]);
        (void)fflush(stdout);
        return;
    }
    printf("{\"bench\":\"train\",\"model\":\"%s\",\"device\":\"%s\",\"shards\":%" PRIu32 ",\"batch\":%" PRIu32
           ",\"examples\":%" PRIu64 ",\"epochs\":%" PRIu32
           ",\"examples_per_s\":%.1f,\"best\":%.1f,\"step_ms\":%.4f",
           model->text, f->device, f->shards, batch, f->examples, f->epochs, of(examples, f->median_s),
           of(examples, f->best_s), of(f->whole_s, steps) * 1e3);
    for (int i = 0; i < DP_BENCH_TRAIN_PARTS; i++)
        printf(",\"%s_ms\":%.4f", dp_bench_train_part_names[i], of(f->part_s[i], steps) * 1e3);
    if (isfinite(f->hidden))
        printf(",\"hidden\":%.4f", f->hidden);
    printf(",\"worker_cpu_us\":%.3f,\"server_cpu_us\":%.3f}\n", cpu_us[0], cpu_us[1]);
    (void)fflush(stdout);
}

static enum dp_status train_all(struct bench_train *b, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    show_heading(b);
    for (size_t i = 0; st == DP_OK && i < MODELS; i++) {
        struct dp_bench_train_figures figures;
        if (!b->wanted[i])
            continue;
        st = train(b, &models[i], &figures, err);
        if (st == DP_OK)
            show(b, &models[i], &figures);
        else
            st = dp_wrap(err, st, "%s", models[i].name);
    }
    return st;
}

static int finish(struct bench_train *b, enum dp_status st, const struct dp_error *err)
{
    int code = st == DP_OK ? 0 : 2;
    if (b->local && dp_local_failed(b->local))
        dp_local_explain(b->local, stderr);
    else if (b->local && dp_local_signal(b->local))
        code = 128 + dp_local_signal(b->local);
    else if (st != DP_OK)
        fprintf(stderr, "downpour-bench: %s\n", err->text);
    dp_local_close(&b->local);
    dp_folder_close(&b->folder);
    if (b->folder.path[0])
        (void)nftw(b->folder.path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    if (fflush(stdout) != 0 && code == 0) {
        fprintf(stderr, "downpour-bench: cannot write to standard output\n");
        code = 2;
    }
    return code;
}

int dp_bench_train(int argc, char *const *argv)
{
    struct bench_train bench = {.folder.lock = -1};
    struct dp_error err = {0};
    bool help;
    enum dp_status st = dp_options_parse(&command, argc, argv, bench.values, &help, &err);
    if (st == DP_OK && help) {
        dp_options_help(&command, true, stdout);
        return fflush(stdout) == 0 ? 0 : 2;
    }
    if (st == DP_OK)
        st = settle(&bench, &err);
    if (st == DP_OK)
        st = make_folder(&bench, &err);
    if (st == DP_OK)
        st = dp_local_open(&bench.local, &err);
    if (st == DP_OK)
        st = train_all(&bench, &err);
    return finish(&bench, st, &err);
}

/* Hogwild bench: threads that share one local copy without locks (worker/loop/hogwild.h), beside the same threads with a lock
 * around every access to it, and beside one thread, in turns.
 *     hogwild_bench [FILE] [threads] [batch] [epochs] [repeats] [rate]
 * Logistic regression on a libsvm file; all minibatches of an epoch are one fetch, in memory, so that neither a reader nor a
 * server is measured: only what threads do side by side. Each run begins at 0 and ends with the loss over the training
 * set by one thread, so that equal speed at another loss is seen. Processor time (of all threads, an example) and the ratio of the best
 * runs say more than the medians where the machine has other work. `lock` is the share of one thread's time that it
 * spends on the shared copy: with a lock, no number of threads is faster than 1 / lock. */
#define _DEFAULT_SOURCE
#include "worker/loop/hogwild.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VARIANTS    4u
#define REPEATS_MAX 99u

struct bench {
    atomic_int stop;
    struct dp_cluster cluster;
    struct dp_job job;
    struct dp_dataset *data;
    struct dp_batch **batch;
    struct dp_weights *weights;
    uint32_t batches, threads, epochs, repeats;
    float rate;
};

static const struct {
    const char *name;
    bool several, locked;
} variants[VARIANTS] = {{"1 thread", false, false},
                        {"1 thread, locked", false, true},
                        {"threads, no locks", true, false},
                        {"threads, locked", true, true}};

struct result {
    double seconds[REPEATS_MAX], processor[REPEATS_MAX], loss[REPEATS_MAX];
};

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

static void check(enum dp_status st, const struct dp_error *err)
{
    if (st == DP_OK)
        return;
    (void)fprintf(stderr, "hogwild_bench: %s\n", err->text);
    exit(2);
}

static struct {
    bool is; /* every access to the local copy takes the mutex */
    pthread_mutex_t mutex;
    double inside; /* under the mutex */
} locked = {.mutex = PTHREAD_MUTEX_INITIALIZER};

const float *const *__real_dp_weights_view_of(struct dp_weights_view *view);
const float *const *__wrap_dp_weights_view_of(struct dp_weights_view *view);
void __real_dp_weights_view_step(struct dp_weights_view *view, float rate, float *const *gradients);
void __wrap_dp_weights_view_step(struct dp_weights_view *view, float rate, float *const *gradients);

static double enter(void)
{
    if (locked.is)
        DP_ASSERT(pthread_mutex_lock(&locked.mutex) == 0);
    return now();
}

static void leave(double since)
{
    if (!locked.is)
        return;
    locked.inside += now() - since;
    DP_ASSERT(pthread_mutex_unlock(&locked.mutex) == 0);
}

const float *const *__wrap_dp_weights_view_of(struct dp_weights_view *view)
{
    double since = enter();
    const float *const *weights = __real_dp_weights_view_of(view);
    leave(since);
    return weights;
}

void __wrap_dp_weights_view_step(struct dp_weights_view *view, float rate, float *const *gradients)
{
    double since = enter();
    __real_dp_weights_view_step(view, rate, gradients);
    leave(since);
}

static double pass(struct bench *b, struct dp_hogwild *pool, float rate)
{
    struct dp_error err = {0};
    double loss = 0;
    struct dp_hogwild_round out;
    for (uint32_t i = 0; i < b->batches; i++)
        dp_hogwild_rates(pool)[i] = rate;
    dp_hogwild_start(pool, b->weights, b->batch, b->batches);
    check(dp_hogwild_finish(pool, &out, &err), &err);
    for (uint32_t i = 0; i < b->batches; i++)
        loss += (double)out.losses[i] * b->batch[i]->examples;
    return loss / (double)dp_dataset_examples(b->data);
}

static struct dp_hogwild *pool_open(const struct bench *b, uint32_t threads)
{
    const struct dp_hogwild_options options = {.job = &b->job, .threads = threads, .batches_max = b->batches};
    struct dp_hogwild *pool;
    struct dp_error err = {0};
    check(dp_hogwild_open(&options, &pool, &err), &err);
    return pool;
}

/* Returns the share of the time that was spent under the lock. */
static double train(struct bench *b, uint32_t v, uint32_t repeat, struct result *out)
{
    struct dp_hogwild *pool = pool_open(b, variants[v].several ? b->threads : 1);
    locked.is = variants[v].locked;
    locked.inside = 0;
    for (int p = 0; p < dp_graph_parameters(b->job.model.graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(b->job.model.graph, p);
        size_t n;
        (void)dp_weights_keys(b->weights, 0, &n);
        n = parameter->sparse ? n * parameter->table.dim : dp_parameter_floats(parameter);
        memset(dp_weights_local(b->weights, p), 0, n * sizeof(float));
    }
    double begin = now(), processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t e = 0; e < b->epochs; e++)
        (void)pass(b, pool, b->rate);
    out->seconds[repeat] = now() - begin;
    out->processor[repeat] = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor;
    dp_hogwild_close(&pool);
    locked.is = false;
    pool = pool_open(b, 1);
    out->loss[repeat] = pass(b, pool, 0);
    dp_hogwild_close(&pool);
    return locked.inside / out->seconds[repeat];
}

static void load(struct bench *b, const char *path, uint32_t batch)
{
    struct dp_error err = {0};
    dp_cluster_defaults(&b->cluster);
    b->cluster.training.batch = batch;
    b->job.cluster = &b->cluster;
    b->job.stop = &b->stop;
    b->job.shards = 1;
    check(dp_model_open("logistic", &b->job.model, &err), &err);
    dp_graph_set_optimizer(b->job.model.graph, &b->cluster.training.optimizer, 1);
    check(dp_graph_check(b->job.model.graph, &err), &err);
    check(dp_backend_cpu(1, &b->job.backend, &err), &err);
    const struct dp_dataset_options options = dp_job_data(&b->job, path, NULL, true);
    check(dp_dataset_open(&options, &b->data, &err), &err);
    b->batches = (uint32_t)dp_dataset_batches(b->data);
    b->batch = calloc(b->batches, sizeof(struct dp_batch *));
    check(b->batch && b->batches > 1 ? DP_OK : dp_fail(&err, DP_ARGUMENT, "%s has one minibatch", path),
          &err);
    b->job.worst = *dp_dataset_shape(b->data);
    b->job.worst.list[0].entries = 0;
    for (uint32_t i = 0; i < b->batches; i++) {
        check(dp_batch_new(b->data, &b->batch[i], &err), &err);
        dp_dataset_fill(b->data, 0, i, b->batch[i]);
        uint32_t entries = b->batch[i]->list[0].offsets[b->batch[i]->examples];
        if (entries > b->job.worst.list[0].entries)
            b->job.worst.list[0].entries = entries;
    }
    check(dp_program_open(b->job.model.graph, &b->job.backend, &b->job.worst, &b->job.program, &err), &err);
    const struct dp_weights_options weights = {.graph = b->job.model.graph,
                                               .tables = b->job.table,
                                               .shards = 1,
                                               .worst = &b->job.worst,
                                               .batches_max = b->batches};
    check(dp_weights_new(&weights, &b->weights, &err), &err);
    check(dp_weights_take(b->weights, b->batch, b->batches, &err), &err);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, uint32_t n, double *least, double *most)
{
    double sorted[REPEATS_MAX];
    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    *least = sorted[0];
    *most = sorted[n - 1];
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static void say(const struct bench *b, const struct result results[VARIANTS], double share)
{
    double least, most, ratios[REPEATS_MAX];
    double examples = (double)dp_dataset_examples(b->data) * b->epochs;
    uint64_t entries = 0, distinct = 0;
    for (uint32_t i = 0; i < b->batches; i++) {
        entries += b->batch[i]->list[0].offsets[b->batch[i]->examples];
        distinct += b->batch[i]->group[0].distinct;
    }
    printf("%u minibatches of %u, %.0f features an example, %.0f weights a minibatch; %u epochs, rate %g, %u "
           "repeats\n",
           b->batches, b->cluster.training.batch, (double)entries * b->epochs / examples,
           (double)distinct / b->batches, b->epochs, (double)b->rate, b->repeats);
    printf("%-18s %12s %24s %10s %8s %24s\n", "", "examples/s", "(least to most)", "ns of cpu", "loss",
           "(least to most)");
    double fastest[VARIANTS];
    for (uint32_t v = 0; v < VARIANTS; v++) {
        const struct result *result = &results[v];
        double seconds = median(result->seconds, b->repeats, &least, &most);
        fastest[v] = least;
        printf("%-18s %12.0f %11.0f to %9.0f", variants[v].name, examples / seconds, examples / most,
               examples / least);
        printf(" %10.0f", 1e9 * median(result->processor, b->repeats, &least, &most) / examples);
        double loss = median(result->loss, b->repeats, &least, &most);
        printf(" %8.4f %13.4f to %7.4f\n", loss, least, most);
    }
    static const uint32_t pairs[][2] = {{2, 0}, {3, 0}, {2, 3}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        uint32_t one = pairs[i][0], other = pairs[i][1];
        for (uint32_t r = 0; r < b->repeats; r++)
            ratios[r] = results[other].seconds[r] / results[one].seconds[r];
        double ratio = median(ratios, b->repeats, &least, &most);
        printf("%u %s / %s: %.2f (%.2f to %.2f), bests %.2f\n", b->threads, variants[one].name,
               variants[other].name, ratio, least, most, fastest[other] / fastest[one]);
    }
    printf("lock: %.2f of one thread's time; at most %.2f times one thread with it\n", share, 1 / share);
}

static uint32_t number(int argc, char **argv, int at, uint32_t otherwise, uint32_t high)
{
    long value = argc > at ? strtol(argv[at], NULL, 10) : (long)otherwise;
    if (value >= 1 && value <= (long)high)
        return (uint32_t)value;
    (void)fprintf(stderr, "hogwild_bench: '%s' is not an integer from 1 to %u\n", argv[at], high);
    exit(2);
}

int main(int argc, char **argv)
{
    static struct bench b;
    static struct result results[VARIANTS];
    char path[DP_PATH_MAX];
    const char *folder = getenv("DOWNPOUR_DATA");
    (void)snprintf(path, sizeof path, "%s/imdb_bow.train.libsvm.zst", folder ? folder : ".");
    b.threads = number(argc, argv, 2, 2, 256);
    b.epochs = number(argc, argv, 4, 10, 1000);
    b.repeats = number(argc, argv, 5, 9, REPEATS_MAX);
    b.rate = argc > 6 ? strtof(argv[6], NULL) : 0.2f;
    load(&b, argc > 1 ? argv[1] : path, number(argc, argv, 3, 128, 1 << 20));
    double share = 0;
    for (uint32_t r = 0; r < b.repeats; r++)
        for (uint32_t v = 0; v < VARIANTS; v++) {
            double inside = train(&b, v, r, &results[v]);
            share =
                !variants[v].several && variants[v].locked && (share == 0 || inside < share) ? inside : share;
        }
    say(&b, results, share);
    for (uint32_t i = 0; i < b.batches; i++)
        dp_batch_free(&b.batch[i]);
    free(b.batch);
    dp_weights_free(&b.weights);
    dp_dataset_close(&b.data);
    dp_program_close(&b.job.program);
    dp_backend_close(&b.job.backend);
    dp_model_close(&b.job.model);
    return 0;
}

/* Goal    the ranks train what sync on servers trains: each round one step of all ranks' minibatches, weighted by examples, at the rate of
 *         the round; they stop together, notice copies that differ, and say by name what they do not train.
 * Method  ranks that are threads, on the shipped digits; beside them one loop that computes every minibatch in turn. The weights are
 *         compared bit for bit, through the file that rank 0 writes. Under DP_SANITIZE=thread the same tests show that nothing races. */
#include "tests/lib/test.h"
#include "tests/unit/worker/allreduce/fake_reducer.h"

#include "common/base/bytes.h"
#include "common/config/injection.h"
#include "worker/allreduce/allreduce.h"
#include "worker/allreduce/replica.h"
#include "worker/schedule/rate.h"
#include "worker/score/sets.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXAMPLES 1437u
#define SECOND   UINT64_C(1000000000)

struct world {
    char dir[64], weights[96], report[96];
    struct dp_cluster cluster, other; /* other: rank 1's, where it differs */
    bool differs;
    uint32_t ranks;
    atomic_int stop[FAKE_RANKS_MAX];
    struct fake_reducer *fake;
    enum dp_status st[FAKE_RANKS_MAX];
    struct dp_error err[FAKE_RANKS_MAX];
    uint64_t stop_at, limit_ns,
        limit_first_ns; /* at the meet of this number rank 1 gets a signal; the longest limit */
};

struct thread {
    struct world *world;
    uint32_t rank;
};

static void meets(void *of, uint64_t number, uint64_t limit_ns)
{
    struct world *w = of;
    if (number == w->stop_at)
        atomic_store(&w->stop[1], 15);
    if (number == 0)
        w->limit_first_ns = limit_ns;
    else if (limit_ns > w->limit_ns)
        w->limit_ns = limit_ns;
}

static void *train(void *of)
{
    const struct thread *t = of;
    struct world *w = t->world;
    const struct dp_reducer reducer = fake_reducer_of(w->fake, t->rank);
    const struct dp_allreduce_options options = {.cluster =
                                                     w->differs && t->rank == 1 ? &w->other : &w->cluster,
                                                 .reducer = &reducer,
                                                 .stop = &w->stop[t->rank],
                                                 .weights = w->weights};
    w->st[t->rank] = dp_allreduce(&options, &w->err[t->rank]);
    fake_reducer_ended(w->fake);
    return NULL;
}

static void run(struct world *w)
{
    pthread_t thread[FAKE_RANKS_MAX];
    struct thread of[FAKE_RANKS_MAX];
    for (uint32_t r = 0; r < w->ranks; r++) {
        of[r] = (struct thread){w, r};
        assert_int_equal(pthread_create(&thread[r], NULL, train, &of[r]), 0);
    }
    for (uint32_t r = 0; r < w->ranks; r++)
        assert_int_equal(pthread_join(thread[r], NULL), 0);
}

static void begin(struct world *w, uint32_t ranks, uint32_t batch, uint32_t epochs)
{
    memset(w, 0, sizeof *w);
    (void)snprintf(w->dir, sizeof w->dir, "/tmp/dp_allreduce_XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->weights, sizeof w->weights, "%s/weights", w->dir);
    (void)snprintf(w->report, sizeof w->report, "%s/report", w->dir);
    struct dp_cluster *c = &w->cluster;
    dp_cluster_defaults(c);
    (void)snprintf(c->model, sizeof c->model, "mlp:64-23-10");
    (void)snprintf(c->data.train, sizeof c->data.train, "tests/data/digits.train.libsvm.gz");
    (void)snprintf(c->training.report, sizeof c->training.report, "%s", w->report);
    c->data.scale = 0.0625;
    c->training.workers = w->ranks = ranks;
    c->training.batch = batch;
    c->training.epochs = epochs;
    c->training.rate = 0.1;
    c->training.seed = 3;
    c->training.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    w->stop_at = UINT64_MAX;
    w->fake = fake_reducer_open(ranks, meets, w);
}

static void end(struct world *w)
{
    fake_reducer_close(w->fake);
    (void)unlink(w->weights);
    (void)unlink(w->report);
    assert_int_equal(rmdir(w->dir), 0);
}

static void all_end(const struct world *w, enum dp_status st)
{
    for (uint32_t r = 0; r < w->ranks; r++)
        if (w->st[r] != st)
            fail_msg("rank %u ended with %s: %s", (unsigned)r, dp_status_name((int)w->st[r]), w->err[r].text);
}

/* The whole file with a 0 behind it. */
static char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(1 << 20);
    assert_non_null(file);
    assert_non_null(bytes);
    size_t n = fread(bytes, 1, (1 << 20) - 1, file);
    (void)fclose(file);
    bytes[n] = '\0';
    if (size)
        *size = n;
    return bytes;
}

static void has(const char *path, const char *text)
{
    size_t size, n = strlen(text), at = 0;
    char *bytes = slurp(path, &size);
    while (at + n < size && memcmp(bytes + at, text, n) != 0)
        at++;
    if (at + n >= size)
        fail_msg("no %s in %s", text, path);
    free(bytes);
}

/* ---- the same, in one loop */

struct alone {
    struct dp_job job;
    struct dp_sets sets;
    struct dp_replica *replica;
    float *weights[DP_GRAPH_PARAMETERS_MAX], *gradients[DP_GRAPH_PARAMETERS_MAX];
    struct dp_batch *batch;
    double loss_sum; /* of the epoch, by examples */
};

static void take_weights(struct alone *a)
{
    for (int p = 0; p < dp_graph_parameters(a->job.model.graph); p++) {
        const float *row;
        size_t dim = dp_graph_parameter(a->job.model.graph, p)->table.dim;
        for (uint64_t key = 0; (row = dp_replica_row(a->replica, p, key)); key++)
            memcpy(a->weights[p] + key * dim, row, dim * sizeof *row);
    }
}

/* Its gradients are added to the sum, or begin it. */
static void add_minibatch(struct alone *a, uint32_t epoch, uint64_t number, float factor, bool begins)
{
    float loss, *sum = dp_replica_sums(a->replica);
    struct dp_error err = {0};
    dp_dataset_fill(a->sets.train, epoch, number, a->batch);
    assert_int_equal(
        dp_program_start(a->job.program, a->batch, (const float *const *)a->weights, a->gradients, &err),
        DP_OK);
    assert_int_equal(dp_program_finish(a->job.program, &loss, NULL, &err), DP_OK);
    for (int p = 0; p < dp_graph_parameters(a->job.model.graph); p++)
        for (size_t i = 0; i < dp_parameter_floats(dp_graph_parameter(a->job.model.graph, p)); i++, sum++) {
            float weighted = factor * a->gradients[p][i];
            *sum = begins ? weighted : *sum + weighted;
        }
    a->loss_sum += (double)loss * a->batch->examples;
}

/* In the report. */
static void has_loss(const struct world *w, uint32_t epoch, double wanted)
{
    char *report = slurp(w->report, NULL), *at = report;
    for (uint32_t e = 0; at && e <= epoch; e++) {
        at = strstr(at, "\"train_loss\": ");
        at = at ? at + strlen("\"train_loss\": ") : NULL;
    }
    double loss = at ? strtod(at, NULL) : (double)NAN;
    if (!(fabs(loss - wanted) <= 1e-6 * wanted))
        fail_msg("the training loss of epoch %u is %.9g, not %.9g", (unsigned)epoch + 1, loss, wanted);
    free(report);
}

static void one_round(struct alone *a, const struct world *w, uint32_t epoch, uint64_t first)
{
    const struct dp_cluster_training *t = &w->cluster.training;
    uint64_t batches = dp_dataset_batches(a->sets.train), end = first + w->ranks;
    uint32_t all = 0;
    for (uint64_t n = first; n < end && n < batches; n++)
        all += n + 1 < batches ? t->batch : EXAMPLES - (uint32_t)n * t->batch;
    for (uint64_t n = first; n < end && n < batches; n++) {
        uint32_t own = n + 1 < batches ? t->batch : EXAMPLES - (uint32_t)n * t->batch;
        add_minibatch(a, epoch, n, (float)own / (float)all, n == first);
    }
    const struct dp_rate rate = dp_rate_of(t, batches * t->epochs);
    dp_replica_apply(a->replica, dp_rate_at(&rate, epoch * batches + first));
    take_weights(a);
}

/* Compares the weights of the ranks with those after so many rounds, and the training loss of each full epoch. Planted: the loss divided
 * by the batch once more; not weighted by examples; of rank 0 alone; of the round's last rank for all. */
static void are_those_after(struct world *w, uint32_t rounds)
{
    static const atomic_int stop;
    struct alone a = {0};
    struct dp_error err = {0};
    assert_int_equal(dp_job_open_alone(&w->cluster, 0, &stop, &a.job, &err), DP_OK);
    assert_int_equal(dp_sets_train(&a.job, &w->cluster.training, &a.sets, &err), DP_OK);
    assert_int_equal(dp_job_program(&a.job, a.sets.train, NULL, NULL, &err), DP_OK);
    assert_int_equal(dp_replica_new(a.job.model.graph, 0, &a.replica, &err), DP_OK);
    for (int p = 0; p < dp_graph_parameters(a.job.model.graph); p++) {
        size_t floats = dp_parameter_floats(dp_graph_parameter(a.job.model.graph, p));
        a.weights[p] = calloc(floats, sizeof(float));
        a.gradients[p] = calloc(floats, sizeof(float));
        assert_true(a.weights[p] && a.gradients[p]);
    }
    take_weights(&a);
    assert_int_equal(dp_batch_new(a.sets.train, &a.batch, &err), DP_OK);
    uint64_t batches = dp_dataset_batches(a.sets.train);
    uint32_t done = 0;
    for (uint32_t e = 0; e < w->cluster.training.epochs; e++) {
        uint64_t first = 0;
        a.loss_sum = 0;
        for (; first < batches && done < rounds; first += w->ranks, done++)
            one_round(&a, w, e, first);
        if (first >= batches)
            has_loss(w, e, a.loss_sum / EXAMPLES);
    }
    assert_true(rounds == UINT32_MAX || done == rounds);

    size_t size, at;
    char *file = slurp(w->weights, &size);
    at = 8 + (size_t)dp_load_u64le(file);
    assert_true(at % 8 == 0);
    for (int p = 0; p < dp_graph_parameters(a.job.model.graph); p++) {
        const struct dp_parameter *of = dp_graph_parameter(a.job.model.graph, p);
        size_t bytes = (size_t)of->rows * of->width * sizeof(float);
        assert_true(at + bytes <= size);
        assert_memory_equal(file + at, a.weights[p], bytes);
        at += bytes;
        free(a.weights[p]);
        free(a.gradients[p]);
    }
    assert_int_equal(at, size);
    free(file);
    dp_batch_free(&a.batch);
    dp_replica_free(&a.replica);
    dp_sets_close(&a.sets);
    dp_job_close(&a.job);
}

/* ---- tests */

/* 23 minibatches for four ranks: the last round lacks one. Planted: no weights by examples; the rate of the own minibatch; the last
 * gradients of a rank without a minibatch. */
static void ranks_train_what_sync_trains(void **state)
{
    struct world w;
    begin(&w, 4, 64, 3);
    w.cluster.training.optimizer.momentum = 0.9f;
    run(&w);
    all_end(&w, DP_OK);
    are_those_after(&w, UINT32_MAX);
    has(w.report, "\"finished\": true");
    has(w.report, "\"reduced_by\": \"threads\"");
    has(w.report, "\"pushes\": 18"); /* ranks 0, 1, 2 */
    has(w.report, "\"pushes\": 15");
    has(w.weights, "\"mlp.w1\":{\"dtype\":\"F32\",\"shape\":[64,23],\"data_offsets\":[0,5888]}");
    assert_int_equal(w.limit_first_ns, 10 * 30 * SECOND); /* until all have read their data */
    assert_int_equal(w.limit_ns, 10 * 30 * SECOND);       /* until rank 0 has written its files */
    end(&w);

    begin(&w, 3, 100, 2);
    w.cluster.training.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    w.cluster.training.rate = 0.01;
    w.cluster.training.decay = DP_DECAY_COSINE;
    w.cluster.training.warmup_steps = 7;
    run(&w);
    all_end(&w, DP_OK);
    are_those_after(&w, UINT32_MAX);
    end(&w);
}

/* Rank 3 of 4 has no minibatch at all; one rank trains alone. */
static void a_rank_may_have_nothing_to_do_or_all(void **state)
{
    for (uint32_t ranks = 1; ranks <= 4; ranks += 3) {
        struct world w;
        begin(&w, ranks, 512, 2);
        run(&w);
        all_end(&w, DP_OK);
        are_those_after(&w, UINT32_MAX);
        end(&w);
    }
}

/* The signal comes to one rank, in round 4 of 6 (the first meet is that of the settings). Planted: a rank that stops by itself; a step
 * that is applied all the same. */
static void all_stop_after_the_same_step(void **state)
{
    struct world w;
    begin(&w, 4, 64, 2);
    w.stop_at = 4;
    run(&w);
    all_end(&w, DP_STOPPING);
    /* Rank 1 sees it before that round's sum, or at the next one. */
    has(w.report, "\"ended\": \"stopped\"");
    has(w.report, "\"finished\": false");
    char *report = slurp(w.report, NULL);
    const char *pushes = strstr(report, "\"pushes\": 3");
    are_those_after(&w, pushes ? 3 : 4);
    free(report);
    end(&w);
}

static void copies_that_differ_are_noticed(void **state)
{
    struct world w;
    begin(&w, 3, 64, 2);
    fake_reducer_spoil(w.fake, 1, 5);
    run(&w);
    all_end(&w, DP_INTERNAL);
    assert_non_null(strstr(w.err[0].text, "after epoch 1 the ranks' weights differ"));
    end(&w);
}

/* Planted: the rates are left out. */
static void other_settings_are_noticed(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct world w;
        begin(&w, 3, 64, 2);
        w.differs = true;
        w.other = w.cluster;
        if (i == 0)
            w.other.training.seed++;
        else
            w.other.training.rate *= 2;
        run(&w);
        all_end(&w, DP_ARGUMENT);
        assert_non_null(strstr(w.err[2].text, "the ranks differ in settings or data"));
        end(&w);
    }
}

/* Whichever rank it is, all end for it at once, and the report says so. Planted: the others wait for it. */
static void what_diverges_ends_the_job(void **state)
{
    struct world w;
    begin(&w, 2, 64, 2);
    w.cluster.training.rate = 1e30;
    run(&w);
    all_end(&w, DP_NOT_FINITE);
    for (uint32_t r = 0; r < w.ranks; r++)
        assert_non_null(strstr(w.err[r].text, "training has diverged in epoch 1"));
    has(w.report, "\"ended\": \"failed\"");
    has(w.report, "\"why\": \"not_finite\"");
    has(w.report, "\"error\": \"training has diverged in epoch 1");
    end(&w);
}

/* Planted: the limit of all steps is timeout_ms. */
static void a_delay_that_is_injected_is_waited_for(void **state)
{
    struct world w;
    begin(&w, 2, 512, 1);
    w.cluster.training.timeout_ms = 3000;
    (void)snprintf(w.cluster.training.straggler, sizeof w.cluster.training.straggler, "1:20x");
    run(&w);
    all_end(&w, DP_OK);
    assert_int_equal(w.limit_ns, 60 * SECOND); /* 20 times 3 s; rank 0's files may take 30 s */
    are_those_after(&w, UINT32_MAX);
    end(&w);
}

static void refused(struct world *w, const char *text)
{
    struct dp_error err = {0};
    enum dp_status st = dp_allreduce_check(&w->cluster, w->ranks, &err);
    assert_true(st == DP_UNSUPPORTED || st == DP_ARGUMENT);
    if (!strstr(err.text, text))
        fail_msg("no '%s' in '%s'", text, err.text);
}

static void what_it_does_not_train_is_named(void **state)
{
    struct world w;
    begin(&w, 2, 64, 1);
    const struct dp_cluster good = w.cluster;
    struct dp_cluster_training *t = &w.cluster.training;
#define REFUSED(change, text)                                                                                \
    do {                                                                                                     \
        change;                                                                                              \
        refused(&w, text);                                                                                   \
        w.cluster = good;                                                                                    \
    } while (0)
    REFUSED(t->work = DP_CLUSTER_LEASED, "training.work");
    REFUSED(t->fetch_every = 2, "training.fetch_every");
    REFUSED(t->push_every = 2, "training.push_every");
    REFUSED(t->accumulate = 2, "training.accumulate");
    REFUSED(t->threads = 2, "training.threads");
    REFUSED(t->bf16_values = true, "training.bf16_values");
    REFUSED(t->first_epoch = 3, "training.first_epoch");
    REFUSED(t->patience = 3, "--patience");
    REFUSED(t->workers = 4, "2 ranks were started, but training.workers (--workers) is 4");
    REFUSED((void)snprintf(w.cluster.model, sizeof w.cluster.model, "fm:8"), "sparse table");
    REFUSED((void)snprintf(w.cluster.model, sizeof w.cluster.model, "mlpp:8"), "mlp");
#undef REFUSED
    struct dp_error err = {0};
    assert_int_equal(dp_allreduce_check(&w.cluster, w.ranks, &err), DP_OK);
    (void)snprintf(w.cluster.training.consistency, sizeof w.cluster.training.consistency, "ssp:3");
    assert_int_equal(dp_allreduce_check(&w.cluster, w.ranks, &err), DP_OK);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_train_what_sync_trains),
                                       cmocka_unit_test(a_rank_may_have_nothing_to_do_or_all),
                                       cmocka_unit_test(all_stop_after_the_same_step),
                                       cmocka_unit_test(copies_that_differ_are_noticed),
                                       cmocka_unit_test(other_settings_are_noticed),
                                       cmocka_unit_test(what_diverges_ends_the_job),
                                       cmocka_unit_test(a_delay_that_is_injected_is_waited_for),
                                       cmocka_unit_test(what_it_does_not_train_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goal    the samples are the copy's rows by their keys: before the first step, at the moments that are due, and at the end.
 * Method  a copy whose gradients are set, and a clock that the test moves; the file is read back. */
#include "tests/lib/test.h"
#include "worker/allreduce/sampling.h"

#include "common/model/mix.h"
#include "worker/compute/models/model.h"
#include "worker/observe/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static uint64_t now_ns(void *self)
{
    return *(const uint64_t *)self;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All rows, but the first of each table. */
static void make_keys(const struct dp_graph *graph, struct dp_sample_keys *out)
{
    *out = (struct dp_sample_keys){.tables = (uint32_t)dp_graph_parameters(graph)};
    for (uint32_t t = 0; t < out->tables; t++) {
        const struct dp_parameter *of = dp_graph_parameter(graph, (int)t);
        struct dp_sample_table *table = &out->table[t];
        table->dim = of->table.dim;
        table->count = dp_parameter_floats(of) / of->table.dim - 1;
        table->keys = calloc(table->count + 1, sizeof *table->keys);
        assert_non_null(table->keys);
        (void)snprintf(table->name, sizeof table->name, "%s", of->table.name);
        for (uint64_t k = 0; k < table->count; k++)
            table->keys[k] = dp_mix(k + 1);
        qsort(table->keys, table->count, sizeof *table->keys, ascending);
    }
}

static void assert_rows(const struct dp_sample_keys *keys, const struct dp_replica *replica,
                        const float *rows)
{
    for (uint32_t t = 0; t < keys->tables; t++)
        for (uint64_t k = 0; k < keys->table[t].count; k++, rows += keys->table[t].dim)
            assert_memory_equal(rows, dp_replica_row(replica, (int)t, dp_unmix(keys->table[t].keys[k])),
                                keys->table[t].dim * sizeof *rows);
}

static void step(struct dp_replica *replica, struct dp_sampling *sampling, uint64_t examples)
{
    for (size_t i = 0; i < dp_replica_floats(replica); i++)
        dp_replica_sums(replica)[i] = (float)(i % 7) - 3;
    dp_replica_apply(replica, 0.25f);
    dp_sampling_step(sampling, 3, examples);
}

/* By time at 1110, 1120 and 1150 ms; by examples at 400. */
static const struct {
    uint64_t ms, pushes, examples;
    enum dp_sample_by by;
} want[] = {{1000, 0, 0, DP_SAMPLE_BY_EXAMPLES},
            {1112, 9, 303, DP_SAMPLE_BY_TIME},
            {1119, 12, 406, DP_SAMPLE_BY_EXAMPLES},
            {1145, 15, 510, DP_SAMPLE_BY_TIME},
            {1147, 18, 615, DP_SAMPLE_BY_EXAMPLES}};

static void rows_at_their_moments(void **state)
{
    char dir[] = "/tmp/dp_sampling_XXXXXX", keys_path[64], path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(keys_path, sizeof keys_path, "%s/keys", dir);
    (void)snprintf(path, sizeof path, "%s/samples", dir);
    struct dp_model model = {0};
    struct dp_error err = {0};
    struct dp_replica *replica, *before;
    struct dp_sampling *sampling;
    struct dp_samples_reader *reader;
    struct dp_sample_keys keys;
    uint64_t time = 1000 * MS;
    const struct dp_optimizer_spec sgd = dp_optimizer_defaults(DP_OPT_SGD);
    const struct dp_sampling_options options = {.samples = path, .keys = keys_path, .every_ms = 10};
    assert_int_equal(dp_model_open("mlp:70-300-9", &model, &err), DP_OK);
    dp_graph_set_optimizer(model.graph, &sgd, 5);
    assert_int_equal(dp_graph_check(model.graph, &err), DP_OK);
    make_keys(model.graph, &keys);
    keys.each = 400;
    assert_int_equal(dp_sample_keys_write(&keys, keys_path, &err), DP_OK);
    assert_int_equal(dp_replica_new(model.graph, 0, &replica, &err), DP_OK);
    assert_int_equal(dp_replica_new(model.graph, 0, &before, &err), DP_OK);
    const struct dp_clock clock = {.now_ns = now_ns, .self = &time};
    if (dp_sampling_open(&options, model.graph, replica, clock, &sampling, &err) != DP_OK)
        fail_msg("%s", err.text);
    const uint64_t at[] = {1100, 1109, 1112, 1119, 1145, 1146};
    for (size_t s = 0; s < sizeof at / sizeof at[0]; s++) {
        time = at[s] * MS;
        step(replica, sampling, 100 + s);
    }
    time = 1147 * MS;
    dp_sampling_end(sampling);
    dp_sampling_close(&sampling);

    assert_int_equal(dp_samples_reader_open(path, &reader, &err), DP_OK);
    assert_int_equal(dp_samples_reader_count(reader), 5);
    float *rows = calloc(dp_sample_keys_floats(&keys), sizeof *rows);
    for (uint64_t i = 0; i < 5; i++) {
        struct dp_sample got;
        assert_int_equal(dp_samples_reader_read(reader, i, &got, rows, &err), DP_OK);
        assert_true(got.monotonic_ns == want[i].ms * MS && got.began_ns == (i ? 1100 * MS : 0));
        assert_true(got.pushes == want[i].pushes && got.examples == want[i].examples && got.by == want[i].by);
        if (i == 0)
            assert_rows(&keys, before, rows);
        if (i == 4)
            assert_rows(&keys, replica, rows);
    }
    dp_samples_reader_close(&reader);
    /* A row that no parameter has. */
    keys.table[0].keys[keys.table[0].count - 1] = UINT64_MAX;
    assert_int_equal(dp_sample_keys_write(&keys, keys_path, &err), DP_OK);
    assert_int_equal(dp_sampling_open(&options, model.graph, replica, clock, &sampling, &err), DP_DATA);
    assert_null(sampling);
    free(rows);
    dp_sample_keys_clear(&keys);
    dp_replica_free(&before);
    dp_replica_free(&replica);
    dp_model_close(&model);
    (void)unlink(path);
    (void)unlink(keys_path);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_at_their_moments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

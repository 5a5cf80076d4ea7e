#include "tests/unit/worker/read/formats.h"

#include "tests/lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void close_dataset(void *dataset)
{
    dp_dataset_close(&(struct dp_dataset *){dataset});
}

static void free_batch(void *batch)
{
    dp_batch_free(&(struct dp_batch *){batch});
}

struct dp_dataset *formats_open(const struct dp_dataset_options *options)
{
    struct dp_error err = {0};
    struct dp_dataset *dataset = NULL;
    if (dp_dataset_open(options, &dataset, &err) != DP_OK)
        fail_msg("%s", err.text);
    files_keep(close_dataset, dataset);
    return dataset;
}

struct dp_batch *formats_batch(const struct dp_dataset *dataset)
{
    struct dp_error err = {0};
    struct dp_batch *batch = NULL;
    if (dp_batch_new(dataset, &batch, &err) != DP_OK)
        fail_msg("%s", err.text);
    files_keep(free_batch, batch);
    return batch;
}

struct dp_batch *formats_filled(const struct dp_dataset *dataset, uint32_t epoch, uint64_t number)
{
    struct dp_batch *batch = formats_batch(dataset);
    dp_dataset_fill(dataset, epoch, number, batch);
    return batch;
}

void formats_refused(struct dp_dataset_options options, const char *text, unsigned line,
                     enum dp_status status, const char *words)
{
    char place[64];
    struct dp_error err = {0};
    struct dp_dataset *dataset = NULL;
    options.path = write_text("bad", text);
    (void)snprintf(place, sizeof place, "/bad:%u: ", line);
    enum dp_status st = dp_dataset_open(&options, &dataset, &err);
    if (st != status || dataset || (line && !strstr(err.text, place)) || !strstr(err.text, words))
        fail_msg("'%s'\n  gave status %d, '%s'\n  expected %d, with '%s' and '%s'", text, (int)st, err.text,
                 (int)status, line ? place : "", words);
}

void formats_same_batch(const struct dp_batch *a, const struct dp_batch *b)
{
    assert_int_equal(a->examples, b->examples);
    assert_int_equal(a->room.lists, b->room.lists);
    assert_int_equal(a->width, b->width);
    assert_memory_equal(a->labels, b->labels, a->examples * sizeof *a->labels);
    assert_int_equal(a->weighted, b->weighted);
    if (a->weighted)
        assert_memory_equal(a->weights, b->weights, a->examples * sizeof *a->weights);
    if (a->width)
        assert_memory_equal(a->dense, b->dense, (size_t)a->examples * a->width * sizeof *a->dense);
    for (uint32_t g = 0; g < a->room.groups; g++) {
        assert_int_equal(a->group[g].distinct, b->group[g].distinct);
        assert_memory_equal(a->group[g].keys, b->group[g].keys, a->group[g].distinct * sizeof(uint64_t));
        for (uint32_t k = 1; k < a->group[g].distinct; k++)
            assert_true(a->group[g].keys[k - 1] < a->group[g].keys[k]);
    }
    for (uint32_t l = 0; l < a->room.lists; l++) {
        const uint32_t *offsets = a->list[l].offsets, entries = offsets[a->examples];
        assert_memory_equal(offsets, b->list[l].offsets, (a->examples + 1) * sizeof *offsets);
        assert_memory_equal(a->list[l].slots, b->list[l].slots, entries * sizeof *a->list[l].slots);
        assert_memory_equal(a->list[l].values, b->list[l].values, entries * sizeof *a->list[l].values);
    }
}

void formats_same(const struct dp_dataset *a, const struct dp_dataset *b, uint32_t epoch)
{
    struct dp_batch *x = formats_batch(a), *y = formats_batch(b);
    assert_int_equal(dp_dataset_digest(a), dp_dataset_digest(b));
    assert_int_equal(dp_dataset_batches(a), dp_dataset_batches(b));
    for (uint64_t n = 0; n < dp_dataset_batches(a); n++) {
        dp_dataset_fill(a, epoch, n, x);
        dp_dataset_fill(b, epoch, n, y);
        formats_same_batch(x, y);
    }
}

struct filler {
    const struct dp_dataset *dataset;
    struct dp_batch *batch;
    uint64_t number;
};

static void *fill_one(void *context)
{
    struct filler *filler = context;
    dp_dataset_fill(filler->dataset, 1, filler->number, filler->batch);
    return NULL;
}

/* Batch n, n + 1, ... by three threads at once, against `want` filled in order. */
static void by_threads(const struct dp_dataset *dataset, struct dp_batch *want)
{
    enum { THREADS = 3 };
    uint64_t batches = dp_dataset_batches(dataset);
    struct filler fillers[THREADS];
    for (int t = 0; t < THREADS; t++)
        fillers[t] = (struct filler){.dataset = dataset, .batch = formats_batch(dataset)};
    for (uint64_t n = batches; n-- > 0;) {
        pthread_t threads[THREADS];
        for (uint64_t t = 0; t < THREADS; t++) {
            fillers[t].number = (n + t) % batches;
            assert_int_equal(pthread_create(&threads[t], NULL, fill_one, &fillers[t]), 0);
        }
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(pthread_join(threads[t], NULL), 0);
        for (int t = 0; t < THREADS; t++) {
            dp_dataset_fill(dataset, 1, fillers[t].number, want);
            formats_same_batch(want, fillers[t].batch);
        }
    }
}

void formats_check(struct dp_dataset_options options, const char *text)
{
    options.path = write_text("plain", text);
    struct dp_dataset *plain = formats_open(&options);
    struct dp_batch *batch = formats_batch(plain);
    uint64_t examples = 0;
    for (uint64_t n = 0; n < dp_dataset_batches(plain); n++) {
        dp_dataset_fill(plain, 1, n, batch);
        assert_true(batch->epoch == 1 && batch->number == n && batch->examples <= options.batch);
        examples += batch->examples;
    }
    assert_int_equal(examples, dp_dataset_examples(plain));
    by_threads(plain, batch);
    for (int packing = PACK_PLAIN; packing < PACKINGS; packing++) {
        options.path = write_packed("packed", (enum packing)packing, text, strlen(text));
        struct dp_dataset *packed = formats_open(&options);
        formats_same(plain, packed, 1);
    }
}

uint64_t formats_key(const struct dp_batch *batch, uint32_t group, uint32_t list, uint32_t example,
                     uint32_t entry)
{
    uint32_t at = batch->list[list].offsets[example] + entry;
    assert_true(at < batch->list[list].offsets[example + 1]);
    return batch->group[group].keys[batch->list[list].slots[at]];
}

/* Goal: well-known data sets are read whole: as many examples, entries and labels as their own descriptions
 * say. Needs DOWNPOUR_DATA, a folder with these files; skips without. */
#include "worker/read/dataset.h"

#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>

struct known {
    const char *file;
    enum dp_labels labels;
    enum dp_data_form form;
    uint32_t width;
    uint64_t examples, entries, label_sum;
};

static const struct known sets[] = {
    {"a9a.train.libsvm.zst", DP_LABELS_BINARY, DP_FORM_SPARSE, 0, 32561, 451592, 7841},
    {"a9a.test.libsvm.zst", DP_LABELS_BINARY, DP_FORM_SPARSE, 0, 16281, 225731, 3846},
    {"agaricus.train.libsvm.zst", DP_LABELS_BINARY, DP_FORM_SPARSE, 0, 6513, 143286, 3140},
    {"agaricus.test.libsvm.zst", DP_LABELS_BINARY, DP_FORM_SPARSE, 0, 1611, 35442, 776},
    {"imdb_bow.train.libsvm.zst", DP_LABELS_BINARY, DP_FORM_SPARSE, 0, 25000, 3501206, 12500},
    {"imdb_bow.test.libsvm.zst", DP_LABELS_BINARY, DP_FORM_SPARSE, 0, 25000, 3401455, 12500},
    {"mnist.train-images-idx3-ubyte.gz", DP_LABELS_CLASS, DP_FORM_DENSE, 784, 60000, 0, 267236},
    {"mnist.t10k-images-idx3-ubyte.gz", DP_LABELS_CLASS, DP_FORM_DENSE, 784, 10000, 0, 44434},
};

static void check(const char *folder, const struct known *set)
{
    char path[1024];
    struct dp_error err = {0};
    struct dp_dataset *dataset = NULL;
    struct dp_batch *batch = NULL;
    uint64_t examples = 0, entries = 0;
    double labels = 0;
    (void)snprintf(path, sizeof path, "%s/%s", folder, set->file);
    struct dp_dataset_options options = {.path = path,
                                         .labels = set->labels,
                                         .classes = 10,
                                         .form = set->form,
                                         .width = set->width,
                                         .scale = 1,
                                         .batch = 64,
                                         .shuffle = true};
    if (dp_dataset_open(&options, &dataset, &err) != DP_OK || dp_batch_new(dataset, &batch, &err) != DP_OK)
        fail_msg("%s", err.text);
    for (uint64_t n = 0; n < dp_dataset_batches(dataset); n++) {
        dp_dataset_fill(dataset, 0, n, batch);
        examples += batch->examples;
        entries += set->form == DP_FORM_SPARSE ? batch->list[0].offsets[batch->examples] : 0;
        for (uint32_t i = 0; i < batch->examples; i++)
            labels += (double)batch->labels[i];
    }
    print_message("%s: %lu examples, %lu entries, labels %g, digest %016lx\n", set->file,
                  (unsigned long)examples, (unsigned long)entries, labels,
                  (unsigned long)dp_dataset_digest(dataset));
    assert_int_equal(examples, set->examples);
    assert_int_equal(dp_dataset_examples(dataset), set->examples);
    assert_int_equal(entries, set->entries);
    assert_int_equal((uint64_t)labels, set->label_sum);
    dp_batch_free(&batch);
    dp_dataset_close(&dataset);
}

static void counts(void **state)
{
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        check(*state, &sets[i]);
}

int main(void)
{
    char *folder = getenv("DOWNPOUR_DATA");
    if (!folder || folder[0] == '\0') {
        (void)fprintf(stderr, "skipped: DOWNPOUR_DATA names no folder of data sets\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(counts, folder)};
    return cmocka_run_group_tests_name("read_known", tests, NULL, NULL);
}

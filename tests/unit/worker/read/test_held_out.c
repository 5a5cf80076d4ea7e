/* Goal: a share held out and the rest are the file's examples, each once, whatever batch, seed and share; both are
 * functions of (seed, number); an epoch of the rest is a permutation of it.
 * Method: examples whose only feature is their number, read back through minibatches. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "worker/read/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXAMPLES 203u

static char path[] = "/tmp/dp-held-XXXXXX";

static int setup(void **state)
{
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    for (unsigned i = 0; i < EXAMPLES; i++)
        fprintf(file, "%u %u:1\n", i % 2, i + 1);
    return fclose(file);
}

static int teardown(void **state)
{
    return unlink(path);
}

static struct dp_dataset_options options_of(double share, bool held, uint64_t seed, uint32_t batch)
{
    return (struct dp_dataset_options){.path = path,
                                       .form = DP_FORM_SPARSE,
                                       .labels = DP_LABELS_BINARY,
                                       .scale = 1,
                                       .held_out = share,
                                       .held = held,
                                       .shuffle = !held,
                                       .seed = seed,
                                       .batch = batch};
}

/* How often each example is in an epoch of it; how many there are. */
static uint64_t count(const struct dp_dataset_options *options, uint32_t epoch, unsigned seen[EXAMPLES])
{
    struct dp_dataset *data;
    struct dp_batch *batch;
    struct dp_error err = {0};
    uint64_t found = 0;
    memset(seen, 0, EXAMPLES * sizeof *seen);
    assert_int_equal(dp_dataset_open(options, &data, &err), DP_OK);
    assert_int_equal(dp_batch_new(data, &batch, &err), DP_OK);
    for (uint64_t n = 0; n < dp_dataset_batches(data); n++) {
        dp_dataset_fill(data, epoch, n, batch);
        for (uint32_t i = 0; i < batch->examples; i++, found++) {
            uint64_t key = dp_unmix(batch->group[0].keys[batch->list[0].slots[i]]) - 1;
            assert_true(key < EXAMPLES && batch->labels[i] == (float)(key % 2));
            assert_int_equal(dp_dataset_example_at(data, epoch, found), key);
            seen[key]++;
        }
    }
    assert_int_equal(found, dp_dataset_examples(data));
    dp_batch_free(&batch);
    dp_dataset_close(&data);
    return found;
}

static void parts_are_the_whole_once(void **state)
{
    static const double shares[] = {1e-9, 0.1, 0.25, 0.5, 0.9};
    static const uint64_t held_wanted[] = {1, 20, 50, 101, 182};
    for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++)
        for (uint64_t seed = 0; seed < 3; seed++)
            for (uint32_t b = 1; b < 100; b = b * 3 + 1) {
                unsigned held[EXAMPLES], rest[EXAMPLES], later[EXAMPLES];
                struct dp_dataset_options options = options_of(shares[s], true, seed, b);
                assert_int_equal(count(&options, 0, held), held_wanted[s]);
                options = options_of(shares[s], false, seed, b);
                assert_int_equal(count(&options, 0, rest), EXAMPLES - held_wanted[s]);
                (void)count(&options, 7, later);
                for (unsigned i = 0; i < EXAMPLES; i++)
                    assert_true(held[i] + rest[i] == 1 && later[i] == rest[i]);
            }
}

/* From the whole file, whose end may be of one class only; another seed, another share. */
static void the_share_is_drawn(void **state)
{
    unsigned held[EXAMPLES], other[EXAMPLES], last = 0, same = 0;
    struct dp_dataset_options options = options_of(0.25, true, 1, 16);
    (void)count(&options, 0, held);
    options.seed = 2;
    (void)count(&options, 0, other);
    for (unsigned i = 0; i < EXAMPLES; i++) {
        last += held[i] && i >= EXAMPLES - 50;
        same += held[i] && other[i];
    }
    assert_true(last >= 4 && last <= 25);
    assert_true(same >= 4 && same <= 25);
}

static void what_cannot_be_is_refused(void **state)
{
    static const double shares[] = {-0.1, 0.91, 1, 1.0 / 0.0};
    struct dp_dataset *data;
    struct dp_error err = {0};
    for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
        struct dp_dataset_options options = options_of(shares[s], false, 1, 4);
        assert_int_equal(dp_dataset_open(&options, &data, &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, "held-out share"));
    }
    struct dp_dataset_options options = options_of(0, true, 1, 4);
    assert_int_equal(dp_dataset_open(&options, &data, &err), DP_ARGUMENT);
    FILE *file = fopen(path, "w"); /* the last test: the file is not needed any more */
    fputs("1 2\n1 3\n2 4\n", file);
    assert_int_equal(fclose(file), 0);
    options = options_of(0.5, false, 1, 4);
    options.form = DP_FORM_WORDS;
    options.window = options.negatives = 1;
    assert_int_equal(dp_dataset_open(&options, &data, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "can be held out: give a validation file"));
    file = fopen(path, "w");
    fputs("1 2:1\n", file);
    assert_int_equal(fclose(file), 0);
    options = options_of(0.5, false, 1, 4);
    assert_int_equal(dp_dataset_open(&options, &data, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "none can be held out"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole_once),
        cmocka_unit_test(the_share_is_drawn),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Fuzz: any bytes as a file of each format, in each form, and as files whose format is to be told. The first byte picks; where
 * two files belong together, the second says where the bytes are cut. What is opened is read once, in minibatches of 3; what is
 * refused is refused for its data, with the file's name. */
#define _GNU_SOURCE /* memfd_create */
#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/read/dataset.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum second { ALONE, NEGATIVES, LABELS, KEPT }; /* what the second file is */

static const struct {
    const char *format;
    enum dp_data_form form;
    enum dp_labels labels;
    uint32_t width, fields;
    enum second second;
    bool scored;
} kinds[] = {
    {"pairs", DP_FORM_PAIRS, DP_LABELS_BINARY, 0, 0, ALONE, false},
    {"lists", DP_FORM_PAIRS, DP_LABELS_BINARY, 0, 0, ALONE, false},
    {"pairs", DP_FORM_TRIPLES, DP_LABELS_ANY, 0, 0, ALONE, false},
    {"pairs", DP_FORM_PAIRS, DP_LABELS_BINARY, 0, 0, NEGATIVES, false},
    {"criteo", DP_FORM_SPARSE, DP_LABELS_BINARY, 0, 0, ALONE, false},
    {"criteo", DP_FORM_TABLES, DP_LABELS_ANY, 13, 26, ALONE, true},
    {"csv", DP_FORM_SPARSE, DP_LABELS_BINARY, 0, 0, ALONE, false},
    {"csv", DP_FORM_FIELDS, DP_LABELS_ANY, 1, 1, ALONE, true},
    {"csv", DP_FORM_DENSE, DP_LABELS_ANY, 2, 0, ALONE, false},
    {"text", DP_FORM_WORDS, DP_LABELS_NONE, 0, 0, ALONE, false},
    {"text", DP_FORM_WINDOWS, DP_LABELS_CLASS, 0, 3, ALONE, false},
    {"libsvm", DP_FORM_DENSE, DP_LABELS_ANY, 4, 0, ALONE, false},
    {"libsvm", DP_FORM_SPARSE, DP_LABELS_BINARY, 0, 0, ALONE, false},
    {"idx", DP_FORM_DENSE, DP_LABELS_CLASS, 4, 0, LABELS, false},
    {"csv", DP_FORM_FIELDS, DP_LABELS_BINARY, 1, 1, KEPT, false},
    {NULL, DP_FORM_SPARSE, DP_LABELS_ANY, 0, 0, ALONE, false},
    {NULL, DP_FORM_DENSE, DP_LABELS_CLASS, 4, 0, ALONE, false},
    {NULL, DP_FORM_PAIRS, DP_LABELS_BINARY, 0, 0, ALONE, false},
    {NULL, DP_FORM_TABLES, DP_LABELS_BINARY, 13, 26, ALONE, false},
    {"csv", DP_FORM_FIELDS, DP_LABELS_ANY, 1, 1, KEPT, true},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* A file in memory, under a path. */
static int file_of(const uint8_t *bytes, size_t len, char path[64])
{
    int fd = memfd_create("fuzz", 0);
    DP_ASSERT(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void read_once(const struct dp_dataset *dataset)
{
    struct dp_error err = {0};
    struct dp_batch *batch = NULL;
    uint64_t examples = 0, batches = dp_dataset_batches(dataset);
    batches = batches < 50 ? batches : 50;
    DP_ASSERT(dp_batch_new(dataset, &batch, &err) == DP_OK);
    for (uint64_t n = 0; n < batches; n++) {
        dp_dataset_fill(dataset, 1, n, batch);
        examples += batch->examples;
        for (uint32_t i = 0; i < batch->examples && dp_dataset_lists(dataset) > 0; i++)
            DP_ASSERT(dp_dataset_list_of(dataset, 3 * n + i) < dp_dataset_lists(dataset));
    }
    DP_ASSERT(examples <= dp_dataset_examples(dataset));
    dp_batch_free(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char path[64], second[64];
    struct dp_error err = {0};
    struct dp_dataset *dataset = NULL;
    dp_log_start("fuzz", DP_LOG_ERROR); /* what is told of good files is not looked at */
    if (len < 2)
        return 0;
    size_t kind = bytes[0] % KINDS, cut = kinds[kind].second ? (len - 2) * bytes[1] / 255 : len - 2;
    int a = file_of(bytes + 2, cut, path), b = file_of(bytes + 2 + cut, len - 2 - cut, second);
    const struct dp_dataset_options options = {.path = path,
                                               .negatives_path =
                                                   kinds[kind].second == NEGATIVES ? second : NULL,
                                               .labels_path = kinds[kind].second == LABELS ? second : NULL,
                                               .columns_path = kinds[kind].second == KEPT ? second : NULL,
                                               .format = kinds[kind].format,
                                               .form = kinds[kind].form,
                                               .labels = kinds[kind].labels,
                                               .classes = 256,
                                               .width = kinds[kind].width,
                                               .fields = kinds[kind].fields,
                                               .scored = kinds[kind].scored,
                                               .word_rule = bytes[1] % 2 ? DP_WORD_SIMPLE : DP_WORD_PLAIN,
                                               .subsample = bytes[1] % 3 ? 0.1 : 0,
                                               .negatives = 2,
                                               .window = 2,
                                               .label = kinds[kind].format ? "y" : NULL,
                                               .standardize = bytes[1] / 2 % 2 == 1,
                                               .label_base = bytes[1] % 3 ? DP_LABEL_BASE_AUTO : bytes[1],
                                               .hash_bits = bytes[1] % 64,
                                               .scale = 1,
                                               .shuffle = kinds[kind].second != NEGATIVES,
                                               .batch = 3};
    enum dp_status st = dp_dataset_open(&options, &dataset, &err);
    DP_ASSERT(st == DP_OK || st == DP_DATA || st == DP_ARGUMENT || st == DP_NOMEM || st == DP_VERSION);
    DP_ASSERT(st == DP_OK || strncmp(err.text, "/proc/self/fd/", 14) == 0);
    if (st == DP_OK)
        read_once(dataset);
    dp_dataset_close(&dataset);
    (void)close(a);
    (void)close(b);
    return 0;
}

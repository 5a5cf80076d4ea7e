/* Bench train, data: small generated files to measure training, in the formats that models read. Training
 * speed depends on the number of keys of an example and on how often keys repeat, which is realistic here
 * (Zipf's law); what is learned does not matter.
 *     sparse   libsvm: about 40 of 50,000 features a row
 *     images   idx: 28 x 28 bytes of 10 classes, and a file of labels beside it
 *     pairs    users, one for each 30 lines, and 40,000 items
 *     clicks   the rows of 'downpour generate clicks', 100,000 features, seed 1
 *     text     words of a vocabulary of 20,000, 20 a line
 * Promise   Equal files for equal numbers of rows.
 * Thread    Any. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_TRAIN_DATA_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_TRAIN_DATA_H

#include "common/base/status.h"

#include <stdint.h>

enum dp_bench_train_data {
    DP_BENCH_TRAIN_SPARSE,
    DP_BENCH_TRAIN_IMAGES,
    DP_BENCH_TRAIN_PAIRS,
    DP_BENCH_TRAIN_CLICKS,
    DP_BENCH_TRAIN_TEXT
};

/* The format's name for data.format. */
const char *dp_bench_train_data_format(enum dp_bench_train_data data);
/* Writes `rows` (text: words) to the file `path`, and for images the labels to labels_path. */
enum dp_status dp_bench_train_data_write(enum dp_bench_train_data data, uint64_t rows, const char *path,
                                         const char *labels_path, struct dp_error *err);

#endif

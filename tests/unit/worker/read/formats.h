/* Formats: what every format's test asks of its data sets. For tests; fails by CMocka's fail. */
#ifndef DP_TESTS_UNIT_WORKER_READ_FORMATS_H
#define DP_TESTS_UNIT_WORKER_READ_FORMATS_H

#include "tests/unit/worker/read/files.h"
#include "worker/read/dataset.h"

/* Released when the test ends. */
struct dp_dataset *formats_open(const struct dp_dataset_options *options);
struct dp_batch *formats_batch(const struct dp_dataset *dataset);
/* Such a batch, filled. */
struct dp_batch *formats_filled(const struct dp_dataset *dataset, uint32_t epoch, uint64_t number);
/* Writes `text` as `name` and expects it to be refused: with `status`, and a message that has "name:line: " (line > 0)
 * and `words` in it. */
void formats_refused(struct dp_dataset_options options, const char *text, unsigned line,
                     enum dp_status status, const char *words);
/* Equal in everything that a batch says. */
void formats_same_batch(const struct dp_batch *a, const struct dp_batch *b);
/* All batches of an epoch and the digest are equal. */
void formats_same(const struct dp_dataset *a, const struct dp_dataset *b, uint32_t epoch);
/* The text packed in each way gives equal batches and an equal digest; batches filled backwards, and by three threads at
 * once, are those that were filled in order; examples of an epoch are in all its batches together. */
void formats_check(struct dp_dataset_options options, const char *text);
/* Key of an entry of an example. */
uint64_t formats_key(const struct dp_batch *batch, uint32_t group, uint32_t list, uint32_t example,
                     uint32_t entry);

#endif

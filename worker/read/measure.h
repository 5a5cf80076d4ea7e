/* Measure: the columns, categories and classes of a training file, for a model whose shape leaves them out.
 * Thread    Any.
 * Failure   As dp_dataset_open; DP_DATA: the file has no examples of this form. */
#ifndef DP_READ_MEASURE_H
#define DP_READ_MEASURE_H

#include "common/base/status.h"

#include <stdint.h>

struct dp_dataset_options;

struct dp_measure {
    char format[16];
    uint64_t numbers, categories, lists; /* columns of each kind; of libsvm and idx all are numbers */
    uint64_t classes;                    /* with DP_LABELS_CLASS: 2 at least; else 0 */
};

/* options: form DENSE or FIELDS; width, fields and classes are not needed. Reads the complete file, unless it
 * is a CSV (then only for DP_LABELS_CLASS) or Criteo's. */
enum dp_status dp_measure(const struct dp_dataset_options *options, struct dp_measure *out,
                          struct dp_error *err);

#endif

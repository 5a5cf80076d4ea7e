/* Labels: what a label in a file may be, and what it becomes in a batch.
 * Thread    One at a time: it remembers which of -1 and 0 the file has.
 * Failure   DP_DATA with a text that names no place: the caller wraps it. */
#ifndef DP_READ_LABELS_H
#define DP_READ_LABELS_H

#include "worker/read/dataset.h"

struct dp_label_rule {
    enum dp_labels kind;
    uint32_t classes;
    bool has_zero, has_minus; /* DP_LABELS_BINARY */
};

DP_MUST_USE
enum dp_status dp_label_map(struct dp_label_rule *rule, float label, float *out, struct dp_error *err);

#endif

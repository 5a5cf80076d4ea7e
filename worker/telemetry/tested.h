/* Tested: the metrics of a set after each epoch, as JSON: an array with a row for each epoch, null where they
 * are not known, without unknown ones at its end.
 * Thread    Any: plain functions. */
#ifndef DP_TELEMETRY_TESTED_H
#define DP_TELEMETRY_TESTED_H

#include "worker/compute/metrics.h"

struct json_t;

struct dp_tested {
    bool known;
    struct dp_figures figures;
};

/* NULL for lack of memory. */
struct json_t *dp_tested_json(const struct dp_tested *tested, uint32_t epochs);
/* False when the array is not one of these, or has more epochs; `tested` may then be partly filled. */
bool dp_tested_read(const struct json_t *array, uint32_t epochs, struct dp_tested *tested);
/* The same as text: malloc'd, or NULL; and back. */
char *dp_tested_pack(const struct dp_tested *tested, uint32_t epochs);
bool dp_tested_unpack(const char *text, size_t size, uint32_t epochs, struct dp_tested *tested);

#endif

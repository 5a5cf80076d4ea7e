/* JSON: numbers as this program's JSON has them, over jansson. A u64 above 2^63-1, which jansson's integers do not hold, is a text,
 * as in a cluster file. A real that is not finite, which JSON does not have, is null, or its key is left out.
 * Memory    New values are the caller's, as jansson's; NULL: no memory, which jansson's takers pass on. */
#ifndef DP_BASE_JSON_H
#define DP_BASE_JSON_H

#include "common/base/histogram.h"

#include <jansson.h>
#include <stdint.h>

json_t *dp_json_u64(uint64_t value);
json_t *dp_json_real(double value);
/* {"name": "staleness", "upper": [0, 1, 3, null], "counts": [5, 0, 2, 0]}; null: no bound. */
json_t *dp_json_histogram(const struct dp_histogram *histogram);
/* Set the key; a real that is not finite: nothing. */
void dp_json_set_u64(json_t *object, const char *key, uint64_t value);
void dp_json_set_real(json_t *object, const char *key, double value);
/* 0, of what jansson's integers hold, and NaN where the key is missing or holds no such number. */
uint64_t dp_json_get_u64(const json_t *object, const char *key);
double dp_json_get_real(const json_t *object, const char *key);

#endif

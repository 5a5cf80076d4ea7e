#include "common/base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

json_t *dp_json_u64(uint64_t value)
{
    char text[24];
    if (value <= INT64_MAX)
        return json_integer((json_int_t)value);
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

json_t *dp_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *dp_json_histogram(const struct dp_histogram *histogram)
{
    json_t *upper = json_array(), *counts = json_array();
    for (uint32_t b = 0; b < histogram->buckets; b++) {
        (void)json_array_append_new(upper, dp_json_real(histogram->upper[b]));
        (void)json_array_append_new(counts, dp_json_u64(histogram->count[b]));
    }
    return json_pack("{s:s, s:o, s:o}", "name", histogram->name, "upper", upper, "counts", counts);
}

void dp_json_set_u64(json_t *object, const char *key, uint64_t value)
{
    (void)json_object_set_new(object, key, dp_json_u64(value));
}

void dp_json_set_real(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        (void)json_object_set_new(object, key, json_real(value));
}

uint64_t dp_json_get_u64(const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));
    return number > 0 ? (uint64_t)number : 0;
}

double dp_json_get_real(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

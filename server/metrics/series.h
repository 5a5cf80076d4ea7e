/* Series: numbers in Prometheus's text format, version 0.0.4.
 *     family -> its samples -> the next family ...
 * Promise   A family's lines stand together. A label's value is escaped, whatever its bytes are.
 * Thread    Any: plain functions. */
#ifndef DP_METRICS_SERIES_H
#define DP_METRICS_SERIES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define DP_SERIES_TYPE "text/plain; version=0.0.4; charset=utf-8"

#define DP_SERIES_WORD 24

struct dp_label {
    const char *name, *value;
};

/* type: "counter", "gauge" or "histogram". */
void dp_series_family(FILE *to, const char *name, const char *type, const char *help);
/* labels end with a name NULL; NULL: none. suffix: "", "_bucket", "_sum", "_count". */
void dp_series_u64(FILE *to, const char *name, const char *suffix, const struct dp_label *labels,
                   uint64_t value);
void dp_series_real(FILE *to, const char *name, const char *suffix, const struct dp_label *labels,
                    double value);
/* "STEP" as "step", for a label. Returns out, "" where the text is NULL, too long, or has other than letters
 * and _. */
const char *dp_series_word(const char *text, char out[DP_SERIES_WORD]);

#endif

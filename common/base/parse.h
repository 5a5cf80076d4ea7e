/* Parse: numbers from a person's text (flags, files), the complete string or nothing.
 * `what` names the flag or key in the message. */
#ifndef DP_BASE_PARSE_H
#define DP_BASE_PARSE_H

#include "common/base/status.h"

#include <stdint.h>

enum dp_status dp_parse_u64(const char *text, uint64_t min, uint64_t max, const char *what, uint64_t *out,
                            struct dp_error *err);
/* Finite only. */
enum dp_status dp_parse_f64(const char *text, double min, double max, const char *what, double *out,
                            struct dp_error *err);
/* A time with its unit, "20ms", "1.5s", "250us": 0 .. max_ns. 0 needs none. */
enum dp_status dp_parse_time(const char *text, uint64_t max_ns, const char *what, uint64_t *out_ns,
                             struct dp_error *err);
/* Bytes with an optional unit: "4096", "64KiB", "512MiB", "4GiB" (and KB, MB, GB: powers of 1,000). */
enum dp_status dp_parse_bytes(const char *text, const char *what, uint64_t *out, struct dp_error *err);

#endif

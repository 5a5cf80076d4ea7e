#include "common/base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum dp_status dp_parse_u64(const char *text, uint64_t min, uint64_t max, const char *what, uint64_t *out,
                            struct dp_error *err)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (!end || *end != '\0' || errno != 0 || v < min || v > max)
        return dp_fail(err, DP_ARGUMENT, "%s: '%.64s' is not an integer from %" PRIu64 " to %" PRIu64, what,
                       text, min, max);
    *out = v;
    return DP_OK;
}

enum dp_status dp_parse_f64(const char *text, double min, double max, const char *what, double *out,
                            struct dp_error *err)
{
    char *end = NULL;
    errno = 0;
    double v = text[0] != '\0' && !isspace((unsigned char)text[0]) ? strtod(text, &end) : 0;
    if (!end || end == text || *end != '\0' || !isfinite(v) || v < min || v > max)
        return dp_fail(err, DP_ARGUMENT, "%s: '%.64s' is not a number from %g to %g", what, text, min, max);
    *out = v;
    return DP_OK;
}

enum dp_status dp_parse_bytes(const char *text, const char *what, uint64_t *out, struct dp_error *err)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"KiB", 1ull << 10},
                 {"MiB", 1ull << 20},
                 {"GiB", 1ull << 30},
                 {"TiB", 1ull << 40},
                 {"KB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"TB", 1000000000000}};
    char *end = NULL;
    errno = 0;
    unsigned long long v = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    for (size_t i = 0; end && errno == 0 && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].unit) == 0 && v <= UINT64_MAX / units[i].bytes) {
            *out = v * units[i].bytes;
            return DP_OK;
        }
    return dp_fail(err, DP_ARGUMENT, "%s: '%.64s' is not a size such as 4096, 64MiB or 4GiB", what, text);
}

enum dp_status dp_parse_time(const char *text, uint64_t max_ns, const char *what, uint64_t *out_ns,
                             struct dp_error *err)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"", 0}};
    char *end = NULL;
    errno = 0;
    double v = isdigit((unsigned char)text[0]) ? strtod(text, &end) : 0;
    bool plain = end == text + strspn(text, "0123456789."); /* no exponent, no hexadecimal digits */
    for (size_t i = 0; plain && errno == 0 && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].unit) == 0 && v * units[i].ns <= (double)max_ns &&
            (v == 0 || units[i].ns > 0)) {
            *out_ns = (uint64_t)(v * units[i].ns + 0.5);
            return DP_OK;
        }
    return dp_fail(err, DP_ARGUMENT,
                   "%s: '%.64s' is not a time with a unit, such as 20ms, 1.5s or 250us, of %g s at most",
                   what, text, (double)max_ns / 1e9);
}

#include "server/metrics/series.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void put_escaped(FILE *to, const char *text, bool quotes)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\\')
            (void)fputs("\\\\", to);
        else if (*p == '\n')
            (void)fputs("\\n", to);
        else if (*p == '"' && quotes)
            (void)fputs("\\\"", to);
        else
            (void)fputc(*p, to);
    }
}

void dp_series_family(FILE *to, const char *name, const char *type, const char *help)
{
    (void)fprintf(to, "# HELP %s ", name);
    put_escaped(to, help, false);
    (void)fprintf(to, "\n# TYPE %s %s\n", name, type);
}

static void put_name(FILE *to, const char *name, const char *suffix, const struct dp_label *labels)
{
    (void)fprintf(to, "%s%s", name, suffix);
    for (uint32_t i = 0; labels && labels[i].name; i++) {
        (void)fprintf(to, "%s%s=\"", i ? "," : "{", labels[i].name);
        put_escaped(to, labels[i].value, true);
        (void)fputc('"', to);
    }
    (void)fputs(labels && labels[0].name ? "} " : " ", to);
}

void dp_series_u64(FILE *to, const char *name, const char *suffix, const struct dp_label *labels,
                   uint64_t value)
{
    put_name(to, name, suffix, labels);
    (void)fprintf(to, "%" PRIu64 "\n", value);
}

void dp_series_real(FILE *to, const char *name, const char *suffix, const struct dp_label *labels,
                    double value)
{
    put_name(to, name, suffix, labels);
    if (isfinite(value))
        (void)fprintf(to, "%.15g\n", value);
    else
        (void)fputs(isnan(value) ? "NaN\n" : value > 0 ? "+Inf\n" : "-Inf\n", to);
}

const char *dp_series_word(const char *text, char out[DP_SERIES_WORD])
{
    size_t length = text ? strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") : 0;
    bool word = text && length < DP_SERIES_WORD && !text[length];
    for (size_t i = 0; word && i < length; i++)
        out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
    out[word ? length : 0] = '\0';
    return out;
}

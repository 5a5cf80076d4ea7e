#include "deploy/compare/compare_csv.h"

#include "deploy/compare/ending.h"
#include "deploy/pages/training.h"

#include <math.h>
#include <string.h>

#define METRICS_MAX 32u

static void put_text(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++)
        fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', to);
}

static void put_number(FILE *to, double value)
{
    fputc(',', to);
    if (isfinite(value))
        fprintf(to, "%.10g", value);
}

static void put_run(FILE *to, const json_t *run)
{
    put_text(to, dp_training_text(run, "mode"));
    fprintf(to, ",%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(run, "seed")));
}

/* ---- curves */

static bool is_of_time(const char *key)
{
    static const char *const keys[] = {"seconds", "examples", "pushes", "at", "by"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* All keys that any sample has, in the order in which they are found. */
static size_t metrics_of(const json_t *root, const char *metric[METRICS_MAX])
{
    size_t count = 0, s;
    json_t *sample, *value;
    const char *key;
    for (size_t r = 0; r < dp_comparison_runs(root); r++)
        json_array_foreach(json_object_get(dp_comparison_run(root, r), "samples"), s, sample)
            json_object_foreach(sample, key, value)
        {
            bool known = is_of_time(key) || count == METRICS_MAX;
            for (size_t i = 0; i < count; i++)
                known |= strcmp(key, metric[i]) == 0;
            if (!known)
                metric[count++] = key;
        }
    return count;
}

void dp_compare_csv_curves(FILE *to, const void *root)
{
    const char *metric[METRICS_MAX];
    size_t count = metrics_of(root, metric), s;
    json_t *sample;
    fputs("mode,seed,by,seconds,examples,pushes", to);
    for (size_t i = 0; i < count; i++) {
        fputc(',', to);
        put_text(to, metric[i]);
    }
    fputc('\n', to);
    for (size_t r = 0; r < dp_comparison_runs(root); r++)
        json_array_foreach(json_object_get(dp_comparison_run(root, r), "samples"), s, sample)
        {
            put_run(to, dp_comparison_run(root, r));
            fputc(',', to);
            put_text(to, dp_training_text(sample, "by"));
            put_number(to, dp_training_number(sample, "seconds", NULL));
            put_number(to, dp_training_number(sample, "examples", NULL));
            put_number(to, dp_training_number(sample, "pushes", NULL));
            for (size_t i = 0; i < count; i++)
                put_number(to, dp_training_number(sample, metric[i], NULL));
            fputc('\n', to);
        }
}

/* ---- runs */

void dp_compare_csv_runs(FILE *to, const void *root)
{
    const char *metric = dp_comparison_metric(root);
    fputs("mode,seed,status,error,metric", to);
    for (int q = 0; q < DP_QUANTITIES; q++)
        fprintf(to, ",%s",
                q == DP_QUANTITY_METRIC ? "value"
                                        : dp_comparison_quantity_key((enum dp_comparison_quantity)q));
    fputs(",rate,batch,workers,wall_seconds,staleness_mean,staleness_max,dropped_examples\n", to);
    for (size_t r = 0; r < dp_comparison_runs(root); r++) {
        const json_t *run = dp_comparison_run(root, r), *report = json_object_get(run, "report");
        put_run(to, run);
        fputc(',', to);
        put_text(to, dp_ending_status(root, run));
        fputc(',', to);
        put_text(to, dp_training_text(run, "error"));
        fputc(',', to);
        put_text(to, metric);
        for (int q = 0; q < DP_QUANTITIES; q++)
            put_number(to, dp_comparison_value(root, run, (enum dp_comparison_quantity)q));
        put_number(to, dp_training_number(report, "settings", "rate", NULL));
        put_number(to, dp_training_number(report, "settings", "batch", NULL));
        put_number(to, dp_training_number(report, "settings", "workers", NULL));
        put_number(to, dp_training_number(run, "wall_seconds", NULL));
        put_number(to, dp_training_number(report, "staleness", "mean", NULL));
        put_number(to, dp_training_number(report, "staleness", "max", NULL));
        put_number(to, dp_training_number(report, "dropped", "examples", NULL));
        fputc('\n', to);
    }
}

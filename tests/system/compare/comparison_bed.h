/* A comparison of two modes, made in memory: run by run, each with samples at 1, 2, ... seconds and 100, 200, ... examples. */
#ifndef DP_TESTS_SYSTEM_COMPARE_COMPARISON_BED_H
#define DP_TESTS_SYSTEM_COMPARE_COMPARISON_BED_H

#include <jansson.h>
#include <math.h>
#include <stddef.h>

static inline json_t *bed_comparison(int seeds)
{
    json_t *root = json_pack(
        "{s:s, s:i, s:b, s:{s:s, s:i, s:i, s:s, s:b, s:{s:s, s:f, s:s}}, s:[{s:s, s:s, s:s, s:i, s:s}, {s:s, "
        "s:s, s:s, s:i, s:s}], s:[]}",
        "kind", "comparison", "format", 1, "finished", 1, "settings", "model", "mlp:4-2", "workers", 4,
        "servers", 1, "metric", "accuracy", "higher_is_better", 1, "target", "metric", "accuracy", "value",
        0.9, "chosen", "given", "modes", "name", "async", "consistency", "async", "work", "fixed", "threads",
        1, "promise", "No one <waits>.", "name", "sync", "consistency", "sync", "work", "fixed", "threads", 1,
        "promise", "All wait.", "runs");
    json_t *list = json_array();
    for (int s = 1; s <= seeds; s++)
        (void)json_array_append_new(list, json_integer(s));
    (void)json_object_set_new(json_object_get(root, "settings"), "seeds", list);
    return root;
}

/* NaN: null, as of weights that diverged. rate: examples/s. */
static inline void bed_add(json_t *root, const char *mode, int seed, const double *accuracy, size_t count,
                           double rate)
{
    json_t *samples = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_pack("{s:i, s:i, s:f}", "seconds", (int)i + 1, "examples", 100 * ((int)i + 1),
                                "loss", 1.0 / (double)(i + 1));
        (void)json_object_set_new(one, "accuracy", isnan(accuracy[i]) ? json_null() : json_real(accuracy[i]));
        (void)json_array_append_new(samples, one);
    }
    (void)json_array_append_new(json_object_get(root, "runs"),
                                json_pack("{s:s, s:i, s:s, s:s, s:s, s:{s:{s:i}, s:{s:f, s:f}}, s:o}", "mode",
                                          mode, "seed", seed, "dir", "runs/x", "status", "ok", "error", "",
                                          "report", "settings", "batch", 10, "throughput", "examples_per_s",
                                          rate, "seconds", 4.0, "samples", samples));
}

static inline void bed_fail(json_t *root, const char *mode, int seed, const char *why)
{
    (void)json_array_append_new(json_object_get(root, "runs"),
                                json_pack("{s:s, s:i, s:s, s:s, s:s}", "mode", mode, "seed", seed, "dir", "",
                                          "status", "failed", "error", why));
}

#endif

#include "deploy/compare/compare_work.h"

#include "common/base/json.h"
#include "deploy/compare/comparison.h"

#include <math.h>
#include <stdlib.h>

static double of_run(const json_t *run, const char *key)
{
    return dp_comparison_is_good(run) ? dp_json_get_real(run, key) : (double)NAN;
}

double dp_compare_mode_mean(const json_t *root, size_t mode, const char *key)
{
    double sum = 0, n = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        double one = of_run(dp_comparison_run_of(root, mode, s), key);
        sum += isfinite(one) ? one : 0;
        n += isfinite(one);
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* A sum over a mode's runs that ended well of a number in their reports: "applied", "examples". */
static double sum_of(const json_t *root, size_t mode, const char *object, const char *key)
{
    double sum = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        double one = dp_json_get_real(json_object_get(json_object_get(run, "report"), object), key);
        sum += dp_comparison_is_good(run) && isfinite(one) ? one : 0;
    }
    return sum;
}

double dp_compare_examples_share(const json_t *root, size_t mode, const char *object, const char *key)
{
    double planned = sum_of(root, mode, "applied", "planned");
    return planned > 0 ? sum_of(root, mode, object, key) / planned : (double)NAN;
}

const char *dp_compare_share_text(double share, char out[16])
{
    (void)snprintf(out, 16, isfinite(share) ? "%.0f%%" : "-", 100 * share);
    return out;
}

/* ---- words */

char *dp_compare_words_efficiency(const json_t *root)
{
    char *text = NULL;
    size_t size = 0, told = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        double mean = dp_compare_mode_mean(root, m, "efficiency");
        if (isfinite(mean))
            fprintf(to, "%s%s %.0f%%",
                    told++ ? ", " : "Of the speed that the injected delays allow, runs reached: ",
                    dp_comparison_mode(root, m), 100 * fmin(mean, 1));
    }
    if (told)
        fputs(".", to);
    (void)fclose(to);
    return text;
}

static void warn_slow(const json_t *root, FILE *to)
{
    const json_t *worst = NULL;
    size_t low = 0;
    double least = INFINITY;
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        double one = of_run(dp_comparison_run(root, i), "efficiency");
        low += one < DP_COMPARE_EFFICIENT;
        if (one < least) {
            least = one;
            worst = dp_comparison_run(root, i);
        }
    }
    if (low == 0)
        return;
    fprintf(to, "%zu of %zu runs came to less than %.0f%% of the speed that their delays allow%s: ", low,
            dp_comparison_runs(root), 100 * DP_COMPARE_EFFICIENT, low > 1 ? "; the worst" : "");
    fprintf(to, "%s with seed %.0f took %.2f times its least time. ",
            json_string_value(json_object_get(worst, "mode")), dp_json_get_real(worst, "seed"), 1 / least);
    fputs("The rest went into computing, servers and waiting for a processor, so times depend on this "
          "machine; with leased work also into leases of a slow worker. ",
          to);
}

/* With delays workers sleep, and their efficiency says whether the processors sufficed. */
static void warn_crowded(const json_t *root, FILE *to)
{
    const json_t *modes = json_object_get(root, "modes");
    double cores = dp_json_get_real(json_object_get(root, "machine"), "cores");
    size_t told = 0;
    for (size_t m = 0; m < json_array_size(modes); m++) {
        double workers = dp_json_get_real(json_array_get(modes, m), "workers");
        if (!(workers > cores) || isfinite(dp_compare_mode_mean(root, m, "efficiency")))
            continue;
        fprintf(to, "%s%s", told++ ? ", " : "More workers than this machine has processors: ",
                dp_comparison_mode(root, m));
    }
    if (told)
        fputs(". Their times are not those of workers on machines of their own. ", to);
}

static void warn_busy(const json_t *root, FILE *to)
{
    const json_t *most = NULL;
    double load = dp_json_get_real(json_object_get(dp_comparison_run(root, 0), "machine"), "load"),
           steal = 0.02;
    bool tried = json_array_size(json_object_get(json_object_get(root, "settings"), "grid_seeds")) > 0;
    if (load > 1 && !tried) /* the load after the tries of --lr-grid is theirs */
        fprintf(to, "The machine was busy when the comparison began (load %.1f). ", load);
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        double one = dp_json_get_real(json_object_get(dp_comparison_run(root, i), "machine"), "steal_share");
        if (one > steal) {
            steal = one;
            most = dp_comparison_run(root, i);
        }
    }
    if (most)
        fprintf(to, "Its host gave up to %.0f%% of its processor time to others (%s with seed %.0f). ",
                100 * steal, json_string_value(json_object_get(most, "mode")),
                dp_json_get_real(most, "seed"));
}

char *dp_compare_words_machine(const json_t *root)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    warn_slow(root, to);
    warn_crowded(root, to);
    warn_busy(root, to);
    (void)fclose(to);
    while (text && size > 0 && text[size - 1] == ' ')
        text[--size] = '\0';
    return text;
}

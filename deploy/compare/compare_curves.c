#include "deploy/compare/compare_curves.h"

#include "deploy/pages/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS    DP_COMPARE_CURVE_POINTS
#define SEEDS_MAX 99u

/* The samples of one run that are in its curve. */
struct course {
    size_t count;
    double *x, *y;
};

static void take_course(struct course *to, const json_t *samples, const char *key, const char *over)
{
    size_t count = json_array_size(samples);
    bool by_examples = strcmp(over, "examples") == 0;
    *to = (struct course){.x = calloc(2 * count + 1, sizeof *to->x)};
    to->y = to->x + count;
    for (size_t i = 0; to->x && i < count; i++) {
        const json_t *sample = json_array_get(samples, i);
        if (by_examples && dp_comparison_is_left_out(samples, i))
            continue;
        to->x[to->count] = dp_training_number(sample, over, NULL);
        to->y[to->count++] = dp_training_number(sample, key, NULL);
    }
}

/* On the straight line between the samples around x; past the last one, its value. NaN: before the first one, or where one is none. */
static double value_at(const struct course *c, double x)
{
    size_t i = 0;
    while (i < c->count && !(c->x[i] > x))
        i++;
    if (i == 0)
        return (double)NAN;
    double before = c->y[i - 1];
    return i < c->count ? before + (c->y[i] - before) * (x - c->x[i - 1]) / (c->x[i] - c->x[i - 1]) : before;
}

static void set_point(struct dp_compare_curves *c, size_t mode, size_t point, const struct dp_interval *all)
{
    c->mode[mode].y[point] = all->mean;
    c->mode[mode].low[point] = all->low;
    c->mode[mode].high[point] = all->high;
    c->mode[mode].known += isfinite(all->mean) != 0;
}

static void fill_mode(struct dp_compare_curves *c, size_t mode, const struct course *course, size_t runs,
                      const struct dp_scale *scale, double end)
{
    for (size_t i = 0; i < POINTS; i++) {
        struct dp_comparison_span at[SEEDS_MAX];
        bool past = c->x[i] > end && i > 0 && c->x[i - 1] >= end;
        for (size_t r = 0; r < runs; r++) {
            double value = past ? (double)NAN : value_at(&course[r], c->x[i]);
            at[r] = (struct dp_comparison_span){.low = value, .at = value, .high = value};
        }
        struct dp_interval all = dp_interval_on(scale, at, runs);
        set_point(c, mode, i, &all);
    }
}

/* Of the good runs of a mode; returns of how many. end: of the longest. */
static size_t take_courses(struct course *course, const json_t *root, size_t mode, const char *key,
                           const char *over, double *end)
{
    size_t runs = 0;
    *end = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root) && runs < SEEDS_MAX; s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        if (dp_comparison_outcome(root, run) != DP_COMPARISON_GOOD)
            continue;
        struct course *one = &course[runs++];
        take_course(one, json_object_get(run, "samples"), key, over);
        if (one->count > 0 && isfinite(one->x[one->count - 1]))
            *end = fmax(*end, one->x[one->count - 1]);
    }
    return runs;
}

struct dp_compare_curves *dp_compare_curves_make(const json_t *root, const char *key, const char *over)
{
    struct dp_compare_curves *c = calloc(1, sizeof *c);
    struct course(*courses)[SEEDS_MAX] = calloc(DP_COLOUR_MODES_MAX, sizeof *courses);
    const struct dp_scale scale = dp_scale_of_metric(root, key);
    double end[DP_COLOUR_MODES_MAX];
    size_t runs[DP_COLOUR_MODES_MAX], modes = dp_comparison_modes(root);
    modes = c && courses ? (modes < DP_COLOUR_MODES_MAX ? modes : DP_COLOUR_MODES_MAX) : 0;
    for (size_t m = 0; m < modes; m++) {
        runs[m] = take_courses(courses[m], root, m, key, over, &end[m]);
        c->end = fmax(c->end, end[m]);
    }
    for (size_t i = 0; modes > 0 && i < POINTS;
         i++) /* by the formula the last may be rounded to below the last sample */
        c->x[i] = i + 1 < POINTS ? c->end * (double)i / (POINTS - 1) : c->end;
    for (size_t m = 0; m < modes; m++) {
        fill_mode(c, m, courses[m], runs[m], &scale, end[m]);
        for (size_t r = 0; r < runs[m]; r++)
            free(courses[m][r].x);
    }
    free(courses);
    return c;
}

/* Known where all good runs reached it, and none before its second sample: when is not known then. */
static void fill_to_loss(struct dp_compare_curves *c, const json_t *root, size_t mode, size_t point)
{
    const struct dp_scale scale = {.examples = NAN};
    struct dp_comparison_span to[SEEDS_MAX];
    size_t n = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root) && n < SEEDS_MAX; s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        if (dp_comparison_outcome(root, run) != DP_COMPARISON_GOOD)
            continue;
        to[n] = dp_comparison_seconds_to_loss(run, c->x[point]);
        to[n].at = to[n].low > 0 ? to[n].at : (double)NAN;
        n++;
    }
    struct dp_interval all = dp_interval_on(&scale, to, n);
    set_point(c, mode, point,
              all.n == n ? &all : &(struct dp_interval){.mean = NAN, .low = NAN, .high = NAN});
}

struct dp_compare_curves *dp_compare_curves_to_loss(const json_t *root)
{
    struct dp_compare_curves *c = dp_compare_curves_make(root, "loss", "seconds");
    double least = INFINITY;
    if (!c)
        return NULL;
    c->end = INFINITY;
    for (size_t m = 0; m < DP_COLOUR_MODES_MAX; m++) {
        for (size_t i = 0; c->mode[m].known > 0 && i < POINTS; i++)
            least = fmin(least, c->mode[m].y[i]);
        c->end = c->mode[m].known > 0 ? fmin(c->end, c->mode[m].y[0]) : c->end;
        c->mode[m].known = 0;
    }
    for (size_t i = 0; least < c->end && i < POINTS; i++) {
        c->x[i] = least * pow(c->end / least, (double)i / POINTS); /* below the end */
        for (size_t m = 0; m < dp_comparison_modes(root) && m < DP_COLOUR_MODES_MAX; m++)
            fill_to_loss(c, root, m, i);
    }
    return c;
}

void dp_compare_curves_free(struct dp_compare_curves *curves)
{
    free(curves);
}

void dp_compare_curves_flip(struct dp_compare_curves *curves)
{
    for (size_t m = 0; m < DP_COLOUR_MODES_MAX; m++)
        for (size_t i = 0; i < POINTS; i++) {
            double low = curves->mode[m].low[i];
            curves->mode[m].y[i] = 1 - curves->mode[m].y[i];
            curves->mode[m].low[i] = 1 - curves->mode[m].high[i];
            curves->mode[m].high[i] = 1 - low;
        }
}

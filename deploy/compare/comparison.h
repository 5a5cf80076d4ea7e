/* Comparison: DIR/report.json of `downpour compare`, read and checked once (its format: deploy/compare/README.md).
 * Promise   Nothing is made up: a figure that is missing, of another type or not finite is NaN. A comparison that is not finished, and runs
 *           that failed, are read like others.
 * Memory    read fills a struct of {0}; clear frees it.
 * Failure   DP_NOT_FOUND: it is not there. DP_DATA: it is damaged, of another format, or not a comparison.
 *           Each names the file. */
#ifndef DP_COMPARE_COMPARISON_H
#define DP_COMPARE_COMPARISON_H

#include "common/config/cluster.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_COMPARISON_MODES_MAX 64u
#define DP_COMPARISON_SEEDS_MAX 99u

struct dp_comparison {
    char directory[DP_PATH_MAX + 1], path[DP_PATH_MAX + 1];
    json_t *root;
};

/* Whether the report of this directory is a comparison's; a damaged one, or none, is not. */
bool dp_comparison_is(const char *directory);
enum dp_status dp_comparison_read(const char *directory, struct dp_comparison *out, struct dp_error *err);
/* name: of the directory, or of its report, wherever that lies: the directory is then "". */
enum dp_status dp_comparison_read_report(const char *name, struct dp_comparison *out, struct dp_error *err);
void dp_comparison_clear(struct dp_comparison *comparison);

/* ---- what is in it; root: of a comparison */

const json_t *dp_comparison_settings(const json_t *root);
/* At most DP_COMPARISON_MODES_MAX, and DP_COMPARISON_SEEDS_MAX seeds: what has more is refused. */
size_t dp_comparison_modes(const json_t *root);
const json_t *dp_comparison_mode_object(const json_t *root, size_t mode);
const char *dp_comparison_mode(const json_t *root, size_t mode); /* its name */
size_t dp_comparison_runs(const json_t *root);
const json_t *dp_comparison_run(const json_t *root, size_t run);
/* The run of this mode with the seed number `seed` of the settings (0 is the first), whether it was good or not; NULL: there is none. */
const json_t *dp_comparison_run_of(const json_t *root, size_t mode, size_t seed);
size_t dp_comparison_seeds(const json_t *root);
/* Seeds with which the mode was trained: a comparison may end before the others. */
size_t dp_comparison_tried(const json_t *root, size_t mode);
/* The next run of this mode that was trained to its end, from seed number *seed on, which is then the one after it; NULL: there is none. */
const json_t *dp_comparison_next_trained(const json_t *root, size_t mode, size_t *seed);
/* The same of runs whose outcome is good. */
const json_t *dp_comparison_next_good(const json_t *root, size_t mode, size_t *seed);
bool dp_comparison_is_good(
    const json_t *run); /* not NULL, and trained to its end; its ending says if it diverged */
/* The value that all runs trained to their end have under these keys of their reports ("settings", "batch"); NULL: they differ. */
const json_t *dp_comparison_common(const json_t *root, const char *part, const char *key);
/* What is compared, by its key in samples: "accuracy"; "": no run has left a sample. */
const char *dp_comparison_metric(const json_t *root);
/* The same for the tries of --lr-grid, which are scored on another set. */
const char *dp_comparison_grid_metric(const json_t *root);
/* The mean metric of the tries of a mode with this rate; NaN: there is none, or one of them has none. */
double dp_comparison_grid_mean(const json_t *root, size_t mode, double rate);
bool dp_comparison_higher_is_better(const json_t *root);

/* What a run comes to. */
enum dp_comparison_quantity {
    DP_QUANTITY_METRIC, /* of its last weights, on the scored set */
    DP_QUANTITY_LOSS,   /* the same */
    DP_QUANTITY_SECONDS_TO, /* the target: where the line between two samples crosses it, in seconds of training */
    DP_QUANTITY_EXAMPLES_TO, /* the same in examples of applied gradients */
    DP_QUANTITY_EXAMPLES_S,  /* examples whose gradients were applied, a second of training */
    DP_QUANTITY_BATCHES_S,   /* the same in minibatches: those examples by the size of a minibatch */
    DP_QUANTITY_SECONDS,     /* of training */
    DP_QUANTITIES
};
const char *dp_comparison_quantity_key(enum dp_comparison_quantity quantity); /* in "statistics" */
/* What was measured lies in between; of a target: its last sample below, its first that is there. */
struct dp_comparison_span {
    double low, at, high;
};
/* NaN: the run has none: it failed, its weights are not finite, or it did not reach the target. */
struct dp_comparison_span dp_comparison_span(const json_t *root, const json_t *run,
                                             enum dp_comparison_quantity quantity);
/* Seconds of training to a loss; NaN: the run did not reach it. */
struct dp_comparison_span dp_comparison_seconds_to_loss(const json_t *run, double loss);
/* Where there are samples by examples, those by time are left out of what goes by examples, and of the target: a slow training has more of
 * them, so it would cross a target by chance sooner. The first and the last sample are those of the weights before and after the training. */
bool dp_comparison_is_left_out(const json_t *samples, size_t i);
double dp_comparison_value(const json_t *root, const json_t *run, enum dp_comparison_quantity quantity);

/* ---- how a run ended
 *     diverged  It says so itself ("diverged" of the run), or it was trained to its end and its last weights are not finite, are worse than
 *               the baseline (the best constant, which is in the run's report), or are worse than those that it began with.
 *     failed    All other bad ends, and a run whose weights were not scored.
 * Promise   A run that diverged is a result: it did not reach the target, and ranks last at the end. No mode
 *           with such a run, or with one that failed, is compared by its other runs (claims.h).
 * Margin    A baseline of another set than the scored one, and a first sample of weights that had been
 *           trained already, are passed by 5% before they count. */

enum dp_comparison_outcome { DP_COMPARISON_GOOD, DP_COMPARISON_DIVERGED, DP_COMPARISON_FAILED };

/* What shows a divergence. */
enum dp_ending_sign {
    DP_ENDING_NONE,
    DP_ENDING_STOPPED,    /* the run says so; its error, if any, says how */
    DP_ENDING_NOT_FINITE, /* of the last sample */
    DP_ENDING_BASELINE,   /* `end` is worse than `reference`, that of the best constant */
    DP_ENDING_BEGIN       /* `end` is not better than `reference`, that of the first sample */
};

struct dp_ending {
    enum dp_comparison_outcome outcome;
    enum dp_ending_sign sign;
    double end, reference; /* the metric; NaN: there is none */
};

/* root: of the comparison; run NULL: it failed. */
struct dp_ending dp_ending_of(const json_t *root, const json_t *run);
enum dp_comparison_outcome dp_comparison_outcome(const json_t *root, const json_t *run);
/* "ok", "diverged", "failed" */
const char *dp_ending_status(const json_t *root, const json_t *run);
/* Runs of a mode that ended so. */
size_t dp_ending_count(const json_t *root, size_t mode, enum dp_comparison_outcome outcome);
/* All runs of the mode that there are ended well, and there is one. */
bool dp_ending_is_whole(const json_t *root, size_t mode);
/* The metric of the best constant, by a run's report; NaN: it is not there. is_scored: of the set on which samples are scored. */
double dp_ending_baseline(const json_t *root, const json_t *run, bool *is_scored);

#endif

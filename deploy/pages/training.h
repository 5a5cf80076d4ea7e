/* Training: the report of one training, as pages show it.
 * Promise   Nothing is made up: a figure that is missing, of another type or not finite is NaN, and has no
 *           place in a page.
 * Memory    read fills a struct of {0}; clear frees it.
 * Failure   DP_NOT_FOUND: the directory or the report is not there. DP_DATA: it is damaged, or is no report.
 *           Each names the file. */
#ifndef DP_PAGES_TRAINING_H
#define DP_PAGES_TRAINING_H

#include "common/config/cluster.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct dp_training {
    char directory[DP_PATH_MAX + 1], path[DP_PATH_MAX + 1]; /* of the run; of the report */
    json_t *report;
    json_t *origin; /* how the run was begun (deploy/run/run_provenance.h), or NULL */
    uint32_t begun; /* the number of the run that its cluster file is of; 0: not known */
    time_t written;
    const json_t *epochs; /* of the report */
    size_t count;
    double *number,
        *time; /* [count]: of each epoch; seconds of training up to its end, NaN where some epoch has none */
};

enum dp_status dp_training_read(const char *directory, struct dp_training *out, struct dp_error *err);
void dp_training_clear(struct dp_training *training);

/* Any report, of at most so many bytes. */
enum dp_status dp_training_load(const char *path, off_t max, json_t **out, struct dp_error *err);
/* The number at a path of keys, such as "throughput", "seconds"; NULL ends it. NaN: there is none. */
double dp_training_number(const json_t *root, ...) __attribute__((sentinel));
/* "" where there is none. */
const char *dp_training_text(const json_t *root, const char *key);

/* ---- metrics */

#define DP_TRAINING_METRICS_MAX 16u
struct dp_training_metric {
    char key[32];  /* "auc"; "recall@20", of items ranked among all */
    char name[32]; /* "AUC" */
    int digits;
};
/* Which metrics, the loss first, any epoch or the end has on any set. Returns how many. */
size_t dp_training_metrics(const struct dp_training *training,
                           struct dp_training_metric out[DP_TRAINING_METRICS_MAX]);
/* set: "train" (its loss only), "validation" or "test", of an epoch; NaN: it was not measured. */
double dp_training_metric(const json_t *epoch, const char *set, const char *key);

/* ---- time */

/* Kinds of a worker's time, in the order in which they are shown. */
enum dp_training_share {
    DP_SHARE_COMPUTE,
    DP_SHARE_DEVICE,
    DP_SHARE_READ,
    DP_SHARE_REQUESTS,
    DP_SHARE_PULL,
    DP_SHARE_PUSH,
    DP_SHARE_RULE,
    DP_SHARE_INJECTED,
    DP_SHARE_OTHER,
    DP_SHARES
};
const char *dp_training_share_name(enum dp_training_share share);
/* Seconds of each kind; kinds that this build does not know are in "other". false: there are none. */
bool dp_training_shares(const json_t *worker_or_report, double seconds[DP_SHARES]);

/* ---- distributions */

/* Counts by bucket. */
#define DP_TRAINING_BUCKETS_MAX 72u
struct dp_training_histogram {
    size_t count;
    double total, counts[DP_TRAINING_BUCKETS_MAX];
    char label[DP_TRAINING_BUCKETS_MAX][40]; /* "0", "4–7", "10–20" */
};
/* Staleness: an array of counts, of 0, 1, 2 to 3, 4 to 7, ... false: it is absent or empty. */
bool dp_training_staleness(const json_t *staleness, struct dp_training_histogram *out);
/* One with bounds ({"upper", "counts"}); percent: of shares, in %. */
bool dp_training_histogram(const json_t *histogram, bool percent, struct dp_training_histogram *out);
/* The bucket of the value that this share of all does not exceed. */
const char *dp_training_quantile(const struct dp_training_histogram *histogram, double share);

/* ---- its page (page_maker.h): findings, plots and their numbers, settings, and the command that makes it again */

/* Of the training in `directory`, as dp_training_read and dp_page_make. */
enum dp_status dp_training_make_page(const char *directory, const char *out, struct dp_error *err);

#endif

/* Status measures: the histograms of all shards' pushes as one, for people and for programs.
 * Thread    One. */
#ifndef DP_RUN_STATUS_MEASURES_H
#define DP_RUN_STATUS_MEASURES_H

#include "deploy/run/queries.h"

#include <jansson.h>
#include <stdio.h>

struct dp_status_measures {
    uint32_t count;
    struct dp_histogram all[DP_HISTOGRAMS_MAX];   /* since the shards opened */
    struct dp_histogram shown[DP_HISTOGRAMS_MAX]; /* since `earlier`, where that is known */
};

/* earlier: NULL, or those of a moment before. */
void dp_status_measures_gather(const struct dp_queries *asks, const struct dp_status_measures *earlier,
                               struct dp_status_measures *out);
/* A line for each that has counted something. */
void dp_status_measures_print(const struct dp_status_measures *measures, FILE *to);
json_t *dp_status_measures_json(const struct dp_status_measures *measures);
json_t *dp_status_measures_list(const struct dp_histogram *histogram, uint32_t count);

#endif

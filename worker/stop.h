/* Stop: whether a training ends with an epoch, by the figures of its validation set.
 *     rule (cluster file)  ->  judge(figures of epoch 1), judge(figures of epoch 2), ...
 * It ends when the goal is reached, or when `patience` epochs running were no better than the best before. The state is a
 * function of the figures judged, and small: workers hand it on (verdict.h). It may be known that a training went on after an
 * epoch, though its figures are lost: `epoch` is then above `judged`, and patience counts from the next one that is judged.
 *     learn(what another knows), in any order and as often as one likes: what is known does not grow less
 * Thread    Any: plain functions. */
#ifndef DP_WORKER_STOP_H
#define DP_WORKER_STOP_H

#include "common/config/cluster.h"
#include "common/config/goal.h"
#include "worker/compute/metrics.h"

struct dp_stop_rule {
    bool has_goal;
    struct dp_goal goal;
    uint32_t patience;     /* 0: none */
    enum dp_metric metric; /* that patience looks at */
};

enum dp_stop_why { DP_STOP_NO, DP_STOP_REACHED, DP_STOP_PATIENCE };

struct dp_stop {
    uint32_t epoch; /* the last whose verdict is known, counted from 1; 0: none */
    enum dp_stop_why why;
    uint32_t judged; /* the last whose figures are in what follows, `epoch` at most; 0: none */
    uint32_t lost;   /* the last one before it whose figures were known to nobody; 0: none */
    double value;    /* the goal's figure of `judged`, without a goal patience's */
    double best;     /* the best of patience's, or without patience the goal's, figures so far */
    uint32_t best_epoch;
    uint32_t
        kept; /* the epoch whose weights are kept beside the rows (keep.h), or are the last ones; 0: none */
};

/* Of a cluster that was checked. */
struct dp_stop_rule dp_stop_rule_of(const struct dp_cluster_training *training);
static inline bool dp_stop_looks(const struct dp_stop_rule *rule)
{
    return rule->has_goal || rule->patience > 0;
}
bool dp_stop_looks_at(const struct dp_stop_rule *rule, enum dp_metric metric);
/* What figures a set has beside the model's. */
struct dp_stop_set {
    uint64_t lists; /* that are ranked, each item among those of its list */
    bool ranked;    /* a rank set (read/rank_set.h), */
    bool all;       /* ranked among all items */
};
/* DP_ARGUMENT: a figure that this model, or this set, does not have. */
DP_MUST_USE
enum dp_status dp_stop_fits(const struct dp_stop_rule *rule, enum dp_labels labels,
                            const struct dp_stop_set *set, struct dp_error *err);
/* epoch: state->epoch + 1 or above. DP_DATA: the figure is NaN (one class is missing). */
DP_MUST_USE
enum dp_status dp_stop_judge(const struct dp_stop_rule *rule, struct dp_stop *state, uint32_t epoch,
                             const struct dp_figures *figures, struct dp_error *err);

/* DP_DATA: two verdicts on one epoch; state is as it was. */
DP_MUST_USE
enum dp_status dp_stop_learn(struct dp_stop *state, const struct dp_stop *other, struct dp_error *err);
/* Somebody has begun an epoch: the verdict on each one before it was to go on. Where another one is known here, nothing changes;
 * learning what he tells in his notes says so. */
void dp_stop_begun(struct dp_stop *state, uint32_t epoch);

#define DP_STOP_BYTES 44u
void dp_stop_pack(const struct dp_stop *state, unsigned char bytes[DP_STOP_BYTES]);
/* DP_DATA: these bytes are none. */
DP_MUST_USE
enum dp_status dp_stop_unpack(const void *bytes, size_t size, struct dp_stop *out, struct dp_error *err);

#define DP_STOP_TEXT_BYTES 192
/* "auc 0.81 reached 0.8" and the like; empty where it goes on. before: epochs of earlier runs, for the numbers shown. */
void dp_stop_text(const struct dp_stop_rule *rule, const struct dp_stop *state, uint32_t before,
                  char text[DP_STOP_TEXT_BYTES]);

#endif

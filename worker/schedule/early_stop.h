/* Early stopping: whether a training ends after an epoch, by the metrics of the set that is evaluated after
 * each.
 *     rule (cluster file)  ->  judge(metrics of epoch 1), judge(metrics of epoch 2), ...
 * It ends when the goal is reached, or when `patience` consecutive epochs were not better than the best one
 * before. The state is a function of the judged metrics. If the metrics of earlier epochs are lost, only
 * their number is set (best_epoch 0), and patience counts from the next epoch.
 * Thread    Any: plain functions. */
#ifndef DP_SCHEDULE_EARLY_STOP_H
#define DP_SCHEDULE_EARLY_STOP_H

#include "common/config/cluster.h"
#include "common/config/goal.h"
#include "worker/compute/metrics.h"

struct dp_early_stop_rule {
    bool has_goal;
    struct dp_goal goal;
    uint32_t patience;     /* 0: none */
    enum dp_metric metric; /* for patience */
};

enum dp_early_stop_why { DP_EARLY_STOP_NO, DP_EARLY_STOP_REACHED, DP_EARLY_STOP_PATIENCE };

struct dp_early_stop {
    uint32_t epoch; /* the last that was judged, counted from 1; 0: none */
    enum dp_early_stop_why why;
    double value; /* the goal's metric of `epoch`; without a goal that of patience */
    double best;  /* the best value so far of the metric of patience; without patience that of the goal */
    uint32_t best_epoch;
    uint32_t
        kept; /* the epoch whose weights are kept (coordinate/best_epoch.h), or that is the last one; 0: none */
};

/* training: of a checked cluster. */
struct dp_early_stop_rule dp_early_stop_rule_of(const struct dp_cluster_training *training);
static inline bool dp_early_stop_looks(const struct dp_early_stop_rule *rule)
{
    return rule->has_goal || rule->patience > 0;
}
/* The value of a metric; NaN: the set does not have it. */
double dp_early_stop_figure(const struct dp_figures *figures, enum dp_metric metric);
bool dp_early_stop_looks_at(const struct dp_early_stop_rule *rule, enum dp_metric metric);
/* The metrics that a set has besides those of the model. */
struct dp_early_stop_set {
    uint64_t lists; /* ranked lists, whose items are ranked among each other */
    bool ranked;    /* it is a rank set (read/rank_set.h) */
    bool all;       /* it is ranked among all items */
};
/* DP_ARGUMENT when this model or this set does not have a metric of the rule. */
enum dp_status dp_early_stop_fits(const struct dp_early_stop_rule *rule, enum dp_labels labels,
                                  const struct dp_early_stop_set *set, struct dp_error *err);
/* Judges the next epoch. The state does not say yet that the training ends (asserted). DP_DATA when a metric is NaN (one class is missing). */
enum dp_status dp_early_stop_judge(const struct dp_early_stop_rule *rule, struct dp_early_stop *state,
                                   const struct dp_figures *figures, struct dp_error *err);

#define DP_EARLY_STOP_TEXT_BYTES 192
/* The reason to stop, as "auc 0.81 has reached 0.8"; empty when the training continues. before: epochs of
 * earlier runs, added to the numbers shown. */
void dp_early_stop_text(const struct dp_early_stop_rule *rule, const struct dp_early_stop *state,
                        uint32_t before, char text[DP_EARLY_STOP_TEXT_BYTES]);

#endif

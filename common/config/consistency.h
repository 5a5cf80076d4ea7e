/* Consistency: the rule of a cluster file's `consistency`, "ssp:4" (common/model/mode.h), and the settings
 * that it excludes.
 * Thread    Any: plain functions. */
#ifndef DP_CONFIG_CONSISTENCY_H
#define DP_CONFIG_CONSISTENCY_H

#include "common/config/cluster.h"
#include "common/model/mode.h"

struct dp_cluster_rule {
    enum dp_consistency mode;
    uint32_t slack;
};

/* `what` names the setting in messages. DP_ARGUMENT lists the forms that there are, and names the one that was most likely meant. */
enum dp_status dp_cluster_rule_parse(const char *text, const char *what, struct dp_cluster_rule *out,
                                     struct dp_error *err);
/* The rule of a cluster that was checked. */
struct dp_cluster_rule dp_cluster_rule_of(const struct dp_cluster_training *training);
/* Whether its workers wait for each other. */
static inline bool dp_cluster_rule_waits(struct dp_cluster_rule rule)
{
    return dp_mode_of(rule.mode)->waits;
}
/* Whether servers apply a step of all workers at once. */
static inline bool dp_cluster_rule_by_step(struct dp_cluster_rule rule)
{
    return dp_mode_of(rule.mode)->by_step;
}
/* How many workers a step does not wait for. */
static inline uint32_t dp_cluster_rule_backups(struct dp_cluster_rule rule)
{
    return dp_mode_backups(rule.mode, rule.slack);
}

/* DP_ARGUMENT names what the rule does not go with. */
enum dp_status dp_cluster_rule_check(const struct dp_cluster *cluster, const struct dp_setting_names *names,
                                     struct dp_error *err);

#endif

/* Consistency: how far the workers of a run may be apart, as people write it: "async", "ssp:4", "sync", "sync:1".
 *     async   nobody waits for anybody
 *     ssp:S   a pull of step t waits until every worker has finished step t - S - 1 (stale synchronous
 *             parallel, Ho et al. 2013); a step is what a worker pushes together
 *     sync    the servers apply one step of all workers at a time, as their mean weighted by examples
 *     sync:B  the same, but a step does not wait for the slowest B workers: what they push of it later is
 *             dropped (backup workers, Chen et al. 2016)
 * Thread    Any: plain functions. */
#ifndef DP_CONFIG_CONSISTENCY_H
#define DP_CONFIG_CONSISTENCY_H

#include "common/config/cluster.h"

#define DP_CLUSTER_SLACK_MAX   1000000u
#define DP_CLUSTER_MEMBERS_MAX 1024u /* workers of a run that is not async */

enum dp_cluster_consistency { DP_CLUSTER_ASYNC, DP_CLUSTER_SSP, DP_CLUSTER_SYNC };

struct dp_cluster_rule {
    enum dp_cluster_consistency mode;
    uint32_t slack; /* S of ssp, B of sync; else 0 */
};

/* `what` names the setting in messages. DP_ARGUMENT lists the forms that there are, and names the one that was most likely meant. */
DP_MUST_USE
enum dp_status dp_cluster_rule_parse(const char *text, const char *what, struct dp_cluster_rule *out,
                                     struct dp_error *err);
/* The rule of a cluster that was checked. */
struct dp_cluster_rule dp_cluster_rule_of(const struct dp_cluster_training *training);
/* "ssp:4" */
#define DP_CLUSTER_RULE_BYTES 24u
const char *dp_cluster_rule_text(struct dp_cluster_rule rule, char out[DP_CLUSTER_RULE_BYTES]);

/* Over how many steps the minibatches of one fetch may lie. */
uint64_t dp_cluster_steps_of_fetch(const struct dp_cluster_training *training);
/* DP_ARGUMENT names what the rule does not go with. */
DP_MUST_USE
enum dp_status dp_cluster_rule_check(const struct dp_cluster *cluster, const struct dp_setting_names *names,
                                     struct dp_error *err);

#endif

/* Injection: delays that a user asks for, to compare consistency modes under stragglers on one machine.
 *     pace       "20ms": a minibatch takes at least this time
 *     jitter     by what the pace is multiplied, minibatch by minibatch; mean 1 (worker/loop/delays.h has the formula):
 *                exp: the exponential distribution; uniform: 0 .. 2
 *     straggler  "3:10x,1:50ms": worker 3's minibatches take 10 times as long, worker 1's 50 ms longer
 * Thread    Any: plain functions. */
#ifndef DP_CONFIG_INJECTION_H
#define DP_CONFIG_INJECTION_H

#include "common/config/cluster.h"

#define DP_INJECTION_PACE_MAX_NS   UINT64_C(60000000000)
#define DP_INJECTION_LONGER_MAX_NS UINT64_C(600000000000) /* of the mean minibatch as a whole, too */
#define DP_INJECTION_TIMES_MAX     1000

/* What one worker is slowed down by. A minibatch whose computing takes c takes max(c, pace x jitter) x times + longer. */
struct dp_injection {
    uint64_t pace_ns; /* 0: none */
    enum dp_cluster_jitter jitter;
    double times;       /* 1: as the others */
    uint64_t longer_ns; /* 0: as the others */
};

/* DP_ARGUMENT names what cannot be, and the remedy. */
DP_MUST_USE
enum dp_status dp_injection_check(const struct dp_cluster_training *training,
                                  const struct dp_setting_names *names, struct dp_error *err);
/* Of settings that were checked. */
struct dp_injection dp_injection_of(const struct dp_cluster_training *training, uint32_t worker);
/* "minibatches take 20 ms or more; worker 3's take 10 times as long"; "": nothing is injected. */
#define DP_INJECTION_TEXT_BYTES 640u
const char *dp_injection_text(const struct dp_cluster_training *training, char out[DP_INJECTION_TEXT_BYTES]);

#endif

/* Injection: delays that a user asks for, to compare consistency modes under stragglers on one machine.
 *     pace       "20ms": a minibatch takes at least this time
 *     jitter     the factor of the pace, minibatch by minibatch; mean 1:
 *                exp: the exponential distribution; uniform: 0 .. 2
 *     straggler  "3:10x,1:50ms": worker 3's minibatches take 10 times as long, worker 1's 50 ms longer
 * Formula   A minibatch whose computing takes c takes max(c, pace x d) x times + longer, times and longer
 *           being its worker's, and
 *               d = 1 (none), -ln u (exp), 2 u (uniform)
 *               u = (floor(h / 2^11) + 1/2) / 2^53
 *               h = mix(g + number + mix(g + epoch + mix(g + seed)))          modulo 2^64
 *           mix: dp_hash_mix, g: DP_HASH_GOLDEN (common/base/hash.h); epoch: counted from 0 over all runs of a store; number: of the
 *           minibatch in it. So d is the same for a minibatch in all modes, for each worker, and after a restart.
 * Thread    Any: plain functions. */
#ifndef DP_CONFIG_INJECTION_H
#define DP_CONFIG_INJECTION_H

#include "common/config/cluster.h"

#define DP_INJECTION_PACE_MAX_NS   UINT64_C(60000000000)
#define DP_INJECTION_LONGER_MAX_NS UINT64_C(600000000000) /* of the mean minibatch as a whole, too */
#define DP_INJECTION_TIMES_MAX     1000

/* What one worker is slowed down by. */
struct dp_injection {
    uint64_t pace_ns; /* 0: none */
    enum dp_cluster_jitter jitter;
    double times;       /* 1: as the others */
    uint64_t longer_ns; /* 0: as the others */
};

/* DP_ARGUMENT names what cannot be, and the remedy. */
enum dp_status dp_injection_check(const struct dp_cluster_training *training,
                                  const struct dp_setting_names *names, struct dp_error *err);
/* The straggler of settings that were checked, if it multiplies (3:10x) a pace that is not given; else NULL. Such a factor multiplies only
 * the computing of a minibatch, which in a small model is too short to be measured. */
const char *dp_injection_lacks_pace(const struct dp_cluster_training *training);
/* Of settings that were checked. */
struct dp_injection dp_injection_of(const struct dp_cluster_training *training, uint32_t worker);
/* d of a minibatch. */
double dp_injection_draw(enum dp_cluster_jitter jitter, uint64_t seed, uint64_t epoch, uint64_t number);
/* What a minibatch takes in all if its computing took computed_ns. */
uint64_t dp_injection_takes_ns(const struct dp_injection *injection, uint64_t seed, uint64_t epoch,
                               uint64_t number, uint64_t computed_ns);
/* "minibatches take 20 ms or more; worker 3's take 10 times as long"; "": nothing is injected. */
#define DP_INJECTION_TEXT_BYTES 640u
const char *dp_injection_text(const struct dp_cluster_training *training, char out[DP_INJECTION_TEXT_BYTES]);

#endif

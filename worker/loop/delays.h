/* Delays: how long a minibatch takes where delays are injected (common/config/injection.h), and the wait until then.
 * Formula   A minibatch whose computing takes c takes  max(c, pace x d) x times + longer,  times and longer being its worker's, and
 *               d = 1 (none), -ln u (exp), 2 u (uniform)
 *               u = (floor(h / 2^11) + 1/2) / 2^53
 *               h = mix(g + number + mix(g + epoch + mix(g + seed)))          modulo 2^64
 *           mix: dp_hash_mix, g: DP_HASH_GOLDEN (common/base/hash.h); epoch: counted from 0 over all runs of a store; number: of the
 *           minibatch in it. So d is the same for a minibatch in all modes, whoever computes it, and after a restart.
 * Promise   The wait changes nothing that is pushed. Meanwhile the client takes in replies and beats, and the progress note is
 *           renewed. A signal to stop ends it, and `ends`.
 * Thread    Any; those with `tends` the client's. */
#ifndef DP_LOOP_DELAYS_H
#define DP_LOOP_DELAYS_H

#include "common/config/injection.h"
#include "worker/job/job.h"

struct dp_delays {
    const struct dp_job *job;
    struct dp_injection injection;
    uint64_t seed;
    bool is;                /* anything is injected into this worker */
    bool (*ends)(void *of); /* asked by those with `tends`: true ends the wait; or NULL */
    void *ends_of;
    void (*sleep)(uint64_t ns); /* a seam */
};

struct dp_delays dp_delays_of(const struct dp_job *job);
/* d of a minibatch. */
double dp_delays_draw(enum dp_cluster_jitter jitter, uint64_t seed, uint64_t epoch, uint64_t number);
/* What it takes in all if its computing took computed_ns. */
uint64_t dp_delays_takes_ns(const struct dp_delays *delays, uint64_t epoch, uint64_t number,
                            uint64_t computed_ns);
/* Waits until a minibatch whose computing began at begun_ns, and has ended, has taken its time. tends: see Promise. How long it waited. */
uint64_t dp_delays_wait(const struct dp_delays *delays, uint64_t epoch, uint64_t number, uint64_t begun_ns,
                        bool tends);

#endif

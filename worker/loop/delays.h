/* Delays: the duration of a minibatch with injected delays (common/config/injection.h), and the wait for
 * its end.
 * Promise   The wait changes nothing that is pushed. During a delay the client takes in replies and sends
 *           heartbeats, and the progress note is renewed. A signal to stop ends a wait, and so does `ends`.
 * Thread    Any; those with `tends` the client's. */
#ifndef DP_LOOP_DELAYS_H
#define DP_LOOP_DELAYS_H

#include "common/config/injection.h"
#include "worker/context/job.h"

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
/* Waits until a minibatch whose computing began at begun_ns, and has ended, has taken its time. tends: see
 * Promise. How long it waited. */
uint64_t dp_delays_wait(const struct dp_delays *delays, uint64_t epoch, uint64_t number, uint64_t begun_ns,
                        bool tends);

#endif

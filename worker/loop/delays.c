#include "worker/loop/delays.h"

#include <time.h>

/* Short, so that replies are taken in and a signal is seen soon. */
#define SLICE_NS UINT64_C(5000000)

static void sleep_ns(uint64_t ns)
{
    const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)nanosleep(&pause, NULL);
}

struct dp_delays dp_delays_of(const struct dp_job *job)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct dp_injection injection = dp_injection_of(training, job->worker);
    return (struct dp_delays){.job = job,
                              .injection = injection,
                              .seed = training->seed,
                              .is = injection.pace_ns > 0 || injection.times > 1 || injection.longer_ns > 0,
                              .sleep = sleep_ns};
}

uint64_t dp_delays_wait(const struct dp_delays *delays, uint64_t epoch, uint64_t number, uint64_t begun_ns,
                        bool tends)
{
    const struct dp_job *job = delays->job;
    if (!delays->is)
        return 0;
    uint64_t from = dp_clock_ns(&job->clock), now = from;
    uint64_t until =
        begun_ns + dp_injection_takes_ns(&delays->injection, delays->seed, epoch, number, from - begun_ns);
    while (now < until && !dp_job_stopped(job)) {
        if (tends) {
            if (job->client)
                dp_client_progress(job->client);
            dp_job_alive(job);
            if (delays->ends && delays->ends(delays->ends_of))
                break;
            now = dp_clock_ns(&job->clock);
        }
        if (now < until)
            delays->sleep(until - now < SLICE_NS ? until - now : SLICE_NS);
        now = dp_clock_ns(&job->clock);
    }
    return dp_clock_ns(&job->clock) - from;
}

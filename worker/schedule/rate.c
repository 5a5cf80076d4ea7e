#include "worker/schedule/rate.h"

#include <float.h>
#include <math.h>

struct dp_rate dp_rate_of(const struct dp_cluster_training *training, uint64_t steps)
{
    uint64_t before = training->schedule == DP_SCHEDULE_CONTINUE && training->epochs > 0
                          ? steps / training->epochs * training->first_epoch
                          : 0;
    return (struct dp_rate){.decay = training->decay,
                            .rate = training->rate,
                            .rate_end = training->rate_end,
                            .warmup = training->warmup_steps,
                            .steps = before + steps,
                            .before = before};
}

static double decayed(const struct dp_rate *rate, uint64_t step)
{
    const double pi = 3.14159265358979323846;
    double since = (double)(step - rate->warmup);
    double t = rate->steps > rate->warmup ? since / (double)(rate->steps - rate->warmup) : 1.0;
    if (t > 1.0)
        t = 1.0;
    double h = rate->warmup ? (double)rate->warmup : 1.0;
    switch (rate->decay) {
    case DP_DECAY_LINEAR:
        return rate->rate + (rate->rate_end - rate->rate) * t;
    case DP_DECAY_COSINE:
        return rate->rate_end + (rate->rate - rate->rate_end) * 0.5 * (1.0 + cos(pi * t));
    case DP_DECAY_INVERSE_SQRT:
        return rate->rate * sqrt(h / (h + since));
    case DP_DECAY_NONE:
        break;
    }
    return rate->rate;
}

float dp_rate_at(const struct dp_rate *rate, uint64_t step)
{
    step += rate->before;
    double value =
        step < rate->warmup ? rate->rate * (double)(step + 1) / (double)rate->warmup : decayed(rate, step);
    float rounded = (float)value;
    return rounded > FLT_MIN ? rounded : FLT_MIN;
}

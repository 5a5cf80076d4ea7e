#include "worker/telemetry/step_timer.h"

#include <stdio.h>

const char *dp_step_phase_name(enum dp_step_phase on)
{
    static const char *const names[DP_PHASE_KINDS] = {
        "read",           "pull",           "compute",        "injected",       "push",
        "waiting_pull",   "waiting_rule",   "waiting_push",   "waiting_device", "other",
        "device_copy_in", "device_compute", "device_copy_out"};
    return names[on];
}

double dp_step_times_sum(const struct dp_step_times *times)
{
    double sum = 0;
    for (int i = 0; i < DP_PHASE_HOST; i++)
        sum += times->seconds[i];
    return sum;
}

void dp_step_times_merge(struct dp_step_times *into, const struct dp_step_times *from)
{
    for (int i = 0; i < DP_PHASE_KINDS; i++)
        into->seconds[i] += from->seconds[i];
}

void dp_step_times_text(const struct dp_step_times *times, char *text, size_t size)
{
    double sum = dp_step_times_sum(times);
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; sum > 0 && i < DP_PHASE_KINDS && at < size; i++) {
        double percent = 100 * times->seconds[i] / sum;
        if (percent < 0.5)
            continue;
        int n = snprintf(text + at, size - at, "%s%s %.0f%%", at ? ", " : "",
                         dp_step_phase_name((enum dp_step_phase)i), percent);
        at += n > 0 ? (size_t)n : 0;
    }
}

#include "worker/spent.h"

#include <stdio.h>

const char *dp_spent_name(enum dp_spent_on on)
{
    static const char *const names[DP_SPENT_KINDS] = {
        "read",           "pull",  "compute",        "push",           "waiting_pull",   "waiting_push",
        "waiting_device", "other", "device_copy_in", "device_compute", "device_copy_out"};
    return names[on];
}

double dp_spent_sum(const struct dp_spent *spent)
{
    double sum = 0;
    for (int i = 0; i < DP_SPENT_HOST; i++)
        sum += spent->seconds[i];
    return sum;
}

void dp_spent_merge(struct dp_spent *into, const struct dp_spent *from)
{
    for (int i = 0; i < DP_SPENT_KINDS; i++)
        into->seconds[i] += from->seconds[i];
}

void dp_spent_text(const struct dp_spent *spent, char *text, size_t size)
{
    double sum = dp_spent_sum(spent);
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; sum > 0 && i < DP_SPENT_KINDS && at < size; i++) {
        double percent = 100 * spent->seconds[i] / sum;
        if (percent < 0.5)
            continue;
        int n = snprintf(text + at, size - at, "%s%s %.0f%%", at ? ", " : "",
                         dp_spent_name((enum dp_spent_on)i), percent);
        at += n > 0 ? (size_t)n : 0;
    }
}

#include "deploy/compare/compare_machine.h"

#include "common/base/json.h"

#include <math.h>
#include <stdio.h>

#define KINDS 8 /* user, nice, system, idle, iowait, irq, softirq, steal; guests are in the first two */

static void read_ticks(double *total, double *steal)
{
    double ticks[KINDS];
    FILE *file = fopen("/proc/stat", "re");
    *total = *steal = NAN;
    int n = file ? fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[0], &ticks[1], &ticks[2],
                          &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7])
                 : 0;
    if (file)
        (void)fclose(file);
    if (n != KINDS)
        return;
    *total = 0;
    for (int i = 0; i < KINDS; i++)
        *total += ticks[i];
    *steal = ticks[KINDS - 1];
}

struct dp_compare_machine dp_compare_machine_begin(void)
{
    struct dp_compare_machine begun = {.load = NAN};
    FILE *file = fopen("/proc/loadavg", "re");
    if (file && fscanf(file, "%lf", &begun.load) != 1)
        begun.load = NAN;
    if (file)
        (void)fclose(file);
    read_ticks(&begun.total, &begun.steal);
    return begun;
}

json_t *dp_compare_machine_end(const struct dp_compare_machine *begun)
{
    double total, steal;
    json_t *out = json_object();
    read_ticks(&total, &steal);
    dp_json_set_real(out, "load", begun->load);
    if (total > begun->total)
        dp_json_set_real(out, "steal_share", (steal - begun->steal) / (total - begun->total));
    return out;
}

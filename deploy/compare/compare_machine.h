/* Compare machine: the machine's other load while a run trained, from /proc. Linux only; unreadable values
 * are left out.
 *     begin -> (the run, whose processes are waited for) -> end
 * Thread    Any: plain functions. */
#ifndef DP_COMPARE_COMPARE_MACHINE_H
#define DP_COMPARE_COMPARE_MACHINE_H

#include <jansson.h>

struct dp_compare_machine {
    double load;         /* the mean of a minute, at begin; NaN: unknown */
    double total, steal; /* processor time since the machine's start, in ticks; NaN: unknown */
};

struct dp_compare_machine dp_compare_machine_begin(void);
/* {"load", "steal_share"}: the load when the run began, the share of the processor time that the machine's host gave to others. NULL: no
 * memory. */
json_t *dp_compare_machine_end(const struct dp_compare_machine *begun);

#endif

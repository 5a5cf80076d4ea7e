#define _GNU_SOURCE
#include "deploy/cli/bench_pin.h"

#include <sched.h>

struct dp_pin dp_pin_choose(void)
{
    struct dp_pin pin = {0};
    cpu_set_t allowed;
    uint32_t found = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return pin;
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            *(found++ == 0 ? &pin.client : &pin.server) = cpu;
    pin.on = found == 2;
    return pin;
}

void dp_pin_to(const struct dp_pin *pin, uint32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pin->on)
        (void)sched_setaffinity(0, sizeof set, &set);
}

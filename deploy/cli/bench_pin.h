/* Pin: which processor this process and those it starts run on.
 * Promise   What is started after a call (a process, a thread of ZeroMQ's) stays where the call put it.    */
#ifndef DP_CLI_BENCH_PIN_H
#define DP_CLI_BENCH_PIN_H

#include <stdbool.h>
#include <stdint.h>

struct dp_pin {
    bool on; /* two processors or more are allowed */
    uint32_t client, server;
};

struct dp_pin dp_pin_choose(void);
void dp_pin_to(const struct dp_pin *pin, uint32_t cpu); /* the calling thread; nothing when off */

#endif

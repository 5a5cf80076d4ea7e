/* Seeds: a simulator's command line.
 *     PROGRAM [--seed N] [--from N] [--seeds N] [--verbose] [--look]
 * --look: a bad seed is what is wanted: exit 0 when one is found, 1 when none is. */
#ifndef DP_TESTS_SIM_SEEDS_H
#define DP_TESTS_SIM_SEEDS_H

#include <stdint.h>

/* play(seed) returns how many events there were; tell() says more about all of them. Returns what main does. */
int sim_seeds_main(int argc, char **argv, const char *program, uint64_t (*play)(uint64_t seed),
                   void (*tell)(void));

#endif

#include "tests/sim/seeds.h"

#include "tests/sim/world.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t playing; /* the seed, for the last words of a failed assertion */

/* A failed assertion, or worse. */
static void last_words(int number)
{
    char text[128];
    int n = snprintf(text, sizeof text,
                     "seed %" PRIu64 ": signal %d\nrun it again: %s --seed %" PRIu64 " --verbose\n", playing,
                     number, sim_program, playing);
    if (n > 0 && write(STDOUT_FILENO, text, (size_t)n) < 0)
        _exit(2);
    _exit(sim_bad_exit);
}

int sim_seeds_main(int argc, char **argv, const char *program, uint64_t (*play)(uint64_t seed),
                   void (*tell)(void))
{
    uint64_t first = 1, seeds = getenv("DP_LONG") ? 1000000 : 1000, events = 0;
    bool look = false;
    sim_program = program;
    for (int i = 1; i < argc; i++) {
        bool from = strcmp(argv[i], "--from") == 0, one = strcmp(argv[i], "--seed") == 0;
        uint64_t value = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        if (strcmp(argv[i], "--verbose") == 0) {
            sim_verbose = true;
        } else if (strcmp(argv[i], "--look") == 0) {
            look = true;
        } else if (from || one || strcmp(argv[i], "--seeds") == 0) {
            first = from || one ? value : first;
            seeds = one ? 1 : from ? seeds : value;
            i++;
        } else {
            (void)fprintf(stderr, "%s [--seed N] [--from N] [--seeds N] [--verbose] [--look]\n", program);
            return 2;
        }
    }
    sim_bad_exit = look ? 0 : 1;
    /* Worlds come and go: keep their memory. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    (void)signal(SIGABRT, last_words);
    (void)signal(SIGSEGV, last_words);
    for (playing = first; playing < first + seeds; playing++)
        events += play(playing);
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " events: nothing bad\n", seeds, first,
                 events);
    tell();
    return look ? 1 : 0;
}

/* downpour-bench: what the project measures of itself, beside what `downpour bench` shows a user. */
#include "common/env/limits.h"
#include "tests/bench/program/bench_checkpoint.h"
#include "tests/bench/program/bench_modes.h"
#include "tests/bench/program/bench_sustained.h"
#include "tests/bench/program/bench_train.h"
#include "tests/bench/program/multiget.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "Usage: downpour-bench COMMAND [FLAGS]\n\n"
    "  store       'downpour bench'; for caches below 100%, beside bare MultiGet on the same store\n"
    "  sustained   push for minutes: throughput, write-back and the longest turns\n"
    "  modes       compare the consistency modes\n"
    "  train       how fast each model trains\n"
    "  checkpoint  what a checkpoint costs under load, incremental ones, restores\n\n"
    "  --help      with a command: its flags, their units and defaults\n";

static int store(int argc, char *const *argv)
{
    return dp_bench_main(argc, argv, &dp_multiget);
}

static int checkpoint(int argc, char *const *argv)
{
    return dp_bench_checkpoint(argc, argv, &dp_multiget);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char *const *argv);
    } commands[] = {
        {"store", store},          {"sustained", dp_bench_sustained}, {"modes", dp_bench_modes},
        {"train", dp_bench_train}, {"checkpoint", checkpoint},
    };
    const char *word = argc > 1 ? argv[1] : "";
    (void)dp_limits_begin();
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].run(argc - 2, argv + 2);
    bool help = strcmp(word, "--help") == 0;
    (void)fputs(usage, help ? stdout : stderr);
    return help && fflush(stdout) == 0 ? 0 : 2;
}

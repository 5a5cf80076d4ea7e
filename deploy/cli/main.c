/* downpour: the command. Each subcommand is a file of its own. */
#include "common/env/limits.h"
#include "deploy/bench/bench.h"
#include "deploy/checkpoint/checkpoint_commands.h"
#include "deploy/cli/commands.h"
#include "deploy/compare/compare_commands.h"
#include "deploy/node/node_commands.h"
#include "deploy/run/run_commands.h"
#include "deploy/weights/weights_commands.h"

#include "common/config/nearest.h"
#include "deploy/cli/options.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char *const *argv);
    const char *summary;
} commands[] = {
    {"run", dp_run_run, "train on this machine: start servers and workers, print the result"},
    {"node", dp_node, "run one server or worker of a cluster, under mpirun, srun or another launcher"},
    {"predict", dp_weight_predict, "score the examples in a file, or list the best items of users"},
    {"export", dp_weight_export, "write the weights of a run or a checkpoint as files, with names"},
    {"import", dp_deploy_import, "make a checkpoint from a file of tensors (export, PyTorch, NumPy)"},
    {"neighbours", dp_weight_neighbours, "show the words or items most similar to a given one"},
    {"status", dp_run_status, "show the state of a running cluster, or whether a run is finished"},
    {"top", dp_run_top, "show the state of a running cluster on the full screen, every 2 seconds"},
    {"compare", dp_compare_compare, "train a job in several modes, and make a page of the differences"},
    {"report", dp_compare_report, "make a page (HTML) of a training: plots, numbers, settings"},
    {"generate", dp_command_generate, "write clicks from a hidden model, and print the best possible result"},
    {"inspect", dp_command_inspect, "show or verify stores or checkpoints, or print a digest of rows"},
    {"checkpoint", dp_deploy_checkpoint, "make a checkpoint of a running cluster, once or repeatedly"},
    {"restore", dp_deploy_restore, "build stores from a checkpoint, for any number of servers"},
    {"bench", dp_bench, "compare the pulls and pushes of one server on this machine with bare sockets"},
};
#define COMMANDS (sizeof commands / sizeof commands[0])

/* Of the version before, and what does it now. */
static const char *const replaced[][2] = {{"checkpoints", "inspect DIR"}, {"verify", "inspect DIR --verify"}};

static void print_usage(FILE *file)
{
    fputs("Usage: downpour COMMAND [FLAGS]\n\n", file);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(file, "  %-11s  %s\n", commands[i].name, commands[i].summary);
    fputs("\n  --help       this text; with a command: its common flags; --help all: all\n"
          "  --version    the version\n\n"
          "Exit code: 0 on success; 1 if status finds a server that does not serve; 2 with cause and remedy "
          "on\n"
          "standard error; 128 + number of the signal that stopped it.\n",
          file);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "", *words[COMMANDS + 2] = {"--help", "--version"};
    (void)dp_limits_begin();
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].run(argc - 2, argv + 2);
        words[i + 2] = commands[i].name;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_usage(stdout);
        return dp_options_shown();
    }
    if (strcmp(word, "--version") == 0) {
        puts("downpour " DOWNPOUR_VERSION);
        return dp_options_shown();
    }
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    for (size_t i = 0; i < sizeof replaced / sizeof replaced[0]; i++)
        if (strcmp(word, replaced[i][0]) == 0) {
            fprintf(stderr, "downpour: '%s' is now 'downpour %s'\n", word, replaced[i][1]);
            return 2;
        }
    const char *near = dp_nearest(word, words, COMMANDS + 2);
    fprintf(stderr, "downpour: unknown command '%s'%s%s%s; 'downpour --help' lists them\n", word,
            near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    return 2;
}

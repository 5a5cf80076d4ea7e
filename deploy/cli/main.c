/* downpour: the command. Each subcommand is a file of its own. */
#include "deploy/cli/commands.h"

#include "common/config/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "Usage: downpour COMMAND [FLAGS]\n"
    "\n"
    "  run       train on this machine: starts servers and workers, stops them, tells the result\n"
    "  predict   write the scores of a file by the model that a run trained\n"
    "  export    write the weights of a run as files for other programs, with the names of words, users, "
    "features\n"
    "  neighbours  the words or items most like a given one\n"
    "  status    what the shards of a running cluster say of themselves\n"
    "  generate  write data whose true model is known, and what that model reaches\n"
    "  inspect   what a store on disk holds, whether it is whole, and a digest of its rows\n"
    "  bench     how fast one server is on this machine, beside bare sockets and a bare copy; how fast each "
    "model trains\n"
    "\n"
    "  --help    this text; with a command: its flags, their units and defaults\n"
    "  --version\n"
    "\n"
    "Exit code: 0; 2 with cause and remedy on standard error; 128 + number of the signal that stopped it.\n";

static int say(const char *text)
{
    if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
        return 0;
    fprintf(stderr, "downpour: cannot write to standard output: %s\n", strerror(errno));
    return 2;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char *const *argv);
    } commands[] = {
        {"run", dp_command_run},       {"predict", dp_command_predict},       {"status", dp_command_status},
        {"export", dp_command_export}, {"neighbours", dp_command_neighbours}, {"inspect", dp_command_inspect},
        {"bench", dp_command_bench},   {"generate", dp_command_generate},
    };
    static const char *const words[] = {"run",     "predict", "status",   "export", "neighbours",
                                        "inspect", "bench",   "generate", "--help", "--version"};
    const char *word = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].run(argc - 2, argv + 2);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return say(usage);
    if (strcmp(word, "--version") == 0)
        return say("downpour " DOWNPOUR_VERSION "\n");
    if (argc < 2) {
        fputs(usage, stderr);
        return 2;
    }
    const char *near = dp_nearest(word, words, sizeof words / sizeof words[0]);
    fprintf(stderr, "downpour: unknown command '%s'%s%s%s; 'downpour --help' lists them\n", word,
            near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    return 2;
}

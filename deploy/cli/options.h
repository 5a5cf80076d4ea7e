/* Options: the flags of one subcommand, as a table that both the parser and --help read.
 * Forms     --name VALUE, --name=VALUE; a switch has no value. Each at most once; nothing but flags is taken.
 * Why       Not argp: it accepts any unambiguous beginning of a name, so that a new flag breaks old scripts; it neither refuses a flag
 *           that is given twice nor names the nearest known one; and it prints its errors itself.
 * Failure   DP_ARGUMENT naming the flag, and the nearest known one where there is one.                  */
#ifndef DP_CLI_OPTIONS_H
#define DP_CLI_OPTIONS_H

#include "common/config/cluster.h"

#include <stdio.h>

struct dp_option {
    const char *name;     /* "--epochs" */
    const char *argument; /* "N"; "[N]": may be left out, the value is then ""; NULL: a switch */
    const char *help;     /* with unit and default */
    const char *key;      /* of the cluster file, which the value goes to, or NULL */
    const char *switched; /* a switch's value for that key */
};

/* A heading in --help: name NULL. */
#define DP_OPTION_HEADING(text)                                                                              \
    {                                                                                                        \
        .help = (text)                                                                                       \
    }

/* What other systems call a flag. */
struct dp_option_alias {
    const char *alias, *name; /* "--lr", "--rate" */
};

struct dp_command {
    const char *program; /* NULL: "downpour" */
    const char *name;    /* "run" */
    const char *summary; /* lines below the usage line in --help */
    const char *usage;
    const struct dp_option *options;
    size_t count;
    const struct dp_option_alias *aliases; /* or NULL; alias NULL ends them */
};

/* values[count]: the text of each flag given (a switch: ""), else NULL. *help: --help was among them, and the
 * rest is not looked at. argv: what follows the subcommand. */
DP_MUST_USE
enum dp_status dp_options_parse(const struct dp_command *command, int argc, char *const *argv,
                                const char **values, _Bool *help, struct dp_error *err);
/* DP_ARGUMENT: what a word is that the command does not take. */
enum dp_status dp_options_unknown(const struct dp_command *command, const char *word, struct dp_error *err);
/* The words behind --help, if there are any ("models", "fm"): what help is wanted of. At most two, else NULL. */
void dp_options_topic(int argc, char *const *argv, const char *topic[2]);
/* The value of a flag of the table, or NULL. */
const char *dp_options_value(const struct dp_command *command, const char *const *values, const char *name);
/* Every flag that has a key into the cluster, in an order that lets them stand on each other. */
DP_MUST_USE
enum dp_status dp_options_apply(const struct dp_command *command, const char *const *values,
                                struct dp_cluster *cluster, struct dp_error *err);
/* Names a setting in messages by its flag: one that was given, or, with `all`, any of the command's. */
struct dp_options_given {
    const struct dp_command *command;
    const char *const *values;
    _Bool all;
};
/* Lends *given. */
struct dp_setting_names dp_options_names(const struct dp_options_given *given);
void dp_options_help(const struct dp_command *command, FILE *file);
/* On standard output; the exit code, with a line on standard error where that cannot be written. */
int dp_options_show_help(const struct dp_command *command);

#endif

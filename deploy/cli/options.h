/* Options: the flags of one subcommand, as a table that both the parser and --help read.
 * Forms     --name VALUE, --name=VALUE; a switch has no value. Each flag is given at most once. Other
 *           arguments are refused. Suboptions follow their flag's value or stand alone: --name
 *           VALUE,KEY=VALUE, --name KEY=VALUE. One begins at the start, or after a comma or colon, with a
 *           KEY of that flag and '='; so a value may have commas and colons. Programs can give a row's name
 *           as a word ("--rate end", "0.1").
 * Why       argp is not used. It accepts any unambiguous beginning of a name, so a new flag breaks old
 *           scripts. It does not refuse a flag that is given twice, and does not name the nearest known
 *           flag. It prints its errors itself.
 * Memory    Values are argv's, or copies that live as long as the program.
 * Failure   DP_ARGUMENT naming the flag, and the nearest known one where there is one. */
#ifndef DP_CLI_OPTIONS_H
#define DP_CLI_OPTIONS_H

#include "common/config/cluster.h"

#include <stdio.h>

struct dp_option {
    const char *name; /* "--epochs"; "--rate end": a suboption, below its flag */
    /* "N"; "[N]": may be left out, the value is then ""; "KEY=...": suboptions alone; NULL: a switch */
    const char *argument;
    const char *key;  /* of the cluster file, which the value goes to, or NULL; of a switch "KEY=VALUE" */
    const char *help; /* with unit and default; of a flag in the short --help, up to '\n' */
};

/* A heading in --help: name NULL. What is below a rare one is shown by --help all alone. */
#define DP_OPTION_HEADING(text)                                                                              \
    {                                                                                                        \
        .help = (text)                                                                                       \
    }
#define DP_OPTION_RARE(text)                                                                                 \
    {                                                                                                        \
        .help = (text), .argument = "all"                                                                    \
    }

/* What other systems call a flag ("--lr", "--rate"); or what a suboption was called before ("--rate-end",
 * "--rate end"), which is refused with the new spelling. */
struct dp_option_alias {
    const char *alias, *name;
};

struct dp_command {
    const char *program; /* NULL: "downpour" */
    const char *name;    /* "run" */
    const char *summary; /* lines below the usage line in --help */
    const char *usage;
    const struct dp_option *options;
    size_t count;
    const struct dp_option_alias *aliases;  /* or NULL; alias NULL ends them */
    const struct dp_option_alias *as_flags; /* suboptions that may be given as flags, too; likewise */
};

/* values[count]: the text of each flag given (a switch: ""), else NULL. *help: --help was among them, and the
 * rest is not looked at. argv: what follows the subcommand. */
enum dp_status dp_options_parse(const struct dp_command *command, int argc, char *const *argv,
                                const char **values, _Bool *help, struct dp_error *err);
/* A copy that lives as long as the program, as argv does; NULL: no memory. */
char *dp_options_keep(const char *text);
/* DP_ARGUMENT: what a word is that the command does not take. */
enum dp_status dp_options_unknown(const struct dp_command *command, const char *word, struct dp_error *err);
/* The words behind --help, if there are any ("models", "fm"): what help is wanted of. At most two, else NULL. */
void dp_options_topic(int argc, char *const *argv, const char *topic[2]);
/* Whether `key` is a suboption of the flag, each given by its length ("--rate", "end"). */
_Bool dp_options_has_part(const struct dp_command *command, const char *flag, size_t flag_len,
                          const char *key, size_t len);
/* Whether the row `name` is that flag or a suboption of it. */
_Bool dp_options_is_of(const char *name, const char *flag);
/* The value of a flag of the table, or NULL. */
const char *dp_options_value(const struct dp_command *command, const char *const *values, const char *name);
/* Its value as a whole number in min .. max, or `preset` where it is not given. */
enum dp_status dp_options_u64(const struct dp_command *command, const char *const *values, const char *name,
                              uint64_t min, uint64_t max, uint64_t preset, uint64_t *out,
                              struct dp_error *err);
/* The flag or suboption that sets this key of the cluster file, or NULL. */
const struct dp_option *dp_options_of_key(const struct dp_command *command, const char *key);
/* What a switch sets its key to; NULL: it is none, or has no key. */
const char *dp_option_switched(const struct dp_option *option);
/* Every flag that has a key into the cluster, in the order of the table: a flag before its suboptions. */
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
/* all: with rare flags and suboptions. */
void dp_options_help(const struct dp_command *command, _Bool all, FILE *file);
/* The exit code after text on standard output: 0, or 2 with a line on standard error if that failed. */
int dp_options_shown(void);
/* All, on standard output; the exit code. */
int dp_options_show_help(const struct dp_command *command);
/* The same, of a command with rare flags: all if argv has "--help all". */
int dp_options_show_short_help(const struct dp_command *command, int argc, char *const *argv);
/* The end of a command: flushes standard output, says what failed, and returns the exit code, 0 or 2. */
int dp_options_end(const struct dp_command *command, enum dp_status st, struct dp_error *err);

#endif

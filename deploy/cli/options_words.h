/* Words: the arguments of a subcommand that are not flags (DIR, WORD), and the values of one flag that may
 * be given several times.
 * Memory    The texts are argv's; clear frees the lists. */
#ifndef DP_CLI_OPTIONS_WORDS_H
#define DP_CLI_OPTIONS_WORDS_H

#include "deploy/cli/options.h"

#include <stdbool.h>
#include <stddef.h>

struct dp_words {
    const char **word, **value;
    size_t words, values;
};

/* repeated: that flag ("--user"), or NULL. Behind "--" all are words. The others go to dp_options_parse. */
enum dp_status dp_words_parse(const struct dp_command *command, const char *repeated, int argc,
                              char *const *argv, struct dp_words *out, const char **values, bool *help,
                              struct dp_error *err);
void dp_words_clear(struct dp_words *words);

#endif

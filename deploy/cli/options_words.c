#include "deploy/cli/options_words.h"

#include <stdlib.h>
#include <string.h>

static bool takes_value(const struct dp_command *command, const char *flag)
{
    for (size_t i = 0; i < command->count; i++)
        if (command->options[i].name && strcmp(flag, command->options[i].name) == 0)
            return command->options[i].argument != NULL;
    return false;
}

enum dp_status dp_words_parse(const struct dp_command *command, const char *repeated, int argc,
                              char *const *argv, struct dp_words *out, const char **values, bool *help,
                              struct dp_error *err)
{
    size_t room = (size_t)argc + 1, len = repeated ? strlen(repeated) : 0;
    bool flags = true;
    char **rest = calloc(room, sizeof *rest);
    int rest_count = 0;
    *out =
        (struct dp_words){.word = calloc(room, sizeof *out->word), .value = calloc(room, sizeof *out->value)};
    enum dp_status st =
        out->word && out->value && rest ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the arguments");
    for (int a = 0; st == DP_OK && a < argc; a++) {
        char *const at = argv[a];
        bool more = a + 1 < argc;
        if (flags && strcmp(at, "--") == 0)
            flags = false;
        else if (!flags || at[0] != '-' || !at[1])
            out->word[out->words++] = at;
        else if (repeated && more && strcmp(at, repeated) == 0)
            out->value[out->values++] = argv[++a];
        else if (repeated && strncmp(at, repeated, len) == 0 && at[len] == '=')
            out->value[out->values++] = at + len + 1;
        else {
            rest[rest_count++] = at;
            if (takes_value(command, at) && more)
                rest[rest_count++] = argv[++a];
        }
    }
    if (st == DP_OK)
        st = dp_options_parse(command, rest_count, rest, values, help, err);
    free(rest);
    return st;
}

void dp_words_clear(struct dp_words *words)
{
    free(words->word);
    free(words->value);
    *words = (struct dp_words){0};
}

#include "deploy/cli/options_file.h"

#include "common/config/flat_file.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BYTES (2 * DP_PATH_MAX + 256)

struct options_file {
    const struct dp_command *command;
    _Bool *named; /* by the command line */
    const char **values;
};

static _Bool is_part(const struct dp_option *option)
{
    return option->name && strchr(option->name, ' ');
}

/* Where no flag of the command line says otherwise. */
static enum dp_status take(const struct options_file *file, const char *const *from, struct dp_error *err)
{
    _Bool hidden = 0;
    for (size_t i = 0; i < file->command->count; i++) {
        const struct dp_option *option = &file->command->options[i];
        if (!is_part(option))
            hidden = file->named[i] && option->argument && strncmp(option->argument, "FILE", 4) == 0;
        if (!from[i] || file->values[i] || (is_part(option) && hidden))
            continue;
        file->values[i] = dp_options_keep(from[i]);
        if (!file->values[i])
            return dp_fail(err, DP_NOMEM, "no memory for %s", option->name);
    }
    return DP_OK;
}

static enum dp_status read_one(void *context, const char *name, const char *text, struct dp_error *err)
{
    const struct options_file *file = context;
    char word[WORD_BYTES];
    _Bool help;
    int len = snprintf(word, sizeof word, "--%s%s%s", name, text ? "=" : "", text ? text : "");
    if (strcmp(name, "config") == 0 || strcmp(name, "help") == 0)
        return dp_fail(err, DP_ARGUMENT, "a file of flags has no '%s'", name);
    if (len >= WORD_BYTES)
        return dp_fail(err, DP_ARGUMENT, "'%s' is too long", name);
    const char **one = calloc(file->command->count, sizeof *one);
    if (!one)
        return dp_fail(err, DP_NOMEM, "no memory for %zu flags", file->command->count);
    char *const words[] = {word};
    enum dp_status st = dp_options_parse(file->command, 1, words, one, &help, err);
    if (st == DP_OK)
        st = take(file, one, err);
    free(one);
    return st;
}

enum dp_status dp_options_file_read(const struct dp_command *command, const char *path, const char **values,
                                    struct dp_error *err)
{
    struct options_file file = {command, calloc(command->count, sizeof *file.named), values};
    if (!file.named)
        return dp_fail(err, DP_NOMEM, "no memory for %zu flags", command->count);
    for (size_t i = 0; i < command->count; i++)
        file.named[i] = values[i] != NULL;
    enum dp_status st = dp_flat_file_read(path, read_one, &file, err);
    free(file.named);
    return st == DP_OK ? st : dp_wrap(err, st, "--config");
}

/* "0.1,end=0.01" of the flag at `at`, from it and its suboptions; false: not given. */
static _Bool join(const struct dp_command *command, const char *const *values, size_t at,
                  char text[WORD_BYTES])
{
    size_t len = 0;
    _Bool given = 0;
    for (size_t i = at; i < command->count && (i == at || is_part(&command->options[i])); i++) {
        if (!values[i])
            continue;
        const char *key = i == at ? "" : strchr(command->options[i].name, ' ') + 1;
        len += (size_t)snprintf(text + len, len < WORD_BYTES ? WORD_BYTES - len : 0, "%s%s%s%s",
                                given ? "," : "", key, i == at ? "" : "=", values[i]);
        given = 1;
    }
    return given && len < WORD_BYTES;
}

static _Bool is_in(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

void dp_options_file_write(const struct dp_command *command, const char *const *values,
                           const char *const *without, FILE *file)
{
    char text[WORD_BYTES];
    fprintf(file, "# Flags of 'downpour %s', for its --config; files are relative to where it is started.\n",
            command->name);
    for (size_t i = 0; i < command->count; i++) {
        const struct dp_option *option = &command->options[i];
        if (option->name && !is_part(option) && !is_in(option->name, without) &&
            join(command, values, i, text))
            dp_flat_file_line(option->name + 2, option->argument ? text : NULL, file);
    }
}

#include "deploy/cli/options.h"

#include "common/config/nearest.h"

#include <string.h>

#define FLAGS_MAX 96

static enum dp_status unknown(const struct dp_command *command, const char *word, struct dp_error *err)
{
    const char *names[FLAGS_MAX + 1];
    size_t n = 0;
    names[n++] = "--help";
    for (size_t i = 0; i < command->count && n <= FLAGS_MAX; i++)
        if (command->options[i].name)
            names[n++] = command->options[i].name;
    const char *near = dp_nearest(word, names, n);
    if (word[0] != '-')
        return dp_fail(err, DP_ARGUMENT,
                       "unexpected argument '%s': a flag starts with --; 'downpour %s --help' lists them",
                       word, command->name);
    return dp_fail(err, DP_ARGUMENT, "unknown flag '%s'%s%s%s; 'downpour %s --help' lists them", word,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", command->name);
}

static size_t find(const struct dp_command *command, const char *word, size_t len)
{
    for (size_t i = 0; i < command->count; i++) {
        const char *name = command->options[i].name;
        if (name && strlen(name) == len && memcmp(name, word, len) == 0)
            return i;
    }
    return command->count;
}

enum dp_status dp_options_parse(const struct dp_command *command, int argc, char *const *argv,
                                const char **values, _Bool *help, struct dp_error *err)
{
    *help = 0;
    for (size_t i = 0; i < command->count; i++)
        values[i] = NULL;
    for (int a = 0; a < argc; a++)
        if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0)
            *help = 1;
    for (int a = 0; a < argc && !*help; a++) {
        const char *word = argv[a], *equals = strchr(word, '=');
        size_t len = equals ? (size_t)(equals - word) : strlen(word), at = find(command, word, len);
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)(len < 60 ? len : 60), word);
        if (at == command->count)
            return unknown(command, name, err);
        const struct dp_option *option = &command->options[at];
        if (values[at])
            return dp_fail(err, DP_ARGUMENT, "flag '%s' is given twice", option->name);
        if (!option->argument && equals)
            return dp_fail(err, DP_ARGUMENT, "flag '%s' takes no value", option->name);
        if (!option->argument)
            values[at] = "";
        else if (equals)
            values[at] = equals + 1;
        else if (a + 1 < argc && strncmp(argv[a + 1], "--", 2) != 0)
            values[at] = argv[++a];
        else
            return dp_fail(err, DP_ARGUMENT, "flag '%s' lacks its value: %s %s", option->name, option->name,
                           option->argument);
    }
    return DP_OK;
}

const char *dp_options_value(const struct dp_command *command, const char *const *values, const char *name)
{
    size_t at = find(command, name, strlen(name));
    DP_ASSERT(at < command->count);
    return values[at];
}

static enum dp_status apply_one(const struct dp_option *option, const char *value, struct dp_cluster *cluster,
                                struct dp_error *err)
{
    return dp_cluster_set(cluster, option->key, option->argument ? value : option->switched, option->name,
                          err);
}

enum dp_status dp_options_apply(const struct dp_command *command, const char *const *values,
                                struct dp_cluster *cluster, struct dp_error *err)
{
    static const char kind[] = "training.optimizer.kind";
    enum dp_status st = DP_OK;
    /* The optimizer's kind first: it sets the defaults that its own flags change. */
    for (int kinds = 1; kinds >= 0; kinds--) {
        for (size_t i = 0; st == DP_OK && i < command->count; i++) {
            const struct dp_option *option = &command->options[i];
            if (values[i] && option->key && (strcmp(option->key, kind) == 0) == kinds)
                st = apply_one(option, values[i], cluster, err);
        }
    }
    return st;
}

void dp_options_help(const struct dp_command *command, FILE *file)
{
    fprintf(file, "Usage: downpour %s %s\n\n%s\n", command->name, command->usage, command->summary);
    for (size_t i = 0; i < command->count; i++) {
        const struct dp_option *option = &command->options[i];
        char left[48];
        if (!option->name) {
            fprintf(file, "\n%s\n", option->help);
            continue;
        }
        (void)snprintf(left, sizeof left, "%s %s", option->name, option->argument ? option->argument : "");
        fprintf(file, "  %-24s ", left);
        for (const char *p = option->help; *p; p++) {
            fputc(*p, file);
            if (*p == '\n') /* further lines under the first */
                fprintf(file, "%27s", "");
        }
        fputc('\n', file);
    }
    fprintf(file, "  %-24s %s\n", "--help", "this text");
}

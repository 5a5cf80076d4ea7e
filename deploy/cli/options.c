#include "deploy/cli/options.h"

#include "common/config/nearest.h"

#include <errno.h>
#include <string.h>

#define FLAGS_MAX  96
#define HELP_AT    27u /* column of what a flag is for */
#define HELP_WIDTH 100u

static const char *program_of(const struct dp_command *command)
{
    return command->program ? command->program : "downpour";
}

enum dp_status dp_options_unknown(const struct dp_command *command, const char *word, struct dp_error *err)
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
                       "unexpected argument '%.60s': a flag starts with --; '%s %s --help' lists them", word,
                       program_of(command), command->name);
    return dp_fail(err, DP_ARGUMENT, "unknown flag '%s'%s%s%s; '%s %s --help' lists them", word,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", program_of(command),
                   command->name);
}

static _Bool is_word(const char *name, const char *word, size_t len)
{
    return name && strlen(name) == len && memcmp(name, word, len) == 0;
}

static size_t find_name(const struct dp_command *command, const char *name, size_t len)
{
    for (size_t i = 0; i < command->count; i++)
        if (is_word(command->options[i].name, name, len))
            return i;
    return command->count;
}

static size_t find(const struct dp_command *command, const char *word, size_t len)
{
    for (const struct dp_option_alias *a = command->aliases; a && a->alias; a++)
        if (is_word(a->alias, word, len))
            return find_name(command, a->name, strlen(a->name));
    return find_name(command, word, len);
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
            return dp_options_unknown(command, name, err);
        const struct dp_option *option = &command->options[at];
        if (values[at])
            return dp_fail(err, DP_ARGUMENT, "flag '%s'%s%s%s is given twice", option->name,
                           strcmp(name, option->name) == 0 ? "" : " ('",
                           strcmp(name, option->name) == 0 ? "" : name,
                           strcmp(name, option->name) == 0 ? "" : "' is the same)");
        if (!option->argument && equals)
            return dp_fail(err, DP_ARGUMENT, "flag '%s' takes no value", option->name);
        if (!option->argument)
            values[at] = "";
        else if (equals)
            values[at] = equals + 1;
        else if (a + 1 < argc && strncmp(argv[a + 1], "--", 2) != 0)
            values[at] = argv[++a];
        else if (option->argument[0] == '[')
            values[at] = "";
        else
            return dp_fail(err, DP_ARGUMENT, "flag '%s' needs a value: %s %s", option->name, option->name,
                           option->argument);
    }
    return DP_OK;
}

void dp_options_topic(int argc, char *const *argv, const char *topic[2])
{
    int n = 0, a = 0;
    topic[0] = topic[1] = NULL;
    while (a < argc && strcmp(argv[a], "--help") != 0 && strcmp(argv[a], "-h") != 0)
        a++;
    for (a++; a < argc && n < 2 && argv[a][0] != '-'; a++)
        topic[n++] = argv[a];
}

const char *dp_options_value(const struct dp_command *command, const char *const *values, const char *name)
{
    size_t at = find(command, name, strlen(name));
    DP_ASSERT(at < command->count);
    return values[at];
}

static const char *flag_of(const void *context, const char *key)
{
    const struct dp_options_given *given = context;
    for (size_t i = 0; i < given->command->count; i++) {
        const struct dp_option *option = &given->command->options[i];
        if (option->key && strcmp(option->key, key) == 0 && (given->all || given->values[i]))
            return option->name;
    }
    return NULL;
}

struct dp_setting_names dp_options_names(const struct dp_options_given *given)
{
    return (struct dp_setting_names){flag_of, given};
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

/* Words, from a column on, in lines of HELP_WIDTH; a '\n' begins a new one. */
static void print_words(const char *text, FILE *file)
{
    size_t at = HELP_AT;
    while (*text) {
        size_t len = strcspn(text, " \n");
        if (at > HELP_AT && at + 1 + len > HELP_WIDTH) {
            fprintf(file, "\n%*s", (int)HELP_AT, "");
            at = HELP_AT;
        } else if (at > HELP_AT) {
            fputc(' ', file);
            at++;
        }
        fprintf(file, "%.*s", (int)len, text);
        at += len;
        text += len;
        if (*text == '\n') {
            fprintf(file, "\n%*s", (int)HELP_AT, "");
            at = HELP_AT;
        }
        text += *text != '\0';
    }
    fputc('\n', file);
}

void dp_options_help(const struct dp_command *command, FILE *file)
{
    fprintf(file, "Usage: %s %s %s\n\n%s\n", program_of(command), command->name, command->usage,
            command->summary);
    for (size_t i = 0; i < command->count; i++) {
        const struct dp_option *option = &command->options[i];
        char left[48];
        if (!option->name) {
            fprintf(file, "\n%s\n", option->help);
            continue;
        }
        (void)snprintf(left, sizeof left, "  %s %s", option->name, option->argument ? option->argument : "");
        fprintf(file, "%-*s", (int)HELP_AT, left);
        if (strlen(left) >= HELP_AT)
            fprintf(file, "\n%*s", (int)HELP_AT, "");
        print_words(option->help, file);
    }
    fprintf(file, "%-*s%s\n", (int)HELP_AT, "  --help", "this text");
}

int dp_options_show_help(const struct dp_command *command)
{
    dp_options_help(command, stdout);
    if (fflush(stdout) == 0)
        return 0;
    fprintf(stderr, "downpour: cannot write to standard output: %s\n", strerror(errno));
    return 2;
}

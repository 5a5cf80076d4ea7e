#include "deploy/cli/options.h"

#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/config/nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS_MAX   112
#define HELP_AT     27u /* column of what a flag is for */
#define HELP_WIDTH  100u
#define KEY_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_-"

static const char *program_of(const struct dp_command *command)
{
    return command->program ? command->program : "downpour";
}

/* "end" of the suboption "--rate end"; NULL: a flag or a heading. */
static const char *key_of(const struct dp_option *option)
{
    const char *space = option->name ? strchr(option->name, ' ') : NULL;
    return space ? space + 1 : NULL;
}

_Bool dp_options_is_of(const char *name, const char *flag)
{
    size_t len = strlen(flag);
    return strncmp(name, flag, len) == 0 && (name[len] == '\0' || name[len] == ' ');
}

enum dp_status dp_options_unknown(const struct dp_command *command, const char *word, struct dp_error *err)
{
    const char *names[FLAGS_MAX + 1];
    size_t n = 0;
    names[n++] = "--help";
    for (size_t i = 0; i < command->count && n <= FLAGS_MAX; i++)
        if (command->options[i].name && !key_of(&command->options[i]))
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

/* What the word is called in the table; NULL: it is no alias. */
static const char *name_of(const struct dp_option_alias *aliases, const char *word, size_t len)
{
    for (const struct dp_option_alias *a = aliases; a && a->alias; a++)
        if (is_word(a->alias, word, len))
            return a->name;
    return NULL;
}

static size_t find(const struct dp_command *command, const char *word, size_t len)
{
    const char *name = name_of(command->aliases, word, len);
    name = name ? name : name_of(command->as_flags, word, len);
    return name ? find_name(command, name, strlen(name)) : find_name(command, word, len);
}

/* ---- suboptions */

static size_t flag_of_part(const struct dp_command *command, size_t at)
{
    while (key_of(&command->options[at]))
        at--;
    return at;
}

static size_t find_part(const struct dp_command *command, size_t flag, const char *key, size_t len)
{
    size_t i = flag + 1;
    while (i < command->count && key_of(&command->options[i]) &&
           !is_word(key_of(&command->options[i]), key, len))
        i++;
    return i < command->count && key_of(&command->options[i]) ? i : command->count;
}

_Bool dp_options_has_part(const struct dp_command *command, const char *flag, size_t flag_len,
                          const char *key, size_t len)
{
    size_t at = find(command, flag, flag_len);
    return at < command->count && find_part(command, at, key, len) < command->count;
}

static enum dp_status no_part(const struct dp_command *command, size_t flag, const char *word, size_t len,
                              struct dp_error *err)
{
    char names[160] = "";
    for (size_t i = flag + 1; i < command->count && key_of(&command->options[i]); i++) {
        size_t at = strlen(names);
        (void)snprintf(names + at, sizeof names - at, "%s%s=%s", at ? ", " : "", key_of(&command->options[i]),
                       command->options[i].argument);
    }
    return dp_fail(err, DP_ARGUMENT, "%s has no suboption '%.*s'; it has %s", command->options[flag].name,
                   (int)(len < 60 ? len : 60), word, names);
}

static enum dp_status set_value(const struct dp_command *command, const char **values, size_t at,
                                const char *word, const char *value, struct dp_error *err)
{
    const char *name = command->options[at].name;
    _Bool alias = strcmp(word, name) != 0 && !key_of(&command->options[at]);
    if (values[at])
        return dp_fail(err, DP_ARGUMENT, "flag '%s'%s%s%s is given twice", name, alias ? " ('" : "",
                       alias ? word : "", alias ? "' is the same)" : "");
    values[at] = value;
    return DP_OK;
}

char *dp_options_keep(const char *text)
{
    static struct kept {
        struct kept *before;
        char text[];
    } * last;
    size_t size = strlen(text) + 1;
    struct kept *kept = malloc(sizeof *kept + size);
    if (!kept)
        return NULL;
    kept->before = last;
    last = kept;
    return memcpy(kept->text, text, size);
}

/* Each suboption in the text, and the flag itself, gets its value. A file's name may have any other KEY=. */
static enum dp_status set_parts(const struct dp_command *command, const char **values, size_t flag,
                                const char *word, const char *given, struct dp_error *err)
{
    const struct dp_option *option = &command->options[flag];
    _Bool alone = strchr(option->argument, '=') != NULL, file = strncmp(option->argument, "FILE", 4) == 0;
    char *text = dp_options_keep(given), *value = text;
    size_t at = flag; /* whose value begins at `value` */
    enum dp_status st = text ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %s", word);
    for (char *c = text; st == DP_OK && *c; c++) {
        size_t len = strspn(c, KEY_LETTERS), part = find_part(command, flag, c, len);
        if ((c > text && !strchr(",:", c[-1])) || len == 0 || c[len] != '=' ||
            (part == command->count && file))
            continue;
        if (part == command->count)
            return no_part(command, flag, c, len, err);
        if (c > text) {
            c[-1] = '\0';
            st = set_value(command, values, at, word, value, err);
        }
        at = part;
        value = c + len + 1;
    }
    if (st == DP_OK && alone && (at == flag || values[flag]))
        return no_part(command, flag, text, strlen(text), err);
    return st == DP_OK ? set_value(command, values, at, word, value, err) : st;
}

/* ---- flags */

static enum dp_status moved(const char *word, const struct dp_option *part, const struct dp_option *flag,
                            struct dp_error *err)
{
    if (strchr(flag->argument, '='))
        return dp_fail(err, DP_ARGUMENT, "flag '%s' is now '%s=%s'", word, part->name, part->argument);
    return dp_fail(err, DP_ARGUMENT, "flag '%s' is now '%s=%s' (or '%s %s,%s=%s')", word, part->name,
                   part->argument, flag->name, flag->argument, key_of(part), part->argument);
}

enum dp_status dp_options_parse(const struct dp_command *command, int argc, char *const *argv,
                                const char **values, _Bool *help, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *help = 0;
    for (size_t i = 0; i < command->count; i++)
        values[i] = NULL;
    for (int a = 0; a < argc; a++)
        if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0)
            *help = 1;
    for (int a = 0; st == DP_OK && a < argc && !*help; a++) {
        const char *word = argv[a], *equals = strchr(word, '='), *value = "";
        size_t len = equals ? (size_t)(equals - word) : strlen(word), at = find(command, word, len);
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)(len < 60 ? len : 60), word);
        if (at == command->count)
            return dp_options_unknown(command, name, err);
        const struct dp_option *option = &command->options[at];
        if (key_of(option) && strcmp(name, option->name) != 0 &&
            !name_of(command->as_flags, name, strlen(name)))
            return moved(name, option, &command->options[flag_of_part(command, at)], err);
        if (!option->argument && equals)
            return dp_fail(err, DP_ARGUMENT, "flag '%s' takes no value", option->name);
        if (equals)
            value = equals + 1;
        else if (option->argument && a + 1 < argc && strncmp(argv[a + 1], "--", 2) != 0)
            value = argv[++a];
        else if (option->argument && option->argument[0] != '[')
            return dp_fail(err, DP_ARGUMENT, "flag '%s' needs a value: %s %s", option->name, option->name,
                           option->argument);
        st = at + 1 < command->count && !key_of(option) && key_of(&command->options[at + 1])
                 ? set_parts(command, values, at, name, value, err)
                 : set_value(command, values, at, name, value, err);
    }
    return st;
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

enum dp_status dp_options_u64(const struct dp_command *command, const char *const *values, const char *name,
                              uint64_t min, uint64_t max, uint64_t preset, uint64_t *out,
                              struct dp_error *err)
{
    const char *value = dp_options_value(command, values, name);
    *out = preset;
    return value ? dp_parse_u64(value, min, max, name, out, err) : DP_OK;
}

const struct dp_option *dp_options_of_key(const struct dp_command *command, const char *key)
{
    for (size_t i = 0; i < command->count; i++) {
        const char *own = command->options[i].key;
        if (own && is_word(key, own, strcspn(own, "=")))
            return &command->options[i];
    }
    return NULL;
}

const char *dp_option_switched(const struct dp_option *option)
{
    return option->argument || !option->key ? NULL : strchr(option->key, '=') + 1;
}

static const char *flag_of(const void *context, const char *key)
{
    const struct dp_options_given *given = context;
    const struct dp_option *option = dp_options_of_key(given->command, key);
    return option && (given->all || given->values[option - given->command->options]) ? option->name : NULL;
}

struct dp_setting_names dp_options_names(const struct dp_options_given *given)
{
    return (struct dp_setting_names){flag_of, given};
}

enum dp_status dp_options_apply(const struct dp_command *command, const char *const *values,
                                struct dp_cluster *cluster, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < command->count; i++) {
        const struct dp_option *option = &command->options[i];
        if (!values[i] || !option->key)
            continue;
        char key[96];
        (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(option->key, "="), option->key);
        st = dp_cluster_set(cluster, key, option->argument ? values[i] : dp_option_switched(option),
                            option->name, err);
    }
    return st;
}

/* Words, from a column on, in lines of HELP_WIDTH. A '\n' begins a new one, or without `all` is the end. */
static void print_words(const char *text, _Bool all, FILE *file)
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
        if (*text == '\n' && !all)
            break;
        if (*text == '\n') {
            fprintf(file, "\n%*s", (int)HELP_AT, "");
            at = HELP_AT;
        }
        text += *text != '\0';
    }
    fputc('\n', file);
}

static void print_option(const struct dp_option *option, _Bool all, FILE *file)
{
    const char *key = key_of(option), *argument = option->argument ? option->argument : "";
    char left[64];
    (void)snprintf(left, sizeof left, key ? "    %s=%s" : "  %s %s", key ? key : option->name, argument);
    fprintf(file, "%-*s", (int)HELP_AT, left);
    if (strlen(left) >= HELP_AT)
        fprintf(file, "\n%*s", (int)HELP_AT, "");
    print_words(option->help, all, file);
}

void dp_options_help(const struct dp_command *command, _Bool all, FILE *file)
{
    _Bool rare = 0;
    fprintf(file, "Usage: %s %s %s\n\n%s\n", program_of(command), command->name, command->usage,
            command->summary);
    for (size_t i = 0; i < command->count; i++) {
        const struct dp_option *option = &command->options[i];
        rare = option->name ? rare : option->argument != NULL;
        if (!all && (rare || key_of(option)))
            continue;
        if (option->name)
            print_option(option, all, file);
        else
            fprintf(file, "\n%s\n", option->help);
    }
    fprintf(file, "%-*s%s\n", (int)HELP_AT, "  --help", "this text");
    if (!all)
        fprintf(file, "%-*s%s\n", (int)HELP_AT, "  --help all", "all flags, and the suboptions KEY=VALUE");
}

int dp_options_shown(void)
{
    if (!ferror(stdout) && fflush(stdout) == 0)
        return 0;
    fprintf(stderr, "downpour: cannot write to standard output: %s\n", strerror(errno));
    return 2;
}

int dp_options_show_help(const struct dp_command *command)
{
    dp_options_help(command, 1, stdout);
    return dp_options_shown();
}

int dp_options_show_short_help(const struct dp_command *command, int argc, char *const *argv)
{
    const char *topic[2];
    dp_options_topic(argc, argv, topic);
    dp_options_help(command, topic[0] && strcmp(topic[0], "all") == 0, stdout);
    return dp_options_shown();
}

int dp_options_end(const struct dp_command *command, enum dp_status st, struct dp_error *err)
{
    if (fflush(stdout) != 0 && st == DP_OK)
        st = dp_fail(err, DP_IO, "cannot write to standard output");
    if (st == DP_OK)
        return 0;
    dp_text_clean(err->text);
    fprintf(stderr, "%s: %s: %s\n", program_of(command), command->name, err->text);
    return 2;
}

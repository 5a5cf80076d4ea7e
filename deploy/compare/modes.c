#include "deploy/compare/modes.h"

#include "common/base/parse.h"
#include "common/config/consistency.h"
#include "common/config/nearest.h"
#include "common/model/mode.h"
#include "deploy/run/run_flags.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORKERS_MAX 1024u
#define WORDS       (2 * DP_COMPARE_NAME)
#define FORMS                                                                                                \
    DP_MODE_FORMS ", async:leased, hogwild and allreduce, each with @W for W workers, then "                 \
                  "[setting=value,...], then +prefetch"

/* ---- flags: those of its own, and those of `downpour run`, as one table for parser and --help */

static const struct dp_option own_flags[] = {
    DP_OPTION_HEADING("Comparison"),
    {"--modes", "A,B,...", NULL,
     DP_MODE_FORMS
     ", async:leased, hogwild (threads of one worker), allreduce (MPI, without servers). sync@8: with 8 "
     "workers instead of --workers. async[rate=0.01,momentum=0.5]: with settings of its own, by the names "
     "of run's flags. async+prefetch: it pulls the next minibatch before it pushes the current one, as run "
     "does. Differences are from the first mode; default async,ssp:4,sync"},
    {"--seeds", "N", NULL, "runs of each mode, with the seeds --seed, --seed + 1, ...: 1 .. 99; default 5"},
    {"--target", "METRIC:VALUE", NULL,
     "value to reach on the test set, in the form of run's --stop-at: accuracy:0.95; default, chosen "
     "afterwards: 95% of the way from the best constant to the value that the best mode keeps at its end"},
    {"--sample-every", "TIME", NULL,
     "how often the weights are sampled, 10ms .. 1h (they are scored after the run); default 500ms"},
    {"--lr-grid", "X,Y,...|none", NULL,
     "learning rates; each mode gets its best: tried before the runs, on other seeds, scored on a "
     "part of --train that these tries do not train on; none: all modes have --rate; default: a third of "
     "--rate, --rate, and three times it. A mode with a rate of its own keeps that"},
    {"--grid-seeds", "N", NULL, "seeds that each rate is tried on, 1 .. 99; default 1"},
    {"--dir", "DIR", NULL, "directory for report, page and runs; default ./downpour-compare"},
    {"--overwrite", NULL, NULL, "replace a comparison that is in DIR"},
    {"--resume", NULL, NULL,
     "continue the interrupted comparison in DIR with its own flags (give no other flag but --dir); runs "
     "that ended well are kept"},
    {"--like", "REPORT", NULL,
     "make the comparison of this report.json (or of its directory) again, here, with its flags; flags "
     "that are given replace its own, such as --train for a file that lies elsewhere; data with other "
     "bytes is refused"},
    {"--keep-stores", NULL, NULL,
     "keep the weights of each run (runs/MODE/seed-N/store), for predict and export"},
};
#define OWN (sizeof own_flags / sizeof own_flags[0])

static const char *const not_of_compare[] = {
    "--validation",  "--stop-at", "--patience", "--keep",         "--no-overlap",
    "--consistency", "--work",    "--threads",  "--port",         "--dir",
    "--from",        "--resume",  "--continue", "--fresh",        "--quiet",
    "--dry-run",     "--json",    "--config",   "--print-config", "--replace-store",
    "--discard",     "--report",  "--cluster",  "--sample-every", "--score",
};

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < sizeof not_of_compare / sizeof not_of_compare[0]; i++)
        if (dp_options_is_of(name, not_of_compare[i]))
            return true;
    return false;
}

bool dp_compare_is_of_run(const char *name)
{
    for (size_t i = 0; i < dp_run_command.count; i++)
        if (dp_run_command.options[i].name && strcmp(dp_run_command.options[i].name, name) == 0)
            return !is_left_out(name);
    return false;
}

/* A heading stays where a flag below it does. */
static size_t take_of_run(struct dp_option *out, size_t count)
{
    const struct dp_option *heading = NULL;
    for (size_t i = 0; i < dp_run_command.count; i++) {
        const struct dp_option *option = &dp_run_command.options[i];
        if (!option->name) {
            heading = option;
            continue;
        }
        if (is_left_out(option->name))
            continue;
        DP_ASSERT(count + 2 <= DP_COMPARE_FLAGS_MAX);
        if (heading)
            out[count++] = *heading;
        heading = NULL;
        out[count] = *option;
        if (strcmp(option->name, "--test") == 0)
            out[count].help =
                "test data (required; pairs: or --holdout), on which samples of the weights are scored";
        else if (strcmp(option->name, "--rate decay") == 0)
            out[count].help = "decay of the rate: none, linear, cosine or inverse-sqrt; default none";
        count++;
    }
    return count;
}

const struct dp_command *dp_compare_command(void)
{
    static struct dp_option all[DP_COMPARE_FLAGS_MAX];
    static struct dp_command command = {
        .name = "compare",
        .usage = "--model MODEL --train FILE --test FILE [--modes A,B,...] [--workers N] [--seeds N] [...]",
        .summary = "Trains the same job in several modes on this machine, each with several seeds, in turns; "
                   "samples the weights\nduring the runs, scores them on the test set afterwards, and makes "
                   "a page (DIR/report.html) and DIR/report.json:\nwhich mode reaches the target first in "
                   "time and in examples, where it ends, how stale its updates were,\nwhere the time went, "
                   "and how sure that is. A mode that fails leaves the others' results.\nExample: downpour "
                   "compare --modes async,ssp:4,sync --workers 4 --inject pace=10ms,straggler=3:4x\n         "
                   "--model mlp:784-128-10 --train train-images --test t10k-images --epochs 3",
        .options = all,
    };
    if (command.count == 0) {
        memcpy(all, own_flags, sizeof own_flags);
        command.count = take_of_run(all, OWN);
        command.aliases = dp_run_command.aliases;
    }
    return &command;
}

/* ---- modes */

/* kind: `text` without its suffixes. */
static enum dp_status no_mode(const char *text, const char *kind, struct dp_error *err)
{
    static const char *const kinds[] = {"async",  "async:leased", "ssp:S",    "sync",
                                        "sync:B", "hogwild",      "allreduce"};
    char lower[DP_COMPARE_NAME] = "";
    for (size_t i = 0; kind[i] && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)kind[i]);
    if (strcmp(lower, "ssp") == 0 || strcmp(lower, "ssp:") == 0)
        return dp_fail(err, DP_ARGUMENT, "--modes: '%.60s' is no mode: ssp needs its bound, as ssp:4", text);
    const char *near = dp_nearest(lower, kinds, sizeof kinds / sizeof kinds[0]);
    return dp_fail(err, DP_ARGUMENT, "--modes: '%.60s' is no mode%s%s%s; there are " FORMS, text,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static enum dp_status no_brackets(const char *text, struct dp_error *err)
{
    const char *open = strchr(text, '['), *close = strchr(text, ']');
    if (open && !close)
        return dp_fail(err, DP_ARGUMENT, "--modes: '%.60s' is no mode: the ] of its [ is missing", text);
    return no_mode(text, "", err);
}

/* ---- settings of its own */

/* What is compared is the same for all: what is trained, on what, for how long, and how slow workers are. */
static bool is_of_all(const struct dp_option *option)
{
    static const char *const names[] = {"--seed",  "--workers", "--epochs",
                                        "--top-k", "--cluster", "--inject"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (dp_options_is_of(option->name, names[i]))
            return true;
    return !dp_compare_is_of_run(option->name) ||
           (option->key && (strcmp(option->key, "model") == 0 || strncmp(option->key, "data.", 5) == 0));
}

static enum dp_status take_own(struct dp_compare_mode *mode, const char *const *values, struct dp_error *err)
{
    for (size_t i = 0; i < dp_run_command.count; i++) {
        const struct dp_option *option = &dp_run_command.options[i];
        if (!values[i])
            continue;
        if (strcmp(option->name, "--no-overlap") == 0)
            return dp_fail(err, DP_ARGUMENT,
                           "--modes: '%s': a mode pulls ahead of its push only with +prefetch after its name",
                           mode->name);
        if (is_of_all(option))
            return dp_fail(err, DP_ARGUMENT,
                           "--modes: '%s': %s is the same for all modes that are compared, or part of a "
                           "mode's name: a setting of one mode is such as rate, batch or momentum",
                           mode->name, option->name);
        if (mode->owns == DP_COMPARE_OWN_MAX)
            return dp_fail(err, DP_ARGUMENT, "--modes: '%s': at most %u settings", mode->name,
                           DP_COMPARE_OWN_MAX);
        struct dp_compare_own *own = &mode->own[mode->owns++];
        own->option = option;
        (void)snprintf(own->value, sizeof own->value, "%s", values[i]);
    }
    return DP_OK;
}

/* "rate=0.1,decay=cosine,push_every=4" as words of a command line, in `words`: "--rate=0.1,decay=cosine",
 * "--push-every=4". Returns how many. */
static int words_of(const char *text, char words[WORDS], char *argv[DP_COMPARE_OWN_MAX + 1])
{
    size_t at = 0;
    int count = 0;
    for (bool more = true; more && count <= (int)DP_COMPARE_OWN_MAX;) {
        size_t len = strcspn(text, ","), name = strcspn(text, ",=");
        char *word = argv[count++] = words + at;
        at += (size_t)snprintf(word, WORDS - at, "--%.*s", (int)len, text);
        for (size_t i = 0; i < name; i++)
            if (word[2 + i] == '_')
                word[2 + i] = '-';
        while (text[len] == ',' && dp_options_has_part(&dp_run_command, word, 2 + name, text + len + 1,
                                                       strcspn(text + len + 1, ",="))) {
            size_t part = 1 + strcspn(text + len + 1, ",");
            at += (size_t)snprintf(words + at, WORDS - at, "%.*s", (int)part, text + len);
            len += part;
        }
        at++;
        more = text[len] == ',';
        text += len + more;
    }
    return count;
}

/* text: what stands in the brackets. */
static enum dp_status parse_own(struct dp_compare_mode *mode, const char *text, struct dp_error *err)
{
    char words[WORDS], *argv[DP_COMPARE_OWN_MAX + 1];
    const char *values[DP_RUN_FLAGS];
    bool help;
    int count = words_of(text, words, argv);
    enum dp_status st = dp_options_parse(&dp_run_command, count, argv, values, &help, err);
    if (st == DP_OK && help)
        st = dp_fail(err, DP_ARGUMENT, "unknown flag '--help'");
    return st == DP_OK ? take_own(mode, values, err) : dp_wrap(err, st, "--modes: '%s'", mode->name);
}

/* Threads that share weights push together: a minibatch of each at least. */
static void settle_push_every(struct dp_compare_mode *mode)
{
    for (size_t i = 0; mode->kind == DP_COMPARE_HOGWILD && i < mode->owns; i++) {
        struct dp_compare_own *own = &mode->own[i];
        uint64_t value;
        if (strcmp(own->option->name, "--push-every") == 0 &&
            dp_parse_u64(own->value, 1, mode->workers, "", &value, NULL) == DP_OK)
            (void)snprintf(own->value, sizeof own->value, "%" PRIu32, mode->workers);
    }
}

const char *dp_compare_mode_own(const struct dp_compare_mode *mode, const char *flag)
{
    for (size_t i = 0; i < mode->owns; i++)
        if (strcmp(mode->own[i].option->name, flag) == 0)
            return mode->own[i].value;
    return NULL;
}

/* ---- names */

static enum dp_status parse_workers(char *text, uint32_t workers, uint32_t *out, struct dp_error *err)
{
    uint64_t value;
    char *at = strchr(text, '@');
    *out = workers;
    if (!at)
        return DP_OK;
    *at = '\0';
    enum dp_status st = dp_parse_u64(at + 1, 1, WORKERS_MAX, "--modes: the workers after @", &value, err);
    if (st == DP_OK)
        *out = (uint32_t)value;
    return st;
}

static enum dp_status parse_kind(struct dp_compare_mode *out, struct dp_error *err)
{
    struct dp_cluster_rule rule;
    if (strcmp(out->consistency, "hogwild") == 0)
        out->kind = DP_COMPARE_HOGWILD;
    else if (strcmp(out->consistency, "allreduce") == 0)
        out->kind = DP_COMPARE_ALLREDUCE;
    else if (strcmp(out->consistency, "async:leased") == 0)
        out->leased = true;
    else if (dp_cluster_rule_parse(out->consistency, "--modes", &rule, err) != DP_OK)
        return no_mode(out->name, out->consistency, err);
    if (out->leased || out->kind == DP_COMPARE_HOGWILD)
        (void)snprintf(out->consistency, sizeof out->consistency, "async");
    if (out->kind == DP_COMPARE_ALLREDUCE)
        (void)snprintf(out->consistency, sizeof out->consistency, "sync");
    return DP_OK;
}

/* Takes "+prefetch" and the brackets off the end of `text`. *own: what they hold, or NULL. */
static bool cut_suffixes(char *text, bool *prefetch, char **own)
{
    static const char prefetches[] = "+prefetch";
    size_t len = strlen(text), suffix = sizeof prefetches - 1;
    *prefetch = len > suffix && strcmp(text + len - suffix, prefetches) == 0;
    if (*prefetch)
        text[len -= suffix] = '\0';
    char *open = strchr(text, '[');
    *own = open ? open + 1 : NULL;
    if (!open)
        return strchr(text, ']') == NULL;
    if (text[len - 1] != ']' || strchr(open, ']') != text + len - 1 || strchr(open + 1, '['))
        return false;
    *open = text[len - 1] = '\0';
    return true;
}

static enum dp_status parse_one(const char *text, uint32_t workers, struct dp_compare_mode *out,
                                struct dp_error *err)
{
    char rest[DP_COMPARE_NAME], *own;
    *out = (struct dp_compare_mode){0};
    (void)snprintf(rest, sizeof rest, "%s", text);
    if (!cut_suffixes(rest, &out->prefetch, &own))
        return no_brackets(text, err);
    if (rest[0] == '\0' || strlen(rest) >= sizeof out->consistency)
        return no_mode(text, rest, err);
    (void)snprintf(out->name, sizeof out->name, "%s", text);
    (void)snprintf(out->consistency, sizeof out->consistency, "%s", rest);
    enum dp_status st = parse_workers(out->consistency, workers, &out->workers, err);
    if (st == DP_OK)
        st = parse_kind(out, err);
    if (st == DP_OK && out->prefetch && out->kind == DP_COMPARE_ALLREDUCE)
        return dp_fail(err, DP_ARGUMENT, "--modes: '%s': ranks have all weights and pull none ahead", text);
    if (st == DP_OK && own)
        st = parse_own(out, own, err);
    settle_push_every(out);
    return st;
}

static enum dp_status check_new(const struct dp_compare_mode *all, size_t count, struct dp_error *err)
{
    char one[DP_COMPARE_NAME], other[DP_COMPARE_NAME];
    dp_compare_mode_path(&all[count - 1], other);
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(dp_compare_mode_path(&all[i], one), other) == 0)
            return dp_fail(err, DP_ARGUMENT, "--modes: '%s' is given twice", all[i].name);
    return DP_OK;
}

/* Up to the next comma that stands in no brackets. */
static size_t length_of(const char *text)
{
    size_t len = 0;
    for (bool inside = false; text[len] && (inside || text[len] != ','); len++)
        inside = text[len] == '[' || (inside && text[len] != ']');
    return len;
}

enum dp_status dp_compare_modes_parse(const char *text, uint32_t workers,
                                      struct dp_compare_mode out[DP_COMPARE_MODES_MAX], size_t *count,
                                      struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *count = 0;
    for (bool more = true; st == DP_OK && more;) {
        char one[DP_COMPARE_NAME];
        size_t len = length_of(text);
        if (len >= sizeof one)
            return dp_fail(err, DP_ARGUMENT, "--modes: '%.60s...' is too long: at most %zu characters", text,
                           sizeof one - 1);
        (void)snprintf(one, sizeof one, "%.*s", (int)len, text);
        more = text[len] == ',';
        text += len + more;
        if (*count == DP_COMPARE_MODES_MAX)
            return dp_fail(err, DP_ARGUMENT, "--modes: at most %u at once, which a page can tell apart",
                           DP_COMPARE_MODES_MAX);
        st = parse_one(one, workers, &out[(*count)++], err);
        if (st == DP_OK)
            st = check_new(out, *count, err);
    }
    return st;
}

const char *dp_compare_mode_promise(const struct dp_compare_mode *mode, char out[DP_COMPARE_PROMISE_BYTES])
{
    struct dp_cluster_rule rule;
    const char *leased =
        "No worker waits for another, and each takes its next minibatches from a common list, so "
        "that a fast worker trains more of an epoch than a slow one.";
    const char *hogwild =
        "One process: its threads share the pulled weights without locks (Hogwild!, Niu et al. "
        "2011). --inject straggler, which slows one worker down, is left out.";
    const char *allreduce = "The steps of sync without servers: each rank has all weights, and MPI adds the "
                            "gradients. A rank that dies ends the job; nothing is durable.";
    if (mode->kind == DP_COMPARE_HOGWILD || mode->kind == DP_COMPARE_ALLREDUCE)
        (void)snprintf(out, DP_COMPARE_PROMISE_BYTES, "%s",
                       mode->kind == DP_COMPARE_HOGWILD ? hogwild : allreduce);
    else if (mode->leased)
        (void)snprintf(out, DP_COMPARE_PROMISE_BYTES, "%s", leased);
    else if (dp_cluster_rule_parse(mode->consistency, "--modes", &rule, NULL) == DP_OK)
        dp_mode_of(rule.mode)->promise(rule.slack, out, DP_COMPARE_PROMISE_BYTES);
    size_t used = strlen(out);
    if (mode->prefetch)
        (void)snprintf(
            out + used, DP_COMPARE_PROMISE_BYTES - used,
            " A worker pulls its next minibatch before it pushes the current one: its weights lack "
            "one step of its own.");
    return out;
}

const char *dp_compare_mode_path(const struct dp_compare_mode *mode, char out[DP_COMPARE_NAME])
{
    size_t size = 0;
    for (const char *at = mode->name; *at; at++)
        if (*at != ']')
            out[size++] = isalnum((unsigned char)*at) || strchr("._@=+", *at) ? *at : '-';
    out[size] = '\0';
    return out;
}

#include "common/config/consistency.h"

#include "common/config/fields.h"
#include "common/config/nearest.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FORMS_BYTES 400u

/* What can be typed. NULL: the name is right and its number is not, or none is like it. */
static const char *nearest_mode(const char *text)
{
    const char *names[DP_MODE_COUNT];
    char name[16], *c;
    size_t length = strcspn(text, ":=");
    for (size_t m = 0; m < DP_MODE_COUNT; m++)
        names[m] = dp_mode_table[m].name;
    if (length >= sizeof name)
        return NULL;
    memcpy(name, text, length);
    name[length] = '\0';
    for (c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    const char *near = dp_nearest(name, names, DP_MODE_COUNT);
    if (!near)
        return NULL;
    size_t m = 0;
    while (names[m] != near)
        m++;
    const struct dp_mode *mode = &dp_mode_table[m];
    bool named = text[length] != '\0' && strncmp(text, near, length) == 0;
    return !named || (mode->bare && strcmp(text + length, ":0") == 0) ? mode->usual : NULL;
}

static void list_forms(char out[FORMS_BYTES])
{
    size_t used = 0;
    for (size_t m = 0; m < DP_MODE_COUNT && used < FORMS_BYTES; m++) {
        int n = snprintf(out + used, FORMS_BYTES - used, "%s%s", m > 0 ? ", " : "", dp_mode_table[m].form);
        used += n > 0 ? (size_t)n : 0;
    }
}

enum dp_status dp_cluster_rule_parse(const char *text, const char *what, struct dp_cluster_rule *out,
                                     struct dp_error *err)
{
    char forms[FORMS_BYTES];
    *out = (struct dp_cluster_rule){0};
    if (dp_mode_parse(text, &out->mode, &out->slack))
        return DP_OK;
    const char *near = nearest_mode(text);
    list_forms(forms);
    return dp_fail(err, DP_ARGUMENT, "%s is \"%s\", but must be %s%s%s%s", what, text, forms,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

struct dp_cluster_rule dp_cluster_rule_of(const struct dp_cluster_training *training)
{
    struct dp_cluster_rule rule;
    enum dp_status st = dp_cluster_rule_parse(training->consistency, "training.consistency", &rule, NULL);
    DP_ASSERT(st == DP_OK);
    return rule;
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
    while (b > 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Fetch k begins with minibatch k * fetch, which is (k * fetch) % push into its step: a multiple of their
 * greatest common divisor. */
/* Over how many steps the minibatches of one fetch may lie. */
static uint64_t steps_of_fetch(const struct dp_cluster_training *training)
{
    uint64_t fetch = dp_cluster_fetched_together(training);
    uint64_t push = dp_cluster_pushed_together(training);
    uint64_t into = push - divisor((uint32_t)fetch, (uint32_t)push);
    return (into + fetch - 1) / push + 1;
}

/* What a mode that applies a step at once does not go with. */
static enum dp_status check_by_step(const struct dp_cluster *cluster, const struct dp_setting_names *names,
                                    const char *what, const char *text, struct dp_error *err)
{
    const struct dp_cluster_training *training = &cluster->training;
    char other[DP_SETTING_NAME_BYTES];
    if (training->fetch_every > 1)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %s, which pulls the weights of each step, but %s is %" PRIu32 ": leave it out",
                       what, text, dp_setting_name(names, "training.fetch_every", other),
                       training->fetch_every);
    if (cluster->durability == DP_CLUSTER_NONE)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %s, which keeps pushes in a journal until a step is complete, but %s is none: "
                       "give it machine or process",
                       what, text, dp_setting_name(names, "durability", other));
    if (training->rate_by_staleness)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %s, which applies a step at one rate and has no stale pushes, but %s is true: "
                       "leave it out",
                       what, text, dp_setting_name(names, "training.rate_by_staleness", other));
    return DP_OK;
}

enum dp_status dp_cluster_rule_check(const struct dp_cluster *cluster, const struct dp_setting_names *names,
                                     struct dp_error *err)
{
    const struct dp_cluster_training *training = &cluster->training;
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES], text[DP_MODE_TEXT_BYTES];
    const char *what = dp_setting_name(names, "training.consistency", name);
    struct dp_cluster_rule rule;
    enum dp_status st = dp_cluster_rule_parse(training->consistency, what, &rule, err);
    uint64_t steps = steps_of_fetch(training);
    if (st != DP_OK)
        return st;
    dp_mode_text(rule.mode, rule.slack, text);
    if (!dp_cluster_rule_waits(rule) && training->worker_timeout > 0)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32 " s, but %s is %s, where no worker waits for another: leave it out",
                       dp_setting_name(names, "training.worker_timeout", other), training->worker_timeout,
                       what, text);
    if (!dp_cluster_rule_waits(rule))
        return DP_OK;
    if (training->workers > DP_MODE_WORKERS_MAX)
        return dp_fail(err, DP_ARGUMENT, "%s is %s, which takes %u workers at most, but %s is %" PRIu32, what,
                       text, DP_MODE_WORKERS_MAX, dp_setting_name(names, "training.workers", other),
                       training->workers);
    if (dp_cluster_rule_by_step(rule) && (st = check_by_step(cluster, names, what, text, err)) != DP_OK)
        return st;
    if (dp_cluster_rule_backups(rule) >= training->workers)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %s, whose steps do not wait for the slowest %" PRIu32 ", but %s is %" PRIu32
                       ": give more workers, or wait for more of them",
                       what, text, rule.slack, dp_setting_name(names, "training.workers", other),
                       training->workers);
    if (steps - 1 > dp_mode_ahead(rule.mode, rule.slack))
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32 ", which pulls the weights of up to %" PRIu64
                       " steps at once, but %s is %s: give it %" PRIu64 " steps or more",
                       dp_setting_name(names, "training.fetch_every", other), training->fetch_every, steps,
                       what, text, steps - 1);
    return DP_OK;
}

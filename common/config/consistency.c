#include "common/config/consistency.h"

#include "common/base/parse.h"
#include "common/config/fields.h"
#include "common/config/nearest.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What can be typed: where a number is needed, the least that is commonly taken. NULL: the name is right and its number is not, or none is like it. */
static const char *nearest_mode(const char *text)
{
    static const char *const names[] = {"async", "ssp", "sync"};
    char name[16], *c;
    size_t length = strcspn(text, ":=");
    if (strcmp(text, "sync:0") == 0)
        return "sync";
    if (length >= sizeof name)
        return NULL;
    memcpy(name, text, length);
    name[length] = '\0';
    for (c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    const char *near = dp_nearest(name, names, sizeof names / sizeof names[0]);
    if (!near || (text[length] != '\0' && strncmp(text, near, length) == 0))
        return NULL;
    return strcmp(near, "ssp") == 0 ? "ssp:3" : near;
}

enum dp_status dp_cluster_rule_parse(const char *text, const char *what, struct dp_cluster_rule *out,
                                     struct dp_error *err)
{
    uint64_t slack = 0;
    *out = (struct dp_cluster_rule){.mode = DP_CLUSTER_ASYNC};
    if (strcmp(text, "async") == 0)
        return DP_OK;
    if (strcmp(text, "sync") == 0) {
        out->mode = DP_CLUSTER_SYNC;
        return DP_OK;
    }
    if (strncmp(text, "ssp:", 4) == 0 &&
        dp_parse_u64(text + 4, 0, DP_CLUSTER_SLACK_MAX, what, &slack, NULL) == DP_OK) {
        *out = (struct dp_cluster_rule){.mode = DP_CLUSTER_SSP, .slack = (uint32_t)slack};
        return DP_OK;
    }
    if (strncmp(text, "sync:", 5) == 0 &&
        dp_parse_u64(text + 5, 1, DP_CLUSTER_MEMBERS_MAX - 1, what, &slack, NULL) == DP_OK) {
        *out = (struct dp_cluster_rule){.mode = DP_CLUSTER_SYNC, .slack = (uint32_t)slack};
        return DP_OK;
    }
    const char *near = nearest_mode(text);
    return dp_fail(
        err, DP_ARGUMENT,
        "%s is \"%s\", but must be async, ssp:S (S: steps that a worker may be ahead of the "
        "slowest, 0 .. %u), sync or sync:B (B: workers that a step does not wait for, 1 .. %u)%s%s%s",
        what, text, DP_CLUSTER_SLACK_MAX, DP_CLUSTER_MEMBERS_MAX - 1, near ? "; did you mean '" : "",
        near ? near : "", near ? "'?" : "");
}

struct dp_cluster_rule dp_cluster_rule_of(const struct dp_cluster_training *training)
{
    struct dp_cluster_rule rule;
    enum dp_status st = dp_cluster_rule_parse(training->consistency, "training.consistency", &rule, NULL);
    DP_ASSERT(st == DP_OK);
    return rule;
}

const char *dp_cluster_rule_text(struct dp_cluster_rule rule, char out[DP_CLUSTER_RULE_BYTES])
{
    if (rule.mode == DP_CLUSTER_SSP || rule.slack > 0)
        (void)snprintf(out, DP_CLUSTER_RULE_BYTES, "%s:%" PRIu32,
                       rule.mode == DP_CLUSTER_SSP ? "ssp" : "sync", rule.slack);
    else
        (void)snprintf(out, DP_CLUSTER_RULE_BYTES, "%s", rule.mode == DP_CLUSTER_SYNC ? "sync" : "async");
    return out;
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
uint64_t dp_cluster_steps_of_fetch(const struct dp_cluster_training *training)
{
    uint64_t fetch = dp_cluster_fetched_together(training);
    uint64_t push = dp_cluster_pushed_together(training);
    uint64_t into = push - divisor((uint32_t)fetch, (uint32_t)push);
    return (into + fetch - 1) / push + 1;
}

enum dp_status dp_cluster_rule_check(const struct dp_cluster *cluster, const struct dp_setting_names *names,
                                     struct dp_error *err)
{
    const struct dp_cluster_training *training = &cluster->training;
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES], text[DP_CLUSTER_RULE_BYTES];
    const char *what = dp_setting_name(names, "training.consistency", name);
    struct dp_cluster_rule rule;
    enum dp_status st = dp_cluster_rule_parse(training->consistency, what, &rule, err);
    uint64_t steps = dp_cluster_steps_of_fetch(training);
    if (st == DP_OK && rule.mode == DP_CLUSTER_ASYNC && training->worker_timeout > 0)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32 " s, but %s is async, where nobody waits for a worker: leave it out",
                       dp_setting_name(names, "training.worker_timeout", other), training->worker_timeout,
                       what);
    if (st != DP_OK || rule.mode == DP_CLUSTER_ASYNC)
        return st;
    dp_cluster_rule_text(rule, text);
    if (training->workers > DP_CLUSTER_MEMBERS_MAX)
        return dp_fail(err, DP_ARGUMENT, "%s is %s, which takes %u workers at most, but %s is %" PRIu32, what,
                       text, DP_CLUSTER_MEMBERS_MAX, dp_setting_name(names, "training.workers", other),
                       training->workers);
    if (rule.mode == DP_CLUSTER_SYNC && training->fetch_every > 1)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %s, which pulls the weights of each step, but %s is %" PRIu32 ": leave it out",
                       what, text, dp_setting_name(names, "training.fetch_every", other),
                       training->fetch_every);
    if (rule.mode == DP_CLUSTER_SYNC && cluster->durability == DP_CLUSTER_NONE)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %s, whose pushes are kept in a journal until a step is whole, but %s is none: "
                       "give it machine or process",
                       what, text, dp_setting_name(names, "durability", other));
    if (rule.mode == DP_CLUSTER_SYNC && rule.slack >= training->workers)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %s, whose steps do not wait for the slowest %" PRIu32 ", but %s is %" PRIu32
                       ": give it more workers, or wait for more of them",
                       what, text, rule.slack, dp_setting_name(names, "training.workers", other),
                       training->workers);
    if (rule.mode == DP_CLUSTER_SYNC && training->rate_by_staleness)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %s, which applies a step at one rate and has no stale pushes, but %s is true: "
                       "leave it out",
                       what, text, dp_setting_name(names, "training.rate_by_staleness", other));
    if (rule.mode == DP_CLUSTER_SSP && steps > (uint64_t)rule.slack + 1)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32 ", which pulls the weights of up to %" PRIu64
                       " steps at once, but %s is %s: give it %" PRIu64 " steps or more",
                       dp_setting_name(names, "training.fetch_every", other), training->fetch_every, steps,
                       what, text, steps - 1);
    return DP_OK;
}

#include "deploy/compare/modes.h"

#include "common/base/parse.h"
#include "common/config/consistency.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORKERS_MAX 1024u
#define FORMS       "async, async:leased, ssp:S, sync, sync:B, hogwild and allreduce, each with @W for W workers"

static enum dp_status parse_workers(char *text, uint32_t workers, uint32_t *out, struct dp_error *err)
{
    uint64_t value;
    char *at = strchr(text, '@');
    *out = workers;
    if (!at)
        return DP_OK;
    *at = '\0';
    enum dp_status st = dp_parse_u64(at + 1, 1, WORKERS_MAX, "--modes: the workers behind @", &value, err);
    if (st == DP_OK)
        *out = (uint32_t)value;
    return st;
}

static enum dp_status parse_one(const char *text, uint32_t workers, struct dp_compare_mode *out,
                                struct dp_error *err)
{
    struct dp_cluster_rule rule;
    *out = (struct dp_compare_mode){0};
    if (text[0] == '\0' || strlen(text) >= sizeof out->consistency)
        return dp_fail(err, DP_ARGUMENT, "--modes: '%.60s' is no mode; there are " FORMS, text);
    (void)snprintf(out->name, sizeof out->name, "%s", text);
    (void)snprintf(out->consistency, sizeof out->consistency, "%s", text);
    enum dp_status st = parse_workers(out->consistency, workers, &out->workers, err);
    if (st != DP_OK)
        return st;
    if (strcmp(out->consistency, "hogwild") == 0)
        out->kind = DP_COMPARE_HOGWILD;
    else if (strcmp(out->consistency, "allreduce") == 0)
        out->kind = DP_COMPARE_ALLREDUCE;
    else if (strcmp(out->consistency, "async:leased") == 0)
        out->leased = true;
    else if (dp_cluster_rule_parse(out->consistency, "--modes", &rule, err) != DP_OK)
        return dp_fail(err, DP_ARGUMENT, "--modes: '%.40s' is no mode; there are " FORMS, text);
    if (out->leased || out->kind == DP_COMPARE_HOGWILD)
        (void)snprintf(out->consistency, sizeof out->consistency, "async");
    if (out->kind == DP_COMPARE_ALLREDUCE)
        (void)snprintf(out->consistency, sizeof out->consistency, "sync");
    return DP_OK;
}

static enum dp_status check_new(const struct dp_compare_mode *all, size_t count, struct dp_error *err)
{
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(all[i].name, all[count - 1].name) == 0)
            return dp_fail(err, DP_ARGUMENT, "--modes: '%s' is given twice", all[i].name);
    return DP_OK;
}

enum dp_status dp_compare_modes_parse(const char *text, uint32_t workers,
                                      struct dp_compare_mode out[DP_COMPARE_MODES_MAX], size_t *count,
                                      struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *count = 0;
    for (bool more = true; st == DP_OK && more;) {
        char one[64];
        size_t len = strcspn(text, ",");
        (void)snprintf(one, sizeof one, "%.*s", (int)(len < sizeof one ? len : sizeof one - 1), text);
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
    const char *slack = strchr(mode->consistency, ':');
    const char *fixed =
        "No worker waits for another. Each trains a fixed share of every epoch; a gradient may be "
        "applied to weights that others have changed meanwhile.";
    const char *leased =
        "No worker waits for another, and each takes its next minibatches from a common list, so "
        "that a fast worker trains more of an epoch than a slow one.";
    const char *hogwild =
        "One process: its threads share the pulled weights without locks (Hogwild!, Niu et al. "
        "2011). --straggler, which slows one worker down, is left out.";
    const char *allreduce = "The steps of sync without servers: each rank has all weights, and MPI adds the "
                            "gradients. A rank that dies ends the job; nothing is durable.";
    const char *sync =
        "All workers compute on equal weights, and servers apply the mean of their gradients as one "
        "step: no gradient is late, and a seed gives equal bits in each run.";
    int limit = slack ? (int)strlen(slack + 1) : 0;
    if (mode->kind == DP_COMPARE_HOGWILD || mode->kind == DP_COMPARE_ALLREDUCE)
        (void)snprintf(out, DP_COMPARE_PROMISE_BYTES, "%s",
                       mode->kind == DP_COMPARE_HOGWILD ? hogwild : allreduce);
    else if (strncmp(mode->consistency, "ssp", 3) == 0)
        (void)snprintf(
            out, DP_COMPARE_PROMISE_BYTES,
            "No worker is more than %.*s steps ahead of the slowest, so weights lack at most so many "
            "steps of any worker (stale synchronous parallel, Ho et al. 2013).",
            limit, slack ? slack + 1 : "");
    else if (slack)
        (void)snprintf(
            out, DP_COMPARE_PROMISE_BYTES,
            "As sync, but a step does not wait for the %.*s slowest workers, whose gradients are dropped "
            "(backup workers, Chen et al. 2016).",
            limit, slack + 1);
    else if (strcmp(mode->consistency, "sync") == 0)
        (void)snprintf(out, DP_COMPARE_PROMISE_BYTES, "%s", sync);
    else
        (void)snprintf(out, DP_COMPARE_PROMISE_BYTES, "%s", mode->leased ? leased : fixed);
    return out;
}

const char *dp_compare_mode_path(const struct dp_compare_mode *mode, char out[32])
{
    (void)snprintf(out, 32, "%s", mode->name);
    for (char *at = out; *at; at++)
        if (*at == ':')
            *at = '-';
    return out;
}

#include "deploy/compare/compare_settings.h"

#include "common/config/consistency.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDED     1e-9 /* a report has ten digits of a number, */
#define ROUNDED_F32 1e-6 /* and seven of an optimizer's */

struct settings_check {
    const json_t *report;
    char *why;
    size_t size;
    bool matches;
};

/* key: "batch", "optimizer.momentum" */
static const json_t *reported(const struct settings_check *check, const char *key)
{
    const json_t *settings = json_object_get(check->report, "settings");
    const char *dot = strchr(key, '.');
    return dot ? json_object_get(json_object_getn(settings, key, (size_t)(dot - key)), dot + 1)
               : json_object_get(settings, key);
}

/* The first difference stays. */
static void differs(struct settings_check *check, const char *key, const char *asked)
{
    const json_t *value = reported(check, key);
    char *number =
        json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
    const char *text = json_is_string(value) ? json_string_value(value) : number;
    if (check->matches)
        (void)snprintf(check->why, check->size, "it was started with %s %.60s, but its report says %.60s",
                       key, asked[0] ? asked : "none", text ? text : "none");
    check->matches = false;
    free(number);
}

static void check_count(struct settings_check *check, const char *key, uint64_t asked)
{
    const json_t *value = reported(check, key);
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, asked);
    if (!json_is_integer(value) || (uint64_t)json_integer_value(value) != asked)
        differs(check, key, text);
}

/* NULL, "" and "none" are the same; a report may leave such a setting out. */
static const char *text_of(const char *text)
{
    return text && strcmp(text, "none") != 0 ? text : "";
}

static void check_text(struct settings_check *check, const char *key, const char *asked)
{
    const char *wanted = text_of(asked);
    if (strcmp(text_of(json_string_value(reported(check, key))), wanted) != 0)
        differs(check, key, wanted);
}

static void check_rate(struct settings_check *check, const char *asked)
{
    const json_t *value = reported(check, "rate");
    if (!asked) /* the run's own default */
        return;
    double wanted = strtod(asked, NULL);
    if (!json_is_number(value) || !(fabs(json_number_value(value) - wanted) <= ROUNDED * fabs(wanted)))
        differs(check, "rate", asked);
}

static void check_switch(struct settings_check *check, const char *key, bool asked)
{
    const json_t *value = reported(check, key);
    if (!json_is_boolean(value) || json_is_true(value) != asked)
        differs(check, key, asked ? "true" : "false");
}

/* A setting of the mode's own, where the report has it under its name in the cluster file, as a number, a switch or a text. */
static void check_own(struct settings_check *check, const struct dp_compare_own *own)
{
    static const char training[] = "training.";
    const char *key = own->option->key ? own->option->key : "";
    if (strncmp(key, training, sizeof training - 1) != 0 || strcmp(own->option->name, "--optimizer") == 0)
        return;
    key += sizeof training - 1;
    char name[96];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(key, "="), key);
    const json_t *value = reported(check, name);
    char *end;
    double asked = strtod(own->value, &end), is = json_number_value(value);
    bool is_number = end != own->value && *end == '\0';
    if (!own->option->argument)
        check_switch(check, name, strcmp(dp_option_switched(own->option), "true") == 0);
    else if (json_is_string(value))
        check_text(check, key, own->value);
    else if (json_is_number(value) && (!is_number || !(fabs(is - asked) <= ROUNDED_F32 * fabs(asked))))
        differs(check, key, own->value);
}

/* "ssp:04" is reported as "ssp:4". */
static void check_consistency(struct settings_check *check, const struct dp_compare_mode *mode)
{
    struct dp_cluster_rule rule;
    struct dp_error unheard = {0};
    char text[DP_MODE_TEXT_BYTES];
    bool parsed = dp_cluster_rule_parse(mode->consistency, "--modes", &rule, &unheard) == DP_OK;
    check_text(check, "consistency", parsed ? dp_mode_text(rule.mode, rule.slack, text) : mode->consistency);
}

/* A run with servers trains the same steps as ranks do in sync: only this tells them apart. */
static void check_reduced(struct settings_check *check, bool asked)
{
    bool is = json_is_string(json_object_get(check->report, "reduced_by"));
    if (is == asked)
        return;
    if (check->matches)
        (void)snprintf(check->why, check->size, "by its report %s",
                       is ? "ranks added its gradients, without servers"
                          : "servers applied its gradients: no ranks added them");
    check->matches = false;
}

bool dp_compare_settings_match(const struct dp_compare_job *job, const json_t *report, char *why, size_t size)
{
    struct settings_check check = {.report = report, .why = why, .size = size, .matches = true};
    const struct dp_compare_mode *mode = job->mode;
    bool threads = mode->kind == DP_COMPARE_HOGWILD;
    check_count(&check, "seed", job->seed);
    check_consistency(&check, mode);
    check_text(&check, "work", mode->leased ? "leased" : "fixed");
    check_count(&check, "workers", threads ? 1 : mode->workers);
    check_count(&check, "threads", threads ? mode->workers : 1);
    check_reduced(&check, mode->kind == DP_COMPARE_ALLREDUCE);
    check_rate(&check, job->rate ? job->rate : dp_compare_plan_mode_flag(job->plan, mode, "--rate"));
    check_switch(&check, "overlap", mode->prefetch);
    for (size_t i = 0; i < mode->owns; i++)
        check_own(&check, &mode->own[i]);
    check_text(&check, "pace", dp_compare_plan_flag(job->plan, "--inject pace"));
    check_text(&check, "jitter", dp_compare_plan_flag(job->plan, "--inject jitter"));
    check_text(&check, "straggler", threads ? NULL : dp_compare_plan_flag(job->plan, "--inject straggler"));
    return check.matches;
}

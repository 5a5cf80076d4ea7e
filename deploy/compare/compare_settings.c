#include "deploy/compare/compare_job.h"

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

/* NULL, "" and "none" are the same; a report may leave such a setting out. */
static const char *text_of(const char *text)
{
    return text && strcmp(text, "none") != 0 ? text : "";
}

/* As a text, a number or a switch, which the report has. near: how far a real may be off, as a share. */
static void check_text(struct settings_check *check, const char *key, const char *asked, double near)
{
    const json_t *value = reported(check, key);
    const char *wanted = text_of(asked);
    char *end = NULL;
    double number = strtod(wanted, &end);
    bool same = strcmp(text_of(json_string_value(value)), wanted) == 0;
    if (json_is_boolean(value))
        same = strcmp(wanted, json_is_true(value) ? "true" : "false") == 0;
    else if (json_is_integer(value))
        same = (json_int_t)strtoull(wanted, NULL, 10) == json_integer_value(value) && *end == '\0';
    if (json_is_real(value) || (json_is_integer(value) && near > 0))
        same =
            *end == '\0' && end != wanted && fabs(json_number_value(value) - number) <= near * fabs(number);
    if (!same)
        differs(check, key, wanted);
}

static void check_count(struct settings_check *check, const char *key, uint64_t asked)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, asked);
    check_text(check, key, text, 0);
}

/* A setting of the mode's own, where the report has it under its name in the cluster file. */
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
    if (!own->option->argument || json_is_string(value) || json_is_number(value))
        check_text(check, name, own->option->argument ? own->value : dp_option_switched(own->option),
                   ROUNDED_F32);
}

/* "ssp:04" is reported as "ssp:4". */
static void check_consistency(struct settings_check *check, const struct dp_compare_mode *mode)
{
    struct dp_cluster_rule rule;
    struct dp_error unheard = {0};
    char text[DP_MODE_TEXT_BYTES];
    bool parsed = dp_cluster_rule_parse(mode->consistency, "--modes", &rule, &unheard) == DP_OK;
    check_text(check, "consistency", parsed ? dp_mode_text(rule.mode, rule.slack, text) : mode->consistency,
               0);
}

/* A run with servers trains the same steps as ranks do in sync: only this field differs. */
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
    const char *rate = job->rate ? job->rate : dp_compare_plan_mode_flag(job->plan, mode, "--rate");
    check_count(&check, "seed", job->seed);
    check_consistency(&check, mode);
    check_text(&check, "work", mode->leased ? "leased" : "fixed", 0);
    check_count(&check, "workers", threads ? 1 : mode->workers);
    check_count(&check, "threads", threads ? mode->workers : 1);
    check_reduced(&check, mode->kind == DP_COMPARE_ALLREDUCE);
    if (rate) /* else the run's own default */
        check_text(&check, "rate", rate, ROUNDED);
    check_text(&check, "overlap", mode->prefetch ? "true" : "false", 0);
    for (size_t i = 0; i < mode->owns; i++)
        check_own(&check, &mode->own[i]);
    check_text(&check, "pace", dp_compare_plan_flag(job->plan, "--inject pace"), 0);
    check_text(&check, "jitter", dp_compare_plan_flag(job->plan, "--inject jitter"), 0);
    check_text(&check, "straggler", threads ? NULL : dp_compare_plan_flag(job->plan, "--inject straggler"),
               0);
    return check.matches;
}

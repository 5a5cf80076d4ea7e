#include "deploy/compare/compare_plan.h"

#include "common/base/parse.h"
#include "common/config/injection.h"
#include "deploy/cli/path.h"
#include "deploy/run/run_flags.h"
#include "deploy/run/run_shape.h"
#include "deploy/run/spool.h"
#include "worker/allreduce/allreduce.h"
#include "worker/compute/models/model.h"
#include "worker/context/defaults.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEDS_MAX      99u
#define SEEDS_DEFAULT  5u
#define GRID_SEED      1000u /* after the reported ones */
#define SAMPLE_MIN_MS  10u
#define SAMPLE_MAX_MS  3600000u
#define SAMPLE_DEFAULT 500u
#define GRID_FACTOR    3.0 /* between the rates of the default grid */
#define MODES_DEFAULT  "async,ssp:4,sync"

const char *dp_compare_plan_flag(const struct dp_compare_plan *plan, const char *name)
{
    return dp_options_value(dp_compare_command(), plan->values, name);
}

const char *dp_compare_plan_mode_flag(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode,
                                      const char *name)
{
    const char *own = dp_compare_mode_own(mode, name);
    return own ? own : dp_compare_plan_flag(plan, name);
}

bool dp_compare_plan_seeks_rate(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode)
{
    const char *grid = dp_compare_plan_flag(plan, "--lr-grid");
    return !dp_compare_mode_own(mode, "--rate") && !(grid && strcmp(grid, "none") == 0);
}

void dp_compare_plan_values(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode,
                            const char *values[DP_COMPARE_FLAGS_MAX])
{
    const struct dp_command *command = dp_compare_command();
    memcpy(values, plan->values, sizeof plan->values);
    for (size_t i = 0; i < command->count; i++) {
        const char *own =
            command->options[i].name ? dp_compare_mode_own(mode, command->options[i].name) : NULL;
        if (own)
            values[i] = own;
    }
}

static enum dp_status count_of(const struct dp_compare_plan *plan, const char *name, uint32_t max,
                               uint32_t by_default, uint32_t *out, struct dp_error *err)
{
    uint64_t value;
    enum dp_status st =
        dp_options_u64(dp_compare_command(), plan->values, name, 1, max, by_default, &value, err);
    *out = (uint32_t)value;
    return st;
}

static enum dp_status set_seeds(struct dp_compare_plan *plan, struct dp_error *err)
{
    enum dp_status st = count_of(plan, "--seeds", SEEDS_MAX, SEEDS_DEFAULT, &plan->seeds, err);
    if (st == DP_OK)
        st = count_of(plan, "--grid-seeds", SEEDS_MAX, 1, &plan->grid_seeds, err);
    if (st == DP_OK)
        st = dp_options_u64(dp_compare_command(), plan->values, "--seed", 0, INT64_MAX - 2 * GRID_SEED, 1,
                            &plan->first_seed, err);
    plan->first_grid_seed = plan->first_seed + GRID_SEED;
    return st;
}

static enum dp_status add_rate(struct dp_compare_plan *plan, const char *text, size_t len,
                               struct dp_error *err)
{
    double unused;
    if (plan->rates == DP_COMPARE_RATES_MAX)
        return dp_fail(err, DP_ARGUMENT, "--lr-grid: at most %u rates", DP_COMPARE_RATES_MAX);
    char *one = plan->rate[plan->rates++];
    (void)snprintf(one, DP_COMPARE_RATE, "%.*s", (int)(len < DP_COMPARE_RATE ? len : DP_COMPARE_RATE), text);
    return dp_parse_f64(one, FLT_MIN, FLT_MAX, "--lr-grid", &unused, err);
}

/* To two digits: 0.00033, 170. */
static void put_rounded(double rate, char out[DP_COMPARE_RATE])
{
    (void)snprintf(out, DP_COMPARE_RATE, "%.1e", rate);
    (void)snprintf(out, DP_COMPARE_RATE, "%g", strtod(out, NULL));
}

/* Of runs that do not say. */
static double rate_of_model(const struct dp_compare_plan *plan)
{
    struct dp_model model;
    struct dp_error unheard = {0}; /* it was opened before */
    double rate = dp_model_open(dp_compare_plan_flag(plan, "--model"), &model, &unheard) == DP_OK
                      ? model.rate
                      : DP_RATE_DEFAULT;
    dp_model_close(&model);
    return rate;
}

/* Around that of modes that have none of their own. */
static enum dp_status set_default_rates(struct dp_compare_plan *plan, struct dp_error *err)
{
    const char *given = dp_compare_plan_flag(plan, "--rate");
    char all[3][DP_COMPARE_RATE];
    double rate = rate_of_model(plan);
    enum dp_status st = given ? dp_parse_f64(given, FLT_MIN, FLT_MAX, "--rate", &rate, err) : DP_OK;
    put_rounded(rate / GRID_FACTOR, all[0]);
    (void)snprintf(all[1], sizeof all[1], "%.9g", rate);
    put_rounded(rate * GRID_FACTOR, all[2]);
    for (size_t i = 0; st == DP_OK && i < sizeof all / sizeof all[0]; i++)
        st = add_rate(plan, all[i], strlen(all[i]), err);
    return st;
}

static bool any_seeks(const struct dp_compare_plan *plan)
{
    bool any = false;
    for (size_t m = 0; m < plan->modes; m++)
        any |= dp_compare_plan_seeks_rate(plan, &plan->mode[m]);
    return any;
}

static enum dp_status set_rates(struct dp_compare_plan *plan, struct dp_error *err)
{
    const char *text = dp_compare_plan_flag(plan, "--lr-grid");
    bool none = text && strcmp(text, "none") == 0;
    enum dp_status st = DP_OK;
    if (text && !none && dp_compare_plan_flag(plan, "--rate"))
        return dp_fail(err, DP_ARGUMENT, "--lr-grid %s and --rate: give one of them", text);
    if (none && dp_compare_plan_flag(plan, "--grid-seeds"))
        return dp_fail(err, DP_ARGUMENT, "--grid-seeds says how --lr-grid is tried, and that is none");
    if (none || !any_seeks(plan))
        return DP_OK;
    if (!text)
        return set_default_rates(plan, err);
    for (bool more = true; st == DP_OK && more;) {
        size_t len = strcspn(text, ",");
        st = add_rate(plan, text, len, err);
        more = text[len] == ',';
        text += len + more;
    }
    return st;
}

static enum dp_status set_sampling(struct dp_compare_plan *plan, struct dp_error *err)
{
    const char *text = dp_compare_plan_flag(plan, "--sample-every");
    uint64_t ns = SAMPLE_DEFAULT * UINT64_C(1000000);
    enum dp_status st =
        text ? dp_parse_time(text, SAMPLE_MAX_MS * UINT64_C(1000000), "--sample-every", &ns, err) : DP_OK;
    if (st == DP_OK && ns < SAMPLE_MIN_MS * UINT64_C(1000000))
        st = dp_fail(err, DP_ARGUMENT, "--sample-every is %s, but must be %ums or more", text, SAMPLE_MIN_MS);
    plan->sample_ms = (uint32_t)(ns / 1000000);
    plan->target_text = dp_compare_plan_flag(plan, "--target");
    if (st == DP_OK && plan->target_text)
        st = dp_goal_parse(plan->target_text, "--target", &plan->target, err);
    return st;
}

static enum dp_status set_modes(struct dp_compare_plan *plan, struct dp_error *err)
{
    uint32_t workers;
    const char *text = dp_compare_plan_flag(plan, "--modes");
    enum dp_status st = count_of(plan, "--workers", 1024, 1, &workers, err);
    return st == DP_OK
               ? dp_compare_modes_parse(text ? text : MODES_DEFAULT, workers, plan->mode, &plan->modes, err)
               : st;
}

const char *const dp_compare_files[DP_COMPARE_FILES] = {"--train", "--train labels", "--test",
                                                        "--test labels", "--test negatives"};

static enum dp_status check_files(const struct dp_compare_plan *plan, struct dp_error *err)
{
    static const char *const required[] = {"--model", "--train"};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        if (!dp_compare_plan_flag(plan, required[i]))
            return dp_fail(err, DP_ARGUMENT, "%s is required; 'downpour compare --help' lists all flags",
                           required[i]);
    if (!dp_compare_plan_flag(plan, "--test") && !dp_compare_plan_flag(plan, "--holdout"))
        return dp_fail(
            err, DP_ARGUMENT,
            "--test FILE is required: the samples of the weights are scored on it (pairs: --holdout)");
    for (size_t i = 0; i < DP_COMPARE_FILES; i++) {
        const char *flag = dp_compare_files[i], *path = dp_compare_plan_flag(plan, flag);
        if (path && dp_spool_is_stream(path))
            return dp_fail(err, DP_ARGUMENT,
                           "%s: '%.200s' is a stream, but each run reads it again: name a file", flag, path);
        if (path && access(path, R_OK) != 0)
            return dp_fail(err, DP_IO, "%s: cannot read '%.300s': %s", flag, path, strerror(errno));
    }
    return DP_OK;
}

static enum dp_status set_mode(struct dp_cluster *cluster, const struct dp_compare_mode *mode,
                               const char *rate, struct dp_error *err)
{
    struct dp_cluster_training *t = &cluster->training;
    bool threads = mode->kind == DP_COMPARE_HOGWILD;
    t->overlap = mode->prefetch;
    t->workers = threads ? 1 : mode->workers;
    t->threads = threads ? mode->workers : 1;
    t->work = mode->leased ? DP_CLUSTER_LEASED : DP_CLUSTER_FIXED;
    if (threads)
        t->straggler[0] = '\0';
    enum dp_status st = dp_cluster_set(cluster, "training.consistency", mode->consistency, "--modes", err);
    return st == DP_OK && rate ? dp_cluster_set(cluster, "training.rate", rate, "--lr-grid", err) : st;
}

/* Each run settles its rate itself. */
static enum dp_status take_settings(const struct dp_compare_plan *plan, const char *const *values,
                                    struct dp_cluster *cluster, struct dp_error *err)
{
    const struct dp_options_given given = {dp_compare_command(), values, false};
    const struct dp_setting_names names = dp_options_names(&given);
    struct dp_model model;
    struct dp_error unheard = {0}; /* check_shape names it */
    enum dp_status st = DP_OK;
    if (dp_model_open(dp_compare_plan_flag(plan, "--model"), &model, &unheard) == DP_OK)
        st = dp_defaults_settings(&model, &names, cluster, err);
    dp_model_close(&model);
    return st;
}

enum dp_status dp_compare_plan_cluster(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode,
                                       uint64_t seed, const char *rate, struct dp_cluster **out,
                                       struct dp_error *err)
{
    const char *values[DP_COMPARE_FLAGS_MAX];
    struct dp_cluster *c = *out = calloc(1, sizeof *c);
    dp_compare_plan_values(plan, mode, values);
    if (c) {
        dp_cluster_defaults(c);
        c->training.rate = rate_of_model(plan);
    }
    if (!c || !(c->server = calloc(1, sizeof c->server[0])))
        return dp_fail(err, DP_NOMEM, "no memory for the settings of a run");
    c->server_count = 1;
    c->server[0] =
        (struct dp_cluster_server){.host = "127.0.0.1", .port = 1024, .shards = 1, .store = "store"};
    (void)snprintf(c->name, sizeof c->name, "compare");
    c->id = 1; /* of no server: each run draws its own */
    enum dp_status st = dp_options_apply(dp_compare_command(), values, c, err);
    if (st == DP_OK)
        st = take_settings(plan, values, c, err);
    if (st == DP_OK)
        st = set_mode(c, mode, rate, err);
    c->training.seed = seed;
    return st;
}

static enum dp_status check_model(const struct dp_compare_plan *plan, struct dp_error *err)
{
    struct dp_model model;
    enum dp_status st = dp_model_open(dp_compare_plan_flag(plan, "--model"), &model, err);
    dp_model_close(&model);
    return st;
}

static enum dp_status check_mode(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode,
                                 const char *rate, struct dp_error *err)
{
    /* A name of the flags is what a person knows. */
    const struct dp_options_given given = {dp_compare_command(), plan->values, true};
    const struct dp_setting_names names = dp_options_names(&given);
    struct dp_cluster *cluster = NULL;
    enum dp_status st = dp_compare_plan_cluster(plan, mode, plan->first_seed, rate, &cluster, err);
    if (st == DP_OK)
        st = dp_cluster_check_settings(cluster, &names, err);
    if (st == DP_OK && mode->kind == DP_COMPARE_ALLREDUCE)
        st = dp_allreduce_check(cluster, mode->workers, err);
    const char *straggler = st == DP_OK ? dp_injection_lacks_pace(&cluster->training) : NULL;
    if (straggler)
        st =
            dp_fail(err, DP_ARGUMENT,
                    "--inject straggler=%s multiplies pace, which is not given: add pace=TIME (such as 20ms)",
                    straggler);
    dp_cluster_free(&cluster);
    return st == DP_OK ? st : dp_wrap(err, st, "mode %s", mode->name);
}

/* Each run would refuse a model that does not fit the training file. */
static enum dp_status check_shape(const struct dp_compare_plan *plan, struct dp_error *err)
{
    struct dp_cluster *cluster = NULL;
    enum dp_status st = dp_compare_plan_cluster(plan, &plan->mode[0], plan->first_seed, NULL, &cluster, err);
    if (st == DP_OK)
        st = dp_run_shape(cluster, "", false, err);
    dp_cluster_free(&cluster);
    return st;
}

static enum dp_status check_settings(const struct dp_compare_plan *plan, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t m = 0; st == DP_OK && m < plan->modes; m++) {
        const struct dp_compare_mode *mode = &plan->mode[m];
        st = check_mode(plan, mode, NULL, err);
        for (size_t r = 0; st == DP_OK && dp_compare_plan_seeks_rate(plan, mode) && r < plan->rates; r++)
            st = check_mode(plan, mode, plan->rate[r], err);
    }
    return st == DP_OK ? check_shape(plan, err) : st;
}

enum dp_status dp_compare_plan_make(struct dp_compare_plan *plan, struct dp_error *err)
{
    const char *dir = dp_compare_plan_flag(plan, "--dir");
    enum dp_status st = check_files(plan, err);
    if (st == DP_OK)
        st = check_model(plan, err);
    if (st == DP_OK)
        st = set_modes(plan, err);
    if (st == DP_OK)
        st = set_seeds(plan, err);
    if (st == DP_OK)
        st = set_rates(plan, err);
    if (st == DP_OK)
        st = set_sampling(plan, err);
    if (st == DP_OK)
        st = check_settings(plan, err);
    return st == DP_OK ? dp_path_absolute(dir ? dir : DP_COMPARE_DIR, plan->dir, err) : st;
}

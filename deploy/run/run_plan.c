#include "deploy/run/run_plan.h"

#include "common/config/consistency.h"
#include "common/vocab/vocab.h"
#include "deploy/cli/file_copy.h"
#include "deploy/run/diverged.h"
#include "deploy/run/ports.h"
#include "deploy/run/run_from.h"
#include "deploy/run/run_second.h"
#include "deploy/run/run_shape.h"
#include "deploy/run/spool.h"
#include "worker/compute/models/model.h"
#include "worker/context/defaults.h"
#include "worker/read/schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define RESTARTS_MAX   10000u
#define NO_EARLIER_RUN "there is no run to continue in '%.300s': omit --continue, or name the run's --dir"

const char *dp_run_plan_flag(const struct dp_run_plan *plan, const char *name)
{
    return dp_options_value(&dp_run_command, plan->values, name);
}

static enum dp_status number(const struct dp_run_plan *plan, const char *name, uint64_t min, uint64_t max,
                             uint32_t *out, struct dp_error *err)
{
    uint64_t value;
    enum dp_status st = dp_options_u64(&dp_run_command, plan->values, name, min, max, *out, &value, err);
    *out = (uint32_t)value;
    return st;
}

/* The base, or one server with all defaults. */
static enum dp_status begin_cluster(struct dp_run_plan *plan, struct dp_error *err)
{
    if (dp_run_plan_flag(plan, "--cluster")) {
        enum dp_status st = dp_cluster_read(dp_run_plan_flag(plan, "--cluster"), &plan->cluster, err);
        if (st != DP_OK)
            return st;
        st = dp_defaults_of_file(dp_run_plan_flag(plan, "--cluster"), plan->cluster, err);
        if (st != DP_OK)
            return st;
        dp_cluster_dir_leave(plan->cluster); /* --dir takes its place */
        plan->cluster->training.run = plan->cluster->training.run ? plan->cluster->training.run : 1;
        return DP_OK;
    }
    plan->cluster = calloc(1, sizeof *plan->cluster);
    if (!plan->cluster)
        return dp_fail(err, DP_NOMEM, "no memory");
    dp_cluster_defaults(plan->cluster);
    plan->begins = true;
    (void)snprintf(plan->cluster->name, sizeof plan->cluster->name, "local");
    return DP_OK;
}

static enum dp_status set_servers(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_cluster *c = plan->cluster;
    uint32_t count = c->server_count ? c->server_count : 1, shards = 0;
    dp_cluster_uncount(c);
    enum dp_status st = number(plan, "--servers", 1, DP_SERVERS_MAX, &count, err);
    if (st == DP_OK)
        st = number(plan, "--shards", 1, DP_SHARDS_MAX, &shards, err);
    if (st != DP_OK)
        return st;
    struct dp_cluster_server *server = calloc(count, sizeof *server);
    if (!server)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " servers", count);
    for (uint32_t i = 0; i < count; i++)
        server[i].shards = shards ? shards : i < c->server_count ? c->server[i].shards : 1;
    free(c->server);
    c->server = server;
    c->server_count = count;
    return DP_OK;
}

/* "0.2" or "share=0.2", where a file is expected. */
static bool is_share(const char *path)
{
    const char *number = strncmp(path, "share=", 6) == 0 ? path + 6 : path;
    char *end;
    double share = strtod(number, &end);
    return end > number && *end == '\0' && share > 0 && share < 1;
}

/* A file of the data: absolute, as servers and a later predict may stand elsewhere, and readable. */
static enum dp_status settle_file(const char *name, bool given, char *path, struct dp_error *err)
{
    char absolute[DP_PATH_MAX + 1];
    if (!path[0] || dp_spool_is_stream(path))
        return DP_OK;
    if (access(path, R_OK) != 0 && is_share(path))
        return dp_fail(
            err, DP_ARGUMENT,
            "%s names a file, and '%.20s' is none: a share of --train is held out by --validation share=0.1",
            name, path);
    if (access(path, R_OK) != 0)
        return dp_fail(err, DP_IO, "%s: cannot read '%.300s': %s%s%s%s", name, path, strerror(errno),
                       given ? "" : " (if it was moved, give its present place with ", given ? "" : name,
                       given ? "" : ")");
    enum dp_status st = dp_path_absolute(path, absolute, err);
    if (st == DP_OK)
        memcpy(path, absolute, sizeof absolute);
    return st;
}

static const char *dir_of(const struct dp_run_plan *plan)
{
    return dp_run_plan_flag(plan, "--dir") ? dp_run_plan_flag(plan, "--dir") : DP_RUN_DIR;
}

static bool has_conf(const struct dp_run_plan *plan)
{
    char conf[DP_PATH_MAX + 32];
    (void)snprintf(conf, sizeof conf, "%s/cluster.conf", dir_of(plan));
    return access(conf, F_OK) == 0;
}

static enum dp_status required(const struct dp_run_plan *plan, const char *flag, struct dp_error *err)
{
    if (has_conf(plan))
        return dp_fail(err, DP_ARGUMENT,
                       "%s is required; or, to take it from the run in '%.300s': --continue trains that run "
                       "further, --resume finishes it, --fresh alone starts it again",
                       flag, dir_of(plan));
    return dp_fail(err, DP_ARGUMENT, "%s is required; 'downpour run --help' lists all flags", flag);
}

static enum dp_status settle_files(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_cluster_data *data = &plan->cluster->data;
    if (!plan->cluster->model[0])
        return required(plan, "--model MODEL", err);
    if (!data->train[0])
        return required(plan, "--train FILE", err);
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < DP_RUN_FILES; i++) {
        const char *name;
        char *path = dp_run_state_file(data, i, &name);
        st = settle_file(name, dp_run_plan_flag(plan, name) != NULL, path, err);
    }
    return st;
}

/* A rate that a flag gives takes no default decay over from an earlier run, and FTRL no decay at all. A
 * further run after one at the model's rate gets that of further runs. */
static void settle_rate(const struct dp_run_plan *plan, const struct dp_model *model)
{
    struct dp_cluster_training *t = &plan->cluster->training;
    bool rate = dp_run_plan_flag(plan, "--rate"), decay = dp_run_plan_flag(plan, "--rate decay");
    bool ftrl = dp_run_plan_flag(plan, "--optimizer") && t->optimizer.kind == DP_OPT_FTRL;
    bool of_model = plan->rate_before == model->rate || plan->rate_before == model->rate_further;
    bool by_default = model->decays && of_model && t->decay == DP_DECAY_LINEAR &&
                      (t->rate_end == 0 || dp_run_plan_flag(plan, "--rate end"));
    if (!plan->resumes && !dp_run_plan_flag(plan, "--cluster") && ((rate && by_default) || ftrl) && !decay) {
        t->decay = DP_DECAY_NONE;
        t->rate_end = dp_run_plan_flag(plan, "--rate end") ? t->rate_end : 0;
    } else if (by_default && !rate && (plan->trial_of || dp_run_plan_flag(plan, "--continue"))) {
        t->rate = model->rate_further;
    }
}

/* In full from here on. */
static enum dp_status check_model(const struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_model model;
    char conf[DP_PATH_MAX + 32];
    (void)snprintf(conf, sizeof conf, "%s/cluster.conf", plan->trial_of ? plan->trial_of : dir_of(plan));
    const struct dp_options_given given = {&dp_run_command, plan->values, false};
    const struct dp_setting_names names = dp_options_names(&given);
    bool continues = plan->trial_of || dp_run_plan_flag(plan, "--continue");
    enum dp_status st = dp_run_shape(plan->cluster, conf, continues, err);
    if (st != DP_OK)
        return st;
    st = dp_model_open(plan->cluster->model, &model, err);
    if (st == DP_OK && plan->begins)
        st = dp_defaults_of_model(&model, &names, plan->cluster, err);
    if (st == DP_OK)
        settle_rate(plan, &model);
    dp_model_close(&model);
    return st;
}

/* One of its own for each new store, so that a worker left over from another run is refused by these servers.
 */
static enum dp_status new_id(struct dp_cluster *cluster, struct dp_error *err)
{
    cluster->id = 0;
    if (getrandom(&cluster->id, sizeof cluster->id, 0) != (ssize_t)sizeof cluster->id)
        return dp_fail(err, DP_IO, "cannot get a random number: %s", strerror(errno));
    cluster->id |= 1; /* never 0 */
    return DP_OK;
}

static enum dp_status check_ways(const struct dp_run_plan *plan, struct dp_error *err)
{
    static const char *const ways[] = {"--resume", "--continue", "--fresh"};
    const char *given = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (dp_run_plan_flag(plan, ways[i]) && given)
            return dp_fail(err, DP_ARGUMENT, "%s and %s: give one of them", given, ways[i]);
        given = dp_run_plan_flag(plan, ways[i]) ? ways[i] : given;
    }
    return DP_OK;
}

/* The directory of the run that is there; it is not made. */
static enum dp_status open_earlier(struct dp_run_plan *plan, const char *what, struct dp_error *err)
{
    if (dir_of(plan)[0] && access(dir_of(plan), F_OK) != 0)
        return dp_fail(err, DP_NOT_FOUND, "there is no run to %s in '%.300s': %s", what, dir_of(plan),
                       strerror(errno));
    return dp_folder_open(dir_of(plan), &plan->folder, err);
}

/* The run that is there, and what flags say beside it. */
static enum dp_status begin_resumed(struct dp_run_plan *plan, struct dp_error *err)
{
    if (dp_run_plan_flag(plan, "--cluster"))
        return dp_fail(err, DP_ARGUMENT, "--resume uses the cluster file of the run in DIR: omit --cluster");
    enum dp_status st = open_earlier(plan, "resume", err);
    if (st == DP_OK)
        st = dp_second_resumable(&plan->folder, &plan->earlier, err);
    if (st == DP_OK)
        st = dp_cluster_read(plan->folder.conf, &plan->cluster, err);
    plan->resumes = true;
    return st;
}

/* Files of the earlier run that belong to one that a flag replaces, and what it accepted in its own files. */
static void forget_replaced(const struct dp_run_plan *plan)
{
    struct dp_cluster_data *data = &plan->cluster->data;
    data->new_columns = data->missing_columns = DP_UNMATCHED_REFUSE;
    if (dp_run_plan_flag(plan, "--train"))
        data->train_labels[0] = '\0';
    if (dp_run_plan_flag(plan, "--test") || dp_run_plan_flag(plan, "--holdout"))
        data->test[0] = data->test_labels[0] = data->test_negatives[0] = data->holdout[0] = '\0';
    if (dp_run_plan_flag(plan, "--validation") || dp_run_plan_flag(plan, "--validation share")) {
        data->validation[0] = data->validation_labels[0] = data->validation_negatives[0] = '\0';
        data->validation_share = 0;
    }
}

/* --continue: the settings of the run that is there, where no flag says otherwise. */
static enum dp_status begin_continued(struct dp_run_plan *plan, struct dp_error *err)
{
    enum dp_status st = open_earlier(plan, "continue", err);
    if (st == DP_OK)
        st = dp_folder_check_foreign(&plan->folder, err);
    if (st == DP_OK && !dp_folder_has_run(&plan->folder))
        return dp_fail(err, DP_NOT_FOUND, NO_EARLIER_RUN, plan->folder.path);
    if (st == DP_OK)
        st = dp_cluster_read(plan->folder.conf, &plan->cluster, err);
    if (st == DP_OK)
        forget_replaced(plan);
    return st;
}

/* --dry-run --continue: the settings and the schema of the run that is there, and new weights. */
static enum dp_status begin_trial(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_folder there = {.lock = -1};
    enum dp_status st = dp_folder_open_to_read(plan->trial_of, &there, err);
    if (st == DP_OK && !dp_folder_has_run(&there))
        st = dp_fail(err, DP_NOT_FOUND, NO_EARLIER_RUN, there.path);
    if (st == DP_OK)
        st = dp_cluster_read(there.conf, &plan->earlier, err);
    if (st == DP_OK)
        st = dp_cluster_read(there.conf, &plan->cluster, err);
    if (st == DP_OK)
        st = dp_diverged_check(&there, plan->earlier, err);
    dp_folder_close(&there);
    if (st != DP_OK)
        return st;
    forget_replaced(plan);
    plan->cluster->training.run = 1;
    plan->cluster->training.first_epoch = 0;
    fprintf(plan->notes, "The trial has new weights; its files are read as run %" PRIu32 " in %s did.\n",
            plan->earlier->training.run, plan->trial_of);
    return DP_OK;
}

static bool names_settings(const struct dp_run_plan *plan)
{
    return dp_run_plan_flag(plan, "--cluster") || dp_run_plan_flag(plan, "--model") ||
           dp_run_plan_flag(plan, "--train");
}

/* --fresh alone: the run that is there, from its start. */
static enum dp_status begin_again(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_cluster defaults;
    enum dp_status st = begin_continued(plan, err);
    dp_cluster_defaults(&defaults);
    if (st != DP_OK)
        return st;
    plan->cluster->obsolete_generation = defaults.obsolete_generation;
    plan->cluster->training.run = defaults.training.run;
    plan->cluster->training.first_epoch = defaults.training.first_epoch;
    plan->cluster->training.earlier_examples = defaults.training.earlier_examples;
    return DP_OK;
}

static enum dp_status begin(struct dp_run_plan *plan, struct dp_error *err)
{
    if (plan->trial_of)
        return begin_trial(plan, err);
    if (dp_run_plan_flag(plan, "--from")) {
        enum dp_status st = dp_run_from_begin(plan, err);
        if (st == DP_OK && !plan->resumes)
            forget_replaced(plan);
        return st;
    }
    if (dp_run_plan_flag(plan, "--resume"))
        return begin_resumed(plan, err);
    if (dp_run_plan_flag(plan, "--continue") && !dp_run_plan_flag(plan, "--cluster"))
        return begin_continued(plan, err);
    if (dp_run_plan_flag(plan, "--fresh") && !names_settings(plan) && has_conf(plan))
        return begin_again(plan, err);
    return begin_cluster(plan, err);
}

/* A switch of the run there, which no flag takes back, gives way to a mode that it does not go with. */
static void drop_inherited(const struct dp_run_plan *plan)
{
    struct dp_cluster_training *t = &plan->cluster->training;
    struct dp_cluster_rule rule;
    struct dp_error unheard = {0}; /* the check of all settings names it */
    bool given = dp_run_plan_flag(plan, "--rate-by-staleness") || dp_run_plan_flag(plan, "--cluster");
    if (given || plan->resumes || !t->rate_by_staleness ||
        dp_cluster_rule_parse(t->consistency, "--consistency", &rule, &unheard) != DP_OK ||
        !dp_cluster_rule_by_step(rule))
        return;
    t->rate_by_staleness = false;
    fprintf(stderr,
            "downpour: --rate-by-staleness of the earlier run is dropped: it does not go with "
            "--consistency %s\n",
            t->consistency);
}

/* A trial writes nothing to the places that a cluster file names. */
static void keep_apart(struct dp_cluster *cluster)
{
    cluster->data.cache[0] = '\0';
    cluster->training.report[0] = '\0';
    cluster->checkpoint = (struct dp_cluster_checkpoint){0};
}

static enum dp_status make_cluster(struct dp_run_plan *plan, struct dp_error *err)
{
    uint32_t seconds = 0;
    enum dp_status st = check_ways(plan, err);
    if (st == DP_OK)
        st = begin(plan, err);
    plan->rate_before = st == DP_OK ? plan->cluster->training.rate : 0;
    if (st == DP_OK)
        st = dp_options_apply(&dp_run_command, plan->values, plan->cluster, err);
    if (st == DP_OK && !plan->resumes)
        plan->cluster->data.by_columns = false; /* take_columns */
    if (st == DP_OK)
        drop_inherited(plan);
    if (st == DP_OK && dp_run_plan_flag(plan, "--dry-run"))
        keep_apart(plan->cluster);
    if (st == DP_OK)
        st = number(plan, "--timeout", 1, 600, &seconds, err);
    if (st == DP_OK && seconds)
        plan->cluster->training.timeout_ms = 1000 * seconds;
    if (st == DP_OK)
        st = number(plan, "--restarts", 0, RESTARTS_MAX, &plan->restarts, err);
    if (st == DP_OK)
        st = set_servers(plan, err);
    if (st == DP_OK)
        st = settle_files(plan, err);
    if (st == DP_OK)
        st = dp_observed_plan(plan->values, plan->cluster, plan->resumes, &plan->observed, err);
    if (st == DP_OK)
        st = check_model(plan, err);
    if (st == DP_OK) {
        plan->state.known = true;
        dp_run_state_take_files(&plan->state, &plan->cluster->data);
    }
    if (st == DP_OK && !plan->resumes)
        st = new_id(plan->cluster, err);
    /* Before anything is made, and before --fresh removes anything. */
    const struct dp_options_given given = {&dp_run_command, plan->values,
                                           !dp_run_plan_flag(plan, "--cluster")};
    const struct dp_setting_names names = dp_options_names(&given);
    return st == DP_OK ? dp_cluster_check_settings(plan->cluster, &names, err) : st;
}

/* A file in the directory itself, which leads to the current run's. */
static bool is_top(const struct dp_run_plan *plan, const char *path, const char *name)
{
    size_t len = strlen(plan->folder.path);
    return strncmp(path, plan->folder.path, len) == 0 && path[len] == '/' &&
           strcmp(path + len + 1, name) == 0;
}

/* The report would take the place of what it is made of. */
static enum dp_status check_report(const struct dp_run_plan *plan, const char *to, struct dp_error *err)
{
    char absolute[DP_PATH_MAX + 1] = "";
    struct dp_error unheard = {0}; /* opening it says more of a name that is none */
    for (size_t i = 0; i < DP_RUN_FILES; i++) {
        const char *flag, *path = dp_run_state_file(&plan->cluster->data, i, &flag);
        if (path[0] && dp_path_same(to, path))
            return dp_fail(err, DP_ARGUMENT, "--report: '%s' is a file of the data itself: name another", to);
    }
    const char *base = dp_run_plan_flag(plan, "--cluster");
    if (dp_path_absolute(to, absolute, &unheard) != DP_OK)
        absolute[0] = '\0';
    if (is_top(plan, absolute, "cluster.conf") || dp_path_same(to, plan->was.conf) ||
        (base && dp_path_same(to, base)))
        return dp_fail(err, DP_ARGUMENT, "--report: '%s' is a cluster file: name another", to);
    return DP_OK;
}

/* That it can be written is seen now, and not after an hour of training. What is no file (a pipe, a device) gets a copy of the one
 * in the directory. */
static enum dp_status set_report(struct dp_run_plan *plan, struct dp_error *err)
{
    const char *to = dp_run_plan_flag(plan, "--report");
    char *report = plan->cluster->training.report;
    char absolute[DP_PATH_MAX + 1];
    struct dp_error unheard = {0}; /* opening it says more of a name that is none */
    if (!to && plan->resumes && report[0])
        return DP_OK;
    if (!to || (dp_path_absolute(to, absolute, &unheard) == DP_OK && is_top(plan, absolute, "report.json")))
        return dp_folder_path(&plan->folder, report, err, "report.json");
    if (strcmp(to, "-") == 0)
        to = "/dev/stdout";
    if (strcmp(to, "/dev/stdout") == 0) /* the report alone goes there */
        plan->tables = plan->tables == stdout ? stderr : plan->tables;
    enum dp_status st = check_report(plan, to, err);
    if (st != DP_OK)
        return st;
    st = dp_atomic_file_open(to, &plan->report, err);
    if (st == DP_OK && !plan->report.temp)
        return dp_folder_path(&plan->folder, report, err, "report.json");
    dp_atomic_file_drop(&plan->report);
    return st == DP_OK ? dp_path_absolute(to, report, err) : dp_wrap(err, st, "--report");
}

/* Its own, which leads to the directory's. */
static bool has_own_cache(const struct dp_run_plan *plan)
{
    size_t len = strlen(plan->folder.run);
    const char *cache = plan->cluster->data.cache;
    return strncmp(cache, plan->folder.run, len) == 0 && strcmp(cache + len, "/cache") == 0;
}

/* The earlier run's names of files in the directory's cache would be missing when that run is removed. */
static enum dp_status move_cache(struct dp_run_plan *plan, char *path, struct dp_error *err)
{
    char from[DP_PATH_MAX + 8], name[DP_PATH_MAX + 1];
    size_t len = (size_t)snprintf(from, sizeof from, "%s/cache", plan->was.run);
    if (!plan->was.run[0] || strncmp(path, from, len) != 0 || (path[len] != '/' && path[len] != '\0'))
        return DP_OK;
    (void)snprintf(name, sizeof name, "%s", path + len);
    return dp_folder_path(&plan->folder, path, err, "cache%s", name);
}

/* Absolute, as report and store are; where none is named, the directory's. */
static enum dp_status set_cache(struct dp_run_plan *plan, struct dp_error *err)
{
    char absolute[DP_PATH_MAX + 1], *cache = plan->cluster->data.cache;
    enum dp_status st =
        cache[0] ? move_cache(plan, cache, err) : dp_folder_path(&plan->folder, cache, err, "cache");
    for (size_t i = 0; st == DP_OK && i < DP_RUN_FILES; i++) {
        const char *flag;
        st = move_cache(plan, dp_run_state_file(&plan->cluster->data, i, &flag), err);
    }
    if (st != DP_OK)
        return st;
    st = dp_path_absolute(cache, absolute, err);
    if (st == DP_OK)
        memcpy(cache, absolute, sizeof absolute);
    return st;
}

/* The earlier run's files stay, should this run be refused: with two names a file, one is free. */
static enum dp_status plan_spools(struct dp_run_plan *plan, struct dp_spools *spools, struct dp_error *err)
{
    struct dp_cluster_data *data = &plan->cluster->data;
    struct dp_cluster *earlier = NULL;
    struct dp_error unheard = {0}; /* it is read again */
    char used[24];
    enum dp_status st = DP_OK;
    uint32_t tag = 2166136261u; /* a cache may be that of several directories; FNV-1a */
    for (const char *at = plan->folder.path; *at; at++)
        tag = (tag ^ (unsigned char)*at) * 16777619u;
    (void)snprintf(used, sizeof used, "-%08" PRIx32 ".spool", tag);
    if (dp_folder_has_run(&plan->was))
        (void)dp_cluster_read(plan->was.conf, &earlier, &unheard);
    for (size_t i = 0; st == DP_OK && i < DP_RUN_FILES; i++) {
        const char *flag;
        char *path = dp_run_state_file(data, i, &flag);
        const char *was = earlier ? dp_run_state_file(&earlier->data, i, &flag) : "";
        bool taken = strlen(was) > strlen(used) && strcmp(was + strlen(was) - strlen(used), used) == 0;
        st = dp_spool_plan(spools, flag, path, data->cache, tag ^ taken, err);
    }
    dp_cluster_free(&earlier);
    return st;
}

static enum dp_status set_places(struct dp_run_plan *plan, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    plan->cluster->relative_to = DP_CLUSTER_FILE; /* the directory can be moved */
    for (uint32_t i = 0; st == DP_OK && i < plan->cluster->server_count; i++) {
        struct dp_cluster_server *server = &plan->cluster->server[i];
        (void)snprintf(server->host, sizeof server->host, "127.0.0.1");
        st = dp_folder_path(&plan->folder, server->store, err, "store/server-%" PRIu32, i);
    }
    return st;
}

/* Whether its files are read by an earlier run's schema. */
static bool follows(const struct dp_run_plan *plan)
{
    return plan->continues || plan->trial_of;
}

/* The schema of the weights that are trained on: this run's files are read by it. */
static enum dp_status take_columns(const struct dp_run_plan *plan, struct dp_error *err)
{
    const struct dp_cluster_data *earlier = &plan->earlier->data;
    struct dp_cluster *c = plan->cluster;
    struct dp_schema schema;
    bool restores = plan->from.number > 0;
    bool there = restores ? plan->from.manifest.side[DP_SIDE_COLUMNS].name != NULL
                          : earlier->columns[0] && access(earlier->columns, F_OK) == 0;
    bool trained =
        plan->trial_of || c->training.first_epoch > 0 || dp_run_place(&plan->was, plan->earlier).known;
    c->data.by_columns = there || (earlier->columns[0] && !restores && trained);
    if (c->data.by_columns && !restores) {
        enum dp_status st = dp_schema_read_file(earlier->columns, &schema, err);
        dp_schema_clear(&schema);
        if (st != DP_OK)
            return dp_wrap(err, st, "how the data of the earlier run was read is not known%s",
                           there ? "" : " (restore the file)");
    }
    if (!c->data.by_columns && c->data.label[0] && trained)
        fprintf(
            stderr,
            "downpour: the earlier %s has no columns.csv: columns, means and deviations are those of '%s'\n",
            restores ? "checkpoint" : "run", c->data.train);
    return DP_OK;
}

/* A file that the earlier run has next to its store: this run's workers write their own over it. */
static enum dp_status copy_side(const struct dp_run_plan *plan, enum dp_side side, struct dp_error *err)
{
    const char *to = dp_cluster_side(&plan->cluster->data, side),
               *from = dp_cluster_side(&plan->earlier->data, side);
    struct dp_atomic_file file = {0};
    if (!from[0] || access(from, R_OK) != 0 || dp_path_same(from, to))
        return DP_OK;
    enum dp_status st = dp_atomic_file_open(to, &file, err);
    if (st == DP_OK)
        st = dp_file_copy(from, false, file.stream, to, err);
    if (st == DP_OK)
        st = dp_atomic_file_commit(&file, err);
    dp_atomic_file_drop(&file);
    return st;
}

/* The names of the keys of the weights that are trained on: worker 0 adds those of this run's data. */
static enum dp_status copy_names(const struct dp_run_plan *plan, struct dp_error *err)
{
    const char *from = plan->earlier->data.names;
    if (!from[0] || access(from, F_OK) != 0) {
        fprintf(stderr,
                "downpour: warning: the earlier run has no names of its keys (%s): keys that are not in this "
                "run's data are shown as numbers\n",
                from[0] ? from : "it is of an older build");
        return DP_OK;
    }
    return dp_vocab_copy(from, plan->cluster->data.names, plan->cluster->training.run, err);
}

enum dp_status dp_run_plan_set_number(struct dp_run_plan *plan, uint32_t number, struct dp_error *err)
{
    plan->cluster->training.run = number;
    return dp_run_state_write(&plan->folder, number, &plan->state, err);
}

/* What the run leaves in its directory. */
static enum dp_status set_files(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_cluster *c = plan->cluster;
    enum dp_status st = dp_folder_side_files(&plan->folder, &c->data, err);
    if (st == DP_OK)
        st = dp_folder_path(&plan->folder, c->training.best, err, DP_FOLDER_BEST);
    return st == DP_OK ? dp_folder_path(&plan->folder, c->training.steps, err, DP_FOLDER_STEPS) : st;
}

/* Its ports may be another's by now. */
static enum dp_status settle_ports(struct dp_run_plan *plan, struct dp_error *err)
{
    uint32_t port = 0, before = plan->cluster->server[0].port;
    enum dp_status st = number(plan, "--port", 1, 65535, &port, err);
    if (st == DP_OK && plan->resumes && !port && dp_ports_choose(plan->cluster, before, NULL) == DP_OK)
        return DP_OK;
    return st == DP_OK ? dp_ports_choose(plan->cluster, port, err) : st;
}

static bool gives_up_stores(const struct dp_run_plan *plan)
{
    return dp_run_plan_flag(plan, "--replace-store") || dp_run_plan_flag(plan, "--discard");
}

/* The epochs before the store was lost are trained again by those who have it no more; others keep what they have. */
static void settle_mixed(struct dp_run_plan *plan)
{
    const struct dp_run_place place = dp_run_place(&plan->folder, plan->earlier);
    const struct dp_run_state state = dp_run_state_read(&plan->folder, plan->earlier->training.run);
    uint32_t begun = place.whole + (place.whole < place.epochs), before = state.mixed;
    plan->state.restored = state.restored;
    plan->state.restored_epoch = state.restored_epoch;
    plan->replaces = gives_up_stores(plan) && place.known;
    plan->state.mixed = plan->replaces && begun > before ? begun : before;
}

/* The epochs of a trial are those of the run that it is a trial of. */
static enum dp_status settle_trial(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_folder there = {.lock = -1};
    if (strcmp(plan->earlier->model, plan->cluster->model) != 0)
        return dp_fail(err, DP_EXISTS, "'%s' has the model '%s', not '%s': omit --model", plan->trial_of,
                       plan->earlier->model, plan->cluster->model);
    enum dp_status st = dp_folder_open_to_read(plan->trial_of, &there, err);
    if (st == DP_OK) {
        const struct dp_run_state state = dp_run_state_read(&there, plan->earlier->training.run);
        plan->cluster->training.earlier_examples =
            dp_second_examples(plan->earlier, &state, plan->cluster, &plan->state);
    }
    dp_folder_close(&there);
    return st;
}

/* What is there already stays until this run has trained, is trained on, or refuses it. */
static enum dp_status settle_earlier(struct dp_run_plan *plan, struct dp_error *err)
{
    const struct dp_second second = {.folder = &plan->was,
                                     .command = &dp_run_command,
                                     .now = &plan->state,
                                     .number = plan->folder.number,
                                     .continues = dp_run_plan_flag(plan, "--continue") != NULL,
                                     .replaces = gives_up_stores(plan)};
    if (dp_run_plan_flag(plan, "--from"))
        return dp_run_from_settle(plan, err);
    if (plan->trial_of)
        return settle_trial(plan, err);
    if (dp_run_plan_flag(plan, "--discard") && (!plan->resumes || dp_run_plan_flag(plan, "--replace-store")))
        return dp_fail(err, DP_ARGUMENT, "--discard goes with --resume, and without --replace-store");
    if (plan->resumes)
        settle_mixed(plan);
    if (plan->resumes)
        return dp_second_same(&second, plan->earlier, plan->cluster, err);
    plan->cluster->training.run = plan->folder.number;
    bool there = dp_folder_has_run(&plan->was);
    enum dp_status st = dp_folder_check_foreign(&plan->was, err);
    if (st != DP_OK || !there || dp_run_plan_flag(plan, "--fresh"))
        return st != DP_OK || !second.continues
                   ? st
                   : dp_fail(err, DP_NOT_FOUND, NO_EARLIER_RUN, plan->folder.path);
    st = dp_cluster_read(plan->was.conf, &plan->earlier, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "the earlier run in '%.200s' cannot be resumed (--fresh removes it)",
                       plan->folder.path);
    st = dp_second_join(&second, plan->earlier, plan->cluster, err);
    plan->continues = st == DP_OK;
    return st;
}

/* A run that is resumed stays where it is; another one has a directory of its own. */
static enum dp_status open_folder(struct dp_run_plan *plan, struct dp_error *err)
{
    enum dp_status st = plan->folder.lock >= 0 ? DP_OK : dp_folder_open(dir_of(plan), &plan->folder, err);
    plan->was = plan->folder;
    uint32_t least = plan->cluster->training.run + (plan->from.number > 0 && !plan->resumes);
    if (st == DP_OK && (!plan->resumes || plan->from.number > 0))
        st = dp_folder_next(&plan->was, least, &plan->folder, err);
    return st;
}

static enum dp_status make_folder(struct dp_run_plan *plan, struct dp_error *err)
{
    const struct dp_folder *store_of = plan->continues && plan->from.number == 0 ? &plan->was : NULL;
    enum dp_status st = plan->folder.number == plan->was.number
                            ? DP_OK
                            : dp_folder_make(&plan->folder, &plan->was, store_of, err);
    return st == DP_OK && has_own_cache(plan) ? dp_folder_make_cache(&plan->folder, err) : st;
}

/* Where there is no run it need not wait until it has trained. */
static enum dp_status write_conf(struct dp_run_plan *plan, struct dp_error *err)
{
    enum dp_status st = dp_cluster_write(plan->cluster, plan->folder.conf, err);
    if (st == DP_OK && !dp_folder_has_run(&plan->was))
        st = dp_folder_accept(&plan->folder, err);
    dp_cluster_free(&plan->cluster);
    /* As the others will read it, its id filled in. */
    return st == DP_OK ? dp_cluster_read(plan->folder.conf, &plan->cluster, err) : st;
}

static enum dp_status settle_folder(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_spools spools = {.count = 0};
    enum dp_status st = open_folder(plan, err);
    if (st == DP_OK)
        st = set_report(plan, err);
    if (st == DP_OK)
        st = set_cache(plan, err);
    if (st == DP_OK)
        st = set_files(plan, err);
    if (st == DP_OK)
        st = plan_spools(plan, &spools, err);
    if (st == DP_OK)
        st = set_places(plan, err);
    if (st == DP_OK)
        st = settle_ports(plan, err);
    /* Behind all that can refuse the run. */
    if (st == DP_OK)
        st = settle_earlier(plan, err);
    if (st == DP_OK && follows(plan))
        st = take_columns(plan, err);
    if (st == DP_OK)
        st = make_folder(plan, err);
    if (st == DP_OK && follows(plan))
        st = copy_side(plan, DP_SIDE_COLUMNS, err);
    if (st == DP_OK)
        st = dp_spool_fill(&spools, plan->notes, err);
    if (st == DP_OK && spools.count > 0)
        dp_run_state_take_files(&plan->state, &plan->cluster->data);
    if (st == DP_OK)
        st = dp_run_plan_set_number(plan, plan->cluster->training.run, err);
    if (st == DP_OK && dp_run_plan_flag(plan, "--from"))
        st = dp_run_from_restore(plan, err);
    if (st == DP_OK && plan->continues)
        st = copy_names(plan, err);
    if (st == DP_OK && follows(plan))
        st = copy_side(plan, DP_SIDE_INTERACTIONS, err);
    return st == DP_OK ? write_conf(plan, err) : st;
}

enum dp_status dp_run_plan_make(struct dp_run_plan *plan, struct dp_error *err)
{
    enum dp_status st = make_cluster(plan, err);
    return st == DP_OK ? settle_folder(plan, err) : st;
}

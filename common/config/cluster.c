#include "common/config/cluster.h"

#include "common/base/parse.h"
#include "common/config/cluster_counted.h"
#include "common/config/consistency.h"
#include "common/config/fields.h"
#include "common/config/goal.h"
#include "common/config/holdout_spec.h"
#include "common/config/injection.h"
#include "common/config/metrics_address.h"
#include "common/model/optimizer_kinds.h"

#include <iconv.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE_LARGE 0.1 /* the most to try where steps grow with the gradient */

#define IPC_PATH_MAX 107u /* "ipc://", a path of a socket, less "-65535" and the end */

void dp_cluster_defaults(struct dp_cluster *out)
{
    *out = (struct dp_cluster){
        .obsolete_generation = 1,
        .cache_bytes = UINT64_C(1) << 30,
        .durability = DP_CLUSTER_MACHINE,
        .journal_bytes = UINT64_C(1) << 30,
        .data = {.format = "auto",
                 .negatives = 4,
                 .holdout_evaluated = true,
                 .holdout_negatives = 99,
                 .window = 5,
                 .min_count = 1,
                 .index_base = 1,
                 .label_base = "auto",
                 .standardize = true},
        .training =
            {
                .workers = 1,
                .seed = 1,
                .rate = DP_RATE_DEFAULT,
                .decay = DP_DECAY_NONE,
                .optimizer = dp_optimizer_defaults(DP_OPT_ADAM),
                .fetch_every = 1,
                .push_every = 1,
                .accumulate = 1,
                .consistency = "async",
                .overlap = true,
                .pushes_max = 4,
                .run = 1,
                .threads = 1,
                .blas_threads = 1,
                .device = "cpu",
                .precision = DP_CLUSTER_F32,
                .top_k = 20,
                .timeout_ms = 30000,
            },
    };
}

double dp_cluster_lower_rate(const struct dp_cluster_training *training)
{
    if (dp_optimizer_traits(&training->optimizer)->rate_is_step && training->rate > 10 * DP_RATE_DEFAULT)
        return DP_RATE_DEFAULT;
    return fmin(training->rate, 10 * RATE_LARGE) / fmax(10, training->workers);
}

void dp_cluster_free(struct dp_cluster **cluster)
{
    if (*cluster) {
        free((*cluster)->server);
        free(*cluster);
    }
    *cluster = NULL;
}

static enum dp_status check_name(const struct dp_cluster *cluster, struct dp_error *err)
{
    for (const char *p = cluster->name; *p; p++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", *p))
            return dp_fail(err, DP_ARGUMENT, "'name' is \"%s\", but may hold letters, digits, _ . - only",
                           cluster->name);
    return DP_OK;
}

static enum dp_status check_server(const struct dp_cluster *cluster, uint32_t at, struct dp_error *err)
{
    const struct dp_cluster_server *s = &cluster->server[at];
    enum dp_status st = dp_fields_check(&dp_fields_server, s, NULL, err);
    if (st != DP_OK)
        return st;
    bool path = strncmp(s->host, "ipc:///", 7) == 0; /* sockets of this machine: PATH-PORT */
    if (path && strlen(s->host) > IPC_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "'servers.host' is \"%s\": a path of a socket has at most %u bytes",
                       s->host, IPC_PATH_MAX - 6u);
    if (!path && !dp_cluster_is_host(s->host))
        return dp_fail(err, DP_ARGUMENT, "'servers.host' is \"%s\": no name or address of a machine",
                       s->host);
    if (s->listen[0] && (path || !dp_cluster_is_host(s->listen)))
        return dp_fail(err, DP_ARGUMENT, "'servers.listen' is \"%s\": %s", s->listen,
                       path ? "a host that is a path of sockets has none"
                            : "no name or address of a machine");
    if (s->port + s->shards > 65535)
        return dp_fail(err, DP_ARGUMENT,
                       "'servers.port' is %" PRIu32 ": its %" PRIu32 " shards would need ports up to %" PRIu32
                       ", over 65535",
                       s->port, s->shards, s->port + s->shards);
    for (uint32_t i = 0; i < at; i++) {
        const struct dp_cluster_server *o = &cluster->server[i];
        if (strcmp(o->host, s->host) != 0)
            continue;
        if (s->port <= o->port + o->shards && o->port <= s->port + s->shards)
            return dp_fail(err, DP_ARGUMENT,
                           "'servers.port': server %" PRIu32 " takes ports %" PRIu32 " .. %" PRIu32
                           " of %s, which overlap those of server %" PRIu32 " (%" PRIu32 " .. %" PRIu32 ")",
                           at, s->port, s->port + s->shards, s->host, i, o->port, o->port + o->shards);
        if (strcmp(o->store, s->store) == 0)
            return dp_fail(err, DP_ARGUMENT,
                           "'servers.store': server %" PRIu32 " and server %" PRIu32
                           " of %s would share the directory '%s'",
                           at, i, s->host, s->store);
    }
    return DP_OK;
}

static enum dp_status check_optimizer(const struct dp_cluster *cluster, const struct dp_setting_names *names,
                                      struct dp_error *err)
{
    const struct dp_optimizer_spec *spec = &cluster->training.optimizer;
    if (!dp_optimizer_name(spec->kind))
        return dp_fail(err, DP_ARGUMENT, "'training.optimizer.kind' has no such kind");
    for (size_t i = 0; i < dp_fields_optimizer.count; i++) {
        const struct dp_field *field = &dp_fields_optimizer.field[i];
        if (!dp_optimizer_uses(spec->kind, field->offset))
            continue;
        char key[DP_SETTING_NAME_BYTES], name[DP_SETTING_NAME_BYTES];
        (void)snprintf(key, sizeof key, "%s%s", dp_fields_optimizer.prefix, field->key);
        enum dp_status st =
            dp_field_check(&dp_fields_optimizer, field, spec, dp_setting_name(names, key, name), err);
        if (st != DP_OK)
            return st;
    }
    /* What a server will ask when a worker makes a table with it: asked here, before anything is started. */
    struct dp_table_spec table = {.name = "check", .dim = 1, .optimizer = *spec};
    enum dp_status st = dp_table_check(&table, err);
    char name[DP_SETTING_NAME_BYTES];
    return st == DP_OK
               ? st
               : dp_wrap(err, DP_ARGUMENT, "%s", dp_setting_name(names, "training.optimizer.kind", name));
}

/* That the name can be one: whether there is such a device, the worker finds out. */
static enum dp_status check_device(const struct dp_cluster_training *training,
                                   const struct dp_setting_names *names, struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES];
    const char *device = training->device;
    bool cuda = strncmp(device, "cuda", 4) == 0;
    bool each = strcmp(device, "cuda:each") == 0;
    const char *number = cuda && device[4] == ':' && !each ? device + 5 : NULL;
    size_t digits = number ? strspn(number, "0123456789") : 0;
    if (number ? digits == 0 || digits > 4 || number[digits] != '\0'
               : !each && strcmp(device, "cpu") != 0 && strcmp(device, "auto") != 0 &&
                     strcmp(device, "cuda") != 0)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is \"%s\", but must be cpu, cuda, cuda:N (N: number of the GPU), cuda:each (a GPU "
                       "for each worker) or auto",
                       dp_setting_name(names, "training.device", name), device);
    if (strcmp(device, "cpu") == 0 && training->precision != DP_CLUSTER_F32)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s is %s, but the CPU computes in f32: give %s a GPU (cuda:0 or auto), or precision f32",
            dp_setting_name(names, "training.precision", name),
            dp_cluster_precision_name(training->precision), dp_setting_name(names, "training.device", other));
    return DP_OK;
}

static enum dp_status check_holdout(const struct dp_cluster_data *data, const struct dp_setting_names *names,
                                    struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES];
    struct dp_holdout_spec spec;
    if (!data->holdout[0])
        return DP_OK;
    if (data->test[0])
        return dp_fail(
            err, DP_ARGUMENT,
            "%s and %s: the test set is a file or is drawn from the training file; give one of them",
            dp_setting_name(names, "data.test", name), dp_setting_name(names, "data.holdout", other));
    return dp_holdout_spec_parse(data->holdout, dp_setting_name(names, "data.holdout", name), &spec, err);
}

/* What belongs to a file that is not there would be passed over without a word. */
static enum dp_status check_sets(const struct dp_cluster_data *data, const struct dp_setting_names *names,
                                 struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES];
    const struct {
        const char *key, *value, *of, *of_value;
    } parts[] = {
        {"data.test_labels", data->test_labels, "data.test", data->test},
        {"data.test_negatives", data->test_negatives, "data.test", data->test},
        {"data.validation_labels", data->validation_labels, "data.validation", data->validation},
        {"data.validation_negatives", data->validation_negatives, "data.validation", data->validation},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].value[0] && !parts[i].of_value[0])
            return dp_fail(
                err, DP_ARGUMENT,
                "%s names a file, but %s, which it belongs to, names none: name both, or leave the first out",
                dp_setting_name(names, parts[i].key, name), dp_setting_name(names, parts[i].of, other));
    const char *const files[] = {data->train, data->test, data->validation};
    for (size_t i = 0; i < DP_SIDE_FILES * sizeof files / sizeof files[0]; i++) {
        const char *side = dp_cluster_side(data, i % DP_SIDE_FILES);
        if (side[0] && strcmp(side, files[i / DP_SIDE_FILES]) == 0)
            return dp_fail(
                err, DP_ARGUMENT,
                "'data.%s' is \"%.300s\", a file of the data, which a training would replace: name "
                "another file",
                dp_side_files[i % DP_SIDE_FILES].key, side);
    }
    if (data->validation[0] && data->validation_share > 0)
        return dp_fail(err, DP_ARGUMENT, "%s and %s: give one of them",
                       dp_setting_name(names, "data.validation", name),
                       dp_setting_name(names, "data.validation_share", other));
    return check_holdout(data, names, err);
}

static enum dp_status check_top(const struct dp_cluster_training *t, const struct dp_setting_names *names,
                                uint32_t top, const char *key, struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES];
    if (top == 0 || top == t->top_k)
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT,
                   "%s looks at the first %" PRIu32 " items, but %s is %" PRIu32 ": give it %" PRIu32,
                   dp_setting_name(names, key, name), top, dp_setting_name(names, "training.top_k", other),
                   t->top_k, top);
}

bool dp_cluster_has_best(const struct dp_cluster *cluster)
{
    const struct dp_cluster_data *data = &cluster->data;
    return data->validation[0] || data->validation_share > 0 || cluster->training.stop_at[0] ||
           cluster->training.patience > 0;
}

bool dp_cluster_keeps_best(const struct dp_cluster *cluster)
{
    const struct dp_cluster_training *t = &cluster->training;
    bool can = t->best[0] && cluster->durability != DP_CLUSTER_NONE;
    return dp_cluster_has_best(cluster) && (t->keep == DP_KEEP_BEST || (t->keep == DP_KEEP_AUTO && can));
}

static enum dp_status check_stop(const struct dp_cluster *cluster, const struct dp_setting_names *names,
                                 struct dp_error *err)
{
    const struct dp_cluster_training *t = &cluster->training;
    const struct dp_cluster_data *data = &cluster->data;
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES], third[DP_SETTING_NAME_BYTES];
    struct dp_goal goal;
    enum dp_metric metric;
    enum dp_status st =
        t->stop_at[0]
            ? dp_goal_parse(t->stop_at, dp_setting_name(names, "training.stop_at", name), &goal, err)
            : DP_OK;
    if (st == DP_OK && t->patience_metric[0])
        st = dp_metric_parse(t->patience_metric, dp_setting_name(names, "training.patience_metric", name),
                             &metric, err);
    if (st == DP_OK && t->patience_metric[0] && t->patience == 0)
        st = dp_fail(err, DP_ARGUMENT, "%s is \"%s\", but %s gives no number of epochs",
                     dp_setting_name(names, "training.patience_metric", name), t->patience_metric,
                     dp_setting_name(names, "training.patience", other));
    if (st == DP_OK)
        st = check_top(t, names, t->stop_at[0] ? goal.top : 0, "training.stop_at", err);
    if (st == DP_OK && t->patience_metric[0])
        st = check_top(t, names, dp_metric_top(t->patience_metric), "training.patience_metric", err);
    if (st == DP_OK)
        st = check_sets(data, names, err);
    if (st == DP_OK && (t->stop_at[0] || t->patience) && !data->validation[0] &&
        data->validation_share == 0 && !data->test[0] && !(data->holdout[0] && data->holdout_evaluated))
        st = dp_fail(err, DP_ARGUMENT,
                     "%s needs a metric, but there is nothing to evaluate: give %s a file, or set %s=0.1; a "
                     "test file serves, too",
                     dp_setting_name(names, t->stop_at[0] ? "training.stop_at" : "training.patience", name),
                     dp_setting_name(names, "data.validation", other),
                     dp_setting_name(names, "data.validation_share", third));
    if (st == DP_OK && t->keep == DP_KEEP_BEST && !dp_cluster_has_best(cluster))
        st = dp_fail(err, DP_ARGUMENT,
                     "%s is \"best\", but no metric decides which epoch is the best: give %s a file, or set "
                     "%s=0.1, or leave it out",
                     dp_setting_name(names, "training.keep", name),
                     dp_setting_name(names, "data.validation", other),
                     dp_setting_name(names, "data.validation_share", third));
    if (st == DP_OK && t->keep == DP_KEEP_BEST && cluster->durability == DP_CLUSTER_NONE)
        st = dp_fail(
            err, DP_ARGUMENT,
            "%s is \"best\", and %s is \"none\": the best epoch is a checkpoint, which needs a journal; "
            "choose another durability, or \"last\"",
            dp_setting_name(names, "training.keep", name), dp_setting_name(names, "durability", other));
    return st;
}

static enum dp_status check_encoding(const struct dp_cluster_data *data, const struct dp_setting_names *names,
                                     struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES];
    /* A slash would begin what is not of the name. */
    iconv_t found = strchr(data->encoding, '/') ? (iconv_t)-1 : iconv_open("UTF-8", data->encoding);
    if (found == (iconv_t)-1)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s '%s' is no encoding: latin1, cp1252 and utf-16 are some; 'iconv -l' lists them all",
            dp_setting_name(names, "data.encoding", name), data->encoding);
    (void)iconv_close(found);
    return DP_OK;
}

static enum dp_status check_label_base(const struct dp_cluster_data *data,
                                       const struct dp_setting_names *names, struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES];
    uint64_t base;
    if (strcmp(data->label_base, "auto") == 0)
        return DP_OK;
    return dp_parse_u64(data->label_base, 0, 1 << 24, dp_setting_name(names, "data.label_base", name), &base,
                        err);
}

/* What the others would leave unread. */
static enum dp_status check_rates(const struct dp_cluster_training *t, const struct dp_setting_names *names,
                                  struct dp_error *err)
{
    char end[DP_SETTING_NAME_BYTES], decay[DP_SETTING_NAME_BYTES];
    if (t->rate_end > 0 && t->decay != DP_DECAY_LINEAR && t->decay != DP_DECAY_COSINE)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %g, but decay \"%s\" does not end at a rate: give %s linear or cosine, or "
                       "leave the first out",
                       dp_setting_name(names, "training.rate_end", end), t->rate_end, dp_decay_name(t->decay),
                       dp_setting_name(names, "training.decay", decay));
    if (t->optimizer.kind == DP_OPT_FTRL && t->rate_end <= 0 &&
        (t->decay == DP_DECAY_LINEAR || t->decay == DP_DECAY_COSINE))
        return dp_fail(
            err, DP_ARGUMENT,
            "%s is \"%s\", and ends at 0: weights of ftrl are a function of the rate, and would be "
            "0, too; give none, or %s above 0",
            dp_setting_name(names, "training.decay", decay), dp_decay_name(t->decay),
            dp_setting_name(names, "training.rate_end", end));
    return DP_OK;
}

/* What threads that share a fetch do not go with. */
static enum dp_status check_threads(const struct dp_cluster_training *t, const struct dp_setting_names *names,
                                    struct dp_error *err)
{
    char threads[DP_SETTING_NAME_BYTES], blas[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES],
        push[DP_SETTING_NAME_BYTES];
    const char *what = dp_setting_name(names, "training.threads", threads);
    const char *products = dp_setting_name(names, "training.blas_threads", blas);
    if (t->threads <= 1)
        return DP_OK;
    if (dp_cluster_rule_by_step(dp_cluster_rule_of(t)))
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32
                       ", threads that change the weights that they share, but %s is %s, which computes a "
                       "step on unchanged weights: leave one out (%s: threads of matrix products)",
                       what, t->threads, dp_setting_name(names, "training.consistency", other),
                       t->consistency, products);
    if (strcmp(t->device, "cpu") != 0)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32 ", threads that compute on the CPU, but %s is %s: leave one out",
                       what, t->threads, dp_setting_name(names, "training.device", other), t->device);
    if (t->accumulate > 1)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s is %" PRIu32 ", threads that change the weights that they share, but %s is %" PRIu32
            ", minibatches on unchanged weights: leave one out (%s: threads of matrix products)",
            what, t->threads, dp_setting_name(names, "training.accumulate", other), t->accumulate, products);
    if (t->blas_threads > 1)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32 ", and %s is %" PRIu32
                       ": give the first for sparse models, or the second for large matrix products",
                       what, t->threads, products, t->blas_threads);
    if (t->fetch_every > 1 && t->push_every > 1 && t->fetch_every != t->push_every)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32 ", threads that pull and push together, but %s is %" PRIu32
                       " and %s is %" PRIu32 ": give one of them",
                       what, t->threads, dp_setting_name(names, "training.fetch_every", other),
                       t->fetch_every, dp_setting_name(names, "training.push_every", push), t->push_every);
    if (dp_cluster_fetched_together(t) < t->threads)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu32 ", but only %" PRIu32 " minibatches are fetched together: raise %s",
                       what, t->threads, dp_cluster_fetched_together(t),
                       dp_setting_name(names, "training.fetch_every", other));
    return DP_OK;
}

/* Members of a run that wait for each other take part in each step: work cannot move between them. */
static enum dp_status check_work(const struct dp_cluster_training *t, const struct dp_setting_names *names,
                                 struct dp_error *err)
{
    char work[DP_SETTING_NAME_BYTES], mode[DP_SETTING_NAME_BYTES];
    if (t->work == DP_CLUSTER_FIXED || !dp_cluster_rule_waits(dp_cluster_rule_of(t)))
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT,
                   "%s is leased and %s is %s: leased workers train different numbers of minibatches, but "
                   "all workers take part in each step. Leave one of them out",
                   dp_setting_name(names, "training.work", work),
                   dp_setting_name(names, "training.consistency", mode), t->consistency);
}

enum dp_status dp_cluster_check_settings(const struct dp_cluster *cluster,
                                         const struct dp_setting_names *names, struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES], fetch[DP_SETTING_NAME_BYTES], push[DP_SETTING_NAME_BYTES];
    struct dp_metrics_address metrics;
    enum dp_status st = dp_fields_check(&dp_fields_top, cluster, names, err);
    if (st == DP_OK)
        st = check_name(cluster, err);
    if (st == DP_OK)
        st = dp_fields_check(&dp_fields_data, &cluster->data, names, err);
    if (st == DP_OK)
        st = dp_fields_check(&dp_fields_training, &cluster->training, names, err);
    if (st == DP_OK && cluster->checkpoint.every > 0)
        st = dp_fields_check(&dp_fields_checkpoint, &cluster->checkpoint, names, err);
    if (st == DP_OK && cluster->checkpoint.every > 0 && cluster->durability == DP_CLUSTER_NONE)
        st = dp_fail(
            err, DP_ARGUMENT,
            "%s is \"none\", and checkpoints are made of the journal: choose another durability, or leave "
            "'checkpoint' out",
            dp_setting_name(names, "durability", name));
    if (st == DP_OK)
        st = check_label_base(&cluster->data, names, err);
    if (st == DP_OK && cluster->metrics[0])
        st = dp_metrics_address_parse(cluster->metrics, dp_setting_name(names, "metrics", name), &metrics,
                                      err);
    if (st == DP_OK && cluster->data.encoding[0])
        st = check_encoding(&cluster->data, names, err);
    if (st == DP_OK)
        st = check_stop(cluster, names, err);
    if (st == DP_OK && cluster->training.accumulate > 1 &&
        (cluster->training.fetch_every > 1 || cluster->training.push_every > 1))
        st = dp_fail(err, DP_ARGUMENT,
                     "%s is %" PRIu32 ", which is both fetched and pushed together: leave %s and %s out",
                     dp_setting_name(names, "training.accumulate", name), cluster->training.accumulate,
                     dp_setting_name(names, "training.fetch_every", fetch),
                     dp_setting_name(names, "training.push_every", push));
    if (st == DP_OK)
        st = dp_cluster_rule_check(cluster, names, err);
    if (st == DP_OK)
        st = check_work(&cluster->training, names, err);
    if (st == DP_OK)
        st = check_rates(&cluster->training, names, err);
    if (st == DP_OK)
        st = check_device(&cluster->training, names, err);
    if (st == DP_OK)
        st = check_threads(&cluster->training, names, err);
    if (st == DP_OK)
        st = dp_injection_check(&cluster->training, names, err);
    if (st == DP_OK)
        st = check_optimizer(cluster, names, err);
    return st;
}

enum dp_status dp_cluster_check(const struct dp_cluster *cluster, struct dp_error *err)
{
    if (cluster->server_count == 0 || cluster->server_count > DP_SERVERS_MAX)
        return dp_fail(err, DP_ARGUMENT, "'servers' has %" PRIu32 " entries, but must have 1 .. %d",
                       cluster->server_count, DP_SERVERS_MAX);
    struct dp_metrics_address metrics;
    enum dp_status st = dp_cluster_check_settings(cluster, NULL, err);
    if (st == DP_OK && cluster->counted.count > 0) {
        st = dp_fields_check(&dp_fields_counted, &cluster->counted, NULL, err);
        return st == DP_OK ? dp_cluster_check_counted(cluster, err) : st;
    }
    if (st == DP_OK && cluster->first_text[0])
        st = dp_fail(err, DP_ARGUMENT,
                     "'first' goes with servers = { count = N; ... }: a list of servers names its first one");
    for (uint32_t i = 0; st == DP_OK && i < cluster->server_count; i++)
        st = check_server(cluster, i, err);
    for (uint32_t i = 0; st == DP_OK && cluster->metrics[0] && i < cluster->server_count; i++)
        st = dp_metrics_address_of(cluster, i, &metrics, err);
    return st;
}

enum dp_status dp_cluster_step_log(const char *prefix, uint32_t worker, char *out, size_t size,
                                   struct dp_error *err)
{
    int n = snprintf(out, size, "%s-%" PRIu32 ".log", prefix, worker);
    return n > 0 && (size_t)n < size
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT, "path '%.200s...' (training.steps) is too long", prefix);
}

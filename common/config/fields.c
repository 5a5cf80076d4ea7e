#include "common/config/fields.h"

#include "common/model/optimizer_kinds.h"
#include "common/model/stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define INTEGER(where, name, type_, low, high)                                                               \
    {                                                                                                        \
        .key = #name, .type = type_, .offset = offsetof(struct where, name), .min = low, .max = high         \
    }
#define REAL(where, name, low, high)                                                                         \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_F64, .offset = offsetof(struct where, name), .min_f64 = low,          \
        .max_f64 = high                                                                                      \
    }
#define TEXT(where, name, len_max)                                                                           \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_TEXT, .offset = offsetof(struct where, name), .max = len_max          \
    }
#define TEXT_LIST(where, name)                                                                               \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_TEXT, .offset = offsetof(struct where, name), .list = true,           \
        .max = sizeof(((struct where *)0)->name) - 1                                                         \
    }
#define TEXT_REQUIRED(where, name, len_max)                                                                  \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_TEXT, .offset = offsetof(struct where, name), .required = true,       \
        .min = 1, .max = len_max                                                                             \
    }
#define PATH(where, name)                                                                                    \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_TEXT, .offset = offsetof(struct where, name), .max = DP_PATH_MAX,     \
        .path = true                                                                                         \
    }
#define PATH_REQUIRED(where, name)                                                                           \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_TEXT, .offset = offsetof(struct where, name), .required = true,       \
        .min = 1, .max = DP_PATH_MAX, .path = true                                                           \
    }
#define BOOL(where, name)                                                                                    \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_BOOL, .offset = offsetof(struct where, name)                          \
    }

#define NAMES(where, name, names_)                                                                           \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_NAME, .offset = offsetof(struct where, name), .names = names_,        \
        .max = COUNT(names_) - 1                                                                             \
    }

#define RATE_MIN 1e-30 /* above 0, and still a normal f32, in which a push carries it */
#define RATE_MAX 1e6

static const char *const new_columns[] = {"refuse", "ignore"};
static const char *const missing_columns[] = {"refuse", "empty"};
static const char *const schedules[] = {"restart", "continue"};
static const char *const decays[] = {"none", "linear", "cosine", "inverse-sqrt"};
static const char *const durabilities[] = {"machine", "process", "none"};
static const char *const relatives[] = {"start", "file"};
static const char *const keeps[] = {"auto", "best", "last"};
static const char *const precisions[] = {"f32", "tf32", "bf16"};
static const char *const works[] = {"fixed", "leased"};
static const char *const words[] = {"plain", "simple"};
static const char *const jitters[] = {"none", "exp", "uniform"};
static_assert(sizeof(enum dp_decay) == 4 && sizeof(enum dp_cluster_schedule) == 4 &&
                  sizeof(enum dp_cluster_durability) == 4 && sizeof(enum dp_cluster_precision) == 4 &&
                  sizeof(enum dp_cluster_relative) == 4 && sizeof(enum dp_cluster_unmatched) == 4 &&
                  sizeof(enum dp_cluster_keep) == 4 && sizeof(enum dp_cluster_work) == 4 &&
                  sizeof(enum dp_cluster_jitter) == 4 && sizeof(enum dp_word_rule) == 4,
              "NAME fields are u32");

static const struct dp_field top[] = {
    TEXT_REQUIRED(dp_cluster, name, DP_TABLE_NAME_MAX),
    INTEGER(dp_cluster, id, DP_FIELD_U64, 1, UINT64_MAX),
    {.key = "generation", /* the stores keep it */
     .type = DP_FIELD_U64,
     .offset = offsetof(struct dp_cluster, obsolete_generation),
     .obsolete = true,
     .min = 1,
     .max = UINT64_MAX},
    INTEGER(dp_cluster, cache_bytes, DP_FIELD_BYTES, UINT64_C(1) << 20, UINT64_C(1) << 50),
    NAMES(dp_cluster, durability, durabilities),
    INTEGER(dp_cluster, journal_bytes, DP_FIELD_BYTES, UINT64_C(16) << 20, UINT64_C(1) << 40),
    NAMES(dp_cluster, relative_to, relatives),
    PATH(dp_cluster, log),
    TEXT(dp_cluster, metrics, DP_METRICS_TEXT_MAX),
    TEXT_REQUIRED(dp_cluster, model, sizeof((struct dp_cluster *)0)->model - 1),
    PATH(dp_cluster, dir),
    {.key = "first",
     .type = DP_FIELD_TEXT,
     .offset = offsetof(struct dp_cluster, first_text),
     .max = sizeof((struct dp_cluster *)0)->first_text - 1},
};
static const char *const top_groups[] = {"servers", "checkpoint", "data", "training"};

static const struct dp_field checkpoint[] = {
    PATH_REQUIRED(dp_cluster_checkpoint, to),
    {.key = "every",
     .type = DP_FIELD_U32,
     .offset = offsetof(struct dp_cluster_checkpoint, every),
     .required = true,
     .min = 1,
     .max = 3600000},
    INTEGER(dp_cluster_checkpoint, keep, DP_FIELD_U32, 0, 1000000),
};

static const struct dp_field server[] = {
    TEXT_REQUIRED(dp_cluster_server, host, DP_HOST_MAX),
    TEXT(dp_cluster_server, listen, DP_HOST_MAX),
    {.key = "port",
     .type = DP_FIELD_U32,
     .offset = offsetof(struct dp_cluster_server, port),
     .required = true,
     .min = 1,
     .max = 65535},
    INTEGER(dp_cluster_server, shards, DP_FIELD_U32, 1, DP_SHARDS_MAX),
    PATH_REQUIRED(dp_cluster_server, store),
};

static const struct dp_field counted[] = {
    {.key = "count",
     .type = DP_FIELD_U32,
     .offset = offsetof(struct dp_cluster_counted, count),
     .required = true,
     .min = 1,
     .max = DP_SERVERS_MAX},
    INTEGER(dp_cluster_counted, shards, DP_FIELD_U32, 1, DP_SHARDS_MAX),
    INTEGER(dp_cluster_counted, port, DP_FIELD_U32, 0, 65535),
    PATH_REQUIRED(dp_cluster_counted, store),
    TEXT(dp_cluster_counted, host, DP_HOST_MAX),
    TEXT(dp_cluster_counted, listen, DP_HOST_MAX),
};

static const struct dp_field data[] = {
    PATH_REQUIRED(dp_cluster_data, train),
    PATH(dp_cluster_data, test),
    PATH(dp_cluster_data, train_labels),
    PATH(dp_cluster_data, test_labels),
    PATH(dp_cluster_data, test_negatives),
    PATH(dp_cluster_data, validation),
    PATH(dp_cluster_data, validation_labels),
    PATH(dp_cluster_data, validation_negatives),
    REAL(dp_cluster_data, validation_share, 0, 0.9),
    TEXT(dp_cluster_data, holdout, sizeof((struct dp_cluster_data *)0)->holdout - 1),
    BOOL(dp_cluster_data, holdout_evaluated),
    INTEGER(dp_cluster_data, holdout_negatives, DP_FIELD_U32, 0, 100000),
    TEXT(dp_cluster_data, format, sizeof((struct dp_cluster_data *)0)->format - 1),
    INTEGER(dp_cluster_data, negatives, DP_FIELD_U32, 1, 1000),
    INTEGER(dp_cluster_data, window, DP_FIELD_U32, 1, 1000),
    TEXT(dp_cluster_data, encoding, sizeof((struct dp_cluster_data *)0)->encoding - 1),
    NAMES(dp_cluster_data, words, words),
    INTEGER(dp_cluster_data, min_count, DP_FIELD_U32, 1, UINT32_MAX),
    REAL(dp_cluster_data, subsample, 0, 1),
    TEXT(dp_cluster_data, label, sizeof((struct dp_cluster_data *)0)->label - 1),
    TEXT(dp_cluster_data, user, sizeof((struct dp_cluster_data *)0)->user - 1),
    TEXT(dp_cluster_data, item, sizeof((struct dp_cluster_data *)0)->item - 1),
    TEXT(dp_cluster_data, rating, sizeof((struct dp_cluster_data *)0)->rating - 1),
    TEXT(dp_cluster_data, time, sizeof((struct dp_cluster_data *)0)->time - 1),
    TEXT_LIST(dp_cluster_data, categories),
    TEXT_LIST(dp_cluster_data, lists),
    TEXT_LIST(dp_cluster_data, ignore),
    TEXT(dp_cluster_data, id, sizeof((struct dp_cluster_data *)0)->id - 1),
    TEXT_LIST(dp_cluster_data, missing),
    TEXT(dp_cluster_data, weight, sizeof((struct dp_cluster_data *)0)->weight - 1),
    TEXT_LIST(dp_cluster_data, class_weight),
    PATH(dp_cluster_data, columns),
    BOOL(dp_cluster_data, by_columns),
    NAMES(dp_cluster_data, new_columns, new_columns),
    NAMES(dp_cluster_data, missing_columns, missing_columns),
    PATH(dp_cluster_data, names),
    PATH(dp_cluster_data, interactions),
    PATH(dp_cluster_data, cache),
    INTEGER(dp_cluster_data, hash_bits, DP_FIELD_U32, 0, 63),
    INTEGER(dp_cluster_data, index_base, DP_FIELD_U32, 0, 1),
    TEXT(dp_cluster_data, label_base, sizeof((struct dp_cluster_data *)0)->label_base - 1),
    REAL(dp_cluster_data, scale, 0, 1e30),
    BOOL(dp_cluster_data, normalize),
    BOOL(dp_cluster_data, standardize),
};

static const struct dp_field training[] = {
    INTEGER(dp_cluster_training, workers, DP_FIELD_U32, 1, DP_WORKERS_MAX),
    INTEGER(dp_cluster_training, batch, DP_FIELD_U32, 0, 1 << 20),
    INTEGER(dp_cluster_training, epochs, DP_FIELD_U32, 0, 1000000),
    INTEGER(dp_cluster_training, seed, DP_FIELD_U64, 0, UINT64_MAX),
    REAL(dp_cluster_training, rate, RATE_MIN, RATE_MAX),
    INTEGER(dp_cluster_training, warmup_steps, DP_FIELD_U64, 0, INT64_MAX),
    NAMES(dp_cluster_training, decay, decays),
    REAL(dp_cluster_training, rate_end, 0, RATE_MAX),
    NAMES(dp_cluster_training, schedule, schedules),
    INTEGER(dp_cluster_training, fetch_every, DP_FIELD_U32, 1, 1000000),
    INTEGER(dp_cluster_training, push_every, DP_FIELD_U32, 1, 1000000),
    INTEGER(dp_cluster_training, accumulate, DP_FIELD_U32, 1, 1000000),
    TEXT(dp_cluster_training, consistency, sizeof((struct dp_cluster_training *)0)->consistency - 1),
    NAMES(dp_cluster_training, work, works),
    BOOL(dp_cluster_training, overlap),
    INTEGER(dp_cluster_training, pushes_max, DP_FIELD_U32, 1, 64),
    BOOL(dp_cluster_training, bf16_values),
    BOOL(dp_cluster_training, rate_by_staleness),
    INTEGER(dp_cluster_training, run, DP_FIELD_U32, 0, INT32_MAX),
    INTEGER(dp_cluster_training, threads, DP_FIELD_U32, 1, 256),
    INTEGER(dp_cluster_training, blas_threads, DP_FIELD_U32, 1, 1024),
    TEXT(dp_cluster_training, device, sizeof((struct dp_cluster_training *)0)->device - 1),
    NAMES(dp_cluster_training, precision, precisions),
    TEXT(dp_cluster_training, stop_at, sizeof((struct dp_cluster_training *)0)->stop_at - 1),
    INTEGER(dp_cluster_training, patience, DP_FIELD_U32, 0, 1000000),
    TEXT(dp_cluster_training, patience_metric, sizeof((struct dp_cluster_training *)0)->patience_metric - 1),
    INTEGER(dp_cluster_training, top_k, DP_FIELD_U32, 1, 10000),
    NAMES(dp_cluster_training, keep, keeps),
    INTEGER(dp_cluster_training, timeout_ms, DP_FIELD_U32, 100, 600000),
    INTEGER(dp_cluster_training, worker_timeout, DP_FIELD_U32, 0, 86400),
    TEXT(dp_cluster_training, pace, sizeof((struct dp_cluster_training *)0)->pace - 1),
    NAMES(dp_cluster_training, jitter, jitters),
    {.key = "straggler",
     .type = DP_FIELD_TEXT,
     .offset = offsetof(struct dp_cluster_training, straggler),
     .list = true,
     .max = sizeof((struct dp_cluster_training *)0)->straggler - 1},
    PATH(dp_cluster_training, report),
    PATH(dp_cluster_training, steps),
    PATH(dp_cluster_training, best),
    INTEGER(dp_cluster_training, first_epoch, DP_FIELD_U32, 0, INT32_MAX),
    INTEGER(dp_cluster_training, earlier_examples, DP_FIELD_U64, 0, INT64_MAX),
};
static const char *const training_groups[] = {"optimizer"};

#define BELOW_1 0.99999994 /* the f32 below 1 */
#define HYPER(name, low, high)                                                                               \
    {                                                                                                        \
        .key = #name, .type = DP_FIELD_F32, .offset = offsetof(struct dp_optimizer_spec, name),              \
        .min_f64 = low, .max_f64 = high                                                                      \
    }

static const struct dp_field optimizer[] = {
    HYPER(l2, 0, 1e6),        HYPER(momentum, 0, BELOW_1), HYPER(beta1, 0, BELOW_1),
    HYPER(beta2, 0, BELOW_1), HYPER(epsilon, 1e-30, 1e6),  HYPER(decay, 0, 1e6),
    HYPER(l1, 0, 1e6),        HYPER(ftrl_beta, 0, 1e6),    HYPER(accumulator, 0, 1e6),
};
static const char *const optimizer_groups[] = {"kind"};

const struct dp_fields dp_fields_top = {"", top, COUNT(top), top_groups, COUNT(top_groups)};
const struct dp_fields dp_fields_server = {"servers.", server, COUNT(server), NULL, 0};
const struct dp_fields dp_fields_counted = {"servers.", counted, COUNT(counted), NULL, 0};
const struct dp_fields dp_fields_checkpoint = {"checkpoint.", checkpoint, COUNT(checkpoint), NULL, 0};
const struct dp_fields dp_fields_data = {"data.", data, COUNT(data), NULL, 0};
const struct dp_fields dp_fields_training = {"training.", training, COUNT(training), training_groups,
                                             COUNT(training_groups)};
const struct dp_fields dp_fields_optimizer = {"training.optimizer.", optimizer, COUNT(optimizer),
                                              optimizer_groups, COUNT(optimizer_groups)};

static enum dp_status check_integer(const char *what, const struct dp_field *field, uint64_t value,
                                    struct dp_error *err)
{
    if (value >= field->min && value <= field->max)
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT, "%s is %" PRIu64 ", but must be %" PRIu64 " .. %" PRIu64, what, value,
                   field->min, field->max);
}

static enum dp_status check_real(const char *what, const struct dp_field *field, double value,
                                 struct dp_error *err)
{
    if (value >= field->min_f64 && value <= field->max_f64) /* false for NaN */
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT, "%s is %g, but must be %.8g .. %.8g", what, value, field->min_f64,
                   field->max_f64);
}

static enum dp_status check_text(const char *what, const struct dp_field *field, const char *value,
                                 struct dp_error *err)
{
    size_t len = strnlen(value, field->max + 1);
    if (len > field->max)
        return dp_fail(err, DP_ARGUMENT, "%s is longer than %" PRIu64 " bytes", what, field->max);
    if (len < field->min)
        return dp_fail(err, DP_ARGUMENT, "%s is empty: give it a value", what);
    return DP_OK;
}

enum dp_status dp_field_check(const struct dp_fields *fields, const struct dp_field *field, const void *base,
                              const char *what, struct dp_error *err)
{
    char key[96];
    if (!what) {
        (void)snprintf(key, sizeof key, "'%s%s'", fields->prefix, field->key);
        what = key;
    }
    const void *at = (const char *)base + field->offset;
    switch (field->type) {
    case DP_FIELD_U32:
        return check_integer(what, field, *(const uint32_t *)at, err);
    case DP_FIELD_U64:
    case DP_FIELD_BYTES:
        return check_integer(what, field, *(const uint64_t *)at, err);
    case DP_FIELD_F64:
        return check_real(what, field, *(const double *)at, err);
    case DP_FIELD_F32:
        return check_real(what, field, (double)*(const float *)at, err);
    case DP_FIELD_TEXT:
        return check_text(what, field, at, err);
    case DP_FIELD_NAME:
        if (*(const uint32_t *)at > field->max)
            return dp_fail(err, DP_ARGUMENT, "%s has no such kind", what);
        return DP_OK;
    case DP_FIELD_BOOL:
        return DP_OK;
    }
    return DP_OK;
}

const char *dp_setting_name(const struct dp_setting_names *names, const char *key,
                            char out[DP_SETTING_NAME_BYTES])
{
    const char *flag = names ? names->flag(names->context, key) : NULL;
    (void)snprintf(out, DP_SETTING_NAME_BYTES, flag ? "%.94s" : "'%.93s'", flag ? flag : key);
    return out;
}

enum dp_status dp_fields_check(const struct dp_fields *fields, const void *base,
                               const struct dp_setting_names *names, struct dp_error *err)
{
    for (size_t i = 0; i < fields->count; i++) {
        char key[DP_SETTING_NAME_BYTES], name[DP_SETTING_NAME_BYTES];
        (void)snprintf(key, sizeof key, "%s%s", fields->prefix, fields->field[i].key);
        enum dp_status st =
            dp_field_check(fields, &fields->field[i], base, dp_setting_name(names, key, name), err);
        if (st != DP_OK)
            return st;
    }
    return DP_OK;
}

const struct dp_field *dp_fields_find(const struct dp_fields *fields, const char *key)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strcmp(fields->field[i].key, key) == 0)
            return &fields->field[i];
    return NULL;
}

const char *dp_decay_name(enum dp_decay decay)
{
    return (size_t)decay < COUNT(decays) ? decays[decay] : NULL;
}

const char *dp_cluster_work_name(enum dp_cluster_work work)
{
    return (size_t)work < COUNT(works) ? works[work] : NULL;
}

const char *dp_cluster_jitter_name(enum dp_cluster_jitter jitter)
{
    return (size_t)jitter < COUNT(jitters) ? jitters[jitter] : NULL;
}

const char *dp_cluster_precision_name(enum dp_cluster_precision precision)
{
    return (size_t)precision < COUNT(precisions) ? precisions[precision] : NULL;
}

const char *dp_cluster_durability_name(enum dp_cluster_durability durability)
{
    return (size_t)durability < COUNT(durabilities) ? durabilities[durability] : NULL;
}

const char *dp_cluster_optimizer_name(const struct dp_optimizer_spec *spec)
{
    const struct dp_optimizer_traits *traits = dp_optimizer_traits(spec);
    return traits ? traits->name : NULL;
}

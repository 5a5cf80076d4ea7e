#include "common/config/fields.h"
#include "common/model/optimizer_kinds.h"

#include "common/base/parse.h"

#include <string.h>

static enum dp_status set_integer(const struct dp_field *field, void *at, const char *text, const char *what,
                                  struct dp_error *err)
{
    uint64_t value;
    enum dp_status st = dp_parse_u64(text, field->min, field->max, what, &value, err);
    if (st == DP_OK && field->type == DP_FIELD_U32)
        *(uint32_t *)at = (uint32_t)value;
    else if (st == DP_OK)
        *(uint64_t *)at = value;
    return st;
}

static enum dp_status set_real(const struct dp_field *field, void *at, const char *text, const char *what,
                               struct dp_error *err)
{
    double value;
    enum dp_status st = dp_parse_f64(text, field->min_f64, field->max_f64, what, &value, err);
    if (st == DP_OK && field->type == DP_FIELD_F32)
        *(float *)at = (float)value;
    else if (st == DP_OK)
        *(double *)at = value;
    return st;
}

static enum dp_status set_name(const struct dp_field *field, const char *name, void *at, const char *what,
                               struct dp_error *err)
{
    char known[128] = "";
    for (uint64_t i = 0; i <= field->max; i++) {
        if (strcmp(field->names[i], name) == 0) {
            *(uint32_t *)at = (uint32_t)i;
            return DP_OK;
        }
        size_t len = strlen(known);
        (void)snprintf(known + len, sizeof known - len, "%s%s",
                       i == 0            ? ""
                       : i == field->max ? " or "
                                         : ", ",
                       field->names[i]);
    }
    return dp_fail(err, DP_ARGUMENT, "%s is \"%s\", but must be %s", what, name, known);
}

enum dp_status dp_field_set(const struct dp_fields *fields, const struct dp_field *field, void *base,
                            const char *text, const char *what, struct dp_error *err)
{
    void *at = (char *)base + field->offset;
    enum dp_status st = DP_OK;
    switch (field->type) {
    case DP_FIELD_U32:
    case DP_FIELD_U64:
        return set_integer(field, at, text, what, err);
    case DP_FIELD_F64:
    case DP_FIELD_F32:
        return set_real(field, at, text, what, err);
    case DP_FIELD_BYTES:
        st = dp_parse_bytes(text, what, at, err);
        break;
    case DP_FIELD_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0 && strcmp(text, "yes") != 0 &&
            strcmp(text, "no") != 0)
            return dp_fail(err, DP_ARGUMENT, "%s is '%s', but must be yes or no (true or false)", what, text);
        *(bool *)at = text[0] == 't' || text[0] == 'y';
        break;
    case DP_FIELD_TEXT:
        if (strlen(text) > field->max)
            return dp_fail(err, DP_ARGUMENT, "%s is longer than %u bytes", what, (unsigned)field->max);
        memcpy(at, text, strlen(text) + 1);
        break;
    case DP_FIELD_NAME:
        st = set_name(field, text, at, what, err);
        break;
    }
    return st == DP_OK ? dp_field_check(fields, field, base, what, err) : st;
}

enum dp_status dp_cluster_set(struct dp_cluster *cluster, const char *key, const char *text, const char *what,
                              struct dp_error *err)
{
    struct dp_optimizer_spec *optimizer = &cluster->training.optimizer;
    const struct {
        const struct dp_fields *fields;
        void *base;
    } groups[] = {
        {&dp_fields_optimizer, optimizer}, /* before the group that it lies in */
        {&dp_fields_training, &cluster->training},
        {&dp_fields_data, &cluster->data},
        {&dp_fields_top, cluster},
    };
    if (strcmp(key, "training.optimizer.kind") == 0) {
        if (dp_optimizer_named(text, optimizer))
            return DP_OK;
        return dp_fail(err, DP_ARGUMENT, "%s is '%s', but must be " DP_OPTIMIZER_NAMES, what, text);
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const struct dp_fields *fields = groups[i].fields;
        size_t prefix = strlen(fields->prefix);
        if (strncmp(key, fields->prefix, prefix) != 0)
            continue;
        const struct dp_field *field = dp_fields_find(fields, key + prefix);
        if (!field)
            break;
        if (fields == &dp_fields_optimizer && !dp_optimizer_uses(optimizer->kind, field->offset))
            return dp_fail(err, DP_ARGUMENT, "%s is not a setting of the optimizer '%s'", what,
                           dp_cluster_optimizer_name(optimizer));
        return dp_field_set(fields, field, groups[i].base, text, what, err);
    }
    return dp_fail(err, DP_ARGUMENT, "%s: there is no key '%s'", what, key);
}

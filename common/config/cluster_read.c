/* The only file that sees libconfig.
 *     text (cluster_text.h) -> libconfig -> keys, types and ranges against the tables -> the whole cluster */
#define _GNU_SOURCE /* realpath */
#include "common/config/fields.h"
#include "common/model/optimizer_kinds.h"

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/config/cluster_counted.h"
#include "common/config/cluster_paths.h"
#include "common/config/cluster_text.h"
#include "common/config/nearest.h"

#include <inttypes.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAMES_MAX 32

struct cluster_reader {
    const char *path;
    struct dp_error *err;
};

/* Puts "file:line" in front of what is in err; "file" where the whole file is meant. */
static enum dp_status at_line(const struct cluster_reader *reader, const config_setting_t *setting)
{
    if (config_setting_is_root(setting))
        return dp_wrap(reader->err, DP_ARGUMENT, "%s", reader->path);
    return dp_wrap(reader->err, DP_ARGUMENT, "%s:%u", reader->path,
                   (unsigned)config_setting_source_line(setting));
}

static enum dp_status wrong_type(const struct cluster_reader *reader, const struct dp_fields *fields,
                                 const config_setting_t *setting, const char *wanted)
{
    static const char *const names[] = {"nothing",          "a group { }",  "an integer",
                                        "a 64-bit integer", "a number",     "a string",
                                        "true or false",    "an array [ ]", "a list ( )"};
    int type = config_setting_type(setting);
    const char *got = type >= 0 && (size_t)type < sizeof names / sizeof names[0] ? names[type] : "unknown";
    (void)dp_fail(reader->err, DP_ARGUMENT, "'%s%s' must be %s, not %s", fields->prefix,
                  config_setting_name(setting) ? config_setting_name(setting) : "", wanted, got);
    return at_line(reader, setting);
}

/* An integer of either width. Hexadecimal digits are taken as they stand, without a sign. */
static bool get_integer(const config_setting_t *setting, bool *negative, uint64_t *out)
{
    int type = config_setting_type(setting);
    if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
        return false;
    int64_t value =
        type == CONFIG_TYPE_INT ? config_setting_get_int(setting) : config_setting_get_int64(setting);
    bool hex = config_setting_get_format(setting) == CONFIG_FORMAT_HEX;
    *out = hex && type == CONFIG_TYPE_INT ? (uint32_t)value : (uint64_t)value;
    *negative = value < 0 && !hex;
    return true;
}

static enum dp_status set_text(const struct cluster_reader *reader, const struct dp_fields *fields,
                               const struct dp_field *field, const config_setting_t *setting, void *base)
{
    char what[96];
    (void)snprintf(what, sizeof what, "'%s%s'", fields->prefix, field->key);
    enum dp_status st =
        dp_field_set(fields, field, base, config_setting_get_string(setting), what, reader->err);
    return st == DP_OK ? st : at_line(reader, setting);
}

static enum dp_status set_integer(const struct cluster_reader *reader, const struct dp_fields *fields,
                                  const struct dp_field *field, const config_setting_t *setting, void *at)
{
    uint64_t value = 0;
    bool negative = false;
    if (!get_integer(setting, &negative, &value))
        return wrong_type(reader, fields, setting,
                          field->type == DP_FIELD_BYTES ? "an integer or a string like \"4GiB\""
                                                        : "an integer");
    if (negative || (field->type == DP_FIELD_U32 && value > UINT32_MAX)) {
        (void)dp_fail(reader->err, DP_ARGUMENT, "'%s%s' is %" PRId64 ", but must be %" PRIu64 " .. %" PRIu64,
                      fields->prefix, field->key, (int64_t)value, field->min, field->max);
        return at_line(reader, setting);
    }
    if (field->type == DP_FIELD_U32)
        *(uint32_t *)at = (uint32_t)value;
    else
        *(uint64_t *)at = value;
    return DP_OK;
}

static enum dp_status set_real(const struct cluster_reader *reader, const struct dp_fields *fields,
                               const struct dp_field *field, const config_setting_t *setting, void *at)
{
    double value;
    if (config_setting_type(setting) == CONFIG_TYPE_FLOAT)
        value = config_setting_get_float(setting);
    else if (config_setting_type(setting) == CONFIG_TYPE_INT)
        value = config_setting_get_int(setting);
    else if (config_setting_type(setting) == CONFIG_TYPE_INT64)
        value = (double)config_setting_get_int64(setting);
    else
        return wrong_type(reader, fields, setting, "a number");
    if (field->type == DP_FIELD_F32)
        *(float *)at = (float)value; /* beyond an f32's range: infinite, which no range holds */
    else
        *(double *)at = value;
    return DP_OK;
}

/* [ "a", "b" ]  ->  "a,b" */
static enum dp_status set_list(const struct cluster_reader *reader, const struct dp_fields *fields,
                               const struct dp_field *field, const config_setting_t *setting, char *at)
{
    size_t len = 0;
    at[0] = '\0';
    for (int i = 0; i < config_setting_length(setting); i++) {
        const char *text = config_setting_get_string_elem(setting, i);
        if (!text || !text[0] || strchr(text, ','))
            return wrong_type(reader, fields, setting, "an array of strings without commas");
        if (len + strlen(text) + 2 > field->max + 1) {
            (void)dp_fail(reader->err, DP_ARGUMENT, "'%s%s' is longer than %" PRIu64 " bytes", fields->prefix,
                          field->key, field->max);
            return at_line(reader, setting);
        }
        len += (size_t)snprintf(at + len, field->max + 1 - len, "%s%s", i ? "," : "", text);
    }
    return DP_OK;
}

static enum dp_status set_field(const struct cluster_reader *reader, const struct dp_fields *fields,
                                const struct dp_field *field, const config_setting_t *setting, void *base)
{
    void *at = (char *)base + field->offset;
    int type = config_setting_type(setting);
    enum dp_status st = DP_OK;
    if (field->list && type == CONFIG_TYPE_ARRAY)
        return set_list(reader, fields, field, setting, at);
    switch (field->type) {
    case DP_FIELD_U64:
    case DP_FIELD_BYTES:
        if (type == CONFIG_TYPE_STRING)
            return set_text(reader, fields, field, setting, base);
        st = set_integer(reader, fields, field, setting, at);
        break;
    case DP_FIELD_U32:
        st = set_integer(reader, fields, field, setting, at);
        break;
    case DP_FIELD_F64:
    case DP_FIELD_F32:
        st = set_real(reader, fields, field, setting, at);
        break;
    case DP_FIELD_BOOL:
        if (type != CONFIG_TYPE_BOOL)
            return wrong_type(reader, fields, setting, "true or false");
        *(bool *)at = config_setting_get_bool(setting) != 0;
        break;
    case DP_FIELD_TEXT:
    case DP_FIELD_NAME:
        if (type != CONFIG_TYPE_STRING)
            return wrong_type(reader, fields, setting, field->list ? "an array of strings" : "a string");
        return set_text(reader, fields, field, setting, base);
    }
    if (st == DP_OK && dp_field_check(fields, field, base, NULL, reader->err) != DP_OK)
        st = at_line(reader, setting);
    return st;
}

static enum dp_status unknown_key(const struct cluster_reader *reader, const struct dp_fields *fields,
                                  const config_setting_t *setting)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < fields->count && n < NAMES_MAX; i++)
        names[n++] = fields->field[i].key;
    for (size_t i = 0; i < fields->group_count && n < NAMES_MAX; i++)
        names[n++] = fields->group[i];
    const char *near = dp_nearest(config_setting_name(setting), names, n);
    (void)dp_fail(reader->err, DP_ARGUMENT, "unknown key '%s%s'%s%s%s%s", fields->prefix,
                  config_setting_name(setting), near ? "; did you mean '" : "", near ? fields->prefix : "",
                  near ? near : "", near ? "'?" : "");
    return at_line(reader, setting);
}

static bool is_group_key(const struct dp_fields *fields, const char *key)
{
    for (size_t i = 0; i < fields->group_count; i++)
        if (strcmp(fields->group[i], key) == 0)
            return true;
    return false;
}

/* Every key of the group into base, and none of the required ones missing. */
static enum dp_status read_fields(const struct cluster_reader *reader, const struct dp_fields *fields,
                                  const config_setting_t *group, void *base)
{
    int n = config_setting_length(group);
    for (int i = 0; i < n; i++) {
        const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
        const struct dp_field *field = dp_fields_find(fields, config_setting_name(setting));
        enum dp_status st = DP_OK;
        if (field)
            st = set_field(reader, fields, field, setting, base);
        else if (!is_group_key(fields, config_setting_name(setting)))
            st = unknown_key(reader, fields, setting);
        if (st != DP_OK)
            return st;
    }
    for (size_t i = 0; i < fields->count; i++) {
        const struct dp_field *field = &fields->field[i];
        if (field->required && !config_setting_get_member(group, field->key)) {
            (void)dp_fail(reader->err, DP_ARGUMENT, "missing key '%s%s'", fields->prefix, field->key);
            return at_line(reader, group);
        }
    }
    return DP_OK;
}

/* *out NULL: not there. */
static enum dp_status find_group(const struct cluster_reader *reader, const struct dp_fields *fields,
                                 const config_setting_t *parent, const char *key,
                                 const config_setting_t **out)
{
    *out = config_setting_get_member(parent, key);
    if (*out && config_setting_type(*out) != CONFIG_TYPE_GROUP)
        return wrong_type(reader, fields, *out, "a group { }");
    return DP_OK;
}

static enum dp_status read_optimizer(const struct cluster_reader *reader, const config_setting_t *training,
                                     struct dp_optimizer_spec *out)
{
    const config_setting_t *group, *kind;
    enum dp_status st = find_group(reader, &dp_fields_training, training, "optimizer", &group);
    if (st != DP_OK || !group)
        return st;
    kind = config_setting_get_member(group, "kind");
    if (!kind) {
        (void)dp_fail(reader->err, DP_ARGUMENT, "missing key 'training.optimizer.kind'");
        return at_line(reader, group);
    }
    if (config_setting_type(kind) != CONFIG_TYPE_STRING)
        return wrong_type(reader, &dp_fields_optimizer, kind, "a string");
    if (!dp_optimizer_named(config_setting_get_string(kind), out)) {
        (void)dp_fail(reader->err, DP_ARGUMENT,
                      "'training.optimizer.kind' is \"%s\", but must be " DP_OPTIMIZER_NAMES,
                      config_setting_get_string(kind));
        return at_line(reader, kind);
    }
    st = read_fields(reader, &dp_fields_optimizer, group, out);
    for (size_t i = 0; st == DP_OK && i < dp_fields_optimizer.count; i++) {
        const struct dp_field *field = &dp_fields_optimizer.field[i];
        const config_setting_t *setting = config_setting_get_member(group, field->key);
        if (setting && !dp_optimizer_uses(out->kind, field->offset)) {
            (void)dp_fail(reader->err, DP_ARGUMENT, "'training.optimizer.%s' is not a setting of kind \"%s\"",
                          field->key, config_setting_get_string(kind));
            st = at_line(reader, setting);
        }
    }
    return st;
}

static enum dp_status make_servers(const struct cluster_reader *reader, uint32_t count,
                                   struct dp_cluster *out)
{
    out->server = calloc(count, sizeof *out->server);
    if (!out->server)
        return dp_fail(reader->err, DP_NOMEM, "%s: no memory for %" PRIu32 " servers", reader->path, count);
    out->server_count = count;
    return DP_OK;
}

static enum dp_status read_counted(const struct cluster_reader *reader, const config_setting_t *group,
                                   struct dp_cluster *out)
{
    out->counted.shards = 1;
    enum dp_status st = read_fields(reader, &dp_fields_counted, group, &out->counted);
    if (st == DP_OK)
        st = make_servers(reader, out->counted.count, out);
    for (uint32_t i = 0; st == DP_OK && i < out->server_count; i++)
        out->server[i].shards = out->counted.shards;
    return st;
}

static enum dp_status read_servers(const struct cluster_reader *reader, const config_setting_t *root,
                                   struct dp_cluster *out)
{
    const config_setting_t *list = config_setting_get_member(root, "servers");
    if (!list)
        return dp_fail(reader->err, DP_ARGUMENT, "%s: missing key 'servers'", reader->path);
    bool one = config_setting_type(list) == CONFIG_TYPE_GROUP && config_setting_get_member(list, "host") &&
               !config_setting_get_member(list, "count"); /* a list without its brackets */
    if (config_setting_type(list) == CONFIG_TYPE_GROUP && !one)
        return read_counted(reader, list, out);
    if (config_setting_type(list) != CONFIG_TYPE_LIST)
        return wrong_type(reader, &dp_fields_top, list, "a list ( { }, ... ), or a group { count = N; ... }");
    int n = config_setting_length(list);
    if (n < 1 || n > DP_SERVERS_MAX) {
        (void)dp_fail(reader->err, DP_ARGUMENT, "'servers' has %d entries, but must have 1 .. %d", n,
                      DP_SERVERS_MAX);
        return at_line(reader, list);
    }
    enum dp_status st = make_servers(reader, (uint32_t)n, out);
    for (int i = 0; st == DP_OK && i < n; i++) {
        const config_setting_t *entry = config_setting_get_elem(list, (unsigned)i);
        if (config_setting_type(entry) != CONFIG_TYPE_GROUP)
            return wrong_type(reader, &dp_fields_server, entry, "a group { }");
        out->server[i].shards = 1;
        st = read_fields(reader, &dp_fields_server, entry, &out->server[i]);
    }
    return st;
}

/* A link's are those of the file that it leads to. */
static enum dp_status resolve_paths(struct dp_cluster *cluster, const char *file, struct dp_error *err)
{
    struct stat info;
    char *real = lstat(file, &info) == 0 && S_ISLNK(info.st_mode) ? realpath(file, NULL) : NULL;
    enum dp_status st = dp_cluster_paths_resolve(cluster, real ? real : file, err);
    free(real);
    return st;
}

/* 0 is no id. */
static uint64_t id_of_name(const char *name)
{
    uint64_t hash = dp_hash_text(name);
    return hash ? hash : 1;
}

static enum dp_status read_tree(const struct cluster_reader *reader, const config_setting_t *root,
                                struct dp_cluster *out)
{
    const config_setting_t *checkpoint = NULL, *data = NULL, *training = NULL;
    enum dp_status st = read_fields(reader, &dp_fields_top, root, out);
    if (st == DP_OK)
        st = read_servers(reader, root, out);
    if (st == DP_OK)
        st = find_group(reader, &dp_fields_top, root, "checkpoint", &checkpoint);
    if (st == DP_OK && checkpoint)
        st = read_fields(reader, &dp_fields_checkpoint, checkpoint, &out->checkpoint);
    if (st == DP_OK)
        st = find_group(reader, &dp_fields_top, root, "data", &data);
    if (st == DP_OK && !data)
        st = dp_fail(reader->err, DP_ARGUMENT, "%s: missing key 'data'", reader->path);
    if (st == DP_OK)
        st = read_fields(reader, &dp_fields_data, data, &out->data);
    if (st == DP_OK)
        st = find_group(reader, &dp_fields_top, root, "training", &training);
    if (st == DP_OK && training) {
        st = read_fields(reader, &dp_fields_training, training, &out->training);
        if (st == DP_OK)
            st = read_optimizer(reader, training, &out->training.optimizer);
    }
    if (st != DP_OK)
        return st;
    if (out->id == 0)
        out->id = id_of_name(out->name);
    if (out->obsolete_generation > 1) /* 1 was written into every file */
        dp_log(DP_LOG_INFO, "%s: the key 'generation' decides nothing any more: stores keep it",
               reader->path);
    st = dp_cluster_check(out, reader->err);
    if (st == DP_OK && out->relative_to == DP_CLUSTER_FILE)
        st = resolve_paths(out, reader->path, reader->err);
    if (st == DP_OK)
        st = dp_cluster_dir_use(out, reader->err);
    if (st == DP_OK)
        st = dp_cluster_count_out(out, reader->err);
    return st == DP_OK ? st : dp_wrap(reader->err, DP_ARGUMENT, "%s", reader->path);
}

/* libconfig names the line only: its text shows which key it is. */
static enum dp_status syntax_error(const char *path, const char *text, const config_t *config,
                                   struct dp_error *err)
{
    int line = config_error_line(config);
    const char *p = text;
    for (int i = 1; i < line && *p; i++) {
        p += strcspn(p, "\n");
        if (*p)
            p++;
    }
    p += strspn(p, " \t");
    return dp_fail(err, DP_ARGUMENT, "%s:%d: %s, at or before: %.*s", path, line,
                   config_error_text(config) ? config_error_text(config) : "syntax error",
                   (int)(strcspn(p, "\r\n") < 80 ? strcspn(p, "\r\n") : 80), p);
}

enum dp_status dp_cluster_read(const char *path, struct dp_cluster **out, struct dp_error *err)
{
    struct dp_error unheard = {0};
    struct cluster_reader reader = {.path = path, .err = err ? err : &unheard};
    struct dp_cluster *cluster = NULL;
    char *text = NULL;
    config_t config;
    *out = NULL;
    config_init(&config);
    enum dp_status st = dp_cluster_text(path, &text, err);
    if (st != DP_OK)
        goto done;
    if (!config_read_string(&config, text)) {
        st = syntax_error(path, text, &config, err);
        goto done;
    }
    cluster = calloc(1, sizeof *cluster);
    if (!cluster) {
        st = dp_fail(err, DP_NOMEM, "no memory for cluster file '%s'", path);
        goto done;
    }
    dp_cluster_defaults(cluster);
    cluster->training.run = 0;
    st = read_tree(&reader, config_root_setting(&config), cluster);
done:
    config_destroy(&config);
    free(text);
    if (st != DP_OK)
        dp_cluster_free(&cluster);
    *out = cluster;
    return st;
}

bool dp_cluster_file_gives(const char *path, const char *key)
{
    char *text = NULL;
    config_t config;
    config_init(&config);
    bool gives = dp_cluster_text(path, &text, NULL) == DP_OK && config_read_string(&config, text) &&
                 config_lookup(&config, key) != NULL;
    config_destroy(&config);
    free(text);
    return gives;
}

/* libconfig's own writer rounds numbers to 15 digits. Numbers that are written here read back equal, bit
 * for bit. */
#include "common/base/hash.h"
#include "common/config/cluster_paths.h"
#include "common/config/cluster_shared.h"
#include "common/config/fields.h"
#include "common/env/atomic_file.h"
#include "common/model/optimizer_kinds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(file, "\\%c", *p);
        else if (*p < 32 || *p == 127)
            fprintf(file, "\\x%02X", *p);
        else
            fputc(*p, file);
    }
    fputc('"', file);
}

static void put_u64(FILE *file, uint64_t value)
{
    if (value > INT64_MAX)
        fprintf(file, "\"%" PRIu64 "\"", value); /* libconfig's integers are signed */
    else
        fprintf(file, "%" PRIu64 "%s", value, value > INT32_MAX ? "L" : "");
}

/* The fewest digits that read back as the same number, and a point or exponent, so that it stays a float. */
static void put_real(FILE *file, double value, bool single)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (single ? (float)back == (float)value : back == value)
            break;
    }
    fprintf(file, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void put_value(FILE *file, const struct dp_field *field, const void *base)
{
    const void *at = (const char *)base + field->offset;
    switch (field->type) {
    case DP_FIELD_U32:
        put_u64(file, *(const uint32_t *)at);
        break;
    case DP_FIELD_U64:
    case DP_FIELD_BYTES:
        put_u64(file, *(const uint64_t *)at);
        break;
    case DP_FIELD_F64:
        put_real(file, *(const double *)at, false);
        break;
    case DP_FIELD_F32:
        put_real(file, (double)*(const float *)at, true);
        break;
    case DP_FIELD_BOOL:
        fputs(*(const bool *)at ? "true" : "false", file);
        break;
    case DP_FIELD_TEXT:
        put_text(file, at);
        break;
    case DP_FIELD_NAME:
        put_text(file, field->names[*(const uint32_t *)at]);
        break;
    }
}

static void put_field(FILE *file, const char *indent, const struct dp_field *field, const void *base)
{
    fprintf(file, "%s%s = ", indent, field->key);
    put_value(file, field, base);
    fputs(";\n", file);
}

static void put_fields(FILE *file, const char *indent, const struct dp_fields *fields, const void *base)
{
    for (size_t i = 0; i < fields->count; i++)
        put_field(file, indent, &fields->field[i], base);
}

static void put_servers(FILE *file, const struct dp_cluster *cluster)
{
    if (cluster->counted.count > 0) {
        fputs("servers = {\n", file);
        put_fields(file, "    ", &dp_fields_counted, &cluster->counted);
        fputs("};\n", file);
        return;
    }
    fputs("servers = (\n", file);
    for (uint32_t i = 0; i < cluster->server_count; i++) {
        fputs("    {\n", file);
        put_fields(file, "        ", &dp_fields_server, &cluster->server[i]);
        fprintf(file, "    }%s\n", i + 1 < cluster->server_count ? "," : "");
    }
    fputs(");\n", file);
}

static void put_cluster(FILE *file, const struct dp_cluster *cluster)
{
    const struct dp_optimizer_spec *optimizer = &cluster->training.optimizer;
    fputs("// Cluster of Downpour; deploy/cluster.example.conf explains every key.\n", file);
    for (size_t i = 0; i < dp_fields_top.count; i++)
        if (!dp_fields_top.field[i].obsolete &&
            (dp_fields_top.field[i].offset != offsetof(struct dp_cluster, id) || cluster->id != 0))
            put_field(file, "", &dp_fields_top.field[i], cluster);
    put_servers(file, cluster);
    if (cluster->checkpoint.every > 0) {
        fputs("checkpoint = {\n", file);
        put_fields(file, "    ", &dp_fields_checkpoint, &cluster->checkpoint);
        fputs("};\n", file);
    }
    fputs("data = {\n", file);
    put_fields(file, "    ", &dp_fields_data, &cluster->data);
    fputs("};\ntraining = {\n", file);
    put_fields(file, "    ", &dp_fields_training, &cluster->training);
    fputs("    optimizer = {\n        kind = ", file);
    put_text(file, dp_cluster_optimizer_name(optimizer));
    fputs(";\n", file);
    for (size_t i = 0; i < dp_fields_optimizer.count; i++)
        if (dp_optimizer_uses(optimizer->kind, dp_fields_optimizer.field[i].offset))
            put_field(file, "        ", &dp_fields_optimizer.field[i], optimizer);
    fputs("    };\n};\n", file);
}

enum dp_status dp_cluster_write(const struct dp_cluster *cluster, const char *path, struct dp_error *err)
{
    struct dp_atomic_file file;
    struct dp_cluster named = *cluster, *shortened = NULL;
    if (named.id == 0)
        named.id = 1; /* absent: the reader makes it of the name */
    enum dp_status st = dp_cluster_check(&named, err);
    if (st == DP_OK && cluster->relative_to == DP_CLUSTER_FILE)
        st = dp_cluster_paths_shorten(cluster, path, &shortened, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st == DP_OK) {
        put_cluster(file.stream, shortened ? shortened : cluster);
        st = dp_atomic_file_commit(&file, err);
    }
    dp_cluster_free(&shortened);
    return st;
}

/* ---- what hosts share (cluster_shared.h) */

static bool is_shared(const char *key)
{
    static const char *const own[] = {"generation", "relative_to", "cache_bytes", "journal_bytes",
                                      "model",      "store",       "log",         "dir",
                                      "metrics",    "first",       "listen"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(key, own[i]) == 0)
            return false;
    return true;
}

static void put_shared(FILE *file, const char *prefix, const struct dp_fields *fields, const void *base)
{
    for (size_t i = 0; i < fields->count; i++)
        if (is_shared(fields->field[i].key)) {
            fprintf(file, "%s%s = ", prefix, fields->field[i].key);
            put_value(file, &fields->field[i], base);
            fputc('\n', file);
        }
}

enum dp_status dp_cluster_shared_text(const struct dp_cluster *cluster, char **out, struct dp_error *err)
{
    char prefix[32];
    size_t size = 0;
    *out = NULL;
    FILE *file = open_memstream(out, &size);
    if (!file)
        return dp_fail(err, DP_NOMEM, "no memory for the cluster's settings");
    put_shared(file, "", &dp_fields_top, cluster);
    fprintf(file, "servers = %" PRIu32 "\n", cluster->server_count);
    if (cluster->counted.count > 0) /* their addresses are the register's */
        fprintf(file, "servers.shards = %" PRIu32 "\n", cluster->counted.shards);
    for (uint32_t i = 0; i < cluster->server_count && cluster->counted.count == 0; i++) {
        (void)snprintf(prefix, sizeof prefix, "servers[%" PRIu32 "].", i);
        put_shared(file, prefix, &dp_fields_server, &cluster->server[i]);
    }
    if (cluster->checkpoint.every > 0)
        put_shared(file, dp_fields_checkpoint.prefix, &dp_fields_checkpoint, &cluster->checkpoint);
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        free(*out);
        *out = NULL;
        return dp_fail(err, DP_NOMEM, "no memory for the cluster's settings");
    }
    if (size > DP_CLUSTER_SHARED_BYTES)
        (void)snprintf(*out, size, "servers = %" PRIu32 " of hash %016" PRIx64 "\n", cluster->server_count,
                       dp_hash_bytes(DP_HASH_BEGIN, *out, size));
    return DP_OK;
}

/* libconfig's own writer rounds numbers to 15 digits. Numbers that are written here read back equal, bit
 * for bit. */
#include "common/config/cluster_paths.h"
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

static void put_field(FILE *file, const char *indent, const struct dp_field *field, const void *base)
{
    const void *at = (const char *)base + field->offset;
    fprintf(file, "%s%s = ", indent, field->key);
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

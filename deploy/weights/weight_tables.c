#include "deploy/weights/weight_tables.h"

#include "deploy/weights/stored_keys.h"
#include "worker/read/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORTION_BYTES (8u << 20)
#define PORTION_ROWS  65536u

static enum dp_status open_names(struct dp_weight_tables *run, struct dp_error *err)
{
    const struct dp_cluster *cluster = run->served.cluster;
    if (!cluster->data.names[0]) {
        fprintf(stderr, "downpour: '%s' kept no names (it is of an older build): keys are shown as numbers\n",
                run->served.folder.path);
        return DP_OK;
    }
    enum dp_status st = dp_vocab_open(cluster->data.names, cluster->training.run, &run->vocab, err);
    return st == DP_NOT_FOUND
               ? dp_wrap(
                     err, st,
                     "the names of its keys are missing (restore the file, or use numbers with --no-names)")
               : st;
}

static enum dp_status read_scale(struct dp_weight_tables *run, struct dp_error *err)
{
    const char *path = run->served.cluster->data.columns;
    struct dp_schema schema;
    if (run->model.labels != DP_LABELS_ANY || !path[0])
        return DP_OK;
    enum dp_status st = dp_schema_read_file(path, &schema, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "the unit of its outputs is not known");
    run->label_scale = schema.label_scale;
    dp_schema_clear(&schema);
    return DP_OK;
}

enum dp_status dp_weight_tables_open(const char *path, bool named, struct dp_weight_tables *out,
                                     struct dp_error *err)
{
    enum dp_status st = dp_served_open(path, named, &out->served, err);
    if (st == DP_OK)
        st = dp_model_open(out->served.cluster->model, &out->model, err);
    if (st == DP_OK)
        dp_graph_set_optimizer(out->model.graph, &out->served.cluster->training.optimizer,
                               out->served.cluster->training.seed);
    if (st == DP_OK)
        st = read_scale(out, err);
    if (st == DP_OK && named)
        st = open_names(out, err);
    if (st == DP_OK)
        st = dp_served_start(&out->served, err);
    return st;
}

int dp_weight_tables_end(struct dp_weight_tables *run, enum dp_status st, const struct dp_error *err)
{
    return dp_served_end(&run->served, st, err);
}

void dp_weight_tables_clear(struct dp_weight_tables *run)
{
    dp_vocab_close(&run->vocab);
    dp_model_close(&run->model);
    dp_served_clear(&run->served);
}

enum dp_status dp_weight_tables_find(const struct dp_weight_tables *run, const char *name,
                                     const struct dp_parameter **out, struct dp_error *err)
{
    char names[192] = "";
    for (int p = 0; p < dp_graph_parameters(run->model.graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(run->model.graph, p);
        size_t len = strlen(names);
        if (strcmp(parameter->table.name, name) == 0) {
            *out = parameter;
            return DP_OK;
        }
        (void)snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", parameter->table.name);
    }
    return dp_fail(err, DP_NOT_FOUND, "--table: %s has no table '%.48s'; it has %s",
                   run->served.cluster->model, name, names);
}

bool dp_weight_tables_of_columns(const struct dp_weight_tables *run, const struct dp_parameter *parameter)
{
    const struct dp_graph *graph = run->model.graph;
    for (int n = 0; n < dp_graph_nodes(graph); n++) {
        const struct dp_node *node = dp_graph_node(graph, n);
        if (node->op == DP_OP_MATMUL && dp_graph_parameter(graph, node->parameter) == parameter)
            return dp_graph_node(graph, node->input[0])->op == DP_OP_INPUT_DENSE;
    }
    return false;
}

/* ---- rows */

static enum dp_status reserve(struct dp_weight_rows *rows, size_t room, struct dp_error *err)
{
    rows->keys = calloc(room + 1, sizeof *rows->keys);
    rows->names = calloc(room + 1, sizeof *rows->names);
    return rows->keys && rows->names ? DP_OK
                                     : dp_fail(err, DP_NOMEM, "no memory for the keys of %zu rows", room);
}

static void add(struct dp_weight_rows *rows, uint64_t key, size_t name)
{
    rows->keys[rows->count] = key;
    rows->names[rows->count++] = name;
}

static enum dp_status list_blocks(struct dp_weight_rows *rows, struct dp_error *err)
{
    const struct dp_parameter *p = rows->parameter;
    size_t blocks = dp_parameter_floats(p) / p->table.dim;
    enum dp_status st = reserve(rows, blocks, err);
    for (size_t b = 0; st == DP_OK && b < blocks; b++)
        add(rows, b, DP_VOCAB_NONE);
    return st;
}

static enum dp_status list_keys(struct dp_weight_tables *run, struct dp_weight_rows *rows,
                                struct dp_error *err)
{
    uint32_t group = rows->parameter->group;
    size_t named = run->vocab ? dp_vocab_count(run->vocab) : 0, count = 0;
    uint64_t *stored = NULL;
    enum dp_status st =
        dp_stored_keys(run->served.cluster, rows->parameter->table.name, &stored, &count, err);
    rows->stored = count;
    if (st == DP_OK)
        st = reserve(rows, named + count, err);
    for (size_t i = 0; st == DP_OK && i < named; i++) {
        struct dp_vocab_name name = dp_vocab_at(run->vocab, i);
        if (dp_vocab_key(run->vocab, group, name.key) == i && name.group != DP_VOCAB_COLUMN)
            add(rows, name.key, i); /* by its first name */
    }
    for (size_t i = 0; st == DP_OK && i < count; i++)
        if (!run->vocab || dp_vocab_key(run->vocab, group, stored[i]) == DP_VOCAB_NONE)
            add(rows, stored[i], DP_VOCAB_NONE);
    free(stored);
    return st;
}

enum dp_status dp_weight_rows_list(struct dp_weight_tables *run, const struct dp_parameter *parameter,
                                   struct dp_weight_rows *out, struct dp_error *err)
{
    *out = (struct dp_weight_rows){.parameter = parameter};
    enum dp_status st = dp_client_table_kept(run->served.client, &parameter->table,
                                             run->served.cluster->training.timeout_ms, &out->table, err);
    if (st == DP_UNSUPPORTED)
        st = dp_fail(err, DP_NOT_FOUND,
                     "the run has no table '%s': its training ended before it created its tables",
                     parameter->table.name);
    if (st == DP_OK)
        st = parameter->sparse ? list_keys(run, out, err) : list_blocks(out, err);
    return st;
}

void dp_weight_rows_clear(struct dp_weight_rows *rows)
{
    free(rows->keys);
    free(rows->names);
    *rows = (struct dp_weight_rows){0};
}

size_t dp_weight_rows_portion(const struct dp_weight_rows *rows)
{
    size_t rows_fit = PORTION_BYTES / (rows->parameter->table.dim * sizeof(float));
    return rows_fit < 1 ? 1 : rows_fit < PORTION_ROWS ? rows_fit : PORTION_ROWS;
}

enum dp_status dp_weight_rows_pull(struct dp_weight_tables *run, const struct dp_weight_rows *rows,
                                   size_t first, size_t count, float *weights, struct dp_error *err)
{
    struct dp_served *served = &run->served;
    dp_local_wait(served->local, 0);
    if (dp_local_signal(served->local) || dp_local_failed(served->local))
        return dp_fail(err, DP_STOPPING, "stopped before the end");
    return dp_client_pull_rows(served->client, rows->table, rows->keys + first, count, weights,
                               served->cluster->training.timeout_ms, err);
}

const char *dp_weight_rows_name(const struct dp_weight_tables *run, const struct dp_weight_rows *rows,
                                size_t i, char number[24])
{
    if (rows->names[i] != DP_VOCAB_NONE)
        return dp_vocab_at(run->vocab, rows->names[i]).text;
    (void)snprintf(number, 24, "%" PRIu64, rows->keys[i]);
    return number;
}

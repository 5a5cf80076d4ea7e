#include "worker/allreduce/weights_file.h"

#include "common/tensors/tensor_file.h"

#include <stdio.h>

/* Without the padding of the last block. */
static enum dp_status write_rows(const struct dp_parameter *parameter, int p,
                                 const struct dp_replica *replica, struct dp_tensor_file *file,
                                 struct dp_error *err)
{
    uint64_t floats = (uint64_t)parameter->rows * parameter->width, dim = parameter->table.dim;
    enum dp_status st = DP_OK;
    for (uint64_t at = 0; st == DP_OK && at < floats; at += dim)
        st = dp_tensor_file_put(file, (size_t)p, at, dp_replica_row(replica, p, at / dim),
                                floats - at < dim ? floats - at : dim, err);
    return st;
}

static enum dp_status write_all(const struct dp_graph *graph, const struct dp_replica *replica,
                                struct dp_tensor_file *file, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(graph); p++)
        st = write_rows(dp_graph_parameter(graph, p), p, replica, file, err);
    return st == DP_OK ? dp_tensor_file_commit(file, err) : st;
}

enum dp_status dp_weights_file_write(const char *path, const struct dp_cluster *cluster,
                                     const struct dp_graph *graph, const struct dp_replica *replica,
                                     struct dp_error *err)
{
    const struct dp_tensor_text metadata[] = {{"model", cluster->model}};
    struct dp_tensors tensors = {0};
    struct dp_tensor_file file = {0};
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        struct dp_tensor tensor = {.type = DP_TENSOR_F32, .rows = parameter->rows, .width = parameter->width};
        size_t index;
        (void)snprintf(tensor.name, sizeof tensor.name, "%s", parameter->table.name);
        st = dp_tensors_add(&tensors, &tensor, &index, err);
    }
    if (st == DP_OK)
        st = dp_tensor_file_open(path, &tensors, metadata, 1, &file, err);
    if (st == DP_OK)
        st = write_all(graph, replica, &file, err);
    dp_tensor_file_drop(&file);
    dp_tensors_clear(&tensors);
    return st == DP_OK ? st : dp_wrap(err, st, "weights");
}

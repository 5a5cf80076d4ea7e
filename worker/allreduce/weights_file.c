#include "worker/allreduce/weights_file.h"

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/env/atomic_file.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNED 8u

static size_t floats_of(const struct dp_parameter *parameter)
{
    return (size_t)parameter->rows * parameter->width; /* without the padding of its last block */
}

/* malloc'd, with the padding. */
static char *header_of(const struct dp_cluster *cluster, const struct dp_graph *graph)
{
    json_t *root = json_object(), *about = json_object();
    uint64_t at = 0;
    (void)json_object_set_new(about, "model", json_string(cluster->model));
    (void)json_object_set_new(root, "__metadata__", about);
    for (int p = 0; p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        uint64_t end = at + floats_of(parameter) * sizeof(float);
        json_t *tensor = json_object(), *shape = json_array(), *offsets = json_array();
        (void)json_object_set_new(tensor, "dtype", json_string("F32"));
        (void)json_array_append_new(shape, dp_json_u64(parameter->rows));
        (void)json_array_append_new(shape, dp_json_u64(parameter->width));
        (void)json_object_set_new(tensor, "shape", shape);
        (void)json_array_append_new(offsets, dp_json_u64(at));
        (void)json_array_append_new(offsets, dp_json_u64(end));
        (void)json_object_set_new(tensor, "data_offsets", offsets);
        (void)json_object_set_new(root, parameter->table.name, tensor);
        at = end;
    }
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    size_t bytes = text ? strlen(text) : 0, padded = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    char *header = text ? realloc(text, padded + 1) : NULL;
    if (!header) {
        free(text);
        return NULL;
    }
    memset(header + bytes, ' ', padded - bytes);
    header[padded] = '\0';
    return header;
}

enum dp_status dp_weights_file_write(const char *path, const struct dp_cluster *cluster,
                                     const struct dp_graph *graph, const struct dp_replica *replica,
                                     struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    char *header = header_of(cluster, graph), size[8];
    enum dp_status st = header ? dp_atomic_file_open(path, &file, err)
                               : dp_fail(err, DP_NOMEM, "no memory for the header of %s", path);
    if (st == DP_OK) {
        const float *const *weights = dp_replica_weights(replica);
        dp_store_u64le(size, strlen(header));
        (void)fwrite(size, sizeof size, 1, file.stream); /* commit fails for what failed here */
        (void)fwrite(header, strlen(header), 1, file.stream);
        for (int p = 0; p < dp_graph_parameters(graph); p++)
            (void)fwrite(weights[p], sizeof(float), floats_of(dp_graph_parameter(graph, p)), file.stream);
        st = dp_atomic_file_commit(&file, err);
    }
    free(header);
    return st == DP_OK ? st : dp_wrap(err, st, "weights");
}

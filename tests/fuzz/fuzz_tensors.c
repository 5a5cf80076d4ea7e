/* Any bytes as a file of tensors: refused with a text, or tensors that lie within the bytes as
 * tensor_read.h promises. What is accepted is then taken for a model with dense and sparse tables
 * (import_tables.h), and each row is filled. */
#define _GNU_SOURCE
#include "deploy/checkpoint/import_tables.h"

#include "common/base/full_io.h"
#include "common/model/init.h"
#include "common/model/row.h"
#include "common/tensors/tensor_read.h"
#include "worker/compute/models/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_places(const struct dp_tensor_set *set, size_t size)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct dp_tensor_in *t = &set->one[i];
        char shape[DP_TENSOR_SHAPE_BYTES];
        DP_ASSERT(t->begin >= 8 && t->begin <= t->end && t->end <= size);
        DP_ASSERT((i == 0 || t->begin == set->one[i - 1].end) && t->elements <= t->end - t->begin);
        DP_ASSERT(strlen(dp_tensor_set_shape(t, shape)) < sizeof shape);
        DP_ASSERT(dp_tensor_set_find(set, t->name) == t);
    }
}

static void fill_rows(const struct dp_import_table *t)
{
    char row[DP_ROW_HEADER + 4u * 3 * 64];
    struct dp_error err = {0};
    DP_ASSERT(dp_row_bytes(&t->spec) <= sizeof row);
    for (uint64_t i = 0; i < t->rows; i++) {
        uint64_t key = t->key(t->of, i);
        for (uint64_t k = 0; k < i && k < 16; k++)
            DP_ASSERT(t->key(t->of, k) != key);
        _Alignas(4) char fresh[sizeof row];
        bool stored = true;
        dp_init_row(&t->spec, key, fresh);
        DP_ASSERT(t->fill(t->of, i, fresh, &stored, &err) == DP_OK);
        if (stored)
            DP_ASSERT(dp_row_format(fresh) == DP_ROW_FORMAT && dp_row_lsn(fresh) == 0);
    }
    DP_ASSERT(t->unchanged(t->of, &err) == DP_OK);
}

static void try_model(const char *text, const struct dp_tensor_set *set)
{
    const struct dp_optimizer_spec adam = dp_optimizer_defaults(DP_OPT_ADAM);
    struct dp_import_tables tables;
    struct dp_model model;
    struct dp_error err = {0};
    for (size_t i = 0; i < set->count; i++)
        set->one[i].taken = false;
    DP_ASSERT(dp_model_open(text, &model, &err) == DP_OK);
    dp_graph_set_optimizer(model.graph, &adam, 1);
    if (dp_import_tables_make(model.graph, set, &tables, &err) != DP_OK)
        DP_ASSERT(err.text[0] != '\0');
    else
        for (uint32_t i = 0; i < tables.count; i++)
            fill_rows(&tables.table[i]);
    dp_import_tables_clear(&tables);
    dp_model_close(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct dp_tensor_set set;
    struct dp_error err = {0};
    char path[32];
    int fd = memfd_create("tensors", MFD_CLOEXEC);
    DP_ASSERT(fd >= 0 && dp_full_write(fd, bytes, size));
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum dp_status st = dp_tensor_read_open(path, &set, &err);
    (void)close(fd);
    if (st != DP_OK) {
        DP_ASSERT(err.text[0] != '\0' && !set.one && !set.header);
        return 0;
    }
    check_places(&set, size);
    try_model("mf:2", &set);
    try_model("mlp:3-2", &set);
    dp_tensor_set_close(&set);
    return 0;
}

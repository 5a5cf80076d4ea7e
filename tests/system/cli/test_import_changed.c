/* import: a file that is changed while it is read is refused, and nothing is made. Method: a directory of
 * .npy files with slots, one file for each tensor of each table; as the table's last row is filled, one of
 * them is changed. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "common/env/directory.h"
#include "deploy/checkpoint/import_tables.h"

#include "common/base/bytes.h"
#include "common/model/row.h"
#include "common/tensors/npy_read.h"
#include "common/tensors/tensor_file.h"
#include "server/checkpoint/listing.h"
#include "tests/lib/test.h"
#include "worker/compute/models/model.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEYS  3u
#define SLOTS 2u /* Adam's */

static char top[128], from[160], to[160];
static struct dp_tensors tensors;

static void add(const char *table, const char *what, enum dp_tensor_type type, uint64_t rows, uint64_t width)
{
    struct dp_tensor tensor = {.type = type, .rows = rows, .width = width};
    struct dp_error err = {0};
    size_t index;
    (void)snprintf(tensor.name, sizeof tensor.name, "%s%s%s", table, what[0] ? "." : "", what);
    assert_int_equal(dp_tensors_add(&tensors, &tensor, &index, &err), DP_OK);
}

static void add_table(const struct dp_parameter *p)
{
    const char *table = p->table.name;
    uint64_t rows = p->sparse ? KEYS : p->rows, floats = rows * p->width, dim = p->table.dim,
             blocks = (floats + dim - 1) / dim;
    if (p->sparse)
        add(table, "keys", DP_TENSOR_I64, rows, 0);
    add(table, "", DP_TENSOR_F32, rows, p->width);
    add(table, "step", DP_TENSOR_I64, blocks, 0);
    for (uint32_t s = 0; s < SLOTS; s++)
        add(table, dp_row_slot_name(&p->table.optimizer, s), DP_TENSOR_F32, rows, p->width);
    if (blocks * dim > floats)
        add(table, "padding", DP_TENSOR_F32, SLOTS + 1, blocks * dim - floats);
}

static void write_files(const struct dp_graph *graph)
{
    struct dp_tensor_file files;
    struct dp_error err = {0};
    char keys[8 * KEYS];
    for (uint32_t i = 0; i < KEYS; i++)
        dp_store_u64le(keys + (size_t)8 * i, i + 1);
    for (int i = 0; i < dp_graph_parameters(graph); i++)
        add_table(dp_graph_parameter(graph, i));
    assert_int_equal(dp_npy_files_open(from, &tensors, &files, &err), DP_OK);
    for (size_t i = 0; i < tensors.count; i++)
        if (strstr(tensors.one[i].name, ".keys"))
            assert_int_equal(dp_tensor_file_put(&files, i, 0, keys, KEYS, &err), DP_OK);
    assert_int_equal(dp_tensor_file_commit(&files, &err), DP_OK);
}

/* ---- one import */

static enum dp_status (*fill)(const void *of, uint64_t index, void *row, bool *stored, struct dp_error *err);
static const void *touched_of; /* the table at whose last row the file is changed */
static uint64_t rows_left;
static char touched[400];

static enum dp_status fill_and_touch(const void *of, uint64_t index, void *row, bool *stored,
                                     struct dp_error *err)
{
    static const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1, .tv_nsec = 1}};
    if (of == touched_of && --rows_left == 0)
        assert_int_equal(utimensat(AT_FDCWD, touched, times, 0), 0);
    return fill(of, index, row, stored, err);
}

/* file: a tensor's name; NULL: none is changed. */
static enum dp_status import(const struct dp_graph *graph, uint32_t table, const char *file,
                             struct dp_error *err)
{
    struct dp_tensor_set set;
    struct dp_import_tables tables;
    struct dp_imported made;
    assert_int_equal(dp_npy_read_open(from, &set, err), DP_OK);
    if (dp_import_tables_make(graph, &set, &tables, err) != DP_OK)
        fail_msg("%s", err->text);
    assert_true(tables.slots);
    fill = tables.table[0].fill;
    touched_of = file ? tables.table[table].of : NULL;
    rows_left = tables.table[table].rows;
    (void)snprintf(touched, sizeof touched, "%s/%s.npy", from, file ? file : "");
    for (uint32_t i = 0; i < tables.count; i++)
        tables.table[i].fill = fill_and_touch;
    const struct dp_import_options o = {.directory = to,
                                        .table = tables.table,
                                        .tables = tables.count,
                                        .cluster = 5,
                                        .cluster_name = "c",
                                        .cluster_file = "",
                                        .cluster_file_bytes = 0};
    enum dp_status st = dp_import(&o, &made, err);
    dp_import_tables_clear(&tables);
    dp_tensor_set_close(&set);
    return st;
}

static void expect_checkpoints(size_t count)
{
    struct dp_checkpoint_list list = {0};
    struct dp_error err = {0};
    assert_int_equal(dp_checkpoint_list_read(to, &list, &err), DP_OK);
    assert_int_equal(list.count, count);
    dp_checkpoint_list_clear(&list);
}

static void try_files(const char *text, bool padded)
{
    const struct dp_optimizer_spec adam = dp_optimizer_defaults(DP_OPT_ADAM);
    struct dp_model model;
    struct dp_error err = {0};
    uint32_t files = 0, paddings = 0;
    (void)snprintf(top, sizeof top, "%.90s/dp_import_XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(top));
    (void)snprintf(from, sizeof from, "%s/from", top);
    (void)snprintf(to, sizeof to, "%s/to", top);
    assert_int_equal(mkdir(from, 0777), 0);
    assert_int_equal(dp_model_open(text, &model, &err), DP_OK);
    dp_graph_set_optimizer(model.graph, &adam, 1);
    write_files(model.graph);
    for (uint32_t t = 0; t < (uint32_t)dp_graph_parameters(model.graph); t++) {
        const char *table = dp_graph_parameter(model.graph, (int)t)->table.name;
        size_t len = strlen(table);
        for (size_t i = 0; i < tensors.count; i++) {
            const char *name = tensors.one[i].name;
            /* Keys are read once, before the rows. */
            if (strncmp(name, table, len) != 0 || (name[len] && name[len] != '.') || strstr(name, ".keys"))
                continue;
            enum dp_status st = import(model.graph, t, name, &err);
            if (st != DP_DATA || !strstr(err.text, name) || !strstr(err.text, "was changed"))
                fail_msg("%s changed: %s: %s", name, dp_status_name((int)st), err.text);
            expect_checkpoints(0);
            files++;
            paddings += strstr(name, ".padding") != NULL;
        }
    }
    assert_true(files >= 8 && (paddings > 0) == padded);
    assert_int_equal(import(model.graph, 0, NULL, &err), DP_OK);
    expect_checkpoints(1);
    dp_tensors_clear(&tensors);
    dp_model_close(&model);
    assert_int_equal(dp_directory_remove(top, true, 0, NULL), DP_OK);
}

static void sparse_and_dense_tables(void **state)
{
    try_files("logistic", false);
}

static void dense_tables_with_padding(void **state)
{
    try_files("mlp:10-30-7", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_and_dense_tables),
        cmocka_unit_test(dense_tables_with_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

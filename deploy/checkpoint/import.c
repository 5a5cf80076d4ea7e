/* import: a checkpoint made of a file of tensors, or of a directory of .npy files.
 *     --like: cluster file, model -> tensors checked against it -> checkpoint (server/import)
 * Why --like   The file says neither what was trained nor how: a file of PyTorch's has no metadata, and no file of tensors has data,
 *              label, batch size or optimizer that training needs. A run or a checkpoint has all of it, in one place. */
#include "common/env/file_bytes.h"
#include "deploy/checkpoint/checkpoint_commands.h"
#include "deploy/checkpoint/import_tables.h"
#include "deploy/cli/amounts.h"
#include "deploy/cli/options.h"
#include "deploy/run/restored.h"

#include "common/base/deadline.h"
#include "common/model/optimizer_kinds.h"
#include "common/tensors/npy_read.h"
#include "common/tensors/tensor_read.h"
#include "deploy/cli/path.h"
#include "worker/compute/models/model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct dp_option options[] = {
    {"--from", "FILE", NULL,
     "file of tensors (safetensors; required), as 'downpour export', 'downpour-allreduce --weights' or "
     "PyTorch writes it, or a directory of .npy files, as 'downpour export' or NumPy writes them: with "
     "every layer and table of the model and no others"},
    {"--to", "DIR", NULL, "directory for checkpoints (required); it is made if missing"},
    {"--like", "DIR", NULL,
     "source of model, optimizer, seed and other settings (required): the directory of a run, a "
     "checkpoint, or a cluster file; it is only read"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "import",
    .usage = "--from FILE --to DIR --like DIR",
    .summary =
        "Makes a checkpoint DIR/checkpoint-N of a file of tensors, or of .npy files. Layers: TABLE, F32, in "
        "the shape that 'downpour export'\ngives them; tables with keys: TABLE.keys (I64 or U64) and "
        "TABLE.weights (F32 [keys, width]). In a directory:\nTABLE.npy and TABLE.keys.npy, little-endian, C "
        "order. With slots (export --slots) the rows equal the exported\nones, bit for bit. Without slots "
        "the optimizer starts from zero. Then: downpour run --from DIR, or restore.",
    .options = options,
    .count = OPTIONS,
};

struct import_asked {
    const char *from;
    char to[DP_PATH_MAX + 1];
    char *text; /* of the cluster file */
    size_t text_bytes;
    char *side[DP_SIDE_FILES]; /* side files of the run or checkpoint; NULL: it has none */
    size_t side_bytes[DP_SIDE_FILES];
    struct dp_cluster *cluster;
    struct dp_model model;
    struct dp_tensor_set set;
    struct dp_import_tables tables;
};

static void read_if_there(const char *path, char **bytes, size_t *size)
{
    struct dp_error none;
    if (dp_file_bytes_read(path, bytes, size, &none) != DP_OK) {
        free(*bytes);
        *bytes = NULL;
    }
}

/* Without them an export of the checkpoint has no names, as the file of tensors has none. */
static void read_names(struct import_asked *a, const struct dp_restored *checkpoint)
{
    for (int i = 0; i < DP_SIDE_FILES; i++) {
        struct dp_checkpoint_path path;
        const char *name = checkpoint->manifest.side[i].name,
                   *next_to = dp_cluster_side(&a->cluster->data, i);
        if (!name && next_to[0])
            read_if_there(next_to, &a->side[i], &a->side_bytes[i]);
        else if (name && dp_checkpoint_path(&path, NULL, "%s/%s", checkpoint->checkpoint.text, name) == DP_OK)
            read_if_there(path.text, &a->side[i], &a->side_bytes[i]);
    }
}

/* The path of the cluster file. checkpoint: {0}, or the checkpoint that has the file. */
static enum dp_status find_like(const char *like, struct dp_restored *checkpoint,
                                struct dp_checkpoint_path *path, struct dp_error *err)
{
    struct stat is;
    if (stat(like, &is) == 0 && S_ISREG(is.st_mode))
        return dp_checkpoint_path(path, err, "%s", like);
    if (!dp_restored_is_checkpoint(like)) {
        enum dp_status st = dp_checkpoint_path(path, err, "%s/cluster.conf", like);
        return st == DP_OK && access(path->text, R_OK) != 0
                   ? dp_fail(err, DP_NOT_FOUND,
                             "--like: '%.200s' is no run's directory, no checkpoint and no cluster file",
                             like)
                   : st;
    }
    enum dp_status st = dp_restored_find(like, checkpoint, err);
    if (st == DP_OK && !checkpoint->manifest.cluster_file.name)
        st = dp_fail(err, DP_NOT_FOUND, "--like: the checkpoint %s has no cluster file",
                     checkpoint->checkpoint.text);
    return st == DP_OK ? dp_checkpoint_path(path, err, "%s/%s", checkpoint->checkpoint.text,
                                            checkpoint->manifest.cluster_file.name)
                       : st;
}

static enum dp_status read_like(struct import_asked *a, const char *like, struct dp_error *err)
{
    struct dp_checkpoint_path path;
    struct dp_restored checkpoint = {0};
    enum dp_status st = find_like(like, &checkpoint, &path, err);
    if (st == DP_OK)
        st = dp_file_bytes_read(path.text, &a->text, &a->text_bytes, err);
    if (st == DP_OK)
        st = dp_cluster_read(path.text, &a->cluster, err);
    if (st == DP_OK)
        read_names(a, &checkpoint);
    dp_restored_clear(&checkpoint);
    if (st == DP_OK)
        st = dp_model_open(a->cluster->model, &a->model, err);
    if (st == DP_OK)
        dp_graph_set_optimizer(a->model.graph, &a->cluster->training.optimizer, a->cluster->training.seed);
    return st;
}

static enum dp_status take_flags(struct import_asked *a, const char *const *values, const char **like,
                                 struct dp_error *err)
{
    static const char *const needed[] = {"--from", "--to", "--like"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!dp_options_value(&command, values, needed[i]))
            return dp_fail(err, DP_ARGUMENT, "%s is required; 'downpour import --help' lists all flags",
                           needed[i]);
    a->from = dp_options_value(&command, values, "--from");
    *like = dp_options_value(&command, values, "--like");
    return dp_path_absolute(dp_options_value(&command, values, "--to"), a->to, err);
}

static enum dp_status import(struct import_asked *a, struct dp_error *err)
{
    uint64_t began_ms = dp_now_ms();
    struct dp_imported made;
    char bytes[32];
    struct stat is;
    bool directory = stat(a->from, &is) == 0 && S_ISDIR(is.st_mode);
    enum dp_status st = (directory ? dp_npy_read_open : dp_tensor_read_open)(a->from, &a->set, err);
    if (st == DP_OK) {
        st = dp_import_tables_make(a->model.graph, &a->set, &a->tables, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "'%.200s'", a->from);
    }
    struct dp_import_options o = {
        .directory = a->to,
        .table = a->tables.table,
        .tables = a->tables.count,
        .cluster = a->cluster->id,
        .cluster_name = a->cluster->name,
        .cluster_file = a->text,
        .cluster_file_bytes = a->text_bytes,
    };
    for (int i = 0; i < DP_SIDE_FILES; i++) {
        o.side[i] = a->side[i];
        o.side_bytes[i] = a->side_bytes[i];
    }
    if (st == DP_OK)
        st = dp_import(&o, &made, err);
    if (st != DP_OK)
        return st;
    printf("checkpoint %" PRIu32 " of %s: %" PRIu32 " tables, %" PRIu64
           " rows, %s, %s, in %.1f s  %s/checkpoint-%06" PRIu32 "\n",
           made.number, a->cluster->model, a->tables.count, made.rows,
           a->tables.slots ? "the optimizer's slots included" : "the optimizer starts from zero",
           dp_amount_bytes(made.bytes, bytes), (double)(dp_now_ms() - began_ms) / 1000, a->to, made.number);
    const struct dp_optimizer_traits *traits = dp_optimizer_traits(&a->cluster->training.optimizer);
    if (!a->tables.slots && traits->weights_in_slots)
        fprintf(
            stderr,
            "downpour: import: %s makes its weights from its slots: without them a training begins with none "
            "of these weights; predictions have them\n",
            traits->name);
    return DP_OK;
}

int dp_deploy_import(int argc, char *const *argv)
{
    const char *values[OPTIONS], *like = NULL;
    struct dp_error err = {0};
    struct import_asked a = {0};
    bool help;
    enum dp_status st = dp_options_parse(&command, argc, argv, values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st == DP_OK)
        st = take_flags(&a, values, &like, &err);
    if (st == DP_OK)
        st = read_like(&a, like, &err);
    if (st == DP_OK)
        st = import(&a, &err);
    dp_import_tables_clear(&a.tables);
    dp_tensor_set_close(&a.set);
    dp_model_close(&a.model);
    dp_cluster_free(&a.cluster);
    free(a.text);
    for (int i = 0; i < DP_SIDE_FILES; i++)
        free(a.side[i]);
    return dp_options_end(&command, st, &err);
}

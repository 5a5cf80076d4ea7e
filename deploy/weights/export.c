/* export: the weights of a run as files for other programs, with the names that keys had.
 *     weight_tables.h -> one table into a file | all into a directory, the manifest last | all into one file of tensors
 * Why       An earlier manifest is removed first, and the new one is written last. So a directory with a
 *           manifest is a complete export. */
#include "deploy/cli/file_copy.h"
#include "deploy/cli/options.h"
#include "deploy/weights/export_file.h"
#include "deploy/weights/export_tensors.h"
#include "deploy/weights/weights_commands.h"

#include "common/env/atomic_file.h"
#include "common/env/json_file.h"
#include "common/model/row.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST "manifest.json"

static const struct dp_option options[] = {
    {"--from", "DIR", NULL,
     "source (required): a run's directory (its --dir), a checkpoint (DIR/checkpoint-N), or a directory of "
     "checkpoints: its last one"},
    {"--cluster", "FILE", NULL,
     "source, instead of --from: a cluster file with 'checkpoint'. Its servers make a checkpoint, which is "
     "exported; if they do not answer, the last one"},
    {"--to", "FILE", NULL,
     "output (required): a file FILE.npy, FILE.txt or FILE.safetensors, - for text on standard output, or "
     "a directory for all tables (DIR/, if its name has another ending)"},
    {"--table", "NAME", NULL,
     "table to write, or all; default: all into a directory or FILE.safetensors; into FILE.txt the weights "
     "of logistic or the word vectors of skipgram"},
    {"--format", "FORMAT", NULL,
     "npy, text or safetensors; default: from the ending of FILE, npy in a directory"},
    {"--slots", NULL, NULL,
     "safetensors, and npy in a directory: add the optimizer's slots and the rows' step counts"},
    {"--no-names", NULL, NULL, "write keys as numbers if the names of the run are missing"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "export",
    .usage = "--from DIR | --cluster FILE --to FILE [--table NAME] [--format npy|text|safetensors] [--slots]",
    .summary =
        "Writes the weights of a run, whose directory may have been moved, copied or made read-only, or of a "
        "checkpoint (with names\nwhere it was made beside the run's directory).\nnpy: a matrix of f32 for "
        "NumPy; next to M.npy M.names.tsv has the name, key and further names of each row; in a directory "
        "TABLE.keys.npy\nhas the keys alone, and with --slots there is one "
        "file for each of the arrays below ('downpour import' takes it back).\ntext: lines 'NAME WEIGHT "
        "WEIGHT ...'; for skipgram in word2vec's form, "
        "with 'ROWS WIDTH' first. A blank in a name is written as \\x20.\nsafetensors: all tables in one "
        "file: layers by name; of a table with keys TABLE.keys (ascending, of rows that\nwere pushed) and "
        "TABLE.weights; with --slots TABLE.step and what the optimizer keeps (adam: TABLE.m, TABLE.v).\nRows "
        "are in the order of "
        "the names (words by frequency, ids "
        "ascending, features as in the file), then\nkeys without a name. A word, user or item that "
        "was never pushed has its initial weights. Dense layers have\nthe shape [inputs, outputs].",
    .options = options,
    .count = OPTIONS,
};

struct export
{
    const char *values[OPTIONS];
    struct dp_weight_tables run;
    char out[DP_PATH_MAX + 1];
    const char *table; /* NULL: what the model's text is */
    enum dp_export_format format;
    bool all, tensors; /* tensors: one file of them */
    bool directory;    /* all, into a directory */
    json_t *tables;    /* of the manifest */
};

static const char *flag(const struct export *e, const char *name)
{
    return dp_options_value(&command, e->values, name);
}

static bool ends(const char *text, const char *ending)
{
    size_t len = strlen(text), end = strlen(ending);
    return len > end && strcmp(text + len - end, ending) == 0;
}

/* ---- what is asked */

/* ".csv" of "w.csv"; NULL: a name without one, or that of a directory: it is there, or ends with a slash. */
static const char *unknown_ending(const char *path)
{
    static const char *const known[] = {".npy", ".txt", ".tsv", ".safetensors"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    struct stat is;
    if (!dot || dot == name || !isalpha((unsigned char)dot[1]) ||
        (stat(path, &is) == 0 && S_ISDIR(is.st_mode)))
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(dot, known[i]) == 0)
            return NULL;
    return dot;
}

static enum dp_status settle_format(struct export *e, struct dp_error *err)
{
    const char *format = flag(e, "--format"), *out = flag(e, "--to");
    bool text = ends(out, ".txt") || ends(out, ".tsv") || strcmp(out, "-") == 0;
    if (format && strcmp(format, "npy") != 0 && strcmp(format, "text") != 0 &&
        strcmp(format, "safetensors") != 0)
        return dp_fail(err, DP_ARGUMENT, "--format: '%.32s' is unknown: use npy, text or safetensors",
                       format);
    e->tensors = format ? strcmp(format, "safetensors") == 0 : ends(out, ".safetensors");
    if (e->tensors && strcmp(out, "-") == 0)
        return dp_fail(err, DP_ARGUMENT,
                       "--to -: standard output takes text only; name a file for --format safetensors");
    if (format && strcmp(format, "npy") == 0 && strcmp(out, "-") == 0)
        return dp_fail(err, DP_ARGUMENT,
                       "--to -: standard output takes text only; name a file for --format npy");
    e->format = (format ? strcmp(format, "text") == 0 : text) ? DP_EXPORT_TEXT : DP_EXPORT_NPY;
    e->all = !flag(e, "--table") || strcmp(flag(e, "--table"), "all") == 0;
    e->directory = e->all && !e->tensors && (flag(e, "--table") || (!text && !ends(out, ".npy")));
    e->table = e->all ? NULL : flag(e, "--table");
    const char *unknown = e->directory || !format ? unknown_ending(out) : NULL;
    if (unknown)
        return dp_fail(
            err, DP_ARGUMENT,
            "--to: export writes no '%.32s': name FILE.npy, FILE.txt, FILE.tsv or FILE.safetensors, or give "
            "one table's --format; for a directory of all tables end its name with a slash: %.200s/",
            unknown, out);
    if (flag(e, "--slots") && !e->tensors && !(e->directory && e->format == DP_EXPORT_NPY))
        return dp_fail(err, DP_ARGUMENT,
                       "--slots needs a file of tensors, or a directory of .npy files: name --to "
                       "FILE.safetensors, or --to DIR for all tables");
    return DP_OK;
}

static enum dp_status parse(struct export *e, int argc, char *const *argv, bool *help, struct dp_error *err)
{
    enum dp_status st = dp_options_parse(&command, argc, argv, e->values, help, err);
    if (st != DP_OK || *help)
        return st;
    if (flag(e, "--from") && flag(e, "--cluster"))
        return dp_fail(err, DP_ARGUMENT, "give either --from DIR or --cluster FILE");
    bool has_source = flag(e, "--from") || flag(e, "--cluster");
    if (!has_source || !flag(e, "--to"))
        return dp_fail(err, DP_ARGUMENT, "%s is required; 'downpour export --help' lists all flags",
                       has_source ? "--to FILE" : "--from DIR, the directory of a run or a checkpoint,");
    st = settle_format(e, err);
    if (st == DP_OK && strcmp(flag(e, "--to"), "-") != 0)
        st = dp_path_absolute(flag(e, "--to"), e->out, err);
    return st;
}

static void remove_file(const struct export *e, const json_t *name)
{
    char path[DP_PATH_MAX + 1];
    const char *text = json_string_value(name);
    if (text && !strchr(text, '/') && snprintf(path, sizeof path, "%s/%s", e->out, text) <= DP_PATH_MAX)
        (void)unlink(path); /* what stays is written again, or told by an import */
}

/* The earlier export's files, so that none of them is taken for one of this export. */
static void remove_files(const struct export *e, const json_t *manifest)
{
    const json_t *table, *file;
    size_t i, k;
    json_array_foreach(json_object_get(manifest, "tables"), i, table)
    {
        static const char *const names[] = {"file", "names", "keys"};
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
            remove_file(e, json_object_get(table, names[n]));
        json_array_foreach(json_object_get(table, "slots"), k, file) remove_file(e, file);
    }
    remove_file(e, json_object_get(manifest, "columns"));
}

/* Whether the directory holds nothing, or an earlier export, which goes. */
static enum dp_status make_place(struct export *e, struct dp_error *err)
{
    char manifest[DP_PATH_MAX + 32];
    size_t others = 0;
    (void)snprintf(manifest, sizeof manifest, "%s/" MANIFEST, e->out);
    if (mkdir(e->out, 0777) != 0 && errno != EEXIST)
        return dp_fail(err, DP_IO, "--to: cannot make the directory '%s': %s", e->out, strerror(errno));
    DIR *dir = opendir(e->out);
    if (!dir)
        return dp_fail(err, DP_IO, "--to: '%s' must be a directory: %s", e->out, strerror(errno));
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        others += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(dir);
    if (others > 0 && access(manifest, F_OK) != 0)
        return dp_fail(err, DP_ARGUMENT,
                       "--to: the directory '%s' has other files: name an empty or a new directory, or a "
                       "file with --table",
                       e->out);
    json_t *earlier = json_load_file(manifest, 0, NULL);
    if (unlink(manifest) == 0)
        remove_files(e, earlier);
    else if (errno != ENOENT) {
        json_decref(earlier);
        return dp_fail(err, DP_IO, "cannot remove '%s': %s", manifest, strerror(errno));
    }
    json_decref(earlier);
    return DP_OK;
}

/* What a run needs is not overwritten. */
static enum dp_status check_place(const struct export *e, struct dp_error *err)
{
    char parent[DP_PATH_MAX + 1], store[DP_PATH_MAX + 1];
    const struct dp_cluster *cluster = e->run.served.cluster;
    const char *const needed[] = {e->run.served.folder.conf, cluster->data.train, cluster->data.test,
                                  cluster->data.columns, cluster->data.names};
    for (size_t i = 0; e->out[0] && i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i][0] && dp_path_same(e->out, needed[i]))
            return dp_fail(err, DP_ARGUMENT, "--to: '%s' is a file of the run: name another", e->out);
    enum dp_status st = dp_folder_path(&e->run.served.folder, store, err, "store");
    (void)snprintf(parent, sizeof parent, "%s", e->out);
    for (char *slash = strrchr(parent, '/'); st == DP_OK && slash; slash = strrchr(parent, '/')) {
        if (dp_path_same(parent, store))
            return dp_fail(err, DP_ARGUMENT, "--to: '%s' lies in the run's store: name another place",
                           e->out);
        *slash = '\0';
    }
    return st;
}

/* ---- what is written */

/* Beside `path`, without its ending; in a directory columns.csv. */
static enum dp_status columns_path(const struct export *e, char *out, struct dp_error *err)
{
    size_t len = strlen(e->out);
    const char *name = e->directory ? "/columns.csv" : ".columns.csv";
    len -= !e->directory && (ends(e->out, ".txt") || ends(e->out, ".tsv")) ? 4 : 0;
    return snprintf(out, DP_PATH_MAX + 1, "%.*s%s", (int)len, e->out, name) <= DP_PATH_MAX
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT, "--to: the path is too long");
}

/* What the columns of a CSV file were, with the means and deviations that numbers were standardized by; "": it was none. */
static enum dp_status copy_columns(const struct export *e, char *out, struct dp_error *err)
{
    const struct dp_cluster_data *data = &e->run.served.cluster->data;
    struct dp_atomic_file file;
    out[0] = '\0';
    bool of_checkpoint = e->run.served.restored[0] && !data->columns[0];
    if (!data->label[0] || (!data->columns[0] && !of_checkpoint))
        return DP_OK;
    if (of_checkpoint || access(data->columns, F_OK) != 0) {
        fprintf(stderr,
                "downpour: '%s' %s: the columns of the training file, and the means and deviations "
                "that standardized them, are not written\n",
                of_checkpoint ? flag(e, "--from") : data->columns,
                of_checkpoint ? "has no columns" : "is missing");
        return DP_OK;
    }
    if (!e->out[0]) {
        (void)snprintf(out, DP_PATH_MAX + 1, "%s", data->columns);
        return DP_OK;
    }
    enum dp_status st = columns_path(e, out, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(out, &file, err);
    if (st != DP_OK)
        return st;
    st = dp_file_copy(data->columns, false, file.stream, out, err);
    if (st == DP_OK)
        return dp_atomic_file_commit(&file, err);
    dp_atomic_file_drop(&file);
    return st;
}

static enum dp_status export_one(struct export *e, const struct dp_parameter *parameter, const char *path,
                                 struct dp_exported *out, struct dp_error *err)
{
    bool words = strncmp(e->run.served.cluster->model, "skipgram", 8) == 0;
    return dp_export_file(&e->run, parameter, e->format, words, path, out, err);
}

static json_t *slot_files(const struct dp_parameter *parameter)
{
    const struct dp_table_spec *table = &parameter->table;
    json_t *files = json_pack("[o]", json_sprintf("%s.step.npy", table->name));
    for (uint32_t s = 0; s < dp_row_slots(&table->optimizer); s++)
        (void)json_array_append_new(
            files, json_sprintf("%s.%s.npy", table->name, dp_row_slot_name(&table->optimizer, s)));
    if (!parameter->sparse && (uint64_t)parameter->rows * parameter->width % table->dim != 0)
        (void)json_array_append_new(files, json_sprintf("%s.padding.npy", table->name));
    return files;
}

static enum dp_status note(struct export *e, const struct dp_parameter *parameter, const char *file,
                           const struct dp_exported *exported, struct dp_error *err)
{
    char names[DP_PATH_MAX + 1] = "";
    enum dp_status st = exported->named ? dp_export_names_path(file, names, err) : DP_OK;
    if (st != DP_OK)
        return st;
    json_t *one = json_pack("{s:s, s:s, s:s, s:[I,I], s:I}", "table", parameter->table.name, "file", file,
                            "kind", parameter->sparse ? "rows" : "dense", "shape", (json_int_t)exported->rows,
                            (json_int_t)exported->width, "never_pushed", (json_int_t)exported->initial);
    if (names[0])
        (void)json_object_set_new(one, "names", json_string(names));
    if (parameter->sparse && e->format == DP_EXPORT_NPY)
        (void)json_object_set_new(one, "keys", json_sprintf("%s.keys.npy", parameter->table.name));
    if (flag(e, "--slots"))
        (void)json_object_set_new(one, "slots", slot_files(parameter));
    return json_array_append_new(e->tables, one) == 0 ? DP_OK
                                                      : dp_fail(err, DP_NOMEM, "no memory for the manifest");
}

static enum dp_status write_manifest(const struct export *e, const char *columns, struct dp_error *err)
{
    char path[DP_PATH_MAX + 32];
    const struct dp_cluster *cluster = e->run.served.cluster;
    (void)snprintf(path, sizeof path, "%s/" MANIFEST, e->out);
    json_t *all =
        json_pack("{s:s, s:I, s:s, s:O}", "model", cluster->model, "run", (json_int_t)cluster->training.run,
                  "format", e->format == DP_EXPORT_TEXT ? "text" : "npy", "tables", e->tables);
    if (columns[0])
        (void)json_object_set_new(all, "columns", json_string(strrchr(columns, '/') + 1));
    const struct dp_label_scale *scale = &e->run.label_scale;
    if (scale->deviation > 0)
        (void)json_object_set_new(all, "label",
                                  json_pack("{s:f, s:f, s:s}", "mean", scale->mean, "deviation",
                                            scale->deviation, "rule", "label = mean + deviation * output"));
    return dp_json_file_write(path, &all, 17, err);
}

static enum dp_status export_texts(struct export *e, struct dp_exported *out, struct dp_error *err)
{
    const struct dp_graph *graph = e->run.model.graph;
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(graph); p++) {
        char path[DP_PATH_MAX + 1];
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        if (snprintf(path, sizeof path, "%s/%s.txt", e->out, parameter->table.name) > DP_PATH_MAX)
            return dp_fail(err, DP_ARGUMENT, "--to: the path is too long");
        st = export_one(e, parameter, path, &out[p], err);
    }
    return st;
}

static enum dp_status export_all(struct export *e, struct dp_error *err)
{
    const struct dp_graph *graph = e->run.model.graph;
    size_t parameters = (size_t)dp_graph_parameters(graph);
    struct dp_exported *exported = calloc(parameters + 1, sizeof *exported);
    bool text = e->format == DP_EXPORT_TEXT;
    enum dp_status st =
        exported ? make_place(e, err) : dp_fail(err, DP_NOMEM, "no memory for %zu tables", parameters);
    e->tables = json_array();
    if (st == DP_OK)
        st = text ? export_texts(e, exported, err)
                  : dp_export_npy(&e->run, flag(e, "--slots") != NULL, e->out, exported, err);
    for (size_t p = 0; st == DP_OK && p < parameters; p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, (int)p);
        char file[DP_TABLE_NAME_MAX + 8];
        (void)snprintf(file, sizeof file, "%s.%s", parameter->table.name, text ? "txt" : "npy");
        st = note(e, parameter, file, &exported[p], err);
        if (st == DP_OK)
            printf("%-24s [%" PRIu64 ", %" PRIu64 "]\n", file, exported[p].rows, exported[p].width);
    }
    free(exported);
    char columns[DP_PATH_MAX + 1] = "";
    if (st == DP_OK)
        st = copy_columns(e, columns, err);
    return st == DP_OK ? write_manifest(e, columns, err) : st;
}

static enum dp_status export_logistic(struct export *e, FILE *stream, struct dp_error *err)
{
    const struct dp_parameter *weights = NULL, *bias = NULL;
    const struct dp_cluster_data *data = &e->run.served.cluster->data;
    enum dp_status st = dp_weight_tables_find(&e->run, "logistic.w", &weights, err);
    if (st == DP_OK)
        st = dp_weight_tables_find(&e->run, "logistic.b", &bias, err);
    char columns[DP_PATH_MAX + 1] = "";
    if (st == DP_OK)
        st = copy_columns(e, columns, err);
    (void)fputs("# log odds of 1 = bias + sum of weight * value; a category's value is 1\n", stream);
    if (columns[0] && data->standardize)
        (void)fprintf(stream,
                      "# each number is standardized first, (value - mean) / deviation, by the means and "
                      "deviations in %s\n",
                      e->out[0] ? strrchr(columns, '/') + 1 : columns);
    if (data->normalize)
        (void)fputs("# each example's values are divided by their Euclidean norm first\n", stream);
    if (data->scale != 0 && data->scale != 1)
        (void)fprintf(stream, "# values are multiplied by %.9g first\n", data->scale);
    if (st == DP_OK)
        st = dp_export_lines(&e->run, weights, NULL, stream, err);
    return st == DP_OK ? dp_export_lines(&e->run, bias, "bias", stream, err) : st;
}

/* Of a model without --table, in one file. */
static enum dp_status export_text(struct export *e, const char *path, struct dp_error *err)
{
    const char *model = e->run.served.cluster->model;
    const struct dp_parameter *words = NULL;
    struct dp_exported exported;
    struct dp_atomic_file file;
    if (e->format == DP_EXPORT_TEXT && strcmp(model, "logistic") == 0) {
        enum dp_status st = dp_atomic_file_open(path, &file, err);
        if (st == DP_OK)
            st = export_logistic(e, file.stream, err);
        if (st == DP_OK)
            st = dp_atomic_file_commit(&file, err);
        dp_atomic_file_drop(&file);
        return st;
    }
    if (strncmp(model, "skipgram", 8) != 0)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s has several tables: name one with --table, or a directory for all of them with --to", model);
    enum dp_status st = dp_weight_tables_find(&e->run, "skipgram.word", &words, err);
    return st == DP_OK ? export_one(e, words, path, &exported, err) : st;
}

/* All, or one table, in one file. */
static enum dp_status export_tensors(struct export *e, struct dp_error *err)
{
    const struct dp_parameter *parameter = NULL;
    size_t tensors = 0;
    enum dp_status st = e->table ? dp_weight_tables_find(&e->run, e->table, &parameter, err) : DP_OK;
    if (st == DP_OK)
        st = dp_export_tensors(&e->run, parameter, flag(e, "--slots") != NULL, e->out, &tensors, err);
    if (st == DP_OK)
        printf("%s: %zu tensors\n", e->out, tensors);
    return st;
}

static enum dp_status export(struct export *e, struct dp_error *err) {
    const struct dp_parameter *parameter = NULL; struct dp_exported exported; char scratch[DP_PATH_MAX + 1];
    enum dp_status st = check_place(e, err);
    if (st != DP_OK) return st;
    if (e->directory) return export_all(e, err);
    if (e->tensors) return export_tensors(e, err);
    if (!e->out[0]) st = dp_folder_path(&e->run.served.scratch, scratch, err, "export");
    const char *path = e->out[0] ? e->out : scratch;
    if (st == DP_OK && e->table) st = dp_weight_tables_find(&e->run, e->table, &parameter, err);
    if (st == DP_OK) st = parameter ? export_one(e, parameter, path, &exported, err)
                                    : export_text(e, path, err);
    return st == DP_OK && !e->out[0] ? dp_file_copy(path, true, stdout, "standard output", err) : st;
}

static enum dp_status source_of(struct export *e, char from[DP_PATH_MAX + 1], struct dp_error *err)
{
    if (flag(e, "--cluster"))
        return dp_served_checkpoint(flag(e, "--cluster"), &e->run.served, from, err);
    return snprintf(from, DP_PATH_MAX + 1, "%s", flag(e, "--from")) <= DP_PATH_MAX
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT, "--from: the path has over %d bytes", DP_PATH_MAX);
}

int dp_weight_export(int argc, char *const *argv)
{
    struct export e = {.run.served = {.folder.lock = -1, .scratch.lock = -1}};
    struct dp_error err = {0};
    char from[DP_PATH_MAX + 1];
    bool help = false;
    enum dp_status st = parse(&e, argc, argv, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st == DP_OK)
        st = source_of(&e, from, &err);
    if (st == DP_OK)
        st = dp_weight_tables_open(from, !flag(&e, "--no-names") && !e.tensors, &e.run, &err);
    if (st == DP_OK)
        st = export(&e, &err);
    int code = dp_weight_tables_end(&e.run, st, &err);
    dp_weight_tables_clear(&e.run);
    json_decref(e.tables);
    return code;
}

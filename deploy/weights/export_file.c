#include "deploy/weights/export_file.h"

#include "common/base/bytes.h"
#include "common/env/atomic_file.h"
#include "common/env/limits.h"
#include "common/tensors/tensor_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENDING ".npy"

/* Rows of `width` floats out of a stream of floats. */
struct writer {
    struct dp_weight_tables *run;
    const struct dp_weight_rows *rows;
    FILE *stream;
    bool text;
    bool of_columns;        /* a dense parameter whose rows are columns of the data */
    const char *name;       /* text: of all rows, or NULL */
    uint64_t width, floats; /* floats: in all; what follows is padding */
    uint64_t at;
};

/* What row r of the matrix is called. */
static const char *row_name(const struct writer *w, uint64_t r, char number[24])
{
    if (w->name)
        return w->name;
    if (w->rows->parameter->sparse)
        return dp_weight_rows_name(w->run, w->rows, (size_t)r, number);
    size_t at =
        w->of_columns && w->run->vocab ? dp_vocab_key(w->run->vocab, DP_VOCAB_COLUMN, r) : DP_VOCAB_NONE;
    if (at != DP_VOCAB_NONE)
        return dp_vocab_at(w->run->vocab, at).text;
    (void)snprintf(number, 24, "%" PRIu64, r);
    return number;
}

static void put_text(struct writer *w, const float *values, uint64_t count)
{
    char number[24];
    for (uint64_t i = 0; i < count; i++, w->at++) {
        if (w->at % w->width == 0)
            dp_vocab_print(w->stream, row_name(w, w->at / w->width, number), true);
        (void)fprintf(w->stream, " %.9g%s", (double)values[i], (w->at + 1) % w->width == 0 ? "\n" : "");
    }
}

static void put_bytes(struct writer *w, const float *values, uint64_t count)
{
    unsigned char bytes[4096];
    for (uint64_t i = 0; i < count;) {
        size_t n = 0;
        for (; i < count && n < sizeof bytes; i++, n += 4) {
            uint32_t bits;
            memcpy(&bits, &values[i], sizeof bits);
            dp_store_u32le(bytes + n, bits);
        }
        (void)fwrite(bytes, 1, n, w->stream);
    }
    w->at += count;
}

static enum dp_status put_all(struct writer *w, struct dp_error *err)
{
    const struct dp_weight_rows *rows = w->rows;
    size_t portion = dp_weight_rows_portion(rows), dim = rows->parameter->table.dim;
    float *values = malloc(portion * dim * sizeof *values);
    enum dp_status st = values ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %zu rows", portion);
    for (size_t first = 0; st == DP_OK && first < rows->count; first += portion) {
        size_t count = rows->count - first < portion ? rows->count - first : portion;
        st = dp_weight_rows_pull(w->run, rows, first, count, values, err);
        uint64_t floats = count * dim, left = w->floats - w->at;
        errno = 0;
        if (st == DP_OK)
            (w->text ? put_text : put_bytes)(w, values, floats < left ? floats : left);
        if (st == DP_OK && ferror(w->stream))
            st = dp_fail(err, dp_limits_full(errno) ? DP_FULL : DP_IO,
                         "cannot write the weights of '%s': %s%s", rows->parameter->table.name,
                         strerror(errno), dp_limits_remedy(errno));
    }
    free(values);
    return st;
}

static void writer_init(struct writer *w, struct dp_weight_tables *run, const struct dp_weight_rows *rows,
                        bool text)
{
    const struct dp_parameter *p = rows->parameter;
    uint64_t height = p->sparse ? rows->count : p->rows;
    *w = (struct writer){.run = run,
                         .rows = rows,
                         .text = text,
                         .of_columns = !p->sparse && dp_weight_tables_of_columns(run, p),
                         .width = p->width,
                         .floats = height * p->width};
}

/* ---- names */

enum dp_status dp_export_names_path(const char *path, char *out, struct dp_error *err)
{
    size_t len = strlen(path), end = strlen(ENDING);
    len -= len > end && strcmp(path + len - end, ENDING) == 0 ? end : 0;
    if (snprintf(out, DP_PATH_MAX + 1, "%.*s.names.tsv", (int)len, path) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "--to: the path is too long");
    return DP_OK;
}

static void put_name(const struct writer *w, FILE *stream, uint64_t r)
{
    const struct dp_weight_rows *rows = w->rows;
    char number[24];
    dp_vocab_print(stream, row_name(w, r, number), false);
    (void)fprintf(stream, "\t%" PRIu64, w->rows->parameter->sparse ? rows->keys[r] : r);
    for (size_t at = w->rows->parameter->sparse ? rows->names[r] : DP_VOCAB_NONE; at != DP_VOCAB_NONE;) {
        at = dp_vocab_next(w->run->vocab, at);
        if (at != DP_VOCAB_NONE) {
            (void)fputc('\t', stream);
            dp_vocab_print(stream, dp_vocab_at(w->run->vocab, at).text, false);
        }
    }
    (void)fputc('\n', stream);
}

static enum dp_status write_names(const struct writer *w, const char *path, struct dp_error *err)
{
    char names[DP_PATH_MAX + 1];
    struct dp_atomic_file file;
    enum dp_status st = dp_export_names_path(path, names, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(names, &file, err);
    if (st != DP_OK)
        return st;
    for (uint64_t r = 0; r < w->floats / w->width; r++)
        put_name(w, file.stream, r);
    return dp_atomic_file_commit(&file, err);
}

static struct dp_exported what_is_written(const struct writer *w, bool npy)
{
    const struct dp_parameter *p = w->rows->parameter;
    return (struct dp_exported){.rows = w->floats / w->width,
                                .width = w->width,
                                .initial = p->sparse ? w->rows->count - w->rows->stored : 0,
                                .named = npy && (p->sparse || w->of_columns)};
}

enum dp_status dp_export_names(struct dp_weight_tables *run, const struct dp_weight_rows *rows,
                               const char *path, struct dp_exported *out, struct dp_error *err)
{
    struct writer writer;
    writer_init(&writer, run, rows, false);
    *out = what_is_written(&writer, true);
    return out->named ? write_names(&writer, path, err) : DP_OK;
}

/* ---- files */

enum dp_status dp_export_file(struct dp_weight_tables *run, const struct dp_parameter *parameter,
                              enum dp_export_format format, bool head, const char *path,
                              struct dp_exported *out, struct dp_error *err)
{
    struct dp_weight_rows rows = {0};
    struct writer writer;
    struct dp_atomic_file file = {0};
    char bytes[DP_NPY_HEAD];
    enum dp_status st = dp_weight_rows_list(run, parameter, &rows, err);
    if (st != DP_OK)
        goto done;
    writer_init(&writer, run, &rows, format == DP_EXPORT_TEXT);
    *out = what_is_written(&writer, format == DP_EXPORT_NPY);
    if (out->named) /* before what they belong to */
        st = write_names(&writer, path, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        goto done;
    writer.stream = file.stream;
    dp_npy_head(bytes, DP_TENSOR_F32, out->rows, out->width);
    if (format == DP_EXPORT_NPY)
        (void)fwrite(bytes, 1, sizeof bytes, file.stream);
    else if (head)
        (void)fprintf(file.stream, "%" PRIu64 " %" PRIu64 "\n", out->rows, out->width);
    st = put_all(&writer, err);
    if (st == DP_OK)
        st = dp_atomic_file_commit(&file, err);
    dp_atomic_file_drop(&file);
done:
    dp_weight_rows_clear(&rows);
    return st;
}

enum dp_status dp_export_lines(struct dp_weight_tables *run, const struct dp_parameter *parameter,
                               const char *name, FILE *stream, struct dp_error *err)
{
    struct dp_weight_rows rows = {0};
    struct writer writer;
    enum dp_status st = dp_weight_rows_list(run, parameter, &rows, err);
    if (st == DP_OK) {
        writer_init(&writer, run, &rows, true);
        writer.stream = stream;
        writer.name = name;
        st = put_all(&writer, err);
    }
    dp_weight_rows_clear(&rows);
    return st;
}

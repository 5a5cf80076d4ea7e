/* Export file: a table or a dense parameter as a file that other programs read.
 *     npy   a matrix of little-endian f32, row-major (NumPy's format 1.0); the names of its rows, where they have some, beside it:
 *           FILE.names.tsv (without .npy) has for each row, in their order, its name, its key and further names of that key
 *     text  for each row its name and its weights, blanks between; with a line "ROWS WIDTH" in front where `head` (word2vec's form)
 * Names     In both, control characters and the backslash are written \xHH; in text blanks and a # in front
 *           are, too.
 * Promise   A file is complete or missing. The names are written before their weights. Equal runs give
 *           equal bytes.
 * Failure   DP_IO, DP_FULL naming the file, and the failures of weight_tables.h. */
#ifndef DP_WEIGHTS_EXPORT_FILE_H
#define DP_WEIGHTS_EXPORT_FILE_H

#include "deploy/weights/weight_tables.h"

#include <stdio.h>

enum dp_export_format { DP_EXPORT_NPY, DP_EXPORT_TEXT };

struct dp_exported {
    uint64_t rows, width;
    uint64_t initial; /* rows that were never pushed: their initial values */
    bool named;       /* there is a file of names */
};
enum dp_status dp_export_file(struct dp_weight_tables *run, const struct dp_parameter *parameter,
                              enum dp_export_format format, bool head, const char *path,
                              struct dp_exported *out, struct dp_error *err);
/* Lines "NAME VALUES", into an open stream; name: NULL for those of the rows, else the one of all. */
enum dp_status dp_export_lines(struct dp_weight_tables *run, const struct dp_parameter *parameter,
                               const char *name, FILE *stream, struct dp_error *err);
/* The names alone, if there are any, of what is written at `path` as an npy file. */
enum dp_status dp_export_names(struct dp_weight_tables *run, const struct dp_weight_rows *rows,
                               const char *path, struct dp_exported *out, struct dp_error *err);
/* Where the names of an npy file go. out: DP_PATH_MAX + 1. */
enum dp_status dp_export_names_path(const char *path, char *out, struct dp_error *err);

#endif

/* Schema: how a training read its file: the format, the columns of a CSV file, how its numbers are
 * standardized, and the meaning of its labels. Test files and files to be scored are read by it.
 *     (load of the training file) | parse | read_file -> write, the readers of other files -> clear
 * Format    A CSV of lines that begin with a key: version (3), format, names, kinds (number, category, list,
 *           label, id, weight,
 *           ignored; of pairs user, item, rating, time), trimmed (categories are read without the blanks
 *           around
 *           them: with categories it must be there), means and deviations (of numbers; empty for others;
 *           absent:
 *           not standardized), classes (texts of labels, class 0 first; absent: labels are numbers),
 *           label_base
 *           (absent: 0), missing (texts; absent: none), values and cells (counts; absent: not known),
 *           label_scale (mean, deviation; absent: labels are not standardized), inputs (hash
 *           bits, index base, scale, 1 if examples are normalized, and for words 1 + their rule), end (a
 *           checksum of the lines above it).
 *           Names, kinds, means and deviations have a cell for each column; names and classes are quoted.
 *           Version 2 has neither inputs nor a checksum. Files of older builds, without `trimmed` or of version 1, are
 *           refused.
 * Promise   parse gives the schema that was written, bit for bit.
 * Thread    Any: constant after parse.
 * Memory    It owns its names and texts.
 * Failure   DP_VERSION: an older build wrote it. DP_DATA names the file, the line and the expected form; DP_IO. On failure the schema is cleared. */
#ifndef DP_READ_SCHEMA_H
#define DP_READ_SCHEMA_H

#include "common/base/status.h"
#include "worker/read/csv_record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_LABEL_BASE_MAX ((uint32_t)1 << 24)

/* ID, WEIGHT and IGNORED are no inputs; a prediction names its rows by the ID, and the loss of a training
 * file's example is multiplied by its WEIGHT. */
enum dp_column_kind {
    DP_COLUMN_NUMBER,
    DP_COLUMN_CATEGORY,
    DP_COLUMN_LIST, /* of categories: "a|b|c" */
    DP_COLUMN_LABEL,
    DP_COLUMN_ID,
    DP_COLUMN_USER, /* to DP_COLUMN_TIME: of pairs */
    DP_COLUMN_ITEM,
    DP_COLUMN_RATING,
    DP_COLUMN_TIME,
    DP_COLUMN_WEIGHT,
    DP_COLUMN_IGNORED,
    DP_COLUMN_KINDS
};

struct dp_schema_column {
    char *name;
    enum dp_column_kind kind;
    double mean, deviation; /* of a number, if the schema is standardized; deviation 0: a constant */
    uint64_t values,
        cells; /* different values of a category or list, or of a number whose values are whole and few,
                               in so many cells of the training file; 0: not known */
};

/* Settings that change what an input of the weights means. */
struct dp_schema_inputs {
    bool known; /* not of version 2 */
    uint32_t hash_bits, index_base;
    double scale;
    bool normalize;
    uint32_t words; /* text: 1 + how it is cut into words (enum dp_word_rule); 0: not known, or no words */
};

/* How the labels of a regression are standardized: a model is trained on (label - mean) / deviation. Its
 * metrics and predictions are in the label's unit. deviation 0: labels are as they are, as older builds
 * trained on them. */
struct dp_label_scale {
    double mean, deviation;
};

struct dp_schema {
    char format[16]; /* "csv"; "": not known */
    uint32_t columns;
    struct dp_schema_column *column; /* [columns]; of CSV, one of them the label, and of pairs */
    bool standardized;
    uint32_t classes;
    char **class_text;   /* [classes]; NULL: labels are numbers */
    uint32_t label_base; /* the number of class 0 */
    uint32_t missing;
    /* [missing]: cells that say that there is no number or category, as an empty one does */
    char **missing_text;
    struct dp_schema_inputs inputs;
    struct dp_label_scale label_scale;
};

/* name: of the text, for messages. */
enum dp_status dp_schema_parse(const char *name, const void *text, size_t len, struct dp_schema *out,
                               struct dp_error *err);
enum dp_status dp_schema_read_file(const char *path, struct dp_schema *out, struct dp_error *err);
/* The caller frees *text. */
enum dp_status dp_schema_write(const struct dp_schema *schema, char **text, struct dp_error *err);
enum dp_status dp_schema_add_missing(struct dp_schema *schema, struct dp_cell text, struct dp_error *err);
/* Whether a cell without blanks around it is one of missing_text; or that, or dp_cell_is_missing. */
bool dp_schema_says_missing(const struct dp_schema *schema, struct dp_cell cell);
bool dp_schema_is_missing(const struct dp_schema *schema, struct dp_cell cell);
/* Takes the next category out of what is left of a list's cell, without blanks around it. Texts that are
 * empty or missing are left out. False: there is none. */
bool dp_schema_next_entry(const struct dp_schema *schema, struct dp_cell *rest, struct dp_cell *entry);
/* The meaning of labels, for messages: "'<=50K' is 0, '>50K' is 1 (positive)", or how they are standardized;
 * "" when they are numbers from 0 (or -1). classes: how many there may be; binary: two, the second
 * positive. */
void dp_schema_labels_text(const struct dp_schema *schema, bool binary, uint32_t classes, char *out,
                           size_t size);
/* The scale of labels that are all equal: so small that a model predicts their value, whatever it outputs. */
struct dp_label_scale dp_label_scale_constant(double value);
bool dp_label_scale_is_constant(const struct dp_label_scale *scale);
/* A label's unit in that of a model's output. */
static inline double dp_label_scale_unit(const struct dp_label_scale *scale)
{
    return scale->deviation > 0 ? scale->deviation : 1;
}
static inline double dp_label_scale_restore(const struct dp_label_scale *scale, double output)
{
    return scale->deviation > 0 ? scale->mean + scale->deviation * output : output;
}
void dp_schema_clear(struct dp_schema *schema); /* accepts {0} */
/* Whether files of two formats hold the same data: pairs and lists do. */
bool dp_schema_same_kind(const char *format, const char *other);

#endif

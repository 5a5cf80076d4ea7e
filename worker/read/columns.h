/* Columns: examples of numeric columns, categories and lists of categories, as content and in minibatches,
 * for Criteo's logs and CSV. Private to this room.
 *     begin -> (the caller sets label, values and keys -> row) ... -> end -> shape, fill
 * Promise   A category's key is a function of its column's salt and its text alone, reduced to
 *           options.hash_bits (0: 63); an empty one has a key of its own in each column.
 *           An entry of a list has such a key, and the value 1 / (entries of its cell): their sum is
 *           their mean. A list without entries has an empty one.
 * Memory    The content's arrays: 4 bytes a numeric column, 8 bytes a category, 4 bytes an example; of
 *           lists 8 bytes an entry and 4 a cell.
 * Failure   DP_ARGUMENT when the file does not have the numbers of columns and categories that the model
 *           takes. */
#ifndef DP_READ_COLUMNS_H
#define DP_READ_COLUMNS_H

#include "worker/read/format.h"
#include "worker/read/labels.h"

/* Columns of each kind. */
struct dp_columns_count {
    uint32_t numbers, categories, lists;
};

struct dp_columns {
    const struct dp_dataset_options *options;
    struct dp_content *content;
    struct dp_label_rule rule;
    uint32_t columns, fields, lists; /* of an example */
    const double *mean, *deviation;  /* [columns], or NULL */
    const struct dp_schema *texts;   /* the schema with the texts of labels, or NULL */
    bool weighs;                     /* each row has a weight */
    uint64_t examples_max;
    uint64_t *entries; /* [entries_len] of the lists so far */
    uint64_t entries_len, entries_max;
    /* Of the current row: */
    float *label, *weight;
    float *values;  /* [columns]; NaN: empty */
    uint64_t *keys; /* [fields], by dp_columns_key */
};

/* Checks that the model takes so many numbers, categories and lists. why: for the message, what made the
 * detected categories; or NULL. */
enum dp_status dp_columns_fit(const struct dp_dataset_options *options, const struct dp_columns_count *count,
                              const char *why, struct dp_error *err);
enum dp_status dp_columns_begin(struct dp_columns *out, const struct dp_dataset_options *options,
                                struct dp_content *content, const struct dp_columns_count *count,
                                struct dp_error *err);
/* Makes numbers (x - mean) / deviation, and 0 if the deviation is 0. Both [columns], lent until end. */
void dp_columns_standardize(struct dp_columns *columns, const double *mean, const double *deviation);
enum dp_status dp_columns_row(struct dp_columns *columns, struct dp_error *err);
/* salt: [columns], of the numeric ones. DP_DATA when there are no rows. */
enum dp_status dp_columns_end(struct dp_columns *columns, const uint64_t *salt, struct dp_error *err);
void dp_columns_clear(struct dp_columns *columns); /* after end, too; accepts {0} */

/* Sets a numeric cell of the row: `of` or standardizing is applied, then options.scale; "" is NaN. DP_DATA
 * when the cell is not a number, or the result is not a finite f32. */
enum dp_status dp_columns_number(struct dp_columns *columns, uint32_t column, const char *at, const char *end,
                                 double (*of)(double x), struct dp_error *err);
void dp_columns_category(struct dp_columns *columns, uint32_t field, uint64_t salt, const char *at,
                         size_t len);
/* The lists of a row, in the order of their columns: each of its entries (one, empty, if there is none), then
 * the list's end. */
enum dp_status dp_columns_entry(struct dp_columns *columns, uint64_t salt, const char *at, size_t len,
                                struct dp_error *err);
void dp_columns_list_end(struct dp_columns *columns, uint32_t list);
/* The entries of a list: in all, and at most in a cell. */
struct dp_columns_entries {
    uint64_t all, most;
};
struct dp_columns_entries dp_columns_entries(const struct dp_content *content, uint32_t list);
/* The key of a category or, with text NULL, of a numeric column; not mixed. */
uint64_t dp_columns_key(const struct dp_dataset_options *options, uint64_t salt, const char *text,
                        size_t len);
/* Names for dp_dataset_names: "column", and "column=value"; place: among the columns of its kind. */
struct dp_columns_name {
    const char *column;
    uint32_t place, order; /* order: among all columns of the file */
    uint64_t salt;
};
#define DP_COLUMNS_NAMES_MAX 1000000u
enum dp_status dp_columns_name_number(const struct dp_dataset_options *options,
                                      const struct dp_columns_name *of, struct dp_name_set *set,
                                      struct dp_error *err);
enum dp_status dp_columns_name_category(const struct dp_dataset_options *options,
                                        const struct dp_columns_name *of, const char *at, size_t len,
                                        struct dp_name_set *set, struct dp_error *err);
/* Makes labels the texts of this schema. Lent until end. */
void dp_columns_name_labels(struct dp_columns *columns, const struct dp_schema *schema);
/* Sets the label of the row; with options.scored it may be missing ("" is 0). */
enum dp_status dp_columns_label(struct dp_columns *columns, const char *at, const char *end,
                                struct dp_error *err);

/* Sets the weight of the row: 0 or more. */
enum dp_status dp_columns_weight(struct dp_columns *columns, const char *at, const char *end,
                                 struct dp_error *err);

/* As in struct dp_format. */
enum dp_status dp_columns_shape(const struct dp_dataset_options *options, const struct dp_content *content,
                                uint32_t take, struct dp_batch_shape *out, struct dp_error *err);
void dp_columns_fill(const struct dp_format_fill *what, struct dp_batch *batch);

#endif

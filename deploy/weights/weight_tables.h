/* Run tables: the tables of a run's directory, with the keys that they have, their names and their weights.
 *     open (served.h, model, names) -> table -> rows -> pull -> end -> clear
 * Rows      Of a sparse table first the keys that have names, in the order of the file of names; then those that are stored and
 *           have none, ascending. A key that was never pushed has its initial value, as training would see it.
 *           For a dense parameter: its blocks, which together are the matrix, row-major.
 * Promise   As served.h: nothing in the directory is written. Weights are those that the run's servers
 *           would serve. They include pushes that only a journal has.
 * Thread    One.
 * Failure   The text names the fault of the directory and the remedy. DP_NOT_FOUND: the file of names is
 *           missing. */
#ifndef DP_WEIGHTS_WEIGHT_TABLES_H
#define DP_WEIGHTS_WEIGHT_TABLES_H

#include "common/vocab/vocab.h"
#include "deploy/weights/served.h"
#include "worker/compute/models/model.h"

struct dp_weight_tables {
    struct dp_served served;
    struct dp_model model;
    struct dp_vocab *vocab;            /* NULL: keys are told by their numbers */
    struct dp_label_scale label_scale; /* of a regression: its weights give standardized labels */
};

/* {.served.folder.lock = -1, .served.scratch.lock = -1} before that. named: names are read, and those of a run that kept some must be
 * there; without them, or of a run of an older build, keys are told by their numbers. */
enum dp_status dp_weight_tables_open(const char *path, bool named, struct dp_weight_tables *out,
                                     struct dp_error *err);
/* As dp_served_end. */
int dp_weight_tables_end(struct dp_weight_tables *run, enum dp_status st, const struct dp_error *err);
void dp_weight_tables_clear(struct dp_weight_tables *run);

/* The model's parameter of that name; DP_NOT_FOUND lists those that there are. */
enum dp_status dp_weight_tables_find(const struct dp_weight_tables *run, const char *name,
                                     const struct dp_parameter **out, struct dp_error *err);
/* Whether the rows of a dense parameter belong to the columns of numbers that the model reads. */
bool dp_weight_tables_of_columns(const struct dp_weight_tables *run, const struct dp_parameter *parameter);

struct dp_weight_rows {
    const struct dp_parameter *parameter;
    struct dp_client_table *table;
    uint64_t *keys;
    size_t *names; /* where each key's name stands in the vocabulary, or DP_VOCAB_NONE */
    size_t count, stored;
};
enum dp_status dp_weight_rows_list(struct dp_weight_tables *run, const struct dp_parameter *parameter,
                                   struct dp_weight_rows *out, struct dp_error *err);
void dp_weight_rows_clear(struct dp_weight_rows *rows);
/* Weights of rows first .. first + count - 1, [count][dim]. */
enum dp_status dp_weight_rows_pull(struct dp_weight_tables *run, const struct dp_weight_rows *rows,
                                   size_t first, size_t count, float *weights, struct dp_error *err);
/* How many rows are pulled at a time. */
size_t dp_weight_rows_portion(const struct dp_weight_rows *rows);
/* The name of row i, or its key's number in `number`. Lent. */
const char *dp_weight_rows_name(const struct dp_weight_tables *run, const struct dp_weight_rows *rows,
                                size_t i, char number[24]);

#endif

/* Import tables: the tables of a model, filled from a set of tensors (tensor_set.h), as weights/export_tensors.h and weights/export_file.h
 * write them and as PyTorch or NumPy do.
 *     dense   TABLE: F32, the model's shape; of one row also a vector
 *     sparse  TABLE.keys: I64 or U64, in any order, each once; TABLE.weights: F32 [keys, width]
 *     in a directory of .npy files the weights of sparse tables are TABLE, too: TABLE.npy and TABLE.keys.npy
 *     slots   of all tables or of none: TABLE.step (I64) and the optimizer's slots, F32; TABLE.padding may be missing
 * Without slots each row begins as before its first push: step 0, fresh slots. As in a trained store, a
 * dense block, or a row with slots, is not stored if it has step 0 and the initial weights. Reading it
 * gives the same values.
 * Promise   A file is refused by name unless every tensor belongs to a table, every table is there, and
 *           each number is finite. A file that is changed before its last row was filled is refused, too.
 * Memory    8 bytes for each key. The tables read the set, which outlives them. */
#ifndef DP_CHECKPOINT_IMPORT_TABLES_H
#define DP_CHECKPOINT_IMPORT_TABLES_H

#include "common/tensors/tensor_set.h"
#include "server/import/import.h"
#include "worker/compute/graph.h"

struct dp_import_part;

struct dp_import_tables {
    struct dp_import_table *table; /* [count] */
    struct dp_import_part *part;
    uint32_t count;
    bool slots; /* the file has them */
};

/* graph: with optimizer and seed (dp_graph_set_optimizer). */
enum dp_status dp_import_tables_make(const struct dp_graph *graph, const struct dp_tensor_set *set,
                                     struct dp_import_tables *out, struct dp_error *err);
void dp_import_tables_clear(struct dp_import_tables *tables); /* accepts {0} */

#endif

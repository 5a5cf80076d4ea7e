/* Pairs columns: which column of a file of interactions is the user, the item, the rating and the time.
 * Private to this room.
 *     {0} -> find -> at, clear
 * Order     options->roles; the names of the training file (options->like); names that tell, as "userId" or
 *           "sku"; the places of the training file; the first columns.
 * Memory    The names.
 * Failure   DP_DATA: a column that the file does not have, with those that it has; one column for two. */
#ifndef DP_READ_PAIRS_COLUMNS_H
#define DP_READ_PAIRS_COLUMNS_H

#include "worker/read/csv_record.h"
#include "worker/read/dataset.h"

#define DP_PAIRS_NO_COLUMN UINT32_MAX

struct dp_pairs_columns {
    struct dp_schema schema;     /* of all columns; without a header their names are "" */
    uint32_t at[DP_PAIRS_ROLES]; /* from 0; DP_PAIRS_NO_COLUMN */
    uint32_t last;               /* of user and item, the one further right */
    bool header;                 /* the first line is one */
    bool named; /* names or options say which are user and item: other columns may be anything */
};

/* cells: of the first line. header: it is known to be one. */
enum dp_status dp_pairs_columns_find(const struct dp_dataset_options *options, const struct dp_cell *cells,
                                     size_t count, bool header, struct dp_pairs_columns *out,
                                     struct dp_error *err);
void dp_pairs_columns_clear(struct dp_pairs_columns *columns); /* accepts {0} */
/* "user: 'uid' (column 2), item: 'sku' (column 1)"; "": the schema is not of pairs with columns. */
void dp_pairs_columns_text(const struct dp_schema *schema, char *out, size_t size);

/* A number, a date as "2010-10-19T23:55:27Z", or nothing: no id follows user and item. */
bool dp_pairs_is_value(struct dp_cell cell);

#endif

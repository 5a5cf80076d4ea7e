/* Import rows: the tables of an import as a store whose rows are visited, in the order of stored keys. Private to the room.
 * Thread    One.
 * Memory    16 bytes for each row of the table that is being visited. */
#ifndef DP_IMPORT_IMPORT_ROWS_H
#define DP_IMPORT_IMPORT_ROWS_H

#include "server/import/import.h"
#include "server/store/store.h"

#define DP_IMPORT_LSN 1u

/* A store of which visit_rows alone may be called. tables: ascending by dp_table_id; lent. */
struct dp_import_rows {
    const struct dp_import_table *const *table;
    uint32_t tables;
};
struct dp_store dp_import_rows_store(const struct dp_import_rows *rows);

#endif

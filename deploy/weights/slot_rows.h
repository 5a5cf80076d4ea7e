/* Slot rows: the rows of a run's tables as its stores have them, with step counts and slots, which no server
 * sends.
 *     check -> visit
 * Promise   Each listed row is visited once: as it is stored, or, if it was never pushed, as it would be
 *           before its first push.
 * Slots     are read off the stores, which must have been closed cleanly: pushes that only a journal has are
 *           in no store.
 * Thread    One.
 * Memory    17 bytes for each row of all tables.
 * Failure   DP_UNCLEAN naming the store that was not closed cleanly; DP_CORRUPT: a row that is not listed. */
#ifndef DP_WEIGHTS_SLOT_ROWS_H
#define DP_WEIGHTS_SLOT_ROWS_H

#include "deploy/weights/weight_tables.h"

enum dp_status dp_slot_rows_check(const struct dp_cluster *cluster, struct dp_error *err);

/* Row `index` of list[which]. */
typedef enum dp_status dp_slot_row(void *context, size_t which, size_t index, const void *row,
                                   struct dp_error *err);
enum dp_status dp_slot_rows_visit(const struct dp_cluster *cluster, const struct dp_weight_rows *const *list,
                                  size_t lists, dp_slot_row *take, void *context, struct dp_error *err);

#endif

/* Rocks history: gives the rows of a closed store, however it was closed, another generation and history: who served or
 * trained on the earlier history is refused from then on.
 * Promise   Both at once, durably. Its rows, its id and its journal stay as they are.
 * Thread    One, while nobody has the directory open.
 * Failure   DP_NOT_FOUND: there is no store. DP_IN_USE: a server has it open. A failure changes nothing. */
#ifndef DP_STORE_REPAIR_ROCKS_HISTORY_H
#define DP_STORE_REPAIR_ROCKS_HISTORY_H

#include "common/base/status.h"

#include <stdint.h>

/* generation: 1 or more. */
DP_MUST_USE
enum dp_status dp_rocks_store_set_history(const char *directory, uint64_t generation, uint64_t history,
                                          struct dp_error *err);

#endif

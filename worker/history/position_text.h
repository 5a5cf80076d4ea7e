/* Position text: the log's text of where a restarted worker continues.
 * Thread    Any: plain functions. */
#ifndef DP_HISTORY_POSITION_TEXT_H
#define DP_HISTORY_POSITION_TEXT_H

#include "worker/history/position.h"
#include "worker/schedule/rounds.h"

/* 1234 as "1,234". */
const char *dp_grouped(uint64_t value, char out[32]);
void dp_position_tell(const struct dp_position *position, const struct dp_cluster_training *training,
                      const struct dp_rounds *rounds);

#endif

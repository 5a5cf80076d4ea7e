/* Kept union: how many rows of a table the pushes of a synchronous step have together, each counted once.
 *     rows of the step and one push more -> (the keys of the step, made at the first call; those of later pushes added) -> counted
 * Why       The sum over the pushes is enough for a step that is small; for one that is not it is as many times too high as there are
 *           members that push the same rows, as all do with dense tables.
 * Thread    The shard's. Memory: 8 bytes a row of the step, once it was asked for; the step has it until it goes. */
#ifndef DP_STEPS_STEP_BUFFER_UNION_H
#define DP_STEPS_STEP_BUFFER_UNION_H

#include "server/steps/step_buffer.h"

/* Of the table in the step and in sections of one push more. Only what it remembers of the step changes. DP_NOMEM. */
DP_MUST_USE
enum dp_status dp_step_buffer_union_rows(struct dp_buffered_step *step, uint32_t table, uint32_t sections,
                                         const struct dp_section *section, uint64_t *rows);
/* What it remembers of the step. Accepts NULL inside. */
void dp_step_buffer_union_free(struct dp_step_buffer_union **unions);

#endif

/* Kept apply: the sum of a synchronous step's pushes applied to its rows where its close is replayed, some rows at a time: the pushes
 * of a journal's step may be large, and nobody waits. (Who closes the step has made all sums before: server/shard/close.h. Both
 * add by dp_buffer_sum_next and apply by dp_apply, so the bits are the same.)
 *     init (all the memory that it takes) -> each section, in order -> clear
 * Promise   As apply.h: a row takes the step only if it is older.
 * Thread    The shard's. Memory: the step, which is lent until clear. */
#ifndef DP_STEPS_STEP_BUFFER_APPLY_H
#define DP_STEPS_STEP_BUFFER_APPLY_H

#include "server/cache/cached_tables.h"
#include "server/steps/step_buffer.h"

struct dp_step_buffer_apply {
    uint32_t sections;
    struct dp_buffer_sum *sum; /* [sections] */
    float *gradients;          /* of a few rows */
};

/* tables: of each section. */
DP_MUST_USE
enum dp_status dp_step_buffer_apply_init(struct dp_step_buffer_apply *apply,
                                         const struct dp_buffered_step *step, uint32_t sections,
                                         struct dp_cached_table *const *tables);
/* rows: of the section's keys, which are all those of the step in this table; false: they are not. */
DP_MUST_USE
bool dp_step_buffer_apply(struct dp_step_buffer_apply *apply, uint32_t s, const struct dp_section *section,
                          struct dp_cached_table *table, const uint32_t *rows, float rate, uint64_t lsn);
void dp_step_buffer_apply_clear(struct dp_step_buffer_apply *apply);

#endif

/* Kept: the pushes of synchronous steps that are journaled and not applied yet; their sum; and of the step that was closed
 * last the weights from before it.
 *     new -> (the journal has it) -> add ... -> union of the keys, sums -> close -> old weights, until the next step closes
 * Sum       For each key, over the step's pushes in order of rank: (float)examples of the push / (float)examples of all,
 *           times its gradient; f32, multiply, then add. The sum of one push is its gradient, bit for bit. It is no NaN; rounding may make it
 *           infinite where gradients are near the end of f32, and the optimizer bounds it.
 * Floor     The journal is needed from the first push of the last committed step on, since its replay
 *           restores the old weights. So marks have no lsn at or past it while a step with members is open.
 *           (Reappending moves it: step_buffering.h.)
 * Holds     Steps ascend by (run, step), a step's pushes by rank. bytes = those of all pushes, without the old weights.
 * Thread    The shard's. Memory: a push keeps the message that its sections lend from; old weights keep theirs. */
#ifndef DP_STEPS_STEP_BUFFER_H
#define DP_STEPS_STEP_BUFFER_H

#include "common/wire/request.h"
#include "server/journal/record.h"

struct dp_buffered_push {
    uint32_t run, rank;
    uint64_t step, examples, view, stream, number, lsn;
    uint64_t again_lsn; /* of its record appended again, until all are; 0: not yet */
    float rate;
    size_t bytes;
    struct dp_message *message;
    uint32_t sections;
    uint32_t *dim; /* [sections]: width of each one's table; after them */
    struct dp_section section[];
};

struct dp_buffered_step {
    struct dp_buffered_step *next;
    uint32_t run;
    uint64_t step;
    uint64_t first_lsn, last_lsn;
    uint64_t examples;
    size_t bytes;
    uint32_t count, room;
    struct dp_buffered_push **push;
    struct dp_step_buffer_union *unions; /* of dp_step_buffer_union_rows */
};

/* Only step_buffer.c changes the fields but where another file is named; others may read first, bytes and old. */
struct dp_step_buffer {
    struct dp_buffered_step *first;
    size_t bytes;
    uint64_t
        closed_lsn; /* of the first push of the step closed last, or before its reappended weights; 0: they are not needed */
    uint64_t again_from; /* pushes below this lsn are being appended again; 0: none are */
    struct dp_step_buffer_old {
        uint32_t run; /* 0: there are none */
        uint64_t step;
        struct dp_message *message;
        uint32_t sections;
        struct dp_section section[DP_SECTIONS_MAX]; /* f32; values are the weights */
        uint32_t dim[DP_SECTIONS_MAX];
    } old;
};

/* ---- pushes */

/* For a push to be kept; takes the message, which its sections lend from, over only when it is added. NULL: out of memory. */
struct dp_buffered_push *dp_buffered_push_new(const struct dp_request *push, const struct dp_record *record,
                                              size_t bytes);
/* Without its message. Accepts NULL inside. */
void dp_buffered_push_free(struct dp_buffered_push **push);
/* Room for one more push of its step, so that adding cannot fail. */
enum dp_status dp_step_buffer_reserve(struct dp_step_buffer *kept, const struct dp_buffered_push *push);
/* Its record has this lsn. Takes both over. Its rank has no push in this step yet. */
void dp_step_buffer_add(struct dp_step_buffer *kept, struct dp_buffered_push **push, uint64_t lsn,
                        struct dp_message **message);
/* NULL: nothing of it is kept. */
struct dp_buffered_step *dp_buffered_step(const struct dp_step_buffer *kept, uint32_t run, uint64_t step);
const struct dp_buffered_push *dp_step_buffer_find(const struct dp_step_buffer *kept, uint32_t run,
                                                   uint64_t step, uint32_t rank);
/* Of all steps. */
uint32_t dp_step_buffer_count(const struct dp_step_buffer *kept);
/* It was found in the journal again, with this lsn. */
void dp_step_buffer_found_again(struct dp_step_buffer *kept, uint32_t run, uint64_t step, uint32_t rank,
                                uint64_t lsn);
/* Reappending begins or goes on: pushes below the lsn of now, each once, and then the old weights. */
void dp_step_buffer_begin_again(struct dp_step_buffer *kept, uint64_t lsn);
static inline bool dp_step_buffer_lacks_again(const struct dp_step_buffer *kept,
                                              const struct dp_buffered_push *push)
{
    return push->again_lsn == 0 && push->lsn < kept->again_from;
}
void dp_step_buffer_appended_again(struct dp_buffered_push *push, uint64_t lsn);
/* All was, as the last record the one with this lsn: the floor moves. */
void dp_step_buffer_end_again(struct dp_step_buffer *kept, uint64_t lsn);
/* Drops earlier runs, and this one's steps below `open`. Returns how many pushes. */
uint32_t dp_step_buffer_drop_below(struct dp_step_buffer *kept, uint32_t run, uint64_t open);
void dp_step_buffer_clear(struct dp_step_buffer *kept);

/* ---- a step's sum */

/* What a step touches: its tables, ascending by id, and of each so many rows at most (as if no key came twice). */
struct dp_buffered_tables {
    uint32_t count; /* above DP_SECTIONS_MAX: more than that */
    uint32_t table[DP_SECTIONS_MAX];
    uint64_t rows[DP_SECTIONS_MAX];
};
void dp_buffered_tables(const struct dp_buffered_step *step, struct dp_buffered_tables *out);
/* Adds those of a push. */
void dp_buffered_tables_add(struct dp_buffered_tables *tables, uint32_t sections,
                            const struct dp_section *section);

/* How many rows of the table the step and sections of one push more have together, each counted once: the sum of tables above is as
 * many times too high as members push the same rows, as all do with dense tables. The step remembers its keys, 8 bytes a row, from
 * the first call on. DP_NOMEM. */
enum dp_status dp_step_buffer_union_rows(struct dp_buffered_step *step, uint32_t table, uint32_t sections,
                                         const struct dp_section *section, uint64_t *rows);

/* Goes over the keys of one table in a step, ascending; each comes once. */
struct dp_buffer_sum {
    const struct dp_buffered_step *step;
    uint32_t dim, count;
    float *wide; /* a row of bf16 gradients, widened */
    struct dp_step_buffer_cursor {
        uint64_t mixed;
        uint32_t rank, at;
        float factor;
        const struct dp_section *section;
    } * heap; /* the least (mixed, rank) first; few: ascending by rank */
    bool few;
};
/* dim: of the table. */
enum dp_status dp_buffer_sum_init(struct dp_buffer_sum *sum, const struct dp_buffered_step *step,
                                  uint32_t table, uint32_t dim);
/* The next key and the sum of its gradients, unless `to` is NULL. False: there is no more. */
bool dp_buffer_sum_next(struct dp_buffer_sum *sum, uint64_t *mixed, float *to);
void dp_buffer_sum_clear(struct dp_buffer_sum *sum);

/* ---- closing */

/* The step was applied: its pushes go, and those of steps before it; its rows had these weights (f32) before, lent from the
 * message, which is taken over, as are the keys. */
void dp_step_buffer_close(struct dp_step_buffer *kept, uint32_t run, uint64_t step, uint32_t sections,
                          const struct dp_section *section, const uint32_t *dims,
                          struct dp_message **message);
/* These are the weights from before the step closed last, found again in the journal with this lsn. */
void dp_step_buffer_restore_old(struct dp_step_buffer *kept, uint32_t run, uint64_t step, uint32_t sections,
                                const struct dp_section *section, const uint32_t *dims,
                                struct dp_message **message, uint64_t lsn);
/* The open step has no members: no pull asks for the weights from before the last one. */
void dp_step_buffer_forget_old(struct dp_step_buffer *kept);
/* Weights from before the last closed step of a key that it changed, and NULL for one that it did not. *at: 0 for the first
 * key; keys ascend from call to call. They lie as their record does: at multiples of four bytes. */
const float *dp_step_buffer_old_weights(const struct dp_step_buffer *kept, uint32_t table, uint64_t mixed,
                                        uint32_t *at);

/* Rows and marks have no lsn above it; UINT64_MAX: there is no bound. */
uint64_t dp_step_buffer_floor(const struct dp_step_buffer *kept);

#endif

/* History: one key of one table: its row, as the records make it, and every value that it ever had, in order.
 *     {0} -> (touch | apply [-> add])* -> clear
 * Thread    One. Memory: its own. */
#ifndef DP_TESTS_SIM_HISTORY_H
#define DP_TESTS_SIM_HISTORY_H

#include "common/model/optimizer.h"
#include "common/model/table.h"

#include <stdbool.h>
#include <stddef.h>

/* Of a table, the same for every key: */
struct sim_history_table {
    const struct dp_table_spec *spec;
    struct dp_optimizer *optimizer;
};

struct sim_value {
    uint64_t lsn;
    float *weights;
};

struct sim_history {
    void *row; /* NULL: never pushed */
    struct sim_value *value;
    uint32_t values, room, floor; /* floor: the newest value that an acknowledged push made */
};

void sim_history_clear(struct sim_history *history);
/* The weights of now: lent, or put into scratch[dim] where they are the initial ones. */
const float *sim_history_weights(const struct sim_history *history, const struct dp_table_spec *spec,
                                 uint32_t key, float *scratch);
/* The row of now is a value of its history. */
void sim_history_add(struct sim_history *history, const struct dp_table_spec *spec, uint32_t key);
/* The history begins with the initial value. */
void sim_history_touch(struct sim_history *history, const struct dp_table_spec *spec, uint32_t key);
void sim_history_apply(struct sim_history *history, const struct sim_history_table *table, uint32_t key,
                       const float *gradient, float rate, uint64_t lsn);
/* The weights from before the record with this lsn, which is among those of now. */
const float *sim_history_before(const struct sim_history *history, uint64_t lsn);
/* The lsn of the row of now. 0: never pushed. */
uint64_t sim_history_lsn(const struct sim_history *history);
/* The push with this lsn was acknowledged: nothing older is shown to who asks later. */
void sim_history_acknowledge(struct sim_history *history, uint64_t lsn);
/* Whether it had these weights, as bf16 carries them where `bf16`, at its value `floor` or later. */
bool sim_history_had(const struct sim_history *history, uint32_t dim, bool bf16, uint32_t floor,
                     const float *weights);
/* A realloc that does not fail. */
void *sim_resized(void *old, size_t bytes);

#endif

#include "tests/sim/history.h"

#include "common/base/bf16.h"
#include "common/base/status.h"
#include "common/model/init.h"
#include "common/model/row.h"

#include <stdlib.h>
#include <string.h>

void *sim_resized(void *old, size_t bytes)
{
    void *block = realloc(old, bytes ? bytes : 1);
    DP_ASSERT(block);
    return block;
}

void sim_history_clear(struct sim_history *history)
{
    for (uint32_t i = 0; i < history->values; i++)
        free(history->value[i].weights);
    free(history->value);
    free(history->row);
    *history = (struct sim_history){0};
}

const float *sim_history_weights(const struct sim_history *history, const struct dp_table_spec *spec,
                                 uint32_t key, float *scratch)
{
    if (history->row)
        return dp_row_weights_const(history->row);
    dp_init_weights(spec, key, scratch);
    return scratch;
}

const float *sim_history_before(const struct sim_history *history, uint64_t lsn)
{
    uint32_t at = history->values - 1;
    while (history->value[at].lsn >= lsn) /* the first has lsn 0 */
        at--;
    return history->value[at].weights;
}

uint64_t sim_history_lsn(const struct sim_history *history)
{
    return history->row ? dp_row_lsn(history->row) : 0;
}

void sim_history_add(struct sim_history *history, const struct dp_table_spec *spec, uint32_t key)
{
    float scratch[256];
    if (history->values == history->room) {
        history->room = history->room ? 2 * history->room : 8;
        history->value = sim_resized(history->value, history->room * sizeof history->value[0]);
    }
    struct sim_value *value = &history->value[history->values++];
    value->lsn = sim_history_lsn(history);
    value->weights = sim_resized(NULL, spec->dim * sizeof(float));
    memcpy(value->weights, sim_history_weights(history, spec, key, scratch), spec->dim * sizeof(float));
}

void sim_history_touch(struct sim_history *history, const struct dp_table_spec *spec, uint32_t key)
{
    if (history->values == 0)
        sim_history_add(history, spec, key); /* its initial value */
}

void sim_history_apply(struct sim_history *history, const struct sim_history_table *table, uint32_t key,
                       const float *gradient, float rate, uint64_t lsn)
{
    if (!history->row) {
        history->row = sim_resized(NULL, dp_row_bytes(table->spec));
        dp_init_row(table->spec, key, history->row);
    }
    dp_optimizer_apply(table->optimizer, history->row, gradient, rate);
    dp_row_set_lsn(history->row, lsn);
}

void sim_history_acknowledge(struct sim_history *history, uint64_t lsn)
{
    uint32_t at = history->values;
    while (at > history->floor + 1 && history->value[at - 1].lsn != lsn)
        at--;
    history->floor = at - 1;
}

bool sim_history_had(const struct sim_history *history, uint32_t dim, bool bf16, uint32_t floor,
                     const float *weights)
{
    for (uint32_t i = history->values; i-- > floor;) {
        float rounded[256];
        memcpy(rounded, history->value[i].weights, dim * sizeof(float));
        if (bf16) {
            char halves[512];
            dp_bf16_put(rounded, halves, dim);
            dp_bf16_get(halves, rounded, dim);
        }
        if (memcmp(rounded, weights, dim * sizeof(float)) == 0)
            return true;
    }
    return false;
}

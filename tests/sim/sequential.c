#include "tests/sim/sequential.h"

#include "common/base/bf16.h"
#include "common/base/status.h"
#include "common/model/row.h"
#include "tests/sim/batch.h"
#include "tests/sim/history.h"
#include "tests/sim/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A row, whose values have as lsn the number of the step behind that which made them, and its gradients of the step at hand: added up
 * in the order of the workers. */
struct key {
    struct sim_history history;
    float sum[SIM_BATCH_DIM];
    bool summed;
};

struct sim_sequential {
    struct sim_world *world;
    struct dp_optimizer *optimizer[SIM_TABLES_MAX];
    struct key key[SIM_TABLES_MAX][SIM_KEYS_MAX];
    struct sim_batch batch[SIM_WORKERS_MAX];
};

/* As the wire carries them. */
static void travel(const struct sim_plan *plan, const float *values, uint32_t dim, float *out)
{
    char halves[2 * SIM_BATCH_DIM];
    memcpy(out, values, dim * sizeof(float));
    if (plan->bf16) {
        dp_bf16_put(values, halves, dim);
        dp_bf16_get(halves, out, dim);
    }
}

static void add(struct sim_sequential *sequential, uint32_t worker, uint32_t number, uint64_t examples)
{
    const struct sim_plan *plan = &sequential->world->plan;
    const struct sim_batch *batch = &sequential->batch[worker];
    float factor = examples > 0 ? (float)batch->examples / (float)examples : 1.0f;
    for (uint32_t p = 0; p < batch->parts; p++)
        for (uint32_t i = 0; i < batch->part[p].rows; i++) {
            float weights[SIM_BATCH_DIM] = {0}, gradient[SIM_BATCH_DIM];
            uint32_t t = batch->part[p].table, dim = plan->table[t].dim;
            uint64_t k = batch->part[p].key[i];
            struct key *key = &sequential->key[t][k];
            if (!batch->blind)
                travel(plan, sim_sequential_weights(sequential, t, k, number), dim, weights);
            sim_batch_gradient(sequential->world, worker, t, k, number, weights, gradient);
            travel(plan, gradient, dim, gradient);
            for (uint32_t d = 0; d < dim; d++) {
                float part = factor * gradient[d];
                key->sum[d] = key->summed ? key->sum[d] + part : part;
            }
            key->summed = true;
        }
}

static void apply(struct sim_sequential *sequential, uint32_t number, float rate)
{
    const struct sim_plan *plan = &sequential->world->plan;
    for (uint32_t t = 0; t < plan->tables; t++)
        for (uint32_t k = 0; k < plan->keys; k++) {
            struct key *key = &sequential->key[t][k];
            if (key->summed) {
                const struct sim_history_table table = {&plan->table[t], sequential->optimizer[t]};
                sim_history_apply(&key->history, &table, k, key->sum, rate, number + 1);
                sim_history_add(&key->history, &plan->table[t], k);
            }
            key->summed = false;
        }
}

static void step(struct sim_sequential *sequential, uint32_t number)
{
    struct sim_world *world = sequential->world;
    uint64_t examples = 0;
    for (uint32_t w = 0; w < world->plan.workers; w++) {
        sequential->batch[w] = (struct sim_batch){0};
        if (number < sim_pushes_of(&world->plan, w))
            sim_batch_make(world, w, number, &sequential->batch[w]);
        examples += sequential->batch[w].examples;
    }
    float rate = sequential->batch[0].rate;
    for (uint32_t w = 0; w < world->plan.workers; w++)
        add(sequential, w, number, world->plan.mode == DP_SYNC ? examples : 0);
    apply(sequential, number, rate);
}

static bool is_fixed(const struct sim_plan *plan)
{
    return plan->fixed || (plan->mode == DP_SYNC && !sim_has_backups(plan) && !plan->away);
}

struct sim_sequential *sim_sequential_new(struct sim_world *world)
{
    struct dp_error err = {0};
    if (!is_fixed(&world->plan))
        return NULL;
    struct sim_sequential *sequential = calloc(1, sizeof *sequential);
    DP_ASSERT(sequential);
    sequential->world = world;
    for (uint32_t t = 0; t < world->plan.tables; t++) {
        const struct dp_table_spec *spec = &world->plan.table[t];
        if (dp_optimizer_new(spec, DP_FORM_PORTABLE, &sequential->optimizer[t], &err) != DP_OK)
            sim_fail(world, "%s", err.text);
        for (uint32_t k = 0; k < world->plan.keys; k++)
            sim_history_touch(&sequential->key[t][k].history, spec, k);
    }
    for (uint32_t n = 0; n < world->plan.steps; n++)
        step(sequential, n);
    return sequential;
}

void sim_sequential_free(struct sim_sequential **out)
{
    struct sim_sequential *sequential = *out;
    *out = NULL;
    if (!sequential)
        return;
    for (uint32_t t = 0; t < sequential->world->plan.tables; t++) {
        dp_optimizer_free(&sequential->optimizer[t]);
        for (uint32_t k = 0; k < sequential->world->plan.keys; k++)
            sim_history_clear(&sequential->key[t][k].history);
    }
    free(sequential);
}

const float *sim_sequential_weights(const struct sim_sequential *sequential, uint32_t table, uint64_t key,
                                    uint64_t number)
{
    const struct sim_history *history = &sequential->key[table][key].history;
    uint32_t at = history->values - 1;
    while (history->value[at].lsn > number) /* the first has lsn 0 */
        at--;
    return history->value[at].weights;
}

void sim_sequential_compare(const struct sim_sequential *sequential)
{
    const struct sim_world *world = sequential->world;
    for (uint32_t t = 0; t < world->plan.tables; t++)
        for (uint32_t k = 0; k < world->plan.keys; k++) {
            const char *row = sim_model_row(world->model, t, k), *mine = sequential->key[t][k].history.row;
            if (!row != !mine ||
                (row && memcmp(row + 8, mine + 8, dp_row_bytes(&world->plan.table[t]) - 8) != 0))
                sim_fail(world, "table %" PRIu32 ", key %" PRIu32 " is not what a sequential run gives", t,
                         k);
        }
}

/* Close: how the pushes of a synchronous step become one: for each row the sum, in the order of rank, of what each member pushed times
 * its share of the examples. */
#include "tests/sim/model_inner.h"

#include "common/base/bf16.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sim_close {
    struct {
        bool is;
        float sum[256];
    } row[SIM_TABLES_MAX][SIM_KEYS_MAX];
    uint32_t rows;
    uint64_t examples;
};

void sim_model_values_at(const struct dp_section *section, uint32_t row, uint32_t dim, float *out)
{
    const char *values = (const char *)section->values + (size_t)row * dim * dp_value_bytes(section->type);
    if (section->type == DP_BF16)
        dp_bf16_get(values, out, dim);
    else
        memcpy(out, values, dim * sizeof(float));
}

struct sim_close *sim_model_close_new(void)
{
    struct sim_close *close = calloc(1, sizeof *close);
    DP_ASSERT(close);
    return close;
}

static void add_row(struct sim_close *close, uint32_t t, uint32_t k, const float *gradient, uint32_t dim,
                    float factor)
{
    bool first = !close->row[t][k].is;
    for (uint32_t d = 0; d < dim; d++) {
        float part = factor * gradient[d];
        close->row[t][k].sum[d] = first ? part : close->row[t][k].sum[d] + part;
    }
    close->row[t][k].is = true;
    close->rows += first;
}

/* The push is in model->request. */
static void add_push(struct sim_model *model, float factor)
{
    for (uint32_t s = 0; s < model->request.sections; s++) {
        const struct dp_section *section = &model->request.section[s];
        uint32_t t = sim_model_table_of(model, section->table), dim = model->world->plan.table[t].dim;
        for (uint32_t i = 0; i < section->rows; i++) {
            float gradient[256];
            sim_model_values_at(section, i, dim, gradient);
            add_row(model->close, t, sim_model_key_at(model, section, i), gradient, dim, factor);
        }
    }
}

static void add_step(struct sim_model *model, uint32_t shard, const uint64_t lsns[SIM_WORKERS_MAX])
{
    struct sim_close *close = model->close;
    const struct sim_record *record = model->shard[shard].record;
    struct dp_record head[SIM_WORKERS_MAX];
    close->rows = 0; /* each was taken out when the close before was applied */
    close->examples = 0;
    for (uint32_t rank = 0; rank < model->world->plan.workers; rank++) {
        if (lsns[rank] == 0)
            continue;
        sim_model_decode(model, &record[lsns[rank] - 1], &head[rank]);
        close->examples += head[rank].examples;
    }
    for (uint32_t rank = 0; rank < model->world->plan.workers && close->examples > 0; rank++) {
        if (lsns[rank] == 0)
            continue;
        sim_model_decode(model, &record[lsns[rank] - 1], &head[rank]);
        add_push(model, (float)head[rank].examples / (float)close->examples);
    }
}

/* The close is in model->request. */
static void apply_section(struct sim_model *model, const struct dp_section *section, uint64_t lsn, bool new)
{
    struct sim_close *close = model->close;
    uint32_t t = sim_model_table_of(model, section->table);
    const struct dp_table_spec *spec = &model->world->plan.table[t];
    for (uint32_t i = 0; i < section->rows; i++) {
        float was[256], scratch[256];
        uint32_t k = sim_model_key_at(model, section, i);
        const float *old = sim_history_weights(&model->history[t][k], spec, k, scratch);
        sim_model_values_at(section, i, spec->dim, was);
        if (!close->row[t][k].is)
            sim_fail(model->world,
                     "lsn %" PRIu64 " closes a step in which nobody pushed table %" PRIu32 ", key %" PRIu32
                     ", or has it twice",
                     lsn, t, k);
        if (section->type != DP_F32 || memcmp(was, old, spec->dim * sizeof(float)) != 0)
            sim_fail(model->world,
                     "lsn %" PRIu64 " closes a step with other old weights of table %" PRIu32 ", key %" PRIu32
                     " than its row has",
                     lsn, t, k);
        sim_model_apply(model, t, k, close->row[t][k].sum, model->request.rate, lsn, new);
        close->row[t][k].is = false;
        close->rows--;
    }
}

void sim_model_close(struct sim_model *model, uint32_t shard, uint64_t lsn, bool new)
{
    const struct sim_model_shard *s = &model->shard[shard];
    struct dp_record head;
    sim_model_decode(model, &s->record[lsn - 1], &head);
    add_step(model, shard, s->steps.step[head.step - model->world->plan.first_step].push);
    sim_model_decode(model, &s->record[lsn - 1], &head);
    if (head.examples != model->close->examples)
        sim_fail(model->world,
                 "shard %" PRIu32 " closes step %" PRIu64 " with %" PRIu64 " examples of %" PRIu64, shard,
                 head.step, head.examples, model->close->examples);
    for (uint32_t i = 0; i < model->request.sections; i++)
        apply_section(model, &model->request.section[i], lsn, new);
    if (model->close->rows > 0)
        sim_fail(model->world, "shard %" PRIu32 " closes step %" PRIu64 " without %" PRIu32 " of its rows",
                 shard, head.step, model->close->rows);
}

#include "tests/sim/model_inner.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/range.h"
#include "common/model/row.h"
#include "tests/sim/model_image.h"
#include "tests/sim/sequential.h"

#include <inttypes.h>
#include <stdlib.h>

struct sim_model *sim_model_new(struct sim_world *world)
{
    struct sim_model *model = calloc(1, sizeof *model);
    struct dp_error err = {0};
    DP_ASSERT(model);
    model->world = world;
    if (world->plan.mode == DP_SYNC)
        model->close = sim_model_close_new();
    for (uint32_t t = 0; t < world->plan.tables; t++) {
        model->id[t] = dp_table_id(world->plan.table[t].name);
        if (dp_optimizer_new(&world->plan.table[t], DP_FORM_PORTABLE, &model->optimizer[t], &err) != DP_OK)
            sim_fail(world, "%s", err.text);
    }
    return model;
}

void sim_model_shard_clear(struct sim_model *model, uint32_t shard)
{
    struct sim_model_shard *s = &model->shard[shard];
    for (uint64_t i = 0; i < s->last; i++)
        free(s->record[i].data);
    free(s->record);
    sim_model_closed(model, shard);
    *s = (struct sim_model_shard){0};
}

void sim_model_free(struct sim_model **out)
{
    struct sim_model *model = *out;
    for (uint32_t t = 0; t < SIM_TABLES_MAX; t++) {
        dp_optimizer_free(&model->optimizer[t]);
        for (uint32_t k = 0; k < SIM_KEYS_MAX; k++)
            sim_history_clear(&model->history[t][k]);
    }
    for (uint32_t s = 0; s < SIM_SERVERS_MAX; s++)
        sim_model_shard_clear(model, s);
    sim_image_free(&model->base);
    free(model->close);
    free(model->sent);
    free(model->acknowledged);
    free(model);
    *out = NULL;
}

uint32_t sim_model_table_of(const struct sim_model *model, uint32_t id)
{
    for (uint32_t t = 0; t < model->world->plan.tables; t++)
        if (model->id[t] == id)
            return t;
    sim_fail(model->world, "table %08" PRIx32 " is none of the plan's", id);
}

uint32_t sim_model_key_of(const struct sim_model *model, uint64_t mixed)
{
    uint64_t key = dp_unmix(mixed);
    if (key >= model->world->plan.keys)
        sim_fail(model->world, "key %" PRIu64 " is none of the plan's", key);
    return (uint32_t)key;
}

void sim_model_compare(const struct sim_model *model, uint32_t shard, uint32_t shards,
                       const struct sim_store *store, const char *whose)
{
    const struct sim_world *world = model->world;
    uint32_t rows = 0;
    for (uint32_t t = 0; t < world->plan.tables; t++)
        for (uint32_t k = 0; k < world->plan.keys; k++) {
            size_t bytes = 0;
            const void *row = model->history[t][k].row;
            if (dp_shard_of(dp_mix(k), shards) != shard || !row)
                continue;
            const void *stored = sim_store_row(store, (struct dp_store_key){model->id[t], dp_mix(k)}, &bytes);
            rows++;
            if (!stored || bytes != dp_row_bytes(&world->plan.table[t]) || memcmp(stored, row, bytes) != 0)
                sim_fail(world,
                         "shard %" PRIu32 ", table %" PRIu32 ", key %" PRIu32 ": %s row, of lsn %" PRIu64
                         ", is not what its records give, of lsn %" PRIu64,
                         shard, t, k, whose, stored ? dp_row_lsn(stored) : 0, dp_row_lsn(row));
        }
    if (rows != sim_store_rows(store))
        sim_fail(world, "shard %" PRIu32 ": %s rows are %" PRIu32 ", its records give %" PRIu32, shard, whose,
                 sim_store_rows(store), rows);
}

void sim_model_drained(struct sim_model *model, uint32_t shard, const struct sim_store *store)
{
    sim_model_compare(model, shard, model->world->plan.servers, store, "the store's");
}

/* ---- members */

void sim_model_view(struct sim_model *model, const void *bytes, size_t size)
{
    sim_members_set(model->world, &model->members, bytes, size);
}

void sim_model_lost_its_place(const struct sim_model *model, uint32_t rank, uint64_t incarnation,
                              bool was_let_leave)
{
    bool was_in_place = false, found = false;
    for (uint32_t number = 1; number < SIM_VIEWS_MAX && model->members.view[number].known; number++) {
        bool left = model->members.view[number].member[rank].until < UINT64_MAX,
             own = model->members.view[number].member[rank].incarnation == incarnation;
        was_in_place |= own;
        found |= was_in_place && !own && left == was_let_leave;
    }
    if (!found)
        sim_fail(model->world, "worker %" PRIu32 " is told that %s, as no view says", rank,
                 was_let_leave ? "it was let leave" : "another process has its place");
}

bool sim_model_is_settled(const struct sim_model *model)
{
    for (uint32_t i = 0; i < model->world->plan.servers; i++)
        if (sim_has_members(&model->world->plan) && !sim_steps_are_done(model->world, &model->shard[i].steps))
            return false;
    return sim_model_leases_are_over(model);
}

/* ---- the workers' side */

void sim_model_sends(struct sim_model *model, uint64_t stream, uint64_t number,
                     const struct sim_sent *sections, uint32_t count)
{
    if (model->sents == model->sents_room) {
        model->sents_room = model->sents_room ? 2 * model->sents_room : 128;
        model->sent = sim_resized(model->sent, model->sents_room * sizeof model->sent[0]);
    }
    struct sim_sent_sums *sent = &model->sent[model->sents++];
    *sent = (struct sim_sent_sums){.stream = stream, .number = number};
    for (uint32_t s = 0; s < count; s++) {
        uint32_t dim = model->world->plan.table[sections[s].table].dim;
        for (uint32_t i = 0; i < sections[s].rows; i++) {
            char halves[512];
            const void *values = sections[s].gradients + (size_t)i * dim;
            if (model->world->plan.bf16) {
                dp_bf16_put(values, halves, dim);
                values = halves;
            }
            uint64_t key = sections[s].keys[i];
            sent->sum[dp_shard_of(dp_mix(key), model->world->plan.servers)] +=
                sim_model_row_sum(sections[s].table, key, values, dim * (model->world->plan.bf16 ? 2 : 4));
        }
    }
}

/* What the push with this lsn changed is not shown any more as it was. */
static void acknowledge_rows(struct sim_model *model, uint32_t shard, uint64_t lsn)
{
    struct dp_record head;
    sim_model_decode(model, &model->shard[shard].record[lsn - 1], &head);
    for (uint32_t s = 0; s < model->request.sections; s++)
        for (uint32_t i = 0; i < model->request.section[s].rows; i++) {
            const struct dp_section *section = &model->request.section[s];
            uint32_t t = sim_model_table_of(model, section->table);
            sim_history_acknowledge(&model->history[t][sim_model_key_at(model, section, i)], lsn);
        }
}

void sim_model_acknowledged(struct sim_model *model, uint64_t stream, uint64_t number)
{
    for (uint32_t shard = 0; shard < model->world->plan.servers; shard++) {
        uint64_t lsn = sim_model_find(model, shard, stream, number);
        if (lsn == 0)
            sim_fail(model->world,
                     "push %" PRIu64 " of stream %016" PRIx64 " was acknowledged, and shard %" PRIu32
                     " does not have it",
                     number, stream, shard);
        if (model->shard[shard].record[lsn - 1].kind == DP_RECORD_PUSH && lsn > model->shard[shard].base)
            acknowledge_rows(model, shard, lsn);
    }
    if (model->acks == model->acks_room) {
        model->acks_room = model->acks_room ? 2 * model->acks_room : 128;
        model->acknowledged =
            sim_resized(model->acknowledged, model->acks_room * sizeof model->acknowledged[0]);
    }
    uint64_t worker = (stream & 0xff) - 1;
    if (sim_has_members(&model->world->plan) && number + 1 > model->pushed[worker])
        model->pushed[worker] = number + 1;
    model->acknowledged[model->acks].stream = stream;
    model->acknowledged[model->acks++].number = number;
}

void sim_model_told(struct sim_model *model, uint64_t stream, uint64_t count)
{
    for (uint32_t shard = 0; shard < model->world->plan.servers && count > 0; shard++) {
        uint64_t lsn = sim_model_find(model, shard, stream, count - 1); /* those before it have lower ones */
        if (lsn == 0)
            sim_fail(model->world,
                     "a worker is told that push %" PRIu64 " of stream %016" PRIx64
                     " is there, and shard %" PRIu32 " does not have it",
                     count - 1, stream, shard);
        if (lsn > model->shard[shard].answered)
            model->shard[shard].answered = lsn;
    }
}

bool sim_model_is_acknowledged(const struct sim_model *model, uint64_t stream, uint64_t number)
{
    for (uint32_t i = model->acks; i-- > 0;)
        if (model->acknowledged[i].stream == stream && model->acknowledged[i].number == number)
            return true;
    return false;
}

uint32_t sim_model_floor(struct sim_model *model, uint32_t table, uint64_t key)
{
    sim_history_touch(&model->history[table][key], &model->world->plan.table[table], (uint32_t)key);
    return model->history[table][key].floor;
}

uint32_t sim_model_newest(struct sim_model *model, uint32_t table, uint64_t key)
{
    sim_history_touch(&model->history[table][key], &model->world->plan.table[table], (uint32_t)key);
    return model->history[table][key].values - 1;
}

void sim_model_pulled(struct sim_model *model, uint32_t table, uint64_t key, uint32_t floor,
                      const float *weights)
{
    if (!sim_history_had(&model->history[table][key], model->world->plan.table[table].dim,
                         model->world->plan.bf16, floor, weights))
        sim_fail(model->world,
                 "a pull shows a value of table %" PRIu32 ", key %" PRIu64
                 " that it never had, or not since it was asked for",
                 table, key);
}

/* Whether these are the weights of the sequential run before its step `index`. */
static bool is_before(const struct sim_model *model, uint32_t table, uint64_t key, uint64_t index,
                      const float *weights)
{
    float rounded[256];
    const struct sim_plan *plan = &model->world->plan;
    uint32_t dim = plan->table[table].dim;
    const float *want = sim_sequential_weights(model->world->sequential, table, key, index);
    if (plan->bf16) {
        char halves[512];
        dp_bf16_put(want, halves, dim);
        dp_bf16_get(halves, rounded, dim);
        want = rounded;
    }
    return memcmp(weights, want, dim * sizeof(float)) == 0;
}

void sim_model_pulled_in_step(struct sim_model *model, uint32_t table, uint64_t key, uint64_t step,
                              const float *weights)
{
    const struct sim_plan *plan = &model->world->plan;
    if (plan->mode == DP_SYNC && model->world->sequential &&
        !is_before(model, table, key, step - plan->first_step, weights))
        sim_fail(model->world,
                 "a pull of step %" PRIu64 " shows table %" PRIu32 ", key %" PRIu64
                 " as it was not before that step",
                 step, table, key);
}

void sim_model_left(struct sim_model *model, uint32_t worker)
{
    model->left[worker] = true;
}

bool sim_model_may_be_late(const struct sim_plan *plan)
{
    for (uint32_t i = 0; i < plan->faults; i++)
        if (plan->fault[i].kind >= SIM_READ_FAILS && plan->fault[i].kind <= SIM_DISK_FULL)
            return true;
    return false;
}

uint64_t sim_model_closed_steps(const struct sim_model *model)
{
    const struct sim_plan *plan = &model->world->plan;
    uint64_t closed = plan->steps;
    for (uint32_t i = 0; i < plan->workers; i++)
        if (!model->left[i] && model->pushed[i] < closed)
            closed = model->pushed[i];
    return sim_model_may_be_late(plan) ? 0 : closed;
}

void sim_model_pulled_between_steps(struct sim_model *model, uint32_t table, uint64_t key, uint64_t closed,
                                    const float *weights)
{
    const struct sim_plan *plan = &model->world->plan;
    bool found = plan->mode != DP_SYNC || !model->world->sequential; /* (with backups a shard's own steps) */
    for (uint64_t index = closed; !found && index <= plan->steps; index++)
        found = is_before(model, table, key, index, weights);
    if (!found)
        sim_fail(model->world,
                 "a pull shows table %" PRIu32 ", key %" PRIu64
                 " as it was before none of the steps from %" PRIu64
                 " on, and all pushes of those before were acknowledged",
                 table, key, closed + plan->first_step);
}

const void *sim_model_row(const struct sim_model *model, uint32_t table, uint64_t key)
{
    return model->history[table][key].row;
}

/* ---- the end */

/* Tables of SGD that start at 0 and are pushed integers: minus the sum of what was pushed. */
static void check_sums(struct sim_model *model, uint32_t t)
{
    static double sum[SIM_KEYS_MAX];
    struct dp_record head;
    for (uint32_t k = 0; k < model->world->plan.keys; k++)
        sum[k] = sim_model_base_sum(model, t, k);
    for (uint32_t shard = 0; shard < model->world->plan.servers; shard++)
        for (uint64_t lsn = model->shard[shard].base + 1; lsn <= model->shard[shard].last; lsn++) {
            if (model->shard[shard].record[lsn - 1].kind != DP_RECORD_PUSH)
                continue;
            sim_model_decode(model, &model->shard[shard].record[lsn - 1], &head);
            for (uint32_t s = 0; s < model->request.sections; s++) {
                const struct dp_section *section = &model->request.section[s];
                for (uint32_t i = 0; i < section->rows && section->table == model->id[t]; i++) {
                    float first;
                    size_t bytes = model->world->plan.table[t].dim * dp_value_bytes(section->type);
                    const char *at = (const char *)section->values + i * bytes;
                    if (section->type == DP_BF16)
                        dp_bf16_get(at, &first, 1);
                    else
                        memcpy(&first, at, 4);
                    sum[sim_model_key_at(model, section, i)] += (double)(first * model->request.rate);
                }
            }
        }
    for (uint32_t k = 0; k < model->world->plan.keys; k++)
        if (model->history[t][k].row && (double)dp_row_weights_const(model->history[t][k].row)[0] != -sum[k])
            sim_fail(model->world, "table %" PRIu32 ", key %" PRIu32 ": %g, but %g was pushed", t, k,
                     (double)dp_row_weights_const(model->history[t][k].row)[0], sum[k]);
}

/* Also of a member that has left: each of its pushes is on all shards or on none. */
static void check_all_or_none(const struct sim_model *model)
{
    for (uint32_t shard = 0; shard < model->world->plan.servers; shard++)
        for (uint64_t i = 0; i < model->shard[shard].last; i++) {
            const struct sim_record *record = &model->shard[shard].record[i];
            bool push = record->kind == DP_RECORD_PUSH || record->kind == DP_RECORD_KEPT_PUSH;
            for (uint32_t other = 0; push && other < model->world->plan.servers; other++)
                if (sim_model_find(model, other, record->stream, record->number) == 0)
                    sim_fail(model->world,
                             "shard %" PRIu32 " has push %" PRIu64 " of stream %016" PRIx64
                             ", and shard %" PRIu32 " has not",
                             shard, record->number, record->stream, other);
        }
}

void sim_model_end(struct sim_model *model)
{
    if (model->world->plan.away)
        check_all_or_none(model);
    for (uint32_t i = 0; i < model->acks; i++)
        for (uint32_t shard = 0; shard < model->world->plan.servers; shard++)
            if (sim_model_find(model, shard, model->acknowledged[i].stream, model->acknowledged[i].number) ==
                0)
                sim_fail(model->world,
                         "push %" PRIu64 " of stream %016" PRIx64 " was acknowledged, and shard %" PRIu32
                         " has lost it",
                         model->acknowledged[i].number, model->acknowledged[i].stream, shard);
    if (!sim_model_leases_are_over(model))
        sim_fail(model->world, "workers are done, and some shard lacks a number that was to be leased");
    for (uint32_t t = 0; t < model->world->plan.tables; t++)
        if (sim_is_integers(&model->world->plan.table[t]) && model->world->plan.mode != DP_SYNC &&
            !model->world->plan.stales) /* divided rates are rounded */
            check_sums(model, t);
}

#include "tests/sim/model_inner.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "common/model/mix.h"
#include "common/model/range.h"
#include "common/model/row.h"
#include "tests/sim/counts.h"
#include "tests/sim/model_image.h"
#include "tests/sim/stranger.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- rows */

void sim_model_decode(struct sim_model *model, const struct sim_record *record, struct dp_record *out)
{
    struct dp_error err = {0};
    if (dp_record_decode(record->data, record->bytes, out, &model->request, &err) != DP_OK)
        sim_fail(model->world, "%s", err.text);
}

void sim_model_apply(struct sim_model *model, uint32_t table, uint32_t key, const float *gradient, float rate,
                     uint64_t lsn, bool new)
{
    struct sim_history *history = &model->history[table][key];
    const struct dp_table_spec *spec = &model->world->plan.table[table];
    sim_history_touch(history, spec, key);
    sim_history_apply(history, &(struct sim_history_table){spec, model->optimizer[table]}, key, gradient,
                      rate, lsn);
    if (new)
        sim_history_add(history, spec, key);
}

static void apply_push(struct sim_model *model, uint64_t lsn, bool new)
{
    for (uint32_t s = 0; s < model->request.sections; s++) {
        const struct dp_section *section = &model->request.section[s];
        uint32_t t = sim_model_table_of(model, section->table), dim = model->world->plan.table[t].dim;
        for (uint32_t i = 0; i < section->rows; i++) {
            float wide[256];
            sim_model_values_at(section, i, dim, wide);
            sim_model_apply(model, t, sim_model_key_at(model, section, i), wide, model->request.rate, lsn,
                            new);
        }
    }
}

uint64_t sim_model_row_sum(uint32_t table, uint64_t key, const void *values, size_t bytes)
{
    uint64_t sum = dp_mix(key * 64 + table + 1);
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ ((const unsigned char *)values)[i]) * 0x100000001b3u;
    return dp_mix(sum);
}

/* ---- records */

static uint64_t *next_of(struct sim_model *model, uint32_t shard, uint64_t stream)
{
    struct sim_model_shard *s = &model->shard[shard];
    for (uint32_t i = 0; i < s->streams; i++)
        if (s->stream[i].stream == stream)
            return &s->stream[i].next;
    DP_ASSERT(s->streams < SIM_STREAMS);
    s->stream[s->streams].stream = stream;
    s->stream[s->streams].next = 0;
    return &s->stream[s->streams++].next;
}

/* With backup members a restored shard may have a later push of a step that it closed with it, and lack earlier ones, which it drops. */
static void pass_over_restored(const struct sim_model *model, uint32_t shard, uint64_t stream, uint64_t *next)
{
    const struct sim_model_shard *s = &model->shard[shard];
    for (uint64_t i = 0; i < s->base && sim_has_backups(&model->world->plan); i++)
        if (s->record[i].stream == stream && s->record[i].number == *next &&
            s->record[i].kind == DP_RECORD_KEPT_PUSH) {
            ++*next;
            i = 0;
        }
}

/* new: it was not counted before; a checkpoint's records (model_image.h) were. */
static void count_record(struct sim_model *model, uint32_t shard, uint64_t lsn, bool new)
{
    const struct sim_record *record = &model->shard[shard].record[lsn - 1];
    bool push = record->kind == DP_RECORD_PUSH || record->kind == DP_RECORD_KEPT_PUSH;
    if (!push || sim_is_strange(model->world, record->stream))
        return;
    if (model->world->plan.leased) {
        sim_model_leased_push(model, shard, lsn);
        return;
    }
    uint64_t *next = next_of(model, shard, record->stream);
    pass_over_restored(model, shard, record->stream, next);
    bool gaps = model->world->plan.away || (!new &&sim_has_backups(&model->world->plan));
    /* (Steps in which a member was away are left out: model_steps.h says which.) */
    if (gaps ? record->number < *next : record->number != *next)
        sim_fail(model->world,
                 "shard %" PRIu32 " appended push %" PRIu64 " of stream %016" PRIx64 " as lsn %" PRIu64
                 ", %s: %" PRIu64 " would be next",
                 shard, record->number, record->stream, lsn,
                 record->number < *next ? "a second time" : "before one that came earlier", *next);
    *next = record->number + 1;
}

/* Is it what a worker sent? */
static void check_contents(struct sim_model *model, uint32_t shard, const struct sim_record *record)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < model->request.sections; s++) {
        const struct dp_section *section = &model->request.section[s];
        uint32_t t = sim_model_table_of(model, section->table);
        size_t bytes = model->world->plan.table[t].dim * dp_value_bytes(section->type);
        for (uint32_t i = 0; i < section->rows; i++)
            sum += sim_model_row_sum(t, dp_unmix(dp_load_u64le((const char *)section->keys + (size_t)i * 8)),
                                     (const char *)section->values + (size_t)i * bytes, bytes);
    }
    for (uint32_t i = model->sents; i-- > 0;)
        if (model->sent[i].stream == record->stream && model->sent[i].number == record->number &&
            model->sent[i].sum[shard] == sum)
            return;
    sim_fail(model->world,
             "shard %" PRIu32 ": push %" PRIu64 " of stream %016" PRIx64 " is not what was sent", shard,
             record->number, record->stream);
}

uint64_t sim_model_find(const struct sim_model *model, uint32_t shard, uint64_t stream, uint64_t number)
{
    const struct sim_model_shard *s = &model->shard[shard];
    for (uint64_t lsn = s->last; lsn > 0; lsn--)
        if (s->record[lsn - 1].stream == stream && s->record[lsn - 1].number == number &&
            !s->record[lsn - 1].again && s->record[lsn - 1].kind != DP_RECORD_VIEW &&
            s->record[lsn - 1].kind != DP_RECORD_CLOSE)
            return lsn;
    return 0;
}

/* Once, however long ago, and whatever was forgotten since. */
static void check_strange(struct sim_model *model, uint32_t shard, const struct sim_record *record)
{
    uint64_t before = sim_model_find(model, shard, record->stream, record->number);
    if (!sim_may_be_let_in(record->stream) || model->request.sections > 0 || before > 0)
        sim_fail(model->world,
                 "shard %" PRIu32 " appended a stranger's push %" PRIu64 " of stream %016" PRIx64
                 "%s (lsn %" PRIu64 ")",
                 shard, record->number, record->stream, before ? " a second time" : ", which is nobody's",
                 before);
}

/* The same weights, of the same rows, as in the step's close. */
static void check_old(struct sim_model *model, uint32_t shard, const struct sim_record *close)
{
    struct dp_request *first = calloc(1, sizeof *first);
    struct dp_record head;
    struct dp_error err = {0};
    DP_ASSERT(first);
    bool same = dp_record_decode(close->data, close->bytes, &head, first, &err) == DP_OK &&
                first->sections == model->request.sections;
    for (uint32_t s = 0; same && s < first->sections; s++) {
        const struct dp_section *a = &first->section[s], *b = &model->request.section[s];
        same = a->table == b->table && a->rows == b->rows && a->type == b->type &&
               a->value_bytes == b->value_bytes && memcmp(a->keys, b->keys, (size_t)a->rows * 8) == 0 &&
               memcmp(a->values, b->values, a->value_bytes) == 0;
    }
    free(first);
    if (!same)
        sim_fail(model->world,
                 "shard %" PRIu32 " appends other weights from before step %" PRIu64 " than its close has",
                 shard, head.step);
}

/* It is decoded into model->request. */
static bool is_again(struct sim_model *model, uint32_t shard, const struct sim_record *record,
                     const struct dp_record *head)
{
    const struct sim_model_shard *s = &model->shard[shard];
    if (head->kind == DP_RECORD_KEPT_PUSH) {
        uint64_t lsn = sim_model_find(model, shard, record->stream, record->number);
        const struct sim_record *before = lsn > 0 ? &s->record[lsn - 1] : NULL;
        return before && before->bytes == record->bytes &&
               memcmp(before->data, record->data, record->bytes) == 0;
    }
    if (head->kind != DP_RECORD_CLOSE || head->members > 0 || (s->steps.close == 0 && s->base == 0))
        return false;
    if (s->steps.close == 0) /* its close was before a restore */
        return true;
    check_old(model, shard, &s->record[s->steps.close - 1]);
    return true;
}

void sim_model_count_restored(struct sim_model *model, uint32_t shard, const struct sim_record *record)
{
    uint64_t *next = next_of(model, shard, record->stream);
    *next += record->number == *next;
}

void sim_model_fold(struct sim_model *model, uint32_t shard, uint64_t lsn, const struct dp_record *head,
                    uint64_t durable)
{
    const struct sim_record_place place = {shard, lsn, durable};
    bool new = durable != UINT64_MAX;
    if (model->shard[shard].record[lsn - 1].again) {
        sim_steps_again(model->world, &model->shard[shard].steps, head, place);
        return;
    }
    count_record(model, shard, lsn, new);
    sim_steps_fold(model->world, &model->members, &model->shard[shard].steps, head, &model->request, place);
    if (head->kind == DP_RECORD_PUSH)
        apply_push(model, lsn, new);
    else if (head->kind == DP_RECORD_CLOSE)
        sim_model_close(model, shard, lsn, new);
}

static void check_push(struct sim_model *model, uint32_t shard, const struct sim_record *record,
                       const struct dp_record *head)
{
    if (head->refused != DP_OK)
        sim_fail(model->world,
                 "shard %" PRIu32 " refused push %" PRIu64 " of stream %016" PRIx64 " for good: %s", shard,
                 record->number, record->stream, dp_status_name((int)head->refused));
    if (sim_is_strange(model->world, record->stream))
        check_strange(model, shard, record);
    else if ((head->members > 0) != sim_has_members(&model->world->plan))
        sim_fail(model->world, "shard %" PRIu32 ": push %" PRIu64 " of stream %016" PRIx64 " is %s member's",
                 shard, record->number, record->stream, head->members > 0 ? "a" : "no");
    else if (head->kind == DP_RECORD_PUSH && model->world->plan.mode == DP_SYNC) {
        if (model->request.sections > 0)
            sim_fail(model->world,
                     "shard %" PRIu32 " drops push %" PRIu64 " of stream %016" PRIx64 " with its rows", shard,
                     record->number, record->stream);
    } else
        check_contents(model, shard, record);
}

static void say_record(const struct sim_model *model, uint32_t shard, uint64_t lsn,
                       const struct dp_record *head)
{
    const struct sim_record *record = &model->shard[shard].record[lsn - 1];
    if (head->kind == DP_RECORD_VIEW)
        sim_say(model->world, "s%" PRIu32 ": lsn %" PRIu64 " is view %" PRIu64, shard, lsn,
                model->shard[shard].steps.view);
    else if (head->kind == DP_RECORD_CLOSE)
        sim_say(model->world, "s%" PRIu32 ": lsn %" PRIu64 " closes step %" PRIu64, shard, lsn, head->step);
    else
        sim_say(model->world, "s%" PRIu32 ": lsn %" PRIu64 " is push %" PRIu64 " of %016" PRIx64 "%s", shard,
                lsn, record->number, record->stream,
                record->again                       ? ", again"
                : head->kind == DP_RECORD_KEPT_PUSH ? ", kept"
                                                    : "");
}

void sim_model_appended(struct sim_model *model, uint32_t shard, uint64_t lsn, uint64_t durable,
                        const struct dp_journal_piece *pieces, uint32_t count)
{
    struct sim_model_shard *s = &model->shard[shard];
    struct sim_record record = {0};
    struct dp_record head;
    if (lsn != s->last + 1)
        sim_fail(model->world, "shard %" PRIu32 " appended lsn %" PRIu64 " after %" PRIu64, shard, lsn,
                 s->last);
    for (uint32_t i = 0; i < count; i++)
        record.bytes += pieces[i].bytes;
    record.data = sim_resized(NULL, record.bytes);
    for (size_t i = 0, at = 0; i < count; at += pieces[i++].bytes)
        memcpy(record.data + at, pieces[i].data, pieces[i].bytes);
    sim_model_decode(model, &record, &head);
    record.kind = head.kind;
    record.stream = model->request.stream;
    record.number = model->request.number;
    record.step = head.step;
    record.closes = head.kind == DP_RECORD_CLOSE && head.members > 0;
    record.again = is_again(model, shard, &record, &head);
    sim_counts_add(SIM_AGAIN, record.again);
    if (!record.again && (head.kind == DP_RECORD_PUSH || head.kind == DP_RECORD_KEPT_PUSH))
        check_push(model, shard, &record, &head);
    if (s->last == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        s->record = sim_resized(s->record, s->room * sizeof s->record[0]);
    }
    s->record[s->last++] = record;
    sim_model_fold(model, shard, lsn, &head, durable);
    if (head.kind == DP_RECORD_VIEW)
        s->record[lsn - 1].view = s->steps.view;
    say_record(model, shard, lsn, &head);
}

void sim_model_replayed(struct sim_model *model, uint32_t shard, uint64_t lsn, const void *record,
                        size_t bytes)
{
    const struct sim_model_shard *s = &model->shard[shard];
    if (lsn <= s->base) /* compared by its rows (model_image.h) */
        return;
    if (lsn > s->last || s->record[lsn - 1].bytes != bytes ||
        memcmp(s->record[lsn - 1].data, record, bytes) != 0)
        sim_fail(model->world, "shard %" PRIu32 " replays a record %" PRIu64 " that it never appended%s",
                 shard, lsn, lsn > s->last ? " (its last one is before that)" : "");
}

void sim_model_opened(struct sim_model *model, uint32_t shard, uint64_t last)
{
    struct sim_model_shard *s = &model->shard[shard];
    if (last < s->answered)
        sim_fail(model->world, "shard %" PRIu32 " lost what it had answered: lsn %" PRIu64 " of %" PRIu64,
                 shard, last + 1, s->answered);
    if (last > s->last)
        sim_fail(model->world, "shard %" PRIu32 " has %" PRIu64 " records, %" PRIu64 " were appended", shard,
                 last, s->last);
    if (last == s->last)
        return;
    while (s->last > last)
        free(s->record[--s->last].data);
    sim_model_rewind(model, shard);
    for (uint64_t lsn = s->base + 1; lsn <= last; lsn++) {
        struct dp_record head;
        sim_model_decode(model, &s->record[lsn - 1], &head);
        sim_model_fold(model, shard, lsn, &head, UINT64_MAX);
    }
    for (uint32_t t = 0; t < model->world->plan.tables; t++)
        for (uint32_t k = 0; k < model->world->plan.keys; k++) {
            struct sim_history *history = &model->history[t][k];
            if (dp_shard_of(dp_mix(k), model->world->plan.servers) == shard && history->values > 0 &&
                history->value[history->values - 1].lsn != sim_history_lsn(history))
                sim_history_add(history, &model->world->plan.table[t], k);
        }
}

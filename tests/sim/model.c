#include "tests/sim/model.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/range.h"
#include "common/model/row.h"
#include "server/durable/record.h"
#include "tests/sim/history.h"
#include "tests/sim/stranger.h"

#include <inttypes.h>
#include <stdlib.h>

#define STREAMS 64u
#define ASKED   256u

struct record {
    uint64_t stream, number;
    size_t bytes;
    char *data;
};

/* What a worker sent under an id; after its death perhaps once more, with other gradients. */
struct sent {
    uint64_t stream, number, sum[SIM_SERVERS_MAX]; /* of its rows on each shard */
};

/* A request that a shard got. */
struct asked {
    uint64_t session, id, stream, number;
    enum dp_request_kind kind;
    enum dp_value_type type;
    uint32_t keys;
    uint32_t *key; /* of a pull: table << 16 | key */
};

struct shard {
    struct record *record; /* [lsn - 1] */
    uint64_t last, room, answered;
    struct {
        uint64_t stream, next;
    } stream[STREAMS];
    uint32_t streams;
    struct asked asked[ASKED]; /* a ring */
    uint64_t asks;
};

struct sim_model {
    struct sim_world *world;
    uint32_t id[SIM_TABLES_MAX];
    struct dp_optimizer *optimizer[SIM_TABLES_MAX];
    struct sim_history history[SIM_TABLES_MAX][SIM_KEYS_MAX];
    struct shard shard[SIM_SERVERS_MAX];
    struct sent *sent;
    struct {
        uint64_t stream, number;
    } * acknowledged;
    uint32_t sents, sents_room, acks, acks_room;
    struct dp_request request; /* scratch */
    struct dp_reply reply;
};

struct sim_model *sim_model_new(struct sim_world *world)
{
    struct sim_model *model = calloc(1, sizeof *model);
    struct dp_error err = {0};
    DP_ASSERT(model);
    model->world = world;
    for (uint32_t t = 0; t < world->plan.tables; t++) {
        model->id[t] = dp_table_id(world->plan.table[t].name);
        if (dp_optimizer_new(&world->plan.table[t], DP_FORM_PORTABLE, &model->optimizer[t], &err) != DP_OK)
            sim_fail(world, "%s", err.text);
    }
    return model;
}

void sim_model_free(struct sim_model **out)
{
    struct sim_model *model = *out;
    for (uint32_t t = 0; t < SIM_TABLES_MAX; t++) {
        dp_optimizer_free(&model->optimizer[t]);
        for (uint32_t k = 0; k < SIM_KEYS_MAX; k++)
            sim_history_clear(&model->history[t][k]);
    }
    for (uint32_t s = 0; s < SIM_SERVERS_MAX; s++) {
        for (uint64_t i = 0; i < model->shard[s].last; i++)
            free(model->shard[s].record[i].data);
        free(model->shard[s].record);
        sim_model_closed(model, s);
    }
    free(model->sent);
    free(model->acknowledged);
    free(model);
    *out = NULL;
}

static uint32_t table_of(const struct sim_model *model, uint32_t id)
{
    for (uint32_t t = 0; t < model->world->plan.tables; t++)
        if (model->id[t] == id)
            return t;
    sim_fail(model->world, "table %08" PRIx32 " is none of the plan's", id);
}

static uint32_t key_of(const struct sim_model *model, uint64_t mixed)
{
    uint64_t key = dp_unmix(mixed);
    if (key >= model->world->plan.keys)
        sim_fail(model->world, "key %" PRIu64 " is none of the plan's", key);
    return (uint32_t)key;
}

/* ---- rows */

static void decode(struct sim_model *model, const struct record *record, uint32_t dims[DP_SECTIONS_MAX],
                   enum dp_status *refused)
{
    struct dp_error err = {0};
    struct dp_record decoded;
    if (dp_record_decode(record->data, record->bytes, &decoded, &model->request, &err) != DP_OK)
        sim_fail(model->world, "%s", err.text);
    if (decoded.kind != DP_RECORD_PUSH)
        sim_fail(model->world, "a record of kind %d, which is no push", (int)decoded.kind);
    *refused = decoded.refused;
    memcpy(dims, decoded.dims, sizeof decoded.dims);
}

static void apply_row(struct sim_model *model, const struct dp_section *section, uint32_t i, uint64_t lsn)
{
    float wide[256];
    uint32_t t = table_of(model, section->table);
    uint32_t k = key_of(model, dp_load_u64le((const char *)section->keys + (size_t)i * 8));
    const struct dp_table_spec *spec = &model->world->plan.table[t];
    const char *gradient =
        (const char *)section->values + (size_t)i * spec->dim * dp_value_bytes(section->type);
    if (section->type == DP_BF16)
        dp_bf16_get(gradient, wide, spec->dim);
    else
        memcpy(wide, gradient, spec->dim * sizeof(float));
    sim_history_apply(&model->history[t][k], &(struct sim_history_table){spec, model->optimizer[t]}, k, wide,
                      model->request.rate, lsn);
}

static void apply(struct sim_model *model, const struct record *record, uint64_t lsn, bool new)
{
    uint32_t dims[DP_SECTIONS_MAX];
    enum dp_status refused;
    decode(model, record, dims, &refused);
    for (uint32_t s = 0; s < model->request.sections; s++) {
        const struct dp_section *section = &model->request.section[s];
        for (uint32_t i = 0; i < section->rows; i++) {
            uint32_t t = table_of(model, section->table);
            uint32_t k = key_of(model, dp_load_u64le((const char *)section->keys + (size_t)i * 8));
            const struct dp_table_spec *spec = &model->world->plan.table[t];
            sim_history_touch(&model->history[t][k], spec, k);
            apply_row(model, section, i, lsn);
            if (new)
                sim_history_add(&model->history[t][k], spec, k);
        }
    }
}

static uint64_t row_sum(uint32_t table, uint64_t key, const void *values, size_t bytes)
{
    uint64_t sum = dp_mix(key * 64 + table + 1);
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ ((const unsigned char *)values)[i]) * 0x100000001b3u;
    return dp_mix(sum);
}

/* ---- records */

static uint64_t *next_of(struct sim_model *model, uint32_t shard, uint64_t stream)
{
    struct shard *s = &model->shard[shard];
    for (uint32_t i = 0; i < s->streams; i++)
        if (s->stream[i].stream == stream)
            return &s->stream[i].next;
    DP_ASSERT(s->streams < STREAMS);
    s->stream[s->streams].stream = stream;
    s->stream[s->streams].next = 0;
    return &s->stream[s->streams++].next;
}

static void count_record(struct sim_model *model, uint32_t shard, uint64_t lsn)
{
    const struct record *record = &model->shard[shard].record[lsn - 1];
    if (sim_is_strange(model->world, record->stream))
        return;
    uint64_t *next = next_of(model, shard, record->stream);
    if (record->number != *next)
        sim_fail(model->world,
                 "shard %" PRIu32 " appended push %" PRIu64 " of stream %016" PRIx64 " as lsn %" PRIu64
                 ", %s: %" PRIu64 " would be next",
                 shard, record->number, record->stream, lsn,
                 record->number < *next ? "a second time" : "before one that came earlier", *next);
    (*next)++;
}

/* Is it what a worker sent? */
static void check_contents(struct sim_model *model, uint32_t shard, const struct record *record)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < model->request.sections; s++) {
        const struct dp_section *section = &model->request.section[s];
        uint32_t t = table_of(model, section->table);
        size_t bytes = model->world->plan.table[t].dim * dp_value_bytes(section->type);
        for (uint32_t i = 0; i < section->rows; i++)
            sum += row_sum(t, dp_unmix(dp_load_u64le((const char *)section->keys + (size_t)i * 8)),
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

static uint64_t find_record(const struct sim_model *model, uint32_t shard, uint64_t stream, uint64_t number)
{
    const struct shard *s = &model->shard[shard];
    for (uint64_t lsn = s->last; lsn > 0; lsn--)
        if (s->record[lsn - 1].stream == stream && s->record[lsn - 1].number == number)
            return lsn;
    return 0;
}

/* Once, however long ago, and whatever was forgotten since. */
static void check_strange(struct sim_model *model, uint32_t shard, const struct record *record)
{
    uint64_t before = find_record(model, shard, record->stream, record->number);
    if (!sim_may_be_let_in(record->stream) || model->request.sections > 0 || before > 0)
        sim_fail(model->world,
                 "shard %" PRIu32 " appended a stranger's push %" PRIu64 " of stream %016" PRIx64
                 "%s (lsn %" PRIu64 ")",
                 shard, record->number, record->stream, before ? " a second time" : ", which is nobody's",
                 before);
}

void sim_model_appended(struct sim_model *model, uint32_t shard, uint64_t lsn,
                        const struct dp_journal_piece *pieces, uint32_t count)
{
    struct shard *s = &model->shard[shard];
    struct record record = {0};
    uint32_t dims[DP_SECTIONS_MAX];
    enum dp_status refused;
    if (lsn != s->last + 1)
        sim_fail(model->world, "shard %" PRIu32 " appended lsn %" PRIu64 " after %" PRIu64, shard, lsn,
                 s->last);
    for (uint32_t i = 0; i < count; i++)
        record.bytes += pieces[i].bytes;
    record.data = sim_resized(NULL, record.bytes);
    for (size_t i = 0, at = 0; i < count; at += pieces[i++].bytes)
        memcpy(record.data + at, pieces[i].data, pieces[i].bytes);
    decode(model, &record, dims, &refused);
    record.stream = model->request.stream;
    record.number = model->request.number;
    if (refused != DP_OK)
        sim_fail(model->world,
                 "shard %" PRIu32 " refused push %" PRIu64 " of stream %016" PRIx64 " for good: %s", shard,
                 record.number, record.stream, dp_status_name((int)refused));
    if (sim_is_strange(model->world, record.stream))
        check_strange(model, shard, &record);
    else
        check_contents(model, shard, &record);
    if (s->last == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        s->record = sim_resized(s->record, s->room * sizeof s->record[0]);
    }
    s->record[s->last++] = record;
    count_record(model, shard, lsn);
    apply(model, &record, lsn, true);
    sim_say(model->world, "s%" PRIu32 ": lsn %" PRIu64 " is push %" PRIu64 " of %016" PRIx64, shard, lsn,
            record.number, record.stream);
}

void sim_model_replayed(struct sim_model *model, uint32_t shard, uint64_t lsn, const void *record,
                        size_t bytes)
{
    const struct shard *s = &model->shard[shard];
    if (lsn > s->last || s->record[lsn - 1].bytes != bytes ||
        memcmp(s->record[lsn - 1].data, record, bytes) != 0)
        sim_fail(model->world, "shard %" PRIu32 " replays a record %" PRIu64 " that it never appended%s",
                 shard, lsn, lsn > s->last ? " (its last one is before that)" : "");
}

void sim_model_opened(struct sim_model *model, uint32_t shard, uint64_t last)
{
    struct shard *s = &model->shard[shard];
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
    s->streams = 0;
    for (uint32_t t = 0; t < model->world->plan.tables; t++)
        for (uint32_t k = 0; k < model->world->plan.keys; k++)
            if (dp_shard_of(dp_mix(k), model->world->plan.servers) == shard) {
                free(model->history[t][k].row);
                model->history[t][k].row = NULL;
            }
    for (uint64_t lsn = 1; lsn <= last; lsn++) {
        count_record(model, shard, lsn);
        apply(model, &s->record[lsn - 1], lsn, false);
    }
    for (uint32_t t = 0; t < model->world->plan.tables; t++)
        for (uint32_t k = 0; k < model->world->plan.keys; k++) {
            struct sim_history *history = &model->history[t][k];
            if (dp_shard_of(dp_mix(k), model->world->plan.servers) == shard && history->values > 0 &&
                history->value[history->values - 1].lsn != sim_history_lsn(history))
                sim_history_add(history, &model->world->plan.table[t], k);
        }
}

/* ---- answers */

void sim_model_asked(struct sim_model *model, uint32_t shard, const struct dp_message *message)
{
    struct shard *s = &model->shard[shard];
    struct dp_request *request = &model->request;
    struct dp_error err = {0};
    if (dp_request_decode(message, request, &err) != DP_OK)
        sim_fail(model->world, "a worker's request: %s", err.text);
    struct asked *asked = &s->asked[s->asks++ % ASKED];
    free(asked->key);
    *asked = (struct asked){.session = request->session,
                            .id = request->id,
                            .stream = request->stream,
                            .number = request->number,
                            .kind = request->kind};
    for (uint32_t i = 0; i < request->sections && request->kind == DP_REQUEST_PULL; i++) {
        const struct dp_section *section = &request->section[i];
        asked->type = section->type;
        asked->key = sim_resized(asked->key, (asked->keys + section->rows) * sizeof asked->key[0]);
        for (uint32_t r = 0; r < section->rows; r++)
            asked->key[asked->keys++] =
                table_of(model, section->table) << 16 |
                key_of(model, dp_load_u64le((const char *)section->keys + (size_t)r * 8));
    }
}

static void check_pull(struct sim_model *model, uint32_t shard, const struct asked *asked,
                       const struct dp_message *answer)
{
    float scratch[256];
    char halves[512];
    uint32_t frame = 0, before = UINT32_MAX;
    size_t at = 0;
    for (uint32_t i = 0; i < asked->keys; i++) {
        uint32_t t = asked->key[i] >> 16, k = asked->key[i] & 0xffff;
        size_t bytes = model->world->plan.table[t].dim * dp_value_bytes(asked->type);
        if (t != before) { /* a section */
            while (++frame < answer->frames && answer->frame[frame].size == 0)
                ;
            before = t;
            at = 0;
        }
        const void *want =
            sim_history_weights(&model->history[t][k], &model->world->plan.table[t], k, scratch);
        if (asked->type == DP_BF16) {
            dp_bf16_put(want, halves, model->world->plan.table[t].dim);
            want = halves;
        }
        if (frame >= answer->frames || at + bytes > answer->frame[frame].size ||
            memcmp((const char *)answer->frame[frame].data + at, want, bytes) != 0)
            sim_fail(model->world,
                     "shard %" PRIu32
                     " answers a pull with other values than its records give: table %" PRIu32
                     ", key %" PRIu32 " (lsn %" PRIu64 ")",
                     shard, t, k, sim_history_lsn(&model->history[t][k]));
        at += bytes;
    }
}

void sim_model_answered(struct sim_model *model, uint32_t shard, const struct dp_message *answer)
{
    struct shard *s = &model->shard[shard];
    struct dp_reply *reply = &model->reply;
    struct dp_error err = {0};
    const struct asked *asked = NULL;
    if (dp_reply_decode(answer, reply, &err) != DP_OK)
        sim_fail(model->world, "shard %" PRIu32 "'s answer: %s", shard, err.text);
    sim_say(model->world, "s%" PRIu32 ": answers %" PRIu64 " of session %" PRIu64 ": kind %d %s%s %s", shard,
            reply->id, reply->session, (int)reply->kind, dp_status_name((int)reply->status),
            reply->repeated ? " repeated" : "", reply->reason);
    for (uint64_t i = s->asks; i > 0 && i + ASKED > s->asks && !asked; i--)
        if (s->asked[(i - 1) % ASKED].id == reply->id && s->asked[(i - 1) % ASKED].session == reply->session)
            asked = &s->asked[(i - 1) % ASKED];
    if (asked && reply->kind == DP_REPLY_PULLED && reply->status == DP_OK)
        check_pull(model, shard, asked, answer);
    if (asked && reply->kind == DP_REPLY_PUSHED && reply->status == DP_OK) {
        uint64_t lsn = find_record(model, shard, asked->stream, asked->number);
        if (lsn == 0)
            sim_fail(model->world,
                     "shard %" PRIu32 " answers push %" PRIu64 " of stream %016" PRIx64
                     ", which it does not have",
                     shard, asked->number, asked->stream);
        s->answered = lsn > s->answered ? lsn : s->answered;
    }
    dp_reply_clear(reply);
}

void sim_model_closed(struct sim_model *model, uint32_t shard)
{
    struct shard *s = &model->shard[shard];
    for (uint32_t i = 0; i < ASKED; i++) {
        free(s->asked[i].key);
        s->asked[i] = (struct asked){0};
    }
    s->asks = 0;
}

void sim_model_drained(struct sim_model *model, uint32_t shard, const struct sim_store *store)
{
    const struct sim_world *world = model->world;
    uint32_t rows = 0;
    for (uint32_t t = 0; t < world->plan.tables; t++)
        for (uint32_t k = 0; k < world->plan.keys; k++) {
            size_t bytes = 0;
            const void *row = model->history[t][k].row;
            if (dp_shard_of(dp_mix(k), world->plan.servers) != shard || !row)
                continue;
            const void *stored = sim_store_row(store, (struct dp_store_key){model->id[t], dp_mix(k)}, &bytes);
            rows++;
            if (!stored || bytes != dp_row_bytes(&world->plan.table[t]) || memcmp(stored, row, bytes) != 0)
                sim_fail(world,
                         "shard %" PRIu32 ", table %" PRIu32 ", key %" PRIu32
                         ": the store's row, of lsn %" PRIu64
                         ", is not what its records give, of lsn %" PRIu64,
                         shard, t, k, stored ? dp_row_lsn(stored) : 0, dp_row_lsn(row));
        }
    if (rows != sim_store_rows(store))
        sim_fail(world, "shard %" PRIu32 ": the store has %" PRIu32 " rows, its records give %" PRIu32, shard,
                 sim_store_rows(store), rows);
}

/* ---- the workers' side */

void sim_model_sends(struct sim_model *model, uint64_t stream, uint64_t number,
                     const struct sim_sent *sections, uint32_t count)
{
    if (model->sents == model->sents_room) {
        model->sents_room = model->sents_room ? 2 * model->sents_room : 128;
        model->sent = sim_resized(model->sent, model->sents_room * sizeof model->sent[0]);
    }
    struct sent *sent = &model->sent[model->sents++];
    *sent = (struct sent){.stream = stream, .number = number};
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
                row_sum(sections[s].table, key, values, dim * (model->world->plan.bf16 ? 2 : 4));
        }
    }
}

void sim_model_acknowledged(struct sim_model *model, uint64_t stream, uint64_t number)
{
    uint32_t dims[DP_SECTIONS_MAX];
    enum dp_status refused;
    for (uint32_t shard = 0; shard < model->world->plan.servers; shard++) {
        uint64_t lsn = find_record(model, shard, stream, number);
        if (lsn == 0)
            sim_fail(model->world,
                     "push %" PRIu64 " of stream %016" PRIx64 " was acknowledged, and shard %" PRIu32
                     " does not have it",
                     number, stream, shard);
        decode(model, &model->shard[shard].record[lsn - 1], dims, &refused);
        for (uint32_t s = 0; s < model->request.sections; s++)
            for (uint32_t i = 0; i < model->request.section[s].rows; i++) {
                const struct dp_section *section = &model->request.section[s];
                uint32_t t = table_of(model, section->table);
                uint32_t k = key_of(model, dp_load_u64le((const char *)section->keys + (size_t)i * 8));
                sim_history_acknowledge(&model->history[t][k], lsn);
            }
    }
    if (model->acks == model->acks_room) {
        model->acks_room = model->acks_room ? 2 * model->acks_room : 128;
        model->acknowledged =
            sim_resized(model->acknowledged, model->acks_room * sizeof model->acknowledged[0]);
    }
    model->acknowledged[model->acks].stream = stream;
    model->acknowledged[model->acks++].number = number;
}

void sim_model_told(struct sim_model *model, uint64_t stream, uint64_t count)
{
    for (uint32_t shard = 0; shard < model->world->plan.servers && count > 0; shard++) {
        uint64_t lsn = find_record(model, shard, stream, count - 1); /* those before it have lower ones */
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

const void *sim_model_row(const struct sim_model *model, uint32_t table, uint64_t key)
{
    return model->history[table][key].row;
}

/* ---- the end */

/* Tables of SGD that start at 0 and are pushed integers: minus the sum of what was pushed. */
static void check_sums(struct sim_model *model, uint32_t t)
{
    static double sum[SIM_KEYS_MAX];
    uint32_t dims[DP_SECTIONS_MAX];
    enum dp_status refused;
    memset(sum, 0, sizeof sum);
    for (uint32_t shard = 0; shard < model->world->plan.servers; shard++)
        for (uint64_t lsn = 1; lsn <= model->shard[shard].last; lsn++) {
            decode(model, &model->shard[shard].record[lsn - 1], dims, &refused);
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
                    sum[key_of(model, dp_load_u64le((const char *)section->keys + (size_t)i * 8))] +=
                        (double)(first * model->request.rate);
                }
            }
        }
    for (uint32_t k = 0; k < model->world->plan.keys; k++)
        if (model->history[t][k].row && (double)dp_row_weights_const(model->history[t][k].row)[0] != -sum[k])
            sim_fail(model->world, "table %" PRIu32 ", key %" PRIu32 ": %g, but %g was pushed", t, k,
                     (double)dp_row_weights_const(model->history[t][k].row)[0], sum[k]);
}

void sim_model_end(struct sim_model *model)
{
    for (uint32_t i = 0; i < model->acks; i++)
        for (uint32_t shard = 0; shard < model->world->plan.servers; shard++)
            if (find_record(model, shard, model->acknowledged[i].stream, model->acknowledged[i].number) == 0)
                sim_fail(model->world,
                         "push %" PRIu64 " of stream %016" PRIx64 " was acknowledged, and shard %" PRIu32
                         " has lost it",
                         model->acknowledged[i].number, model->acknowledged[i].stream, shard);
    for (uint32_t t = 0; t < model->world->plan.tables; t++)
        if (sim_is_integers(&model->world->plan.table[t]))
            check_sums(model, t);
}

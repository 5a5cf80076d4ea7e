#include "tests/unit/server/shard/bed.h"

#include "common/model/mix.h"
#include "server/cache/row_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bed_now(void *self)
{
    return ((struct bed *)self)->now_ns;
}

static uint64_t bed_wall(void *self)
{
    const struct bed *bed = self;
    return bed->wall_s * UINT64_C(1000000000) + bed->now_ns;
}

static void take_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct bed *bed = context;
    struct dp_error err = {0};
    assert_int_equal(to->size, 5);
    struct bed_reply *out = &bed->reply[bed->replies++ % BED_REPLIES];
    bed->answered++;
    memset(out, 0, sizeof *out);
    assert_int_equal(dp_reply_decode(*message, &out->reply, &err), DP_OK);
    bool has_values = out->reply.kind == DP_REPLY_PULLED || out->reply.kind == DP_REPLY_POSITIONS;
    for (uint32_t f = 1; f < (*message)->frames && has_values; f++) {
        size_t n = (*message)->frame[f].size / 4;
        assert_true(out->values + n <= 1024);
        memcpy(out->value + out->values, (*message)->frame[f].data, n * 4);
        out->values += n;
    }
    for (uint32_t f = 1, at = 0; f < (*message)->frames && out->reply.kind == DP_REPLY_CHECKPOINT; f++) {
        const struct dp_frame *frame = &(*message)->frame[f];
        assert_true(at + frame->size <= sizeof out->bytes);
        memcpy(out->bytes + at, frame->data, frame->size);
        out->frame_bytes[f - 1] = (uint32_t)frame->size;
        at += (uint32_t)frame->size;
    }
    out->tables = out->reply.report.tables;
    out->table_rows = out->tables ? out->reply.report.table[0].rows : 0;
    out->histograms = out->reply.report.histograms;
    if (out->histograms)
        memcpy(out->histogram, out->reply.report.histogram, out->histograms * sizeof out->histogram[0]);
    dp_reply_clear(&out->reply);
    dp_message_free(message);
}

static struct dp_store open_fake(void *context)
{
    struct bed *bed = context;
    return rest_open(&bed->rest, bed->fake);
}

void bed_init(struct bed *bed, uint32_t jobs_max)
{
    *bed = (struct bed){.host = {.open_store = open_fake,
                                 .store_context = bed,
                                 .options = {.shards = 1,
                                             .cluster = BED_CLUSTER,
                                             .generation = BED_GENERATION,
                                             .history = BED_HISTORY,
                                             .boot = 99,
                                             .wall = {bed_wall, bed},
                                             .cache_bytes = 64u << 20,
                                             .requests_max = 100,
                                             .clock = {bed_now, bed},
                                             .reply = take_reply,
                                             .reply_context = bed}},
                        .fake = dp_fake_store_new(jobs_max),
                        .now_ns = 1,
                        .next_id = 1,
                        .timeout_ms = 1000,
                        .reply = calloc(BED_REPLIES, sizeof *bed->reply)};
    assert_non_null(bed->reply);
}

void bed_journal(struct bed *bed, uint64_t seed)
{
    shard_bed_journal(&bed->host, dp_sim_disk_new(seed), DP_DURABILITY_MACHINE, 8u << 20, 32u << 20);
}

void bed_open_shard(struct bed *bed)
{
    struct dp_error err = {0};
    if (shard_bed_open(&bed->host, &err) != DP_OK)
        fail_msg("%s", err.text);
}

void bed_clear(struct bed *bed)
{
    dp_sim_disk_free(&bed->host.sim);
    dp_fake_store_free(&bed->fake);
    free(bed->reply);
}

void bed_open(struct bed *bed, uint32_t index, uint32_t shards)
{
    bed_init(bed, 16);
    bed->host.options.index = index;
    bed->host.options.shards = shards;
    bed_open_shard(bed);
}

void bed_close(struct bed *bed)
{
    dp_fake_store_hold(bed->fake, false);
    bed_turn(bed);
    shard_bed_close(&bed->host);
    bed_clear(bed);
}

enum dp_status bed_drained(struct bed *bed, struct dp_error *err)
{
    enum dp_status st = DP_AGAIN;
    for (uint32_t i = 0; i < 10000 && st == DP_AGAIN; i++) {
        bed_turn(bed);
        st = dp_shard_drained(bed->host.shard, err);
    }
    return st;
}

enum dp_status bed_drain(struct bed *bed, struct dp_error *err)
{
    dp_shard_drain(bed->host.shard);
    return bed_drained(bed, err);
}

void bed_restart_on(struct bed *bed, const struct dp_store_mark *mark)
{
    struct dp_error err = {0};
    if (bed_drain(bed, &err) != DP_OK)
        fail_msg("%s", err.text);
    shard_bed_close(&bed->host);
    if (mark)
        dp_fake_store_put_mark(bed->fake, mark);
    bed_open_shard(bed);
}

void bed_restart(struct bed *bed)
{
    bed_restart_on(bed, NULL);
}

static uint64_t answers_and_operations(void *context)
{
    const struct bed *bed = context;
    return bed->answered + (bed->host.sim ? dp_sim_disk_operations(bed->host.sim) : 0);
}

void bed_turn(struct bed *bed)
{
    for (uint32_t i = 0; dp_shard_turn(bed->host.shard); i++)
        if (i == 100000)
            bed_fail(bed, "it has work for ever, after request %llu", (unsigned long long)bed->next_id);
    const char *did = rest_check(&bed->rest, bed->host.shard, answers_and_operations, bed);
    if (did)
        bed_fail(bed, "it said that nothing goes on, and did something in its next turn: %s", did);
}

bool bed_one_turn(struct bed *bed)
{
    return dp_shard_turn(bed->host.shard);
}

uint64_t bed_budget(size_t row_bytes, uint64_t n)
{
    struct dp_row_cache *cache = NULL;
    assert_int_equal(dp_row_cache_new(row_bytes, 1, dp_range_of_shard(0, 1), &cache), DP_OK);
    uint64_t bytes = dp_row_cache_charge(cache) + dp_row_cache_cost_of(cache, n, n);
    dp_row_cache_free(&cache);
    return bytes;
}

const struct bed_reply *bed_reply_to(const struct bed *bed, uint64_t id)
{
    for (uint32_t i = 0; i < bed->replies && i < BED_REPLIES; i++)
        if (bed->reply[i].reply.id == id)
            return &bed->reply[i];
    return NULL;
}

const struct bed_reply *bed_expect_at(const struct bed *bed, uint64_t id, enum dp_status wanted,
                                      const char *file, int line)
{
    const struct bed_reply *reply = bed_reply_to(bed, id);
    if (!reply || reply->reply.status != wanted) {
        (void)fprintf(stderr, "%s:%d: request %u: expected %s, got %s %s\n", file, line, (unsigned)id,
                      dp_status_name((int)wanted),
                      reply ? dp_status_name((int)reply->reply.status) : "no answer",
                      reply ? reply->reply.reason : "");
        fail();
    }
    return reply;
}

uint64_t bed_send(struct bed *bed, struct dp_request *request, struct dp_frame *frames, uint32_t count)
{
    static const struct dp_peer peer = {.size = 5, .id = {0, 1, 2, 3, 4}};
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    request->id = bed->next_id++;
    if (request->cluster == 0)
        request->cluster = BED_CLUSTER;
    if (request->generation == 0 && !bed->names.given) {
        request->generation = BED_GENERATION;
        request->history = BED_HISTORY;
    } else if (request->generation == 0) {
        request->generation = bed->names.generation;
        request->history = bed->names.history;
    }
    if (request->timeout_ms == 0)
        request->timeout_ms = bed->timeout_ms;
    if (dp_request_encode(request, frames, count, &message, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_shard_receive(bed->host.shard, &peer, &message);
    assert_null(message);
    return request->id;
}

uint64_t bed_hello(struct bed *bed, uint64_t session, uint64_t next_sequence, bool want_stream)
{
    struct dp_request request = {.kind = DP_REQUEST_HELLO,
                                 .session = session,
                                 .client = "test",
                                 .next_sequence = next_sequence,
                                 .want_stream = want_stream};
    return bed_send(bed, &request, NULL, 0);
}

uint64_t bed_create(struct bed *bed, uint64_t session, uint64_t sequence, const struct dp_table_spec *spec)
{
    struct dp_request request = {
        .kind = DP_REQUEST_CREATE_TABLE, .session = session, .sequence = sequence, .spec = *spec};
    return bed_send(bed, &request, NULL, 0);
}

uint64_t bed_pull(struct bed *bed, uint64_t session, uint64_t sequence, const char *table,
                  const uint64_t *keys, uint32_t n)
{
    struct dp_request request = {.kind = DP_REQUEST_PULL,
                                 .session = session,
                                 .sequence = sequence,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id(table), .rows = n}}};
    struct dp_frame frame = dp_frame_copy(keys, n * sizeof *keys);
    return bed_send(bed, &request, &frame, 1);
}

uint64_t bed_push(struct bed *bed, uint64_t session, uint64_t sequence, const char *table,
                  const uint64_t *keys, uint32_t n, uint32_t dim, float gradient, uint64_t stream,
                  uint64_t number)
{
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = session,
                                 .sequence = sequence,
                                 .stream = stream,
                                 .number = number,
                                 .rate = 1,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id(table), .rows = n}}};
    struct dp_frame frames[2] = {dp_frame_copy(keys, n * sizeof *keys), dp_frame_new((size_t)n * dim * 4)};
    for (size_t i = 0; i < (size_t)n * dim; i++)
        memcpy((char *)frames[1].data + i * 4, &gradient, 4);
    return bed_send(bed, &request, frames, 2);
}

void bed_meet(struct bed *bed, uint64_t session)
{
    bed_expect(bed, bed_hello(bed, session, 1, false), DP_OK);
}

void bed_make_table(struct bed *bed, uint64_t session, uint64_t sequence, const struct dp_table_spec *spec)
{
    uint64_t id = bed_create(bed, session, sequence, spec);
    bed_turn(bed);
    bed_turn(bed);
    bed_expect(bed, id, DP_OK);
}

struct dp_table_spec bed_sgd(const char *name, uint32_t dim)
{
    struct dp_table_spec spec = {.dim = dim, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    (void)snprintf(spec.name, sizeof spec.name, "%s", name);
    spec.optimizer.momentum = 0;
    return spec;
}

void bed_start_with(struct bed *bed, uint32_t jobs_max, uint64_t cache_bytes, uint32_t dim)
{
    struct dp_table_spec spec = bed_sgd("t", dim);
    bed_init(bed, jobs_max);
    bed->host.options.cache_bytes = cache_bytes;
    bed_open_shard(bed);
    bed_meet(bed, 1);
    bed_meet(bed, 2);
    bed_make_table(bed, 1, 1, &spec);
}

void bed_start(struct bed *bed)
{
    bed_start_with(bed, 16, 64u << 20, 2);
}

float bed_value(struct bed *bed, uint64_t session, uint64_t sequence, uint64_t mixed)
{
    uint64_t id = bed_pull(bed, session, sequence, "t", &mixed, 1);
    for (uint32_t turns = 0; turns < 4; turns++)
        bed_turn(bed);
    return bed_expect(bed, id, DP_OK)->value[0];
}

uint64_t bed_counter(const struct bed *bed, const char *name)
{
    return shard_bed_counter(&bed->host, name);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void bed_keys(const struct bed *bed, uint64_t first, uint32_t n, uint64_t *mixed)
{
    struct dp_range range = dp_range_of_shard(bed->host.options.index, bed->host.options.shards);
    for (uint32_t i = 0; i < n; first++)
        if (dp_range_has(range, dp_mix(first)))
            mixed[i++] = dp_mix(first);
    qsort(mixed, n, sizeof *mixed, ascending);
}

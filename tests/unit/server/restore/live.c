#include "tests/unit/server/restore/live.h"

#include "common/base/deadline.h"
#include "common/model/mix.h"
#include "common/model/stream.h"
#include "server/store/rocks_store.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void wake(void *context)
{
    (void)context; /* polled */
}

static void take_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct live *live = context;
    struct dp_error err = {0};
    assert_int_equal(dp_reply_decode(*message, &live->reply, &err), DP_OK);
    if (live->reply.kind == DP_REPLY_PULLED && (*message)->frames > 1) {
        assert_true((*message)->frame[1].size <= sizeof live->value);
        memcpy(live->value, (*message)->frame[1].data, (*message)->frame[1].size);
    }
    live->answered = true;
    dp_message_free(message);
}

static void turn_until(struct live *live, bool (*is_done)(struct live *live))
{
    uint64_t deadline = dp_now_ms() + LIVE_WAIT_MS;
    while (!is_done(live)) {
        if (dp_shard_turn(live->shard))
            continue;
        if (dp_now_ms() > deadline)
            fail_msg("a shard did not answer within %u ms", LIVE_WAIT_MS);
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

static bool is_answered(struct live *live)
{
    return live->answered;
}

static void ask(struct live *live, struct dp_request *request, struct dp_frame *frames, uint32_t count)
{
    static const struct dp_peer peer = {.size = 5, .id = {0, 1, 2, 3, 4}};
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    request->id = ++live->next_id;
    request->cluster = LIVE_CLUSTER;
    request->generation = live->id.generation;
    request->history = live->id.history;
    request->timeout_ms = LIVE_WAIT_MS;
    request->session = 1;
    assert_int_equal(dp_request_encode(request, frames, count, &message, &err), DP_OK);
    live->answered = false;
    dp_reply_clear(&live->reply);
    dp_shard_receive(live->shard, &peer, &message);
    turn_until(live, is_answered);
    if (live->reply.status != DP_OK)
        fail_msg("%s: %s", dp_status_name((int)live->reply.status), live->reply.reason);
}

static enum dp_status begin(void *context, struct dp_error *err)
{
    static const struct dp_rocks_store_options options = {.journaled = true};
    return dp_rocks_store_begin(&((struct live *)context)->store, &options, err);
}

static void open_store(struct live *live, const char *directory, bool *recovers)
{
    struct dp_error err = {0};
    char journal[700];
    const struct dp_rocks_store_options options = {.directory = directory,
                                                   .cluster = LIVE_CLUSTER,
                                                   .range = live->range,
                                                   .journaled = true,
                                                   .recovers = recovers,
                                                   .id = &live->id,
                                                   .wake = wake};
    if (dp_rocks_store_open(&options, &live->store, &err) != DP_OK)
        fail_msg("%s", err.text);
    (void)snprintf(journal, sizeof journal, "%s/journal", directory);
    assert_int_equal(dp_disk_open(journal, &live->disk, &err), DP_OK);
}

struct live *live_open(const char *directory, uint32_t index, uint32_t shards)
{
    struct live *live = calloc(1, sizeof *live);
    struct dp_error err = {0};
    bool recovers = false;
    assert_non_null(live);
    live->range = dp_range_of_shard(index, shards);
    open_store(live, directory, &recovers);
    const struct dp_shard_options options = {.index = index,
                                             .shards = shards,
                                             .cluster = LIVE_CLUSTER,
                                             .generation = live->id.generation,
                                             .history = live->id.history,
                                             .boot = 9,
                                             .wall = dp_clock_wall(),
                                             .cache_bytes = 64u << 20,
                                             .salt = 5,
                                             .store = &live->store,
                                             .journaled = true,
                                             .recovers = recovers,
                                             .journal = {.disk = &live->disk,
                                                         .durability = DP_DURABILITY_PROCESS,
                                                         .budget_bytes = 64u << 20,
                                                         .segment_bytes = 8u << 20,
                                                         .commit_thread = true,
                                                         .wake = wake},
                                             .recovered = begin,
                                             .recovered_context = live,
                                             .clock = dp_clock_real(),
                                             .reply = take_reply,
                                             .reply_context = live};
    if (dp_shard_open(&options, &live->shard, &err) != DP_OK)
        fail_msg("%s", err.text);
    struct dp_request hello = {.kind = DP_REQUEST_HELLO, .client = "test", .next_sequence = 1};
    ask(live, &hello, NULL, 0);
    return live;
}

static bool is_drained(struct live *live)
{
    struct dp_error err = {0};
    enum dp_status st = dp_shard_drained(live->shard, &err);
    if (st != DP_OK && st != DP_AGAIN)
        fail_msg("%s", err.text);
    return st == DP_OK;
}

void live_close(struct live **out, enum live_end end)
{
    struct live *live = *out;
    struct dp_error err = {0};
    *out = NULL;
    if (end == LIVE_CLEAN) {
        dp_shard_drain(live->shard);
        turn_until(live, is_drained);
        assert_int_equal(dp_rocks_store_mark_clean(&live->store, &err), DP_OK);
        assert_int_equal(dp_shard_end_journal(live->shard, &err), DP_OK);
    }
    dp_shard_close(&live->shard);
    live->store.close(live->store.self);
    dp_disk_close(&live->disk);
    dp_reply_clear(&live->reply);
    free(live);
}

void live_table(struct live *live, const struct dp_table_spec *spec)
{
    struct dp_request request = {
        .kind = DP_REQUEST_CREATE_TABLE, .sequence = ++live->sequence, .spec = *spec};
    ask(live, &request, NULL, 0);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void fill_section(struct dp_frame frames[2], const struct dp_table_spec *spec, const uint64_t *keys,
                         uint32_t n, float gradient)
{
    frames[0] = dp_frame_copy(keys, n * sizeof *keys);
    frames[1] = dp_frame_new((size_t)n * spec->dim * 4);
    for (size_t i = 0; i < (size_t)n * spec->dim; i++) { /* others for each row */
        float value = gradient + (float)(keys[i / spec->dim] % 97) / 97;
        memcpy((char *)frames[1].data + i * 4, &value, 4);
    }
}

bool live_push_tables(struct live *live, const struct dp_table_spec *const *specs, uint64_t first,
                      uint32_t count, uint64_t number, float gradient)
{
    uint64_t *keys = calloc(count + 1, sizeof keys[0]);
    uint32_t n = 0;
    for (uint64_t key = first; key < first + count; key++)
        if (dp_range_has(live->range, dp_mix(key)))
            keys[n++] = dp_mix(key);
    qsort(keys, n, sizeof keys[0], ascending);
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .sequence = ++live->sequence,
                                 .stream = LIVE_STREAM,
                                 .number = number,
                                 .rate = 1};
    struct dp_frame frames[2 * DP_SECTIONS_MAX];
    for (; n > 0 && specs[request.sections]; request.sections++) {
        const struct dp_table_spec *spec = specs[request.sections];
        request.section[request.sections] = (struct dp_section){.table = dp_table_id(spec->name), .rows = n};
        fill_section(&frames[(size_t)2 * request.sections], spec, keys, n, gradient);
    }
    ask(live, &request, frames, 2 * request.sections);
    free(keys);
    return live->reply.repeated;
}

bool live_push(struct live *live, const struct dp_table_spec *spec, uint64_t first, uint32_t count,
               uint64_t number, float gradient)
{
    const struct dp_table_spec *const one[] = {spec, NULL};
    return live_push_tables(live, one, first, count, number, gradient);
}

float live_value(struct live *live, const struct dp_table_spec *spec, uint64_t key)
{
    uint64_t mixed = dp_mix(key);
    struct dp_request request = {.kind = DP_REQUEST_PULL,
                                 .sequence = ++live->sequence,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id(spec->name), .rows = 1}}};
    struct dp_frame frame = dp_frame_copy(&mixed, sizeof mixed);
    assert_true(dp_range_has(live->range, mixed));
    ask(live, &request, &frame, 1);
    return live->value[0];
}

#include "tests/unit/server/shard/crash_bed.h"

#include "server/cache/row_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t crash_draw(struct crash *c, uint64_t below)
{
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return (c->random * 0x2545f4914f6cdd1du >> 33) % below;
}

/* ---- want of memory: while it is not 0 one allocation in so many fails, but those of the simulation */

static uint32_t short_of_memory;
static uint64_t shortage = 1;
static struct dp_disk sim_functions;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static bool is_short(void)
{
    if (short_of_memory == 0)
        return false;
    shortage = shortage * 6364136223846793005u + 1442695040888963407u;
    return (shortage >> 33) % short_of_memory == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return is_short() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_short() ? NULL : __real_calloc(count, bytes);
}

static enum dp_status open_file(void *self, const char *name, _Bool create, struct dp_file **out,
                                struct dp_error *err)
{
    uint32_t before = short_of_memory;
    short_of_memory = 0;
    enum dp_status st = sim_functions.open(self, name, create, out, err);
    short_of_memory = before;
    return st;
}

void crash_take_disk(struct crash *c, struct dp_sim_disk *sim)
{
    shard_bed_journal(&c->bed.host, sim, c->durability, c->segment_bytes, 4 * c->segment_bytes);
    sim_functions = c->bed.host.disk;
    c->bed.host.disk.open = open_file;
}

void crash_broken(const struct crash *c, const char *what, uint64_t number)
{
    bed_fail(&c->bed, "%s %llu", what, (unsigned long long)number);
}

static void take_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct crash *c = context;
    uint32_t before = short_of_memory;
    short_of_memory = 0;
    struct dp_reply *reply = calloc(1, sizeof *reply);
    struct dp_error err = {0};
    assert_non_null(reply);
    assert_int_equal(dp_reply_decode(*message, reply, &err), DP_OK);
    c->welcomed |= reply->kind == DP_REPLY_WELCOME;
    for (uint32_t t = 0; t < CRASH_TABLES && reply->kind == DP_REPLY_TABLE_CREATED; t++)
        c->created += reply->id == c->create_id[t]; /* (not the late answer to an earlier one) */
    if (reply->kind == DP_REPLY_PULLED && reply->id == c->pull_id) {
        for (uint32_t k = 0; k < c->pull_rows; k++)
            memcpy(&c->value[c->pull_first + k],
                   (const char *)(*message)->frame[1].data + (size_t)k * c->dim * 4, 4);
        c->pulled = true;
    }
    for (uint32_t i = 0; reply->kind == DP_REPLY_PUSHED && i < c->issued; i++)
        if (c->push[i].id == reply->id) {
            if (c->push[i].acknowledged && !reply->repeated)
                crash_broken(c, "acknowledged, and lost: push", i);
            c->push[i].acknowledged = true;
        }
    c->bed.answered++;
    c->answered = reply->id;
    c->status = reply->status;
    memcpy(c->reason, reply->reason, sizeof c->reason);
    if (reply->status == DP_ORDER)
        c->sequence = reply->sequence;
    dp_reply_clear(reply);
    free(reply);
    dp_message_free(message);
    short_of_memory = before;
}

uint64_t crash_send(struct crash *c, struct dp_request *request, struct dp_frame *frames, uint32_t count)
{
    request->session = CRASH_SESSION;
    return bed_send(&c->bed, request, frames, count);
}

const char *const crash_table_names[CRASH_TABLES] = {"t", "users", "items", "words", "bias"};

void crash_push(struct crash *c, uint32_t number)
{
    struct crash_script *push = &c->push[number];
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .sequence = c->sequence++, /* an ORDER answer may set it back at once */
                                 .stream = CRASH_STREAM,
                                 .number = number,
                                 .rate = 1,
                                 .sections = push->rows > 0 ? push->tables : 0};
    struct dp_frame frames[2 * CRASH_TABLES];
    for (uint32_t t = 0; t < request.sections; t++) {
        request.section[t] =
            (struct dp_section){.table = dp_table_id(crash_table_names[t]), .rows = push->rows};
        frames[2 * t] = dp_frame_new(push->rows * 8);
        frames[2 * t + 1] = dp_frame_new((size_t)push->rows * c->dim * 4);
        float *values = frames[2 * t + 1].data;
        for (uint32_t i = 0; i < push->rows; i++) {
            memcpy((char *)frames[2 * t].data + i * 8, &c->mixed[push->key[i]], 8);
            for (uint32_t d = 0; d < c->dim; d++)
                values[(size_t)i * c->dim + d] = push->gradient;
        }
    }
    push->id = c->bed.next_id; /* the answer may come at once */
    (void)crash_send(c, &request, frames, 2 * request.sections);
}

void crash_create(struct crash *c, uint32_t table)
{
    struct dp_request create = {.kind = DP_REQUEST_CREATE_TABLE,
                                .sequence = c->sequence++,
                                .spec = {.dim = c->dim, .optimizer = {.kind = DP_OPT_SGD}}};
    (void)snprintf(create.spec.name, sizeof create.spec.name, "%s", crash_table_names[table]);
    c->create_id[table] = c->bed.next_id;
    (void)crash_send(c, &create, NULL, 0);
}

/* A new session with the shard, its tables, everything turned until they are there. False: the power went. */
bool crash_meet(struct crash *c)
{
    struct dp_request hello = {.kind = DP_REQUEST_HELLO, .client = "test", .next_sequence = 1};
    c->welcomed = false;
    c->created = 0;
    c->sequence = 1;
    (void)crash_send(c, &hello, NULL, 0);
    for (uint32_t t = 0; t < c->tables; t++)
        crash_create(c, t);
    for (uint32_t i = 0; i < 10 && c->created < c->tables; i++)
        bed_turn(&c->bed);
    return c->welcomed && c->created == c->tables;
}

/* Small: room for the tables that there are, and for a push with what reads its rows. */
static uint64_t cache_bytes(struct crash *c)
{
    struct dp_row_cache *cache = NULL;
    struct dp_range whole = {0, UINT64_MAX};
    size_t row_bytes = 16 + 4 * c->dim;
    if (!c->small)
        return 64u << 20;
    assert_int_equal(dp_row_cache_new(row_bytes, 1, whole, &cache), DP_OK);
    uint64_t base = dp_row_cache_charge(cache) + dp_row_cache_cost_of(cache, 1, 1),
             one = row_bytes + 43 + 128;
    dp_row_cache_free(&cache);
    return c->tables * (base + (CRASH_ROWS + crash_draw(c, 6)) * one + CRASH_ROWS * (row_bytes + 32));
}

enum dp_status crash_open(struct crash *c, bool recovers)
{
    struct dp_error err = {0};
    struct dp_shard_options *options = &c->bed.host.options;
    options->cache_bytes = cache_bytes(c);
    options->recovers = recovers;
    enum dp_status st = shard_bed_open(&c->bed.host, &err);
    if (st == DP_OK)
        return st;
    shard_bed_close(&c->bed.host);
    if (!dp_sim_disk_is_off(c->bed.host.sim) && !c->may_be_refused &&
        !c->failed) /* replay, too, writes rows back */
        bed_fail(&c->bed, "it does not open again: %s", err.text);
    return st;
}

void crash_close(struct crash *c)
{
    dp_fake_store_hold(c->bed.fake, false);
    c->evicted += bed_counter(&c->bed, "rows_evicted");
    shard_bed_close(&c->bed.host);
}

struct crash *crash_new(uint64_t seed)
{
    struct crash *c = calloc(1, sizeof *c);
    assert_non_null(c);
    bed_init(&c->bed, 8);
    c->bed.seed = seed;
    c->bed.timeout_ms = 600000;
    c->bed.host.options.requests_max = 0;
    c->bed.host.options.taken_rows_max = (uint32_t)(seed % 3);
    c->bed.host.options.reply = take_reply;
    c->bed.host.options.reply_context = c;
    c->random = seed * 0x9e3779b97f4a7c15u + 1;
    c->dim = 2;
    c->segment_bytes = 64u << 10;
    c->tables = 1;
    crash_take_disk(c, dp_sim_disk_new(seed ? seed : 1));
    return c;
}

void crash_free(struct crash *c)
{
    bed_clear(&c->bed);
    free(c);
}

struct crash *crash_opened(void)
{
    struct crash *c = crash_new(0);
    assert_int_equal(crash_open(c, false), DP_OK);
    assert_true(crash_meet(c));
    return c;
}

void crash_turn_short_of_memory(struct crash *c, uint32_t one_in)
{
    shortage = c->random;
    short_of_memory = one_in;
    (void)dp_shard_turn(c->bed.host.shard);
    short_of_memory = 0;
}

uint32_t crash_push_all(struct crash *c, uint32_t from, uint32_t last)
{
    uint32_t refused = 0;
    for (uint32_t i = from; i < last; i++) {
        c->issued = i + 1;
        c->push[i] = (struct crash_script){.rows = 1, .tables = 1, .gradient = 1};
        crash_push(c, i);
        for (uint32_t turns = 0; turns < 5; turns++)
            bed_turn(&c->bed);
        if (!c->push[i].acknowledged) {
            assert_int_equal(c->status, DP_AGAIN);
            c->sequence--;
            refused++;
        }
    }
    return refused;
}

#include "tests/unit/server/shard/cut_bed.h"

#include "common/base/bytes.h"
#include "common/model/row.h"

#include <stdlib.h>
#include <string.h>

static void start(struct cut_bed *c, bool journaled)
{
    struct dp_table_spec spec = bed_sgd("t", 2);
    *c = (struct cut_bed){.sequence = 2, .number = 1};
    c->fake = dp_fake_copier_new();
    c->copier = dp_fake_copier_seam(c->fake);
    bed_init(&c->bed, 16);
    shard_bed_journal(&c->bed.host, dp_sim_disk_new(1), DP_DURABILITY_MACHINE, 64u << 10, 512u << 10);
    c->bed.host.options.journaled = journaled;
    c->bed.host.options.copier = &c->copier;
    c->bed.host.options.store_id = 77;
    bed_open_shard(&c->bed);
    c->bed.timeout_ms = 60000;
    bed_meet(&c->bed, 1);
    bed_meet(&c->bed, 2);
    bed_make_table(&c->bed, 1, 1, &spec);
}

void cut_bed_start(struct cut_bed *c)
{
    start(c, true);
}

void cut_bed_start_unjournaled(struct cut_bed *c)
{
    start(c, false);
}

void cut_bed_stop(struct cut_bed *c)
{
    bed_close(&c->bed);
    dp_fake_copier_free(&c->fake);
}

void cut_bed_turns(struct cut_bed *c)
{
    for (uint32_t i = 0; i < 6; i++)
        bed_turn(&c->bed);
}

uint64_t cut_bed_send_push(struct cut_bed *c, uint64_t mixed)
{
    return bed_push(&c->bed, 1, c->sequence++, "t", &mixed, 1, 2, 1, CUT_STREAM, c->number++);
}

uint64_t cut_bed_push(struct cut_bed *c, uint64_t mixed)
{
    uint64_t id = cut_bed_send_push(c, mixed);
    cut_bed_turns(c);
    bed_expect(&c->bed, id, DP_OK);
    return c->number - 1;
}

void cut_bed_push_many(struct cut_bed *c, uint64_t mixed)
{
    uint64_t keys[256];
    for (uint32_t i = 0; i < 256; i++)
        keys[i] = mixed + i;
    uint64_t id = bed_push(&c->bed, 1, c->sequence++, "t", keys, 256, 2, 1, CUT_STREAM, c->number++);
    cut_bed_turns(c);
    bed_expect(&c->bed, id, DP_OK);
}

void cut_bed_write_back(struct cut_bed *c)
{
    c->bed.now_ns += 31 * CUT_SECOND;
    cut_bed_turns(c);
}

static uint64_t send(struct cut_bed *c, const struct dp_checkpoint_ask *ask)
{
    struct dp_request request = {.kind = DP_REQUEST_CHECKPOINT, .checkpoint = *ask};
    if (ask->action != DP_CHECKPOINT_FINISH)
        return bed_send(&c->bed, &request, NULL, 0);
    struct dp_frame frame = dp_frame_copy(ask->pushes, (size_t)ask->missing * 16);
    return bed_send(&c->bed, &request, &frame, 1);
}

static const struct bed_reply *last(const struct cut_bed *c)
{
    return &c->bed.reply[(c->bed.replies - 1) % BED_REPLIES];
}

const struct dp_checkpoint_state *cut_bed_at_once(struct cut_bed *c, const struct dp_checkpoint_ask *ask)
{
    return &bed_expect(&c->bed, send(c, ask), DP_OK)->reply.checkpoint;
}

enum dp_status cut_bed_refused(struct cut_bed *c, const struct dp_checkpoint_ask *ask)
{
    const struct bed_reply *reply = bed_reply_to(&c->bed, send(c, ask));
    assert_non_null(reply);
    return reply->reply.status;
}

const struct dp_checkpoint_state *cut_bed_look(struct cut_bed *c)
{
    const struct dp_checkpoint_ask ask = {.action = DP_CHECKPOINT_LOOK, .order = CUT_ORDER};
    cut_bed_turns(c);
    return cut_bed_at_once(c, &ask);
}

void cut_bed_begin(struct cut_bed *c)
{
    const struct dp_checkpoint_ask ask = {
        .action = DP_CHECKPOINT_BEGIN, .order = CUT_ORDER, .directory = "/there", .full = true, .rate = 5};
    (void)cut_bed_at_once(c, &ask);
    assert_int_equal(cut_bed_look(c)->stage, DP_CHECKPOINT_PREPARED);
}

const struct dp_checkpoint_state *cut_bed_cut(struct cut_bed *c, uint32_t number)
{
    const struct dp_checkpoint_ask ask = {.action = DP_CHECKPOINT_CUT, .order = CUT_ORDER, .cut = number};
    assert_int_equal(cut_bed_at_once(c, &ask)->stage, DP_CHECKPOINT_CUTTING);
    const struct dp_checkpoint_state *state = cut_bed_look(c);
    assert_int_equal(state->stage, DP_CHECKPOINT_IS_CUT);
    assert_int_equal(state->cut, number);
    return state;
}

void cut_bed_finish(struct cut_bed *c, uint32_t number, uint64_t step, const struct dp_copy_push *missing,
                    uint32_t count)
{
    char bytes[16 * 128];
    assert_true(count <= 128);
    for (uint32_t i = 0; i < count; i++) {
        dp_store_u64le(bytes + i * 16, missing[i].stream);
        dp_store_u64le(bytes + i * 16 + 8, missing[i].number);
    }
    const struct dp_checkpoint_ask ask = {.action = DP_CHECKPOINT_FINISH,
                                          .order = CUT_ORDER,
                                          .cut = number,
                                          .step = step,
                                          .missing = count,
                                          .pushes = bytes};
    assert_int_equal(cut_bed_at_once(c, &ask)->stage, DP_CHECKPOINT_WAITING);
}

struct dp_push_ids *cut_bed_ids(struct cut_bed *c)
{
    const struct bed_reply *reply = last(c);
    struct dp_push_ids *ids = NULL;
    struct dp_error err = {0};
    assert_int_equal(reply->reply.checkpoint.stage, DP_CHECKPOINT_IS_CUT);
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    assert_int_equal(dp_push_ids_unpack(ids, reply->bytes, reply->frame_bytes[0], &err), DP_OK);
    return ids;
}

uint32_t cut_bed_steps_bytes(const struct cut_bed *c)
{
    return last(c)->frame_bytes[1];
}

bool cut_bed_has_link(const struct cut_bed *c, uint32_t number)
{
    char name[DP_COPY_LINK_BYTES];
    dp_copy_link_name(CUT_ORDER, number, name);
    return dp_fake_store_has_link(c->bed.fake, name);
}

static enum dp_status count_one(void *context, uint64_t lsn, const void *record, size_t bytes,
                                struct dp_error *err)
{
    ++*(uint64_t *)context;
    return DP_OK;
}

bool cut_bed_journal_has(struct cut_bed *c, uint64_t after, uint64_t until)
{
    uint64_t records = 0;
    struct dp_journal_options options = c->bed.host.options.journal;
    struct dp_journal_figures figures;
    struct dp_error err = {0};
    options.replay_after = after;
    options.read_until = until;
    options.beside_writer = true;
    options.replay = count_one;
    options.replay_context = &records;
    return dp_journal_read(&options, &figures, &err) == DP_OK && records == until - after;
}

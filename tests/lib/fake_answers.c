#include "tests/lib/fake_answers.h"

#include "common/base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dp_fake_answer_status(const struct dp_fake_net *net, uint32_t index, struct dp_reply *reply)
{
    const struct dp_fake_shard *shard = &net->shard[index];
    reply->kind = DP_REPLY_STATUS;
    reply->report = (struct dp_status_report){.shard = index,
                                              .shards = net->shards,
                                              .tables = shard->tables,
                                              .counters = 1,
                                              .table = calloc(9, sizeof(struct dp_table_status)),
                                              .counter = calloc(1, sizeof(struct dp_counter))};
    DP_ASSERT(reply->report.table && reply->report.counter);
    for (uint32_t i = 0; i < shard->tables; i++)
        reply->report.table[i].spec = shard->table[i];
    (void)snprintf(reply->report.counter->name, sizeof reply->report.counter->name, "pushes");
    reply->report.counter->value = shard->pushes;
}

uint32_t dp_fake_answer_heartbeat(struct dp_fake_net *net, const struct dp_request *r, struct dp_reply *reply,
                                  struct dp_frame *frames)
{
    net->heartbeats++;
    reply->kind = DP_REPLY_SILENCES;
    frames[0] = dp_frame_new((size_t)r->heartbeat.members * 8);
    for (uint32_t i = 0; i < r->heartbeat.members; i++)
        dp_store_u64le((char *)frames[0].data + (size_t)i * 8, 1000 * i);
    return 1;
}

uint32_t dp_fake_answer_positions(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
                                  struct dp_reply *reply, struct dp_frame *frames)
{
    const struct dp_fake_shard *shard = &net->shard[index];
    uint64_t word[DP_POSITIONS_MAX / 64] = {0};
    size_t size = (size_t)(r->numbers + 63) / 64 * 8;
    for (uint32_t i = 0; i < shard->pushes; i++) {
        const struct dp_fake_push *push = &shard->push[i];
        if (push->stream == r->stream && push->number >= r->number && push->number - r->number < r->numbers)
            word[(push->number - r->number) / 64] |= UINT64_C(1) << (push->number - r->number) % 64;
    }
    reply->kind = DP_REPLY_POSITIONS;
    frames[0] = dp_frame_new(size);
    for (uint32_t i = 0; i < size / 8; i++)
        dp_store_u64le((char *)frames[0].data + (size_t)i * 8, word[i]);
    return 1;
}

uint32_t dp_fake_answer_notes(struct dp_fake_net *net, const struct dp_request *r, struct dp_reply *reply,
                              struct dp_frame *frames)
{
    if (r->kind == DP_REQUEST_NOTE_PUT) {
        DP_ASSERT(net->notes < 8 && r->note_bytes <= sizeof net->note[0].bytes);
        struct dp_fake_note *note = &net->note[net->notes++];
        for (struct dp_fake_note *old = net->note; old < net->note + net->notes - 1; old++) {
            if (strcmp(old->name, r->name) == 0) {
                note = old;
                net->notes--;
                break;
            }
        }
        memcpy(note->name, r->name, sizeof note->name);
        memcpy(note->bytes, r->note, r->note_bytes);
        note->size = r->note_bytes;
        return 0;
    }
    reply->kind = DP_REPLY_NOTES;
    reply->note = calloc(net->notes + 1, sizeof reply->note[0]);
    DP_ASSERT(reply->note);
    for (uint32_t i = 0; i < net->notes; i++) {
        memcpy(reply->note[i], net->note[i].name, sizeof reply->note[i]);
        frames[i] = dp_frame_copy(net->note[i].bytes, net->note[i].size);
    }
    reply->notes = net->notes;
    return net->notes;
}

bool dp_fake_answer_register(struct dp_fake_net *net, const struct dp_request *r, struct dp_reply *reply,
                             struct dp_frame *frames)
{
    if (r->kind == DP_REQUEST_REGISTER_SET) {
        DP_ASSERT(r->note_bytes <= sizeof net->value.bytes);
        net->value.sets++;
        if (r->version == net->value.version) {
            net->value.version++;
            net->value.nonce = r->nonce;
            net->value.size = r->note_bytes;
            memcpy(net->value.bytes, r->note, r->note_bytes);
        }
        reply->won = r->version + 1 == net->value.version && r->nonce == net->value.nonce;
    } else {
        net->value.gets++;
        if (net->value.version <= r->version && r->wait_ms > 0)
            return false;
    }
    reply->kind = DP_REPLY_REGISTER;
    reply->version = net->value.version;
    reply->register_id = 99;
    frames[0] = dp_frame_copy(net->value.bytes, net->value.size);
    return true;
}

uint32_t dp_fake_answer_checkpoint(uint32_t index, const struct dp_request *r, struct dp_reply *reply,
                                   struct dp_frame *frames)
{
    const struct dp_checkpoint_ask *ask = &r->checkpoint;
    struct dp_checkpoint_state *state = &reply->checkpoint;
    char ids[32];
    reply->kind = DP_REPLY_CHECKPOINT;
    *state =
        (struct dp_checkpoint_state){.stage = DP_CHECKPOINT_PREPARED, .order = ask->order, .cut = ask->cut};
    if (ask->action == DP_CHECKPOINT_FINISH) {
        state->stage = DP_CHECKPOINT_WAITING;
        state->lacking = ask->missing;
        state->lack_stream = ask->missing ? dp_load_u64le(ask->pushes) : 0;
        state->lack_number = ask->missing ? dp_load_u64le((const char *)ask->pushes + 8) : 0;
    }
    if (ask->action != DP_CHECKPOINT_CUT)
        return 0;
    state->stage = DP_CHECKPOINT_IS_CUT;
    (void)snprintf(ids, sizeof ids, "ids of shard %u", (unsigned)index);
    frames[0] = dp_frame_copy(ids, strlen(ids));
    frames[1] = dp_frame_copy("", 0);
    return 2;
}

uint32_t dp_fake_answer_register_copy(const struct dp_fake_net *net, struct dp_reply *reply,
                                      struct dp_frame *frames)
{
    reply->kind = DP_REPLY_REGISTER;
    reply->whole = true;
    reply->version = net->value.version;
    reply->register_id = 99;
    frames[0] = dp_frame_copy(net->value.bytes, net->value.size);
    return 1;
}

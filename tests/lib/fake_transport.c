#include "tests/lib/fake_transport.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "common/model/range.h"
#include "common/wire/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS  UINT64_C(1000000)
#define HOP_NS (UINT64_C(50) * 1000) /* one way, where nothing delays */

struct dp_fake_mail {
    struct dp_fake_mail *next;
    uint64_t due_ns;
    uint32_t server;
    bool to_client;
    struct dp_message *message;
};

uint64_t dp_fake_net_random(struct dp_fake_net *net, uint64_t below)
{
    net->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = net->random;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static bool happens(struct dp_fake_net *net, uint32_t per_mille)
{
    return per_mille > 0 && dp_fake_net_random(net, 1000) < per_mille;
}

struct dp_fake_net *dp_fake_net_new(uint64_t seed, uint32_t shards)
{
    struct dp_fake_net *net = calloc(1, sizeof *net);
    DP_ASSERT(net && shards <= DP_FAKE_SHARDS_MAX);
    net->shards = shards;
    net->random = seed;
    net->now_ns = 1000 * MS_NS;
    net->cluster = 5;
    net->generation = 1;
    for (uint32_t i = 0; i < shards; i++)
        net->shard[i].boot = 77 + i;
    return net;
}

void dp_fake_net_free(struct dp_fake_net **net)
{
    while ((*net)->mail) {
        struct dp_fake_mail *mail = (*net)->mail;
        (*net)->mail = mail->next;
        dp_message_free(&mail->message);
        free(mail);
    }
    for (uint32_t i = 0; i < (*net)->shards; i++)
        free((*net)->shard[i].row);
    free(*net);
    *net = NULL;
}

/* ---- the network ---- */

static void post(struct dp_fake_net *net, uint32_t server, bool to_client, struct dp_message *message)
{
    struct dp_fake_mail *mail = calloc(1, sizeof *mail);
    DP_ASSERT(mail);
    uint64_t delay = HOP_NS;
    if (happens(net, net->faults.slow))
        delay += dp_fake_net_random(net, (net->faults.slow_ms + 1) * MS_NS);
    *mail = (struct dp_fake_mail){
        .due_ns = net->now_ns + delay, .server = server, .to_client = to_client, .message = message};
    struct dp_fake_mail **at = &net->mail;
    while (*at && (*at)->due_ns <= mail->due_ns)
        at = &(*at)->next;
    mail->next = *at;
    *at = mail;
}

static struct dp_message *copy(const struct dp_message *message)
{
    struct dp_message *twin = dp_message_new(message->frames);
    DP_ASSERT(twin);
    for (uint32_t i = 0; i < message->frames; i++)
        dp_message_add(twin, dp_frame_copy(message->frame[i].data, message->frame[i].size));
    return twin;
}

static void carry(struct dp_fake_net *net, uint32_t server, bool to_client, struct dp_message *message)
{
    if (happens(net, net->faults.twice))
        post(net, server, to_client, copy(message));
    if (happens(net, net->faults.lose))
        dp_message_free(&message);
    else
        post(net, server, to_client, message);
}

/* ---- the shards ---- */

static struct dp_fake_row *find_row(const struct dp_fake_shard *shard, uint32_t table, uint64_t mixed)
{
    for (uint32_t i = 0; i < shard->rows; i++) {
        if (shard->row[i].table == table && shard->row[i].mixed == mixed)
            return &shard->row[i];
    }
    return NULL;
}

const float *dp_fake_net_row(const struct dp_fake_net *net, uint32_t table, uint64_t mixed)
{
    const struct dp_fake_row *row = find_row(&net->shard[dp_shard_of(mixed, net->shards)], table, mixed);
    return row ? row->sum : NULL;
}

static struct dp_fake_row *add_row(struct dp_fake_shard *shard, uint32_t table, uint64_t mixed)
{
    struct dp_fake_row *row = find_row(shard, table, mixed);
    if (row)
        return row;
    if ((shard->rows & (shard->rows - 1)) == 0)
        shard->row = realloc(shard->row, (shard->rows ? 2 * shard->rows : 1) * sizeof *row);
    DP_ASSERT(shard->row);
    row = &shard->row[shard->rows++];
    *row = (struct dp_fake_row){.table = table, .mixed = mixed};
    return row;
}

static uint32_t dim_of(const struct dp_fake_shard *shard, uint32_t table)
{
    for (uint32_t i = 0; i < shard->tables; i++) {
        if (dp_table_id(shard->table[i].name) == table)
            return shard->table[i].dim;
    }
    return 0;
}

static float value_at(const struct dp_section *section, size_t i)
{
    if (section->type == DP_BF16) {
        uint16_t v;
        memcpy(&v, (const char *)section->values + 2 * i, sizeof v);
        return dp_bf16_to_f32(v);
    }
    float f;
    memcpy(&f, (const char *)section->values + 4 * i, sizeof f);
    return f;
}

static void do_push(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
                    struct dp_reply *reply)
{
    struct dp_fake_shard *shard = &net->shard[index];
    reply->kind = DP_REPLY_PUSHED;
    for (uint32_t i = 0; i < shard->pushes; i++) {
        if (shard->push[i].stream == r->stream && shard->push[i].number == r->number) {
            reply->repeated = true;
            return;
        }
    }
    DP_ASSERT(shard->pushes < DP_FAKE_LOG_MAX);
    shard->push[shard->pushes++] = (struct dp_fake_push){.session = r->session,
                                                         .sequence = r->sequence,
                                                         .stream = r->stream,
                                                         .number = r->number,
                                                         .pulled_at = r->pulled_at,
                                                         .measured = r->measured,
                                                         .rate = r->rate};
    reply->staleness = r->measured ? shard->applied - r->pulled_at : 0;
    shard->applied++;
    for (uint32_t s = 0; s < r->sections; s++) {
        const struct dp_section *section = &r->section[s];
        uint32_t dim = dim_of(shard, section->table);
        DP_ASSERT(dim > 0 && section->value_bytes == section->rows * dim * dp_value_bytes(section->type));
        for (uint32_t i = 0; i < section->rows; i++) {
            uint64_t mixed = dp_load_u64le((const char *)section->keys + 8 * (size_t)i);
            DP_ASSERT(dp_range_has(dp_range_of_shard(index, net->shards), mixed));
            struct dp_fake_row *row = add_row(shard, section->table, mixed);
            for (uint32_t c = 0; c < dim; c++)
                row->sum[c] += value_at(section, (size_t)i * dim + c);
        }
    }
}

static void do_pull(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
                    struct dp_reply *reply, struct dp_frame *frames)
{
    static const float zeros[DP_FAKE_DIM_MAX];
    struct dp_fake_shard *shard = &net->shard[index];
    reply->kind = DP_REPLY_PULLED;
    reply->applied = shard->applied;
    shard->pulls++;
    for (uint32_t s = 0; s < r->sections; s++) {
        const struct dp_section *section = &r->section[s];
        uint32_t dim = dim_of(shard, section->table);
        size_t bytes = dp_value_bytes(section->type);
        frames[s] = dp_frame_new(section->rows * dim * bytes);
        for (uint32_t i = 0; i < section->rows; i++) {
            uint64_t mixed = dp_load_u64le((const char *)section->keys + 8 * (size_t)i);
            DP_ASSERT(dp_range_has(dp_range_of_shard(index, net->shards), mixed));
            const struct dp_fake_row *row = find_row(shard, section->table, mixed);
            const float *from = row ? row->sum : zeros;
            for (uint32_t c = 0; c < dim; c++) {
                char *to = (char *)frames[s].data + ((size_t)i * dim + c) * bytes;
                uint16_t half = dp_f32_to_bf16(from[c]);
                memcpy(to, bytes == 2 ? (const void *)&half : (const void *)&from[c], bytes);
            }
        }
    }
}

static void do_create(struct dp_fake_shard *shard, const struct dp_request *r, struct dp_reply *reply)
{
    struct dp_error err = {0};
    reply->kind = DP_REPLY_TABLE_CREATED;
    for (uint32_t i = 0; i < shard->tables; i++) {
        if (strcmp(shard->table[i].name, r->spec.name) == 0) {
            reply->existed = true;
            reply->status = dp_table_same(&shard->table[i], &r->spec, &err);
            (void)snprintf(reply->reason, sizeof reply->reason, "%s", err.text);
            return;
        }
    }
    DP_ASSERT(shard->tables < 8 && r->spec.dim <= DP_FAKE_DIM_MAX);
    shard->table[shard->tables++] = r->spec;
}

static void do_hello(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
                     struct dp_reply *reply)
{
    struct dp_fake_shard *shard = &net->shard[index];
    struct dp_range range = dp_range_of_shard(index, net->shards);
    if (shard->session != r->session || r->next_sequence > shard->expected)
        shard->expected = r->next_sequence;
    shard->session = r->session;
    shard->hellos++;
    if (r->want_stream && shard->stream <= r->stream_above)
        shard->stream = r->stream_above < 900 ? 900 : r->stream_above + 1;
    *reply = (struct dp_reply){.kind = DP_REPLY_WELCOME,
                               .id = r->id,
                               .session = r->session,
                               .first = range.first,
                               .last = range.last,
                               .boot = shard->boot,
                               .stream = r->want_stream ? shard->stream : 0,
                               .window = net->window};
}

static enum dp_status random_refusal(struct dp_fake_net *net, struct dp_fake_shard *shard)
{
    if (happens(net, net->faults.forget))
        shard->session = 0;
    if (shard->session == 0)
        return DP_SESSION;
    if (happens(net, net->faults.again))
        return DP_AGAIN;
    return happens(net, net->faults.stopping) ? DP_STOPPING : DP_OK;
}

static void do_in_order(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
                        struct dp_reply *reply, struct dp_frame *frames)
{
    struct dp_fake_shard *shard = &net->shard[index];
    reply->status = random_refusal(net, shard);
    if (reply->status == DP_OK && (r->session != shard->session || r->generation != net->generation))
        reply->status = DP_SESSION;
    if (reply->status == DP_OK &&
        (r->sequence > shard->expected || (net->faults.order && happens(net, net->faults.order))))
        reply->status = DP_ORDER;
    reply->sequence = shard->expected;
    if (reply->status != DP_OK)
        return;
    shard->expected += r->sequence == shard->expected;
    if (r->kind == DP_REQUEST_PUSH)
        do_push(net, index, r, reply);
    else if (r->kind == DP_REQUEST_PULL)
        do_pull(net, index, r, reply, frames);
    else
        do_create(shard, r, reply);
}

static void do_status(const struct dp_fake_net *net, uint32_t index, struct dp_reply *reply)
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

/* As the client's promise has it: what was applied, one bit each. */
static uint32_t do_positions(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
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

static uint32_t do_notes(struct dp_fake_net *net, const struct dp_request *r, struct dp_reply *reply,
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

/* false: no answer. */
static bool do_register(struct dp_fake_net *net, const struct dp_request *r, struct dp_reply *reply,
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

static void serve(struct dp_fake_net *net, uint32_t index, struct dp_message *message)
{
    struct dp_request r;
    struct dp_reply reply;
    struct dp_frame frames[DP_SECTIONS_MAX];
    uint32_t frame_count = 0;
    struct dp_error err = {0};
    struct dp_message *out = NULL;
    enum dp_status st = dp_request_decode(message, &r, &err);
    if (st != DP_OK)
        (void)fprintf(stderr, "fake shard %u: %s\n", index, err.text);
    DP_ASSERT(st == DP_OK); /* what the client sends is always right */
    reply = (struct dp_reply){.id = r.id, .session = r.session, .cluster = net->cluster};
    reply.generation = net->generation;
    st = net->refuse ? net->refuse(net->context, index, &r, &reply) : DP_OK;
    if (st == DP_TIMEOUT)
        return;
    reply.status = st;
    if (st == DP_OK && (r.kind == DP_REQUEST_NOTE_PUT || r.kind == DP_REQUEST_NOTES_GET))
        frame_count = do_notes(net, &r, &reply, frames);
    else if (st == DP_OK && (r.kind == DP_REQUEST_REGISTER_GET || r.kind == DP_REQUEST_REGISTER_SET)) {
        if (!do_register(net, &r, &reply, frames))
            return;
        frame_count = 1;
    } else if (st == DP_OK && r.kind == DP_REQUEST_HELLO)
        do_hello(net, index, &r, &reply);
    else if (st == DP_OK && r.kind == DP_REQUEST_POSITIONS_GET)
        frame_count = do_positions(net, index, &r, &reply, frames);
    else if (st == DP_OK && r.kind == DP_REQUEST_STATUS)
        do_status(net, index, &reply);
    else if (st == DP_OK)
        do_in_order(net, index, &r, &reply, frames);
    if (reply.kind == DP_REPLY_PULLED)
        frame_count = r.sections;
    if (net->tamper)
        net->tamper(net->context, index, &reply, frames, &frame_count);
    st = dp_reply_encode(&reply, frames, frame_count, &out, &err);
    dp_reply_clear(&reply);
    DP_ASSERT(st == DP_OK);
    carry(net, index, true, out);
}

/* ---- the seams ---- */

static enum dp_status fake_send(void *self, uint32_t server, struct dp_message **message,
                                struct dp_error *err)
{
    struct dp_fake_net *net = self;
    (void)err;
    if (happens(net, net->faults.full))
        return DP_AGAIN;
    net->sent++;
    net->sent_to[server]++;
    net->sent_bytes += dp_message_bytes(*message);
    struct dp_message *taken = *message;
    *message = NULL;
    carry(net, server, false, taken);
    return DP_OK;
}

static bool fake_receive(void *self, uint32_t *server, struct dp_message **message)
{
    struct dp_fake_net *net = self;
    while (net->mail && net->mail->due_ns <= net->now_ns) {
        struct dp_fake_mail *mail = net->mail;
        bool to_client = mail->to_client;
        net->mail = mail->next;
        *server = mail->server;
        *message = mail->message;
        free(mail);
        if (to_client)
            return true;
        if (!net->dead[*server])
            serve(net, *server, *message);
        dp_message_free(message);
    }
    return false;
}

static void fake_wait(void *self, uint32_t timeout_ms)
{
    struct dp_fake_net *net = self;
    uint64_t until = net->now_ns + timeout_ms * MS_NS;
    if (net->mail && net->mail->due_ns < until)
        until = net->mail->due_ns > net->now_ns ? net->mail->due_ns : net->now_ns;
    net->now_ns = until;
}

static void fake_close(void *self)
{
    struct dp_fake_net *net = self;
    net->closed = true;
}

struct dp_transport dp_fake_net_transport(struct dp_fake_net *net)
{
    return (struct dp_transport){
        .send = fake_send, .receive = fake_receive, .wait = fake_wait, .close = fake_close, .self = net};
}

static uint64_t fake_now(void *self)
{
    return ((struct dp_fake_net *)self)->now_ns;
}

struct dp_clock dp_fake_net_clock(struct dp_fake_net *net)
{
    return (struct dp_clock){.now_ns = fake_now, .self = net};
}

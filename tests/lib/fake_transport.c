#include "tests/lib/fake_answers.h"

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
    uint64_t held_id; /* a pull that the server holds; 0: a message under way */
    uint64_t release_ns;
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
    for (uint32_t i = 0; i < (*net)->shards; i++) {
        free((*net)->shard[i].row);
        dp_view_clear(&(*net)->shard[i].view);
    }
    free(*net);
    *net = NULL;
}

/* ---- the network ---- */

static void enqueue(struct dp_fake_net *net, struct dp_fake_mail given)
{
    struct dp_fake_mail *mail = calloc(1, sizeof *mail), **at = &net->mail;
    DP_ASSERT(mail);
    while (*at && (*at)->due_ns <= given.due_ns)
        at = &(*at)->next;
    *mail = given;
    mail->next = *at;
    *at = mail;
}

static void post(struct dp_fake_net *net, uint32_t server, bool to_client, struct dp_message *message)
{
    uint64_t delay = HOP_NS;
    if (happens(net, net->faults.slow))
        delay += dp_fake_net_random(net, (net->faults.slow_ms + 1) * MS_NS);
    enqueue(net,
            (struct dp_fake_mail){
                .due_ns = net->now_ns + delay, .server = server, .to_client = to_client, .message = message});
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
    bool cut = happens(net, net->faults.cut);
    net->broke[server] |= cut;
    if (cut || happens(net, net->faults.lose))
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
                                                         .rate = r->rate,
                                                         .member = r->member};
    reply->staleness = r->measured ? shard->applied - r->pulled_at : 0;
    reply->rate = r->by_staleness && reply->staleness > 1 ? r->rate / (float)reply->staleness : r->rate;
    shard->push[shard->pushes - 1].rate = reply->rate;
    shard->applied++;
    for (uint32_t s = 0; s < r->sections; s++) {
        const struct dp_section *section = &r->section[s];
        uint32_t dim = dim_of(shard, section->table);
        DP_ASSERT(dim > 0 && section->value_bytes == section->rows * dim * dp_value_bytes(section->type));
        for (uint32_t i = 0; i < section->rows; i++) {
            uint64_t mixed = dp_load_u64le((const char *)section->keys + 8 * (size_t)i);
            DP_ASSERT(dp_range_has(dp_range_of_shard(index, net->shards), mixed));
            struct dp_fake_row *row = add_row(shard, section->table, mixed);
            reply->rows += r->measured;
            reply->changed_rows += r->measured && row->lsn > r->pulled_lsn;
            row->lsn = DP_FAKE_LSN_FIRST + shard->applied;
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
    reply->lsn = DP_FAKE_LSN_FIRST + shard->applied;
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
                               .cluster = net->cluster,
                               .generation = net->generation,
                               .history = net->history,
                               .first = range.first,
                               .last = range.last,
                               .boot = shard->boot,
                               .stream = r->want_stream ? shard->stream : 0,
                               .window = net->window};
}

static enum dp_status random_refusal(struct dp_fake_net *net, struct dp_fake_shard *shard)
{
    if (happens(net, net->faults.forget)) {
        shard->session = 0;
        dp_view_clear(&shard->view);
    }
    if (shard->session == 0)
        return DP_SESSION;
    if (happens(net, net->faults.again))
        return DP_AGAIN;
    return happens(net, net->faults.stopping) ? DP_STOPPING : DP_OK;
}

/* ---- members ---- */

static void do_view_put(struct dp_fake_shard *shard, const struct dp_request *r, struct dp_reply *reply)
{
    struct dp_view view;
    struct dp_error err = {0};
    DP_ASSERT(dp_view_unpack(r->note, r->note_bytes, &view, &err) == DP_OK);
    shard->view_puts++;
    if (view.run == shard->view.run && view.number > shard->view.number && r->returns &&
        view.member[r->rank].from > shard->view.member[r->rank].from)
        shard->passed = view.member[r->rank].from < shard->begins;
    if (view.run > shard->view.run || view.number > shard->view.number) {
        dp_view_clear(&shard->view);
        shard->view = view;
    } else {
        dp_view_clear(&view);
    }
    reply->kind = DP_REPLY_VIEW;
    reply->version = shard->view.number;
    reply->begun = r->returns && !shard->passed;
    reply->begin = r->returns ? shard->begins : 0;
    shard->begins += shard->hurries;
}

static enum dp_status check_member(const struct dp_fake_shard *shard, const struct dp_membership *member,
                                   struct dp_reply *reply)
{
    if (!member->given)
        return DP_OK;
    if (member->run > shard->view.run || member->view > shard->view.number) {
        (void)snprintf(reply->reason, sizeof reply->reason, "the view is missing");
        reply->wait = (struct dp_wait){.reason = DP_WAIT_VIEW,
                                       .subject = member->run,
                                       .done = shard->view.number,
                                       .total = member->view};
        return DP_AGAIN;
    }
    if (shard->view.member[member->rank].incarnation == member->incarnation)
        return DP_OK;
    if (shard->view.member[member->rank].until != UINT64_MAX)
        reply->wait.reason = DP_WAIT_VIEW;
    (void)snprintf(reply->reason, sizeof reply->reason, "run %u: another process joined as worker %u",
                   member->run, member->rank);
    return DP_REPLACED;
}

static bool holds(struct dp_fake_net *net, uint32_t index, const struct dp_request *r, uint64_t release_ns,
                  struct dp_reply *reply)
{
    bool held = net->holds ? net->holds(&(struct dp_fake_turn){net->context, index, r, reply, NULL, NULL})
                           : net->now_ns < release_ns;
    if (held)
        reply->status = DP_HELD;
    return held;
}

/* A member's pull that comes: held from now on, or still (a resend renews it). */
static bool holds_new(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
                      const struct dp_message *message, struct dp_reply *reply)
{
    uint64_t release_ns = 0;
    if (happens(net, net->faults.hold))
        release_ns = net->now_ns + dp_fake_net_random(net, net->faults.hold_ms + 1) * MS_NS;
    for (const struct dp_fake_mail *mail = net->mail; mail; mail = mail->next) {
        if (mail->held_id == r->id && mail->server == index)
            return holds(net, index, r, mail->release_ns, reply);
    }
    if (!holds(net, index, r, release_ns, reply))
        return false;
    enqueue(net, (struct dp_fake_mail){.due_ns = net->now_ns + DP_FAKE_HELD_MS * MS_NS,
                                       .server = index,
                                       .held_id = r->id,
                                       .release_ns = release_ns,
                                       .message = copy(message)});
    return true;
}

void dp_fake_net_restart(struct dp_fake_net *net, uint32_t index)
{
    struct dp_fake_shard *shard = &net->shard[index];
    shard->session = 0;
    shard->boot++;
    dp_view_clear(&shard->view);
}

static void do_in_order(struct dp_fake_net *net, uint32_t index, const struct dp_request *r,
                        const struct dp_message *message, struct dp_reply *reply, struct dp_frame *frames)
{
    struct dp_fake_shard *shard = &net->shard[index];
    reply->status = random_refusal(net, shard);
    if (reply->status == DP_OK && r->session != shard->session)
        reply->status = DP_SESSION;
    if (reply->status == DP_OK &&
        (r->sequence > shard->expected || (net->faults.order && happens(net, net->faults.order))))
        reply->status = DP_ORDER;
    if (reply->status == DP_OK)
        reply->status = check_member(shard, &r->member, reply);
    reply->sequence = shard->expected;
    if (reply->status != DP_OK && reply->status != DP_REPLACED)
        return;
    shard->expected += r->sequence == shard->expected;
    if (reply->status != DP_OK ||
        (r->kind == DP_REQUEST_PULL && r->member.given && holds_new(net, index, r, message, reply)))
        return;
    if (r->kind == DP_REQUEST_PUSH)
        do_push(net, index, r, reply);
    else if (r->kind == DP_REQUEST_PULL)
        do_pull(net, index, r, reply, frames);
    else
        do_create(shard, r, reply);
}

/* Gives whether it is answered. */
static bool serve_request(struct dp_fake_net *net, uint32_t index, const struct dp_message *message,
                          const struct dp_request *r, struct dp_reply *reply, struct dp_frame *frames,
                          uint32_t *frame_count)
{
    switch (r->kind) {
    case DP_REQUEST_NOTE_PUT:
    case DP_REQUEST_NOTES_GET:
        *frame_count = dp_fake_answer_notes(net, r, reply, frames);
        return true;
    case DP_REQUEST_REGISTER_GET:
    case DP_REQUEST_REGISTER_SET:
        *frame_count = 1;
        return dp_fake_answer_register(net, r, reply, frames);
    case DP_REQUEST_HELLO:
        do_hello(net, index, r, reply);
        return true;
    case DP_REQUEST_POSITIONS_GET:
        *frame_count = dp_fake_answer_positions(net, index, r, reply, frames);
        return true;
    case DP_REQUEST_STATUS:
        dp_fake_answer_status(net, index, reply);
        return true;
    case DP_REQUEST_HEARTBEAT:
        *frame_count = dp_fake_answer_heartbeat(net, r, reply, frames);
        return true;
    case DP_REQUEST_CHECKPOINT:
        *frame_count = dp_fake_answer_checkpoint(index, r, reply, frames);
        return true;
    case DP_REQUEST_REGISTER_COPY:
        *frame_count = dp_fake_answer_register_copy(net, reply, frames);
        return true;
    case DP_REQUEST_VIEW_PUT:
        do_view_put(&net->shard[index], r, reply);
        return true;
    default:
        do_in_order(net, index, r, message, reply, frames);
        return true;
    }
}

static void answer(struct dp_fake_net *net, uint32_t index, struct dp_reply *reply, struct dp_frame *frames,
                   uint32_t frame_count)
{
    struct dp_message *out = NULL;
    struct dp_error err = {0};
    if (net->tamper)
        net->tamper(&(struct dp_fake_turn){net->context, index, NULL, reply, frames, &frame_count});
    enum dp_status st = dp_reply_encode(reply, frames, frame_count, &out, &err);
    dp_reply_clear(reply);
    DP_ASSERT(st == DP_OK);
    carry(net, index, true, out);
}

static void read_request(struct dp_fake_net *net, uint32_t index, const struct dp_message *message,
                         struct dp_request *r, struct dp_reply *reply)
{
    struct dp_error err = {0};
    enum dp_status st = dp_request_decode(message, r, &err);
    if (st != DP_OK)
        (void)fprintf(stderr, "fake shard %u: %s\n", index, err.text);
    DP_ASSERT(st == DP_OK); /* what the client sends is always right */
    *reply = (struct dp_reply){.id = r->id, .session = r->session, .cluster = net->cluster};
    reply->generation = net->generation;
    reply->history = net->history;
}

static enum dp_status check_generation(const struct dp_fake_net *net, const struct dp_request *r,
                                       struct dp_reply *reply)
{
    bool names_none = r->generation == 0 && r->history == 0;
    bool looks = r->kind == DP_REQUEST_HELLO || r->kind == DP_REQUEST_STATUS;
    if ((names_none && looks && !net->is_old) ||
        (r->generation == net->generation && (net->is_old || r->history == net->history)))
        return DP_OK;
    (void)snprintf(reply->reason, sizeof reply->reason, "this is generation %d", (int)net->generation);
    return DP_GENERATION;
}

/* The shard at the other end of a connection; more than there are: nothing is. */
static uint32_t other_end(const struct dp_fake_net *net, uint32_t index)
{
    uint32_t at = 0;
    if (!net->lives[index][0])
        return index;
    while (at <= net->shards && strcmp(net->lives[at], net->leads[index]) != 0)
        at++;
    return at;
}

static void serve(struct dp_fake_net *net, uint32_t index, struct dp_message *message)
{
    struct dp_request r;
    struct dp_reply reply;
    struct dp_frame frames[DP_SECTIONS_MAX];
    uint32_t frame_count = 0, there = other_end(net, index);
    read_request(net, index, message, &r, &reply);
    if (there != index) {
        DP_ASSERT(r.shard == index + 1);
        reply.status = DP_AGAIN;
        reply.wait = (struct dp_wait){.reason = DP_WAIT_PLACE, .subject = there};
        net->misplaced++;
        if (there <= net->shards)
            answer(net, index, &reply, frames, 0);
        return;
    }
    reply.status = net->refuse
                       ? net->refuse(&(struct dp_fake_turn){net->context, index, &r, &reply, NULL, NULL})
                       : DP_OK;
    if (reply.status == DP_TIMEOUT)
        return;
    if (reply.status == DP_OK)
        reply.status = check_generation(net, &r, &reply);
    if (reply.status == DP_OK && !serve_request(net, index, message, &r, &reply, frames, &frame_count))
        return;
    if (reply.kind == DP_REPLY_PULLED)
        frame_count = r.sections;
    answer(net, index, &reply, frames, frame_count);
}

/* A held pull's time to say so again, or to be answered. A session that is gone took it along. */
static void serve_held(struct dp_fake_net *net, struct dp_fake_mail *mail)
{
    struct dp_request r;
    struct dp_reply reply;
    struct dp_frame frames[DP_SECTIONS_MAX];
    read_request(net, mail->server, mail->message, &r, &reply);
    if (net->shard[mail->server].session != r.session)
        return;
    bool dead = net->dead[mail->server];
    bool held = dead || holds(net, mail->server, &r, mail->release_ns, &reply);
    if (!held)
        do_pull(net, mail->server, &r, &reply, frames);
    if (!dead)
        answer(net, mail->server, &reply, frames, held ? 0 : r.sections);
    if (!held)
        return;
    mail->due_ns = net->now_ns + DP_FAKE_HELD_MS * MS_NS;
    mail->message = copy(mail->message);
    enqueue(net, *mail);
}

/* ---- the seams ---- */

static enum dp_status fake_send(void *self, uint32_t server, struct dp_message **message,
                                struct dp_error *err)
{
    struct dp_fake_net *net = self;
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
        if (mail->held_id)
            serve_held(net, mail);
        else if (!to_client && !net->dead[*server])
            serve(net, *server, *message);
        free(mail);
        if (to_client)
            return true;
        dp_message_free(message);
    }
    return false;
}

static bool fake_broke(void *self, uint32_t *server)
{
    struct dp_fake_net *net = self;
    for (*server = 0; *server <= net->shards; (*server)++)
        if (net->broke[*server]) {
            net->broke[*server] = false;
            return true;
        }
    return false;
}

static enum dp_status fake_move(void *self, uint32_t server, const char *endpoint, struct dp_error *err)
{
    struct dp_fake_net *net = self;
    (void)err;
    (void)snprintf(net->leads[server], sizeof net->leads[server], "%s", endpoint);
    return DP_OK;
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
    return (struct dp_transport){.send = fake_send,
                                 .receive = fake_receive,
                                 .broke = fake_broke,
                                 .move = fake_move,
                                 .wait = fake_wait,
                                 .close = fake_close,
                                 .self = net};
}

static uint64_t fake_now(void *self)
{
    return ((struct dp_fake_net *)self)->now_ns;
}

struct dp_clock dp_fake_net_clock(struct dp_fake_net *net)
{
    return (struct dp_clock){.now_ns = fake_now, .self = net};
}

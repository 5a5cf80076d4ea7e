#include "common/wire/header.h"
#include "common/wire/request.h"
#include "common/wire/spec.h"

/* The generated structs of one request, on the caller's stack. */
struct request_parts {
    Downpour__Request head;
    union {
        Downpour__Hello hello;
        Downpour__CreateTable create_table;
        Downpour__Pull pull;
        Downpour__Push push;
        Downpour__Status status;
        Downpour__NotePut note_put;
        Downpour__NotesGet notes_get;
        Downpour__PositionsGet positions_get;
        Downpour__RegisterGet register_get;
        Downpour__RegisterSet register_set;
        Downpour__ViewPut view_put;
        Downpour__Heartbeat heartbeat;
        Downpour__Lease lease;
        Downpour__Checkpoint checkpoint;
        Downpour__RegisterCopy register_copy;
    } body;
    Downpour__TableSpec spec;
    Downpour__Member member;
    Downpour__Section section[DP_SECTIONS_MAX];
    Downpour__Section *sections[DP_SECTIONS_MAX];
};

static void put_sections(const struct dp_request *request, struct request_parts *parts)
{
    for (uint32_t i = 0; i < request->sections; i++) {
        const struct dp_section *from = &request->section[i];
        Downpour__Section *to = &parts->section[i];
        downpour__section__init(to);
        to->table = from->table;
        to->rows = from->rows;
        to->type = from->type == DP_BF16 ? DOWNPOUR__VALUE_TYPE__BF16 : DOWNPOUR__VALUE_TYPE__F32;
        parts->sections[i] = to;
    }
}

/* NULL: on nobody's behalf. */
static Downpour__Member *put_member(const struct dp_membership *from, struct request_parts *parts)
{
    Downpour__Member *to = &parts->member;
    if (!from->given)
        return NULL;
    downpour__member__init(to);
    to->run = from->run;
    to->rank = from->rank;
    to->view = from->view;
    to->incarnation = from->incarnation;
    to->step = from->step;
    to->examples = from->examples;
    return to;
}

static void put_pull(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__Pull *pull = &parts->body.pull;
    downpour__pull__init(pull);
    put_sections(request, parts);
    pull->n_sections = request->sections;
    pull->sections = parts->sections;
    pull->member = put_member(&request->member, parts);
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_PULL;
    parts->head.pull = pull;
}

static void put_push(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__Push *push = &parts->body.push;
    downpour__push__init(push);
    put_sections(request, parts);
    push->n_sections = request->sections;
    push->sections = parts->sections;
    push->stream = request->stream;
    push->number = request->number;
    push->rate = request->rate;
    push->pulled_at = request->pulled_at;
    push->measured = request->measured;
    push->pulled_lsn = request->pulled_lsn;
    push->by_staleness = request->by_staleness;
    push->examples = request->examples;
    push->member = put_member(&request->member, parts);
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_PUSH;
    parts->head.push = push;
}

static void put_hello(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__Hello *hello = &parts->body.hello;
    downpour__hello__init(hello);
    hello->client = (char *)request->client;
    hello->want_stream = request->want_stream;
    hello->next_sequence = request->next_sequence;
    hello->stream_above = request->stream_above;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_HELLO;
    parts->head.hello = hello;
}

static void put_create_table(const struct dp_request *request, struct request_parts *parts)
{
    downpour__create_table__init(&parts->body.create_table);
    dp_spec_to_wire(&request->spec, &parts->spec);
    parts->body.create_table.spec = &parts->spec;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_CREATE_TABLE;
    parts->head.create_table = &parts->body.create_table;
}

static void put_positions_get(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__PositionsGet *get = &parts->body.positions_get;
    downpour__positions_get__init(get);
    get->stream = request->stream;
    get->from = request->number;
    get->count = request->numbers;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_POSITIONS_GET;
    parts->head.positions_get = get;
}

static void put_view(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__ViewPut *put = &parts->body.view_put;
    downpour__view_put__init(put);
    put->returns = request->returns;
    put->rank = request->rank;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_VIEW_PUT;
    parts->head.view_put = put;
}

static void put_heartbeat(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__Heartbeat *heartbeat = &parts->body.heartbeat;
    downpour__heartbeat__init(heartbeat);
    heartbeat->run = request->heartbeat.run;
    heartbeat->rank = request->heartbeat.rank;
    heartbeat->members = request->heartbeat.members;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_HEARTBEAT;
    parts->head.heartbeat = heartbeat;
}

static void put_register_get(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__RegisterGet *get = &parts->body.register_get;
    downpour__register_get__init(get);
    get->name = (char *)request->name;
    get->above = request->version;
    get->wait_ms = request->wait_ms;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_REGISTER_GET;
    parts->head.register_get = get;
}

static void put_register_set(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__RegisterSet *set = &parts->body.register_set;
    downpour__register_set__init(set);
    set->name = (char *)request->name;
    set->expected = request->version;
    set->nonce = request->nonce;
    set->server_shard = request->server_shard;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_REGISTER_SET;
    parts->head.register_set = set;
}

static void put_lease(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__Lease *lease = &parts->body.lease;
    downpour__lease__init(lease);
    lease->run = request->run;
    lease->epoch = request->epoch;
    lease->total = request->lease.total;
    lease->rank = request->lease.rank;
    lease->want = request->lease.want;
    lease->held = request->lease.held;
    lease->done = request->lease.done;
    lease->tells = request->lease.tells;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_LEASE;
    parts->head.lease = lease;
}

static void put_checkpoint(const struct dp_request *request, struct request_parts *parts)
{
    const struct dp_checkpoint_ask *ask = &request->checkpoint;
    Downpour__Checkpoint *checkpoint = &parts->body.checkpoint;
    downpour__checkpoint__init(checkpoint);
    checkpoint->action = (Downpour__CheckpointAction)ask->action;
    checkpoint->order = ask->order;
    checkpoint->directory = (char *)ask->directory;
    checkpoint->cut = ask->cut;
    checkpoint->step = ask->step;
    checkpoint->full = ask->full;
    checkpoint->link = ask->link;
    checkpoint->rate = ask->rate;
    checkpoint->missing = ask->missing;
    checkpoint->number = ask->number;
    parts->head.body_case = DOWNPOUR__REQUEST__BODY_CHECKPOINT;
    parts->head.checkpoint = checkpoint;
}

/* Returns how many frames must follow. */
static uint32_t put_body(const struct dp_request *request, struct request_parts *parts)
{
    switch (request->kind) {
    case DP_REQUEST_HELLO:
        put_hello(request, parts);
        return 0;
    case DP_REQUEST_CREATE_TABLE:
        put_create_table(request, parts);
        return 0;
    case DP_REQUEST_PULL:
        put_pull(request, parts);
        return request->sections;
    case DP_REQUEST_PUSH:
        put_push(request, parts);
        return 2 * request->sections;
    case DP_REQUEST_STATUS:
        downpour__status__init(&parts->body.status);
        parts->head.body_case = DOWNPOUR__REQUEST__BODY_STATUS;
        parts->head.status = &parts->body.status;
        return 0;
    case DP_REQUEST_NOTE_PUT:
        downpour__note_put__init(&parts->body.note_put);
        parts->body.note_put.name = (char *)request->name;
        parts->head.body_case = DOWNPOUR__REQUEST__BODY_NOTE_PUT;
        parts->head.note_put = &parts->body.note_put;
        return 1;
    case DP_REQUEST_NOTES_GET:
        downpour__notes_get__init(&parts->body.notes_get);
        parts->body.notes_get.prefix = (char *)request->name;
        parts->head.body_case = DOWNPOUR__REQUEST__BODY_NOTES_GET;
        parts->head.notes_get = &parts->body.notes_get;
        return 0;
    case DP_REQUEST_POSITIONS_GET:
        put_positions_get(request, parts);
        return 0;
    case DP_REQUEST_REGISTER_GET:
        put_register_get(request, parts);
        return 0;
    case DP_REQUEST_REGISTER_SET:
        put_register_set(request, parts);
        return 1;
    case DP_REQUEST_VIEW_PUT:
        put_view(request, parts);
        return 1;
    case DP_REQUEST_HEARTBEAT:
        put_heartbeat(request, parts);
        return 0;
    case DP_REQUEST_LEASE:
        put_lease(request, parts);
        return request->lease.tells ? 2 : 1;
    case DP_REQUEST_CHECKPOINT:
        put_checkpoint(request, parts);
        return request->checkpoint.action == DP_CHECKPOINT_FINISH;
    case DP_REQUEST_REGISTER_COPY:
        downpour__register_copy__init(&parts->body.register_copy);
        parts->head.body_case = DOWNPOUR__REQUEST__BODY_REGISTER_COPY;
        parts->head.register_copy = &parts->body.register_copy;
        return 0;
    case DP_REQUEST_NONE:
    case DP_REQUEST_CLOSE:
        break;
    }
    return 0;
}

enum dp_status dp_request_encode(const struct dp_request *request, struct dp_frame *frames,
                                 uint32_t frame_count, struct dp_message **out, struct dp_error *err)
{
    struct request_parts parts;
    DP_ASSERT(request->kind != DP_REQUEST_NONE && request->kind != DP_REQUEST_CLOSE);
    DP_ASSERT(request->sections <= DP_SECTIONS_MAX);
    downpour__request__init(&parts.head);
    parts.head.protocol = DP_PROTOCOL_VERSION;
    parts.head.id = request->id;
    parts.head.cluster = request->cluster;
    parts.head.generation = request->generation;
    parts.head.history = request->history;
    parts.head.session = request->session;
    parts.head.sequence = request->sequence;
    parts.head.timeout_ms = request->timeout_ms;
    uint32_t expected = put_body(request, &parts);
    DP_ASSERT(frame_count == expected);
    return dp_header_pack(&parts.head.base, "request", DP_REQUEST_HEADER_BYTES_MAX, frames, frame_count, out,
                          err);
}

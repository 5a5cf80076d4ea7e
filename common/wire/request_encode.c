#include "common/wire/fields.h"
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

/* Begins the body of a request. */
#define BODY(body_, CASE)                                                                                    \
    (downpour__##body_##__init(&parts->body.body_), parts->head.body_case = DOWNPOUR__REQUEST__BODY_##CASE,  \
     parts->head.body_ = &parts->body.body_)

/* NULL: for no member. */
static Downpour__Member *put_member(const struct dp_membership *from, struct request_parts *parts)
{
    Downpour__Member *to = &parts->member;
    if (!from->given)
        return NULL;
    downpour__member__init(to);
    DP_WIRE_MEMBER(DP_WIRE_COPY)
    return to;
}

static void put_pull(const struct dp_request *from, struct request_parts *parts)
{
    Downpour__Pull *to = BODY(pull, PULL);
    put_sections(from, parts);
    to->n_sections = from->sections;
    to->sections = parts->sections;
    to->member = put_member(&from->member, parts);
}

static void put_push(const struct dp_request *from, struct request_parts *parts)
{
    Downpour__Push *to = BODY(push, PUSH);
    put_sections(from, parts);
    to->n_sections = from->sections;
    to->sections = parts->sections;
    to->member = put_member(&from->member, parts);
    DP_WIRE_PUSH(DP_WIRE_COPY)
}

static void put_hello(const struct dp_request *from, struct request_parts *parts)
{
    Downpour__Hello *to = BODY(hello, HELLO);
    to->client = (char *)from->client;
    DP_WIRE_HELLO(DP_WIRE_COPY)
}

static void put_positions_get(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__PositionsGet *get = BODY(positions_get, POSITIONS_GET);
    get->stream = request->stream;
    get->from = request->number;
    get->count = request->numbers;
}

static void put_view(const struct dp_request *from, struct request_parts *parts)
{
    Downpour__ViewPut *to = BODY(view_put, VIEW_PUT);
    DP_WIRE_VIEW_PUT(DP_WIRE_COPY)
}

static void put_heartbeat(const struct dp_heartbeat *from, struct request_parts *parts)
{
    Downpour__Heartbeat *to = BODY(heartbeat, HEARTBEAT);
    to->run = from->run;
    to->rank = from->rank;
    to->members = from->members;
}

static void put_register_get(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__RegisterGet *get = BODY(register_get, REGISTER_GET);
    get->name = (char *)request->name;
    get->above = request->version;
    get->wait_ms = request->wait_ms;
}

static void put_register_set(const struct dp_request *request, struct request_parts *parts)
{
    Downpour__RegisterSet *set = BODY(register_set, REGISTER_SET);
    set->name = (char *)request->name;
    set->expected = request->version;
    set->nonce = request->nonce;
    set->server_shard = request->server_shard;
}

static void put_lease(const struct dp_request *request, struct request_parts *parts)
{
    const struct dp_lease_ask *from = &request->lease;
    Downpour__Lease *to = BODY(lease, LEASE);
    to->run = request->run;
    to->epoch = request->epoch;
    DP_WIRE_LEASE(DP_WIRE_COPY)
}

static void put_checkpoint(const struct dp_request *request, struct request_parts *parts)
{
    const struct dp_checkpoint_ask *ask = &request->checkpoint;
    Downpour__Checkpoint *checkpoint = BODY(checkpoint, CHECKPOINT);
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
    checkpoint->file = (char *)ask->file;
    checkpoint->wait_ms = ask->wait_ms;
    checkpoint->keep = ask->keep;
    checkpoint->run = ask->run;
    checkpoint->epoch = ask->epoch;
}

/* Returns how many frames must follow. */
static uint32_t put_body(const struct dp_request *request, struct request_parts *parts)
{
    switch (request->kind) {
    case DP_REQUEST_HELLO:
        put_hello(request, parts);
        return 0;
    case DP_REQUEST_CREATE_TABLE:
        dp_spec_to_wire(&request->spec, &parts->spec);
        BODY(create_table, CREATE_TABLE)->spec = &parts->spec;
        return 0;
    case DP_REQUEST_PULL:
        put_pull(request, parts);
        return request->sections;
    case DP_REQUEST_PUSH:
        put_push(request, parts);
        return 2 * request->sections;
    case DP_REQUEST_STATUS:
        (void)BODY(status, STATUS);
        return 0;
    case DP_REQUEST_NOTE_PUT:
        BODY(note_put, NOTE_PUT)->name = (char *)request->name;
        return 1;
    case DP_REQUEST_NOTES_GET:
        BODY(notes_get, NOTES_GET)->prefix = (char *)request->name;
        parts->body.notes_get.after = (char *)request->after;
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
        put_heartbeat(&request->heartbeat, parts);
        return 0;
    case DP_REQUEST_LEASE:
        put_lease(request, parts);
        return request->lease.tells ? 2 : 1;
    case DP_REQUEST_CHECKPOINT:
        put_checkpoint(request, parts);
        return request->checkpoint.action == DP_CHECKPOINT_FINISH;
    case DP_REQUEST_REGISTER_COPY:
        (void)BODY(register_copy, REGISTER_COPY);
        return 0;
    case DP_REQUEST_NONE:
    case DP_REQUEST_CLOSE:
        break;
    }
    return 0;
}

enum dp_status dp_request_encode(const struct dp_request *from, struct dp_frame *frames, uint32_t frame_count,
                                 struct dp_message **out, struct dp_error *err)
{
    struct request_parts parts;
    Downpour__Request *to = &parts.head;
    DP_ASSERT(from->kind != DP_REQUEST_NONE && from->kind != DP_REQUEST_CLOSE);
    DP_ASSERT(from->sections <= DP_SECTIONS_MAX);
    downpour__request__init(to);
    to->protocol = DP_PROTOCOL_VERSION;
    to->timeout_ms = from->timeout_ms;
    DP_WIRE_REQUEST(DP_WIRE_COPY)
    uint32_t expected = put_body(from, &parts);
    DP_ASSERT(frame_count == expected);
    return dp_header_pack(&parts.head.base, "request", DP_REQUEST_HEADER_BYTES_MAX, frames, frame_count, out,
                          err);
}

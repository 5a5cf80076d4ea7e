/* From frames to a request: header -> head fields -> version -> body -> frames of each section -> keys'
 * order. The head fields come first, so that any refusal after them can be answered. */
#include "common/base/bytes.h"
#include "common/wire/fields.h"
#include "common/wire/header.h"
#include "common/wire/request.h"
#include "common/wire/spec.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

/* The index of the first key that is not above the one before it, or rows. */
static uint32_t first_unordered(const unsigned char *keys, uint32_t rows)
{
    uint64_t last = dp_load_u64le(keys);
    for (uint32_t i = 1; i < rows; i++) {
        uint64_t key = dp_load_u64le(keys + (size_t)i * 8);
        if (key <= last)
            return i;
        last = key;
    }
    return rows;
}

static enum dp_status take_keys(const struct dp_frame *frame, uint32_t at, struct dp_section *section,
                                struct dp_error *err)
{
    if (frame->size != (size_t)section->rows * 8)
        return dp_fail(err, DP_INVALID, "sections[%u]: keys frame has %zu bytes, expected %zu for %u rows",
                       at, frame->size, (size_t)section->rows * 8, section->rows);
    section->keys = frame->data;
    uint32_t bad = section->rows ? first_unordered(frame->data, section->rows) : 0;
    if (bad < section->rows)
        return dp_fail(err, DP_INVALID,
                       "sections[%u]: keys must be strictly ascending, but key %u (%" PRIx64
                       ") follows %" PRIx64,
                       at, bad, dp_load_u64le((const char *)frame->data + (size_t)bad * 8),
                       dp_load_u64le((const char *)frame->data + (size_t)bad * 8 - 8));
    return DP_OK;
}

static enum dp_status take_values(const struct dp_frame *frame, uint32_t at, struct dp_section *section,
                                  struct dp_error *err)
{
    size_t column = (size_t)section->rows * dp_value_bytes(section->type);
    bool fits = column == 0 ? frame->size == 0 : frame->size > 0 && frame->size % column == 0;
    if (!fits || frame->size > DP_FRAME_BYTES_MAX)
        return dp_fail(err, DP_INVALID,
                       "sections[%u]: values frame has %zu bytes, expected a multiple of %zu for %u rows, at "
                       "most %u",
                       at, frame->size, column, section->rows, DP_FRAME_BYTES_MAX);
    section->values = frame->data;
    section->value_bytes = frame->size;
    return DP_OK;
}

static enum dp_status take_sections(const struct dp_message *message, Downpour__Section *const *wire,
                                    size_t n, struct dp_request *out, struct dp_error *err)
{
    uint32_t each = out->kind == DP_REQUEST_PUSH ? 2 : 1;
    if (n > DP_SECTIONS_MAX)
        return dp_fail(err, DP_INVALID, "sections: %zu, the limit is %u", n, DP_SECTIONS_MAX);
    if (message->frames != 1 + n * each)
        return dp_fail(err, DP_INVALID, "message has %u frames, expected %zu for %zu sections",
                       message->frames, 1 + n * each, n);
    for (uint32_t i = 0; i < n; i++) {
        struct dp_section *section = &out->section[i];
        const struct dp_frame *frame = &message->frame[1 + i * each];
        if (wire[i]->rows > DP_ROWS_MAX)
            return dp_fail(err, DP_INVALID, "sections[%u].rows: %u, the limit is %u", i, wire[i]->rows,
                           DP_ROWS_MAX);
        if (wire[i]->type != DOWNPOUR__VALUE_TYPE__F32 && wire[i]->type != DOWNPOUR__VALUE_TYPE__BF16)
            return dp_fail(err, DP_INVALID,
                           "sections[%u].type: %d is not known, expected 0 (f32) or 1 (bf16)", i,
                           (int)wire[i]->type);
        section->table = wire[i]->table;
        section->rows = wire[i]->rows;
        section->type = wire[i]->type == DOWNPOUR__VALUE_TYPE__BF16 ? DP_BF16 : DP_F32;
        enum dp_status st = take_keys(frame, i, section, err);
        if (st == DP_OK && each == 2)
            st = take_values(frame + 1, i, section, err);
        if (st != DP_OK)
            return st;
    }
    out->sections = (uint32_t)n;
    return DP_OK;
}

static enum dp_status take_member(const Downpour__Member *from, struct dp_membership *to,
                                  struct dp_error *err)
{
    if (!from)
        return DP_OK;
    DP_WIRE_MEMBER(DP_WIRE_COPY)
    if (to->run == 0 || to->incarnation == 0 || to->view == 0)
        return dp_fail(err, DP_INVALID,
                       "member: run %u, view %" PRIu64 ", incarnation %" PRIx64
                       ", expected 1 or more of each",
                       to->run, to->view, to->incarnation);
    if (to->rank >= DP_MEMBERS_MAX)
        return dp_fail(err, DP_INVALID, "member.rank: %u, the limit is %u", to->rank, DP_MEMBERS_MAX - 1);
    if (to->step >= UINT64_MAX - 1)
        return dp_fail(err, DP_INVALID, "member.step: %" PRIu64 " has no next one", to->step);
    if (to->examples > DP_EXAMPLES_MAX)
        return dp_fail(err, DP_INVALID, "member.examples: %" PRIu64 ", the limit is %llu", to->examples,
                       DP_EXAMPLES_MAX);
    to->given = true;
    return DP_OK;
}

static enum dp_status take_pull(const struct dp_message *message, const Downpour__Pull *wire,
                                struct dp_request *out, struct dp_error *err)
{
    enum dp_status st = take_member(wire->member, &out->member, err);
    return st == DP_OK ? take_sections(message, wire->sections, wire->n_sections, out, err) : st;
}

static enum dp_status take_push(const struct dp_message *message, const Downpour__Push *from,
                                struct dp_request *to, struct dp_error *err)
{
    DP_WIRE_PUSH(DP_WIRE_COPY)
    if (to->examples > DP_EXAMPLES_MAX)
        return dp_fail(err, DP_INVALID, "examples: %" PRIu64 ", the limit is %llu", to->examples,
                       DP_EXAMPLES_MAX);
    /* Optimizers divide by it: 1 over a subnormal number may be infinite, and the row with it. */
    if (!isfinite(to->rate) || !(to->rate >= FLT_MIN))
        return dp_fail(err, DP_INVALID, "rate: %g, expected a finite number of %g or more", (double)to->rate,
                       (double)FLT_MIN);
    if (to->by_staleness && !to->measured)
        return dp_fail(err, DP_INVALID,
                       "by_staleness: true, but the push is not measured, so its staleness is not known");
    enum dp_status st = take_member(from->member, &to->member, err);
    return st == DP_OK ? take_sections(message, from->sections, from->n_sections, to, err) : st;
}

static enum dp_status take_bytes(const struct dp_message *message, const char *what, uint32_t bytes_max,
                                 struct dp_request *out, struct dp_error *err)
{
    if (message->frames != 2)
        return dp_fail(err, DP_INVALID, "message has %u frames, expected 2: header and %s", message->frames,
                       what);
    if (message->frame[1].size > bytes_max)
        return dp_fail(err, DP_INVALID, "%s has %zu bytes, the limit is %u", what, message->frame[1].size,
                       bytes_max);
    out->note = message->frame[1].data;
    out->note_bytes = message->frame[1].size;
    return DP_OK;
}

static enum dp_status take_note(const struct dp_message *message, const char *name, const char *what,
                                uint32_t bytes_max, struct dp_request *out, struct dp_error *err)
{
    enum dp_status st = take_bytes(message, what, bytes_max, out, err);
    return st == DP_OK ? dp_header_name("name", name, 1, DP_NOTE_NAME_MAX, out->name, err) : st;
}

static enum dp_status take_register_set(const struct dp_message *message, const Downpour__RegisterSet *wire,
                                        struct dp_request *out, struct dp_error *err)
{
    out->version = wire->expected;
    out->nonce = wire->nonce;
    out->server_shard = wire->server_shard;
    if (wire->nonce == 0)
        return dp_fail(err, DP_INVALID, "nonce: 0, expected a random number");
    if (wire->expected == UINT64_MAX)
        return dp_fail(err, DP_INVALID, "expected: %" PRIu64 " has no next version", wire->expected);
    return take_note(message, wire->name, "value", DP_REGISTER_VALUE_BYTES_MAX, out, err);
}

static enum dp_status take_positions(const Downpour__PositionsGet *wire, struct dp_request *out,
                                     struct dp_error *err)
{
    out->stream = wire->stream;
    out->number = wire->from;
    out->numbers = wire->count;
    if (wire->stream == 0)
        return dp_fail(err, DP_INVALID, "stream: 0 belongs to no client");
    if (wire->count == 0 || wire->count > DP_POSITIONS_MAX)
        return dp_fail(err, DP_INVALID, "count: %u, expected 1 to %u", wire->count, DP_POSITIONS_MAX);
    if (wire->from > UINT64_MAX - wire->count)
        return dp_fail(err, DP_INVALID, "from: %" PRIu64 " and %u numbers are beyond 2^64", wire->from,
                       wire->count);
    return DP_OK;
}

static enum dp_status take_heartbeat(const Downpour__Heartbeat *wire, struct dp_request *out,
                                     struct dp_error *err)
{
    out->heartbeat = (struct dp_heartbeat){.run = wire->run, .rank = wire->rank, .members = wire->members};
    if (wire->run == 0 || wire->members == 0 || wire->members > DP_MEMBERS_MAX || wire->rank >= wire->members)
        return dp_fail(
            err, DP_INVALID,
            "heartbeat: run %u, rank %u of %u: runs start at 1, a run has 1 to %u members, and ranks are "
            "below their number",
            wire->run, wire->rank, wire->members, DP_MEMBERS_MAX);
    return DP_OK;
}

static enum dp_status check_lease(const struct dp_request *request, struct dp_error *err)
{
    const struct dp_lease_ask *lease = &request->lease;
    if (request->run == 0)
        return dp_fail(err, DP_INVALID, "run: 0, expected 1 or more");
    if (lease->total == 0 || lease->total > DP_LEASE_TOTAL_MAX)
        return dp_fail(err, DP_INVALID, "total: %" PRIu64 ", expected 1 to %u", lease->total,
                       DP_LEASE_TOTAL_MAX);
    if (lease->rank >= DP_LEASE_RANKS_MAX)
        return dp_fail(err, DP_INVALID, "rank: %u, the limit is %u", lease->rank, DP_LEASE_RANKS_MAX - 1);
    if (lease->want > DP_LEASE_WANT_MAX || lease->held > DP_LEASE_HELD_MAX || lease->done > DP_LEASE_HELD_MAX)
        return dp_fail(err, DP_INVALID, "want, held, done: %u, %u, %u, the limits are %u, %u, %u",
                       lease->want, lease->held, lease->done, DP_LEASE_WANT_MAX, DP_LEASE_HELD_MAX,
                       DP_LEASE_HELD_MAX);
    return DP_OK;
}

static enum dp_status take_lease(const struct dp_message *message, const Downpour__Lease *from,
                                 struct dp_request *out, struct dp_error *err)
{
    struct dp_lease_ask *to = &out->lease;
    out->run = from->run;
    out->epoch = from->epoch;
    DP_WIRE_LEASE(DP_WIRE_COPY)
    enum dp_status st = check_lease(out, err);
    uint32_t frames = to->tells ? 3 : 2, numbers = to->held + to->done;
    if (st == DP_OK && message->frames != frames)
        st = dp_fail(err, DP_INVALID, "message has %u frames, expected %u", message->frames, frames);
    if (st == DP_OK && message->frame[1].size != (size_t)numbers * 8)
        st = dp_fail(err, DP_INVALID, "numbers frame has %zu bytes, expected %zu for %u held and %u done",
                     message->frame[1].size, (size_t)numbers * 8, to->held, to->done);
    size_t bits = (size_t)(to->total + 63) / 64 * 8;
    if (st == DP_OK && to->tells && message->frame[2].size != bits)
        st = dp_fail(err, DP_INVALID, "bits frame has %zu bytes, expected %zu for %" PRIu64 " numbers",
                     message->frame[2].size, bits, to->total);
    if (st != DP_OK)
        return st;
    to->numbers = message->frame[1].data;
    to->bits = to->tells ? message->frame[2].data : NULL;
    for (uint32_t i = 0; i < numbers; i++) {
        uint64_t number = dp_load_u64le((const char *)to->numbers + (size_t)i * 8);
        if (number >= to->total)
            return dp_fail(err, DP_INVALID, "%s[%u]: %" PRIu64 ", expected below the total, %" PRIu64,
                           i < to->held ? "held" : "done", i < to->held ? i : i - to->held, number,
                           to->total);
    }
    return DP_OK;
}

static enum dp_status check_checkpoint(const struct dp_checkpoint_ask *ask, struct dp_error *err)
{
    bool names_cut = ask->action == DP_CHECKPOINT_CUT || ask->action == DP_CHECKPOINT_FINISH;
    if (ask->action > DP_CHECKPOINT_ABANDON)
        return dp_fail(err, DP_INVALID, "action: %d is none that is known here", (int)ask->action);
    if (ask->order == 0)
        return dp_fail(err, DP_INVALID, "order: 0, expected a random number");
    if (ask->action == DP_CHECKPOINT_BEGIN && ask->directory[0] != '/')
        return dp_fail(err, DP_INVALID, "directory: '%.100s', expected an absolute path", ask->directory);
    if (names_cut != (ask->cut > 0) || ask->cut > DP_CHECKPOINT_CUTS_MAX)
        return dp_fail(err, DP_INVALID, "cut: %u, expected %s, and %u at most", ask->cut,
                       names_cut ? "1 or more" : "0", DP_CHECKPOINT_CUTS_MAX);
    if (ask->missing > (ask->action == DP_CHECKPOINT_FINISH ? DP_CHECKPOINT_MISSING_MAX : 0))
        return dp_fail(err, DP_INVALID, "missing: %u, the limit is %u, and 0 unless it finishes a cut",
                       ask->missing, DP_CHECKPOINT_MISSING_MAX);
    if (ask->number > 0 && ask->action != DP_CHECKPOINT_END)
        return dp_fail(err, DP_INVALID, "number: %u, expected 0 unless the order has ended", ask->number);
    return DP_OK;
}

static enum dp_status check_missing(const struct dp_checkpoint_ask *ask, struct dp_error *err)
{
    const char *at = ask->pushes;
    for (uint32_t i = 0; i < ask->missing; i++, at += 16) {
        uint64_t stream = dp_load_u64le(at), number = dp_load_u64le(at + 8);
        bool ascends = i == 0 || stream > dp_load_u64le(at - 16) ||
                       (stream == dp_load_u64le(at - 16) && number > dp_load_u64le(at - 8));
        if (stream == 0 || !ascends)
            return dp_fail(err, DP_INVALID, "missing[%u]: push %" PRIu64 " of stream %" PRIx64 " %s", i,
                           number, stream,
                           stream == 0 ? "belongs to no client" : "is not above the one before it");
    }
    return DP_OK;
}

static enum dp_status take_checkpoint(const struct dp_message *message, const Downpour__Checkpoint *wire,
                                      struct dp_request *out, struct dp_error *err)
{
    struct dp_checkpoint_ask *ask = &out->checkpoint;
    ask->action = (enum dp_checkpoint_action)wire->action;
    ask->order = wire->order;
    ask->cut = wire->cut;
    ask->step = wire->step;
    ask->full = wire->full;
    ask->link = wire->link;
    ask->rate = wire->rate;
    ask->missing = wire->missing;
    ask->number = wire->number;
    ask->wait_ms = wire->wait_ms;
    ask->keep = wire->keep;
    ask->run = wire->run;
    ask->epoch = wire->epoch;
    enum dp_status st =
        dp_header_name("directory", wire->directory, 0, DP_CHECKPOINT_DIRECTORY_MAX, ask->directory, err);
    if (st == DP_OK)
        st = dp_header_name("file", wire->file, 0, DP_CHECKPOINT_DIRECTORY_MAX, ask->file, err);
    if (st == DP_OK)
        st = check_checkpoint(ask, err);
    uint32_t frames = ask->action == DP_CHECKPOINT_FINISH ? 2 : 1;
    if (st == DP_OK && message->frames != frames)
        st = dp_fail(err, DP_INVALID, "message has %u frames, expected %u", message->frames, frames);
    if (st == DP_OK && frames == 2 && message->frame[1].size != (size_t)ask->missing * 16)
        st = dp_fail(err, DP_INVALID, "frame has %zu bytes, expected %zu for %u missing pushes",
                     message->frame[1].size, (size_t)ask->missing * 16, ask->missing);
    if (st != DP_OK || frames == 1)
        return st;
    ask->pushes = message->frame[1].data;
    return check_missing(ask, err);
}

/* alone: all of the body is in the header. */
static const struct {
    enum dp_request_kind kind;
    bool alone;
} bodies[] = {
    [DOWNPOUR__REQUEST__BODY_HELLO] = {DP_REQUEST_HELLO, true},
    [DOWNPOUR__REQUEST__BODY_CREATE_TABLE] = {DP_REQUEST_CREATE_TABLE, true},
    [DOWNPOUR__REQUEST__BODY_PULL] = {DP_REQUEST_PULL, false},
    [DOWNPOUR__REQUEST__BODY_PUSH] = {DP_REQUEST_PUSH, false},
    [DOWNPOUR__REQUEST__BODY_STATUS] = {DP_REQUEST_STATUS, true},
    [DOWNPOUR__REQUEST__BODY_NOTE_PUT] = {DP_REQUEST_NOTE_PUT, false},
    [DOWNPOUR__REQUEST__BODY_NOTES_GET] = {DP_REQUEST_NOTES_GET, true},
    [DOWNPOUR__REQUEST__BODY_POSITIONS_GET] = {DP_REQUEST_POSITIONS_GET, true},
    [DOWNPOUR__REQUEST__BODY_REGISTER_GET] = {DP_REQUEST_REGISTER_GET, true},
    [DOWNPOUR__REQUEST__BODY_REGISTER_SET] = {DP_REQUEST_REGISTER_SET, false},
    [DOWNPOUR__REQUEST__BODY_VIEW_PUT] = {DP_REQUEST_VIEW_PUT, false},
    [DOWNPOUR__REQUEST__BODY_LEASE] = {DP_REQUEST_LEASE, false},
    [DOWNPOUR__REQUEST__BODY_HEARTBEAT] = {DP_REQUEST_HEARTBEAT, true},
    [DOWNPOUR__REQUEST__BODY_CHECKPOINT] = {DP_REQUEST_CHECKPOINT, false},
    [DOWNPOUR__REQUEST__BODY_REGISTER_COPY] = {DP_REQUEST_REGISTER_COPY, true},
};

static enum dp_status take_hello(const Downpour__Hello *from, struct dp_request *to, struct dp_error *err)
{
    DP_WIRE_HELLO(DP_WIRE_COPY)
    return dp_header_name("client", from->client, 0, DP_CLIENT_NAME_MAX, to->client, err);
}

static enum dp_status take_register_get(const Downpour__RegisterGet *wire, struct dp_request *out,
                                        struct dp_error *err)
{
    out->version = wire->above;
    out->wait_ms = wire->wait_ms < DP_TIMEOUT_MS_MAX ? wire->wait_ms : DP_TIMEOUT_MS_MAX;
    return dp_header_name("name", wire->name, 1, DP_NOTE_NAME_MAX, out->name, err);
}

static enum dp_status take_view(const struct dp_message *message, const Downpour__ViewPut *from,
                                struct dp_request *to, struct dp_error *err)
{
    DP_WIRE_VIEW_PUT(DP_WIRE_COPY)
    return take_bytes(message, "view", DP_VIEW_BYTES_MAX, to, err);
}

static enum dp_status take_body(const struct dp_message *message, const Downpour__Request *wire,
                                struct dp_request *out, struct dp_error *err)
{
    size_t body = (size_t)wire->body_case, count = sizeof bodies / sizeof bodies[0];
    out->kind = body < count ? bodies[body].kind : DP_REQUEST_NONE;
    if (out->kind == DP_REQUEST_NONE)
        return dp_fail(err, DP_INVALID, "body: absent, or of a kind not known here");
    if (bodies[body].alone && message->frames != 1)
        return dp_fail(err, DP_INVALID, "message has %u frames, expected the header alone", message->frames);
    switch (out->kind) {
    case DP_REQUEST_HELLO:
        return take_hello(wire->hello, out, err);
    case DP_REQUEST_CREATE_TABLE:
        return dp_spec_from_wire(wire->create_table->spec, &out->spec, err);
    case DP_REQUEST_PULL:
        return take_pull(message, wire->pull, out, err);
    case DP_REQUEST_PUSH:
        return take_push(message, wire->push, out, err);
    case DP_REQUEST_NOTE_PUT:
        return take_note(message, wire->note_put->name, "note", DP_NOTE_BYTES_MAX, out, err);
    case DP_REQUEST_NOTES_GET:
        return dp_header_name("prefix", wire->notes_get->prefix, 0, DP_NOTE_NAME_MAX, out->name, err) == DP_OK
                   ? dp_header_name("after", wire->notes_get->after, 0, DP_NOTE_NAME_MAX, out->after, err)
                   : err->status;
    case DP_REQUEST_POSITIONS_GET:
        return take_positions(wire->positions_get, out, err);
    case DP_REQUEST_REGISTER_GET:
        return take_register_get(wire->register_get, out, err);
    case DP_REQUEST_REGISTER_SET:
        return take_register_set(message, wire->register_set, out, err);
    case DP_REQUEST_VIEW_PUT:
        return take_view(message, wire->view_put, out, err);
    case DP_REQUEST_HEARTBEAT:
        return take_heartbeat(wire->heartbeat, out, err);
    case DP_REQUEST_LEASE:
        return take_lease(message, wire->lease, out, err);
    case DP_REQUEST_CHECKPOINT:
        return take_checkpoint(message, wire->checkpoint, out, err);
    default: /* without fields */
        return DP_OK;
    }
}

enum dp_status dp_request_decode(const struct dp_message *message, struct dp_request *to,
                                 struct dp_error *err)
{
    ProtobufCMessage *header = NULL;
    memset(to, 0, sizeof *to);
    enum dp_status st = dp_header_unpack(message, &downpour__request__descriptor, "request",
                                         DP_REQUEST_HEADER_BYTES_MAX, &header, err);
    if (st != DP_OK)
        return st;
    const Downpour__Request *from = (const Downpour__Request *)header;
    DP_WIRE_REQUEST(DP_WIRE_COPY)
    to->timeout_ms = from->timeout_ms < DP_TIMEOUT_MS_MAX ? from->timeout_ms : DP_TIMEOUT_MS_MAX;
    if (from->protocol != DP_PROTOCOL_VERSION)
        st =
            dp_fail(err, DP_VERSION, "protocol version %u, this build speaks %u: use programs of one release",
                    from->protocol, DP_PROTOCOL_VERSION);
    else if (from->timeout_ms == 0)
        st = dp_fail(err, DP_INVALID, "timeout_ms: 0, expected 1 or more");
    else
        st = take_body(message, from, to, err);
    protobuf_c_message_free_unpacked(header, NULL);
    return st;
}

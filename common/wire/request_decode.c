/* From frames to a request: header -> head fields -> version -> body -> frames of each section -> keys'
 * order. The head fields come first, so that any refusal behind them can be answered. */
#include "common/base/bytes.h"
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

static enum dp_status take_member(const Downpour__Member *wire, struct dp_request *out, struct dp_error *err)
{
    if (!wire)
        return DP_OK;
    if (wire->run == 0 || wire->incarnation == 0 || wire->view == 0)
        return dp_fail(err, DP_INVALID,
                       "member: run %u, view %" PRIu64 ", incarnation %" PRIx64
                       ", expected 1 or more of each",
                       wire->run, wire->view, wire->incarnation);
    if (wire->rank >= DP_MEMBERS_MAX)
        return dp_fail(err, DP_INVALID, "member.rank: %u, the limit is %u", wire->rank, DP_MEMBERS_MAX - 1);
    if (wire->step >= UINT64_MAX - 1)
        return dp_fail(err, DP_INVALID, "member.step: %" PRIu64 " has no next one", wire->step);
    if (wire->examples > DP_EXAMPLES_MAX)
        return dp_fail(err, DP_INVALID, "member.examples: %" PRIu64 ", the limit is %llu", wire->examples,
                       DP_EXAMPLES_MAX);
    out->member = (struct dp_membership){.given = true,
                                         .run = wire->run,
                                         .rank = wire->rank,
                                         .view = wire->view,
                                         .incarnation = wire->incarnation,
                                         .step = wire->step,
                                         .examples = wire->examples};
    return DP_OK;
}

static enum dp_status take_pull(const struct dp_message *message, const Downpour__Pull *wire,
                                struct dp_request *out, struct dp_error *err)
{
    enum dp_status st = take_member(wire->member, out, err);
    return st == DP_OK ? take_sections(message, wire->sections, wire->n_sections, out, err) : st;
}

static enum dp_status take_push(const struct dp_message *message, const Downpour__Push *wire,
                                struct dp_request *out, struct dp_error *err)
{
    out->stream = wire->stream;
    out->number = wire->number;
    out->pulled_at = wire->pulled_at;
    out->measured = wire->measured;
    out->pulled_lsn = wire->pulled_lsn;
    out->by_staleness = wire->by_staleness;
    out->rate = wire->rate;
    out->examples = wire->examples;
    if (wire->examples > DP_EXAMPLES_MAX)
        return dp_fail(err, DP_INVALID, "examples: %" PRIu64 ", the limit is %llu", wire->examples,
                       DP_EXAMPLES_MAX);
    /* Optimizers divide by it: 1 over a subnormal number may be infinite, and the row with it. */
    if (!isfinite(wire->rate) || !(wire->rate >= FLT_MIN))
        return dp_fail(err, DP_INVALID, "rate: %g, expected a finite number of %g or more",
                       (double)wire->rate, (double)FLT_MIN);
    if (wire->by_staleness && !wire->measured)
        return dp_fail(err, DP_INVALID,
                       "by_staleness: true, but the push is not measured, so its staleness is not known");
    enum dp_status st = take_member(wire->member, out, err);
    if (st != DP_OK)
        return st;
    return take_sections(message, wire->sections, wire->n_sections, out, err);
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

static enum dp_status take_lease(const struct dp_message *message, const Downpour__Lease *wire,
                                 struct dp_request *out, struct dp_error *err)
{
    struct dp_lease_ask *lease = &out->lease;
    out->run = wire->run;
    out->epoch = wire->epoch;
    *lease = (struct dp_lease_ask){.total = wire->total,
                                   .rank = wire->rank,
                                   .want = wire->want,
                                   .held = wire->held,
                                   .done = wire->done,
                                   .tells = wire->tells};
    enum dp_status st = check_lease(out, err);
    uint32_t frames = lease->tells ? 3 : 2, numbers = lease->held + lease->done;
    if (st == DP_OK && message->frames != frames)
        st = dp_fail(err, DP_INVALID, "message has %u frames, expected %u", message->frames, frames);
    if (st == DP_OK && message->frame[1].size != (size_t)numbers * 8)
        st = dp_fail(err, DP_INVALID, "numbers frame has %zu bytes, expected %zu for %u held and %u done",
                     message->frame[1].size, (size_t)numbers * 8, lease->held, lease->done);
    size_t bits = (size_t)(lease->total + 63) / 64 * 8;
    if (st == DP_OK && lease->tells && message->frame[2].size != bits)
        st = dp_fail(err, DP_INVALID, "bits frame has %zu bytes, expected %zu for %" PRIu64 " numbers",
                     message->frame[2].size, bits, lease->total);
    if (st != DP_OK)
        return st;
    lease->numbers = message->frame[1].data;
    lease->bits = lease->tells ? message->frame[2].data : NULL;
    for (uint32_t i = 0; i < numbers; i++) {
        uint64_t number = dp_load_u64le((const char *)lease->numbers + (size_t)i * 8);
        if (number >= lease->total)
            return dp_fail(err, DP_INVALID, "%s[%u]: %" PRIu64 ", expected below the total, %" PRIu64,
                           i < lease->held ? "held" : "done", i < lease->held ? i : i - lease->held, number,
                           lease->total);
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
    enum dp_status st =
        dp_header_name("directory", wire->directory, 0, DP_CHECKPOINT_DIRECTORY_MAX, ask->directory, err);
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

/* Bodies that are all in the header. */
static enum dp_status take_short(const struct dp_message *message, const Downpour__Request *wire,
                                 struct dp_request *out, struct dp_error *err)
{
    if (message->frames != 1)
        return dp_fail(err, DP_INVALID, "message has %u frames, expected the header alone", message->frames);
    switch (out->kind) {
    case DP_REQUEST_HELLO:
        out->want_stream = wire->hello->want_stream;
        out->next_sequence = wire->hello->next_sequence;
        out->stream_above = wire->hello->stream_above;
        return dp_header_name("client", wire->hello->client, 0, DP_CLIENT_NAME_MAX, out->client, err);
    case DP_REQUEST_CREATE_TABLE:
        return dp_spec_from_wire(wire->create_table->spec, &out->spec, err);
    case DP_REQUEST_NOTES_GET:
        return dp_header_name("prefix", wire->notes_get->prefix, 0, DP_NOTE_NAME_MAX, out->name, err);
    case DP_REQUEST_POSITIONS_GET:
        return take_positions(wire->positions_get, out, err);
    case DP_REQUEST_HEARTBEAT:
        return take_heartbeat(wire->heartbeat, out, err);
    case DP_REQUEST_REGISTER_GET:
        out->version = wire->register_get->above;
        out->wait_ms =
            wire->register_get->wait_ms < DP_TIMEOUT_MS_MAX ? wire->register_get->wait_ms : DP_TIMEOUT_MS_MAX;
        return dp_header_name("name", wire->register_get->name, 1, DP_NOTE_NAME_MAX, out->name, err);
    default:
        return DP_OK;
    }
}

static enum dp_status take_body(const struct dp_message *message, const Downpour__Request *wire,
                                struct dp_request *out, struct dp_error *err)
{
    switch (wire->body_case) {
    case DOWNPOUR__REQUEST__BODY_HELLO:
        out->kind = DP_REQUEST_HELLO;
        return take_short(message, wire, out, err);
    case DOWNPOUR__REQUEST__BODY_CREATE_TABLE:
        out->kind = DP_REQUEST_CREATE_TABLE;
        return take_short(message, wire, out, err);
    case DOWNPOUR__REQUEST__BODY_STATUS:
        out->kind = DP_REQUEST_STATUS;
        return take_short(message, wire, out, err);
    case DOWNPOUR__REQUEST__BODY_NOTES_GET:
        out->kind = DP_REQUEST_NOTES_GET;
        return take_short(message, wire, out, err);
    case DOWNPOUR__REQUEST__BODY_POSITIONS_GET:
        out->kind = DP_REQUEST_POSITIONS_GET;
        return take_short(message, wire, out, err);
    case DOWNPOUR__REQUEST__BODY_PULL:
        out->kind = DP_REQUEST_PULL;
        return take_pull(message, wire->pull, out, err);
    case DOWNPOUR__REQUEST__BODY_PUSH:
        out->kind = DP_REQUEST_PUSH;
        return take_push(message, wire->push, out, err);
    case DOWNPOUR__REQUEST__BODY_NOTE_PUT:
        out->kind = DP_REQUEST_NOTE_PUT;
        return take_note(message, wire->note_put->name, "note", DP_NOTE_BYTES_MAX, out, err);
    case DOWNPOUR__REQUEST__BODY_REGISTER_GET:
        out->kind = DP_REQUEST_REGISTER_GET;
        return take_short(message, wire, out, err);
    case DOWNPOUR__REQUEST__BODY_REGISTER_SET:
        out->kind = DP_REQUEST_REGISTER_SET;
        return take_register_set(message, wire->register_set, out, err);
    case DOWNPOUR__REQUEST__BODY_HEARTBEAT:
        out->kind = DP_REQUEST_HEARTBEAT;
        return take_short(message, wire, out, err);
    case DOWNPOUR__REQUEST__BODY_VIEW_PUT:
        out->kind = DP_REQUEST_VIEW_PUT;
        out->returns = wire->view_put->returns;
        out->rank = wire->view_put->rank;
        return take_bytes(message, "view", DP_VIEW_BYTES_MAX, out, err);
    case DOWNPOUR__REQUEST__BODY_CHECKPOINT:
        out->kind = DP_REQUEST_CHECKPOINT;
        return take_checkpoint(message, wire->checkpoint, out, err);
    case DOWNPOUR__REQUEST__BODY_REGISTER_COPY:
        out->kind = DP_REQUEST_REGISTER_COPY;
        return take_short(message, wire, out, err);
    case DOWNPOUR__REQUEST__BODY_LEASE:
        out->kind = DP_REQUEST_LEASE;
        return take_lease(message, wire->lease, out, err);
    default:
        return dp_fail(err, DP_INVALID, "body: absent, or of a kind not known here");
    }
}

enum dp_status dp_request_decode(const struct dp_message *message, struct dp_request *out,
                                 struct dp_error *err)
{
    ProtobufCMessage *header = NULL;
    memset(out, 0, sizeof *out);
    enum dp_status st = dp_header_unpack(message, &downpour__request__descriptor, "request",
                                         DP_REQUEST_HEADER_BYTES_MAX, &header, err);
    if (st != DP_OK)
        return st;
    const Downpour__Request *wire = (const Downpour__Request *)header;
    out->id = wire->id;
    out->cluster = wire->cluster;
    out->generation = wire->generation;
    out->history = wire->history;
    out->session = wire->session;
    out->sequence = wire->sequence;
    out->timeout_ms = wire->timeout_ms < DP_TIMEOUT_MS_MAX ? wire->timeout_ms : DP_TIMEOUT_MS_MAX;
    if (wire->protocol != DP_PROTOCOL_VERSION)
        st =
            dp_fail(err, DP_VERSION, "protocol version %u, this build speaks %u: use programs of one release",
                    wire->protocol, DP_PROTOCOL_VERSION);
    else if (wire->timeout_ms == 0)
        st = dp_fail(err, DP_INVALID, "timeout_ms: 0, expected 1 or more");
    else
        st = take_body(message, wire, out, err);
    protobuf_c_message_free_unpacked(header, NULL);
    return st;
}

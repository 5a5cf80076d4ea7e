/* From frames to a reply: header -> head fields -> version -> body -> how many frames follow. Only the
 * client that asked knows what the frames of a pull must hold. */
#include "common/base/text.h"
#include "common/wire/fields.h"
#include "common/wire/header.h"
#include "common/wire/reply.h"
#include "common/wire/spec.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void dp_reply_clear(struct dp_reply *reply)
{
    free(reply->report.table);
    free(reply->report.counter);
    free(reply->report.histogram);
    free(reply->note);
    free(reply->age_ms);
    reply->report = (struct dp_status_report){0};
    reply->note = NULL;
    reply->age_ms = NULL;
    reply->notes = 0;
}

/* A server's reason ends in a person's terminal: control characters do not. */
static enum dp_status take_words(const char *field, const char *from, char to[DP_REASON_MAX + 1],
                                 struct dp_error *err)
{
    size_t len = strnlen(from, DP_REASON_MAX + 1);
    if (len > DP_REASON_MAX)
        return dp_fail(err, DP_INVALID, "%s: over %u bytes", field, DP_REASON_MAX);
    memcpy(to, from, len);
    to[len] = '\0';
    dp_text_clean(to);
    return DP_OK;
}

static enum dp_status take_histogram(const Downpour__Histogram *wire, struct dp_histogram *out,
                                     struct dp_error *err)
{
    if (wire->n_upper == 0 || wire->n_upper > DP_HISTOGRAM_BUCKETS_MAX || wire->n_counts != wire->n_upper)
        return dp_fail(err, DP_INVALID,
                       "histograms: %zu bounds and %zu counts, expected as many of both, 1 to %u",
                       wire->n_upper, wire->n_counts, DP_HISTOGRAM_BUCKETS_MAX);
    out->buckets = (uint32_t)wire->n_upper;
    for (uint32_t b = 0; b < out->buckets; b++) {
        out->upper[b] = wire->upper[b];
        out->count[b] = wire->counts[b];
        if (isnan(wire->upper[b]) || (b > 0 && !(wire->upper[b] > wire->upper[b - 1])))
            return dp_fail(err, DP_INVALID, "histograms.upper[%u]: %g is not above the bound before it", b,
                           wire->upper[b]);
    }
    return dp_header_name("histograms.name", wire->name, 1, DP_HISTOGRAM_NAME_MAX, out->name, err);
}

static enum dp_status take_report(const Downpour__StatusReport *wire, struct dp_status_report *out,
                                  struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (wire->n_tables > DP_STATUS_TABLES_MAX || wire->n_counters > DP_COUNTERS_MAX ||
        wire->n_histograms > DP_HISTOGRAMS_MAX)
        return dp_fail(
            err, DP_INVALID,
            "status_report: %zu tables, %zu counters and %zu histograms, the limits are %u, %u and %u",
            wire->n_tables, wire->n_counters, wire->n_histograms, DP_STATUS_TABLES_MAX, DP_COUNTERS_MAX,
            DP_HISTOGRAMS_MAX);
    out->shard = wire->shard;
    out->shards = wire->shards;
    out->store = wire->store;
    out->table = calloc(wire->n_tables + 1, sizeof out->table[0]);
    out->counter = calloc(wire->n_counters + 1, sizeof out->counter[0]);
    out->histogram = calloc(wire->n_histograms + 1, sizeof out->histogram[0]);
    if (!out->table || !out->counter || !out->histogram)
        return dp_fail(err, DP_NOMEM, "out of memory for a status report of %zu tables", wire->n_tables);
    for (size_t i = 0; i < wire->n_tables && st == DP_OK; i++) {
        out->table[i].rows = wire->tables[i]->rows;
        out->table[i].bytes = wire->tables[i]->bytes;
        st = dp_spec_from_wire(wire->tables[i]->spec, &out->table[i].spec, err);
    }
    for (size_t i = 0; i < wire->n_counters && st == DP_OK; i++) {
        out->counter[i].value = wire->counters[i]->value;
        st = dp_header_name("counters.name", wire->counters[i]->name, 1, DP_COUNTER_NAME_MAX,
                            out->counter[i].name, err);
    }
    for (size_t i = 0; i < wire->n_histograms && st == DP_OK; i++)
        st = take_histogram(wire->histograms[i], &out->histogram[i], err);
    out->histograms = (uint32_t)wire->n_histograms;
    out->tables = (uint32_t)wire->n_tables;
    out->counters = (uint32_t)wire->n_counters;
    return st;
}

static enum dp_status take_notes(const Downpour__Notes *wire, struct dp_reply *out, struct dp_error *err)
{
    if (wire->n_names > DP_NOTES_MAX)
        return dp_fail(err, DP_INVALID, "notes: %zu, the limit is %u", wire->n_names, DP_NOTES_MAX);
    out->note = calloc(wire->n_names + 1, sizeof out->note[0]);
    if (!out->note)
        return dp_fail(err, DP_NOMEM, "out of memory for %zu notes", wire->n_names);
    if (wire->n_ages_ms > 0 && wire->n_ages_ms != wire->n_names)
        return dp_fail(err, DP_INVALID, "notes: %zu ages of %zu notes", wire->n_ages_ms, wire->n_names);
    out->age_ms = wire->n_ages_ms > 0 ? calloc(wire->n_ages_ms, sizeof *out->age_ms) : NULL;
    if (out->age_ms)
        memcpy(out->age_ms, wire->ages_ms, wire->n_ages_ms * sizeof *out->age_ms);
    out->notes = (uint32_t)wire->n_names;
    for (size_t i = 0; i < wire->n_names; i++) {
        enum dp_status st =
            dp_header_name("notes.names", wire->names[i], 1, DP_NOTE_NAME_MAX, out->note[i], err);
        if (st != DP_OK)
            return st;
    }
    return DP_OK;
}

static enum dp_status take_leased(const Downpour__Leased *wire, struct dp_reply *out, struct dp_error *err)
{
    out->kind = DP_REPLY_LEASED;
    out->wait_ms = wire->wait_ms;
    out->done = wire->done;
    if (wire->state > DOWNPOUR__LEASE_STATE__LEASE_TELL)
        return dp_fail(err, DP_INVALID, "leased.state: %d is none that is known here", (int)wire->state);
    out->lease = (enum dp_lease_state)wire->state;
    return DP_OK;
}

static enum dp_status take_checkpoint(const Downpour__CheckpointState *wire, struct dp_reply *out,
                                      struct dp_error *err)
{
    struct dp_checkpoint_state *state = &out->checkpoint;
    out->kind = DP_REPLY_CHECKPOINT;
    if (wire->stage > DOWNPOUR__CHECKPOINT_STAGE__CHECKPOINT_ABANDONED)
        return dp_fail(err, DP_INVALID, "checkpoint_state.stage: %d is none that is known here",
                       (int)wire->stage);
    state->stage = (enum dp_checkpoint_stage)wire->stage;
    state->order = wire->order;
    state->lsn = wire->lsn;
    state->after = wire->after;
    state->open = wire->open;
    state->mode = wire->mode;
    state->run = wire->run;
    state->done_bytes = wire->done_bytes;
    state->all_bytes = wire->all_bytes;
    state->cut = wire->cut;
    state->lacking = wire->lacking;
    state->lack_stream = wire->lack_stream;
    state->lack_number = wire->lack_number;
    state->why_status = wire->why_status;
    if (state->after > state->lsn)
        return dp_fail(err, DP_INVALID, "checkpoint_state: after %" PRIu64 " is above lsn %" PRIu64,
                       state->after, state->lsn);
    return take_words("why", wire->why, state->why, err);
}

static enum dp_status take_welcome(const Downpour__Welcome *from, struct dp_reply *to, struct dp_error *err)
{
    to->kind = DP_REPLY_WELCOME;
    DP_WIRE_WELCOME(DP_WIRE_COPY)
    return to->first <= to->last ? DP_OK : dp_fail(err, DP_INVALID, "welcome: first is above last");
}

static enum dp_status take_pulled(const Downpour__Pulled *from, struct dp_reply *to)
{
    to->kind = DP_REPLY_PULLED;
    DP_WIRE_PULLED(DP_WIRE_COPY)
    return DP_OK;
}

static enum dp_status take_pushed(const Downpour__Pushed *from, struct dp_reply *to, struct dp_error *err)
{
    to->kind = DP_REPLY_PUSHED;
    DP_WIRE_PUSHED(DP_WIRE_COPY)
    return to->changed_rows <= to->rows && isfinite(to->rate)
               ? DP_OK
               : dp_fail(err, DP_INVALID, "pushed: %" PRIu64 " changed rows of %" PRIu64 ", rate %g",
                         to->changed_rows, to->rows, (double)to->rate);
}

static enum dp_status take_register(const Downpour__RegisterValue *from, struct dp_reply *to)
{
    to->kind = DP_REPLY_REGISTER;
    DP_WIRE_REGISTER(DP_WIRE_COPY)
    return DP_OK;
}

static enum dp_status take_body(const Downpour__Reply *wire, struct dp_reply *out, struct dp_error *err)
{
    switch (wire->body_case) {
    case DOWNPOUR__REPLY__BODY_WELCOME:
        return take_welcome(wire->welcome, out, err);
    case DOWNPOUR__REPLY__BODY_TABLE_CREATED:
        out->kind = DP_REPLY_TABLE_CREATED;
        out->existed = wire->table_created->existed;
        return DP_OK;
    case DOWNPOUR__REPLY__BODY_PULLED:
        return take_pulled(wire->pulled, out);
    case DOWNPOUR__REPLY__BODY_PUSHED:
        return take_pushed(wire->pushed, out, err);
    case DOWNPOUR__REPLY__BODY_STATUS_REPORT:
        out->kind = DP_REPLY_STATUS;
        return take_report(wire->status_report, &out->report, err);
    case DOWNPOUR__REPLY__BODY_NOTES:
        out->kind = DP_REPLY_NOTES;
        return take_notes(wire->notes, out, err);
    case DOWNPOUR__REPLY__BODY_POSITIONS:
        out->kind = DP_REPLY_POSITIONS;
        return DP_OK;
    case DOWNPOUR__REPLY__BODY_REGISTER_VALUE:
        return take_register(wire->register_value, out);
    case DOWNPOUR__REPLY__BODY_VIEW_STATE:
        out->kind = DP_REPLY_VIEW;
        out->version = wire->view_state->number;
        out->begun = wire->view_state->begun;
        out->begin = wire->view_state->begin;
        return DP_OK;
    case DOWNPOUR__REPLY__BODY_SILENCES:
        out->kind = DP_REPLY_SILENCES;
        return DP_OK;
    case DOWNPOUR__REPLY__BODY_CHECKPOINT_STATE:
        return take_checkpoint(wire->checkpoint_state, out, err);
    case DOWNPOUR__REPLY__BODY_LEASED:
        return take_leased(wire->leased, out, err);
    default:
        out->kind = DP_REPLY_NONE;
        return DP_OK;
    }
}

static enum dp_status check_frames(const struct dp_message *message, const struct dp_reply *reply,
                                   struct dp_error *err)
{
    uint32_t frames = message->frames - 1;
    bool one = reply->kind == DP_REPLY_POSITIONS || reply->kind == DP_REPLY_REGISTER ||
               reply->kind == DP_REPLY_SILENCES || reply->kind == DP_REPLY_LEASED;
    uint32_t least = reply->kind == DP_REPLY_NOTES ? reply->notes : one ? 1 : 0;
    if (reply->kind == DP_REPLY_CHECKPOINT)
        least = dp_checkpoint_frames(reply->checkpoint.stage);
    uint32_t most = reply->kind == DP_REPLY_PULLED ? DP_SECTIONS_MAX : least;
    if (frames < least || frames > most)
        return dp_fail(err, DP_INVALID, "reply has %u frames after its header, expected %u to %u", frames,
                       least, most);
    for (uint32_t i = 1; i <= frames; i++)
        if (message->frame[i].size > DP_FRAME_BYTES_MAX)
            return dp_fail(err, DP_INVALID, "frame %u of a reply has %zu bytes, the limit is %u", i,
                           message->frame[i].size, DP_FRAME_BYTES_MAX);
    size_t numbers = reply->kind == DP_REPLY_LEASED ? message->frame[1].size : 0;
    if (numbers % 8 != 0 || numbers > DP_LEASE_WANT_MAX * 8 ||
        (reply->kind == DP_REPLY_LEASED && (numbers > 0) != (reply->lease == DP_LEASE_GIVEN)))
        return dp_fail(err, DP_INVALID, "leased has %zu bytes of numbers in state %d", numbers,
                       (int)reply->lease);
    size_t value_max = reply->whole         ? DP_REGISTER_COPY_BYTES_MAX
                       : reply->version > 0 ? DP_REGISTER_VALUE_BYTES_MAX
                                            : 0;
    if (reply->kind == DP_REPLY_REGISTER && message->frame[1].size > value_max)
        return dp_fail(err, DP_INVALID, "register_value has %zu bytes, the limit is %zu",
                       message->frame[1].size, value_max);
    return DP_OK;
}

enum dp_status dp_reply_decode(const struct dp_message *message, struct dp_reply *to, struct dp_error *err)
{
    ProtobufCMessage *header = NULL;
    memset(to, 0, sizeof *to);
    enum dp_status st =
        dp_header_unpack(message, &downpour__reply__descriptor, "reply", DP_HEADER_BYTES_MAX, &header, err);
    if (st != DP_OK)
        return st;
    const Downpour__Reply *from = (const Downpour__Reply *)header;
    DP_WIRE_REPLY(DP_WIRE_COPY)
    to->too_old = from->too_old;
    if (from->wait)
        to->wait = (struct dp_wait){.reason = dp_wait_from_number(from->wait->reason),
                                    .subject = from->wait->subject,
                                    .done = from->wait->done,
                                    .total = from->wait->total};
    to->status = dp_status_from_number(from->status <= INT32_MAX ? (int)from->status : -1);
    if (from->protocol != DP_PROTOCOL_VERSION)
        st = dp_fail(err, DP_VERSION,
                     "server speaks protocol version %u, this build %u: use programs of one release",
                     from->protocol, DP_PROTOCOL_VERSION);
    else
        st = take_words("reason", from->reason, to->reason, err);
    if (st == DP_OK)
        st = take_body(from, to, err);
    if (st == DP_OK)
        st = check_frames(message, to, err);
    if (st != DP_OK)
        dp_reply_clear(to);
    protobuf_c_message_free_unpacked(header, NULL);
    return st;
}

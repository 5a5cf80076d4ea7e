#include "common/wire/fields.h"
#include "common/wire/header.h"
#include "common/wire/reply.h"
#include "common/wire/spec.h"

#include <stdlib.h>

/* The generated structs of one reply; the lists, of reports and notes only, are on the heap. */
struct reply_parts {
    Downpour__Reply head;
    Downpour__Wait wait;
    union {
        Downpour__Welcome welcome;
        Downpour__TableCreated table_created;
        Downpour__Pulled pulled;
        Downpour__Pushed pushed;
        Downpour__StatusReport status_report;
        Downpour__Notes notes;
        Downpour__Positions positions;
        Downpour__RegisterValue register_value;
        Downpour__ViewState view_state;
        Downpour__Silences silences;
        Downpour__Leased leased;
        Downpour__CheckpointState checkpoint_state;
    } body;
    struct lists *lists;
};

struct lists {
    Downpour__TableStatus table[DP_STATUS_TABLES_MAX], *tables[DP_STATUS_TABLES_MAX];
    Downpour__TableSpec spec[DP_STATUS_TABLES_MAX];
    Downpour__Counter counter[DP_COUNTERS_MAX], *counters[DP_COUNTERS_MAX];
    Downpour__Histogram histogram[DP_HISTOGRAMS_MAX], *histograms[DP_HISTOGRAMS_MAX];
    char *names[DP_NOTES_MAX];
};

/* Begins the body of a reply. */
#define BODY(body_, CASE)                                                                                    \
    (downpour__##body_##__init(&parts->body.body_), parts->head.body_case = DOWNPOUR__REPLY__BODY_##CASE,    \
     parts->head.body_ = &parts->body.body_)

static void put_welcome(const struct dp_reply *from, struct reply_parts *parts)
{
    Downpour__Welcome *to = BODY(welcome, WELCOME);
    DP_WIRE_WELCOME(DP_WIRE_COPY)
}

static void put_report(const struct dp_status_report *report, struct reply_parts *parts)
{
    struct lists *lists = parts->lists;
    Downpour__StatusReport *to = BODY(status_report, STATUS_REPORT);
    for (uint32_t i = 0; i < report->tables; i++) {
        downpour__table_status__init(&lists->table[i]);
        dp_spec_to_wire(&report->table[i].spec, &lists->spec[i]);
        lists->table[i].spec = &lists->spec[i];
        lists->table[i].rows = report->table[i].rows;
        lists->table[i].bytes = report->table[i].bytes;
        lists->tables[i] = &lists->table[i];
    }
    for (uint32_t i = 0; i < report->counters; i++) {
        downpour__counter__init(&lists->counter[i]);
        lists->counter[i].name = report->counter[i].name;
        lists->counter[i].value = report->counter[i].value;
        lists->counters[i] = &lists->counter[i];
    }
    for (uint32_t i = 0; i < report->histograms; i++) {
        const struct dp_histogram *from = &report->histogram[i];
        downpour__histogram__init(&lists->histogram[i]);
        lists->histogram[i].name = (char *)from->name;
        lists->histogram[i].upper = (double *)from->upper;
        lists->histogram[i].n_upper = from->buckets;
        lists->histogram[i].counts = (uint64_t *)from->count;
        lists->histogram[i].n_counts = from->buckets;
        lists->histograms[i] = &lists->histogram[i];
    }
    to->histograms = lists->histograms;
    to->n_histograms = report->histograms;
    to->tables = lists->tables;
    to->n_tables = report->tables;
    to->counters = lists->counters;
    to->n_counters = report->counters;
    to->shard = report->shard;
    to->shards = report->shards;
    to->store = report->store;
}

static void put_notes(const struct dp_reply *reply, struct reply_parts *parts)
{
    Downpour__Notes *to = BODY(notes, NOTES);
    for (uint32_t i = 0; i < reply->notes; i++)
        parts->lists->names[i] = reply->note[i];
    to->names = parts->lists->names;
    to->n_names = reply->notes;
    to->ages_ms = reply->age_ms;
    to->n_ages_ms = reply->age_ms ? reply->notes : 0;
}

static void put_view(const struct dp_reply *reply, struct reply_parts *parts)
{
    Downpour__ViewState *state = BODY(view_state, VIEW_STATE);
    state->number = reply->version;
    state->begun = reply->begun;
    state->begin = reply->begin;
}

static void put_register(const struct dp_reply *from, struct reply_parts *parts)
{
    Downpour__RegisterValue *to = BODY(register_value, REGISTER_VALUE);
    DP_WIRE_REGISTER(DP_WIRE_COPY)
}

static void put_leased(const struct dp_reply *reply, struct reply_parts *parts)
{
    Downpour__Leased *leased = BODY(leased, LEASED);
    leased->state = (Downpour__LeaseState)reply->lease;
    leased->wait_ms = reply->wait_ms;
    leased->done = reply->done;
}

static void put_pulled(const struct dp_reply *from, struct reply_parts *parts)
{
    Downpour__Pulled *to = BODY(pulled, PULLED);
    DP_WIRE_PULLED(DP_WIRE_COPY)
}

static void put_pushed(const struct dp_reply *from, struct reply_parts *parts)
{
    Downpour__Pushed *to = BODY(pushed, PUSHED);
    DP_WIRE_PUSHED(DP_WIRE_COPY)
}

static void put_checkpoint(const struct dp_checkpoint_state *from, struct reply_parts *parts)
{
    Downpour__CheckpointState *state = BODY(checkpoint_state, CHECKPOINT_STATE);
    state->stage = (Downpour__CheckpointStage)from->stage;
    state->order = from->order;
    state->lsn = from->lsn;
    state->after = from->after;
    state->open = from->open;
    state->mode = from->mode;
    state->run = from->run;
    state->done_bytes = from->done_bytes;
    state->all_bytes = from->all_bytes;
    state->cut = from->cut;
    state->why = (char *)from->why;
    state->lacking = from->lacking;
    state->lack_stream = from->lack_stream;
    state->lack_number = from->lack_number;
    state->why_status = from->why_status;
}

static void put_wait(const struct dp_wait *from, struct reply_parts *parts)
{
    Downpour__Wait *to = parts->head.wait = &parts->wait;
    downpour__wait__init(to);
    to->reason = (uint32_t)from->reason;
    DP_WIRE_WAIT(DP_WIRE_COPY)
}

static void put_body(const struct dp_reply *reply, struct reply_parts *parts)
{
    switch (reply->kind) {
    case DP_REPLY_NONE:
        break;
    case DP_REPLY_WELCOME:
        put_welcome(reply, parts);
        break;
    case DP_REPLY_TABLE_CREATED:
        BODY(table_created, TABLE_CREATED)->existed = reply->existed;
        break;
    case DP_REPLY_PULLED:
        put_pulled(reply, parts);
        break;
    case DP_REPLY_PUSHED:
        put_pushed(reply, parts);
        break;
    case DP_REPLY_STATUS:
        put_report(&reply->report, parts);
        break;
    case DP_REPLY_NOTES:
        put_notes(reply, parts);
        break;
    case DP_REPLY_POSITIONS:
        (void)BODY(positions, POSITIONS);
        break;
    case DP_REPLY_REGISTER:
        put_register(reply, parts);
        break;
    case DP_REPLY_VIEW:
        put_view(reply, parts);
        break;
    case DP_REPLY_SILENCES:
        (void)BODY(silences, SILENCES);
        break;
    case DP_REPLY_LEASED:
        put_leased(reply, parts);
        break;
    case DP_REPLY_CHECKPOINT:
        put_checkpoint(&reply->checkpoint, parts);
        break;
    }
}

static enum dp_status make_lists(const struct dp_reply *reply, struct lists **out, struct dp_error *err)
{
    bool report = reply->kind == DP_REPLY_STATUS;
    bool notes = reply->kind == DP_REPLY_NOTES;
    if (!report && !notes)
        return DP_OK;
    if (report && (reply->report.tables > DP_STATUS_TABLES_MAX || reply->report.counters > DP_COUNTERS_MAX ||
                   reply->report.histograms > DP_HISTOGRAMS_MAX))
        return dp_fail(
            err, DP_ARGUMENT,
            "status report of %u tables, %u counters and %u histograms, the limits are %u, %u and %u",
            reply->report.tables, reply->report.counters, reply->report.histograms, DP_STATUS_TABLES_MAX,
            DP_COUNTERS_MAX, DP_HISTOGRAMS_MAX);
    if (notes && reply->notes > DP_NOTES_MAX)
        return dp_fail(err, DP_ARGUMENT, "%u notes in one reply, the limit is %u", reply->notes,
                       DP_NOTES_MAX);
    *out = malloc(sizeof **out);
    return *out ? DP_OK : dp_fail(err, DP_NOMEM, "out of memory for a reply's lists");
}

static uint32_t frames_of(const struct dp_reply *reply)
{
    switch (reply->kind) {
    case DP_REPLY_PULLED:
        return DP_SECTIONS_MAX;
    case DP_REPLY_NOTES:
        return reply->notes;
    case DP_REPLY_POSITIONS:
    case DP_REPLY_REGISTER:
    case DP_REPLY_SILENCES:
    case DP_REPLY_LEASED:
        return 1;
    case DP_REPLY_CHECKPOINT:
        return dp_checkpoint_frames(reply->checkpoint.stage);
    default:
        return 0;
    }
}

enum dp_status dp_reply_encode(const struct dp_reply *from, struct dp_frame *frames, uint32_t frame_count,
                               struct dp_message **out, struct dp_error *err)
{
    struct reply_parts parts = {.lists = NULL};
    Downpour__Reply *to = &parts.head;
    *out = NULL;
    enum dp_status st = make_lists(from, &parts.lists, err);
    if (st != DP_OK) {
        for (uint32_t i = 0; i < frame_count; i++)
            dp_frame_release(&frames[i]);
        return st;
    }
    uint32_t frames_max = frames_of(from);
    DP_ASSERT(frame_count <= frames_max && (from->kind == DP_REPLY_PULLED || frame_count == frames_max));
    downpour__reply__init(to);
    DP_WIRE_REPLY(DP_WIRE_COPY)
    to->protocol = DP_PROTOCOL_VERSION;
    to->status = (uint32_t)from->status;
    to->too_old = from->status == DP_TOO_OLD ? from->too_old : 0;
    if (from->status != DP_OK)
        to->reason = (char *)from->reason;
    if (from->wait.reason != DP_WAIT_NONE)
        put_wait(&from->wait, &parts);
    put_body(from, &parts);
    st = dp_header_pack(&parts.head.base, "reply", DP_HEADER_BYTES_MAX, frames, frame_count, out, err);
    free(parts.lists);
    return st;
}

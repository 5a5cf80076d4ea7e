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
        Downpour__StatusReport report;
        Downpour__Notes notes;
        Downpour__Positions positions;
        Downpour__RegisterValue register_value;
        Downpour__ViewState view_state;
        Downpour__Silences silences;
        Downpour__Leased leased;
        Downpour__CheckpointState checkpoint;
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

static void put_welcome(const struct dp_reply *reply, struct reply_parts *parts)
{
    Downpour__Welcome *welcome = &parts->body.welcome;
    downpour__welcome__init(welcome);
    welcome->first = reply->first;
    welcome->last = reply->last;
    welcome->boot = reply->boot;
    welcome->stream = reply->stream;
    welcome->window = reply->window;
    welcome->too_old = reply->too_old;
    welcome->register_id = reply->register_id;
    welcome->store = reply->store;
    welcome->run = reply->run;
    parts->head.body_case = DOWNPOUR__REPLY__BODY_WELCOME;
    parts->head.welcome = welcome;
}

static void put_report(const struct dp_status_report *report, struct reply_parts *parts)
{
    struct lists *lists = parts->lists;
    Downpour__StatusReport *to = &parts->body.report;
    downpour__status_report__init(to);
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
    parts->head.body_case = DOWNPOUR__REPLY__BODY_STATUS_REPORT;
    parts->head.status_report = to;
}

static void put_notes(const struct dp_reply *reply, struct reply_parts *parts)
{
    downpour__notes__init(&parts->body.notes);
    for (uint32_t i = 0; i < reply->notes; i++)
        parts->lists->names[i] = reply->note[i];
    parts->body.notes.names = parts->lists->names;
    parts->body.notes.n_names = reply->notes;
    parts->head.body_case = DOWNPOUR__REPLY__BODY_NOTES;
    parts->head.notes = &parts->body.notes;
}

static void put_view(const struct dp_reply *reply, struct reply_parts *parts)
{
    Downpour__ViewState *state = &parts->body.view_state;
    downpour__view_state__init(state);
    state->number = reply->version;
    state->begun = reply->begun;
    state->begin = reply->begin;
    parts->head.body_case = DOWNPOUR__REPLY__BODY_VIEW_STATE;
    parts->head.view_state = state;
}

static void put_register(const struct dp_reply *reply, struct reply_parts *parts)
{
    Downpour__RegisterValue *value = &parts->body.register_value;
    downpour__register_value__init(value);
    value->version = reply->version;
    value->register_id = reply->register_id;
    value->won = reply->won;
    value->whole = reply->whole;
    parts->head.body_case = DOWNPOUR__REPLY__BODY_REGISTER_VALUE;
    parts->head.register_value = value;
}

static void put_leased(const struct dp_reply *reply, struct reply_parts *parts)
{
    Downpour__Leased *leased = &parts->body.leased;
    downpour__leased__init(leased);
    leased->state = (Downpour__LeaseState)reply->lease;
    leased->wait_ms = reply->wait_ms;
    leased->done = reply->done;
    parts->head.body_case = DOWNPOUR__REPLY__BODY_LEASED;
    parts->head.leased = leased;
}

static void put_checkpoint(const struct dp_checkpoint_state *from, struct reply_parts *parts)
{
    Downpour__CheckpointState *state = &parts->body.checkpoint;
    downpour__checkpoint_state__init(state);
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
    parts->head.body_case = DOWNPOUR__REPLY__BODY_CHECKPOINT_STATE;
    parts->head.checkpoint_state = state;
}

static void put_wait(const struct dp_wait *wait, struct reply_parts *parts)
{
    downpour__wait__init(&parts->wait);
    parts->wait.reason = (uint32_t)wait->reason;
    parts->wait.subject = wait->subject;
    parts->wait.done = wait->done;
    parts->wait.total = wait->total;
    parts->head.wait = &parts->wait;
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
        downpour__table_created__init(&parts->body.table_created);
        parts->body.table_created.existed = reply->existed;
        parts->head.body_case = DOWNPOUR__REPLY__BODY_TABLE_CREATED;
        parts->head.table_created = &parts->body.table_created;
        break;
    case DP_REPLY_PULLED:
        downpour__pulled__init(&parts->body.pulled);
        parts->body.pulled.applied = reply->applied;
        parts->body.pulled.lsn = reply->lsn;
        parts->body.pulled.held_ms = reply->held_ms;
        parts->body.pulled.open = reply->open;
        parts->head.body_case = DOWNPOUR__REPLY__BODY_PULLED;
        parts->head.pulled = &parts->body.pulled;
        break;
    case DP_REPLY_PUSHED:
        downpour__pushed__init(&parts->body.pushed);
        parts->body.pushed.staleness = reply->staleness;
        parts->body.pushed.repeated = reply->repeated;
        parts->body.pushed.dropped = reply->dropped;
        parts->body.pushed.gap = reply->gap;
        parts->body.pushed.rows = reply->rows;
        parts->body.pushed.changed_rows = reply->changed_rows;
        parts->body.pushed.rate = reply->rate;
        parts->head.body_case = DOWNPOUR__REPLY__BODY_PUSHED;
        parts->head.pushed = &parts->body.pushed;
        break;
    case DP_REPLY_STATUS:
        put_report(&reply->report, parts);
        break;
    case DP_REPLY_NOTES:
        put_notes(reply, parts);
        break;
    case DP_REPLY_POSITIONS:
        downpour__positions__init(&parts->body.positions);
        parts->head.body_case = DOWNPOUR__REPLY__BODY_POSITIONS;
        parts->head.positions = &parts->body.positions;
        break;
    case DP_REPLY_REGISTER:
        put_register(reply, parts);
        break;
    case DP_REPLY_VIEW:
        put_view(reply, parts);
        break;
    case DP_REPLY_SILENCES:
        downpour__silences__init(&parts->body.silences);
        parts->head.body_case = DOWNPOUR__REPLY__BODY_SILENCES;
        parts->head.silences = &parts->body.silences;
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

enum dp_status dp_reply_encode(const struct dp_reply *reply, struct dp_frame *frames, uint32_t frame_count,
                               struct dp_message **out, struct dp_error *err)
{
    struct reply_parts parts = {.lists = NULL};
    *out = NULL;
    enum dp_status st = make_lists(reply, &parts.lists, err);
    if (st != DP_OK) {
        for (uint32_t i = 0; i < frame_count; i++)
            dp_frame_release(&frames[i]);
        return st;
    }
    uint32_t frames_max = frames_of(reply);
    DP_ASSERT(frame_count <= frames_max && (reply->kind == DP_REPLY_PULLED || frame_count == frames_max));
    downpour__reply__init(&parts.head);
    parts.head.protocol = DP_PROTOCOL_VERSION;
    parts.head.id = reply->id;
    parts.head.session = reply->session;
    parts.head.status = (uint32_t)reply->status;
    parts.head.generation = reply->generation;
    parts.head.history = reply->history;
    parts.head.cluster = reply->cluster;
    parts.head.sequence = reply->sequence;
    parts.head.too_old = reply->status == DP_TOO_OLD ? reply->too_old : 0;
    parts.head.silent_ms = reply->silent_ms;
    if (reply->status != DP_OK)
        parts.head.reason = (char *)reply->reason;
    if (reply->wait.reason != DP_WAIT_NONE)
        put_wait(&reply->wait, &parts);
    put_body(reply, &parts);
    st = dp_header_pack(&parts.head.base, "reply", DP_HEADER_BYTES_MAX, frames, frame_count, out, err);
    free(parts.lists);
    return st;
}

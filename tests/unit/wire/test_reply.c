/* Reply: each kind comes back as it went; a server's header does no more harm than a client's. */
#include "tests/lib/test.h"

#include "common/wire/reply.h"
#include "tests/unit/wire/frames.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Padding and all is 0, so that replies can be compared as bytes. */
static struct dp_reply reply_of(enum dp_reply_kind kind)
{
    struct dp_reply reply;
    memset(&reply, 0, sizeof reply);
    reply.kind = kind;
    reply.id = 9;
    reply.session = 0x8877665544332211u;
    reply.generation = 4;
    reply.history = 0xfedcba9876543210;
    reply.cluster = 0xc0ffee;
    reply.sequence = 12;
    return reply;
}

static struct dp_message *encode(const struct dp_reply *reply, struct dp_frame *frames, uint32_t n)
{
    struct dp_error err = {0};
    struct dp_message *message = NULL;
    assert_int_equal(dp_reply_encode(reply, frames, n, &message, &err), DP_OK);
    return message;
}

/* Encodes, decodes, compares the head. The result's heap is the caller's. */
static struct dp_reply round_trip(const struct dp_reply *want, struct dp_frame *frames, uint32_t n)
{
    struct dp_error err = {0};
    struct dp_reply got;
    struct dp_message *message = encode(want, frames, n);
    if (dp_reply_decode(message, &got, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(message->frames, n + 1);
    assert_int_equal(got.kind, want->kind);
    assert_int_equal(got.status, want->status);
    assert_true(got.id == want->id && got.session == want->session);
    assert_true(got.generation == want->generation && got.history == want->history);
    assert_true(got.cluster == want->cluster && got.sequence == want->sequence);
    dp_message_free(&message);
    return got;
}

/* It comes back as it went, every field. n: frames of 4 bytes that follow. */
static void assert_comes_back(const struct dp_reply *want, uint32_t n)
{
    struct dp_frame frames[2] = {{0}};
    for (uint32_t i = 0; i < n; i++)
        frames[i] = dp_frame_copy("abcd", 4);
    struct dp_reply got = round_trip(want, frames, n);
    assert_memory_equal(&got, want, sizeof got);
}

static void answers_to_pulls_and_pushes_come_back_as_they_went(void **state)
{
    struct dp_reply want = reply_of(DP_REPLY_PULLED);
    want.applied = 1u << 31;
    want.lsn = UINT64_MAX;
    want.held_ms = UINT32_MAX;
    want.open = UINT64_MAX - 1;
    assert_comes_back(&want, 2);
    want = reply_of(DP_REPLY_PUSHED);
    want.staleness = 3;
    want.repeated = true;
    want.rows = UINT64_MAX;
    want.changed_rows = UINT64_MAX - 1;
    want.rate = 0.25f;
    assert_comes_back(&want, 0);
    want = reply_of(DP_REPLY_PUSHED);
    want.dropped = true;
    want.gap = UINT64_MAX;
    assert_comes_back(&want, 0);
    want = reply_of(DP_REPLY_VIEW);
    want.version = UINT64_MAX;
    assert_comes_back(&want, 0);
    want.begun = true;
    want.begin = UINT64_MAX - 1;
    assert_comes_back(&want, 0);
    want = reply_of(DP_REPLY_NONE);
    want.status = DP_HELD;
    want.wait.reason = DP_WAIT_STEP;
    want.wait.subject = 2;
    want.wait.done = 5;
    want.wait.total = 7;
    want.silent_ms = UINT64_MAX;
    assert_comes_back(&want, 0);
}

static void short_kinds_come_back_as_they_went(void **state)
{
    struct dp_reply want = reply_of(DP_REPLY_WELCOME);
    want.first = 1u << 20;
    want.last = UINT64_MAX;
    want.boot = 0xb007;
    want.stream = 17;
    want.window = 64;
    want.too_old = 5;
    want.run = 6;
    want.register_id = UINT64_MAX - 5;
    want.store = UINT64_MAX - 6;
    assert_comes_back(&want, 0);
    want = reply_of(DP_REPLY_TABLE_CREATED);
    want.existed = true;
    assert_comes_back(&want, 0);
    want = reply_of(DP_REPLY_POSITIONS);
    assert_comes_back(&want, 1);
    want = reply_of(DP_REPLY_SILENCES);
    assert_comes_back(&want, 1);
    want = reply_of(DP_REPLY_REGISTER);
    want.version = 1;
    want.register_id = UINT64_MAX;
    assert_comes_back(&want, 1);
    want.won = true;
    assert_comes_back(&want, 1);

    want = reply_of(DP_REPLY_NONE);
    want.status = DP_ORDER;
    (void)snprintf(want.reason, sizeof want.reason, "expected 12\nfake line");
    struct dp_reply got = round_trip(&want, NULL, 0);
    assert_string_equal(got.reason, "expected 12?fake line");
    assert_int_equal(got.wait.reason, DP_WAIT_NONE);
}

static void why_a_request_waits_comes_back_as_data(void **state)
{
    struct dp_reply got, want = reply_of(DP_REPLY_NONE);
    want.status = DP_AGAIN;
    for (uint32_t number = 0; number < 32; number++) {
        want.wait = (struct dp_wait){.reason = dp_wait_from_number(number)};
        if (want.wait.reason != DP_WAIT_NONE)
            want.wait =
                (struct dp_wait){.reason = want.wait.reason, .subject = UINT64_MAX, .done = 7, .total = 346};
        got = round_trip(&want, NULL, 0);
        assert_true(dp_wait_same(&got.wait, &want.wait));
    }
    /* A newer server may name a reason that this build does not know. */
    want.wait = (struct dp_wait){.reason = (enum dp_wait_reason)200, .subject = 1};
    got = round_trip(&want, NULL, 0);
    assert_int_equal(got.wait.reason, DP_WAIT_NONE);
    assert_int_equal(got.status, DP_AGAIN);
}

/* As large as they may be. */
static void fill_histograms(struct dp_histogram histograms[DP_HISTOGRAMS_MAX])
{
    for (uint32_t i = 0; i < DP_HISTOGRAMS_MAX; i++) {
        dp_histogram_init_numbers(&histograms[i], "histogram_");
        memset(histograms[i].name + 10, 'a' + (int)i, DP_HISTOGRAM_NAME_MAX - 10);
        histograms[i].buckets = DP_HISTOGRAM_BUCKETS_MAX;
        for (uint32_t b = 0; b < DP_HISTOGRAM_BUCKETS_MAX; b++) {
            histograms[i].upper[b] = b + 1 < DP_HISTOGRAM_BUCKETS_MAX ? i + 1e9 * b : INFINITY;
            histograms[i].count[b] = UINT64_MAX - b;
        }
    }
}

static void lists_come_back_as_they_went(void **state)
{
    struct dp_table_status *tables = calloc(DP_STATUS_TABLES_MAX, sizeof *tables);
    struct dp_counter counters[DP_COUNTERS_MAX] = {0};
    struct dp_error err = {0};
    for (uint32_t i = 0; i < DP_STATUS_TABLES_MAX; i++) {
        /* Full names: the largest report must fit into its header. */
        (void)snprintf(tables[i].spec.name, sizeof tables[i].spec.name, "table_%041u", i);
        tables[i].spec.dim = DP_TABLE_DIM_MAX;
        tables[i].spec.seed = UINT64_MAX;
        tables[i].spec.optimizer = dp_optimizer_defaults(i % 2 ? DP_OPT_ADAM : DP_OPT_FTRL);
        tables[i].rows = UINT64_MAX - i;
        tables[i].bytes = UINT64_MAX;
    }
    for (uint32_t i = 0; i < DP_COUNTERS_MAX; i++) {
        (void)snprintf(counters[i].name, sizeof counters[i].name, "counter_%039u", i);
        counters[i].value = UINT64_MAX - i;
    }
    struct dp_reply want = reply_of(DP_REPLY_STATUS);
    struct dp_histogram histograms[DP_HISTOGRAMS_MAX];
    fill_histograms(histograms);
    want.report = (struct dp_status_report){.shard = 1,
                                            .shards = 2,
                                            .tables = DP_STATUS_TABLES_MAX,
                                            .counters = DP_COUNTERS_MAX,
                                            .table = tables,
                                            .counter = counters,
                                            .histograms = DP_HISTOGRAMS_MAX,
                                            .histogram = histograms,
                                            .store = 99};
    struct dp_reply got = round_trip(&want, NULL, 0);
    assert_int_equal(got.report.tables, DP_STATUS_TABLES_MAX);
    assert_int_equal(got.report.counters, DP_COUNTERS_MAX);
    assert_true(got.report.shard == 1 && got.report.shards == 2 && got.report.store == 99);
    for (uint32_t i = 0; i < DP_STATUS_TABLES_MAX; i++) {
        assert_int_equal(dp_table_same(&got.report.table[i].spec, &tables[i].spec, &err), DP_OK);
        assert_true(got.report.table[i].rows == UINT64_MAX - i);
    }
    assert_string_equal(got.report.counter[63].name, counters[63].name);
    assert_true(got.report.counter[63].value == UINT64_MAX - 63);
    assert_int_equal(got.report.histograms, DP_HISTOGRAMS_MAX);
    for (uint32_t i = 0; i < DP_HISTOGRAMS_MAX; i++)
        assert_memory_equal(&got.report.histogram[i], &histograms[i], sizeof histograms[i]);
    dp_reply_clear(&got);
    assert_null(got.report.table);
    assert_null(got.report.histogram);

    struct dp_message *message = NULL;
    want.report.tables = DP_STATUS_TABLES_MAX + 1;
    assert_int_equal(dp_reply_encode(&want, NULL, 0, &message, &err), DP_ARGUMENT);
    want.report.tables = 0;
    want.report.histograms = DP_HISTOGRAMS_MAX + 1;
    assert_int_equal(dp_reply_encode(&want, NULL, 0, &message, &err), DP_ARGUMENT);
    free(tables);

    want = reply_of(DP_REPLY_NOTES);
    want.notes = DP_NOTES_MAX;
    want.note = calloc(DP_NOTES_MAX, sizeof want.note[0]);
    struct dp_frame frames[DP_NOTES_MAX];
    for (uint32_t i = 0; i < DP_NOTES_MAX; i++) {
        memset(want.note[i], 'n', DP_NOTE_NAME_MAX);
        frames[i] = dp_frame_copy("note", 4);
    }
    got = round_trip(&want, frames, DP_NOTES_MAX);
    assert_int_equal(got.notes, DP_NOTES_MAX);
    assert_int_equal(strlen(got.note[DP_NOTES_MAX - 1]), DP_NOTE_NAME_MAX);
    dp_reply_clear(&got);
    dp_reply_clear(&want);
}

static void assert_refused(struct dp_message **message, enum dp_status why, const char *field)
{
    struct dp_reply got;
    struct dp_error err = {0};
    enum dp_status st = dp_reply_decode(*message, &got, &err);
    if (st != why || !strstr(err.text, field))
        fail_msg("expected %s with '%s', got %s: %s", dp_status_name((int)why), field,
                 dp_status_name((int)st), err.text);
    assert_true(!got.note && !got.report.table && !got.report.counter && !got.report.histogram);
    dp_message_free(message);
}

static struct dp_message *by_hand(const char *header, size_t size, uint32_t frames)
{
    struct dp_message *message = dp_message_new(1 + frames);
    dp_message_add(message, dp_frame_copy(header, size));
    for (uint32_t i = 0; i < frames; i++)
        dp_message_add(message, dp_frame_new(4));
    return message;
}

#define HAND(by, frames) by_hand(by, sizeof(by) - 1, frames)

static void foreign_headers_are_refused(void **state)
{
    struct dp_message *message = dp_message_new(0);
    assert_refused(&message, DP_INVALID, "empty message");
    message = HAND("\x08\x01", 0);
    assert_refused(&message, DP_VERSION, "version 1");
    message = HAND("\x08\x03\x52\x09\x09\x01\x00\x00\x00\x00\x00\x00\x00", 0); /* welcome, first 1, last 0 */
    assert_refused(&message, DP_INVALID, "welcome");
    message = HAND("\x08\x03", 1);
    assert_refused(&message, DP_INVALID, "1 frames");
    message = HAND("\x08\x03\x62\x00", DP_SECTIONS_MAX + 1); /* pulled */
    assert_refused(&message, DP_INVALID, "65 frames");
    message = HAND("\x08\x03\x7a\x03\x0a\x01n", 0); /* notes: a name without its frame */
    assert_refused(&message, DP_INVALID, "0 frames");
    message = HAND("\x08\x03\x7a\x03\x0a\x01\n", 1);
    assert_refused(&message, DP_INVALID, "notes.names");
    message = HAND("\x08\x03\x72\x02\x0a\x00", 0); /* status report: a table without a spec */
    assert_refused(&message, DP_INVALID, "spec: absent");
    message = HAND("\x08\x03\x72\x04\x12\x02\x10\x01", 0); /* a counter without a name */
    assert_refused(&message, DP_INVALID, "counters.name");
    message =
        HAND("\x08\x03\x92\x01\x00", 0); /* register value: without its frame, then version 0 with bytes */
    assert_refused(&message, DP_INVALID, "0 frames");
    message = HAND("\x08\x03\x92\x01\x00", 1);
    assert_refused(&message, DP_INVALID, "register_value has 4 bytes");
    message = HAND("\x08\x03\x6a\x02\x28\x01", 0); /* pushed: one changed row of none */
    assert_refused(&message, DP_INVALID, "1 changed rows of 0");
    message = HAND("\x08\x03\x72\x05\x32\x03\x0a\x01n", 0); /* a histogram without buckets */
    assert_refused(&message, DP_INVALID, "histograms: 0 bounds");
#define BOUND(b6, b7) "\x00\x00\x00\x00\x00\x00" b6 b7
    message = HAND("\x08\x03\x72\x1b\x32\x19\x0a\x01n\x12\x10" BOUND("\xf0", "\x3f")
                       BOUND("\xf0", "\x3f") "\x1a\x02\x01\x01",
                   0); /* 1, then 1 */
    assert_refused(&message, DP_INVALID, "histograms.upper[1]");
    message =
        HAND("\x08\x03\x72\x12\x32\x10\x0a\x01n\x12\x08" BOUND("\xf8", "\x7f") "\x1a\x01\x01", 0); /* NaN */
    assert_refused(&message, DP_INVALID, "histograms.upper[0]");
    char reason[5 + DP_REASON_MAX + 1] = "\x08\x03\x2a\xf8\x03";
    memset(reason + 5, 'r', sizeof reason - 5);
    message = by_hand(reason, sizeof reason, 0);
    assert_refused(&message, DP_INVALID, "reason");

    struct dp_reply got;
    message = HAND("\x08\x03\x20\xff\xff\xff\xff\x0f", 0); /* status 2^32 - 1 */
    assert_int_equal(dp_reply_decode(message, &got, NULL), DP_OK);
    assert_int_equal(got.status, DP_INTERNAL);
    dp_message_free(&message);
}

/* 64 KiB that protobuf would merge body by body, each time copying the list so far. */
static void repeated_bodies_are_refused_at_once(void **state)
{
    struct dp_message *message = dp_message_new(1);
    struct dp_frame frame = dp_frame_new(DP_HEADER_BYTES_MAX);
    for (size_t i = 0; i < frame.size; i += 4)
        memcpy((char *)frame.data + i, "\x7a\x02\x0a", 4);
    dp_message_add(message, frame);
    assert_refused(&message, DP_INVALID, "not a reply");
}

static void damaged_headers_do_no_harm(void **state)
{
    struct dp_reply got, want = reply_of(DP_REPLY_STATUS);
    struct dp_table_status table = {.spec = {.name = "t", .dim = 4}, .rows = 5, .bytes = 6};
    struct dp_counter counter = {.name = "pushes", .value = 7};
    table.spec.optimizer = dp_optimizer_defaults(DP_OPT_ADAGRAD);
    want.status = DP_AGAIN;
    (void)snprintf(want.reason, sizeof want.reason, "full");
    struct dp_histogram histogram;
    dp_histogram_init_shares(&histogram, "changed");
    want.report = (struct dp_status_report){.shards = 1,
                                            .tables = 1,
                                            .counters = 1,
                                            .table = &table,
                                            .counter = &counter,
                                            .histograms = 1,
                                            .histogram = &histogram};
    struct dp_message *message = encode(&want, NULL, 0);
    size_t size = message->frame[0].size;
    for (size_t cut = 0; cut < size; cut++) {
        struct dp_message *copy = copy_cut(message, cut);
        (void)!dp_reply_decode(copy, &got, NULL);
        dp_reply_clear(&got);
        dp_message_free(&copy);
    }
    for (size_t bit = 0; bit < size * 8; bit++) {
        struct dp_message *copy = copy_of(message);
        ((unsigned char *)copy->frame[0].data)[bit / 8] ^= (unsigned char)(1u << bit % 8);
        (void)!dp_reply_decode(copy, &got, NULL);
        dp_reply_clear(&got);
        dp_message_free(&copy);
    }
    dp_message_free(&message);
    uint64_t seed = 20260102;
    for (int i = 0; i < 100000; i++) {
        message = random_message(&seed);
        (void)!dp_reply_decode(message, &got, NULL);
        dp_reply_clear(&got);
        dp_message_free(&message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_to_pulls_and_pushes_come_back_as_they_went),
        cmocka_unit_test(short_kinds_come_back_as_they_went),
        cmocka_unit_test(why_a_request_waits_comes_back_as_data),
        cmocka_unit_test(lists_come_back_as_they_went),
        cmocka_unit_test(foreign_headers_are_refused),
        cmocka_unit_test(repeated_bodies_are_refused_at_once),
        cmocka_unit_test(damaged_headers_do_no_harm),
    };
    return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}

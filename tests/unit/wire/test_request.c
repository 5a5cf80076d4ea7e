/* Request: each kind comes back as it went; each limit and each broken field is refused by name; no header,
 * cut, flipped or random, does harm. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/wire/request.h"
#include "tests/unit/wire/frames.h"
#include "tests/unit/wire/request_check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Two sections: `rows` keys 10, 20, ... as f32 of width 2, and an empty one of bf16. Returns how many frames. */
static uint32_t fill_sections(enum dp_request_kind kind, uint32_t rows, struct dp_request *request,
                              struct dp_frame frames[4])
{
    uint32_t n = 0;
    *request = request_of(kind);
    if (kind == DP_REQUEST_PUSH) {
        request->stream = 0xabcdefu;
        request->number = 99;
        request->pulled_at = 1234567890123u;
        request->measured = request->by_staleness = true;
        request->pulled_lsn = UINT64_MAX - 7;
        request->rate = 0.125f;
        request->examples = DP_EXAMPLES_MAX;
        request->member.examples = 32;
    }
    request->member.given = true;
    request->member.run = 12;
    request->member.rank = DP_MEMBERS_MAX - 1;
    request->member.view = UINT64_MAX;
    request->member.incarnation = UINT64_MAX - 1;
    request->member.step = UINT64_MAX - 2;
    request->sections = 2;
    request->section[0].table = 0xdeadbeefu;
    request->section[0].rows = rows;
    request->section[1].table = 5;
    request->section[1].type = DP_BF16;
    struct dp_frame keys = dp_frame_new((size_t)rows * 8), values = dp_frame_new((size_t)rows * 8);
    for (uint32_t i = 0; i < rows; i++) {
        dp_store_u64le((char *)keys.data + (size_t)i * 8, 10u * (i + 1));
        dp_store_u64le((char *)values.data + (size_t)i * 8, i);
    }
    frames[n++] = keys;
    if (kind == DP_REQUEST_PUSH)
        frames[n++] = values;
    else
        dp_frame_release(&values);
    frames[n++] = dp_frame_new(0);
    if (kind == DP_REQUEST_PUSH)
        frames[n++] = dp_frame_new(0);
    return n;
}

static struct dp_message *sections_message(enum dp_request_kind kind, uint32_t rows,
                                           struct dp_request *request)
{
    struct dp_frame frames[4];
    uint32_t n = fill_sections(kind, rows, request, frames);
    return encode(request, frames, n);
}

static struct dp_table_spec some_spec(void)
{
    struct dp_table_spec spec = {.name = "user_factors", .dim = 16, .seed = 0x9999999999999999u};
    spec.init = (struct dp_init_spec){DP_INIT_XAVIER, 0.0f, 3, 4};
    spec.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    spec.optimizer.decay = 0.01f;
    return spec;
}

static void short_kinds_come_back_as_they_went(void **state)
{
    struct dp_request want = request_of(DP_REQUEST_HELLO);
    (void)snprintf(want.client, sizeof want.client, "worker 0");
    want.want_stream = true;
    want.next_sequence = 77;
    want.stream_above = UINT64_MAX;
    assert_comes_back(&want, NULL, 0);
    want = request_of(DP_REQUEST_STATUS);
    assert_comes_back(&want, NULL, 0);
    want = request_of(DP_REQUEST_REGISTER_COPY);
    assert_comes_back(&want, NULL, 0);
    want = request_of(DP_REQUEST_POSITIONS_GET);
    want.stream = UINT64_C(1) << 63 | 7;
    want.number = UINT64_MAX - DP_POSITIONS_MAX;
    want.numbers = DP_POSITIONS_MAX;
    assert_comes_back(&want, NULL, 0);
    want = request_of(DP_REQUEST_NOTES_GET);
    (void)snprintf(want.name, sizeof want.name, "progress/");
    assert_comes_back(&want, NULL, 0);
    want = request_of(DP_REQUEST_NOTE_PUT);
    (void)snprintf(want.name, sizeof want.name, "progress/0");
    struct dp_frame note = dp_frame_copy("half", 4);
    assert_comes_back(&want, &note, 1);
}

/* Each field that a kind of optimizer uses, with a number of its own. */
static void every_hyperparameter_comes_back(void **state)
{
    struct dp_error err = {0};
    for (int kind = DP_OPT_SGD; kind <= DP_OPT_FTRL; kind++) {
        struct dp_request got, want = request_of(DP_REQUEST_CREATE_TABLE);
        want.spec = some_spec();
        want.spec.init = (struct dp_init_spec){DP_INIT_NORMAL, 0.25f, 0, 0};
        struct dp_optimizer_spec *optimizer = &want.spec.optimizer;
        *optimizer = dp_optimizer_defaults((enum dp_optimizer_kind)kind);
        optimizer->l2 = 0.011f;
        optimizer->momentum = kind == DP_OPT_SGD ? 0.5f : 0;
        optimizer->decay = kind == DP_OPT_ADAM ? 0.013f : 0;
        optimizer->accumulator = kind == DP_OPT_ADAGRAD ? 0.125f : 0;
        optimizer->l1 = kind == DP_OPT_FTRL ? 0.017f : 0;
        if (kind == DP_OPT_FTRL)
            optimizer->ftrl_beta = 2;
        struct dp_message *message = encode(&want, NULL, 0);
        if (dp_request_decode(message, &got, &err) != DP_OK ||
            dp_table_same(&got.spec, &want.spec, &err) != DP_OK)
            fail_msg("optimizer %d: %s", kind, err.text);
        dp_message_free(&message);
    }
}

static void sections_lend_the_frames(void **state)
{
    struct dp_request want;
    struct dp_frame frames[4];
    for (int push = 0; push < 2; push++) {
        uint32_t n = fill_sections(push ? DP_REQUEST_PUSH : DP_REQUEST_PULL, 100, &want, frames);
        assert_comes_back(&want, frames, n);
    }
    want = request_of(DP_REQUEST_PUSH); /* a push without rows still uses up its number */
    want.rate = 1;
    assert_comes_back(&want, NULL, 0);
}

static void key_order_is_strict_at_every_place(void **state)
{
    struct dp_request want;
    for (uint32_t at = 1; at < 40; at++)
        for (int equal = 0; equal < 2; equal++) {
            struct dp_message *message = sections_message(DP_REQUEST_PULL, 40, &want);
            char *key = (char *)message->frame[1].data + (size_t)at * 8;
            dp_store_u64le(key, dp_load_u64le(key - 8) - (equal ? 0 : 1));
            char place[32];
            (void)snprintf(place, sizeof place, "key %u (", at);
            assert_refused(&message, DP_INVALID, place);
        }
    struct dp_message *message = sections_message(DP_REQUEST_PULL, 2, &want);
    struct dp_error err = {0};
    struct dp_request got;
    dp_store_u64le((char *)message->frame[1].data + 8, UINT64_MAX); /* unsigned order */
    assert_int_equal(dp_request_decode(message, &got, &err), DP_OK);
    dp_message_free(&message);
}

static void set_frame(struct dp_message *message, uint32_t at, size_t size)
{
    dp_frame_release(&message->frame[at]);
    message->frame[at] = dp_frame_new(size);
    memset(message->frame[at].data, 0, size);
}

static void frames_of_wrong_length_or_number_are_refused(void **state)
{
    struct dp_request want;
    static const size_t wrong_keys[] = {0, 1, 799, 801, 808, 1600};
    for (size_t i = 0; i < sizeof wrong_keys / sizeof wrong_keys[0]; i++) {
        struct dp_message *message = sections_message(DP_REQUEST_PUSH, 100, &want);
        set_frame(message, 1, wrong_keys[i]);
        assert_refused(&message, DP_INVALID, "sections[0]: keys frame");
    }
    static const size_t wrong_values[] = {0, 1, 399, 401, 799, 801};
    for (size_t i = 0; i < sizeof wrong_values / sizeof wrong_values[0]; i++) {
        struct dp_message *message = sections_message(DP_REQUEST_PUSH, 100, &want);
        set_frame(message, 2, wrong_values[i]);
        assert_refused(&message, DP_INVALID, "sections[0]: values frame");
    }
    struct dp_message *message = sections_message(DP_REQUEST_PUSH, 100, &want);
    set_frame(message, 4, 2); /* values without a row */
    assert_refused(&message, DP_INVALID, "sections[1]: values frame");

    for (uint32_t frames = 1; frames < 5; frames++) {
        message = sections_message(DP_REQUEST_PUSH, 3, &want);
        while (message->frames > frames)
            dp_frame_release(&message->frame[--message->frames]);
        assert_refused(&message, DP_INVALID, "frames");
    }
    want = request_of(DP_REQUEST_PUSH);
    want.rate = 1;
    struct dp_message *push = encode(&want, NULL, 0);
    message = dp_message_new(2); /* more frames than sections */
    dp_message_add(message, dp_frame_copy(push->frame[0].data, push->frame[0].size));
    dp_message_add(message, dp_frame_new(0));
    assert_refused(&message, DP_INVALID, "expected 1 for 0 sections");
    dp_message_free(&push);
    message = dp_message_new(0);
    assert_refused(&message, DP_INVALID, "empty message");
    message = dp_message_new(1);
    dp_message_add(message, dp_frame_new(0));
    assert_refused(&message, DP_INVALID, "0 bytes");
    message = dp_message_new(DP_FRAMES_MAX + 1);
    for (uint32_t i = 0; i < DP_FRAMES_MAX + 1; i++)
        dp_message_add(message, dp_frame_new(8));
    assert_refused(&message, DP_INVALID, "the limit is");
    message = dp_message_new(1);
    dp_message_add(message, dp_frame_new(DP_REQUEST_HEADER_BYTES_MAX + 1));
    assert_refused(&message, DP_INVALID, "header");
    want = request_of(DP_REQUEST_STATUS);
    struct dp_message *status = encode(&want, NULL, 0);
    message = dp_message_new(2);
    dp_message_add(message, dp_frame_copy(status->frame[0].data, status->frame[0].size));
    dp_message_add(message, dp_frame_new(8));
    assert_refused(&message, DP_INVALID, "header alone");
    dp_message_free(&status);
}

static void broken_pushes_are_refused_by_name(void **state)
{
    static const float bad_rates[] = {0.0f, -1.0f, NAN, INFINITY, 1e-45f, FLT_MIN / 2};
    struct dp_request request = request_of(DP_REQUEST_PUSH);
    for (size_t i = 0; i < sizeof bad_rates / sizeof bad_rates[0]; i++) {
        request.rate = bad_rates[i];
        assert_request_refused(&request, DP_INVALID, "rate");
    }
    request.rate = 1;
    request.by_staleness = true; /* of nothing measured */
    assert_request_refused(&request, DP_INVALID, "by_staleness");
    request.by_staleness = false;
    request.examples = DP_EXAMPLES_MAX + 1;
    assert_request_refused(&request, DP_INVALID, "examples");
}

static void broken_fields_are_refused_by_name(void **state)
{
    struct dp_request request = request_of(DP_REQUEST_STATUS);
    request.timeout_ms = 0;
    assert_request_refused(&request, DP_INVALID, "timeout_ms");
    request = request_of(DP_REQUEST_POSITIONS_GET);
    request.numbers = 1;
    assert_request_refused(&request, DP_INVALID, "stream");
    request.stream = 1;
    request.numbers = 0;
    assert_request_refused(&request, DP_INVALID, "count");
    request.numbers = DP_POSITIONS_MAX + 1;
    assert_request_refused(&request, DP_INVALID, "count");
    request.numbers = 2;
    request.number = UINT64_MAX - 1;
    assert_request_refused(&request, DP_INVALID, "from");
    request = request_of(DP_REQUEST_HELLO);
    (void)snprintf(request.client, sizeof request.client, "two\nlines");
    assert_request_refused(&request, DP_INVALID, "client");
    request = request_of(DP_REQUEST_NOTES_GET);
    (void)snprintf(request.name, sizeof request.name, "\x1b[2J");
    assert_request_refused(&request, DP_INVALID, "prefix");
    request = request_of(DP_REQUEST_CREATE_TABLE);
    assert_request_refused(&request, DP_INVALID, "spec.name");
    request.spec = some_spec();
    request.spec.dim = 0;
    assert_request_refused(&request, DP_INVALID, "spec: ");
    request.spec = some_spec();
    request.spec.optimizer.beta1 = NAN;
    assert_request_refused(&request, DP_INVALID, "spec: ");
    request.spec = some_spec();
    request.spec.init.kind = (enum dp_init_kind)6;
    assert_request_refused(&request, DP_INVALID, "spec.init_kind");
    request.spec = some_spec();
    request.spec.optimizer.kind = (enum dp_optimizer_kind)4;
    assert_request_refused(&request, DP_INVALID, "spec.optimizer_kind");

    request = request_of(DP_REQUEST_NOTE_PUT);
    struct dp_frame note = dp_frame_new(1);
    struct dp_message *message = encode(&request, &note, 1);
    assert_refused(&message, DP_INVALID, "name");
    note = dp_frame_new((size_t)DP_NOTE_BYTES_MAX + 1);
    (void)snprintf(request.name, sizeof request.name, "x");
    message = encode(&request, &note, 1);
    assert_refused(&message, DP_INVALID, "note has");

    request = request_of(DP_REQUEST_STATUS); /* a longer wait than allowed is cut, not refused */
    request.timeout_ms = UINT32_MAX;
    message = encode(&request, NULL, 0);
    struct dp_request got;
    assert_int_equal(dp_request_decode(message, &got, NULL), DP_OK);
    assert_int_equal(got.timeout_ms, DP_TIMEOUT_MS_MAX);
    dp_message_free(&message);

    request = request_of(DP_REQUEST_PUSH);
    request.rate = FLT_MIN; /* the least that is taken */
    message = encode(&request, NULL, 0);
    assert_int_equal(dp_request_decode(message, &got, NULL), DP_OK);
    assert_true(got.rate == FLT_MIN && isfinite(1 / got.rate));
    dp_message_free(&message);
}

static struct dp_message *message_of(const char *header, size_t size)
{
    struct dp_message *message = dp_message_new(1);
    dp_message_add(message, dp_frame_copy(header, size));
    return message;
}

/* What only another program writes: packed by hand. 08 03: protocol 3; 10 07: id 7; 38 64: timeout_ms 100. */
#define HEAD     "\x08\x03\x10\x07\x38\x64"
#define HAND(by) message_of(by, sizeof(by) - 1)

static void foreign_headers_are_refused(void **state)
{
    struct dp_message *message = HAND("\x08\x01\x10\x07\x38\x64\x72\x00");
    struct dp_request got;
    assert_int_equal(dp_request_decode(message, &got, NULL), DP_VERSION);
    assert_int_equal(got.id, 7); /* so that the refusal can be answered */
    assert_refused(&message, DP_VERSION, "version 1");
    message = HAND(HEAD);
    assert_refused(&message, DP_INVALID, "body");
    message = HAND(HEAD "\x6a\x00\x72\x00"); /* push and status */
    assert_refused(&message, DP_INVALID, "not a request");
    message = HAND(HEAD "\x5a\x00"); /* create_table without a spec */
    assert_refused(&message, DP_INVALID, "spec: absent");
    message = HAND(HEAD "\x62\x04\x0a\x02\x18\x02"); /* pull, section of type 2 */
    dp_message_free(&message);
    message = dp_message_new(2);
    dp_message_add(message, dp_frame_copy(HEAD "\x62\x04\x0a\x02\x18\x02", 12));
    dp_message_add(message, dp_frame_new(0));
    assert_refused(&message, DP_INVALID, "sections[0].type");
    message = dp_message_new(2);
    dp_message_add(message, dp_frame_copy(HEAD "\x62\x07\x0a\x05\x10\x81\x80\x80\x02", 15));
    dp_message_add(message, dp_frame_new(0));
    assert_refused(&message, DP_INVALID, "sections[0].rows");
    char many[6 + 3 + 2 * (DP_SECTIONS_MAX + 1)] = HEAD "\x62\x82\x01";
    for (size_t i = 9; i < sizeof many; i += 2)
        memcpy(many + i, "\x0a", 2);
    message = message_of(many, sizeof many);
    assert_refused(&message, DP_INVALID, "sections: 65");
    char name[6 + 3 + 3 + DP_NOTE_NAME_MAX + 1] = HEAD "\x82\x01\x83\x02\x0a\x80\x02";
    memset(name + 13, 'n', sizeof name - 13);
    message = message_of(name, sizeof name);
    assert_refused(&message, DP_INVALID, "");
    message = HAND(
        HEAD "\x72\xf5\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* a length of 2^64 - 11: back to its own tag */
    assert_refused(&message, DP_INVALID, "not a request");
    message = HAND("GET / HTTP/1.1\r\n");
    assert_refused(&message, DP_INVALID, "not a request");
}

/* Cut at every byte, flipped in every bit; the sanitizer watches. A header that still parses must give a
 * request within its limits. */
static void damaged_headers_do_no_harm(void **state)
{
    struct dp_request got, want;
    struct dp_table_spec spec = some_spec();
    for (int kind = 0; kind < 3; kind++) {
        struct dp_message *message;
        if (kind < 2) {
            message = sections_message(kind ? DP_REQUEST_PUSH : DP_REQUEST_PULL, 20, &want);
        } else {
            want = request_of(DP_REQUEST_CREATE_TABLE);
            want.spec = spec;
            message = encode(&want, NULL, 0);
        }
        size_t size = message->frame[0].size;
        for (size_t cut = 0; cut < size; cut++) {
            struct dp_message *copy = copy_cut(message, cut);
            assert_int_not_equal(dp_request_decode(copy, &got, NULL), DP_OK);
            dp_message_free(&copy);
        }
        for (size_t bit = 0; bit < size * 8; bit++) {
            struct dp_message *copy = copy_of(message);
            ((unsigned char *)copy->frame[0].data)[bit / 8] ^= (unsigned char)(1u << bit % 8);
            if (dp_request_decode(copy, &got, NULL) == DP_OK)
                assert_true(got.sections <= DP_SECTIONS_MAX && got.timeout_ms <= DP_TIMEOUT_MS_MAX);
            dp_message_free(&copy);
        }
        dp_message_free(&message);
    }
}

static void random_messages_do_no_harm(void **state)
{
    uint64_t seed = 20260101;
    struct dp_request got;
    for (int i = 0; i < 100000; i++) {
        struct dp_message *message = random_message(&seed);
        (void)!dp_request_decode(message, &got, NULL);
        dp_message_free(&message);
    }
}

static int released;

static void count_release(void *data, void *owner)
{
    released++;
}

static void encode_takes_the_frames_over_even_when_it_refuses(void **state)
{
    struct dp_request request = request_of(DP_REQUEST_NOTE_PUT);
    struct dp_error err = {0};
    struct dp_message *message = NULL;
    char bytes[1] = {0};
    (void)snprintf(request.name, sizeof request.name, "x");
    struct dp_frame frame = {bytes, (size_t)DP_FRAME_BYTES_MAX + 1, count_release, NULL};
    released = 0;
    assert_int_equal(dp_request_encode(&request, &frame, 1, &message, &err), DP_ARGUMENT);
    assert_null(message);
    assert_int_equal(released, 1);
    frame = (struct dp_frame){bytes, 1, count_release, NULL};
    assert_int_equal(dp_request_encode(&request, &frame, 1, &message, &err), DP_OK);
    assert_int_equal(released, 1);
    dp_message_free(&message);
    assert_int_equal(released, 2);
}

static void the_fullest_push_fits(void **state)
{
    struct dp_request got, request = request_of(DP_REQUEST_PUSH);
    struct dp_frame frames[2 * DP_SECTIONS_MAX];
    request.rate = 1;
    request.id = request.generation = request.sequence = request.number = request.pulled_at = UINT64_MAX;
    request.measured = request.by_staleness = true;
    request.examples = DP_EXAMPLES_MAX;
    request.pulled_lsn = UINT64_MAX;
    request.sections = DP_SECTIONS_MAX;
    for (uint32_t i = 0; i < DP_SECTIONS_MAX; i++) {
        request.section[i] = (struct dp_section){.table = UINT32_MAX - i, .rows = 1, .type = DP_BF16};
        frames[2 * i] = dp_frame_copy("12345678", 8);
        frames[2 * i + 1] = dp_frame_copy("12", 2);
    }
    struct dp_message *message = encode(&request, frames, 2 * DP_SECTIONS_MAX);
    assert_int_equal(message->frames, DP_FRAMES_MAX);
    assert_true(message->frame[0].size < DP_REQUEST_HEADER_BYTES_MAX / 2);
    assert_int_equal(dp_request_decode(message, &got, NULL), DP_OK);
    assert_int_equal(got.sections, DP_SECTIONS_MAX);
    dp_message_free(&message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_kinds_come_back_as_they_went),
        cmocka_unit_test(every_hyperparameter_comes_back),
        cmocka_unit_test(sections_lend_the_frames),
        cmocka_unit_test(key_order_is_strict_at_every_place),
        cmocka_unit_test(frames_of_wrong_length_or_number_are_refused),
        cmocka_unit_test(broken_pushes_are_refused_by_name),
        cmocka_unit_test(broken_fields_are_refused_by_name),
        cmocka_unit_test(foreign_headers_are_refused),
        cmocka_unit_test(damaged_headers_do_no_harm),
        cmocka_unit_test(random_messages_do_no_harm),
        cmocka_unit_test(encode_takes_the_frames_over_even_when_it_refuses),
        cmocka_unit_test(the_fullest_push_fits),
    };
    return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}

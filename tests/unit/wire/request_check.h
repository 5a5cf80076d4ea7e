/* Requests for the wire's tests: one of each kind, sent as it is, and how one that is refused is told. */
#ifndef DP_TESTS_UNIT_WIRE_REQUEST_CHECK_H
#define DP_TESTS_UNIT_WIRE_REQUEST_CHECK_H

#include "tests/lib/test.h"

#include "common/wire/request.h"

#include <string.h>

/* Padding and all is 0, so that requests can be compared as bytes. */
static inline struct dp_request request_of(enum dp_request_kind kind)
{
    struct dp_request request;
    memset(&request, 0, sizeof request);
    request.kind = kind;
    request.id = 7;
    request.cluster = 0xfedcba9876543210u;
    request.generation = 3;
    request.history = 0xfedcba9876543210;
    request.session = 0x1122334455667788u;
    request.sequence = 42;
    request.timeout_ms = 1500;
    return request;
}

static inline struct dp_message *encode(const struct dp_request *request, struct dp_frame *frames, uint32_t n)
{
    struct dp_error err = {0};
    struct dp_message *message = NULL;
    assert_int_equal(dp_request_encode(request, frames, n, &message, &err), DP_OK);
    return message;
}

/* Points the request at the frames that its decoded form lends. */
static inline void lend(struct dp_request *request, const struct dp_message *message)
{
    const struct dp_frame *frame = &message->frame[1];
    uint32_t frames = message->frames - 1, each = request->kind == DP_REQUEST_PUSH ? 2 : 1;
    for (uint32_t i = 0; i < request->sections; i++) {
        request->section[i].keys = frame[i * each].data;
        request->section[i].values = each == 2 ? frame[i * each + 1].data : NULL;
        request->section[i].value_bytes = each == 2 ? frame[i * each + 1].size : 0;
    }
    if (request->kind == DP_REQUEST_LEASE) {
        request->lease.numbers = frame[0].data;
        request->lease.bits = request->lease.tells ? frame[1].data : NULL;
    } else if (request->kind == DP_REQUEST_CHECKPOINT) {
        request->checkpoint.pushes = frames == 1 ? frame->data : NULL;
    } else if (request->sections == 0 && frames == 1) {
        request->note = frame->data;
        request->note_bytes = frame->size;
    }
}

/* It comes back as it went, every field. */
static inline void assert_comes_back(const struct dp_request *want, struct dp_frame *frames, uint32_t n)
{
    struct dp_error err = {0};
    struct dp_request got, expected;
    struct dp_message *message = encode(want, frames, n);
    memcpy(&expected, want, sizeof expected);
    lend(&expected, message);
    if (dp_request_decode(message, &got, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(&got, &expected, sizeof got);
    dp_message_free(&message);
}

/* The message is refused, and the text has `field` in it. */
static inline void assert_refused(struct dp_message **message, enum dp_status why, const char *field)
{
    struct dp_request got;
    struct dp_error err = {0};
    enum dp_status st = dp_request_decode(*message, &got, &err);
    if (st != why || !strstr(err.text, field))
        fail_msg("expected %s with '%s', got %s: %s", dp_status_name((int)why), field,
                 dp_status_name((int)st), err.text);
    dp_message_free(message);
}

static inline void assert_request_refused(const struct dp_request *request, enum dp_status why,
                                          const char *field)
{
    struct dp_message *message = encode(request, NULL, 0);
    assert_refused(&message, why, field);
}

#endif

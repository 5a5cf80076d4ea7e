/* Requests for the wire's tests: one of each kind, sent as it is, and how one that is refused is told. */
#ifndef DP_TESTS_UNIT_WIRE_REQUEST_CHECK_H
#define DP_TESTS_UNIT_WIRE_REQUEST_CHECK_H

#include "tests/lib/test.h"

#include "common/wire/request.h"

#include <string.h>

static inline struct dp_request request_of(enum dp_request_kind kind)
{
    return (struct dp_request){.kind = kind,
                               .id = 7,
                               .cluster = 0xfedcba9876543210u,
                               .generation = 3,
                               .history = 0xfedcba9876543210,
                               .session = 0x1122334455667788u,
                               .sequence = 42,
                               .timeout_ms = 1500};
}

static inline struct dp_message *encode(const struct dp_request *request, struct dp_frame *frames, uint32_t n)
{
    struct dp_error err = {0};
    struct dp_message *message = NULL;
    assert_int_equal(dp_request_encode(request, frames, n, &message, &err), DP_OK);
    return message;
}

static inline void assert_head(const struct dp_request *got, const struct dp_request *want)
{
    assert_int_equal(got->kind, want->kind);
    assert_true(got->id == want->id && got->cluster == want->cluster && got->session == want->session);
    assert_true(got->generation == want->generation && got->history == want->history);
    assert_true(got->sequence == want->sequence);
    assert_int_equal(got->timeout_ms, want->timeout_ms);
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

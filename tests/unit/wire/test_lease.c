/* Leases on the wire: requests and answers come back as they went; what breaks a limit is refused by name. */
#include "tests/unit/wire/request_check.h"

#include "common/base/bytes.h"
#include "common/wire/reply.h"

static struct dp_frame numbers_frame(const uint64_t *numbers, size_t count)
{
    struct dp_frame frame = dp_frame_new(count * 8);
    for (size_t i = 0; i < count; i++)
        dp_store_u64le((char *)frame.data + i * 8, numbers[i]);
    return frame;
}

static struct dp_request lease_of(uint32_t held, uint32_t done, bool tells)
{
    struct dp_request request = request_of(DP_REQUEST_LEASE);
    request.run = 7;
    request.epoch = UINT32_MAX;
    request.lease.total = 65;
    request.lease.rank = DP_LEASE_RANKS_MAX - 1;
    request.lease.want = DP_LEASE_WANT_MAX;
    request.lease.held = held;
    request.lease.done = done;
    request.lease.tells = tells;
    return request;
}

static void requests_come_back_as_they_went(void **state)
{
    struct dp_request want = lease_of(2, 1, true);
    struct dp_frame frames[2] = {numbers_frame((uint64_t[]){3, 64, 0}, 3),
                                 numbers_frame((uint64_t[]){9, 1}, 2)};
    assert_comes_back(&want, frames, 2);
}

static void refused(struct dp_request request, size_t numbers, const char *field)
{
    struct dp_frame frames[2] = {numbers_frame((const uint64_t[8]){0}, numbers), dp_frame_new(16)};
    struct dp_message *message = encode(&request, frames, request.lease.tells ? 2 : 1);
    if (!request.lease.tells)
        dp_frame_release(&frames[1]);
    assert_refused(&message, DP_INVALID, field);
}

static void what_breaks_a_limit_is_refused(void **state)
{
    struct dp_request r = lease_of(0, 0, false);
    r.run = 0;
    refused(r, 0, "run");
    r = lease_of(0, 0, false), r.lease.total = 0;
    refused(r, 0, "total");
    r = lease_of(0, 0, false), r.lease.total = DP_LEASE_TOTAL_MAX + 1;
    refused(r, 0, "total");
    r = lease_of(0, 0, false), r.lease.rank = DP_LEASE_RANKS_MAX;
    refused(r, 0, "rank");
    r = lease_of(0, 0, false), r.lease.want = DP_LEASE_WANT_MAX + 1;
    refused(r, 0, "want");
    refused(lease_of(DP_LEASE_HELD_MAX + 1, 0, false), 1, "held");
    refused(lease_of(0, UINT32_MAX, false), 1, "done");
    refused(lease_of(1, 1, false), 1, "numbers frame");
    r = lease_of(1, 1, true), r.lease.total = 129;
    refused(r, 2, "bits frame");
    /* Numbers of the epoch only. */
    struct dp_frame frame = numbers_frame((uint64_t[]){64, 65}, 2);
    r = lease_of(1, 1, false);
    struct dp_message *message = encode(&r, &frame, 1);
    assert_refused(&message, DP_INVALID, "done[0]: 65");
}

static enum dp_status answer(enum dp_lease_state state, size_t count, struct dp_reply *got)
{
    struct dp_reply want = {
        .kind = DP_REPLY_LEASED, .id = 3, .lease = state, .wait_ms = 17, .done = UINT64_MAX};
    struct dp_error err = {0};
    uint64_t numbers[DP_LEASE_WANT_MAX + 1] = {5};
    struct dp_frame frame = numbers_frame(numbers, count);
    struct dp_message *message = NULL;
    assert_int_equal(dp_reply_encode(&want, &frame, 1, &message, &err), DP_OK);
    enum dp_status st = dp_reply_decode(message, got, &err);
    if (st == DP_OK)
        assert_true(got->lease == state && got->wait_ms == 17 && got->done == UINT64_MAX);
    dp_message_free(&message);
    return st;
}

static void answers_have_numbers_where_they_give_some(void **state)
{
    struct dp_reply got;
    assert_int_equal(answer(DP_LEASE_GIVEN, DP_LEASE_WANT_MAX, &got), DP_OK);
    assert_int_equal(answer(DP_LEASE_TELL, 0, &got), DP_OK);
    assert_int_equal(answer(DP_LEASE_GIVEN, DP_LEASE_WANT_MAX + 1, &got), DP_INVALID);
    assert_int_equal(answer(DP_LEASE_GIVEN, 0, &got), DP_INVALID);
    assert_int_equal(answer(DP_LEASE_OVER, 1, &got), DP_INVALID);
    assert_int_equal(answer((enum dp_lease_state)4, 0, &got), DP_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_back_as_they_went),
        cmocka_unit_test(what_breaks_a_limit_is_refused),
        cmocka_unit_test(answers_have_numbers_where_they_give_some),
    };
    return cmocka_run_group_tests_name("leases on the wire", tests, NULL, NULL);
}

/* Request: what the register and the list of a run's members need: comes back as it went, refused by name. */
#include "tests/unit/wire/request_check.h"

#include <stdio.h>

static void register_requests_come_back_as_they_went(void **state)
{
    struct dp_error err = {0};
    struct dp_request got, want = request_of(DP_REQUEST_REGISTER_GET);
    (void)snprintf(want.name, sizeof want.name, "run/12/plan");
    want.version = UINT64_MAX;
    want.wait_ms = 5000;
    assert_comes_back(&want, NULL, 0);
    want.wait_ms = UINT32_MAX; /* taken for the longest */
    struct dp_message *message = encode(&want, NULL, 0);
    assert_int_equal(dp_request_decode(message, &got, &err), DP_OK);
    assert_int_equal(got.wait_ms, DP_TIMEOUT_MS_MAX);
    dp_message_free(&message);
    want.name[0] = '\0';
    message = encode(&want, NULL, 0);
    assert_refused(&message, DP_INVALID, "name");

    want = request_of(DP_REQUEST_REGISTER_SET);
    (void)snprintf(want.name, sizeof want.name, "stores");
    want.version = UINT64_MAX - 1;
    want.nonce = UINT64_MAX;
    want.server_shard = UINT32_MAX;
    struct dp_frame value = dp_frame_new(DP_REGISTER_VALUE_BYTES_MAX);
    memset(value.data, 'v', value.size);
    assert_comes_back(&want, &value, 1);
    value = dp_frame_new(DP_REGISTER_VALUE_BYTES_MAX + 1);
    memset(value.data, 'v', value.size);
    message = encode(&want, &value, 1);
    assert_refused(&message, DP_INVALID, "value has");
    value = dp_frame_new(0);
    want.nonce = 0;
    message = encode(&want, &value, 1);
    assert_refused(&message, DP_INVALID, "nonce");
    value = dp_frame_new(0);
    want.nonce = 1;
    want.version = UINT64_MAX;
    message = encode(&want, &value, 1);
    assert_refused(&message, DP_INVALID, "expected");
}

static void a_view_lends_its_frame(void **state)
{
    struct dp_request want = request_of(DP_REQUEST_VIEW_PUT);
    for (int returns = 0; returns < 2; returns++) { /* and who asks */
        struct dp_frame bytes = dp_frame_new(returns ? DP_VIEW_HEAD : DP_VIEW_BYTES_MAX);
        memset(bytes.data, 7, bytes.size);
        want.returns = returns;
        want.rank = returns ? 7 : 0;
        assert_comes_back(&want, &bytes, 1);
    }
    struct dp_frame bytes = dp_frame_new(DP_VIEW_BYTES_MAX + 1);
    struct dp_message *message = encode(&want, &bytes, 1);
    assert_refused(&message, DP_INVALID, "view has");
}

static void broken_members_are_refused_by_name(void **state)
{
    struct dp_request request;
    for (unsigned broken = 0; broken < 6; broken++) {
        request = request_of(broken % 2 ? DP_REQUEST_PUSH : DP_REQUEST_PULL);
        request.rate = 1;
        request.member = (struct dp_membership){.given = true,
                                                .run = broken != 0,
                                                .view = broken != 1,
                                                .incarnation = broken != 2,
                                                .rank = broken == 3 ? DP_MEMBERS_MAX : 0,
                                                .step = broken == 4 ? UINT64_MAX - 1 : 0,
                                                .examples = broken == 5 ? DP_EXAMPLES_MAX + 1 : 0};
        assert_request_refused(&request, DP_INVALID, "member");
    }
}

static void a_heartbeat_comes_back_as_it_went(void **state)
{
    struct dp_request want = request_of(DP_REQUEST_HEARTBEAT);
    want.heartbeat =
        (struct dp_heartbeat){.run = UINT32_MAX, .rank = DP_MEMBERS_MAX - 1, .members = DP_MEMBERS_MAX};
    assert_comes_back(&want, NULL, 0);
    const struct dp_heartbeat broken[] = {{0, 0, 1}, {1, 0, 0}, {1, 1, 1}, {1, 0, DP_MEMBERS_MAX + 1}};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        want.heartbeat = broken[i];
        assert_request_refused(&want, DP_INVALID, "heartbeat");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(register_requests_come_back_as_they_went),
        cmocka_unit_test(a_view_lends_its_frame),
        cmocka_unit_test(broken_members_are_refused_by_name),
        cmocka_unit_test(a_heartbeat_comes_back_as_it_went),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Checkpoints on the wire: requests and answers come back as they went; what breaks a limit is refused by name. */
#include "tests/unit/wire/request_check.h"

#include "common/base/bytes.h"
#include "common/wire/reply.h"

#include <stdio.h>

static struct dp_frame pushes_frame(const uint64_t *words, size_t pushes)
{
    struct dp_frame frame = dp_frame_new(pushes * 16);
    for (size_t i = 0; i < 2 * pushes; i++)
        dp_store_u64le((char *)frame.data + i * 8, words[i]);
    return frame;
}

static struct dp_request ask_of(enum dp_checkpoint_action action)
{
    struct dp_request request = request_of(DP_REQUEST_CHECKPOINT);
    struct dp_checkpoint_ask *ask = &request.checkpoint;
    ask->action = action;
    ask->order = UINT64_MAX - 1;
    ask->cut = action == DP_CHECKPOINT_CUT || action == DP_CHECKPOINT_FINISH ? 3 : 0;
    return request;
}

static void requests_come_back_as_they_went(void **state)
{
    struct dp_request want = ask_of(DP_CHECKPOINT_BEGIN);
    memset(want.checkpoint.directory, 'd', DP_CHECKPOINT_DIRECTORY_MAX);
    want.checkpoint.directory[0] = '/';
    want.checkpoint.full = want.checkpoint.link = true;
    want.checkpoint.rate = UINT64_MAX;
    (void)snprintf(want.checkpoint.file, sizeof want.checkpoint.file, "/run/cluster.conf");
    want.checkpoint.wait_ms = 1;
    want.checkpoint.keep = 2;
    want.checkpoint.run = 3;
    want.checkpoint.epoch = UINT32_MAX;
    assert_comes_back(&want, NULL, 0);
    want = ask_of(DP_CHECKPOINT_FINISH);
    want.checkpoint.step = 9;
    want.checkpoint.missing = 3;
    struct dp_frame frame = pushes_frame((uint64_t[]){1, 7, 1, 8, UINT64_MAX, 0}, 3);
    assert_comes_back(&want, &frame, 1);
    for (int action = DP_CHECKPOINT_CUT; action <= DP_CHECKPOINT_ABANDON; action++) {
        want = ask_of((enum dp_checkpoint_action)action);
        want.checkpoint.number = action == DP_CHECKPOINT_END ? 7 : 0;
        if (action != DP_CHECKPOINT_FINISH)
            assert_comes_back(&want, NULL, 0);
    }
}

static void refused(const struct dp_request *request, const uint64_t *words, size_t pushes, const char *field)
{
    struct dp_frame frame = pushes_frame(words, pushes);
    bool finishes = request->checkpoint.action == DP_CHECKPOINT_FINISH;
    struct dp_message *message = encode(request, &frame, finishes);
    if (!finishes)
        dp_frame_release(&frame);
    assert_refused(&message, DP_INVALID, field);
}

static void what_breaks_a_limit_is_refused(void **state)
{
    struct dp_request r = ask_of(DP_CHECKPOINT_BEGIN);
    refused(&r, NULL, 0, "directory");
    (void)snprintf(r.checkpoint.directory, sizeof r.checkpoint.directory, "there");
    refused(&r, NULL, 0, "directory");
    (void)snprintf(r.checkpoint.directory, sizeof r.checkpoint.directory, "/a\n");
    refused(&r, NULL, 0, "directory");
    r = ask_of(DP_CHECKPOINT_LOOK), r.checkpoint.order = 0;
    refused(&r, NULL, 0, "order");
    r = ask_of((enum dp_checkpoint_action)6); /* an earlier version's */
    refused(&r, NULL, 0, "action");
    r = ask_of(DP_CHECKPOINT_CUT), r.checkpoint.cut = 0;
    refused(&r, NULL, 0, "cut");
    r.checkpoint.cut = DP_CHECKPOINT_CUTS_MAX + 1;
    refused(&r, NULL, 0, "cut");
    r = ask_of(DP_CHECKPOINT_LOOK), r.checkpoint.cut = 1;
    refused(&r, NULL, 0, "cut");
    r = ask_of(DP_CHECKPOINT_ABANDON), r.checkpoint.number = 1;
    refused(&r, NULL, 0, "number");
    r = ask_of(DP_CHECKPOINT_END), r.checkpoint.missing = 1;
    refused(&r, NULL, 0, "missing");
    r = ask_of(DP_CHECKPOINT_FINISH), r.checkpoint.missing = DP_CHECKPOINT_MISSING_MAX + 1;
    refused(&r, NULL, 0, "missing");
    r.checkpoint.missing = 2;
    refused(&r, (uint64_t[]){1, 1}, 1, "frame has 16 bytes");
    refused(&r, (uint64_t[]){0, 1, 1, 1}, 2, "missing[0]");
    refused(&r, (uint64_t[]){2, 2, 2, 2}, 2, "missing[1]");
    refused(&r, (uint64_t[]){2, 2, 1, 3}, 2, "missing[1]");
}

static enum dp_status answer(const struct dp_reply *want, uint32_t frames, size_t bytes, struct dp_reply *got)
{
    struct dp_error err = {0};
    struct dp_frame frame[2] = {dp_frame_new(bytes), dp_frame_new(0)};
    struct dp_message *message = NULL;
    assert_int_equal(dp_reply_encode(want, frame, frames, &message, &err), DP_OK);
    enum dp_status st = dp_reply_decode(message, got, &err);
    dp_message_free(&message);
    for (uint32_t i = frames; i < 2; i++)
        dp_frame_release(&frame[i]);
    return st;
}

static void answers_come_back_as_they_went(void **state)
{
    struct dp_reply got, want = {.kind = DP_REPLY_CHECKPOINT, .id = 3};
    struct dp_checkpoint_state *s = &want.checkpoint;
    *s = (struct dp_checkpoint_state){.order = 1,
                                      .cut = 2,
                                      .lsn = UINT64_MAX,
                                      .after = UINT64_MAX,
                                      .mode = DP_SYNC,
                                      .run = 4,
                                      .open = 5,
                                      .done_bytes = 6,
                                      .all_bytes = 7,
                                      .lacking = 8,
                                      .lack_stream = 9,
                                      .lack_number = 10,
                                      .why = "a disk",
                                      .why_status = DP_FULL};
    for (int stage = 0; stage <= DP_CHECKPOINT_ABANDONED; stage++) {
        s->stage = (enum dp_checkpoint_stage)stage;
        assert_int_equal(answer(&want, dp_checkpoint_frames(s->stage), 5, &got), DP_OK);
        assert_memory_equal(&got.checkpoint, s, sizeof *s);
    }
    s->stage = (enum dp_checkpoint_stage)9;
    assert_int_equal(answer(&want, 0, 0, &got), DP_INVALID);
    s->stage = DP_CHECKPOINT_CUTTING, s->lsn--;
    assert_int_equal(answer(&want, 0, 0, &got), DP_INVALID);
}

static void a_copy_of_the_register_may_be_longer_than_a_value(void **state)
{
    struct dp_reply got, want = {.kind = DP_REPLY_REGISTER, .id = 3, .version = 1, .whole = true};
    assert_int_equal(answer(&want, 1, DP_REGISTER_COPY_BYTES_MAX, &got), DP_OK);
    assert_true(got.whole);
    assert_int_equal(answer(&want, 1, DP_REGISTER_COPY_BYTES_MAX + 1, &got), DP_INVALID);
    want.whole = false;
    assert_int_equal(answer(&want, 1, DP_REGISTER_VALUE_BYTES_MAX, &got), DP_OK);
    assert_int_equal(answer(&want, 1, DP_REGISTER_VALUE_BYTES_MAX + 1, &got), DP_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_back_as_they_went),
        cmocka_unit_test(what_breaks_a_limit_is_refused),
        cmocka_unit_test(answers_come_back_as_they_went),
        cmocka_unit_test(a_copy_of_the_register_may_be_longer_than_a_value),
    };
    return cmocka_run_group_tests_name("checkpoints on the wire", tests, NULL, NULL);
}

/* Any bytes as a reply: refused with a text and nothing to free, or one that comes back the same. */
#include "common/wire/reply.h"
#include "tests/fuzz/split.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_again(const struct dp_reply *reply, const struct dp_message *message)
{
    struct dp_frame frames[DP_FRAMES_MAX];
    struct dp_message *again = NULL;
    struct dp_reply got;
    struct dp_error err = {0};
    for (uint32_t i = 1; i < message->frames; i++)
        frames[i - 1] = (struct dp_frame){message->frame[i].data, message->frame[i].size, NULL, NULL};
    DP_ASSERT(dp_reply_encode(reply, frames, message->frames - 1, &again, &err) == DP_OK);
    DP_ASSERT(dp_reply_decode(again, &got, &err) == DP_OK);
    DP_ASSERT(got.kind == reply->kind && got.status == reply->status && got.notes == reply->notes);
    DP_ASSERT(got.report.tables == reply->report.tables && got.report.counters == reply->report.counters);
    DP_ASSERT(got.report.histograms == reply->report.histograms);
    dp_reply_clear(&got);
    dp_message_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct dp_message *message = split_message(bytes, size);
    struct dp_reply reply;
    struct dp_error err = {0};
    if (dp_reply_decode(message, &reply, &err) == DP_OK) {
        check_again(&reply, message);
    } else {
        DP_ASSERT(err.text[0] != '\0');
        DP_ASSERT(!reply.note && !reply.report.table && !reply.report.counter && !reply.report.histogram);
    }
    dp_reply_clear(&reply);
    dp_message_free(&message);
    return 0;
}

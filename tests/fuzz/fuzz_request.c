/* Any bytes as a request: refused with a text, or a request that keeps all that request.h promises and comes
 * back the same through encode and decode. */
#include "common/base/bytes.h"
#include "common/wire/request.h"
#include "common/wire/view.h"
#include "tests/fuzz/split.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_section(const struct dp_request *request, const struct dp_section *section)
{
    const char *keys = section->keys;
    DP_ASSERT(section->rows <= DP_ROWS_MAX && (section->type == DP_F32 || section->type == DP_BF16));
    for (uint32_t i = 1; i < section->rows; i++)
        DP_ASSERT(dp_load_u64le(keys + (size_t)i * 8 - 8) < dp_load_u64le(keys + (size_t)i * 8));
    if (request->kind == DP_REQUEST_PUSH && section->rows > 0)
        DP_ASSERT(section->value_bytes > 0 &&
                  section->value_bytes % (section->rows * dp_value_bytes(section->type)) == 0);
}

static void check_again(const struct dp_request *request, const struct dp_message *message)
{
    struct dp_frame frames[DP_FRAMES_MAX];
    struct dp_message *again = NULL;
    struct dp_request got;
    struct dp_error err = {0};
    for (uint32_t i = 1; i < message->frames; i++)
        frames[i - 1] = (struct dp_frame){message->frame[i].data, message->frame[i].size, NULL, NULL};
    DP_ASSERT(dp_request_encode(request, frames, message->frames - 1, &again, &err) == DP_OK);
    DP_ASSERT(dp_request_decode(again, &got, &err) == DP_OK);
    DP_ASSERT(got.kind == request->kind && got.id == request->id && got.sections == request->sections);
    dp_message_free(&again);
}

/* What a shard acts on, and gives to its journal. */
static void check_view(const struct dp_request *request)
{
    static char packed[DP_VIEW_BYTES_MAX];
    struct dp_view view, again;
    struct dp_error err = {0};
    if (dp_view_unpack(request->note, request->note_bytes, &view, &err) != DP_OK) {
        DP_ASSERT(err.text[0] != '\0');
        return;
    }
    DP_ASSERT(view.members > 0 && view.members <= DP_MEMBERS_MAX && view.run > 0 && view.number > 0);
    dp_view_pack(&view, packed);
    DP_ASSERT(dp_view_unpack(packed, dp_view_bytes(&view), &again, &err) == DP_OK);
    for (uint32_t i = 0; i < view.members; i++)
        DP_ASSERT(view.member[i].from >= view.first_step && again.member[i].from == view.member[i].from &&
                  again.member[i].until == view.member[i].until);
    dp_view_clear(&view);
    dp_view_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct dp_message *message = split_message(bytes, size);
    struct dp_request request;
    struct dp_error err = {0};
    if (dp_request_decode(message, &request, &err) == DP_OK) {
        DP_ASSERT(request.sections <= DP_SECTIONS_MAX);
        DP_ASSERT(request.timeout_ms >= 1 && request.timeout_ms <= DP_TIMEOUT_MS_MAX);
        if (request.kind == DP_REQUEST_PUSH)
            DP_ASSERT(isfinite(request.rate) && request.rate > 0);
        for (uint32_t i = 0; i < request.sections; i++)
            check_section(&request, &request.section[i]);
        check_again(&request, message);
        if (request.kind == DP_REQUEST_VIEW_PUT)
            check_view(&request);
    } else {
        DP_ASSERT(err.text[0] != '\0');
    }
    dp_message_free(&message);
    return 0;
}

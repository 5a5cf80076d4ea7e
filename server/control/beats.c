#include "server/control/beats.h"

#include "common/base/bytes.h"

#include <inttypes.h>

#define MS_NS UINT64_C(1000000)

static void begin(struct dp_control_beats *beats, uint32_t run, uint64_t now_ns)
{
    beats->run = run;
    beats->asked = 0;
    for (uint32_t rank = 0; rank < DP_MEMBERS_MAX; rank++)
        beats->heard_ns[rank] = now_ns;
}

enum dp_status dp_control_beats_take(struct dp_control_beats *beats, uint64_t now_ns,
                                     const struct dp_peer *from, const struct dp_request *request,
                                     struct dp_error *err)
{
    const struct dp_beat *beat = &request->beat;
    DP_ASSERT(request->kind == DP_REQUEST_BEAT && beat->rank < beat->members &&
              beat->members <= DP_MEMBERS_MAX);
    if (beat->run < beats->run && now_ns - beats->last_ns < DP_BEATS_OVER_NS)
        return dp_fail(err, DP_INVALID, "beat: run %" PRIu32 " is over: run %" PRIu32 " has begun", beat->run,
                       beats->run);
    if (beat->run != beats->run)
        begin(beats, beat->run, now_ns);
    beats->last_ns = now_ns;
    DP_ASSERT(now_ns >= beats->heard_ns[beat->rank]);
    beats->heard_ns[beat->rank] = now_ns;
    if (beats->asked < DP_MEMBERS_MAX)
        beats->asker[beats->asked++] = (struct dp_beats_asker){
            .peer = *from, .session = request->session, .id = request->id, .members = beat->members};
    return DP_OK;
}

void dp_control_beats_answer(struct dp_control_beats *beats, uint64_t now_ns,
                             void (*send)(void *context, const struct dp_peer *to, struct dp_reply *reply,
                                          struct dp_frame *frames, uint32_t frame_count),
                             void *context)
{
    for (uint32_t i = 0; i < beats->asked; i++) {
        const struct dp_beats_asker *asker = &beats->asker[i];
        struct dp_frame frame = dp_frame_new((size_t)asker->members * 8);
        struct dp_reply reply = {.kind = DP_REPLY_SILENCES, .id = asker->id, .session = asker->session};
        if (!frame.data)
            continue; /* it asks again */
        for (uint32_t rank = 0; rank < asker->members; rank++) {
            DP_ASSERT(now_ns >= beats->heard_ns[rank]);
            dp_store_u64le((unsigned char *)frame.data + (size_t)rank * 8,
                           (now_ns - beats->heard_ns[rank]) / MS_NS);
        }
        send(context, &asker->peer, &reply, &frame, 1);
    }
    beats->asked = 0;
}

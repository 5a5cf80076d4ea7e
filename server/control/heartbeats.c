#include "server/control/heartbeats.h"

#include "common/base/bytes.h"

#include <inttypes.h>

#define MS_NS UINT64_C(1000000)

static void begin(struct dp_control_heartbeats *heartbeats, uint32_t run, uint64_t now_ns)
{
    heartbeats->run = run;
    heartbeats->asked = 0;
    for (uint32_t rank = 0; rank < DP_MEMBERS_MAX; rank++)
        heartbeats->heard_ns[rank] = now_ns;
}

enum dp_status dp_control_heartbeats_take(struct dp_control_heartbeats *heartbeats, uint64_t now_ns,
                                          const struct dp_peer *from, const struct dp_request *request,
                                          struct dp_error *err)
{
    const struct dp_heartbeat *heartbeat = &request->heartbeat;
    DP_ASSERT(request->kind == DP_REQUEST_HEARTBEAT && heartbeat->rank < heartbeat->members &&
              heartbeat->members <= DP_MEMBERS_MAX);
    if (heartbeat->run < heartbeats->run && now_ns - heartbeats->last_ns < DP_HEARTBEATS_OVER_NS)
        return dp_fail(err, DP_INVALID, "heartbeat: run %" PRIu32 " is over: run %" PRIu32 " has begun",
                       heartbeat->run, heartbeats->run);
    if (heartbeat->run != heartbeats->run)
        begin(heartbeats, heartbeat->run, now_ns);
    heartbeats->last_ns = now_ns;
    DP_ASSERT(now_ns >= heartbeats->heard_ns[heartbeat->rank]);
    heartbeats->heard_ns[heartbeat->rank] = now_ns;
    if (heartbeats->asked < DP_MEMBERS_MAX)
        heartbeats->asker[heartbeats->asked++] = (struct dp_heartbeats_asker){
            .peer = *from, .session = request->session, .id = request->id, .members = heartbeat->members};
    return DP_OK;
}

void dp_control_heartbeats_answer(struct dp_control_heartbeats *heartbeats, uint64_t now_ns,
                                  void (*send)(void *context, const struct dp_peer *to,
                                               struct dp_reply *reply, struct dp_frame *frames,
                                               uint32_t frame_count),
                                  void *context)
{
    for (uint32_t i = 0; i < heartbeats->asked; i++) {
        const struct dp_heartbeats_asker *asker = &heartbeats->asker[i];
        struct dp_frame frame = dp_frame_new((size_t)asker->members * 8);
        struct dp_reply reply = {.kind = DP_REPLY_SILENCES, .id = asker->id, .session = asker->session};
        if (!frame.data)
            continue; /* it asks again */
        for (uint32_t rank = 0; rank < asker->members; rank++) {
            DP_ASSERT(now_ns >= heartbeats->heard_ns[rank]);
            dp_store_u64le((unsigned char *)frame.data + (size_t)rank * 8,
                           (now_ns - heartbeats->heard_ns[rank]) / MS_NS);
        }
        send(context, &asker->peer, &reply, &frame, 1);
    }
    heartbeats->asked = 0;
}

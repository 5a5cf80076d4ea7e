/* Heartbeats: how long each member of a run has been silent.
 *     take* -> (the socket is empty) -> answer: to each asker, the silence of every member
 * Promise   After a pause of this server, all heartbeats that have come are heard before any is answered.
 *           Only those of the newest run are kept, until it is silent for DP_HEARTBEATS_OVER_NS: a refused
 *           process may have sent one for a run that never began. A member without a heartbeat counts from
 *           the first heartbeat of that run. After a start of this server every member does.
 * Why       No member measures the silence of another, since it cannot know whether that member or the
 *           server between them was down. Nothing is decided here (worker/coordinate/takeover.h).
 * Clock     Passed in: time in which this server ran (common/env/awake.h), so that its own pauses count as
 *           no member's silence.
 * Thread    The control thread. In memory alone. */
#ifndef DP_CONTROL_HEARTBEATS_H
#define DP_CONTROL_HEARTBEATS_H

#include "common/wire/reply.h"

/* Between two looks at the clock, while a run heartbeats. */
#define DP_HEARTBEATS_LOOK_MS 250u
#define DP_HEARTBEATS_OVER_NS (UINT64_C(60) * 1000000000u)

struct dp_control_heartbeats {
    uint32_t run;     /* 0: none was heard of */
    uint64_t last_ns; /* when it was heard of last */
    uint64_t heard_ns[DP_MEMBERS_MAX];
    uint32_t asked; /* requests that wait for an answer */
    struct dp_heartbeats_asker {
        struct dp_peer peer;
        uint64_t session, id;
        uint32_t members;
    } asker[DP_MEMBERS_MAX];
};

/* DP_INVALID: its run is over. Where too many wait for an answer it is heard and not answered. */
enum dp_status dp_control_heartbeats_take(struct dp_control_heartbeats *heartbeats, uint64_t now_ns,
                                          const struct dp_peer *from, const struct dp_request *request,
                                          struct dp_error *err);
/* send: of a reply whose id and session are set; it takes the frames over. */
void dp_control_heartbeats_answer(struct dp_control_heartbeats *heartbeats, uint64_t now_ns,
                                  void (*send)(void *context, const struct dp_peer *to,
                                               struct dp_reply *reply, struct dp_frame *frames,
                                               uint32_t frame_count),
                                  void *context);

#endif

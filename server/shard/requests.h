/* Requests: the handler of each kind of request to a shard. Handlers of requests in their session's order
 * (pull, push, create_table) return a result, and turn.c answers. Other requests are answered at once or
 * held. (hello owns a held request and sets the pointer to NULL.)
 * Thread    The shard's. */
#ifndef DP_SHARD_REQUESTS_H
#define DP_SHARD_REQUESTS_H

#include "server/shard/replies.h"
#include "server/shard/shard.h"

/* Of a request that is done and answered now. Filled for ANSWER only. */
struct dp_shard_answer {
    struct dp_reply reply;
    struct dp_frame frame[DP_SECTIONS_MAX];
    uint32_t frames;
};

/* REFUSED: why in err. */
enum dp_done dp_shard_pull(struct dp_shard *shard, struct dp_waiting *waiting, struct dp_shard_answer *answer,
                           struct dp_error *err);
enum dp_done dp_shard_push(struct dp_shard *shard, struct dp_waiting *waiting, struct dp_error *err);
/* err: why: it broke the protocol, or its rows could not be read (push.c). */
enum dp_done dp_shard_refuse_push(struct dp_shard *shard, struct dp_waiting *waiting, struct dp_error *err);
enum dp_done dp_shard_create_table(struct dp_shard *shard, struct dp_waiting *waiting,
                                   struct dp_shard_answer *answer, struct dp_error *err);

void dp_shard_hello(struct dp_shard *shard, struct dp_waiting **waiting);
/* err: set where they are refused; the caller answers that. */
void dp_shard_put_view(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_error *err);
void dp_shard_positions(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_error *err);
void dp_shard_status(struct dp_shard *shard, const struct dp_waiting *waiting);

#endif

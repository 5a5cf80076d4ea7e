/* Checkpoint: sends the orders of a checkpoint to all shards at once, and copies the register. For programs
 * that make a checkpoint; not part of the public API.
 * Memory    The caller owns the frames of the answers and frees them by dp_client_checkpoint_clear, also
 *           after a failure.
 * Thread    The client's.
 * Failure   That of the first shard that refuses or does not answer, named. The others may have carried out
 *           the order: all orders can be sent again (proto/README.md). */
#ifndef DP_CLIENT_CHECKPOINT_H
#define DP_CLIENT_CHECKPOINT_H

#include "common/client/downpour.h"
#include "common/wire/checkpoint.h"

struct dp_checkpoint_answer {
    bool answered;
    struct dp_checkpoint_state state;
    void *frame[2]; /* dp_checkpoint_frames(state.stage) of them, each with a 0 after its end */
    size_t bytes[2];
};

/* asks, answers: [shards]. answers are overwritten: clear what they hold first. */
enum dp_status dp_client_checkpoint(struct dp_client *client, const struct dp_checkpoint_ask *asks,
                                    struct dp_checkpoint_answer *answers, uint32_t timeout_ms,
                                    struct dp_error *err);
void dp_client_checkpoint_clear(struct dp_checkpoint_answer *answers, uint32_t shards);

/* Has the first server make a checkpoint, and looks until it has. pause: between two looks, for a while; once it fails, the
 * checkpoint is given up.
 * Failure   As the first server gives it, which names the shard. DP_IN_USE: it makes another one. That of pause. */
struct dp_checkpoint_watch {
    enum dp_status (*pause)(void *context, const struct dp_checkpoint_state *state, struct dp_error *err);
    void *context;
};
enum dp_status dp_client_checkpoint_make(struct dp_client *client, const struct dp_checkpoint_ask *asked,
                                         const struct dp_checkpoint_watch *watch,
                                         struct dp_checkpoint_made *out, struct dp_error *err);

/* All of the first server's register, as its file has it; version counts its changes. */
enum dp_status dp_client_register_copy(struct dp_client *client, uint32_t timeout_ms,
                                       struct dp_register_value *out, struct dp_error *err);

#endif

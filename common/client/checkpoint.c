#include "common/client/checkpoint.h"

#include "common/client/ask.h"

#include <stdlib.h>
#include <string.h>

static enum dp_status take_answer(struct dp_call *call, uint32_t server,
                                  const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                  struct dp_message **message, struct dp_error *err)
{
    (void)to_shard;
    struct dp_checkpoint_answer *answer = &call->checkpoints[server];
    uint32_t frames = dp_checkpoint_frames(reply->checkpoint.stage);
    DP_ASSERT(*message && (*message)->frames == frames + 1 && !answer->answered);
    for (uint32_t i = 0; i < frames; i++) {
        const struct dp_frame *frame = &(*message)->frame[i + 1];
        answer->frame[i] = malloc(frame->size + 1);
        if (!answer->frame[i])
            return dp_fail(err, DP_NOMEM, "no memory for an answer of %zu bytes", frame->size);
        if (frame->size > 0)
            memcpy(answer->frame[i], frame->data, frame->size);
        ((char *)answer->frame[i])[frame->size] = '\0';
        answer->bytes[i] = frame->size;
    }
    answer->state = reply->checkpoint;
    answer->answered = true;
    return DP_OK;
}

/* The pushes that a finish names are the request's: it may be sent again when the call is over. */
static void fill(struct dp_shard_request **draft, const struct dp_checkpoint_ask *ask)
{
    size_t bytes = (size_t)ask->missing * 16;
    (*draft)->request.checkpoint = *ask;
    (*draft)->request.checkpoint.pushes = NULL;
    void *to = ask->action == DP_CHECKPOINT_FINISH ? dp_client_draft_add(draft, bytes) : NULL;
    if (to && bytes > 0)
        memcpy(to, ask->pushes, bytes);
}

enum dp_status dp_client_checkpoint(struct dp_client *client, const struct dp_checkpoint_ask *asks,
                                    struct dp_checkpoint_answer *answers, uint32_t timeout_ms,
                                    struct dp_error *err)
{
    memset(answers, 0, client->shards * sizeof *answers);
    struct dp_call *call =
        dp_client_draft_all(client, DP_REQUEST_CHECKPOINT, DP_REPLY_CHECKPOINT, timeout_ms);
    for (uint32_t i = 0; i < client->shards && call; i++) {
        fill(&client->draft[i], &asks[i]);
        if (client->draft[i])
            continue;
        dp_client_drop_draft(client);
        dp_call_free(&call);
    }
    if (call) {
        call->take = take_answer;
        call->checkpoints = answers;
    }
    return dp_client_ask_all(client, &call, "the shards' part", timeout_ms, err);
}

void dp_client_checkpoint_clear(struct dp_checkpoint_answer *answers, uint32_t shards)
{
    for (uint32_t i = 0; i < shards; i++)
        for (uint32_t k = 0; k < 2; k++)
            free(answers[i].frame[k]);
    if (shards > 0)
        memset(answers, 0, shards * sizeof *answers);
}

enum dp_status dp_client_register_copy(struct dp_client *client, uint32_t timeout_ms,
                                       struct dp_register_value *out, struct dp_error *err)
{
    *out = (struct dp_register_value){0};
    if (!client->has_control)
        return dp_fail(err, DP_ARGUMENT, "register: this client was opened without a control endpoint");
    struct dp_call *call;
    struct dp_shard_request *draft =
        dp_client_draft_one(client, DP_REQUEST_REGISTER_COPY, DP_REPLY_REGISTER, NULL, timeout_ms);
    if (draft)
        draft->call->take = dp_call_keep;
    enum dp_status st =
        dp_client_ask(client, client->shards, &draft, "copy of the register", timeout_ms, &call, err);
    if (st != DP_OK)
        return st;
    st = dp_call_copy_value(call, out, err);
    dp_client_end(client, call);
    return st;
}

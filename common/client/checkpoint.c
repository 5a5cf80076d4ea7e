#include "common/client/checkpoint.h"

#include "common/base/bytes.h"
#include "common/base/deadline.h"
#include "common/client/ask.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define ASK_MS     10000u /* until the first server answers */
#define END_MS     2000u  /* until it answers that it gives up: somebody waits at a terminal */
#define ABANDON_MS 30000u
#define LOOK_MS    50u

static enum dp_status keep(struct dp_checkpoint_answer *answer, const struct dp_reply *reply,
                           const struct dp_message *message, struct dp_error *err)
{
    uint32_t frames = dp_checkpoint_frames(reply->checkpoint.stage);
    DP_ASSERT(message && message->frames == frames + 1 && !answer->answered);
    for (uint32_t i = 0; i < frames; i++) {
        const struct dp_frame *frame = &message->frame[i + 1];
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

static enum dp_status take_answer(struct dp_call *call, uint32_t server,
                                  const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                  struct dp_message **message, struct dp_error *err)
{
    (void)to_shard;
    return keep(&call->checkpoints[server], reply, *message, err);
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

static enum dp_status take_whole(struct dp_call *call, uint32_t server,
                                 const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                 struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)to_shard;
    return keep(call->checkpoints, reply, *message, err);
}

static enum dp_status ask_first(struct dp_client *client, const struct dp_checkpoint_ask *ask,
                                struct dp_checkpoint_answer *answer, struct dp_error *err)
{
    struct dp_call *call;
    const uint32_t timeout_ms = ask->action == DP_CHECKPOINT_ABANDON ? END_MS : ASK_MS;
    struct dp_shard_request *draft =
        dp_client_draft_one(client, DP_REQUEST_CHECKPOINT, DP_REPLY_CHECKPOINT, NULL, timeout_ms);
    dp_client_checkpoint_clear(answer, 1);
    if (draft) {
        draft->request.checkpoint = *ask;
        draft->call->take = take_whole;
        draft->call->checkpoints = answer;
    }
    enum dp_status st =
        dp_client_ask(client, client->shards, &draft, "request to the first server", timeout_ms, &call, err);
    if (st == DP_OK)
        dp_client_end(client, call);
    return st;
}

/* Whether it has ended, and how. */
static bool is_over(const struct dp_checkpoint_answer *answer, struct dp_checkpoint_made *out,
                    enum dp_status *st, struct dp_error *err)
{
    const struct dp_checkpoint_state *state = &answer->state;
    if (state->stage == DP_CHECKPOINT_ABANDONED)
        *st = dp_fail(err, dp_status_from_number((int)state->why_status), "%s", state->why);
    else if (state->stage == DP_CHECKPOINT_NONE)
        *st = dp_fail(
            err, DP_UNAVAILABLE,
            "the first server was started again, and does not know the checkpoint any more; try again");
    else if (state->stage == DP_CHECKPOINT_COPIED && answer->bytes[0] != sizeof *out)
        *st = dp_fail(err, DP_INVALID, "the first server describes the checkpoint in %zu bytes, expected %zu",
                      answer->bytes[0], sizeof *out);
    for (size_t i = 0; *st == DP_OK && state->stage == DP_CHECKPOINT_COPIED && i < sizeof *out / 8; i++)
        ((uint64_t *)out)[i] = dp_load_u64le((const char *)answer->frame[0] + 8 * i);
    return *st != DP_OK || state->stage == DP_CHECKPOINT_COPIED;
}

enum dp_status dp_client_checkpoint_make(struct dp_client *client, const struct dp_checkpoint_ask *asked,
                                         const struct dp_checkpoint_watch *watch,
                                         struct dp_checkpoint_made *out, struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    struct dp_checkpoint_ask ask = *asked;
    struct dp_checkpoint_answer answer = {0};
    struct dp_error ends = {0};
    uint64_t end_ms = UINT64_MAX;
    bool (*const gives_up)(void *context) = client->gives_up;
    enum dp_status st;
    if (!client->has_control)
        return dp_fail(err, DP_ARGUMENT, "checkpoint: this client was opened without a control endpoint");
    ask.action = DP_CHECKPOINT_BEGIN;
    if (getrandom(&ask.order, sizeof ask.order, 0) != (ssize_t)sizeof ask.order)
        return dp_fail(err, DP_IO, "checkpoint: getrandom failed");
    ask.order |= 1; /* not 0 */
    for (;;) {
        st = ask_first(client, &ask, &answer, err);
        bool cut_short = st != DP_OK && client->gives_up && client->gives_up(client->gives_up_context);
        if (!cut_short && (st != DP_OK || is_over(&answer, out, &st, err) || dp_now_ms() >= end_ms))
            break;
        if (ends.status != DP_OK)
            (void)nanosleep(&pause, NULL);
        else if (watch->pause(watch->context, &answer.state, &ends) != DP_OK)
            end_ms = dp_now_ms() + ABANDON_MS;
        else if (cut_short)
            break;
        client->gives_up = ends.status == DP_OK ? gives_up : NULL; /* ABANDON is waited for */
        ask.action = ends.status == DP_OK ? DP_CHECKPOINT_LOOK : DP_CHECKPOINT_ABANDON;
    }
    if (ends.status != DP_OK && (st != DP_OK || answer.state.stage != DP_CHECKPOINT_COPIED)) {
        *err = ends;
        st = ends.status;
    }
    client->gives_up = gives_up;
    dp_client_checkpoint_clear(&answer, 1);
    return st;
}

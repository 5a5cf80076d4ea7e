/* Ask all: one request outside of a session's order to every shard, and the wait for all answers.
 *     draft -> (the caller fills client->draft) -> ask
 * Memory    The call is the caller's between the two; ask ends it. */
#ifndef DP_CLIENT_ASK_ALL_H
#define DP_CLIENT_ASK_ALL_H

#include "common/client/client_inner.h"

/* A loose shard request for each shard in client->draft, and a call for them. NULL: out of memory. */
struct dp_call *dp_client_draft_all(struct dp_client *client, enum dp_request_kind kind,
                                    enum dp_reply_kind answer, uint32_t timeout_ms);
/* Issues the draft and waits; a shard whose shard request was freed is not asked. Takes the call over: NULL fails with
 * DP_NOMEM. */
DP_MUST_USE
enum dp_status dp_client_ask_all(struct dp_client *client, struct dp_call **call, const char *what,
                                 uint32_t timeout_ms, struct dp_error *err);

#endif

/* Ask: one request outside of a session's order, to one server, and the wait for the answer.
 *     draft_one -> (filled, with frames) -> ask | post
 * Memory    A draft is the caller's until it is asked or posted. NULL is one that failed for lack of memory:
 *           adding to it has no effect, and asking it fails with DP_NOMEM.
 * Thread    The client's.
 * Failure   As its wait (dp_client_await). */
#ifndef DP_CLIENT_ASK_H
#define DP_CLIENT_ASK_H

#include "common/client/client_inner.h"

/* A loose request with a call of its own, draft->call. name: of the request; NULL: it has none. */
struct dp_shard_request *dp_client_draft_one(struct dp_client *client, enum dp_request_kind kind,
                                             enum dp_reply_kind answer, const char *name,
                                             uint32_t timeout_ms);
/* Adds a frame and returns its bytes, to be filled. NULL: out of memory; the draft is dropped. */
void *dp_client_draft_add(struct dp_shard_request **draft, size_t size);
/* server: of a shard, or client->shards: control. post: without a wait; the caller ends the call. */
struct dp_call *dp_client_post(struct dp_client *client, uint32_t server, struct dp_shard_request **draft);
/* Waits, and gives the call: read what it kept, then dp_client_end. */
enum dp_status dp_client_ask(struct dp_client *client, uint32_t server, struct dp_shard_request **draft,
                             const char *what, uint32_t timeout_ms, struct dp_call **out,
                             struct dp_error *err);

/* A call's `take` that leaves reply and message to the call. */
enum dp_status dp_call_keep(struct dp_call *call, uint32_t server, const struct dp_shard_request *to_shard,
                            struct dp_reply *reply, struct dp_message **message, struct dp_error *err);
/* The register value that it kept, for the caller. */
enum dp_status dp_call_copy_value(const struct dp_call *call, struct dp_register_value *out,
                                  struct dp_error *err);

#endif

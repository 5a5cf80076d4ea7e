/* Member: this client's place in a run, as its pulls and pushes carry it. */
#ifndef DP_CLIENT_MEMBER_H
#define DP_CLIENT_MEMBER_H

#include "common/client/client_inner.h"

/* DP_ARGUMENT unless this client has joined a run; DP_REPLACED once another process took its place. */
enum dp_status dp_client_member_check(const struct dp_client *client, const char *what, struct dp_error *err);
/* Before a push in a step: in sync until every shard has answered the one before, so that no shard is more than a step ahead of
 * another. A shard keeps the weights from before its last step alone: a member that comes back goes on at the least step that all
 * shards have, and must find them. DP_REPLACED, as above: a shard said so of that push. */
enum dp_status dp_client_member_await_step(struct dp_client *client, uint32_t timeout_ms,
                                           struct dp_error *err);
/* Puts the place and the step into each request of the draft. */
void dp_client_member_sign(struct dp_client *client, struct dp_call *call, uint64_t step, uint64_t examples);

#endif

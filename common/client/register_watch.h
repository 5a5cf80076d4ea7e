/* Register watch: a question for a newer version of a register's value, which waits at the first server.
 *     ask -> (dp_client_progress) -> answered -> end
 * Promise   It never waits here. One question at a time.
 * Thread    The client's. */
#ifndef DP_CLIENT_REGISTER_WATCH_H
#define DP_CLIENT_REGISTER_WATCH_H

#include <stdint.h>

struct dp_call;
struct dp_client;
struct dp_register_watch;

/* Answered when the version is above `above`, or after wait_ms. Without memory nothing is asked. */
void dp_register_watch_ask(struct dp_client *client, struct dp_register_watch *watch, const char *name,
                           uint64_t above, uint32_t wait_ms);
/* The call, once it is done: its error, or in `kept` and `message` the value; NULL: not yet. */
const struct dp_call *dp_register_watch_answered(const struct dp_register_watch *watch);
void dp_register_watch_end(struct dp_client *client, struct dp_register_watch *watch);

#endif

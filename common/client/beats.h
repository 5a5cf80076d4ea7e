/* Beats: a member tells the first server that it lives, and hears for how long the others have not.
 *     (now and then: a beat) | silences: a beat whose answer is waited for
 * Promise   Each beat is a request of its own: one that is not answered is given up for the next, and never sent again after a pause that
 *           grew with the silence of the server; so a server that comes back hears all members soon.
 * Thread    The client's. */
#ifndef DP_CLIENT_BEATS_H
#define DP_CLIENT_BEATS_H

#include "common/client/downpour.h"

/* Before a place is taken, so that its silence counts from then: waits until the first server has heard of it. Nothing to do without
 * beats. */
DP_MUST_USE
enum dp_status dp_client_beats_begin(struct dp_client *client, uint32_t timeout_ms, struct dp_error *err);

#endif

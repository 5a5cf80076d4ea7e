/* Parts: a message to and from the parts of a ZeroMQ multipart message, without copying. Of this room only.
 */
#ifndef DP_NET_PARTS_H
#define DP_NET_PARTS_H

#include "common/net/send_quota.h"
#include "common/wire/limits.h"
#include "common/wire/message.h"

/* What was taken from a socket. */
struct dp_parts_taken {
    uint64_t wire_bytes; /* as they were on the wire */
    int fd;              /* of the connection; starts out as -1: unknown */
};

/* All that is left of the message at the head of the socket's queue. DP_AGAIN: nothing waits. DP_INVALID,
 * DP_NOMEM: the message broke a limit, or had no room; it is lost. *taken grows by what was taken. */
enum dp_status dp_parts_receive(void *socket, struct dp_message **out, struct dp_parts_taken *taken);
/* Throws away what is left of a message of which a part with more behind it was taken. */
void dp_parts_drain(void *socket, struct dp_parts_taken *taken);
/* The message's bytes that count against a quota: of frames that are not copied into ZeroMQ's own small blocks. */
size_t dp_parts_counted(const struct dp_message *message);
/* Takes the message over. `to`: the first part, for a ROUTER, or NULL. quota: is charged with the counted bytes until
 * ZeroMQ lets go of them; NULL: not counted. DP_UNAVAILABLE: dropped. */
enum dp_status dp_parts_send(void *socket, const struct dp_peer *to, struct dp_send_quota *quota,
                             struct dp_message **message);

#endif

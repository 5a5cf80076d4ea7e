/* Request: the question of a client, as a plain struct, and its frames. The only form that rooms above wire
 * see. Decoding checks all that can be checked without tables: version, limits, frame count and sizes, key
 * order. A decoded request lends from its message: keys and values stay where the socket put them.
 * Failure   DP_VERSION, DP_INVALID with the field and the expected value. If the header could be read, the
 *           request's id, session and sequence are set even then, so the refusal can be sent. */
#ifndef DP_WIRE_REQUEST_H
#define DP_WIRE_REQUEST_H

#include "common/model/table.h"
#include "common/wire/checkpoint.h"
#include "common/wire/lease.h"
#include "common/wire/limits.h"
#include "common/wire/message.h"
#include "common/wire/view.h"

#include <stdbool.h>

enum dp_value_type { DP_F32 = 0, DP_BF16 = 1 };

static inline size_t dp_value_bytes(enum dp_value_type type)
{
    return type == DP_BF16 ? 2 : 4;
}

enum dp_request_kind {
    DP_REQUEST_NONE,
    DP_REQUEST_HELLO,
    DP_REQUEST_CREATE_TABLE,
    DP_REQUEST_PULL,
    DP_REQUEST_PUSH,
    DP_REQUEST_STATUS,
    DP_REQUEST_NOTE_PUT,
    DP_REQUEST_NOTES_GET,
    DP_REQUEST_POSITIONS_GET,
    DP_REQUEST_REGISTER_GET,
    DP_REQUEST_REGISTER_SET,
    DP_REQUEST_VIEW_PUT,
    DP_REQUEST_HEARTBEAT,
    DP_REQUEST_LEASE,
    DP_REQUEST_CHECKPOINT,
    DP_REQUEST_REGISTER_COPY,
    DP_REQUEST_CLOSE, /* a shard's own, never on the wire: the end of a synchronous step */
};

struct dp_section {
    uint32_t table;
    uint32_t rows;
    enum dp_value_type type;
    const void *keys;   /* u64[rows] little endian, any alignment, mixed, strictly ascending */
    const void *values; /* push: [rows][dim] of type, any alignment; else NULL */
    size_t value_bytes; /* of values; a multiple of rows * dp_value_bytes(type) when rows > 0 */
};

/* Of a pull or push on behalf of a member of a run. */
struct dp_membership {
    bool given; /* false: for no member, the rest is 0 */
    uint32_t run, rank;
    uint64_t view; /* number of the view that it knows */
    uint64_t incarnation, step;
    uint64_t examples; /* push */
};

/* A member of a run lives, and asks which others do. */
struct dp_heartbeat {
    uint32_t run, rank, members; /* from 1; below members; 1 .. DP_MEMBERS_MAX */
};

struct dp_request {
    enum dp_request_kind kind;
    uint64_t id, cluster, session, sequence;
    uint64_t generation, history; /* of the servers' stores; 0, 0: not known yet */
    uint32_t timeout_ms;          /* 1 .. DP_TIMEOUT_MS_MAX */
    uint32_t shard; /* that it is meant for, from 1; 0: not said, its address cannot be another's */

    char client[DP_CLIENT_NAME_MAX + 1]; /* hello */
    bool want_stream;
    uint64_t next_sequence, stream_above;

    struct dp_table_spec spec; /* create_table; dp_table_check has passed */

    uint64_t stream, number, pulled_at; /* push; positions_get: stream, and the first number */
    uint32_t numbers;                   /* positions_get: 1 .. DP_POSITIONS_MAX */
    float rate;                         /* push: finite, >= FLT_MIN */
    bool measured;
    uint64_t pulled_lsn;         /* push: measured */
    bool by_staleness;           /* push: measured; its rate is divided by the staleness */
    uint64_t examples;           /* push: those of its gradients, to be counted */
    struct dp_membership member; /* pull, push */
    uint32_t sections;           /* pull, push */
    struct dp_section section[DP_SECTIONS_MAX];

    uint32_t run, epoch; /* lease: run from 1, epoch from 0 */

    /* note_put, register_get, register_set: the name; notes_get: the prefix */
    char name[DP_NOTE_NAME_MAX + 1];
    char after[DP_NOTE_NAME_MAX + 1]; /* notes_get */
    const void *note;                 /* note_put, register_set, view_put: lent */
    size_t note_bytes;

    bool returns;  /* view_put: the member asks whether it takes part from its first step on */
    uint32_t rank; /* view_put, with returns */

    uint64_t version; /* register_get: above it; register_set: the one expected */
    uint32_t wait_ms; /* register_get: DP_TIMEOUT_MS_MAX at most */
    uint64_t nonce;   /* register_set: not 0 */
    uint32_t
        server_shard; /* register_set from a server: the shard whose store it registers, from 1; 0: from a client */

    struct dp_heartbeat heartbeat;
    struct dp_lease_ask lease; /* its pointers are lent */
    struct dp_checkpoint_ask checkpoint;
};

/* message: what came from the socket, without the peer's identity. */
enum dp_status dp_request_decode(const struct dp_message *message, struct dp_request *out,
                                 struct dp_error *err);
/* Makes a message: the header frame, then the frames given (each section's keys, and values for a push; the
 * note's or value's bytes), which it takes over, also on failure. The lent pointers inside request->section are not read. */
enum dp_status dp_request_encode(const struct dp_request *request, struct dp_frame *frames,
                                 uint32_t frame_count, struct dp_message **out, struct dp_error *err);

#endif

/* Shard request: one request to one server, kept until it is answered, so that it can be sent again.
 * Memory    It holds the blocks that its frames point into; each sending makes a new message over them.  */
#ifndef DP_CLIENT_SHARD_REQUEST_H
#define DP_CLIENT_SHARD_REQUEST_H

#include "common/client/block.h"
#include "common/wire/reply.h"

struct dp_call;

struct dp_slice { /* which rows of the call's parts a section holds */
    uint32_t part;
    size_t from;
};

struct dp_piece {
    struct dp_block *block;
    size_t offset, size;
};

struct dp_shard_request {
    struct dp_shard_request *next;
    struct dp_call *call; /* NULL: no call waits for the answer any more */
    enum dp_reply_kind answer;
    bool loose;             /* outside the session's order */
    bool held;              /* the shard has said that it holds it: its number is used up */
    uint64_t held_ns;       /* when it said so last */
    uint64_t sent_ns;       /* last time; 0: never */
    uint64_t due_ns;        /* loose: when to send (again) */
    uint64_t wait_until_ns; /* register_get: until when the server may keep it; 0: it is none */
    uint64_t overtaken_ns;  /* when an answer came to what was sent after it; 0: none did since it was sent */
    uint64_t bytes;         /* of the request's frames and its answer's */
    uint64_t answer_bytes;  /* of a pull: its answer's alone */
    uint32_t sends;
    struct dp_request request; /* its lent pointers are not used */
    struct dp_slice slice[DP_SECTIONS_MAX];
    uint32_t pieces;
    struct dp_piece piece[2 * DP_SECTIONS_MAX];
};

/* Zero but for kind and answer; NULL: out of memory. */
struct dp_shard_request *dp_shard_request_new(enum dp_request_kind kind, enum dp_reply_kind answer);
void dp_shard_request_free(struct dp_shard_request **to_shard); /* accepts NULL inside, leaves NULL */
/* The next frame: a part of the block, which it then holds, too. */
void dp_shard_request_add(struct dp_shard_request *to_shard, struct dp_block *block, size_t offset,
                          size_t size);
enum dp_status dp_shard_request_message(const struct dp_shard_request *to_shard, struct dp_message **out,
                                        struct dp_error *err);

#endif

#include "common/client/shard_request.h"

#include <stdlib.h>

struct dp_shard_request *dp_shard_request_new(enum dp_request_kind kind, enum dp_reply_kind answer)
{
    struct dp_shard_request *to_shard = calloc(1, sizeof *to_shard);
    if (!to_shard)
        return NULL;
    to_shard->request.kind = kind;
    to_shard->answer = answer;
    return to_shard;
}

void dp_shard_request_free(struct dp_shard_request **to_shard)
{
    struct dp_shard_request *p = *to_shard;
    *to_shard = NULL;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->pieces; i++)
        dp_block_drop(&p->piece[i].block);
    free(p);
}

void dp_shard_request_add(struct dp_shard_request *to_shard, struct dp_block *block, size_t offset,
                          size_t size)
{
    DP_ASSERT(to_shard->pieces < 2 * DP_SECTIONS_MAX);
    to_shard->piece[to_shard->pieces++] =
        (struct dp_piece){.block = dp_block_keep(block), .offset = offset, .size = size};
    to_shard->bytes += size;
}

enum dp_status dp_shard_request_message(const struct dp_shard_request *to_shard, struct dp_message **out,
                                        struct dp_error *err)
{
    struct dp_frame frame[2 * DP_SECTIONS_MAX];
    for (uint32_t i = 0; i < to_shard->pieces; i++)
        frame[i] =
            dp_block_frame(to_shard->piece[i].block, to_shard->piece[i].offset, to_shard->piece[i].size);
    return dp_request_encode(&to_shard->request, frame, to_shard->pieces, out, err);
}

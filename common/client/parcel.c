#include "common/client/parcel.h"

#include <stdlib.h>

struct dp_parcel *dp_parcel_new(enum dp_request_kind kind, enum dp_reply_kind answer)
{
    struct dp_parcel *parcel = calloc(1, sizeof *parcel);
    if (!parcel)
        return NULL;
    parcel->request.kind = kind;
    parcel->answer = answer;
    return parcel;
}

void dp_parcel_free(struct dp_parcel **parcel)
{
    struct dp_parcel *p = *parcel;
    *parcel = NULL;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->pieces; i++)
        dp_block_drop(&p->piece[i].block);
    free(p);
}

void dp_parcel_add(struct dp_parcel *parcel, struct dp_block *block, size_t offset, size_t size)
{
    DP_ASSERT(parcel->pieces < 2 * DP_SECTIONS_MAX);
    parcel->piece[parcel->pieces++] =
        (struct dp_piece){.block = dp_block_keep(block), .offset = offset, .size = size};
    parcel->bytes += size;
}

enum dp_status dp_parcel_message(const struct dp_parcel *parcel, struct dp_message **out,
                                 struct dp_error *err)
{
    struct dp_frame frame[2 * DP_SECTIONS_MAX];
    for (uint32_t i = 0; i < parcel->pieces; i++)
        frame[i] = dp_block_frame(parcel->piece[i].block, parcel->piece[i].offset, parcel->piece[i].size);
    return dp_request_encode(&parcel->request, frame, parcel->pieces, out, err);
}

#include "server/durable/pending.h"

#include <stdlib.h>

static enum dp_status grow(struct dp_pending *pending)
{
    uint32_t capacity = pending->capacity ? pending->capacity * 2 : 256;
    struct dp_pending_reply *more = malloc(capacity * sizeof more[0]);
    if (!more)
        return DP_NOMEM;
    for (uint32_t i = 0; i < pending->count; i++)
        more[i] = pending->reply[(pending->first + i) % pending->capacity];
    free(pending->reply);
    *pending = (struct dp_pending){.reply = more, .count = pending->count, .capacity = capacity};
    return DP_OK;
}

enum dp_status dp_pending_add(struct dp_pending *pending, const struct dp_pending_reply *reply)
{
    if (pending->count == pending->capacity && grow(pending) != DP_OK)
        return DP_NOMEM;
    DP_ASSERT(pending->count == 0 ||
              pending->reply[(pending->first + pending->count - 1) % pending->capacity].lsn <= reply->lsn);
    pending->reply[(pending->first + pending->count++) % pending->capacity] = *reply;
    return DP_OK;
}

bool dp_pending_take(struct dp_pending *pending, uint64_t durable, struct dp_pending_reply *out)
{
    if (pending->count == 0 || pending->reply[pending->first].lsn > durable)
        return false;
    DP_ASSERT(pending->count <= pending->capacity);
    *out = pending->reply[pending->first];
    pending->first = (pending->first + 1) % pending->capacity;
    pending->count--;
    DP_ASSERT(pending->count == 0 || pending->reply[pending->first].lsn >= out->lsn);
    return true;
}

void dp_pending_clear(struct dp_pending *pending)
{
    for (uint32_t i = 0; i < pending->count; i++)
        free(pending->reply[(pending->first + i) % pending->capacity].refused);
    free(pending->reply);
    *pending = (struct dp_pending){0};
}

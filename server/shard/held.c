#include "server/shard/held.h"

#include <stdlib.h>

static enum dp_status grow(struct dp_held *held)
{
    uint32_t room = held->room ? held->room * 2 : 256;
    struct dp_held_answer *more = malloc(room * sizeof more[0]);
    if (!more)
        return DP_NOMEM;
    for (uint32_t i = 0; i < held->count; i++)
        more[i] = held->answer[(held->first + i) % held->room];
    free(held->answer);
    *held = (struct dp_held){.answer = more, .count = held->count, .room = room};
    return DP_OK;
}

enum dp_status dp_held_add(struct dp_held *held, const struct dp_held_answer *answer)
{
    if (held->count == held->room && grow(held) != DP_OK)
        return DP_NOMEM;
    held->answer[(held->first + held->count++) % held->room] = *answer;
    return DP_OK;
}

bool dp_held_take(struct dp_held *held, uint64_t durable, struct dp_held_answer *out)
{
    if (held->count == 0 || held->answer[held->first].lsn > durable)
        return false;
    *out = held->answer[held->first];
    held->first = (held->first + 1) % held->room;
    held->count--;
    return true;
}

void dp_held_clear(struct dp_held *held)
{
    for (uint32_t i = 0; i < held->count; i++)
        free(held->answer[(held->first + i) % held->room].refused);
    free(held->answer);
    *held = (struct dp_held){0};
}

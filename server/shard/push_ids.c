#include "server/shard/push_ids.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (DP_PUSH_WINDOW / 64)

struct stream {
    uint64_t id, low;
    uint64_t bits[WORDS]; /* number n above low: bit n % DP_PUSH_WINDOW */
};

struct dp_push_ids {
    uint32_t count;
    struct stream *stream[DP_STREAMS_MAX]; /* ascending by id */
    uint64_t forgotten[2];                 /* greatest forgotten id of each kind: handshake, training */
};

static uint32_t kind_of(uint64_t stream)
{
    return stream & DP_STREAM_TRAINING ? 1 : 0;
}

enum dp_status dp_push_ids_new(struct dp_push_ids **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? DP_OK : DP_NOMEM;
}

void dp_push_ids_free(struct dp_push_ids **ids)
{
    if (!*ids)
        return;
    for (uint32_t i = 0; i < (*ids)->count; i++)
        free((*ids)->stream[i]);
    free(*ids);
    *ids = NULL;
}

/* Place of the stream, or where it would stand. */
static uint32_t place_of(const struct dp_push_ids *ids, uint64_t stream)
{
    uint32_t low = 0, high = ids->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (ids->stream[middle]->id < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_at(struct dp_push_ids *ids, uint32_t at)
{
    free(ids->stream[at]);
    ids->count--;
    memmove(&ids->stream[at], &ids->stream[at + 1], (ids->count - at) * sizeof ids->stream[0]);
}

/* Forgets the oldest stream of the kind that holds more of them. false: that is `fresh` itself, which then
 * has no place: every id up to the greatest forgotten one stays refused, for ever. */
static bool forget_one(struct dp_push_ids *ids, uint64_t fresh)
{
    uint32_t training = place_of(ids, DP_STREAM_TRAINING);
    uint32_t at = training > ids->count - training ? 0 : training;
    uint64_t id = ids->stream[at]->id;
    if (kind_of(fresh) == kind_of(id) && fresh < id)
        return false;
    ids->forgotten[kind_of(id)] = id;
    remove_at(ids, at);
    return true;
}

enum dp_push_seen dp_push_ids_look(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    uint32_t at = place_of(ids, stream);
    if (at == ids->count || ids->stream[at]->id != stream) {
        if (stream <= ids->forgotten[kind_of(stream)])
            return DP_PUSH_TOO_OLD;
        struct stream *fresh = calloc(1, sizeof *fresh);
        if (!fresh)
            return DP_PUSH_NOMEM;
        fresh->id = stream;
        if (ids->count == DP_STREAMS_MAX && !forget_one(ids, stream)) {
            free(fresh);
            return DP_PUSH_TOO_OLD;
        }
        at = place_of(ids, stream);
        memmove(&ids->stream[at + 1], &ids->stream[at], (ids->count - at) * sizeof ids->stream[0]);
        ids->stream[at] = fresh;
        ids->count++;
    }
    const struct stream *s = ids->stream[at];
    if (number < s->low)
        return DP_PUSH_REPEATED;
    if (number - s->low >= DP_PUSH_WINDOW)
        return DP_PUSH_ABOVE;
    uint64_t bit = number % DP_PUSH_WINDOW;
    return s->bits[bit / 64] >> bit % 64 & 1 ? DP_PUSH_REPEATED : DP_PUSH_NEW;
}

void dp_push_ids_add(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    uint32_t at = place_of(ids, stream);
    DP_ASSERT(at < ids->count && ids->stream[at]->id == stream);
    struct stream *s = ids->stream[at];
    DP_ASSERT(number >= s->low && number - s->low < DP_PUSH_WINDOW);
    uint64_t bit = number % DP_PUSH_WINDOW;
    s->bits[bit / 64] |= (uint64_t)1 << bit % 64;
    for (bit = s->low % DP_PUSH_WINDOW; s->bits[bit / 64] >> bit % 64 & 1; bit = s->low % DP_PUSH_WINDOW) {
        s->bits[bit / 64] &= ~((uint64_t)1 << bit % 64);
        s->low++;
    }
}

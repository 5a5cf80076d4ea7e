#include "server/shard/push_ids.h"

#include "common/base/bytes.h"

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

enum dp_status dp_push_ids_restore(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    enum dp_push_seen seen = dp_push_ids_look(ids, stream, number);
    if (seen == DP_PUSH_NEW)
        dp_push_ids_add(ids, stream, number);
    return seen == DP_PUSH_NOMEM ? DP_NOMEM : DP_OK;
}

/* ---- packed */

#define PACK_FORMAT 1u
#define PACK_HEAD   24u
#define PACK_STREAM 20u

static bool is_applied(const struct stream *s, uint64_t number)
{
    uint64_t bit = number % DP_PUSH_WINDOW;
    return s->bits[bit / 64] >> bit % 64 & 1;
}

/* Word w of the window, counted from low. */
static uint64_t word_above_low(const struct stream *s, uint32_t w)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < 64; i++)
        word |= (uint64_t)is_applied(s, s->low + (uint64_t)w * 64 + i) << i;
    return word;
}

void *dp_push_ids_pack(const struct dp_push_ids *ids, size_t *size)
{
    char *bytes = malloc(PACK_HEAD + ids->count * (PACK_STREAM + sizeof ids->stream[0]->bits));
    if (!bytes)
        return NULL;
    dp_store_u32le(bytes, PACK_FORMAT);
    dp_store_u32le(bytes + 4, ids->count);
    dp_store_u64le(bytes + 8, ids->forgotten[0]);
    dp_store_u64le(bytes + 16, ids->forgotten[1]);
    char *at = bytes + PACK_HEAD;
    for (uint32_t i = 0; i < ids->count; i++) {
        const struct stream *s = ids->stream[i];
        uint32_t words = 0;
        dp_store_u64le(at, s->id);
        dp_store_u64le(at + 8, s->low);
        for (uint32_t w = 0; w < WORDS; w++) {
            uint64_t word = word_above_low(s, w);
            dp_store_u64le(at + PACK_STREAM + (size_t)w * 8, word);
            words = word ? w + 1 : words; /* the empty rest is left out */
        }
        dp_store_u32le(at + 16, words);
        at += PACK_STREAM + (size_t)words * 8;
    }
    *size = (size_t)(at - bytes);
    return bytes;
}

static enum dp_status unpack_stream(struct dp_push_ids *ids, const char **at, size_t *left,
                                    struct dp_error *err)
{
    uint32_t words = *left >= PACK_STREAM ? dp_load_u32le(*at + 16) : WORDS + 1;
    if (words > WORDS || *left - PACK_STREAM < (size_t)words * 8)
        return dp_fail(err, DP_CORRUPT, "push ids: stream %u is cut off", ids->count);
    uint64_t id = dp_load_u64le(*at);
    if (ids->count > 0 && id <= ids->stream[ids->count - 1]->id)
        return dp_fail(err, DP_CORRUPT, "push ids: streams are not in order");
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return dp_fail(err, DP_NOMEM, "push ids");
    s->id = id;
    s->low = dp_load_u64le(*at + 8);
    for (uint32_t i = 0; i < words * 64; i++)
        if (dp_load_u64le(*at + PACK_STREAM + (size_t)(i / 64) * 8) >> i % 64 & 1) {
            uint64_t bit = (s->low + i) % DP_PUSH_WINDOW;
            s->bits[bit / 64] |= (uint64_t)1 << bit % 64;
        }
    ids->stream[ids->count++] = s;
    *at += PACK_STREAM + (size_t)words * 8;
    *left -= PACK_STREAM + (size_t)words * 8;
    return DP_OK;
}

enum dp_status dp_push_ids_unpack(struct dp_push_ids *ids, const void *bytes, size_t size,
                                  struct dp_error *err)
{
    DP_ASSERT(ids->count == 0);
    const char *at = bytes;
    if (size < PACK_HEAD || dp_load_u32le(at) != PACK_FORMAT || dp_load_u32le(at + 4) > DP_STREAMS_MAX)
        return dp_fail(err, DP_CORRUPT, "push ids: %zu bytes that are not format %u", size, PACK_FORMAT);
    uint32_t count = dp_load_u32le(at + 4);
    ids->forgotten[0] = dp_load_u64le(at + 8);
    ids->forgotten[1] = dp_load_u64le(at + 16);
    at += PACK_HEAD;
    size -= PACK_HEAD;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < count && st == DP_OK; i++)
        st = unpack_stream(ids, &at, &size, err);
    if (st == DP_OK && size != 0)
        st = dp_fail(err, DP_CORRUPT, "push ids: %zu bytes too many", size);
    return st;
}

#include "server/shard/push_ids.h"

#include "common/base/bytes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NARROW_WORDS (DP_PUSH_NARROW / 64)
#define WIDE_WORDS   (DP_PUSH_WINDOW / 64)

struct stream {
    uint64_t id, low;
    uint64_t *bits; /* [words], number n above low: bit n % (64 * words); NULL: none above low */
    uint32_t words; /* NARROW_WORDS or WIDE_WORDS; 0: no bits */
    uint32_t set;   /* bits that are 1 */
};

struct refused {
    uint64_t stream, number;
    enum dp_status status;
};

struct dp_push_ids {
    uint32_t count, wide;                  /* streams; those with WIDE_WORDS */
    struct stream *stream[DP_STREAMS_MAX]; /* ascending by id */
    uint64_t forgotten[2];                 /* greatest forgotten id of each kind: handshake, training */
    uint32_t refusals;                     /* ever; the last DP_REFUSED_MAX of them are kept */
    struct refused refused[DP_REFUSED_MAX];
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

static void stream_free(struct stream *stream)
{
    free(stream->bits);
    free(stream);
}

void dp_push_ids_free(struct dp_push_ids **ids)
{
    if (!*ids)
        return;
    for (uint32_t i = 0; i < (*ids)->count; i++)
        stream_free((*ids)->stream[i]);
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

static struct stream *find(const struct dp_push_ids *ids, uint64_t stream)
{
    uint32_t at = place_of(ids, stream);
    return at < ids->count && ids->stream[at]->id == stream ? ids->stream[at] : NULL;
}

/* number: low or above. */
static bool is_set(const struct stream *s, uint64_t number)
{
    uint64_t numbers = (uint64_t)s->words * 64;
    return number - s->low < numbers && (s->bits[number % numbers / 64] >> number % 64 & 1);
}

/* ---- looking */

static enum dp_push_seen used_up(const struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                 enum dp_status *status)
{
    uint32_t kept = ids->refusals < DP_REFUSED_MAX ? ids->refusals : DP_REFUSED_MAX;
    for (uint32_t i = 0; i < kept; i++)
        if (ids->refused[i].stream == stream && ids->refused[i].number == number) {
            *status = ids->refused[i].status;
            return DP_PUSH_REFUSED;
        }
    return DP_PUSH_REPEATED;
}

enum dp_push_seen dp_push_ids_look(const struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status *status)
{
    const struct stream *s = find(ids, stream);
    if (!s && stream <= ids->forgotten[kind_of(stream)])
        return DP_PUSH_TOO_OLD;
    uint64_t low = s ? s->low : 0;
    if (number < low)
        return used_up(ids, stream, number, status);
    if (number - low >= DP_PUSH_WINDOW)
        return DP_PUSH_ABOVE;
    return s && is_set(s, number) ? used_up(ids, stream, number, status) : DP_PUSH_NEW;
}

/* ---- adding */

static void drop_bits(struct dp_push_ids *ids, struct stream *s)
{
    ids->wide -= s->words == WIDE_WORDS;
    free(s->bits);
    s->bits = NULL;
    s->words = 0;
}

static void remove_at(struct dp_push_ids *ids, uint32_t at)
{
    drop_bits(ids, ids->stream[at]);
    stream_free(ids->stream[at]);
    ids->count--;
    memmove(&ids->stream[at], &ids->stream[at + 1], (ids->count - at) * sizeof ids->stream[0]);
}

/* Forgets the oldest stream of the kind that holds more of them. false: that is `fresh` itself, which then has no place:
 * every id up to the greatest forgotten one stays refused, for ever. */
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

static enum dp_status make_stream(struct dp_push_ids *ids, uint64_t stream, struct stream **out)
{
    struct stream *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return DP_NOMEM;
    fresh->id = stream;
    if (ids->count == DP_STREAMS_MAX && !forget_one(ids, stream)) {
        free(fresh);
        return DP_TOO_OLD;
    }
    uint32_t at = place_of(ids, stream);
    memmove(&ids->stream[at + 1], &ids->stream[at], (ids->count - at) * sizeof ids->stream[0]);
    ids->stream[at] = *out = fresh;
    ids->count++;
    return DP_OK;
}

static void set(struct stream *s, uint64_t number)
{
    s->bits[number / 64 % s->words] |= (uint64_t)1 << number % 64;
    s->set++;
}

/* Bits for the numbers up to this one. */
static enum dp_status widen(struct dp_push_ids *ids, struct stream *s, uint64_t number)
{
    struct stream wider = {
        .id = s->id, .low = s->low, .words = number - s->low < DP_PUSH_NARROW ? NARROW_WORDS : WIDE_WORDS};
    if (wider.words <= s->words)
        return DP_OK;
    wider.bits = calloc(wider.words, sizeof wider.bits[0]);
    if (!wider.bits)
        return DP_NOMEM;
    for (uint64_t n = s->low; wider.set < s->set; n++)
        if (is_set(s, n))
            set(&wider, n);
    free(s->bits);
    *s = wider;
    ids->wide += s->words == WIDE_WORDS;
    return DP_OK;
}

static enum dp_status reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number, uint32_t wide_max)
{
    struct stream *s = find(ids, stream);
    enum dp_status st = s ? DP_OK : make_stream(ids, stream, &s);
    if (st != DP_OK || number == s->low)
        return st;
    if (number - s->low >= DP_PUSH_NARROW && s->words != WIDE_WORDS && ids->wide >= wide_max)
        return DP_AGAIN;
    return widen(ids, s, number);
}

enum dp_status dp_push_ids_reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    return reserve(ids, stream, number, DP_PUSH_WIDE_MAX);
}

void dp_push_ids_add(struct dp_push_ids *ids, uint64_t stream, uint64_t number, enum dp_status status)
{
    struct stream *s = find(ids, stream);
    DP_ASSERT(s && number >= s->low && number - s->low < DP_PUSH_WINDOW && !is_set(s, number));
    if (number != s->low)
        set(s, number);
    else
        for (s->low++; is_set(s, s->low); s->low++, s->set--)
            s->bits[s->low / 64 % s->words] &= ~((uint64_t)1 << s->low % 64);
    if (s->set == 0)
        drop_bits(ids, s);
    if (status != DP_OK)
        ids->refused[ids->refusals++ % DP_REFUSED_MAX] = (struct refused){stream, number, status};
}

enum dp_status dp_push_ids_restore(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status status)
{
    enum dp_status before, st = DP_OK;
    if (dp_push_ids_look(ids, stream, number, &before) != DP_PUSH_NEW)
        return DP_OK;
    st = reserve(ids, stream, number, DP_STREAMS_MAX); /* it was let in */
    if (st == DP_OK)
        dp_push_ids_add(ids, stream, number, status);
    return st == DP_NOMEM ? st : DP_OK;
}

/* ---- packed */

#define PACK_FORMAT  2u
#define PACK_HEAD    32u
#define PACK_STREAM  20u
#define PACK_REFUSED 20u

/* Word w of the window, counted from low: the end of one word of the bits and the beginning of the next. */
static uint64_t word_above_low(const struct stream *s, uint32_t w)
{
    uint64_t at = s->low / 64 + w, shift = s->low % 64, word = s->bits[at % s->words] >> shift;
    return shift ? word | s->bits[(at + 1) % s->words] << (64 - shift) : word;
}

static char *pack_stream(const struct stream *s, char *at)
{
    uint32_t words = 0;
    dp_store_u64le(at, s->id);
    dp_store_u64le(at + 8, s->low);
    for (uint32_t left = s->set; left > 0 && words < s->words; words++) { /* the empty rest is left out */
        uint64_t word = word_above_low(s, words);
        dp_store_u64le(at + PACK_STREAM + (size_t)words * 8, word);
        left -= (uint32_t)__builtin_popcountll(word);
    }
    dp_store_u32le(at + 16, words);
    return at + PACK_STREAM + (size_t)words * 8;
}

void *dp_push_ids_pack(const struct dp_push_ids *ids, size_t *size)
{
    uint32_t kept = ids->refusals < DP_REFUSED_MAX ? ids->refusals : DP_REFUSED_MAX;
    size_t most = PACK_HEAD + kept * PACK_REFUSED;
    for (uint32_t i = 0; i < ids->count; i++)
        most += PACK_STREAM + (size_t)ids->stream[i]->words * 8;
    char *bytes = malloc(most), *at = bytes;
    if (!bytes)
        return NULL;
    dp_store_u32le(bytes, PACK_FORMAT);
    dp_store_u32le(bytes + 4, ids->count);
    dp_store_u64le(bytes + 8, ids->forgotten[0]);
    dp_store_u64le(bytes + 16, ids->forgotten[1]);
    dp_store_u32le(bytes + 24, kept);
    dp_store_u32le(bytes + 28, 0);
    at += PACK_HEAD;
    for (uint32_t i = 0; i < ids->count; i++)
        at = pack_stream(ids->stream[i], at);
    for (uint32_t i = ids->refusals - kept; i != ids->refusals; i++, at += PACK_REFUSED) {
        const struct refused *refused = &ids->refused[i % DP_REFUSED_MAX];
        dp_store_u64le(at, refused->stream);
        dp_store_u64le(at + 8, refused->number);
        dp_store_u32le(at + 16, (uint32_t)refused->status);
    }
    *size = (size_t)(at - bytes);
    return bytes;
}

static enum dp_status unpack_stream(struct dp_push_ids *ids, const char **at, size_t *left,
                                    struct dp_error *err)
{
    uint32_t words = *left >= PACK_STREAM ? dp_load_u32le(*at + 16) : WIDE_WORDS + 1;
    if (words > WIDE_WORDS || *left - PACK_STREAM < (size_t)words * 8)
        return dp_fail(err, DP_CORRUPT, "push ids: stream %u is cut off", ids->count);
    uint64_t id = dp_load_u64le(*at);
    if (ids->count > 0 && id <= ids->stream[ids->count - 1]->id)
        return dp_fail(err, DP_CORRUPT, "push ids: streams are not in order");
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return dp_fail(err, DP_NOMEM, "push ids");
    ids->stream[ids->count++] = s;
    s->id = id;
    s->low = dp_load_u64le(*at + 8);
    if (words > 0 && widen(ids, s, s->low + (uint64_t)words * 64 - 1) != DP_OK)
        return dp_fail(err, DP_NOMEM, "push ids");
    for (uint32_t i = 0; i < words * 64; i++)
        if (dp_load_u64le(*at + PACK_STREAM + (size_t)(i / 64) * 8) >> i % 64 & 1)
            set(s, s->low + i);
    *at += PACK_STREAM + (size_t)words * 8;
    *left -= PACK_STREAM + (size_t)words * 8;
    return DP_OK;
}

enum dp_status dp_push_ids_unpack(struct dp_push_ids *ids, const void *bytes, size_t size,
                                  struct dp_error *err)
{
    DP_ASSERT(ids->count == 0);
    const char *at = bytes;
    if (size < PACK_HEAD || dp_load_u32le(at) != PACK_FORMAT || dp_load_u32le(at + 4) > DP_STREAMS_MAX ||
        dp_load_u32le(at + 24) > DP_REFUSED_MAX)
        return dp_fail(err, DP_CORRUPT, "push ids: %zu bytes that are not format %u", size, PACK_FORMAT);
    uint32_t count = dp_load_u32le(at + 4), refused = dp_load_u32le(at + 24);
    ids->forgotten[0] = dp_load_u64le(at + 8);
    ids->forgotten[1] = dp_load_u64le(at + 16);
    at += PACK_HEAD;
    size -= PACK_HEAD;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < count && st == DP_OK; i++)
        st = unpack_stream(ids, &at, &size, err);
    if (st == DP_OK && size != (size_t)refused * PACK_REFUSED)
        st = dp_fail(err, DP_CORRUPT, "push ids: %zu bytes for %u refused ones", size, refused);
    for (uint32_t i = 0; i < refused && st == DP_OK; i++, at += PACK_REFUSED)
        ids->refused[ids->refusals++] =
            (struct refused){.stream = dp_load_u64le(at),
                             .number = dp_load_u64le(at + 8),
                             .status = dp_status_from_number((int)dp_load_u32le(at + 16))};
    return st;
}

/* ---- for people */

void dp_push_ids_visit(
    const struct dp_push_ids *ids, void (*stream)(void *context, const struct dp_push_stream *stream),
    void (*refused)(void *context, uint64_t stream, uint64_t number, enum dp_status status), void *context)
{
    for (uint32_t i = 0; i < ids->count; i++) {
        const struct stream *s = ids->stream[i];
        uint64_t greatest = s->low;
        for (uint64_t n = s->low; n - s->low < (uint64_t)s->words * 64; n++)
            greatest = is_set(s, n) ? n : greatest;
        struct dp_push_stream one = {.stream = s->id,
                                     .low = s->low,
                                     .used_above = s->set,
                                     .holes = s->set ? greatest - s->low + 1 - s->set : 0};
        stream(context, &one);
    }
    uint32_t kept = ids->refusals < DP_REFUSED_MAX ? ids->refusals : DP_REFUSED_MAX;
    for (uint32_t i = ids->refusals - kept; i != ids->refusals; i++) {
        const struct refused *one = &ids->refused[i % DP_REFUSED_MAX];
        refused(context, one->stream, one->number, one->status);
    }
}

/* Packs push ids into the store's mark "ids", and unpacks them (push_ids.h). */
#include "common/base/bytes.h"
#include "server/ids/push_ids_inner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PACK_KEYS    4u /* had pushes that the store has for some keys only */
#define PACK_FORMAT  3u
#define PACK_OLD     2u /* had the greatest forgotten stream in place of floors */
#define PACK_HEAD    32u
#define PACK_RUN     16u
#define PACK_STREAM  20u
#define PACK_REFUSED 20u

/* Word w of the window, counted from low: made of the end of one word of the bits and the start of the
 * next. */
static uint64_t word_above_low(const struct dp_push_ids_stream *s, uint32_t w)
{
    uint64_t at = s->low / 64 + w, shift = s->low % 64, word = s->bits[at % s->words] >> shift;
    return shift ? word | s->bits[(at + 1) % s->words] << (64 - shift) : word;
}

static char *pack_stream(const struct dp_push_ids_stream *s, char *at)
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

static int by_use(const void *a, const void *b)
{
    const struct dp_push_ids_stream *x = *(const struct dp_push_ids_stream *const *)a,
                                    *y = *(const struct dp_push_ids_stream *const *)b;
    return (x->used > y->used) - (x->used < y->used);
}

void *dp_push_ids_pack(const struct dp_push_ids *ids, size_t *size)
{
    uint32_t kept = ids->refusals < DP_REFUSED_MAX ? ids->refusals : DP_REFUSED_MAX;
    size_t most = PACK_HEAD + ids->runs * PACK_RUN + kept * PACK_REFUSED;
    for (uint32_t i = 0; i < ids->count; i++)
        most += PACK_STREAM + (size_t)ids->stream[i]->words * 8;
    const struct dp_push_ids_stream **order = malloc((ids->count + 1u) * sizeof *order);
    char *bytes = order ? malloc(most) : NULL, *at = bytes;
    if (!bytes) {
        free(order);
        return NULL;
    }
    dp_store_u32le(bytes, PACK_FORMAT);
    dp_store_u32le(bytes + 4, ids->count);
    dp_store_u64le(bytes + 8, ids->floors.clients);
    dp_store_u64le(bytes + 16, ids->floors.runs);
    dp_store_u32le(bytes + 24, kept);
    dp_store_u32le(bytes + 28, ids->runs);
    at += PACK_HEAD;
    for (uint32_t i = 0; i < ids->runs; i++, at += PACK_RUN) {
        dp_store_u32le(at, ids->run[i].number);
        dp_store_u32le(at + 4, 0);
        dp_store_u64le(at + 8, ids->run[i].floor);
    }
    for (uint32_t i = 0; i < ids->count; i++)
        order[i] = ids->stream[i];
    qsort(order, ids->count, sizeof *order, by_use);
    for (uint32_t i = 0; i < ids->count; i++)
        at = pack_stream(order[i], at);
    free(order);
    for (uint32_t i = ids->refusals - kept; i != ids->refusals; i++, at += PACK_REFUSED) {
        const struct dp_push_ids_refused *refused = &ids->refused[i % DP_REFUSED_MAX];
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
    struct dp_push_ids_stream *s;
    uint32_t words = *left >= PACK_STREAM ? dp_load_u32le(*at + 16) : WIDE_WORDS + 1;
    if (words > WIDE_WORDS || *left - PACK_STREAM < (size_t)words * 8)
        return dp_fail(err, DP_CORRUPT, "push ids: stream %u is cut off", ids->count);
    uint64_t id = dp_load_u64le(*at);
    if (dp_push_ids_find(ids, id))
        return dp_fail(err, DP_CORRUPT, "push ids: stream %016" PRIx64 " is there twice", id);
    if (dp_push_ids_make_stream(ids, id, NULL, &s) != DP_PUSH_ROOM)
        return dp_fail(err, DP_NOMEM, "no memory for push ids");
    s->low = dp_load_u64le(*at + 8);
    if (words > 0 && dp_push_ids_widen(ids, s, s->low + (uint64_t)words * 64 - 1) != DP_OK)
        return dp_fail(err, DP_NOMEM, "no memory for push ids");
    for (uint32_t i = 0; i < words * 64; i++)
        if (dp_load_u64le(*at + PACK_STREAM + (size_t)(i / 64) * 8) >> i % 64 & 1)
            dp_push_ids_set(s, s->low + i);
    *at += PACK_STREAM + (size_t)words * 8;
    *left -= PACK_STREAM + (size_t)words * 8;
    return DP_OK;
}

static enum dp_status unpack_runs(struct dp_push_ids *ids, const char **at, size_t *left, uint32_t runs,
                                  struct dp_error *err)
{
    if (*left < (size_t)runs * PACK_RUN)
        return dp_fail(err, DP_CORRUPT, "push ids: %u runs are cut off", runs);
    for (uint32_t i = 0; i < runs; i++, *at += PACK_RUN, *left -= PACK_RUN) {
        uint32_t number = dp_load_u32le(*at);
        uint64_t floor = dp_load_u64le(*at + 8);
        if (number > DP_RUN_MAX || floor > (uint64_t)UINT32_MAX + 1 ||
            (i > 0 && number <= ids->run[i - 1].number))
            return dp_fail(err, DP_CORRUPT, "push ids: run %u is none, or not in order", number);
        dp_push_ids_make_run(ids, number);
        ids->run[i].floor = floor;
    }
    return DP_OK;
}

enum dp_status dp_push_ids_unpack(struct dp_push_ids *ids, const void *bytes, size_t size,
                                  struct dp_error *err)
{
    DP_ASSERT(ids->count == 0 && ids->runs == 0);
    const char *at = bytes;
    uint32_t format = size >= PACK_HEAD ? dp_load_u32le(at) : 0;
    if (format == PACK_KEYS)
        return dp_fail(err, DP_UNSUPPORTED,
                       "push ids of format %u list pushes that only some keys have, which this version does "
                       "not read: start the version that wrote them, let its workers push these again, and "
                       "stop it; or restore a checkpoint without such pushes",
                       format);
    if (format == PACK_OLD)
        return dp_fail(err, DP_UNSUPPORTED,
                       "push ids of format %u, which this version does not read: start the last build of "
                       "version 0.1.0 on them once, which writes format %u, and stop it",
                       format, PACK_FORMAT);
    if (format != PACK_FORMAT || dp_load_u32le(at + 4) > DP_STREAMS_MAX ||
        dp_load_u32le(at + 24) > DP_REFUSED_MAX || dp_load_u32le(at + 28) > DP_PUSH_RUNS_MAX)
        return dp_fail(err, DP_CORRUPT, "push ids: %zu bytes that are not format %u", size, PACK_FORMAT);
    uint32_t count = dp_load_u32le(at + 4), refused = dp_load_u32le(at + 24), runs = dp_load_u32le(at + 28);
    ids->floors = (struct dp_push_floors){dp_load_u64le(at + 8), dp_load_u64le(at + 16)};
    at += PACK_HEAD;
    size -= PACK_HEAD;
    if (ids->floors.runs > (uint64_t)DP_RUN_MAX + 1)
        return dp_fail(err, DP_CORRUPT, "push ids: a floor of %" PRIu64 " for runs", ids->floors.runs);
    enum dp_status st = unpack_runs(ids, &at, &size, runs, err);
    for (uint32_t i = 0; i < count && st == DP_OK; i++)
        st = unpack_stream(ids, &at, &size, err);
    if (st == DP_OK && size != (size_t)refused * PACK_REFUSED)
        st = dp_fail(err, DP_CORRUPT, "push ids: %zu bytes for %u refused ones", size, refused);
    for (uint32_t i = 0; i < refused && st == DP_OK; i++, at += PACK_REFUSED)
        ids->refused[ids->refusals++] =
            (struct dp_push_ids_refused){.stream = dp_load_u64le(at),
                                         .number = dp_load_u64le(at + 8),
                                         .status = dp_status_from_number((int)dp_load_u32le(at + 16))};
    return st;
}

#include "server/shard/push_ids.h"

#include "common/base/bytes.h"

#include <inttypes.h>
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
    uint64_t used;  /* when, last, in uses of this memory */
    struct stream *older, *newer; /* of its group, by that */
};

/* Streams that are forgotten in the order of their use: all clients', or the epochs of one run. */
struct group {
    struct stream *oldest, *newest;
    uint32_t count;
};

struct run {
    uint32_t number;
    uint64_t floor, used;
    struct group epochs;
};

struct refused {
    uint64_t stream, number;
    enum dp_status status;
};

/* How many may be new now. */
struct quota {
    uint64_t at_ns; /* it was brought up to date; 0: never, and it is full */
    uint32_t left;
};

struct dp_push_ids {
    uint32_t count, wide;                  /* streams; those with WIDE_WORDS */
    struct stream *stream[DP_STREAMS_MAX]; /* ascending by id */
    struct group clients;
    uint32_t runs;
    struct run run[DP_PUSH_RUNS_MAX]; /* ascending by number */
    uint64_t uses;
    struct dp_push_floors floors;
    uint64_t client_due, run_due; /* the greatest that can have been given out */
    struct quota clients_quota, runs_quota;
    uint32_t refusals; /* ever; the last DP_REFUSED_MAX of them are kept */
    struct refused refused[DP_REFUSED_MAX];
};

enum dp_status dp_push_ids_new(struct dp_push_ids **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return DP_NOMEM;
    dp_push_ids_set_due(*out, UINT64_MAX, UINT64_MAX);
    return DP_OK;
}

void dp_push_ids_set_due(struct dp_push_ids *ids, uint64_t client, uint64_t run)
{
    ids->client_due = client;
    ids->run_due = run;
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

static uint32_t place_of_run(const struct dp_push_ids *ids, uint32_t number)
{
    uint32_t low = 0, high = ids->runs;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (ids->run[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of a training stream. Lent until a run is made or forgotten. */
static struct run *run_of(struct dp_push_ids *ids, uint64_t stream)
{
    uint32_t number = dp_stream_run(stream), at = place_of_run(ids, number);
    return at < ids->runs && ids->run[at].number == number ? &ids->run[at] : NULL;
}

static const struct run *known_run_of(const struct dp_push_ids *ids, uint64_t stream)
{
    return run_of((struct dp_push_ids *)ids, stream);
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

uint64_t dp_push_ids_too_old(const struct dp_push_ids *ids, uint64_t stream)
{
    if (!dp_stream_is_training(stream))
        return ids->floors.clients ? ids->floors.clients - 1 : 0;
    const struct run *run = known_run_of(ids, stream);
    if (run)
        return run->floor ? dp_stream_of_run(run->number, (uint32_t)(run->floor - 1)) : 0;
    return ids->floors.runs ? dp_stream_of_run((uint32_t)(ids->floors.runs - 1), UINT32_MAX) : 0;
}

enum dp_push_seen dp_push_ids_look(const struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status *status)
{
    const struct stream *s = find(ids, stream);
    if (!s && stream <= dp_push_ids_too_old(ids, stream))
        return DP_PUSH_TOO_OLD;
    uint64_t low = s ? s->low : 0;
    if (number < low)
        return used_up(ids, stream, number, status);
    if (number - low >= DP_PUSH_WINDOW)
        return DP_PUSH_ABOVE;
    return s && is_set(s, number) ? used_up(ids, stream, number, status) : DP_PUSH_NEW;
}

bool dp_push_ids_knows(const struct dp_push_ids *ids, uint64_t stream)
{
    return dp_stream_is_training(stream) ? known_run_of(ids, stream) != NULL : find(ids, stream) != NULL;
}

uint32_t dp_push_ids_last_run(const struct dp_push_ids *ids)
{
    uint32_t known = ids->runs ? ids->run[ids->runs - 1].number : 0,
             forgotten = ids->floors.runs ? (uint32_t)(ids->floors.runs - 1) : 0;
    return known > forgotten ? known : forgotten;
}

/* ---- the order of use */

static void unlink_stream(struct group *group, struct stream *s)
{
    *(s->older ? &s->older->newer : &group->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &group->newest) = s->older;
    s->older = s->newer = NULL;
    group->count--;
}

/* As the one used last. */
static void link_stream(struct dp_push_ids *ids, struct group *group, struct stream *s)
{
    s->used = ++ids->uses;
    s->older = group->newest;
    *(group->newest ? &group->newest->newer : &group->oldest) = s;
    group->newest = s;
    group->count++;
}

static void use(struct dp_push_ids *ids, struct stream *s)
{
    struct run *run = dp_stream_is_training(s->id) ? run_of(ids, s->id) : NULL;
    struct group *group = run ? &run->epochs : &ids->clients;
    unlink_stream(group, s);
    link_stream(ids, group, s);
    if (run)
        run->used = s->used;
}

void dp_push_ids_use(struct dp_push_ids *ids, uint64_t stream)
{
    struct stream *s = find(ids, stream);
    if (s)
        use(ids, s);
}

/* ---- forgetting */

/* Half of max at most are left; all of max come in DP_PUSH_QUOTA_S. */
static bool take_quota(struct quota *quota, uint32_t max, uint64_t now_ns)
{
    uint64_t one_ns = DP_PUSH_QUOTA_S * UINT64_C(1000000000) / max;
    if (quota->at_ns == 0)
        *quota = (struct quota){now_ns, max / 2};
    uint64_t more = (now_ns - quota->at_ns) / one_ns;
    if (more >= max / 2 - quota->left) {
        quota->left = max / 2;
        quota->at_ns = now_ns;
    } else {
        quota->left += (uint32_t)more;
        quota->at_ns += more * one_ns;
    }
    if (quota->left == 0)
        return false;
    quota->left--;
    return true;
}

static void drop_bits(struct dp_push_ids *ids, struct stream *s)
{
    ids->wide -= s->words == WIDE_WORDS;
    free(s->bits);
    s->bits = NULL;
    s->words = 0;
}

static void remove_streams(struct dp_push_ids *ids, uint32_t at, uint32_t n)
{
    for (uint32_t i = at; i < at + n; i++) {
        drop_bits(ids, ids->stream[i]);
        stream_free(ids->stream[i]);
    }
    ids->count -= n;
    memmove(&ids->stream[at], &ids->stream[at + n], (ids->count - at) * sizeof ids->stream[0]);
}

static void raise_floor(uint64_t *floor, uint64_t forgotten)
{
    *floor = forgotten >= *floor ? forgotten + 1 : *floor;
}

/* The one of the group that was used longest ago. */
static void forget_stream(struct dp_push_ids *ids, struct group *group)
{
    struct stream *s = group->oldest;
    unlink_stream(group, s);
    remove_streams(ids, place_of(ids, s->id), 1);
}

static void forget_client(struct dp_push_ids *ids)
{
    uint64_t id = ids->clients.oldest->id;
    if (id <= ids->client_due)
        raise_floor(&ids->floors.clients, id);
    forget_stream(ids, &ids->clients);
}

static void forget_epoch(struct dp_push_ids *ids)
{
    struct run *most = &ids->run[0];
    for (uint32_t i = 1; i < ids->runs; i++)
        most = ids->run[i].epochs.count > most->epochs.count ? &ids->run[i] : most;
    DP_ASSERT(most->epochs.count > 1); /* there are fewer runs than epochs */
    raise_floor(&most->floor, dp_stream_epoch(most->epochs.oldest->id));
    forget_stream(ids, &most->epochs);
}

static void forget_run(struct dp_push_ids *ids)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < ids->runs; i++)
        at = ids->run[i].used < ids->run[at].used ? i : at;
    const struct run *run = &ids->run[at];
    if (run->number <= ids->run_due)
        raise_floor(&ids->floors.runs, run->number);
    remove_streams(ids, place_of(ids, dp_stream_of_run(run->number, 0)), run->epochs.count);
    ids->runs--;
    memmove(&ids->run[at], &ids->run[at + 1], (ids->runs - at) * sizeof ids->run[0]);
}

/* ---- adding */

static void make_run(struct dp_push_ids *ids, uint32_t number)
{
    uint32_t at = place_of_run(ids, number);
    memmove(&ids->run[at + 1], &ids->run[at], (ids->runs - at) * sizeof ids->run[0]);
    ids->run[at] = (struct run){.number = number};
    ids->runs++;
}

/* now_ns NULL: whatever the quota. false: it is used up, and nothing was forgotten. */
static bool make_place(struct dp_push_ids *ids, uint64_t stream, const uint64_t *now_ns)
{
    if (!dp_stream_is_training(stream)) {
        if (now_ns && !take_quota(&ids->clients_quota, DP_PUSH_CLIENTS_MAX, *now_ns))
            return false;
        if (ids->clients.count == DP_PUSH_CLIENTS_MAX)
            forget_client(ids);
        return true;
    }
    bool fresh = !run_of(ids, stream);
    if (fresh && now_ns && !take_quota(&ids->runs_quota, DP_PUSH_RUNS_MAX, *now_ns))
        return false;
    if (fresh && ids->runs == DP_PUSH_RUNS_MAX)
        forget_run(ids);
    if (ids->count - ids->clients.count == DP_PUSH_EPOCHS_MAX)
        forget_epoch(ids);
    if (fresh)
        make_run(ids, dp_stream_run(stream));
    return true;
}

/* now_ns NULL: whatever the quota. */
static enum dp_push_room make_stream(struct dp_push_ids *ids, uint64_t stream, const uint64_t *now_ns,
                                     struct stream **out)
{
    struct stream *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return DP_PUSH_NO_MEMORY;
    fresh->id = stream;
    if (!make_place(ids, stream, now_ns)) {
        free(fresh);
        return DP_PUSH_TOO_MANY;
    }
    uint32_t at = place_of(ids, stream);
    memmove(&ids->stream[at + 1], &ids->stream[at], (ids->count - at) * sizeof ids->stream[0]);
    ids->stream[at] = *out = fresh;
    ids->count++;
    struct run *run = dp_stream_is_training(stream) ? run_of(ids, stream) : NULL;
    link_stream(ids, run ? &run->epochs : &ids->clients, fresh);
    if (run)
        run->used = fresh->used;
    return DP_PUSH_ROOM;
}

static void set(struct stream *s, uint64_t number)
{
    s->bits[number / 64 % s->words] |= (uint64_t)1 << number % 64;
    s->set++;
}

/* Bits for the numbers up to this one. */
static enum dp_status widen(struct dp_push_ids *ids, struct stream *s, uint64_t number)
{
    uint32_t words = number - s->low < DP_PUSH_NARROW ? NARROW_WORDS : WIDE_WORDS;
    if (words <= s->words)
        return DP_OK;
    struct stream wider = *s;
    wider.words = words;
    wider.set = 0;
    wider.bits = calloc(words, sizeof wider.bits[0]);
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

static enum dp_push_room reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                 const uint64_t *now_ns)
{
    struct stream *s = find(ids, stream);
    bool far = number - (s ? s->low : 0) >= DP_PUSH_NARROW;
    if (far && now_ns && (!s || s->words != WIDE_WORDS) && ids->wide >= DP_PUSH_WIDE_MAX)
        return DP_PUSH_TOO_FAR;
    if (s) {
        use(ids, s);
    } else {
        enum dp_push_room room = make_stream(ids, stream, now_ns, &s);
        if (room != DP_PUSH_ROOM)
            return room;
    }
    return number == s->low || widen(ids, s, number) == DP_OK ? DP_PUSH_ROOM : DP_PUSH_NO_MEMORY;
}

enum dp_push_room dp_push_ids_reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                      uint64_t now_ns)
{
    return reserve(ids, stream, number, &now_ns);
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
    enum dp_status before;
    if (dp_push_ids_look(ids, stream, number, &before) != DP_PUSH_NEW) {
        dp_push_ids_use(ids, stream);
        return DP_OK;
    }
    if (reserve(ids, stream, number, NULL) != DP_PUSH_ROOM) /* it was let in */
        return DP_NOMEM;
    dp_push_ids_add(ids, stream, number, status);
    return DP_OK;
}

/* ---- packed */

#define PACK_FORMAT  3u
#define PACK_ORDERED 2u /* the format with streams ascending */
#define PACK_HEAD    32u
#define PACK_RUN     16u
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

static int by_use(const void *a, const void *b)
{
    const struct stream *x = *(const struct stream *const *)a, *y = *(const struct stream *const *)b;
    return (x->used > y->used) - (x->used < y->used);
}

void *dp_push_ids_pack(const struct dp_push_ids *ids, size_t *size)
{
    uint32_t kept = ids->refusals < DP_REFUSED_MAX ? ids->refusals : DP_REFUSED_MAX;
    size_t most = PACK_HEAD + ids->runs * PACK_RUN + kept * PACK_REFUSED;
    for (uint32_t i = 0; i < ids->count; i++)
        most += PACK_STREAM + (size_t)ids->stream[i]->words * 8;
    const struct stream **order = malloc((ids->count + 1u) * sizeof *order);
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
    struct stream *s;
    uint32_t words = *left >= PACK_STREAM ? dp_load_u32le(*at + 16) : WIDE_WORDS + 1;
    if (words > WIDE_WORDS || *left - PACK_STREAM < (size_t)words * 8)
        return dp_fail(err, DP_CORRUPT, "push ids: stream %u is cut off", ids->count);
    uint64_t id = dp_load_u64le(*at);
    if (find(ids, id))
        return dp_fail(err, DP_CORRUPT, "push ids: stream %016" PRIx64 " is there twice", id);
    if (make_stream(ids, id, NULL, &s) != DP_PUSH_ROOM)
        return dp_fail(err, DP_NOMEM, "push ids");
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
        make_run(ids, number);
        ids->run[i].floor = floor;
    }
    return DP_OK;
}

/* Format 2 had the greatest forgotten stream of each kind, and took none below it that it did not know: neither of a
 * run of which it knew others. Called before and after its streams: the run of the forgotten one may have none. */
static void take_forgotten(struct dp_push_ids *ids, uint64_t client, uint64_t training)
{
    if (client > 0)
        raise_floor(&ids->floors.clients, client < ids->client_due ? client : ids->client_due);
    if (training == 0)
        return;
    uint32_t number = dp_stream_run(training);
    if (number > ids->run_due)
        raise_floor(&ids->floors.runs, ids->run_due);
    else if (number > 0)
        raise_floor(&ids->floors.runs, number - 1);
    if (ids->runs == 0 && number <= ids->run_due)
        make_run(ids, number);
    for (uint32_t i = 0; i < ids->runs && ids->run[i].number <= number; i++)
        ids->run[i].floor =
            ids->run[i].number < number ? (uint64_t)UINT32_MAX + 1 : (uint64_t)dp_stream_epoch(training) + 1;
}

enum dp_status dp_push_ids_unpack(struct dp_push_ids *ids, const void *bytes, size_t size,
                                  struct dp_error *err)
{
    DP_ASSERT(ids->count == 0 && ids->runs == 0);
    const char *at = bytes;
    uint32_t format = size >= PACK_HEAD ? dp_load_u32le(at) : 0;
    if ((format != PACK_FORMAT && format != PACK_ORDERED) || dp_load_u32le(at + 4) > DP_STREAMS_MAX ||
        dp_load_u32le(at + 24) > DP_REFUSED_MAX || dp_load_u32le(at + 28) > DP_PUSH_RUNS_MAX)
        return dp_fail(err, DP_CORRUPT, "push ids: %zu bytes that are not format %u or %u", size,
                       PACK_ORDERED, PACK_FORMAT);
    uint32_t count = dp_load_u32le(at + 4), refused = dp_load_u32le(at + 24), runs = dp_load_u32le(at + 28);
    uint64_t clients = dp_load_u64le(at + 8), training = dp_load_u64le(at + 16);
    at += PACK_HEAD;
    size -= PACK_HEAD;
    enum dp_status st = DP_OK;
    if (format == PACK_ORDERED) {
        take_forgotten(ids, clients, training);
    } else if (training > (uint64_t)DP_RUN_MAX + 1) {
        st = dp_fail(err, DP_CORRUPT, "push ids: a floor of %" PRIu64 " for runs", training);
    } else {
        ids->floors = (struct dp_push_floors){clients, training};
        st = unpack_runs(ids, &at, &size, runs, err);
    }
    for (uint32_t i = 0; i < count && st == DP_OK; i++)
        st = unpack_stream(ids, &at, &size, err);
    if (format == PACK_ORDERED)
        take_forgotten(ids, clients, training);
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

struct dp_push_floors dp_push_ids_floors(const struct dp_push_ids *ids)
{
    return ids->floors;
}

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

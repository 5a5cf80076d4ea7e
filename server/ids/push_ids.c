#include "server/ids/push_ids.h"

#include "common/base/search.h"
#include "server/ids/push_ids_inner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NARROW_WORDS (DP_PUSH_NARROW / 64)

enum dp_status dp_push_ids_new(struct dp_push_ids **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? DP_OK : DP_NOMEM;
}

static void stream_free(struct dp_push_ids_stream *stream)
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

static bool stream_below(const void *at, const void *wanted)
{
    const struct dp_push_ids_stream *const *stream = at;
    return (*stream)->id < *(const uint64_t *)wanted;
}

/* Index of the stream, or where it would be inserted. */
static uint32_t place_of(const struct dp_push_ids *ids, uint64_t stream)
{
    return (uint32_t)dp_lower_bound(ids->stream, ids->count, sizeof ids->stream[0], &stream, stream_below);
}

struct dp_push_ids_stream *dp_push_ids_find(const struct dp_push_ids *ids, uint64_t stream)
{
    uint32_t at = place_of(ids, stream);
    return at < ids->count && ids->stream[at]->id == stream ? ids->stream[at] : NULL;
}

static bool run_below(const void *at, const void *wanted)
{
    const struct dp_push_ids_run *run = at;
    return run->number < *(const uint32_t *)wanted;
}

static uint32_t place_of_run(const struct dp_push_ids *ids, uint32_t number)
{
    return (uint32_t)dp_lower_bound(ids->run, ids->runs, sizeof ids->run[0], &number, run_below);
}

/* The run of a training stream. Valid until a run is added or forgotten. */
static struct dp_push_ids_run *run_of(const struct dp_push_ids *ids, uint64_t stream)
{
    uint32_t number = dp_stream_run(stream), at = place_of_run(ids, number);
    bool known = at < ids->runs && ids->run[at].number == number;
    return known ? &((struct dp_push_ids *)ids)->run[at] : NULL;
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
    const struct dp_push_ids_run *run = run_of(ids, stream);
    if (run)
        return run->floor ? dp_stream_of_run(run->number, (uint32_t)(run->floor - 1)) : 0;
    return ids->floors.runs ? dp_stream_of_run((uint32_t)(ids->floors.runs - 1), UINT32_MAX) : 0;
}

enum dp_push_seen dp_push_ids_look(const struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status *status)
{
    const struct dp_push_ids_stream *s = dp_push_ids_find(ids, stream);
    if (!s && stream <= dp_push_ids_too_old(ids, stream))
        return DP_PUSH_TOO_OLD;
    uint64_t low = s ? s->low : 0;
    if (number < low)
        return used_up(ids, stream, number, status);
    if (number - low >= DP_PUSH_WINDOW)
        return DP_PUSH_ABOVE;
    return s && dp_push_ids_is_set(s, number) ? used_up(ids, stream, number, status) : DP_PUSH_NEW;
}

bool dp_push_ids_knows(const struct dp_push_ids *ids, uint64_t stream)
{
    return dp_stream_is_training(stream) ? run_of(ids, stream) != NULL
                                         : dp_push_ids_find(ids, stream) != NULL;
}

uint64_t dp_push_ids_last_training(const struct dp_push_ids *ids)
{
    uint64_t last = ids->count ? ids->stream[ids->count - 1]->id : 0; /* they are above the clients' */
    return dp_stream_is_training(last) ? last : 0;
}

uint64_t dp_push_ids_last_client(const struct dp_push_ids *ids)
{
    uint32_t i = ids->count;
    while (i > 0 && dp_stream_is_training(ids->stream[i - 1]->id))
        i--;
    uint64_t known = i > 0 ? ids->stream[i - 1]->id : 0, forgotten = dp_push_ids_too_old(ids, 1);
    return known > forgotten ? known : forgotten;
}

uint32_t dp_push_ids_last_run(const struct dp_push_ids *ids)
{
    uint32_t known = ids->runs ? ids->run[ids->runs - 1].number : 0,
             forgotten = ids->floors.runs ? (uint32_t)(ids->floors.runs - 1) : 0;
    return known > forgotten ? known : forgotten;
}

/* ---- the order of use */

static void unlink_stream(struct dp_push_ids_group *group, struct dp_push_ids_stream *s)
{
    *(s->older ? &s->older->newer : &group->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &group->newest) = s->older;
    s->older = s->newer = NULL;
    DP_ASSERT(group->count > 0);
    group->count--;
    DP_ASSERT((group->count == 0) == !group->oldest && (group->count == 0) == !group->newest);
}

/* Appends the stream as the most recently used one. */
static void link_stream(struct dp_push_ids *ids, struct dp_push_ids_group *group,
                        struct dp_push_ids_stream *s)
{
    s->used = ++ids->uses;
    s->older = group->newest;
    *(group->newest ? &group->newest->newer : &group->oldest) = s;
    group->newest = s;
    group->count++;
}

static void use(struct dp_push_ids *ids, struct dp_push_ids_stream *s)
{
    struct dp_push_ids_run *run = dp_stream_is_training(s->id) ? run_of(ids, s->id) : NULL;
    struct dp_push_ids_group *group = run ? &run->epochs : &ids->clients;
    unlink_stream(group, s);
    link_stream(ids, group, s);
    if (run)
        run->used = s->used;
}

void dp_push_ids_use(struct dp_push_ids *ids, uint64_t stream)
{
    struct dp_push_ids_stream *s = dp_push_ids_find(ids, stream);
    if (s)
        use(ids, s);
}

/* ---- forgetting */

/* At most half of max can be left; all of max become available in DP_PUSH_QUOTA_S. */
static bool take_quota(struct dp_push_ids_quota *quota, uint32_t max, uint64_t now_ns)
{
    uint64_t one_ns = DP_PUSH_QUOTA_S * UINT64_C(1000000000) / max;
    if (quota->at_ns == 0)
        *quota = (struct dp_push_ids_quota){now_ns, max / 2};
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

static void drop_bits(struct dp_push_ids *ids, struct dp_push_ids_stream *s)
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

/* Forgets the group's least recently used stream. */
static void forget_stream(struct dp_push_ids *ids, struct dp_push_ids_group *group)
{
    struct dp_push_ids_stream *s = group->oldest;
    unlink_stream(group, s);
    remove_streams(ids, place_of(ids, s->id), 1);
}

static void forget_client(struct dp_push_ids *ids)
{
    raise_floor(&ids->floors.clients, ids->clients.oldest->id);
    forget_stream(ids, &ids->clients);
}

static void forget_epoch(struct dp_push_ids *ids)
{
    struct dp_push_ids_run *most = &ids->run[0];
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
    const struct dp_push_ids_run *run = &ids->run[at];
    raise_floor(&ids->floors.runs, run->number);
    remove_streams(ids, place_of(ids, dp_stream_of_run(run->number, 0)), run->epochs.count);
    ids->runs--;
    memmove(&ids->run[at], &ids->run[at + 1], (ids->runs - at) * sizeof ids->run[0]);
}

/* ---- adding */

void dp_push_ids_make_run(struct dp_push_ids *ids, uint32_t number)
{
    uint32_t at = place_of_run(ids, number);
    memmove(&ids->run[at + 1], &ids->run[at], (ids->runs - at) * sizeof ids->run[0]);
    ids->run[at] = (struct dp_push_ids_run){.number = number};
    ids->runs++;
}

/* now_ns NULL: ignores the quota. Returns false if it is used up; nothing was forgotten then. */
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
        dp_push_ids_make_run(ids, dp_stream_run(stream));
    return true;
}

/* now_ns NULL: ignores the quota. */
enum dp_push_room dp_push_ids_make_stream(struct dp_push_ids *ids, uint64_t stream, const uint64_t *now_ns,
                                          struct dp_push_ids_stream **out)
{
    struct dp_push_ids_stream *fresh = calloc(1, sizeof *fresh);
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
    struct dp_push_ids_run *run = dp_stream_is_training(stream) ? run_of(ids, stream) : NULL;
    link_stream(ids, run ? &run->epochs : &ids->clients, fresh);
    if (run)
        run->used = fresh->used;
    return DP_PUSH_ROOM;
}

void dp_push_ids_set(struct dp_push_ids_stream *s, uint64_t number)
{
    s->bits[number / 64 % s->words] |= (uint64_t)1 << number % 64;
    s->set++;
}

/* Gives the stream bits for the numbers up to this one. */
enum dp_status dp_push_ids_widen(struct dp_push_ids *ids, struct dp_push_ids_stream *s, uint64_t number)
{
    uint32_t words = number - s->low < DP_PUSH_NARROW ? NARROW_WORDS : WIDE_WORDS;
    if (words <= s->words)
        return DP_OK;
    struct dp_push_ids_stream wider = *s;
    wider.words = words;
    wider.set = 0;
    wider.bits = calloc(words, sizeof wider.bits[0]);
    if (!wider.bits)
        return DP_NOMEM;
    for (uint64_t n = s->low; wider.set < s->set; n++)
        if (dp_push_ids_is_set(s, n))
            dp_push_ids_set(&wider, n);
    free(s->bits);
    *s = wider;
    ids->wide += s->words == WIDE_WORDS;
    return DP_OK;
}

enum dp_push_room dp_push_ids_reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                      const uint64_t *now_ns)
{
    struct dp_push_ids_stream *s = dp_push_ids_find(ids, stream);
    bool far = number - (s ? s->low : 0) >= DP_PUSH_NARROW;
    if (far && now_ns && (!s || s->words != WIDE_WORDS) && ids->wide >= DP_PUSH_WIDE_MAX)
        return DP_PUSH_TOO_FAR;
    if (s) {
        use(ids, s);
    } else {
        enum dp_push_room room = dp_push_ids_make_stream(ids, stream, now_ns, &s);
        if (room != DP_PUSH_ROOM)
            return room;
    }
    return number == s->low || dp_push_ids_widen(ids, s, number) == DP_OK ? DP_PUSH_ROOM : DP_PUSH_NO_MEMORY;
}

static void pass_bit(struct dp_push_ids_stream *s)
{
    s->bits[s->low / 64 % s->words] &= ~((uint64_t)1 << s->low % 64);
    s->low++;
    s->set--;
}

void dp_push_ids_raise_low(struct dp_push_ids *ids, struct dp_push_ids_stream *s, uint64_t low)
{
    DP_ASSERT(low >= s->low);
    while (s->set > 0 && s->low < low) {
        if (dp_push_ids_is_set(s, s->low))
            pass_bit(s);
        else
            s->low++;
    }
    s->low = s->low < low ? low : s->low;
    while (dp_push_ids_is_set(s, s->low))
        pass_bit(s);
    if (s->set == 0)
        drop_bits(ids, s);
}

void dp_push_ids_add(struct dp_push_ids *ids, uint64_t stream, uint64_t number, enum dp_status status)
{
    struct dp_push_ids_stream *s = dp_push_ids_find(ids, stream);
    DP_ASSERT(s && number >= s->low && number - s->low < DP_PUSH_WINDOW && !dp_push_ids_is_set(s, number));
    if (number != s->low)
        dp_push_ids_set(s, number);
    else
        dp_push_ids_raise_low(ids, s, number + 1);
    if (status != DP_OK)
        dp_push_ids_refuse(ids, stream, number, status);
}

void dp_push_ids_refuse(struct dp_push_ids *ids, uint64_t stream, uint64_t number, enum dp_status status)
{
    ids->refused[ids->refusals++ % DP_REFUSED_MAX] = (struct dp_push_ids_refused){stream, number, status};
}

enum dp_status dp_push_ids_restore(struct dp_push_ids *ids, uint64_t stream, uint64_t number,
                                   enum dp_status status)
{
    enum dp_status before;
    if (dp_push_ids_look(ids, stream, number, &before) != DP_PUSH_NEW) {
        dp_push_ids_use(ids, stream);
        return DP_OK;
    }
    if (dp_push_ids_reserve(ids, stream, number, NULL) != DP_PUSH_ROOM) /* no quota: it was admitted before */
        return DP_NOMEM;
    dp_push_ids_add(ids, stream, number, status);
    return DP_OK;
}

/* ---- taking back */

static uint64_t greatest_used(const struct dp_push_ids_stream *s)
{
    uint64_t greatest = s->low - 1, seen = 0;
    for (uint64_t n = s->low; seen < s->set; n++)
        if (dp_push_ids_is_set(s, n)) {
            greatest = n;
            seen++;
        }
    return greatest;
}

/* number: below low. All from there to low - 1 were used up. */
static enum dp_status lower(struct dp_push_ids *ids, struct dp_push_ids_stream *s, uint64_t number)
{
    struct dp_push_ids_stream lowered = *s;
    uint64_t greatest = greatest_used(s);
    if (greatest - number >= DP_PUSH_WINDOW)
        return DP_AGAIN;
    lowered.low = number;
    lowered.set = lowered.words = 0;
    lowered.bits = NULL;
    if (greatest > number) {
        lowered.words = greatest - number < DP_PUSH_NARROW ? NARROW_WORDS : WIDE_WORDS;
        lowered.bits = calloc(lowered.words, sizeof lowered.bits[0]);
        if (!lowered.bits)
            return DP_NOMEM;
    }
    for (uint64_t n = number + 1; n <= greatest; n++)
        if (n < s->low || dp_push_ids_is_set(s, n))
            dp_push_ids_set(&lowered, n);
    drop_bits(ids, s);
    *s = lowered;
    ids->wide += s->words == WIDE_WORDS;
    return DP_OK;
}

enum dp_status dp_push_ids_take_back(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    struct dp_push_ids_stream *s = dp_push_ids_find(ids, stream);
    if (!s || (number >= s->low && !dp_push_ids_is_set(s, number)))
        return DP_OK;
    if (number < s->low)
        return lower(ids, s, number);
    s->bits[number / 64 % s->words] &= ~((uint64_t)1 << number % 64);
    if (--s->set == 0)
        drop_bits(ids, s);
    return DP_OK;
}

/* ---- inspection */

struct dp_push_floors dp_push_ids_floors(const struct dp_push_ids *ids)
{
    return ids->floors;
}

void dp_push_ids_visit(
    const struct dp_push_ids *ids, void (*stream)(void *context, const struct dp_push_stream *stream),
    void (*refused)(void *context, uint64_t stream, uint64_t number, enum dp_status status), void *context)
{
    for (uint32_t i = 0; i < ids->count; i++) {
        const struct dp_push_ids_stream *s = ids->stream[i];
        uint64_t greatest = s->low;
        for (uint64_t n = s->low; n - s->low < (uint64_t)s->words * 64; n++)
            greatest = dp_push_ids_is_set(s, n) ? n : greatest;
        struct dp_push_stream one = {.stream = s->id,
                                     .low = s->low,
                                     .used_above = s->set,
                                     .holes = s->set ? greatest - s->low + 1 - s->set : 0};
        stream(context, &one);
    }
    uint32_t kept = ids->refusals < DP_REFUSED_MAX ? ids->refusals : DP_REFUSED_MAX;
    for (uint32_t i = ids->refusals - kept; i != ids->refusals; i++) {
        const struct dp_push_ids_refused *one = &ids->refused[i % DP_REFUSED_MAX];
        refused(context, one->stream, one->number, one->status);
    }
}

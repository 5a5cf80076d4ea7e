#include "server/ids/push_ids_union.h"

#include "server/ids/push_ids_inner.h"

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t refusals_kept(const struct dp_push_ids *ids)
{
    return ids->refusals < DP_REFUSED_MAX ? ids->refusals : DP_REFUSED_MAX;
}

static const struct dp_push_ids_run *run_of(const struct dp_push_ids *ids, uint32_t number)
{
    for (uint32_t i = 0; i < ids->runs; i++)
        if (ids->run[i].number == number)
            return &ids->run[i];
    return NULL;
}

/* ---- merging */

static enum dp_status merge_stream(struct dp_push_ids *into, const struct dp_push_ids_stream *from)
{
    struct dp_push_ids_stream *s = dp_push_ids_find(into, from->id);
    if (!s && dp_push_ids_make_stream(into, from->id, NULL, &s) != DP_PUSH_ROOM)
        return DP_NOMEM;
    if (from->low > s->low)
        dp_push_ids_raise_low(into, s, from->low);
    uint32_t left = from->set;
    for (uint64_t n = from->low; left > 0; n++) {
        if (!dp_push_ids_is_set(from, n))
            continue;
        left--;
        if (n < s->low || dp_push_ids_is_set(s, n))
            continue;
        if (n == s->low) {
            dp_push_ids_raise_low(into, s, n + 1);
        } else if (dp_push_ids_widen(into, s, n) == DP_OK) {
            dp_push_ids_set(s, n);
        } else {
            return DP_NOMEM;
        }
    }
    return DP_OK;
}

/* After the streams: their runs are made with them. */
static void merge_floors(struct dp_push_ids *into, const struct dp_push_ids *from)
{
    into->floors.clients = greater(into->floors.clients, from->floors.clients);
    into->floors.runs = greater(into->floors.runs, from->floors.runs);
    for (uint32_t i = 0; i < into->runs; i++) {
        const struct dp_push_ids_run *run = run_of(from, into->run[i].number);
        if (run)
            into->run[i].floor = greater(into->run[i].floor, run->floor);
    }
}

static bool knows_refusal(const struct dp_push_ids *ids, const struct dp_push_ids_refused *refused)
{
    for (uint32_t i = 0; i < refusals_kept(ids); i++)
        if (ids->refused[i].stream == refused->stream && ids->refused[i].number == refused->number)
            return true;
    return false;
}

static void merge_refusals(struct dp_push_ids *into, const struct dp_push_ids *from)
{
    for (uint32_t i = from->refusals - refusals_kept(from); i != from->refusals; i++) {
        const struct dp_push_ids_refused *refused = &from->refused[i % DP_REFUSED_MAX];
        if (!knows_refusal(into, refused))
            into->refused[into->refusals++ % DP_REFUSED_MAX] = *refused;
    }
}

enum dp_status dp_push_ids_merge(struct dp_push_ids *into, const struct dp_push_ids *from)
{
    enum dp_status st = DP_OK;
    /* Streams that `into` does not know are its newest, in the order of their use. */
    for (const struct dp_push_ids_stream *s = from->clients.oldest; s && st == DP_OK; s = s->newer)
        st = merge_stream(into, s);
    for (uint32_t i = 0; i < from->runs && st == DP_OK; i++)
        for (const struct dp_push_ids_stream *s = from->run[i].epochs.oldest; s && st == DP_OK; s = s->newer)
            st = merge_stream(into, s);
    merge_floors(into, from);
    merge_refusals(into, from);
    return st;
}

/* ---- lacking pushes */

static bool lacks(const struct dp_push_ids *own, uint64_t stream, uint64_t number)
{
    enum dp_status status;
    enum dp_push_seen seen = dp_push_ids_look(own, stream, number, &status);
    return seen == DP_PUSH_NEW || seen == DP_PUSH_ABOVE;
}

void dp_push_ids_lacking(const struct dp_push_ids *own, const struct dp_push_ids *all,
                         bool (*visit)(void *context, uint64_t stream, uint64_t number), void *context)
{
    bool goes_on = true;
    for (uint32_t i = 0; i < all->count && goes_on; i++) {
        const struct dp_push_ids_stream *s = all->stream[i], *known = dp_push_ids_find(own, s->id);
        uint32_t left = s->set;
        if (!known && s->id <= dp_push_ids_too_old(own, s->id))
            continue;
        for (uint64_t n = known ? known->low : 0; goes_on && (n < s->low || left > 0); n++) {
            if (n >= s->low && !dp_push_ids_is_set(s, n))
                continue;
            left -= n >= s->low;
            if (lacks(own, s->id, n))
                goes_on = visit(context, s->id, n);
        }
    }
}

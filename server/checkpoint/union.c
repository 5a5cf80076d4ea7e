#include "server/checkpoint/union.h"

#include "common/base/memory.h"
#include "server/ids/push_ids_union.h"
#include "server/steps/steps_mark.h"

#include <stdlib.h>
#include <string.h>

/* ---- ids */

static enum dp_status unpack_ids(const struct dp_union_part *part, uint32_t shard, struct dp_push_ids **out,
                                 struct dp_error *err)
{
    if (dp_push_ids_new(out) != DP_OK)
        return dp_fail(err, DP_NOMEM, "no memory for push ids");
    enum dp_status st = dp_push_ids_unpack(*out, part->ids, part->ids_bytes, err);
    if (st == DP_OK)
        return DP_OK;
    dp_push_ids_free(out);
    return dp_wrap(err, st, "shard %" PRIu32, shard);
}

static enum dp_status unite_ids(const struct dp_union_part *parts, struct dp_union *out, struct dp_error *err)
{
    enum dp_status st =
        dp_push_ids_new(&out->all) == DP_OK ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for push ids");
    for (uint32_t i = 0; i < out->shards && st == DP_OK; i++) {
        struct dp_push_ids *own = NULL;
        st = unpack_ids(&parts[i], i, &own, err);
        if (st == DP_OK && dp_push_ids_merge(out->all, own) != DP_OK)
            st = dp_fail(err, DP_NOMEM, "no memory for push ids");
        dp_push_ids_free(&own);
    }
    return st;
}

struct gathering {
    struct dp_copy_pushes *to;
    size_t room;
    bool no_memory, too_many;
};

static bool gather(void *context, uint64_t stream, uint64_t number)
{
    struct gathering *g = context;
    g->too_many = g->to->count == DP_UNION_LACKING_MAX;
    if (g->too_many)
        return false;
    g->no_memory = !dp_array_reserve(&g->to->push, g->to->count, &g->room, sizeof g->to->push[0]);
    if (g->no_memory)
        return false;
    g->to->push[g->to->count++] = (struct dp_copy_push){stream, number};
    return true;
}

static enum dp_status find_lacking(const struct dp_union_part *part, uint32_t shard,
                                   const struct dp_push_ids *all, struct dp_copy_pushes *out,
                                   struct dp_error *err)
{
    struct dp_push_ids *own = NULL;
    struct gathering gathering = {.to = out};
    enum dp_status st = unpack_ids(part, shard, &own, err);
    if (st != DP_OK)
        return st;
    dp_push_ids_lacking(own, all, gather, &gathering);
    dp_push_ids_free(&own);
    if (gathering.no_memory)
        return dp_fail(err, DP_NOMEM, "no memory for the pushes that shard %" PRIu32 " lacks", shard);
    if (gathering.too_many)
        return dp_fail(err, DP_DATA,
                       "shard %" PRIu32
                       " lacks more than %u pushes that other shards have, the first one is number %" PRIu64
                       " of stream %016" PRIx64 ": its store is an older one than theirs, or was replaced",
                       shard, DP_UNION_LACKING_MAX, out->push[0].number, out->push[0].stream);
    return DP_OK;
}

static void count_stream(void *context, const struct dp_push_stream *stream)
{
    struct dp_union *out = context;
    if (dp_stream_is_training(stream->stream) && dp_stream_run(stream->stream) == out->last_run)
        out->pushes += stream->low + stream->used_above;
}

static void ignore_refused(void *context, uint64_t stream, uint64_t number, enum dp_status status)
{
    (void)context;
    (void)stream;
    (void)number;
    (void)status;
}

static void find_last(const struct dp_push_ids *all, struct dp_union *out)
{
    uint64_t last = dp_push_ids_last_training(all);
    if (last == 0)
        return;
    out->last_run = dp_stream_run(last);
    out->last_epoch = dp_stream_epoch(last);
    dp_push_ids_visit(all, count_stream, ignore_refused, out);
}

static enum dp_status pack_ids(struct dp_union *cut, struct dp_error *err)
{
    free(cut->ids);
    cut->ids = dp_push_ids_pack(cut->all, &cut->ids_bytes);
    return cut->ids ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for push ids");
}

static enum dp_status make_ids(const struct dp_union_part *parts, struct dp_union *out, struct dp_error *err)
{
    enum dp_status st = unite_ids(parts, out, err);
    for (uint32_t i = 0; i < out->shards && st == DP_OK; i++)
        st = find_lacking(&parts[i], i, out->all, &out->lacking[i], err);
    if (st != DP_OK)
        return st;
    find_last(out->all, out);
    return pack_ids(out, err);
}

/* ---- partial pushes */

static int by_push(const void *a, const void *b)
{
    const struct dp_copy_push *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Space for all that shards lack after the present ones. */
static enum dp_status reserve_partial(struct dp_union *cut, struct dp_error *err)
{
    size_t count = cut->partial.count + 1u;
    for (uint32_t i = 0; i < cut->shards; i++)
        count += cut->lacking[i].count;
    struct dp_copy_push *more = realloc(cut->partial.push, count * sizeof *more);
    if (!more)
        return dp_fail(err, DP_NOMEM, "no memory for pushes that only some shards have");
    cut->partial.push = more;
    return DP_OK;
}

static void take_partial(struct dp_copy_pushes *from, struct dp_copy_pushes *to,
                         bool (*is_given_up)(const void *context, const struct dp_copy_push *push),
                         const void *context)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < from->count; i++)
        if (is_given_up(context, &from->push[i]))
            to->push[to->count++] = from->push[i];
        else
            from->push[kept++] = from->push[i];
    from->count = kept;
}

/* From place `from` on, which are sorted then; none of these is before it. */
static void drop_repeated(struct dp_copy_pushes *pushes, uint32_t from)
{
    uint32_t once = from;
    qsort(&pushes->push[from], pushes->count - from, sizeof *pushes->push, by_push);
    for (uint32_t i = from; i < pushes->count; i++)
        if (once == from || by_push(&pushes->push[once - 1], &pushes->push[i]) != 0)
            pushes->push[once++] = pushes->push[i];
    pushes->count = once;
}

enum dp_status dp_union_find_lacking(const struct dp_union *cut,
                                     bool (*rule)(const void *context, const struct dp_copy_push *push),
                                     const void *context, struct dp_copy_pushes *out, struct dp_error *err)
{
    size_t most = 1;
    for (uint32_t i = 0; i < cut->shards; i++)
        most += cut->lacking[i].count;
    *out = (struct dp_copy_pushes){.push = calloc(most, sizeof *out->push)};
    if (!out->push)
        return dp_fail(err, DP_NOMEM, "no memory for pushes that only some shards have");
    for (uint32_t i = 0; i < cut->shards; i++)
        for (uint32_t k = 0; k < cut->lacking[i].count; k++)
            if (rule(context, &cut->lacking[i].push[k]))
                out->push[out->count++] = cut->lacking[i].push[k];
    drop_repeated(out, 0);
    return DP_OK;
}

bool dp_union_has_push(const void *pushes, const struct dp_copy_push *push)
{
    const struct dp_copy_pushes *of = pushes;
    return of->count > 0 && bsearch(push, of->push, of->count, sizeof *of->push, by_push);
}

enum dp_status dp_union_give_up(struct dp_union *cut,
                                bool (*is_given_up)(const void *context, const struct dp_copy_push *push),
                                const void *context, struct dp_error *err)
{
    struct dp_copy_pushes *partial = &cut->partial;
    uint32_t before = partial->count;
    if (reserve_partial(cut, err) != DP_OK)
        return DP_NOMEM;
    for (uint32_t i = 0; i < cut->shards; i++)
        take_partial(&cut->lacking[i], partial, is_given_up, context);
    if (partial->count == before)
        return DP_OK;
    drop_repeated(partial, before);
    for (uint32_t i = before; i < partial->count; i++)
        dp_push_ids_refuse(cut->all, partial->push[i].stream, partial->push[i].number, DP_PARTIAL);
    qsort(partial->push, partial->count, sizeof *partial->push, by_push);
    return pack_ids(cut, err);
}

/* ---- steps */

/* What the shards' steps have in common: the newest view, the greatest open step, what each member has finished. */
struct uniting {
    struct dp_steps *one;
    struct dp_view view;
    uint64_t open;
    struct dp_steps_place place[DP_MEMBERS_MAX];
};

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static enum dp_status add_steps(struct uniting *u, uint32_t shard, struct dp_error *err)
{
    const struct dp_view *view = &u->one->view;
    if (u->view.run != 0 && (view->run != u->view.run || view->members != u->view.members))
        return dp_fail(err, DP_AGAIN,
                       "a run begins: shard %" PRIu32 " is in run %" PRIu32 ", others in run %" PRIu32, shard,
                       view->run, u->view.run);
    bool newer = view->number > u->view.number;
    if (newer) {
        struct dp_view copy;
        enum dp_status st = dp_view_copy(view, &copy, err);
        if (st != DP_OK)
            return st;
        dp_view_clear(&u->view);
        u->view = copy;
    }
    u->open = greater(u->open, u->one->open);
    for (uint32_t rank = 0; rank < view->members; rank++) {
        struct dp_steps_place *place = &u->place[rank];
        place->next = greater(place->next, u->one->next[rank]);
        if (newer) /* shards that knew less had not decided about the member yet */
            place->start = place->former = 0;
        if (view->number == u->view.number) {
            place->start = greater(place->start, u->one->start[rank]);
            place->former = greater(place->former, u->one->former[rank]);
        }
    }
    return DP_OK;
}

/* Pushes of the open step of a synchronous run are not in the checkpoint: their members make them again. A member that has pushed that step
 * and has left after it would do so in no step that shards know it in, and its gradient would be lost: the step is closed soon. */
static enum dp_status check_leavers(const struct uniting *u, struct dp_error *err)
{
    for (uint32_t rank = 0; rank < u->view.members; rank++) {
        uint64_t until = u->view.member[rank].until;
        bool has_left = until != UINT64_MAX && until > u->open && u->place[rank].next > u->open;
        if (has_left || u->place[rank].former > u->open)
            return dp_fail(err, DP_AGAIN,
                           "worker %" PRIu32 " has ended with step %" PRIu64
                           ", which waits for other workers",
                           rank, u->open);
    }
    return DP_OK;
}

/* What members have finished by pushes of the open step is not in the checkpoint. */
static void drop_open_step(struct uniting *u)
{
    for (uint32_t rank = 0; rank < u->view.members; rank++) {
        const struct dp_member *member = &u->view.member[rank];
        struct dp_steps_place *place = &u->place[rank];
        /* Taken back on one shard and passed on another: without backups, steps below the open one were closed without it. */
        bool is_passed = u->view.slack == 0 && place->start != UINT64_MAX && place->next < u->open &&
                         place->next < member->until;
        if (is_passed)
            place->start = UINT64_MAX;
        uint64_t last = place->start == UINT64_MAX ? u->open : greater(u->open, place->start);
        place->next = place->next < last ? place->next : last;
    }
}

static enum dp_status pack_steps(struct uniting *u, struct dp_union *out, struct dp_error *err)
{
    out->run = u->view.run;
    out->has_sync = dp_mode_of(u->view.mode)->by_step;
    out->step = out->has_sync ? u->open : 0;
    enum dp_status st = out->has_sync ? check_leavers(u, err) : DP_OK;
    if (st != DP_OK)
        return st;
    if (out->has_sync)
        drop_open_step(u);
    memset(u->one, 0, sizeof *u->one);
    dp_steps_restore(u->one, &u->view, u->open, u->place, 0);
    out->steps_bytes = dp_steps_mark_bytes(u->one);
    out->steps = malloc(out->steps_bytes);
    if (out->steps)
        dp_steps_mark_pack(u->one, out->steps);
    dp_steps_clear(u->one);
    return out->steps ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the steps of a cut");
}

static enum dp_status make_steps(const struct dp_union_part *parts, struct dp_union *out,
                                 struct dp_error *err)
{
    struct uniting *u = calloc(1, sizeof *u);
    if (u)
        u->one = malloc(sizeof *u->one);
    enum dp_status st = u && u->one ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the steps of a cut");
    uint32_t with = 0;
    for (uint32_t i = 0; i < out->shards && st == DP_OK; i++) {
        if (parts[i].steps_bytes == 0)
            continue;
        memset(u->one, 0, sizeof *u->one);
        if (dp_steps_mark_unpack(parts[i].steps, parts[i].steps_bytes, u->one, 0, err) != DP_OK) {
            st = dp_wrap(err, DP_CORRUPT, "shard %" PRIu32, i);
            break;
        }
        with++;
        st = add_steps(u, i, err);
        dp_steps_clear(u->one);
    }
    if (st == DP_OK && with > 0 && with < out->shards)
        st = dp_fail(err, DP_AGAIN, "a run begins: %" PRIu32 " of %" PRIu32 " shards are in it", with,
                     out->shards);
    if (st == DP_OK && with > 0)
        st = pack_steps(u, out, err);
    if (u) {
        dp_view_clear(&u->view);
        free(u->one);
    }
    free(u);
    return st;
}

/* ---- all */

enum dp_status dp_union_make(const struct dp_union_part *parts, uint32_t shards, struct dp_union *out,
                             struct dp_error *err)
{
    DP_ASSERT(shards > 0);
    *out = (struct dp_union){.shards = shards, .lacking = calloc(shards, sizeof *out->lacking)};
    enum dp_status st =
        out->lacking ? make_steps(parts, out, err) : dp_fail(err, DP_NOMEM, "no memory for a cut");
    if (st == DP_OK)
        st = make_ids(parts, out, err);
    if (st != DP_OK)
        dp_union_clear(out);
    return st;
}

void dp_union_clear(struct dp_union *cut)
{
    for (uint32_t i = 0; i < cut->shards && cut->lacking; i++)
        free(cut->lacking[i].push);
    free(cut->lacking);
    free(cut->partial.push);
    dp_push_ids_free(&cut->all);
    free(cut->ids);
    free(cut->steps);
    *cut = (struct dp_union){0};
}
